"""A traffic simulator equal to CityFlow, bit for bit: ``import streetflow as cityflow``."""

from streetflow.engine.archive import Archive
from streetflow.engine.cityflow_names import Engine
from streetflow.errors import InputError, InputWarning, StepError, UnknownIdError, UnknownVehicleError

__all__ = [
    "Archive",
    "Engine",
    "InputError",
    "InputWarning",
    "StepError",
    "UnknownIdError",
    "UnknownVehicleError",
    "__version__",
]

__version__ = "0.1.0"  # of this package and of all of tinylight-hil
