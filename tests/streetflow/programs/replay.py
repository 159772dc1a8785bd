"""Records a replay, pauses it, continues in a second file; then reads both as the viewer does: CONFIG FOLDER."""

import json
import sys

import cityflow

config_path, folder = sys.argv[1], sys.argv[2]
eng = cityflow.Engine(config_path, thread_num=1)  # saveReplay is true in this config
for _ in range(100):
    eng.next_step()
eng.set_save_replay(False)
for _ in range(50):
    eng.next_step()
eng.set_save_replay(True)
eng.set_replay_file("second_replay.txt")
for _ in range(30):
    eng.next_step()
del eng  # closes the files


def frames(file_name):
    """Per step: vehicles as (x, y, angle, id, ...), and the state of each road's lanes."""
    with open(folder + file_name) as file:
        for line in file:
            vehicles, roads = line.rstrip("\n").split(";")
            yield (
                [entry.split(" ") for entry in vehicles.split(",") if entry],
                {entry.split(" ")[0]: entry.split(" ")[1:] for entry in roads.split(",") if entry},
            )


first, second = list(frames("replay.txt")), list(frames("second_replay.txt"))
with open(folder + "roadnet_log.json") as file:
    roadnet = json.load(file)["static"]
