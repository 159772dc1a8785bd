"""What a board does when it is reset, hangs, or its flash is damaged, and what it does in between: part of `conduct`
(hil/loop/conduct.py)."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from hil.loop.asking import Asker, not_refused
from hil.wire.protocol import FLASH_SOUND, WATCHDOG_ON, ErrorCode, Frame, MessageType, encode_frame

WATCHDOG_US = (700_000, 1_400_000)  # from a hang to the first answer; the chip's own oscillator is off by up to a tenth
RESET_PIN, WATCHDOG = 0x02, 0x08  # causes, as in MCUSR
BOOTS_MAX = 255  # where HELLO's count stops

REST_US = 50_000
LEAST_ASLEEP = 0.98  # of a rest
MODULES_OFF = 0xC5  # two-wire, Timer 2, SPI, ADC
LOOK_US = 50  # into a decision's computing

Point = Callable[[], list[str]]


@runtime_checkable
class Upsettable(Protocol):
    """A board whose program can be made to hang, and whose flash can be damaged and mended."""

    def hang(self) -> None: ...
    def damage_flash(self) -> None: ...
    def mend_flash(self) -> None: ...


def upsets(asker: Asker, decide: bytes, *, watchdog: bool) -> list[tuple[str, Point | None]]:
    """Points and their trials; None where the board doesn't allow it. `decide`: the payload of a sound request; `watchdog`:
    whether the firmware is built with it."""
    greeting, board = asker.link.greeting, asker.board
    tells = greeting is not None and bool(greeting.f_cpu_hz) and greeting.conditions is not None
    trial = _Upset(asker, decide, FLASH_SOUND | (WATCHDOG_ON if watchdog else 0) if tells else None)
    exact, upsettable = board.clock == "cycles", board if isinstance(board, Upsettable) else None
    return [
        ("the LED shows a decision", trial.led if exact and board.led() is not None else None),
        ("it sleeps between requests", trial.sleep if exact and board.activity() is not None else None),
        ("watchdog and flash check are on", trial.conditions if tells else None),
        ("no decision without a session", trial.session if exact else None),
        ("the watchdog ends a hang", partial(trial.hang, upsettable) if upsettable and watchdog else None),
        ("a damaged flash decides nothing", partial(trial.damaged_flash, upsettable) if upsettable else None),
    ]


class _Upset:
    """Trials on one board; `conditions` are those that HELLO should tell, None if this firmware tells none."""

    def __init__(self, asker: Asker, decide: bytes, conditions: int | None) -> None:
        self._asker, self._board, self._decide, self._right = asker, asker.board, decide, conditions

    def conditions(self) -> list[str]:
        told = self._asker.hello().conditions
        if self._right is None or told is None or told == self._right:
            return []
        watchdog, flash = ("on" if told & bit else "off" for bit in (WATCHDOG_ON, FLASH_SOUND))
        return [f"HELLO tells: watchdog {watchdog}, flash check {flash} (0x{told:02X}, where 0x{self._right:02X} is right)"]

    def led(self) -> list[str]:
        """Lit while the chip computes, and dark before and after."""
        board, request = self._board, encode_frame(self._request())
        shown = [board.led()]
        board.drain()
        board.write(request)
        board.read(board.timing().request_end_us + LOOK_US)
        shown.append(board.led())
        board.read(board.now_us() + REST_US)  # the reply
        shown.append(board.led())
        return [] if shown == [False, True, False] else [f"lit before, in and after a decision: {shown}"]

    def sleep(self) -> list[str]:
        board = self._board
        board.drain()
        before = board.activity()
        board.read(board.now_us() + REST_US)
        after = board.activity()
        assert before is not None and after is not None
        asleep = (after.asleep_cycles - before.asleep_cycles) / max(1, after.cycles - before.cycles)
        faults = [] if asleep >= LEAST_ASLEEP else [f"asleep for {asleep:.0%} of a rest, where {LEAST_ASLEEP:.0%} are right"]
        if after.power_reduction != MODULES_OFF:
            faults.append(
                f"PRR is 0x{after.power_reduction:02X}, where 0x{MODULES_OFF:02X} is right: modules that nothing uses run"
            )
        return faults

    def session(self) -> list[str]:
        """After a reset the chip decides nothing until it is greeted."""
        boots = self._asker.hello().boot_count
        self._board.reset()
        return self._starts_anew(boots, RESET_PIN, self._board.boot_us)

    def hang(self, board: Upsettable) -> list[str]:
        boots, hung_us = self._asker.hello().boot_count, self._board.now_us()
        board.hang()
        return self._starts_anew(boots, WATCHDOG, 2 * WATCHDOG_US[1], hung_us)

    def damaged_flash(self, board: Upsettable) -> list[str]:
        board.damage_flash()
        self._board.reset()
        try:
            answer = self._asker.ask_until_up(self._request(), self._board.boot_us)
            faults, told = not_refused(answer, (ErrorCode.FLASH_CORRUPT, 0)), self._asker.hello().conditions
        finally:
            board.mend_flash()
            self._board.reset()
        if told:
            faults.append(f"HELLO tells conditions 0x{told:02X} nevertheless")
        self._asker.ask_until_up(self._request(), self._board.boot_us)
        return faults + self.conditions()

    def _starts_anew(self, boots: int, cause: int, patience_us: float, hung_us: float | None = None) -> list[str]:
        """What is wrong with the first answer after a restart, and with the HELLO after that. `hung_us`: since when it hung."""
        answer = self._asker.ask_until_up(self._request(), patience_us)
        faults = not_refused(answer, (ErrorCode.NO_SESSION, cause))
        took_us = self._board.now_us() - hung_us if hung_us is not None else WATCHDOG_US[0]
        if not WATCHDOG_US[0] <= took_us <= WATCHDOG_US[1]:
            least_s, most_s = (limit / 1e6 for limit in WATCHDOG_US)
            faults.append(f"it lasted {took_us / 1e6:.2f} s, where {least_s:g} to {most_s:g} are right")
        hello = self._asker.hello()
        if (hello.boot_count, hello.reset_cause) != (min(boots + 1, BOOTS_MAX), cause):
            told = f"boot {hello.boot_count} and reset cause {hello.reset_cause}"
            faults.append(f"HELLO tells {told}, where {boots + 1} and {cause} are right")
        return faults

    def _request(self) -> Frame:
        return self._asker.frame(MessageType.DECIDE, self._decide)
