"""Where data sets (TINYLIGHT_DATA) and the large recordings (TINYLIGHT_SHARED) are. Tests skip without them."""

import os
from pathlib import Path

import pytest

GOLDEN = Path(os.environ.get("TINYLIGHT_SHARED") or "TINYLIGHT_SHARED") / "golden"


def data_set(name: str) -> Path | None:
    """The folder of a data set in a folder of TINYLIGHT_DATA, if it is there."""
    folders = os.environ.get("TINYLIGHT_DATA", "").split(os.pathsep)
    return next((Path(each) / name for each in folders if each and (Path(each) / name / "roadnet.json").is_file()), None)


def needs_data_set(name: str) -> pytest.MarkDecorator:
    """Skips where the data set can't be found through TINYLIGHT_DATA."""
    return pytest.mark.skipif(data_set(name) is None, reason=f"needs the data set {name} in a folder of TINYLIGHT_DATA")


def needs_recording(file: str) -> pytest.MarkDecorator:
    """Skips where `golden/file` isn't in the folder TINYLIGHT_SHARED."""
    return pytest.mark.skipif(not (GOLDEN / file).is_file(), reason=f"needs golden/{file} in the folder TINYLIGHT_SHARED")
