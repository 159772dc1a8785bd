"""How the table's TinyLight rows are trained: settings by name, from `table_settings.json`.

Each entry may have `method` (dqn, the default, or planned), `features` (preset or names), `seed` (added to the run's engine
seed, which is a run's training seed too), `replicas` (that many seeds from there side by side; the one that does best on the
flow is kept), `training` (fields of `TrainingConfig` that differ from the paper's, or of `PlanConfig` that differ from its
defaults), and `networks`: the same for single networks, where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.planning.settings import PlanConfig
from model.search.config import TrainingConfig
from streetflow.errors import FieldError, InputError, fields_from
from streetflow.near import or_else
from streetflow.roadnet.json_reader import read_json

SETTINGS_FILE = Path(__file__).resolve().with_name("table_settings.json")


class TinyLightSettings(BaseModel):
    """Settings of one training of TinyLight; the defaults are the paper's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["dqn", "planned"] = "dqn"
    features: str = "release"
    seed: int = Field(default=0, ge=0)
    replicas: int = Field(default=1, ge=1)
    training: dict[str, Any] = {}

    def config(self) -> TrainingConfig:
        """Of the method dqn. FieldError for an unknown field, and for an impossible value."""
        return TrainingConfig(**self._values(TrainingConfig.__dataclass_fields__))

    def plan_config(self) -> PlanConfig:
        """Of the method planned. FieldError as above."""
        return PlanConfig(**self._values(PlanConfig.__dataclass_fields__))

    def identity(self) -> dict[str, Any]:
        """What a result depends on; the method alone is left out where it is the paper's."""
        return self.model_dump(exclude={"method"} if self.method == "dqn" else None)

    def _values(self, known: Mapping[str, Any]) -> dict[str, Any]:
        for name in self.training:
            if name not in known:
                raise FieldError(name, f"unknown{or_else(name, known)}")
        return {name: tuple(value) if isinstance(value, list) else value for name, value in self.training.items()}


class _Entry(TinyLightSettings):
    networks: dict[str, TinyLightSettings] = {}


def settings_names(file: Path | None = None) -> list[str]:
    return list(_read(file or SETTINGS_FILE))


def tinylight_settings(name: str, network: str, file: Path | None = None) -> TinyLightSettings:
    """The settings called `name` for a network; InputError for an unknown name or field, or an impossible value."""
    file = file or SETTINGS_FILE
    entries = _read(file)
    if name not in entries:
        raise InputError(file, "", f"unknown settings {name!r}{or_else(name, entries)}")
    try:
        entry = _Entry.model_validate(entries[name])
        own = entry.networks[network].model_dump(exclude_unset=True) if network in entry.networks else {}
        common = entry.model_dump(exclude={"networks"})
        merged = common | own | {"training": common["training"] | own.get("training", {})}
        settings = TinyLightSettings.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in (name, *first["loc"]))
        raise InputError(file, place, first["msg"]) from None
    with settings_named(name, file):
        settings.config() if settings.method == "dqn" else settings.plan_config()
    return settings


def settings_named(name: str, file: Path | None = None) -> AbstractContextManager[None]:
    """FieldErrors of the training's settings become InputErrors with the settings file and the place in it."""
    return fields_from(lambda field: (file or SETTINGS_FILE, f"{name}.training.{field}"))


def _read(file: Path) -> dict[str, Any]:
    content = read_json(file, exact=True)
    if not isinstance(content, dict):
        raise InputError(file, "", "must be an object of settings by name")
    return content
