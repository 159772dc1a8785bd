"""A run's traffic as a replay page, with what the lamps showed and what the loops felt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hil.boards.bench import Into, Seen
from hil.light.closed_loop import LAG_S
from hil.light.crossing import Crossing
from hil.light.light_run import LightRun
from streetflow.page.write import Signals, write_replay_page
from streetflow.roadnet.network_tables import load_network

if TYPE_CHECKING:
    from streetflow.page.recorder import Recording

FLASHES = 8  # the monitor has let its relay go


def write_page(run: LightRun, file: Path) -> None:
    """The page, of a run that has kept all and was filmed."""
    assert run.recorder is not None
    recording = run.recorder.recording()
    job = run.job
    title = f"{job.network.name}, flow {job.flow}, mode {job.mode}: what the lamps showed"
    write_replay_page(recording, load_network(job.network.roadnet_file), title, file, signals_of(run, recording))


def signals_of(run: LightRun, recording: Recording) -> Signals:
    """Lamps as they were when each frame's second began, loops as they were occupied within it."""
    frames, first = recording.n_frames, recording.first_step - 1
    heads: list[tuple[int, int]] = []
    lanes: list[int] = []
    lamps = [np.zeros((frames, 0), np.uint8)]
    loops = [np.zeros((frames, 0), np.uint8)]
    for crossing in run.crossings:
        before = sum(each.shape[1] for each in lamps)
        heads += [(lane, before + group) for lane, groups in _heads(crossing) for group in groups]
        lanes += crossing.lanes
        lamps.append(_lamps(crossing, frames, first))
        loops.append(_loops(crossing, frames, first))
    return Signals(heads, np.hstack(lamps), lanes, np.hstack(loops))


def _heads(crossing: Crossing) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each lane that leads in, and the groups that it can be left by."""
    yield from zip(crossing.plan.in_lanes, crossing.plan.lane_groups, strict=True)


def _lamps(crossing: Crossing, frames: int, first: int) -> np.ndarray:
    groups = len(crossing.plan.groups)
    found = np.zeros((frames, groups), np.uint8)
    changes = iter(sorted(c for c in crossing.changes if c.what in (Seen.SHOWN, Seen.RELAY)))
    following = next(changes, None)
    shown, held = 0, True
    for frame in range(frames):
        until_us = crossing.start_us + 1e6 * (first + frame + LAG_S)
        while following is not None and following.time_us <= until_us:
            if following.what == Seen.SHOWN:
                shown = following.value
            else:
                held = bool(following.value)
            following = next(changes, None)
        found[frame] = [shown >> 3 * group & 7 | (0 if held else FLASHES) for group in range(groups)]
    return found


def _loops(crossing: Crossing, frames: int, first: int) -> np.ndarray:
    """Bit 0 the entry loop, bit 1 the stop line's."""
    found = np.zeros((frames, len(crossing.lanes)), np.uint8)
    since: dict[int, float] = {}
    end_s = float(first + frames)
    given = sorted(each for each in crossing.inputs if each.what == Into.DETECTOR and each.line < 2 * len(crossing.lanes))
    marks = [((each.time_us - crossing.start_us) / 1e6 - LAG_S, each.line, each.level) for each in given]
    for at_s, line, level in [*marks, *((end_s, line, 0) for line in range(2 * len(crossing.lanes)))]:
        if level:
            since.setdefault(line, at_s)
        elif line in since:
            begin, end = (max(0, min(int(s - first), frames - 1)) for s in (since.pop(line), at_s))
            found[begin : end + 1, line // 2] |= 1 << line % 2
    return found
