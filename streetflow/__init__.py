"""A traffic simulator equal to CityFlow, bit for bit: ``import streetflow as cityflow``."""

from streetflow.archive import Archive
from streetflow.engine import Engine
from streetflow.errors import InputError

__all__ = ["Archive", "Engine", "InputError"]
