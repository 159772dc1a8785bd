"""A first simulation: CONFIG STEPS."""

import sys

import cityflow

config_path, steps = sys.argv[1], int(sys.argv[2])
eng = cityflow.Engine(config_path, thread_num=1)

running = []
average_travel_time = []
for _ in range(steps):
    eng.next_step()
    running.append(eng.get_vehicle_count())
    average_travel_time.append(eng.get_average_travel_time())

print(f"after {eng.get_current_time():.0f} s: {running[-1]} vehicles, average travel time {average_travel_time[-1]:.2f} s")
