"""How the table's TinyLight rows are trained: settings by name, from `table_settings.json`.

Each entry may have `features` (preset or names), `seed` (added to the run's engine seed, which is a run's training seed too),
`replicas` (that many seeds from there side by side; the one that does best on the flow is kept), `training` (fields of
`TrainingConfig` that differ from the paper's), and `networks`: the same for single networks, where they differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streetflow.errors import InputError
from streetflow.near import or_else

SETTINGS_FILE = Path(__file__).resolve().with_name("table_settings.json")


class TinyLightSettings(BaseModel):
    """Settings of one training of TinyLight; the defaults are the paper's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: str = "release"
    seed: int = Field(default=0, ge=0)
    replicas: int = Field(default=1, ge=1)
    training: dict[str, Any] = {}


class _Entry(TinyLightSettings):
    networks: dict[str, dict[str, Any]] = {}


def settings_names(file: Path | None = None) -> list[str]:
    return list(_read(file or SETTINGS_FILE))


def tinylight_settings(name: str, network: str, file: Path | None = None) -> TinyLightSettings:
    """The settings called `name` for a network; InputError if there are none, or a field isn't known."""
    file = file or SETTINGS_FILE
    entries = _read(file)
    if name not in entries:
        raise InputError("--settings", "", f"unknown settings {name!r}{or_else(name, entries)}")
    try:
        entry = _Entry.model_validate(entries[name])
        own = entry.networks.get(network, {})
        common = entry.model_dump(exclude={"networks"})
        merged = common | own | {"training": common["training"] | own.get("training", {})}
        return TinyLightSettings.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in (name, *first["loc"]))
        raise InputError(file, place, first["msg"]) from None


def _read(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content
