"""One crossing of the closed loop: its chips on the bench, and what of the simulated traffic reaches them and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from hil.boards.bench import Change, CrossingBench, Given, Into, Seen
from hil.light.chip_faults import RESTARTS, ChipFaults
from hil.light.lamps import GREEN, YELLOW, LampJudge, is_flashing, lamps_of
from hil.light.pedestrians import PRESS_S, Pedestrians
from hil.loop.detector_faults import DetectorFaultSpec, FaultyLoops
from hil.loop.edges import Edge
from hil.loop.fault_spec import FaultSpec
from hil.loop.lamp_faults import LampFault
from hil.wire.events import DECISION, EVENT, Decision, Event, decode_unasked
from hil.wire.protocol import FrameError, FrameSplitter, decode_frame
from streetflow.control.signal_groups import SignalPlan

START_S = 11.0  # flashing and all red, after a reset
START_PATIENCE_S = 3.0  # for a firmware that checks its flash first, and is late
BEFORE_S, STEP_S = 10.0, 0.02


class NoStartError(Exception):
    """The lamps of a crossing didn't come to a first green."""


@dataclass
class Told:
    """What the chip has told unasked. `lost`: frames whose number says that one was lost before."""

    events: list[Event] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    damaged: int = 0
    lost: int = 0


@dataclass(frozen=True)
class Trip:
    """The monitor has let its relay go, so long after the traffic's beginning."""

    at_s: float
    reason: int
    group: int


class Crossing:
    """`number`: among the signalled crossings of the network. `lanes`: those with loops, in the order of their lines."""

    def __init__(self, number: int, plan: SignalPlan, lanes: Sequence[int], bench: CrossingBench) -> None:
        self.number, self.plan, self.lanes, self.bench = number, plan, tuple(lanes), bench
        self.judge, self.told = LampJudge(plan), Told()
        self.trips: list[Trip] = []  # when the relay opened, with the reason that the monitor's EEPROM holds in the end
        self.changes: list[Change] = []  # all since power-on
        self.keeps_all = False
        self.inputs: list[Given] = []
        self.lines, self.shown, self.walks = 0, 0, 0
        self.is_held = not bench.has_monitor  # by the monitor's relay: the street shows what the controller shows
        self.start_us = 0.0
        self.action = 0  # the one that was last shown in full
        self._actions = {frozenset(groups): action for action, groups in enumerate(plan.phases)}
        self._loops = FaultyLoops(None, 2 * len(lanes))
        self._pedestrians: Pedestrians | None = None
        self._splitter = FrameSplitter()
        self._sequence: int | None = None
        self._to_come: list[Given] = []
        self._opened_s: list[float] = []
        self.chip_faults = ChipFaults(bench)

    def disturb(self, detectors: DetectorFaultSpec | None, lamps: Sequence[LampFault], chip: FaultSpec | None = None) -> None:
        """From the traffic's beginning on: to be called after `start`."""
        self._loops = FaultyLoops(detectors, 2 * len(self.lanes))
        self._feed([given for fault in lamps for given in fault.inputs(self.start_us)])
        if chip is not None:
            self.chip_faults = ChipFaults(self.bench, chip.script, chip.seed)

    def let_walk(self, pedestrians: Pedestrians) -> None:
        self._pedestrians = pedestrians

    @property
    def pedestrians(self) -> Pedestrians | None:
        return self._pedestrians

    def start(self) -> None:
        """Runs the chips until phase 0 begins: that is the traffic's second 0. NoStartError if it doesn't."""
        if self.keeps_all:
            self.bench.tells_heartbeats = True
            self.bench.trace_line()
        self._take(self.bench.run(BEFORE_S * 1e6), judged=False)
        limit_us = (START_S + START_PATIENCE_S) * 1e6
        while GREEN not in lamps_of(self.lines, len(self.plan.groups)):
            if self.bench.now_us() > limit_us:
                raise NoStartError(f"{self.plan.intersection}: no green {START_S + START_PATIENCE_S:g} s after power-on")
            found = self.bench.run(self.bench.now_us() + STEP_S * 1e6)
            self._take(found, judged=False)
        begins = next(change for change in reversed(found) if change.what == Seen.LAMPS)
        self.start_us = begins.time_us
        self.judge.change(begins.time_us, begins.value)
        self.listen()

    def run(self, time_s: float) -> None:
        """Until so long after the traffic's beginning."""
        while self.chip_faults.next_s <= time_s:
            self._run(self.chip_faults.next_s)
            strike = self.chip_faults.strike()
            if strike.kind in RESTARTS:
                self.judge.restart(strike.at_us)
                self._sequence = None
                self._splitter.clear()
        self._run(time_s)

    def _run(self, time_s: float) -> None:
        until_us = self.start_us + time_s * 1e6
        self._feed_until(until_us)
        self._take(self.bench.run(until_us), judged=True)
        self.listen()

    def sense(self, second: int, edges: Sequence[Edge], begin_s: float) -> None:
        """What passes the loops in this second of the engine, which begins at `begin_s` of the traffic; and who presses."""
        begin_us = self.start_us + begin_s * 1e6
        given = [
            Given(begin_us + edge.at_s * 1e6, Into.DETECTOR, edge.loop, edge.level) for edge in self._loops.step(second, edges)
        ]
        if self._pedestrians is not None:
            for at_s, group in self._pedestrians.step(second):
                line, press_us = 2 * len(self.lanes) + group, begin_us + at_s * 1e6
                given += [Given(press_us, Into.DETECTOR, line), Given(press_us + PRESS_S * 1e6, Into.DETECTOR, line, 0)]
        self._feed(given)

    @property
    def open_groups(self) -> tuple[int, ...]:
        """Whose vehicles may go: green at the lamps, unless the crossing flashes."""
        return _groups_that(GREEN, self.shown, len(self.plan.groups)) if self.is_held else ()

    @property
    def open_road_links(self) -> frozenset[int]:
        return self._road_links(self.open_groups)

    @property
    def yellow_road_links(self) -> frozenset[int]:
        return self._road_links(_groups_that(YELLOW, self.shown, len(self.plan.groups)) if self.is_held else ())

    def _road_links(self, groups: Sequence[int]) -> frozenset[int]:
        return frozenset(link for group in groups for link in self.plan.groups[group].road_links)

    def listen(self) -> None:
        """Takes in what the chip has sent unasked."""
        for raw in self._splitter.feed(self.bench.received()):
            try:
                frame = decode_frame(raw)
                if frame.type not in (EVENT, DECISION):
                    continue
                found = decode_unasked(frame)
            except FrameError:
                self.told.damaged += 1
                continue
            if self._sequence is not None and frame.sequence != (self._sequence + 1) % 256:
                self.told.lost += 1
            self._sequence = frame.sequence
            if isinstance(found, Decision):
                self.told.decisions.append(found)
            else:
                self.told.events += found

    def _feed(self, given: list[Given]) -> None:
        self._to_come = sorted([*self._to_come, *given])
        if self.keeps_all:
            self.inputs += given

    def _feed_until(self, time_us: float) -> None:
        due = sum(given.time_us <= time_us for given in self._to_come)
        self.bench.feed(self._to_come[:due])
        self._to_come = self._to_come[due:]

    def _take(self, changes: Sequence[Change], *, judged: bool) -> None:
        for change in changes:
            if change.what == Seen.LAMPS:
                self.lines = change.value
                if judged:
                    self.judge.change(change.time_us, change.value)
            elif change.what == Seen.SHOWN:
                self.shown = change.value
            elif change.what == Seen.RELAY:
                self._relay(change)
            elif change.what == Seen.WALKS:
                self._walk(change)
        self.changes += changes
        if not changes:
            return
        if (action := self._actions.get(frozenset(self.open_groups))) is not None:
            self.action = action

    def _relay(self, change: Change) -> None:
        self.is_held = bool(change.value)
        if not change.value:
            self._opened_s.append((change.time_us - self.start_us) / 1e6)

    def finish(self) -> None:
        """To be called while the chips are still there: what they hold at the end."""
        self.trips = [Trip(at_s, *self.bench.monitor_eeprom()[:2]) for at_s in self._opened_s]

    def _walk(self, change: Change) -> None:
        begun = [group for group in range(len(self.plan.groups)) if (change.value & ~self.walks) >> 2 * group & 1]
        self.walks = change.value
        if self._pedestrians is not None and begun:
            self._pedestrians.walk((change.time_us - self.start_us) / 1e6, begun)


@lru_cache
def _groups_that(show: str, shown: int, groups: int) -> tuple[int, ...]:
    lamps = lamps_of(shown, groups)
    return () if is_flashing(lamps) else tuple(group for group, lamp in enumerate(lamps) if lamp == show)
