"""Faulty SUMO files: each gives one sentence that names file, place and fault, with exit code 2; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from streetflow.errors import InputError
from streetflow.sumo.importing import import_scenario
from streetflow.sumo.scenario import read_scenario
from tests.helpers.run_cli import tinylight
from tests.helpers.sumo_files import CONFIG, DRAWN, changed

NET, ROUTES, CONF = ".net.xml", ".rou.xml", ".sumocfg"
LINK = '<connection from="north_A" to="A_south" fromLane="0" toLane="0" via=":A_1_0" tl="A" linkIndex="1" dir="s" state="o"/>'
EDGE = '<edge id="A_B" from="A" to="B"'
GREEN = '<phase duration="33" state="rrrGGGgrrrGGGg"/>'
PROGRAM_A = '<tlLogic id="A" type="static" programID="0" offset="0">'

FAULTS = {
    "left-hand traffic": (NET, "<net version", '<net lefthand="true" version', "has left-hand traffic"),
    "no XML": (NET, "</net>", "", "is not XML"),
    "cut off in a tag": (NET, "</net>", "<ed", "is not XML"),
    "another kind of file": (NET, "<net version", "<nodes version", "is not XML"),
    "an entity": (NET, "<net version", '<!DOCTYPE net [<!ENTITY a "b">]><net version', "declares the entity 'a'"),
    "an unknown junction": (NET, EDGE, '<edge id="A_B" from="A" to="Bee"', "<edge id='A_B'>: to: there is no junction 'Bee'"),
    "a junction without a place": (NET, '<junction id="A" type="traffic_light" x="250.00"', '<junction id="A" type="x"',
                                   "<junction id='A'>: x is missing"),
    "a junction at no place": (NET, 'x="250.00" y="150.00"', 'x="nan" y="150.00"', "x must be a number, is 'nan'"),
    "two edges of one id": (NET, '<edge id="B_A"', '<edge id="A_B"', "is there already, in line"),
    "an edge without lanes": (NET, "</net>", '<edge id="e" from="A" to="B"/></net>', "<edge id='e'>: has no lane"),
    "an edge without an end": (NET, EDGE, '<edge id="A_B" from="A"', "<edge id='A_B'>: to is missing"),
    "lanes out of order": (NET, '<lane id="A_B_1" index="1"', '<lane id="A_B_1" index="4"', "its lanes aren't numbered"),
    "a lane of no length": (NET, '<lane id="A_B_0" index="0" speed="13.89" length="', '<lane id="A_B_0" index="0" speed="13.89"'
                            ' length="-', "<lane id='A_B_0'>: length must be a number above 0"),
    "a lane without speed": (NET, '<lane id="A_B_0" index="0" speed="13.89"', '<lane id="A_B_0" index="0"', "speed is missing"),
    "a lane of one point": (NET, 'shape="257.20,145.20 439.60,145.20"', 'shape="257.20,145.20"', "at least 2 points"),
    "a shape of words": (NET, 'shape="257.20,145.20 439.60,145.20"', 'shape="here there"', "must be points such as"),
    "a missing lane": (NET, 'from="A_B" to="B_hill" fromLane="1"', 'from="A_B" to="B_hill" fromLane="7"',
                       "fromLane: edge 'A_B' has 2 lanes, there is no lane 7"),
    "a link to no edge": (NET, 'to="B_hill" fromLane="1"', 'to="B_hil" fromLane="1"', "no edge 'B_hil'; did you mean"),
    "a link between edges that don't meet": (NET, LINK, LINK.replace("A_south", "fork_west"), "ends at another junction"),
    "a link twice": (NET, LINK, LINK + LINK, "links lane 'north_A_0' with lane 'A_south_0', as line"),
    "a way that isn't there": (NET, LINK, LINK.replace(":A_1_0", ":A_99_0"), "via: there is no lane ':A_99_0'"),
    "a light without a program": (NET, LINK, LINK.replace('tl="A"', 'tl="Z"'), "there is no program of a traffic light 'Z'"),
    "a signal that the program hasn't": (NET, LINK, LINK.replace('linkIndex="1"', 'linkIndex="40"'), "has 14 signals"),
    "a signal of no number": (NET, LINK, LINK.replace('linkIndex="1"', 'linkIndex="-1"'), "must be a whole number, is '-1'"),
    "states of different length": (NET, GREEN, GREEN.replace("rrr", "rr", 1), "states of different length"),
    "a letter that is no signal": (NET, GREEN, GREEN.replace("G", "Q", 1), "'Q' is no signal"),
    "a program without phases": (NET, "</net>", '<tlLogic id="N" type="static"/></net>', "<tlLogic id='N'>: has no phase"),
    "a program of rings": (NET, PROGRAM_A, PROGRAM_A.replace("static", "NEMA"), "is of type 'NEMA'"),
    "a right of way of words": (NET, 'foes="00000000110000"', 'foes="none"', "foes must be of zeros and ones"),
    "requests out of order": (NET, '<request index="0"', '<request index="77"', "aren't numbered 0, 1, 2"),
    "a vehicle on no edge": (ROUTES, "north_A A_south", "north_A A_moon", "the network has no edge 'A_moon'"),
    "a vehicle of no type": (ROUTES, 'type="bus" begin', 'type="tank" begin', "there is no vType 'tank'"),
    "a class that there isn't": (ROUTES, 'vClass="bus"', 'vClass="hovercraft"', "no class of vehicles 'hovercraft'"),
    "a route that there isn't": (ROUTES, 'route="down"', 'route="up"', "there is no route 'up'"),
    "a vehicle without a way": (ROUTES, ' from="lane_fork" to="B_hill"', "", "has neither a route nor from and to"),
    "two vehicles of one id": (ROUTES, 'id="first"', 'id="turning"', "is there already"),
    "a flow backwards": (ROUTES, 'begin="0" end="600" number', 'begin="700" end="600" number', "before it begins"),
    "a flow of nothing": (ROUTES, 'vehsPerHour="450"', 'vehsPerHour="0"', "must be a number above 0"),
    "a time of words": (ROUTES, 'begin="0" end="600" number', 'begin="noon" end="600" number', "begin must be a number"),
    "a network that isn't there": (CONF, "two_lights.net.xml", "three.net.xml", "there is no file"),
    "no network": (CONF, '<net-file value="two_lights.net.xml"/>', "", "names 0 networks"),
    "no demand": (CONF, '<route-files value="two_lights.rou.xml"/>', "", "names no demand"),
    "an end before the begin": (CONF, '<begin value="0"/>', '<begin value="900"/>', "end: must be after the begin"),
    "a step that divides no second": (CONF, '<begin value="0"/>', '<step-length value="0.3"/>', "a step must divide a second"),
    "a saved state": (CONF, '<begin value="0"/>', '<load-state value="x.xml"/>', "needs a saved state"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_one_sentence_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, old: str, new: str, fault: str
) -> None:
    config = changed(tmp_path / "files", (name, old, new))
    assert tinylight("import-sumo", str(config), str(tmp_path / "out")) == 2
    said = capsys.readouterr()
    assert fault in said.err and said.err.count("\n") == 1 and said.err.startswith("tinylight: ")
    place = said.err.split(": ")[1]
    assert place.startswith(str(tmp_path)) or place == "--end"
    assert not (tmp_path / "out").exists() and not said.out


WORKING = {
    "actuated programs": (NET, PROGRAM_A, PROGRAM_A.replace("static", "actuated"), "1 actuated programs"),
    "pedestrians' crossings": (NET, "</net>", '<edge id=":A_c0" function="crossing" crossingEdges="A_B"><lane id=":A_c0_0" '
                               'index="0" speed="1" length="5" shape="0,0 1,1"/></edge></net>', "1 pedestrians' crossings"),
    "railways": (NET, "</net>", '<edge id="r" from="A" to="B"><lane id="r_0" index="0" allow="rail tram" speed="9" length="9" '
                 'shape="0,0 9,0"/></edge></net>', "2 lanes that aren't for road traffic, and 1 edges"),
    "rail links at a light": (NET, LINK, LINK + '<connection from="fork_A" to="A_south" fromLane="0" toLane="0" tl="A" '
                              'linkIndex="1" dir="r" state="O"/>', "1 links that aren't for road traffic"),
    "a light of one green phase": (NET, "</net>", '<tlLogic id="P" type="static" programID="0"><phase duration="9" state="G"/>'
                                   "</tlLogic></net>", "left to their own programs: P"),
    "several programs": (NET, PROGRAM_A, '<tlLogic id="A" type="static" programID="1"><phase duration="9" state='
                         f'"{14 * "r"}"/></tlLogic>{PROGRAM_A}', "of several programs the last one counts: A"),
    "no ways within junctions": (NET, LINK, LINK.replace('via=":A_1_0" ', ""), "1 intersections whose right of way"),
    "an uncontrolled link": (NET, LINK, LINK.replace('tl="A" linkIndex="1"', 'uncontrolled="1"'), "turn on red"),
    "bicycles": (ROUTES, 'vClass="bus"', 'vClass="bicycle"', "1 vehicles or flows that aren't road"),
    "zones": (ROUTES, 'from="lane_fork" to="B_hill"', 'fromTaz="a" toTaz="b"', "1 vehicles or flows between zones"),
    "vehicles that wait for something": (ROUTES, 'depart="12.5"', 'depart="triggered"', "1 vehicles that depart when"),
    "output of a configuration": (CONF, "<report>", "<output><tripinfo-output value='x.xml'/></output><report>",
                                  "tripinfo-output"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "note"), WORKING.values(), ids=WORKING.keys())
def test_what_is_unusual_works_and_is_told(tmp_path: Path, name: str, old: str, new: str, note: str) -> None:
    imported = import_scenario(read_scenario([changed(tmp_path, (name, old, new))]))
    assert note in "\n".join(imported.notes)
    assert imported.taken["lights"] == 2 or name != NET


def test_a_network_without_lights_has_nothing_to_control(tmp_path: Path) -> None:
    net = (DRAWN / "two_lights.net.xml").read_text()
    for light in ("A", "B"):
        begin = net.index(f'<tlLogic id="{light}"')
        net = net[:begin] + net[net.index("</tlLogic>", begin) + len("</tlLogic>") :]
        for index in range(14):
            net = net.replace(f' tl="{light}" linkIndex="{index}"', "")
    (tmp_path / "a.net.xml").write_text(net)
    with pytest.raises(InputError, match=r"a.net.xml: there is nothing to control: it has no traffic light"):
        import_scenario(read_scenario([tmp_path / "a.net.xml", DRAWN / "two_lights.rou.xml"]))


def test_a_junction_of_two_lights_is_refused(tmp_path: Path) -> None:
    """One link of A's is set by B, so it counts as one of B's; by a light C that has no other, it is one light too many."""
    config = changed(tmp_path, (NET, LINK, LINK.replace('tl="A"', 'tl="B"')))
    notes = "\n".join(import_scenario(read_scenario([config])).notes)
    assert "merged: the light 'B' sets 2 junctions; all its movements are at 'B'" in notes
    phases = '<phase duration="9" state="rrG"/><phase duration="9" state="Grr"/>'
    program = f'<tlLogic id="C" type="static">{phases}</tlLogic>{PROGRAM_A}'
    config = changed(tmp_path, (NET, LINK, LINK.replace('tl="A"', 'tl="C"')), (NET, PROGRAM_A, program))
    with pytest.raises(InputError, match=r"<junction id='A'>: has links of two traffic lights, "):
        import_scenario(read_scenario([config]))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["net.net.xml"], "name what to import and, behind it, the new folder"),
        (["{net}", "{out}"], "is a network alone: name files with its demand"),
        (["missing.sumocfg", "{out}"], "missing.sumocfg: there is no such file"),
        (["{net}", "{net}", "{out}"], "is not a file with demand (.rou.xml): it begins with <net>, not <routes>"),
        (["{routes}", "{out}"], "is not a SUMO configuration (.sumocfg): it begins with <routes>"),
        (["{config}", "{folder}"], "is there already: name a folder that isn't"),
        (["{config}", "{out}", "--begin", "-1"], "--begin: must be 0 s or more, is -1"),
        (["{config}", "{out}", "--begin", "700", "--end", "900"], "no vehicle of road traffic departs from 700 to 900 s"),
    ],
)
def test_bad_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str) -> None:
    places = {
        "net": DRAWN / "two_lights.net.xml", "routes": DRAWN / "two_lights.rou.xml", "config": CONFIG,
        "folder": DRAWN, "out": tmp_path / "out",
    }  # fmt: skip
    assert tinylight("import-sumo", *(each.format(**places) for each in arguments)) == 2
    said = capsys.readouterr().err
    assert fault in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()
