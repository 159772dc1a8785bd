"""A run's crossings as a wave form: lamps, detectors, heartbeat, relay and the serial line, for GTKWave."""

from __future__ import annotations

from pathlib import Path

from hil.boards.bench import Into, Seen
from hil.boards.waves import Levels, serial_line, vcd_text
from hil.light.crossing import Crossing
from hil.light.light_run import LightRun
from hil.loop.lamp_faults import LAMPS
from streetflow.files import write_whole

SINGLE = {Seen.HEARTBEAT: "heartbeat", Seen.RELAY: "relay", Seen.BUTTON: "monitor_button"}


def write_waves(run: LightRun, file: Path) -> None:
    """The file, of a run that has kept all."""
    job = run.job
    modules = {f"crossing_{each.plan.intersection}": signals_of(each, job.f_cpu_hz) for each in run.crossings}
    write_whole(file, vcd_text(modules, f"{job.network.name}, flow {job.flow}, mode {job.mode}"))


def signals_of(crossing: Crossing, f_cpu_hz: int) -> dict[str, Levels]:
    """Each line's levels, in ns from power-on: lamps behind the wires' faults."""
    groups = len(crossing.plan.groups)
    lamps = [f"group{line // 3}_{LAMPS[line % 3]}" for line in range(3 * groups)]
    walks = [f"group{line // 2}_{('walk', 'clearing')[line % 2]}" for line in range(2 * groups)]
    signals: dict[str, Levels] = {name: [] for name in lamps}
    levels = {Seen.SHOWN: 0, Seen.WALKS: 0}
    for change in crossing.changes:
        at_ns = round(change.time_us * 1000)
        if change.what in SINGLE:
            signals.setdefault(SINGLE[change.what], []).append((at_ns, change.value))
        elif change.what in levels:
            names = lamps if change.what == Seen.SHOWN else walks
            turned = levels[change.what] ^ change.value
            levels[change.what] = change.value
            for line, name in enumerate(names):
                if turned >> line & 1:
                    signals.setdefault(name, []).append((at_ns, change.value >> line & 1))
    for given in sorted(crossing.inputs):
        if given.what == Into.DETECTOR:
            signals.setdefault(_detector(crossing, given.line), []).append((round(given.time_us * 1000), given.level))
    return signals | serial_line(crossing.bench.traced(), f_cpu_hz)


def _detector(crossing: Crossing, line: int) -> str:
    lane, loop = divmod(line, 2)
    if lane >= len(crossing.lanes):
        return f"button_group{line - 2 * len(crossing.lanes)}"
    return f"lane{lane}_{('entry', 'stop_line')[loop]}"
