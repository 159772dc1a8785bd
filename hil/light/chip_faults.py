"""Faults of a crossing's chip on purpose, each at its second of the traffic, and of the line to its host."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from hil.boards.bench import CrossingBench
from hil.loop.fault_spec import CHIP_FAULTS, DAMAGE, FIELD, Event
from streetflow.errors import FieldError

RESTARTS = (*CHIP_FAULTS, "power")
SELF, SELF_OFFSET = "firmware_self", 20  # what HELLO is answered from, within its hash
LINE_BACK = "line back"
WEIGHTS, CODE = "kernel_0", "infer_kernel"  # in the kernel `table` one run of bytes, before all code; else code, or elsewhere


class Strike(NamedTuple):
    """A fault at a second of the traffic. `at_us`: when it struck, on the chips' clock; NaN: not yet."""

    at_s: float
    kind: str
    lasts_s: float = 0.0  # a silence
    at_us: float = float("nan")


class ChipFaults:
    """Strikes one bench. `done`: what has been, in the order of time."""

    def __init__(self, bench: CrossingBench, script: Iterable[Event] = (), seed: int = 0) -> None:
        """FieldError for damage that this firmware has no place for."""
        strikes = [Strike(float(e.request), e.kind, float(e.argument or 0)) for e in script]
        strikes += [Strike(s.at_s + s.lasts_s, LINE_BACK) for s in strikes if s.kind == "silence"]
        weights, code = (bench.symbols.get(name, 0) if strikes else 0 for name in (WEIGHTS, CODE))
        if any(s.kind in ("weight", "policy") for s in strikes) and not 0 < weights < code:
            raise FieldError(
                FIELD, "weight and policy change data, and here the weights are code; the kernel table has them as data"
            )
        self._bench, self._random = bench, random.Random(seed)
        self._to_come = deque(sorted(strikes))
        self.done: list[Strike] = []

    @property
    def next_s(self) -> float:
        """When the next one strikes; infinite: never."""
        return self._to_come[0].at_s if self._to_come else float("inf")

    def strike(self) -> Strike:
        """The next one, now."""
        strike = self._to_come.popleft()._replace(at_us=self._bench.now_us())
        self.done.append(strike)
        noise = self._random.getrandbits(32)
        if strike.kind == "reset":
            self._bench.reset()
        elif strike.kind == "brownout":
            self._bench.brown_out(noise)
        elif strike.kind == "power":
            self._bench.power_cycle(noise)
        elif strike.kind == "hang":
            self._bench.hang()
        elif strike.kind in DAMAGE:
            self._damage(strike.kind)
        else:
            self._bench.line_is_cut = strike.kind == "silence"
        return strike

    @property
    def has_restarted(self) -> bool:
        return any(strike.kind in RESTARTS for strike in self.done)

    @property
    def is_damaged(self) -> bool:
        """Whether its network isn't the policy's any more."""
        return any(strike.kind in ("weight", "policy") for strike in self.done)

    def _damage(self, kind: str) -> None:
        if kind == "flash":
            self._bench.change_flash({self._bench.symbols[SELF] + SELF_OFFSET: 0x10})
            return
        begin = self._bench.symbols[WEIGHTS]
        end = min(address for address in self._bench.symbols.values() if address > begin)
        if kind == "weight":
            self._bench.change_flash({(begin + end) // 2: 0x40})
        else:
            self._bench.change_flash({place: self._random.randrange(1, 256) for place in range(begin, end)})
