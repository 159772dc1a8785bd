"""The monitor: its table equals the controller's, which it shares nothing with; its limits, to the millisecond; its size."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firmware.monitor.derive import DeriveError, derive
from hil.build.monitor import SOURCES, build_monitor, monitor_header
from hil.build.project import project_root
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network, list_networks
from streetflow.networks.generate_roadnet import Grid, roadnet
from streetflow.networks.write import json_bytes
from streetflow.roadnet.network_tables import load_network
from tests.helpers.host_monitor import (
    CONFLICT,
    DARK,
    FINE,
    GREEN,
    HEARTBEAT,
    NO_YELLOW,
    RED,
    SEVERAL,
    SHORT_YELLOW,
    TABLE,
    YELLOW,
    HostMonitor,
)  # fmt: skip

CROSSING = find_network("crossing").roadnet_file
GROUPS = 9
STEADY_MS, EXCUSE_MS = 60, 1_200


@pytest.fixture
def monitor(tmp_path: Path) -> HostMonitor:
    """Phase 0 of the built-in crossing has been green for a while: groups 1, 6 and the right turns, 2."""
    lamps = [GREEN if group in (1, 2, 6) else RED for group in range(GROUPS)]
    monitor = HostMonitor(monitor_header(CROSSING, "intersection_1_1"), tmp_path, lamps)
    assert monitor.run(5_000) is None
    return monitor


# Its table


def compare(roadnet_file: Path) -> int:
    """How many crossings were compared."""
    document = json.loads(roadnet_file.read_text())
    plans = signal_plans(load_network(roadnet_file))
    for plan in plans:
        own = derive(document, plan.intersection)
        assert own.road_links == tuple(group.road_links for group in plan.groups)
        assert own.conflicts == tuple(bits(plan, group) for group in range(len(plan.groups)))
    return len(plans)


def bits(plan: SignalPlan, group: int) -> int:
    return sum(1 << other for other in plan.conflicts_of(group))


def test_both_derivations_agree_on_all_networks_at_hand() -> None:
    assert sum(compare(network.roadnet_file) for network in list_networks()) >= 4


@pytest.mark.parametrize("phases", [4, 8, 9])
@pytest.mark.parametrize(("lanes", "side_lanes"), [(1, 1), (1, 3), (2, 2), (4, 2), (6, 6)])
def test_both_derivations_agree_on_generated_crossings(tmp_path: Path, phases: int, lanes: int, side_lanes: int) -> None:
    for curves in (False, True):
        grid = Grid(phases=phases, lanes=lanes, side_lanes=side_lanes, curves=curves, columns=2)
        (tmp_path / f"{curves}.json").write_bytes(json_bytes(roadnet(grid)))
        assert compare(tmp_path / f"{curves}.json") == 2


def test_the_derivations_share_no_code() -> None:
    text = (SOURCES / "derive.py").read_text()
    assert set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)) == {
        "__future__", "json", "math", "sys", "dataclasses", "pathlib", "typing"
    }  # fmt: skip
    own = {name for file in SOURCES.glob("*.[ch]") for name in re.findall(r'#include "(.*)"', file.read_text())}
    assert own == {"monitor.h", "monitor_table.h"}


def test_what_it_cannot_watch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{re.escape(str(CROSSING))}: no crossing 'nowhere'$"):
        monitor_header(CROSSING, "nowhere")
    (tmp_path / "broken.json").write_text("[]")
    with pytest.raises(InputError, match=r"broken.json: not a road network"):
        monitor_header(tmp_path / "broken.json", "intersection_1_1")
    content = roadnet(Grid())
    crossing = content["intersections"][0]
    crossing["roadLinks"] *= 2
    crossing["trafficLight"]["lightphases"] = [{"time": 5, "availableRoadLinks": [link]} for link in range(24)]
    with pytest.raises(DeriveError, match=r"^24 lamp heads, the wires carry 1 to 16$"):
        derive(content, crossing["id"])
    command = [sys.executable, "-S", "-m", "firmware.monitor.derive", str(tmp_path / "broken.json"), "x", str(tmp_path)]
    refused = subprocess.run(command, cwd=project_root(), capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1


# Its limits: what lasts one millisecond less than the limit does not trip, what lasts as long does


@pytest.mark.parametrize(
    ("group", "lamps", "limit_ms", "reason", "named"),
    [
        (4, GREEN, 350, CONFLICT, 1),
        (4, YELLOW, 350, CONFLICT, 1),
        (1, "", 850, DARK, 1),
        (8, "", 850, DARK, 8),
        (1, RED + GREEN, 350, SEVERAL, 1),
        (6, YELLOW + GREEN, 350, SEVERAL, 6),
        (2, YELLOW + GREEN, 350, SEVERAL, 2),
    ],
)
def test_what_lasts_trips_at_its_limit_and_not_a_millisecond_sooner(
    monitor: HostMonitor, group: int, lamps: str, limit_ms: int, reason: int, named: int
) -> None:
    sound = monitor.lamps[group]
    monitor.lamps[group] = lamps
    assert monitor.run(limit_ms - 1) is None
    monitor.lamps[group] = sound
    assert monitor.run(EXCUSE_MS + 200) is None or lamps in (GREEN, YELLOW), "a disturbance, gone again"
    if monitor.reason == FINE:
        monitor.lamps[group] = lamps
        assert monitor.run(2_000) == limit_ms
        assert (monitor.reason, monitor.group) == (reason, named)


def change(monitor: HostMonitor, yellow_ms: int) -> int | None:
    """Groups 1 and 6 end, after so long a yellow."""
    for lamp, ms in ((YELLOW, yellow_ms), (RED, 3_000)):
        monitor.lamps[1] = monitor.lamps[6] = lamp
        if ms and (tripped := monitor.run(ms)):
            return tripped
    return None


def test_a_yellow_of_2_7_s_is_long_enough_and_a_millisecond_less_is_not(monitor: HostMonitor) -> None:
    assert change(monitor, 2_700) is None
    monitor.lamps[1] = monitor.lamps[6] = GREEN
    monitor.run(5_000)
    assert change(monitor, 2_699) == STEADY_MS + EXCUSE_MS - 1
    assert (monitor.reason, monitor.group) == (SHORT_YELLOW, 1)


def test_green_and_then_red_trips(monitor: HostMonitor) -> None:
    assert change(monitor, 0) == STEADY_MS + EXCUSE_MS - 1
    assert (monitor.reason, monitor.group) == (NO_YELLOW, 1)


def test_a_flicker_is_no_lamp(monitor: HostMonitor) -> None:
    for _ in range(20):
        monitor.lamps[1] = RED
        assert monitor.run(STEADY_MS - 1) is None
        monitor.lamps[1] = GREEN
        assert monitor.run(100) is None
    assert monitor.run(2_000) is None


def test_a_controller_that_restarts_and_flashes_is_excused(monitor: HostMonitor) -> None:
    """All red for half a second, all dark for half a second, five times; then all red, and the first green."""
    for _ in range(5):
        for lamp in (RED, ""):
            monitor.lamps = [lamp] * GROUPS
            assert monitor.run(500) is None
    monitor.lamps = [RED] * GROUPS
    assert monitor.run(6_000) is None
    monitor.lamps[1] = monitor.lamps[2] = monitor.lamps[6] = GREEN
    assert monitor.run(6_000) is None


def test_a_lost_heartbeat_trips_after_a_second(monitor: HostMonitor) -> None:
    monitor.beats = False
    assert monitor.run(900) is None
    monitor.beats = True
    assert monitor.run(1_000) is None
    while (monitor.ms + 1) // 10 % 2 == 0 or (monitor.ms + 2) // 10 % 2 == 1:
        monitor.run(1)  # until the next millisecond is the last high one
    monitor.run(1)
    monitor.beats = False
    assert monitor.run(3_000) == 1 + 1_000, "counted from its last edge"
    assert monitor.reason == HEARTBEAT


def test_it_latches_until_the_button_and_keeps_the_first_reason_over_a_power_cycle(monitor: HostMonitor) -> None:
    monitor.lamps[4] = GREEN
    assert monitor.run(1_000) == 350
    monitor.lamps[4] = RED
    monitor.beats = False
    assert monitor.run(20_000) is None and monitor.reason == CONFLICT, "sound again, or worse: nothing changes"
    monitor.power(CONFLICT, 1)
    monitor.beats = True
    assert monitor.run(20_000) is None and (monitor.reason, monitor.group) == (CONFLICT, 1)
    assert monitor.run(119, button=True) is None
    assert monitor.run(1) is None and monitor.reason == CONFLICT, "a bounce"
    assert monitor.run(500, button=True) == 120 and monitor.reason == FINE
    assert monitor.run(10_000) is None


def test_a_damaged_table_or_memory_trips_at_once(tmp_path: Path) -> None:
    table = monitor_header(CROSSING, "intersection_1_1")
    (tmp_path / "sound").mkdir()
    sound = HostMonitor(table, tmp_path / "sound", [RED] * GROUPS)
    sound.power(77, 0)
    assert sound.reason == TABLE
    first = re.search(r"conflicts = \{(\d+)", table)
    assert first is not None
    damaged = HostMonitor(table.replace(first[0], f"conflicts = {{{int(first[1]) ^ 4}"), tmp_path, [RED] * GROUPS)
    assert damaged.reason == TABLE
    assert damaged.run(500, button=True) is None and damaged.reason == TABLE, "the button does not mend it"


def test_it_fits_8_kb_and_512_bytes() -> None:
    built = build_monitor(CROSSING, "intersection_1_1")
    assert 1_000 < built.flash_bytes <= 8 * 1024
    assert 200 < built.static_ram_bytes + built.stack().total_bytes <= 512
    assert build_monitor(CROSSING, "intersection_1_1") == built
