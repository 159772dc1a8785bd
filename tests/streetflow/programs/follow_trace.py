"""Runs a recorded schedule of phases and writes down what each step shows: CONFIG THREADS SCHEDULE(json).

The schedule: intersections, and for each step their phases (an empty list: leave the lights).
"""

import json
import sys

import cityflow

with open(sys.argv[3]) as file:
    schedule = json.load(file)
eng = cityflow.Engine(sys.argv[1], thread_num=int(sys.argv[2]))
shown = []
for phases in schedule["phases"]:
    for intersection, phase in zip(schedule["intersections"], phases, strict=False):
        eng.set_tl_phase(intersection, phase)
    eng.next_step()
    shown.append(
        (
            eng.get_lane_vehicle_count(),
            eng.get_lane_waiting_vehicle_count(),
            eng.get_vehicle_count(),
            eng.get_average_travel_time(),
        )
    )
last_speed, last_distance = eng.get_vehicle_speed(), eng.get_vehicle_distance()
