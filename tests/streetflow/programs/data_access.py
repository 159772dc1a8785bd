"""Reads all that the engine reports, step by step, and adds it up: CONFIG STEPS."""

import sys

import cityflow

eng = cityflow.Engine(sys.argv[1], thread_num=1)
history = []
for _ in range(int(sys.argv[2])):
    eng.next_step()
    lane_vehicles = eng.get_lane_vehicles()
    lane_count = eng.get_lane_vehicle_count()
    lane_waiting = eng.get_lane_waiting_vehicle_count()
    speed = eng.get_vehicle_speed()
    distance = eng.get_vehicle_distance()
    history.append((lane_count, lane_waiting, speed, distance))

    assert eng.get_vehicle_count() == len(eng.get_vehicles()) == len(speed) == len(distance)
    assert set(eng.get_vehicles()) <= set(eng.get_vehicles(include_waiting=True))
    for lane, vehicles in lane_vehicles.items():
        assert len(vehicles) == lane_count[lane]
        assert sum(speed[vehicle] < 0.1 for vehicle in vehicles) == lane_waiting[lane]

infos = {}
for vehicle in eng.get_vehicles(include_waiting=True):
    info = eng.get_vehicle_info(vehicle)
    if int(info["running"]):
        assert abs(float(info["speed"]) - speed[vehicle]) < 1e-6
        assert abs(float(info["distance"]) - distance[vehicle]) < 1e-6
        if "road" in info:
            assert vehicle in lane_vehicles[info["drivable"]]
            assert info["route"].split()[0] == info["road"]
    leader = eng.get_leader(vehicle)
    assert leader == "" or leader in speed
    infos[vehicle] = info

try:
    eng.get_vehicle_info("no such vehicle")
except RuntimeError as error:
    message = str(error)
