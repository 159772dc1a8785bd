"""How a firmware must have been built, so that what is computed from its settings (latencies, the minimum green) is true."""

import math
from dataclasses import dataclass

from hil.build.baud import BAUD_RANGE, CLOCK_RANGE_HZ
from hil.build.firmware import KERNELS
from hil.wire.protocol import HelloReply
from streetflow.errors import FieldError


def require_possible(f_cpu_hz: int, baud: int, budget_s: float = 1.0) -> None:
    """FieldError for a clock, a line rate or a time budget that no board has."""
    for field, value, (least, most), unit in (
        ("f_cpu_hz", f_cpu_hz, CLOCK_RANGE_HZ, "Hz"),
        ("baud", baud, BAUD_RANGE, "baud"),
    ):
        if not least <= value <= most:
            raise FieldError(field, f"{value} {unit} is out of range: {least} to {most}")
    if not 0 < budget_s < math.inf:
        raise FieldError("budget_s", f"{budget_s} s is not a possible time for a decision: it must be above 0 and finite")


def kernel_name(greeting: HelloReply) -> str:
    """Which kernel runs: one of hil.build.firmware.KERNELS, or its number where that is unknown."""
    return KERNELS[greeting.kernel] if greeting.kernel < len(KERNELS) else str(greeting.kernel)


@dataclass(frozen=True)
class Setting:
    """What HELLO must report of the firmware beside its policy. None: any value will do."""

    f_cpu_hz: int | None = None
    baud: int | None = None
    kernel: str | None = None  # one of hil.build.firmware.KERNELS
    min_green_s: int | None = None

    def differences(self, greeting: HelloReply) -> list[str]:
        """Each setting that differs in the firmware, with both values and, in backticks, the field of `hil.loop.job.Job`. The
        host build has neither clock nor line (HELLO reports 0), and only one kernel."""
        compared: list[tuple[str, object, object, str, str]] = []
        if greeting.f_cpu_hz:
            compared += [
                ("clock", greeting.f_cpu_hz, self.f_cpu_hz, " Hz", "f_cpu_hz"),
                ("line rate", greeting.baud, self.baud, " baud", "baud"),
                ("kernel", kernel_name(greeting), self.kernel, "", "kernel"),
            ]
        compared.append(("minimum green", greeting.min_green_s, self.min_green_s, " s", "min_green_s"))
        return [
            f"its {what} is {reported}{unit}, not {expected}{unit} (`{field}`)"
            for what, reported, expected, unit, field in compared
            if expected not in (None, reported)
        ]
