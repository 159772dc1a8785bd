"""Where the shared reference data lie: data sets, golden traces. Tests skip, saying so, where they are missing."""

import os
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

SHARED = Path(os.environ.get("TINYLIGHT_SHARED", ROOT.parent / "shared"))
GOLDEN = SHARED / "golden"
DATASETS = SHARED / "datasets"

needs_shared = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason=f"needs the shared reference data (TINYLIGHT_SHARED), not at {SHARED}"
)


def needs_data_set(name: str) -> pytest.MarkDecorator:
    """Skips where the data set can't be found through TINYLIGHT_DATA."""
    folders = os.environ.get("TINYLIGHT_DATA", "").split(os.pathsep)
    found = any(folder and (Path(folder) / name / "roadnet.json").is_file() for folder in folders)
    return pytest.mark.skipif(not found, reason=f"needs the data set {name} in a folder of TINYLIGHT_DATA")
