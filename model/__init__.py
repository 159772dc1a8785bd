"""TinyLight's model: super-graph, learning, sub-graph extraction, quantisation, policy file, integer reference.

Importing this package pulls in neither torch nor the traffic engine. What trains (`search`, `dqn`, `train`, `baselines`) needs
the extra `train`; what runs a policy (`policy`) does without.
"""

from pathlib import Path
from typing import TYPE_CHECKING

__all__ = ["PRETRAINED_FOLDER", "__version__", "pretrained_policies", "pretrained_policy"]

PRETRAINED_FOLDER = Path(__file__).resolve().parent / "pretrained"


def pretrained_policy(name: str) -> Path:
    """The file of a pretrained policy.

    Args:
        name: the network's.

    Raises:
        FileNotFoundError: no policy has that name; the message lists the available ones.
    """
    path = PRETRAINED_FOLDER / f"{name}.json"
    if not path.is_file():
        there = ", ".join(pretrained_policies()) or "none"
        raise FileNotFoundError(f"no pretrained policy called {name!r} (there are: {there})")
    return path


def pretrained_policies() -> list[str]:
    """Names of the pretrained policies that ship with the package, sorted."""
    return sorted(path.stem for path in PRETRAINED_FOLDER.glob("*.json"))


__version__: str

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        """`__version__`, looked up on first access: it comes from the traffic engine, which is slow to import."""
        if name == "__version__":
            from streetflow import __version__

            return __version__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
