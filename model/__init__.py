"""TinyLight's model: super-graph, learning, sub-graph extraction, quantisation, policy file, integer reference.

Importing this package pulls in neither torch nor the traffic engine. What trains (`search`, `dqn`, `train`, `baselines`) needs
the extra `train`; what runs a policy (`policy`) does without.
"""

from pathlib import Path
from typing import TYPE_CHECKING

__all__ = ["MODES", "PRETRAINED_FOLDER", "__version__", "pretrained_policies", "pretrained_policy"]

MODES = ("answer", "light", "alone")
"""What the chip may be: docs/controller.md."""
PRETRAINED_FOLDER = Path(__file__).resolve().parent / "pretrained"


def pretrained_policy(name: str, mode: str = "answer") -> Path:
    """The file of a pretrained policy.

    Args:
        name: the network's.
        mode: what the chip is to do with it: ``answer``; or ``light`` or ``alone``, for which it sees what two loops a lane
            can tell and was trained with the clearances that the chip keeps.

    Raises:
        FileNotFoundError: there is no such policy; the message lists the available ones.
    """
    path = PRETRAINED_FOLDER / f"{name}{_ending(mode)}"
    if not path.is_file():
        there = ", ".join(pretrained_policies(mode)) or "none"
        what = "policy" if mode == "answer" else f"policy for the mode {mode}"
        raise FileNotFoundError(f"no pretrained {what} called {name!r} (there are: {there})")
    return path


def pretrained_policies(mode: str = "answer") -> list[str]:
    """Names of the networks that have a pretrained policy for the mode, sorted."""
    ending = _ending(mode)
    names = (path.name.removesuffix(ending) for path in PRETRAINED_FOLDER.glob(f"*{ending}"))
    return sorted(name for name in names if mode != "answer" or not name.endswith(".alone"))


def _ending(mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; there are {', '.join(MODES)}")
    return ".json" if mode == "answer" else ".alone.json"


__version__: str

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        """`__version__`, looked up on first access: it comes from the traffic engine, which is slow to import."""
        if name == "__version__":
            from streetflow import __version__

            return __version__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
