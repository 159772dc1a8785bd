"""What a vehicle-actuated controller knows from the same loops as a chip at the lamps, faults included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.light.loops import ENTRY, Loops
from hil.loop.detector_faults import DetectorFaultSpec, FaultyLoops
from streetflow.control.environment import Environment
from streetflow.control.vehicle_actuated import LONG_AGO_S


class FeltLoops:
    """`Sensors` of one crossing: a lane's count is what has entered it less what has left, never below 0, and nothing more: no
    loop is suspected.

    Args:
        environment: at its beginning, on the built-in engine or SUMO.
        lanes: with loops, in the order of the chip's lines, so that the same loops are faulty.
        spec: the faults; None: there are none.
    """

    def __init__(self, environment: Environment, lanes: Sequence[int], spec: DetectorFaultSpec | None) -> None:
        order = sorted(lanes)
        self._loops = Loops(environment, order)
        self._line = [2 * list(lanes).index(lane) for lane in order]
        self._lanes, self._faulty = list(lanes), FaultyLoops(spec, 2 * len(lanes))
        self.counts = np.zeros(len(environment.traffic.lane_length_m), np.int64)
        self.quiet_s = np.full(self.counts.size, LONG_AGO_S, np.int64)
        self._second = 0
        self._has_begun = False

    @property
    def waiting(self) -> NDArray[np.bool_]:
        return self.counts > 0

    def look(self, seconds: int) -> None:
        """A second after the look before; the first one is before the engine's first step."""
        assert seconds == 1, "edges are those of one step"
        if not self._has_begun:
            self._has_begun = True
            return
        felt = [edge._replace(loop=self._line[edge.loop // 2] + edge.loop % 2) for edge in self._loops.step()]
        self.quiet_s += 1
        for edge in self._faulty.step(self._second, felt):
            lane = self._lanes[edge.loop // 2]
            if not edge.level:
                continue
            if edge.loop % 2 == ENTRY:
                self.counts[lane] += 1
            else:
                self.counts[lane] = max(self.counts[lane] - 1, 0)
                self.quiet_s[lane] = 0
        self._second += 1
