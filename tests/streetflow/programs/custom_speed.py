"""Holds the first vehicle of a road at a set speed and watches the others: CONFIG."""

import sys

import cityflow

eng = cityflow.Engine(sys.argv[1], thread_num=1)
for _ in range(40):
    eng.next_step()
slow = max(eng.get_vehicle_distance().items(), key=lambda item: item[1])[0]
speeds = []
for _ in range(60):
    eng.set_vehicle_speed(slow, 3.0)
    eng.next_step()
    speeds.append(eng.get_vehicle_speed())
column = eng.get_lane_vehicles()["in_0_0"]
leaders = [eng.get_leader(vehicle) for vehicle in column]
