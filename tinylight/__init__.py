"""The command `tinylight`: everything of this project from a shell."""

from typing import TYPE_CHECKING

__all__ = ["__version__"]

__version__: str

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        """`__version__`, looked up on first access: it comes from the traffic engine, which is slow to import."""
        if name == "__version__":
            from streetflow import __version__

            return __version__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
