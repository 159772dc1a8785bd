"""Tries a phase and goes back: snapshot, load, dump, load_from_file. CONFIG SIGNAL PLAN(json) STATE_FILE.

The plan: how many seconds each phase is held, and the phases.
"""

import json
import sys

import cityflow

config_path, signal, plan_file, state_file = sys.argv[1:5]
with open(plan_file) as file:
    plan = json.load(file)
eng = cityflow.Engine(config_path, thread_num=1)


def run(phases):
    for phase in phases:
        eng.set_tl_phase(signal, phase)
        for _ in range(plan["hold"]):
            eng.next_step()
    return eng.get_average_travel_time(), eng.get_vehicle_speed()


before, after = plan["phases"][:15], plan["phases"][15:30]
run(before)
archive = eng.snapshot()
archive.dump(state_file)

outcomes = {}
for phase in range(7):  # what would each phase alone bring?
    eng.load(archive)
    outcomes[phase] = run([phase] * 3)

eng.load(archive)
by_plan = run(after)
eng.load_from_file(state_file)
time_after_load = eng.get_current_time()
by_plan_from_file = run(after)
