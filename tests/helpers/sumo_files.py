"""The hand-drawn SUMO scenario of the tests, as it is or with a change, and as a data set."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from streetflow.networks.write import write_network
from streetflow.sumo.importing import Imported, import_scenario
from streetflow.sumo.scenario import read_scenario

DRAWN = Path(__file__).parent.parent / "streetflow" / "sumo_nets"
CONFIG = DRAWN / "two_lights.sumocfg"
SCENARIOS = Path(os.environ.get("TINYLIGHT_SHARED") or "TINYLIGHT_SHARED") / "datasets-sumo"

needs_sumo = pytest.mark.skipif(importlib.util.find_spec("libsumo") is None, reason="needs libsumo (the extra `sumo`)")


def import_to(config: Path, out: Path) -> Imported:
    """Import a scenario as a network's folder."""
    imported = import_scenario(read_scenario([config]))
    write_network(out, imported.files)
    return imported


def changed(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of the drawn scenario, with texts replaced; returns its configuration.

    changes: (end of the file's name, text, text in its place); the text must be there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in DRAWN.iterdir():
        text = file.read_text(encoding="utf-8")
        for name, old, new in changes:
            if file.name.endswith(name):
                assert old in text, f"{file.name} doesn't hold {old!r}"
                text = text.replace(old, new)
        (folder / file.name).write_text(text, encoding="utf-8")
    return folder / CONFIG.name
