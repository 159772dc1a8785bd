"""Adds a vehicle by hand, gives it another route, follows it to its end: CONFIG SIGNAL."""

import sys

import cityflow

eng = cityflow.Engine(sys.argv[1], thread_num=1)
eng.set_tl_phase(sys.argv[2], 7)
eng.push_vehicle({"length": 4.0, "maxSpeed": 10.0, "speed": 5.0}, ["r_-1_0_0", "r_0_0_0"])
eng.next_step()
(vehicle,) = eng.get_vehicles()
route_before = eng.get_vehicle_info(vehicle)["route"]
turned = [road for road in ("r_0_0_1", "r_0_0_3") if eng.set_vehicle_route(vehicle, [road])]
route_after = eng.get_vehicle_info(vehicle)["route"]
unknown_road = eng.set_vehicle_route(vehicle, ["r_9_9_9"])

track = []
while vehicle in eng.get_vehicles(include_waiting=True):
    track.append((eng.get_vehicle_speed()[vehicle], eng.get_vehicle_info(vehicle)["drivable"]))
    eng.next_step()
