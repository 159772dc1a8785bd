"""Reinforcement learning's loop: observe the lanes, choose a phase, hold it, collect a reward. CONFIG ACTIONS(json)."""

import json
import sys

import cityflow


class TrafficEnv:
    """One signal; the observation is the number of vehicles per lane, the reward minus the number that wait."""

    def __init__(self, config_path, signal, lanes, hold):
        self.eng = cityflow.Engine(config_path, thread_num=1)
        self.signal, self.lanes, self.hold = signal, lanes, hold

    def reset(self):
        self.eng.reset(seed=True)
        return self.observe()

    def observe(self):
        count = self.eng.get_lane_vehicle_count()
        return [count[lane] for lane in self.lanes]

    def step(self, action):
        self.eng.set_tl_phase(self.signal, action)
        for _ in range(self.hold):
            self.eng.next_step()
        waiting = self.eng.get_lane_waiting_vehicle_count()
        return self.observe(), -sum(waiting[lane] for lane in self.lanes)


with open(sys.argv[2]) as file:
    task = json.load(file)
env = TrafficEnv(sys.argv[1], task["signal"], task["lanes"], task["hold"])

episodes = []
for _ in range(2):
    observations, rewards = [env.reset()], []
    for action in task["actions"]:
        observation, reward = env.step(action)
        observations.append(observation)
        rewards.append(reward)
    episodes.append((observations, rewards, env.eng.get_average_travel_time()))
