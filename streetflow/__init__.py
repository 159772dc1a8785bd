"""A traffic simulator equal to CityFlow, bit for bit: ``import streetflow as cityflow``.

The engine and its compiler are imported as the first name that needs them is looked up: what doesn't simulate starts at once.
"""

import importlib
import typing

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

if typing.TYPE_CHECKING:
    from streetflow.engine.archive import Archive
    from streetflow.engine.cityflow_names import Engine
else:
    _PLACES = {"Archive": "streetflow.engine.archive", "Engine": "streetflow.engine.cityflow_names"}

    def __getattr__(name: str) -> type:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(importlib.import_module(_PLACES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_PLACES})
