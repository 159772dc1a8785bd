"""One process with one simulation of SUMO (`worker.py`), as calls."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from streetflow.errors import FieldError, StepError
from streetflow.sumo import worker

HOW_TO_GET_SUMO = "SUMO isn't installed: pip install 'tinylight-hil[sumo]' (or libsumo). Engine 'builtin' needs none"
_LONGEST = 300  # characters of SUMO's own words in an error


class SumoFault(RuntimeError):
    """What SUMO says of its input, or of a call."""


class SumoProcess:
    """Starts the process; it ends with this object, or by `close`. FieldError where libsumo is missing."""

    def __init__(self) -> None:
        if find_spec("libsumo") is None:
            raise FieldError("engine", HOW_TO_GET_SUMO, "sumo")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-u", str(Path(worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for the process that talks to it
        )
        self._end = weakref.finalize(self, _end, self._process, self._errors)
        try:
            self._reply()
        except SumoFault as fault:
            self.close()
            raise FieldError("engine", f"libsumo can't be imported: {fault}", "sumo") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, *arguments: object) -> Any:
        """What `worker.Simulation` returns.

        Raises:
            SumoFault: SUMO refuses.
            StepError: the process has gone.
        """
        assert self._process.stdin is not None
        try:
            worker.send(self._process.stdin, (name, arguments))
        except (BrokenPipeError, ValueError):
            raise StepError(f"SUMO has ended: {self._last_words()}") from None
        return self._reply()

    def close(self) -> None:
        """End SUMO and the process; nothing where it has ended."""
        self._end()

    def _reply(self) -> Any:
        assert self._process.stdout is not None
        try:
            is_fine, result = worker.receive(self._process.stdout)
        except EOFError:
            self._process.wait()
            raise StepError(f"SUMO has ended (exit code {self._process.returncode}): {self._last_words()}") from None
        if not is_fine:
            raise SumoFault(self._last_words(result))
        return result

    def _last_words(self, otherwise: str = "it says nothing") -> str:
        """SUMO's own errors so far in one line; the exceptions of libsumo are less clear."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        self._errors.seek(0, 2)
        said = [line.strip() for line in lines if line.startswith("Error:")]
        text = " ".join([each.removeprefix("Error:").strip() for each in said] or [otherwise])
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Let it close SUMO, then end it."""
    assert process.stdin is not None and process.stdout is not None
    try:
        worker.send(process.stdin, ("close", ()))
        worker.receive(process.stdout)
        process.stdin.close()
        process.wait(10)
    except (OSError, ValueError, EOFError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    finally:
        for stream in (process.stdin, process.stdout, errors):
            with contextlib.suppress(OSError):
                stream.close()
