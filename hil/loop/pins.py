"""The wave form of a run's pins, as a file."""

from pathlib import Path

from hil.boards import Board, SimavrBoard
from hil.boards.waves import vcd
from hil.build.firmware import Firmware
from hil.build.footprint import Footprint
from hil.loop.job import Job
from hil.loop.job_settings import JobSettings
from streetflow.errors import FieldError
from streetflow.files import write_whole


def require_pins(settings: JobSettings) -> None:
    """FieldError unless the run will have pins that can be seen."""
    if settings.board != "simavr":
        raise FieldError("vcd", f"{settings.board}'s pins can't be seen, only those of the board simavr")
    if settings.boards != "one":
        raise FieldError("vcd", "one file holds one chip's pins, and there is one for each intersection")


class PinTrace:
    """Called with a job's board (`around` of `run_job`), it notes what happens at its pins from there on."""

    def __init__(self) -> None:
        self.board: SimavrBoard | None = None

    def __call__(self, board: Board, firmware: Firmware, footprint: Footprint | None) -> Board:
        assert isinstance(board, SimavrBoard)
        board.trace()
        self.board = board
        return board

    def write(self, job: Job, file: Path) -> bool:
        """The file; False, and nothing written, where no board was opened."""
        if self.board is None:
            return False
        comment = f"{job.network.name}, flow {job.flow}, on {self.board.description}"
        write_whole(file, vcd(self.board.traced(), job.f_cpu_hz, comment))
        return True
