"""Shared set-up of the test suite. The harness itself is a pytest plugin: `hil/pytest_plugin.py`."""

import os
from pathlib import Path

# Data sets beside the checkout are used without being named, as the Makefile does.
_DATASETS = Path(__file__).resolve().parent.parent / "shared" / "datasets"
if _DATASETS.is_dir():
    os.environ.setdefault("TINYLIGHT_DATA", str(_DATASETS))
