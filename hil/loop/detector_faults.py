"""Faults of loop detectors, as one line of text: `--detector-faults dead:10%,seed=7`.

KIND:SHARE hits that share of all loops, drawn by the seed (0 unless given):
  miss     every third occupation, at random, isn't seen
  double   every third occupation, at random, is seen as two
  stuck    occupied for good
  dead     free for good
  chatter  its level turns over ten times a second while it is free, for 5 s of every 20
A loop has one fault at most, so the shares must not add up to more than 100 %.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hil.loop.edges import Edge
from streetflow.errors import FieldError
from streetflow.near import did_you_mean

KINDS = ("miss", "double", "stuck", "dead", "chatter")
FIELD = "detector_faults"  # of a Job
HIT = 1 / 3  # of the occupations of a loop that misses or doubles
GAP_S = 0.05  # in the middle of one that is doubled
CHATTER_S, CHATTER_EVERY_S, CHATTER_STEP_S = 5, 20, 0.1


@dataclass(frozen=True)
class DetectorFaultSpec:
    """Shares of the loops by kind, and the seed."""

    shares: dict[str, float]
    seed: int = 0
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> DetectorFaultSpec:
        """FieldError naming the invalid part."""
        shares: dict[str, float] = {}
        seed = 0
        for part in (piece.strip() for piece in text.split(",")):
            kind, _, share = part.partition(":")
            name, _, value = part.partition("=")
            if name == "seed" and value.isdecimal() and len(value) < 19:
                seed = int(value)
            elif kind in shares:
                raise FieldError(FIELD, f"{part!r}: {kind} is there already")
            elif kind in KINDS:
                shares[kind] = _share(part, share)
            else:
                known = ", ".join(f"{each}:SHARE" for each in KINDS)
                raise FieldError(FIELD, f"{part!r} is not a fault{did_you_mean(kind, KINDS)}; there are {known}, seed=K")
        if sum(shares.values()) > 1:
            raise FieldError(FIELD, f"the shares of {', '.join(shares)} add up to more than 100 %")
        return cls(shares, seed, text)

    def draw(self, loops: int) -> dict[int, str]:
        """Which of so many loops have which fault: as many of each kind as its share makes, rounded."""
        order = list(range(loops))
        random.Random(self.seed).shuffle(order)
        found: dict[int, str] = {}
        for kind, share in self.shares.items():
            for _ in range(min(round(share * loops), len(order))):
                found[order.pop()] = kind
        return found


class FaultyLoops:
    """What the wires of loops show, of which some are faulty. ``levels``: what they show now."""

    def __init__(self, spec: DetectorFaultSpec | None, loops: int) -> None:
        self.faults = spec.draw(loops) if spec is not None else {}
        self.levels = [0] * loops
        self._random = random.Random(spec.seed + 1 if spec is not None else 0)
        self._true = [0] * loops
        self._unseen: set[int] = set()  # whose occupation now is missed

    def step(self, second: int, edges: Sequence[Edge]) -> list[Edge]:
        """What the wires show in place of these edges of one second, in the order of time."""
        wanted: list[Edge] = []
        for edge in edges:
            self._true[edge.loop] = edge.level
            kind = self.faults.get(edge.loop)
            if kind == "miss":
                wanted += self._missed(edge)
            elif kind == "double":
                wanted += self._doubled(edge)
            elif kind != "dead" and kind != "stuck":
                wanted.append(edge)
        for loop, kind in self.faults.items():
            if kind == "stuck":
                wanted.append(Edge(0.0, loop, 1))
            elif kind == "chatter" and second % CHATTER_EVERY_S < CHATTER_S and not self._true[loop]:
                wanted += [Edge(n * CHATTER_STEP_S, loop, n % 2) for n in range(1, 10)] + [Edge(0.999, loop, 0)]
        return self._changes(sorted(wanted))

    def _missed(self, edge: Edge) -> list[Edge]:
        if edge.level and self._random.random() < HIT:
            self._unseen.add(edge.loop)
        if edge.loop not in self._unseen:
            return [edge]
        if not edge.level:
            self._unseen.discard(edge.loop)
        return []

    def _doubled(self, edge: Edge) -> list[Edge]:
        if not edge.level or self._random.random() >= HIT:
            return [edge]
        gap_s = edge.at_s + GAP_S
        return [edge, Edge(gap_s, edge.loop, 0), Edge(gap_s + GAP_S, edge.loop, 1)]

    def _changes(self, edges: Sequence[Edge]) -> list[Edge]:
        """Those that change a level. A free loop that ends up occupied by a doubling that came too late is freed again."""
        found = []
        for edge in edges:
            if self.levels[edge.loop] != edge.level:
                self.levels[edge.loop] = edge.level
                found.append(edge)
        for loop, kind in self.faults.items():
            if kind == "double" and self.levels[loop] and not self._true[loop]:
                self.levels[loop] = 0
                found.append(Edge(max(1.0, found[-1].at_s if found else 1.0), loop, 0))
        return found


def _share(part: str, text: str) -> float:
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise FieldError(FIELD, f"{part!r} needs a share of the loops, from 0 to 100 %")
    return share
