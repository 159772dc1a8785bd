"""Results of kernels as JSON: a program that the tests run on copies of the packages, `python kernel_results.py PART`."""

import json
import sys

import numpy as np


def features() -> object:
    """Values of features by name, and the raw vector of sources that the kernels fill in."""
    from streetflow.control.features import resolve_features
    from streetflow.control.observation import Observer
    from tests.streetflow.test_features import LIGHT, SMALL, FakeEngine

    names = [
        "inlane_2_num_waiting_vehicle",
        "inlane_2_sum_waiting_time",
        "inter_2_num_passed_vehicle_since_last_action",
        "inter_2_sum_travel_time_since_last_action",
    ]
    engine = FakeEngine()
    observer = Observer((LIGHT, SMALL), resolve_features(names), engine)
    actions = np.zeros(2, np.int32)
    observer.observe(engine, actions)
    engine.time_s, engine.by_vehicle = engine.time_s + 20, []  # all have left
    seen = observer.observe(engine, actions)[0]
    return {"features": {name: seen[:, k].tolist() for k, name in enumerate(names)}, "sources": observer._values.tolist()}


def masked() -> object:
    """The result of a helper: the entry point, which the test adds, is in another file."""
    from streetflow.kernels.probe import masked

    return int(masked(13))


def weights() -> object:
    """A step of the optimiser."""
    from model.kernels.rmsprop import step_weights

    weights, squares, target = (np.zeros(3, np.float32) for _ in range(3))
    step_weights(weights, np.float32([1e-3, 1, 2]), squares, target, np.float32(0.1), np.float32(0.5))
    return weights.tolist()


if __name__ == "__main__":
    print(json.dumps({"features": features, "masked": masked, "weights": weights}[sys.argv[1]]()))
