"""Shared set-up of the test suite. The harness itself is a pytest plugin: `hil/pytest_plugin.py`."""

import os
import signal
from pathlib import Path

# Data sets beside the checkout are used without being named, as the Makefile does.
_DATASETS = Path(__file__).resolve().parent.parent / "shared" / "datasets"
if _DATASETS.is_dir():
    os.environ.setdefault("TINYLIGHT_DATA", str(_DATASETS))

# A shell's background job ignores Ctrl-C, and so would every process that it starts: some tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
