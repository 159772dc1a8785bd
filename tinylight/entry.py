"""Where the command `tinylight` begins and ends: Ctrl-C is one line and exit code 130, whenever it comes; SIGTERM (from `kill`
or a job's time limit) is the same with 143.

While a command runs, both are Python's KeyboardInterrupt, so that what is open gets closed. Before it (Python imports for
some tenths of a second) and after it (exit functions run) they leave at once. Nothing of ours is imported before that.
"""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> NoReturn:
    """Entry point of the installed command."""
    exit_code = 1  # after an unexpected exception
    stopped_by: int = signal.SIGINT

    def interrupt(number: int, _frame: object) -> NoReturn:
        nonlocal stopped_by
        stopped_by = number
        raise KeyboardInterrupt

    def leave() -> None:
        """Exits at once: Python would go on to tear down all modules, and Ctrl-C would kill it there."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)

    _on_signals(_stop)
    atexit.register(leave)  # the first to be registered is the last to run
    if (fault := _shadowed()) is not None:
        exit_code = 2
        sys.stderr.write(f"tinylight: {fault}\n")
        sys.exit(exit_code)
    from tinylight.cli import run
    from tinylight.exit_codes import STOPPED

    try:
        try:
            _on_signals(interrupt)
            exit_code = run()
        finally:
            _on_signals(_stop)
    except KeyboardInterrupt:  # while entering or leaving `run`
        _stop(stopped_by)
    if exit_code == STOPPED:
        exit_code = 128 + stopped_by
    sys.exit(exit_code)


def _shadowed() -> str | None:
    """A file that hides one of our packages, such as a user's own model.py on PYTHONPATH; None if there is none."""
    try:
        from hil.own_packages import shadowed
    except ImportError:
        file = getattr(sys.modules.get("hil"), "__file__", None)
        if file is None:
            raise
        return f"{file}: is found in place of tinylight-hil's package 'hil': rename it, or run where it isn't on Python's path"
    return shadowed()


def _on_signals(handler: Callable[..., Any]) -> None:
    """Sets the handler of each signal that isn't ignored (a shell ignores Ctrl-C for background jobs)."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _stop(number: int, *_: object) -> NoReturn:
    try:
        os.write(2, b"tinylight: stopped\n")
    finally:
        os._exit(128 + number)
