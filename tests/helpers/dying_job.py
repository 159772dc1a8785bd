"""A job whose process dies, for tests of what comes after."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import InputError, InputWarning

TOLD = "RAY_USAGE_STATS_ENABLED"


@dataclass(frozen=True)
class DiesOnce:
    """It writes a checkpoint, tells so and dies, `least` times; then it writes what it went on from. With `fault` it raises."""

    name: str
    least: int = 1
    fault: str = ""
    work_units: float = 1.0

    def __str__(self) -> str:
        return self.name

    def is_done(self, work: Path) -> bool:
        return False

    def inputs(self) -> dict[str, object]:
        return {}

    def checkpoints(self, work: Path) -> list[Path]:
        return [work / f"{self.name}.checkpoint"]

    def run(self, work: Path, report: object) -> None:
        assert callable(report)
        if self.fault:
            raise InputError(self.name, "", self.fault)
        (checkpoint,) = self.checkpoints(work)
        warnings.warn("of a node", InputWarning, stacklevel=1)
        if not checkpoint.is_file() or self.least > 1:
            checkpoint.write_text("half")
            time.sleep(0.6)  # beyond the least time between two reports
            report(0.5)
            time.sleep(0.6)  # until it is read
            os._exit(1)
        result = {"went on from": checkpoint.read_text(), TOLD: os.environ.get(TOLD)}
        (work / f"{self.name}.json").write_text(json.dumps(result))
        checkpoint.unlink()
