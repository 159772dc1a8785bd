"""Latency figures of a run: median, 99th percentile and maximum, by nearest rank, so that each is a value that was measured."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hil.wire.protocol import CRC_BYTES, DECIDE_REPLY_BYTES, HEADER_BYTES
from model.policy.file import IntersectionPolicy, Policy

FRAME_BYTES = 1 + HEADER_BYTES + CRC_BYTES + 1  # beside the payload: COBS code and delimiter are one each
PACKED_HEAD_BYTES = 3  # of a request with packed values: flags, count, base
BITS_PER_BYTE = 10  # 8N1
# Of portable C, the slowest kernel; an input's cycles are those of its bytes in the request. The sum exceeds any policy's.
CYCLES_PER_PRODUCT, CYCLES_PER_ROW, CYCLES_PER_INPUT, OTHER_CYCLES = 24, 110, 400, 4_000


@dataclass(frozen=True)
class LatencyStats:
    """Figures of one series (microseconds, or cycles), with the number of values behind them."""

    count: int
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "LatencyStats":
        """Of at least one value; ValueError for none: an empty run has no latency."""
        if not values:
            raise ValueError("no values, so no latency figures")
        return cls(len(values), nearest_rank(values, 50), nearest_rank(values, 99), max(values))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed."""
    if not 0 < percent <= 100:
        raise ValueError(f"a percentile lies in (0, 100], not {percent}")
    ordered = sorted(values)
    return ordered[math.ceil(percent * len(ordered) / 100) - 1]


def line_time_us(policy: Policy, baud: int) -> float:
    """Wire time of the largest intersection's request, half a byte a value, and its reply, nothing else: none can be faster."""
    inputs = max(part.n_inputs for part in policy.intersections)
    longest = 2 * FRAME_BYTES + PACKED_HEAD_BYTES + (inputs + 1) // 2 + DECIDE_REPLY_BYTES
    return longest * BITS_PER_BYTE * 1e6 / baud


def most_decision_cycles(policy: Policy) -> int:
    """Most cycles that a decision of the largest intersection can take, with any kernel, request and reply included."""
    return max(_most_cycles(part) for part in policy.intersections)


def _most_cycles(part: IntersectionPolicy) -> int:
    hidden1, hidden2 = part.hidden
    actions = len(part.phases)
    products = part.n_inputs * hidden1 + hidden1 * hidden2 + hidden2 * actions
    rows = len(part.features) * hidden1 + hidden2 + actions
    return CYCLES_PER_PRODUCT * products + CYCLES_PER_ROW * rows + CYCLES_PER_INPUT * part.n_inputs + OTHER_CYCLES
