"""How a job is run, apart from what it runs: board, line, engine, limits. All is checked before any file is looked for."""

from dataclasses import dataclass

from hil.build.firmware import require_kernel
from hil.loop.fault_spec import FaultSpec
from hil.wire.expected_firmware import require_possible
from hil.wire.link import BUDGET_S
from streetflow.control.clearance import require_clearance
from streetflow.control.engines import require_engine
from streetflow.errors import FieldError
from streetflow.near import or_else

BOARDS = ("one", "per-intersection")


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
