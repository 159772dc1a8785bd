"""The eight scenarios of the RESCO benchmark: what is imported is what SUMO itself says, and SUMO's run stays as it is.

The data sets aren't part of this repository (they have licences of their own).
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from streetflow.roadnet.network_tables import load_network
from streetflow.sumo.binding import read_binding
from streetflow.sumo.engine import SumoEngine
from tests.helpers.plain_sumo import run_plain_sumo, trip_lines
from tests.helpers.sumo_files import SCENARIOS, import_to, needs_sumo

SECONDS = {"ingolstadt21": 240, "arterial4x4": 480}
NAMES = ("arterial4x4", "cologne1", "cologne3", "cologne8", "grid4x4", "ingolstadt1", "ingolstadt7", "ingolstadt21")

pytestmark = [
    needs_sumo,
    pytest.mark.skipif(not SCENARIOS.is_dir(), reason="needs datasets-sumo in the folder TINYLIGHT_SHARED"),
]


@pytest.mark.parametrize("name", NAMES)
def test_imported_as_sumo_has_it_and_run_as_sumo_runs_it(name: str, tmp_path: Path) -> None:
    config, out = SCENARIOS / name / f"{name}.sumocfg", tmp_path / name
    import_to(config, out)
    seconds = SECONDS.get(name, 600)
    plain = run_plain_sumo(config, seconds, 42, tmp_path / "plain.xml")
    network, binding = load_network(out / "roadnet.json"), read_binding(out)
    sumo_lane = dict(zip(network.roadnet.lane_ids, binding.lanes, strict=True))

    # lanes: SUMO's, with SUMO's lengths
    assert set(binding.lanes) < set(plain["lanes"])
    assert [plain["lanes"][lane] for lane in binding.lanes] == pytest.approx(binding.lane_lengths_m)

    # movements: by light and signal the same links from lane to lane, by the same ways
    roadnet = json.loads((out / "roadnet.json").read_bytes())
    intersections = {each["id"]: each for each in roadnet["intersections"]}
    first = {}
    number = 0
    for each in roadnet["intersections"]:
        first[each["id"]] = number
        number += sum(len(link["laneLinks"]) for link in each["roadLinks"])
    assert {light.light for light in binding.lights} == set(plain["lights"])
    for light in binding.lights:
        theirs = plain["lights"][light.light]
        at = intersections[light.intersection]
        ours = defaultdict(set)
        k = first[light.intersection]
        ways = []
        for signals, road_link in zip(light.signals, at["roadLinks"], strict=True):
            ways.append(set())
            for link in road_link["laneLinks"]:
                start = sumo_lane[f"{road_link['startRoad']}_{link['startLaneIndex']}"]
                end = sumo_lane[f"{road_link['endRoad']}_{link['endLaneIndex']}"]
                way = binding.ways[k]
                ways[-1] |= set(way)
                k += 1
                place = next((i for i, links in enumerate(theirs["links"]) if [start, end, way[0]] in links), None)
                assert (place is None and not signals) or place in signals, (start, end)
                ours[place].add((start, end))
        for i, links in enumerate(theirs["links"]):
            on_roads = {(start, end) for start, end, _ in links if {start, end} <= set(binding.lanes)}
            assert ours[i] == on_roads, (light.light, i)

        # phases: the program's green ones in its order, with its states, times and greens, permitted ones kept apart
        green = [(s, state) for s, state in theirs["phases"] if set(state) & set("Gg") and not set(state) & set("yYu")]
        times = dict((state, s) for s, state in reversed(green))  # of a state that recurs the first
        assert list(light.states) == list(dict.fromkeys(state for _, state in green))
        for phase, state in zip(at["trafficLight"]["lightphases"], light.states, strict=True):
            letters = [state[signals[0]] if signals else "o" for signals in light.signals]
            assert phase["availableRoadLinks"] == [i for i, letter in enumerate(letters) if letter in "Ggo"]
            assert phase["permittedRoadLinks"] == [i for i, letter in enumerate(letters) if letter in "go"]
            assert phase["time"] == times[state]

        # conflicts: SUMO's ways of two movements are foes; more of these are those that end side by side on one road
        told = {tuple(pair) for pair in at["conflicts"]}
        for a, one in enumerate(at["roadLinks"]):
            for b, other in enumerate(at["roadLinks"][:a]):
                if one["startRoad"] == other["startRoad"]:
                    continue
                are_foes = any(set(plain["foes"][way]) & ways[b] for way in ways[a])
                assert are_foes or (b, a) not in told
                if are_foes and (b, a) not in told:
                    ends = [{link["endLaneIndex"] for link in each["laneLinks"]} for each in (one, other)]
                    assert one["endRoad"] == other["endRoad"] and not ends[0] & ends[1]
        assert told or len(at["roadLinks"]) < 3

    # the run under the network's own programs: every trip the same, to the last digit that SUMO writes
    tripinfo = tmp_path / "ours.xml"
    engine = SumoEngine(network, out, seed=42, options=["--tripinfo-output", str(tripinfo)])
    for _ in range(seconds // 20):
        engine.step_many(20)
        engine.lane_vehicle_counts(), engine.lane_waiting_time_sums_s(), engine.running_vehicles()
    finished = engine.finished_vehicle_count
    engine.close()
    assert trip_lines(tripinfo) == trip_lines(tmp_path / "plain.xml")
    assert len(trip_lines(tripinfo)) == finished > 20
