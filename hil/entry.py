"""Where the command `tinylight` begins and ends: Ctrl-C is one line and exit code 130, whenever it comes.

While a command runs, Ctrl-C is Python's KeyboardInterrupt, so that what is open gets closed. Before it (Python imports for
some tenths of a second) and after it (exit functions run) Ctrl-C leaves at once. Nothing of ours is imported before that.
"""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

STOPPED = 130  # exit code after Ctrl-C


def main() -> NoReturn:
    """Entry point of the installed command."""
    exit_code = 1  # after an exception that nobody foresaw

    def leave() -> None:
        """Python would go on with tearing down all modules, where Ctrl-C kills."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)

    _on_ctrl_c(_stop)
    atexit.register(leave)  # the first to be registered is the last to run
    from hil.cli import run

    try:
        try:
            _on_ctrl_c(signal.default_int_handler)
            exit_code = run()
        finally:
            _on_ctrl_c(_stop)
    except KeyboardInterrupt:  # on the way into `run` or out of it
        _stop()
    sys.exit(exit_code)


def _on_ctrl_c(handler: Callable[..., Any]) -> None:
    """Unless it is ignored, as a shell has it for what runs in the background."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _stop(*_: object) -> NoReturn:
    try:
        os.write(2, b"tinylight: stopped\n")
    finally:
        os._exit(STOPPED)
