"""The faults to inject, as one line of text: `--faults bytes=0.05,reset@20,silence@60:2,seed=7`.

At random, with probability P per byte:
  drop=P, flip=P, double=P     lost; some of its bits changed; sent twice
  delay=P, cut=P               held up for 5 ms, with all that follows; lost with all that follows
  bytes=P                      drop, flip and double, a third of it each
At random, with probability P per request:
  reset=P, brownout=P, hang=P  the chip's reset pin; its supply dips; its program hangs until the watchdog resets it
By script, while request N is in transit (HELLO is the first, retries count):
  reset@N, brownout@N, hang@N  as above
  silence@N:SECONDS            nothing passes the line, in either direction
  swap@N:FILE                  another firmware (ELF) is on the chip from then on
seed=K sets the random numbers (0 unless given): the same faults again on a deterministic board.
In the modes light and alone all is by script, N is the second of the traffic, at every crossing, and there are also
  power@N                      the chip's power goes and comes
  weight@N, policy@N, flash@N  one weight of the network, all of them, or a bit elsewhere in the flash has changed from then on
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

from streetflow.errors import FieldError
from streetflow.near import did_you_mean

BYTE_FAULTS = ("drop", "flip", "double", "delay", "cut")
CHIP_FAULTS = ("reset", "brownout", "hang")
DAMAGE = ("weight", "policy", "flash")  # of the flash, which the chip finds at its next start
LIGHT_FAULTS = ("power", *DAMAGE)  # only in modes light and alone
SCRIPTED = (*CHIP_FAULTS, "silence", "swap", *LIGHT_FAULTS)
SHORTHAND = {"bytes": ("drop", "flip", "double")}
KINDS = (*SHORTHAND, *BYTE_FAULTS, *CHIP_FAULTS)  # at random
FIELD = "faults"  # of a Job
MAX_DIGITS = 18  # of a count


@dataclass(frozen=True)
class Event:
    """One scripted fault; `argument` is seconds of silence, or the other firmware's file. In modes light and alone `request` is
    the second of the traffic."""

    kind: str
    request: int
    argument: str = ""


@dataclass(frozen=True)
class FaultSpec:
    """Probabilities by kind, the script in order of requests, and the seed."""

    rates: dict[str, float] = field(default_factory=dict)
    script: tuple[Event, ...] = ()
    seed: int = 0
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> "FaultSpec":
        """FieldError naming the invalid part."""
        rates: dict[str, float] = {}
        script: list[Event] = []
        seed = 0
        for part in (piece.strip() for piece in text.split(",")):
            name, equals, value = part.partition("=")
            if "@" in name:
                script.append(_event(part))
            elif name == "seed" and _is_count(value):
                seed = int(value)
            elif equals and name in KINDS:
                names = SHORTHAND.get(name, (name,))
                for each in names:
                    rates[each] = rates.get(each, 0.0) + _probability(part, value) / len(names)
            else:
                raise FieldError(FIELD, f"{part!r} is not a fault{did_you_mean(name, KINDS)}; there are {_known()}")
        for kinds in (BYTE_FAULTS, CHIP_FAULTS):
            if sum(rates.get(kind, 0.0) for kind in kinds) > 1:
                raise FieldError(FIELD, f"the probabilities of {', '.join(kinds)} add up to more than 1")
        return cls(rates, tuple(sorted(script, key=lambda event: event.request)), seed, text)

    @property
    def unfit_for_lamps(self) -> str:
        """What of it a chip that drives lamps can't be given; "" for nothing."""
        if self.rates:
            return f"{next(iter(self.rates))!r} strikes requests at random"
        return "'swap' puts another firmware on the chip" if any(event.kind == "swap" for event in self.script) else ""


def _event(part: str) -> Event:
    kind, _, rest = part.partition("@")
    request, _, argument = rest.partition(":")
    if kind not in SCRIPTED or not _is_count(request) or int(request) == 0:
        raise FieldError(FIELD, f"{part!r} is not a valid event{did_you_mean(kind, SCRIPTED)}; there are {_known()}")
    if kind == "silence" and not _positive(argument):
        raise FieldError(FIELD, f"{part!r} needs its length in seconds, such as silence@{request}:2")
    if kind == "swap" and not Path(argument).is_file():
        raise FieldError(FIELD, f"{part!r} needs the other firmware's ELF file")
    if kind in (*CHIP_FAULTS, *LIGHT_FAULTS) and argument:
        raise FieldError(FIELD, f"{part!r}: {kind} takes nothing after the request's number")
    return Event(kind, int(request), argument)


def _probability(part: str, value: str) -> float:
    try:
        probability = float(value)
    except ValueError:
        probability = -1.0
    if not 0 <= probability <= 1:
        raise FieldError(FIELD, f"{part!r} needs a probability from 0 to 1")
    return probability


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= MAX_DIGITS


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _known() -> str:
    rates = [f"{name}=P" for name in KINDS]
    return ", ".join(
        [*rates, *(f"{name}@N" for name in (*CHIP_FAULTS, *LIGHT_FAULTS)), "silence@N:SECONDS", "swap@N:FILE", "seed=K"]
    )
