"""A traffic simulator equal to CityFlow, bit for bit: ``import streetflow as cityflow``."""

from streetflow.engine.archive import Archive
from streetflow.engine.cityflow_names import Engine
from streetflow.errors import InputError

__all__ = ["Archive", "Engine", "InputError"]
