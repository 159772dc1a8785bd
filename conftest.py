"""Shared set-up of the test suite. The harness itself is a pytest plugin: `hil/pytest_plugin.py`."""

import os
import signal
from pathlib import Path

# Data sets and recordings beside the checkout are used without being named; where there are none, their tests are skipped.
_SHARED = Path(__file__).resolve().parent.parent / "shared"
for _variable, _folder in (("TINYLIGHT_DATA", _SHARED / "datasets"), ("TINYLIGHT_SHARED", _SHARED)):
    if _folder.is_dir():
        os.environ.setdefault(_variable, str(_folder))

# A shell's background job ignores Ctrl-C, and so would every process that it starts: some tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
