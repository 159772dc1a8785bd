"""Signalled intersections as environments of Gymnasium (one light, or many replicas in one call) and PettingZoo (many lights).

Importing this registers `TrafficLight-v0` for `gymnasium.make` and `gymnasium.make_vec`. It needs the extra `gym`, the
parallel environment the extra `pettingzoo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import gymnasium
except ImportError as fault:
    raise ImportError("streetflow.gym needs Gymnasium: pip install 'tinylight-hil[gym]'") from fault

from streetflow.gym.rewards import REWARDS
from streetflow.gym.single import SignalEnv
from streetflow.gym.vector import SignalVectorEnv

if TYPE_CHECKING:
    from streetflow.gym.parallel import SignalParallelEnv

__all__ = ["REWARDS", "SignalEnv", "SignalParallelEnv", "SignalVectorEnv"]

gymnasium.register(
    id="TrafficLight-v0",
    entry_point="streetflow.gym.single:SignalEnv",
    vector_entry_point="streetflow.gym.vector:SignalVectorEnv",
)


def __getattr__(name: str) -> Any:
    """The parallel environment, whose library is another extra."""
    if name != "SignalParallelEnv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streetflow.gym.parallel import SignalParallelEnv

    return SignalParallelEnv
