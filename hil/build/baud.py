"""What an ATmega328P's UART makes of a baud rate: it divides its clock by a whole number, so it only comes close.

The same choice as firmware/include/hardware.h makes while compiling; a test holds the two together.
"""

from typing import NamedTuple

from streetflow.errors import FieldError

LIMIT = 0.025  # half of what 8N1 tolerates between both ends; the firmware refuses to be compiled with a larger error
EXCEPTION = (8_000_000, 115_200)  # -3.5 %: widely used, and it works where the other end's clock is exact; the build says so
DIVISOR_MAX = 4095  # UBRR has 12 bits
BAUD_RANGE = (1200, 2_000_000)  # slower: a decision takes a second or more; faster: no receiver keeps up
CLOCK_RANGE_HZ = (1_000_000, 20_000_000)  # 20 MHz is the ATmega328P's own limit


class BaudSetting(NamedTuple):
    """UBRR and U2X for a rate, and what comes out of them."""

    ubrr: int
    u2x: bool  # the divider by 8 instead of 16
    actual_baud: float  # bits per second
    error: float  # actual / wanted - 1


def divisor(f_cpu_hz: int, baud: int) -> BaudSetting:
    """The setting that comes nearest; the divider by 16 where both are as near, since it samples more often.
    FieldError if clock or rate lie outside of their range, or none comes within 2.5 %, which only 115200 at 8 MHz may miss."""
    for field, value, (least, most), unit in (
        ("f_cpu_hz", f_cpu_hz, CLOCK_RANGE_HZ, " Hz"),
        ("baud", baud, BAUD_RANGE, ""),
    ):
        if not least <= value <= most:
            raise FieldError(field, f"{value}{unit} is outside of {least} to {most}{unit}")
    settings = [
        BaudSetting(ubrr, factor == 8, f_cpu_hz / (factor * (ubrr + 1)), _error_ppm(f_cpu_hz, baud, factor, ubrr) / 1e6)
        for factor in (16, 8)
        if 0 <= (ubrr := (f_cpu_hz + factor // 2 * baud) // (factor * baud) - 1) <= DIVISOR_MAX
    ]
    if not settings:
        raise FieldError("baud", f"{baud} is out of reach for a UART at {f_cpu_hz} Hz")
    best = min(settings, key=lambda setting: abs(setting.error))
    if abs(best.error) > LIMIT and (f_cpu_hz, baud) != EXCEPTION:
        fault = f"{baud} at {f_cpu_hz} Hz: the nearest is {best.actual_baud:.0f}, off by {100 * best.error:+.1f} %"
        raise FieldError("baud", fault + f" (limit {100 * LIMIT:g} %)")
    return best


def _error_ppm(f_cpu_hz: int, baud: int, factor: int, ubrr: int) -> int:
    """Parts per million, in the whole numbers that the C preprocessor has."""
    return f_cpu_hz * 1_000_000 // (factor * (ubrr + 1)) // baud - 1_000_000
