"""How a job is run, apart from what it runs: board, line, engine, limits. All is checked before any file is looked for."""

import math
from dataclasses import dataclass
from typing import get_args

from hil.build.firmware import Mode, require_kernel
from hil.loop.detector_faults import DetectorFaultSpec
from hil.loop.fault_spec import LIGHT_FAULTS, FaultSpec
from hil.loop.lamp_faults import LampFault
from hil.wire.expected_firmware import require_possible
from hil.wire.link import BUDGET_S
from streetflow.control.clearance import require_clearance
from streetflow.control.engines import require_engine
from streetflow.control.signal_times import LIGHT_RULES
from streetflow.errors import FieldError
from streetflow.near import or_else

LONGEST_S = 600  # what the shell's clocks of 10 ms hold, and some to spare
BOARDS = ("one", "per-intersection")
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of a `hil.loop.job.Job`. FieldError for an impossible value."""

    board: str = "simavr"  # with boards="per-intersection": one for all, or a list with commas
    engine: str = "builtin"
    f_cpu_hz: int = 16_000_000
    baud: int = 115_200
    clearance: str | None = None  # None: the policy's own
    logits: bool = False  # fetched for every decision, not only where their CRC differs
    kernel: str = "auto"
    watchdog: bool = True  # of the firmware; False for a bootloader that doesn't survive its resets
    min_green_s: int = 0  # kept by the chip and by the simulated lights
    boards: str = "one"  # or "per-intersection": each chip holds that intersection's policy alone
    budget_s: float = BUDGET_S  # of a decision, round trip
    faults: FaultSpec | None = None  # to inject
    sweep: bool = True  # try inputs and frames that no traffic brings, before it; not where faults are injected
    mode: Mode = "answer"  # "light": the chip drives the lamps, too; "alone": it also senses
    monitor: bool = False  # a second chip watches the lamps
    pedestrians: float = 0.0  # who press each crosswalk's button in an hour; 0: no crosswalks
    max_green_s: float = LIGHT_RULES.max_green_s  # in modes light and alone, while somebody in conflict waits
    longest_red_s: float = LIGHT_RULES.longest_red_s  # who has waited so long is served next
    detector_faults: DetectorFaultSpec | None = None
    lamp_faults: tuple[LampFault, ...] = ()
    firmware_flags: tuple[str, ...] = ()  # extra compiler flags: tests use them to see verdicts fail

    @property
    def board_names(self) -> list[str]:
        return self.board.split(",") if self.boards == "per-intersection" else [self.board]

    def __post_init__(self) -> None:
        require_possible(self.f_cpu_hz, self.baud, self.budget_s)
        require_kernel(self.kernel, self.board == "host")
        require_engine(self.engine)
        if self.clearance is not None:
            require_clearance(self.clearance)
        if self.boards not in BOARDS:
            raise FieldError("boards", f"unknown layout {self.boards!r}{or_else(self.boards, BOARDS)}")
        if "" in self.board_names:
            raise FieldError("board", f"{self.board!r} leaves a name empty")
        self._check_mode()

    def _check_mode(self) -> None:
        if self.mode not in MODES:
            raise FieldError("mode", f"unknown mode {self.mode!r}{or_else(self.mode, MODES)}")
        if not 0 <= self.pedestrians < math.inf:
            raise FieldError("pedestrians", f"must be 0 or more an hour, is {self.pedestrians:g}")
        for limit, value in (("max_green_s", self.max_green_s), ("longest_red_s", self.longest_red_s)):
            if not 10 <= value <= LONGEST_S:
                raise FieldError(limit, f"must be 10 to {LONGEST_S} s, is {value:g}")
        asked = {
            "monitor": self.monitor,
            "pedestrians": self.pedestrians,
            "detector_faults": self.detector_faults,
            "lamp_faults": self.lamp_faults,
        }
        if self.mode == "answer" and (field := next((name for name, value in asked.items() if value), None)):
            raise FieldError(field, "needs a chip that drives lamps: mode light or alone")
        if self.mode == "light" and self.detector_faults is not None:
            raise FieldError("detector_faults", "needs a chip that senses: mode alone")
        if self.mode == "answer":
            if self.faults is not None and (kind := next((e.kind for e in self.faults.script if e.kind in LIGHT_FAULTS), "")):
                raise FieldError("faults", f"{kind!r} needs a chip that drives lamps: mode light or alone")
            return
        if self.board != "simavr":
            raise FieldError("board", f"{self.board}'s pins can't be seen; mode {self.mode} runs on the board simavr")
        if self.engine == "cityflow":
            why = "the engines 'builtin' and 'sumo' alone tell them"
            raise FieldError("engine", f"mode {self.mode} follows single vehicles: {why}")
        if self.faults is not None and (fault := self.faults.unfit_for_lamps):
            raise FieldError("faults", f"{fault}, which mode {self.mode} doesn't have: name a second for each, such as hang@60")
        if self.min_green_s or self.clearance not in (None, "computed"):
            field = "min_green_s" if self.min_green_s else "clearance"
            raise FieldError(field, f"in mode {self.mode} the signal plan of each crossing has its own: computed")
