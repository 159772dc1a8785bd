"""An Arduino Uno for any serial program: the emulated chip with its bootloader, on a pseudo-terminal, in real time.

What an Uno does when its port is opened happens here too: it resets (unless HUPCL was off at the last close), the bootloader
listens for a second, then the program in flash starts. The line runs at the rate to which the port is set, so a wrong baud rate
gives the same garbage as on a real board. What is flashed stays until this process ends.

One deviation: optiboot doesn't listen for its first 0.4 s, while it blinks. With a real board avrdude then tries again with
another reset through DTR; a pseudo-terminal has no DTR, so here that time is skipped before any sent byte reaches the chip.
"""

import time
from collections.abc import Callable

from hil.boards.faults import BoardDied
from hil.boards.pseudo_terminal import PseudoTerminal
from hil.boards.simavr import SimavrBoard

DEAF_US = 400_000  # optiboot's three blinks take 6 * 62.5 ms
SLICE_US = 2_000  # the chip runs at most so far ahead before the port is looked at again
LAG_LIMIT_US = 20_000  # after a longer stall of this process the chip's clock skips the gap instead of catching up
TAKE_BYTES = 64  # read from the port at a time, while the line is free; the rest waits on the writer's side
BUSY_WAIT_S, IDLE_WAIT_S = 0.0005, 0.005
BUSY_US = 50_000  # how long after the last byte the line counts as busy

Report = Callable[[str], None]


class EmulatedUno:
    """Ties an open `SimavrBoard` to a pseudo-terminal and to the machine's clock. `report` gets each event as text."""

    def __init__(self, chip: SimavrBoard, port: PseudoTerminal, report: Report = lambda text: None) -> None:
        self.chip = chip
        self.port = port
        self.resets = 0
        self._report = report
        self._dead = False
        self._dtr_is_up = False
        self._last_byte_us = 0.0
        self._chip_ahead_us = 0.0  # chip's clock less the machine's
        self._stop = False
        self._synchronise()

    def run(self) -> None:
        """Runs until `stop` is called (from another thread or a signal handler)."""
        while not self._stop:
            self.turn()

    def stop(self) -> None:
        self._stop = True

    def turn(self) -> None:
        """One look at the port, and the chip brought up to now."""
        try:
            for change in self.port.changes():
                self._port_opened() if change == "opened" else self._port_closed()
            if self._dead:
                self.port.receive(TAKE_BYTES)  # a dead chip: the bytes are lost
            else:
                self._pass_on_requests()
                self._catch_up()
        except BoardDied as death:
            self._dead = True
            self._report(f"{death}; it stays dead until the port is opened again")
        busy = not self._dead and self.chip.now_us() - self._last_byte_us < BUSY_US
        self.port.wait(BUSY_WAIT_S if busy else IDLE_WAIT_S)

    def _port_opened(self) -> None:
        was_up, self._dtr_is_up = self._dtr_is_up, True
        if was_up:
            self._report("port opened; no reset, since DTR was left up (HUPCL is off)")
        else:
            self.resets += 1
            self._dead = False
            self.chip.reset()
            self._run_to(self.chip.now_us() + DEAF_US)
            self._synchronise()
            self._report("port opened: reset")

    def _port_closed(self) -> None:
        self._dtr_is_up = not self.port.drops_dtr_on_close
        self._report("port closed")

    def _pass_on_requests(self) -> None:
        if self.chip.line_free_us > self.chip.now_us() + SLICE_US:
            return
        data = self.port.receive(TAKE_BYTES)
        if data:
            self.chip.set_line_rate(self.port.baud)
            self.chip.write(data)
            self._last_byte_us = self.chip.now_us()

    def _catch_up(self) -> None:
        """Runs the chip to the present, or a slice towards it; what it has sent by then goes to the port."""
        present_us = self._present_us()
        if present_us - self.chip.now_us() > LAG_LIMIT_US:
            self._synchronise()
            present_us = self.chip.now_us() + SLICE_US
        self._run_to(min(present_us, self.chip.now_us() + SLICE_US))

    def _run_to(self, target_us: float) -> None:
        while self.chip.now_us() < target_us:
            data = self.chip.read(target_us)
            if data:
                self._last_byte_us = self.chip.now_us()
                if self.port.is_open:
                    self.port.send(data)

    def _present_us(self) -> float:
        return time.monotonic_ns() / 1000 + self._chip_ahead_us

    def _synchronise(self) -> None:
        """Sets the chip's present to the machine's present."""
        self._chip_ahead_us = self.chip.now_us() - time.monotonic_ns() / 1000
