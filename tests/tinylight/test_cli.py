"""The command line: exit codes, one clear line for bad input, JSON results."""

import json
import re
from pathlib import Path

import pytest

from model.policy.file import load_policy, save_policy
from streetflow.errors import InputError
from streetflow.networks.catalogue import parse_flows
from tests.helpers.random_policy import write_random_policy
from tests.helpers.run_cli import tinylight


def change(file: Path, to: Path, **fields: object) -> Path:
    content = json.loads(file.read_text())
    content.update(fields)
    to.write_text(json.dumps(content))
    return to


@pytest.fixture
def crossing_policy() -> Path:
    from model import pretrained_policy

    return pretrained_policy("crossing")


@pytest.fixture
def data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the built-in crossing as the data set `mine`, to spoil."""
    from streetflow.networks.catalogue import find_network

    source = find_network("crossing")
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "roadnet.json").write_bytes(source.roadnet_file.read_bytes())
    (folder / "flow_0.json").write_bytes(source.flow_files[0].read_bytes())
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    return folder


def spoil(file: Path, **changes: object) -> None:
    """Sets entries of a JSON file, each named by a path such as `roads.0.lanes` with `__` for the dots."""
    content = json.loads(file.read_text())
    for path, value in changes.items():
        *steps, last = (int(step) if step.isdigit() else step for step in path.strip("_").split("__"))
        place = content
        for step in steps:
            place = place[step]
        place[last] = value
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-9", list(range(10))), ("3", [3]), ("0-2,7", [0, 1, 2, 7]), ("4,0-4", [4, 0, 1, 2, 3])]
)
def test_flows_are_numbers_and_ranges(text: str, numbers: list[int]) -> None:
    assert parse_flows(text, 10) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "-3", "5-2", "0-10", "1,,2", "1.5", "9" * 5000, "0-" + "9" * 5000])
def test_other_flows_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^flows: "):
        parse_flows(text, 10)


@pytest.mark.parametrize("command", ["hil", "train", "evaluate", "size", "networks"])
def test_help_explains_each_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight(command, "--help") == 0
    assert "--json" in capsys.readouterr().out


LONG = "x" * 300  # longer than any file system takes
BAD_INPUT = [
    (["evaluate", "--network", "crosing", "--agent", "SOTL"], ["crosing", "crossing"]),
    (["evaluate", "--network", "crossing", "--agent", "SOTL", "--flows", "0-99"], ["--flows", "99"]),
    (["evaluate", "--network", "crossing", "--agent", "nobody.json"], ["nobody.json"]),
    (["evaluate", "--network", "crossing", "--agent", "SOTL", "--json", "missing/out.json"], ["missing"]),
    (["evaluate", "--network", "crossing", "--agent", LONG], ["xxx", "neither a policy file nor"]),
    (["evaluate", "--network", LONG, "--agent", "SOTL"], ["unknown network"]),
    (["evaluate", "--network", "crossing", "--agent", "SOTL", "--json", LONG], ["xxx: can't be written: File name too long"]),
    (["evaluate", "--network", "crossing", "--agent", "SOTL", "--json", "o", "--trips", "o"], ["o: two results"]),
    (["hil", "--policy", LONG], ["xxx: can't be read: File name too long"]),
    (["check", LONG], ["xxx"]),
    (["hil", "--network", "nowhere"], ["unknown network", "nowhere"]),
    (["hil", "--network", "crosing"], ["unknown network; did you mean crossing?"]),
    (["size", "--network", "crosing"], ["unknown network; did you mean crossing?"]),
    (["hil", "--network", "crossing", "--flow", "99"], ["99"]),
    (["hil", "--network", "crossing", "--policy", "none.json"], ["none.json"]),
    (["hil", "--network", "crossing", "--board", "/dev/ttyNone"], ["/dev/ttyNone"]),
    (["hil", "--board", "/dev/ttyA,/dev/ttyB"], ["--board", "are several boards: add --boards per-intersection"]),
    (
        ["hil", "--network", "arterial", "--board", "loop://", "--boards", "per-intersection"],
        ["1 board for 3 intersections: list"],
    ),
    (["hil", "--network", "arterial", "--board", "host,,x", "--boards", "per-intersection"], ["--board: 'host,,x' leaves"]),
    (["table", "--networks", "crossing,,arterial"], ["--networks: 'crossing,,arterial' leaves a name empty"]),
    (["share", "/dev/ttyNone", "--listen", "127.0.0.1:0"], ["/dev/ttyNone: there is no such port"]),
    (["hil", "--network", "crossing", "--engine", "matsim"], ["matsim", "builtin"]),
    (["hil", "--network", "crossing", "--clearance", "green"], ["green", "all_red"]),
    (["hil", "--network", "crossing", "--baud", "12345678"], ["12345678"]),
    (["hil", "--network", "crossing", "--f-cpu", "0"], ["--f-cpu: 0 Hz is out of range: 1000000 to 20000000"]),
    (["hil", "--network", "crossing", "--f-cpu", "4294967296"], ["--f-cpu: 4294967296 Hz is out of range"]),
    (["hil", "--network", "crossing", "--board", "host", "--baud", "-5"], ["--baud: -5 baud is out of range: 1200 to 2000000"]),
    (
        ["hil", "--network", "crossing", "--board", "host", "--kernel", "table"],
        ["--kernel: table: the board host has"],
    ),
    (["size", "--kernel", "tabel"], ["--kernel: unknown kernel 'tabel'; did you mean table?"]),
    (["size", "--f-cpu", "1000000", "--baud", "19200"], ["--baud: 19200 at 1000000 Hz: the nearest is 17857"]),
    (["hil", "--network", "crossing", "--budget", "inf"], ["--budget: inf s"]),
    (["hil", "--network", "crossing", "--faults", "seed=" + "9" * 5000], ["--faults", "is not a fault"]),
    (["hil", "--network", "crossing", "--faults", "reset@" + "9" * 5000], ["--faults", "is not a valid event"]),
    (["size", "--f-cpu", "4294967295"], ["--f-cpu: 4294967295 Hz is out of range"]),
    (["board", "--baud", "1"], ["--baud: 1 baud is out of range"]),
    (["share", "/dev/ttyNone", "--listen", "x:" + "9" * 5000], ["--listen"]),
    (["size", "--policy", "none.json"], ["none.json"]),
    (["train", "--network", "nowhere", "--out", "x.json"], ["nowhere"]),
    (["train", "--network", "crossing", "--out", "missing/x.json"], ["missing"]),
    (["train", "--network", "crossing", "--flow", "77", "--out", "x.json"], ["77"]),
    (["evaluate", "--agent", "SOTL"], ["'--network'", "see tinylight evaluate --help"]),
    (["hil", "--flow", "x"], ["'--flow'", "valid integer"]),
    (["size", "--policy"], ["'--policy' requires an argument"]),
    (["networks", "all"], ["unexpected extra argument", "(all)"]),
    (["evaluate", "--network", "two\nlines\x07", "--agent", "SOTL"], [r"two\nlines\x07: unknown network"]),
]


@pytest.mark.parametrize(
    ("arguments", "named"), BAD_INPUT, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], named: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tinylight(*arguments) == 2
    error = one_line(capsys)
    for word in named:
        assert word in error
    assert list(tmp_path.iterdir()) == []


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error: one line, with nothing before or after it."""
    error = capsys.readouterr().err
    assert error.startswith("tinylight: ") and error.endswith("\n") and "\n" not in error[:-1]
    return error[:-1]


MISSPELT = [
    ("evalute", "evaluate"),
    ("evaluate --networc crossing", "--network"),
    ("hil --no-logit", "--no-logits"),
    ("evaluate --network Crosing --agent SOTL", "crossing"),
    ("evaluate --network crossing --agent Maxpressure", "MaxPressure"),
    ("evaluate --network crossing --agent here/polcy.json", "here/policy.json"),
    ("evaluate --network crossing --agent SOTL --engine buildin", "builtin"),
    ("evaluate --network crossing --agent SOTL --clearance all-red", "all_red"),
    ("replay --network crossing --out x.html --agent SOLT", "SOTL"),
    ("check crosing", "crossing"),
    ("check here/roadnt.json", "here/roadnet.json"),
    ("check polcy.json", "policy.json"),
    ("make-network x --from crosing --noise 60", "crossing"),
    ("make-network x --profile paek", "peak"),
    ("make-network x --routes end", "ends"),
    ("make-flow crosing x.json", "crossing"),
    ("make-flow crossing x.json --routes shortst", "shortest"),
    ("hil --network crossing --kernel tabel", "table"),
    ("hil --network crossing --boards per_intersection", "per-intersection"),
    ("hil --network crossing --policy here/polcy.json", "here/policy.json"),
    ("hil --network crossing --faults rest@3", "reset"),
    ("hil --network crossing --board simvar", "simavr"),
    ("size --against policy.jsn", "policy.json"),
    ("plot polcy.json", "policy.json"),
    ("table --models SOLT", "SOTL"),
    ("table --networks crosing", "crossing"),
    ("cost --network arterial --intersection intersection11", "intersection_1_1"),
    ("cost --table polcy.json", "policy.json"),
    ("train --network crossing --out x --device cud", "cuda"),
    ("train --network crossing --out x --features relase", "release"),
    ("train --network crossing --out x --set gama=1", "gamma"),
    ("train --network crossing --out x --model MPLihgt", "MPLight"),
]


@pytest.mark.parametrize(("command", "meant"), MISSPELT)
def test_what_looks_like_a_misspelt_name_is_named(
    command: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if command.startswith("train"):
        pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    (tmp_path / "here").mkdir()
    for name in ("policy.json", "here/policy.json", "here/roadnet.json"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert tinylight(*command.split()) == 2
    hint = one_line(capsys).partition("did you mean ")[2].partition("?")[0]
    assert meant in hint.split(" or ")


def test_policy_of_a_wrong_hash(crossing_policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = change(crossing_policy, tmp_path / "bad.json", decision_interval_s=30)
    assert tinylight("hil", "--policy", str(bad)) == 2
    assert "bad.json: sha256" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["hil"], ["evaluate", "--integer"], ["replay", "--out", "page.html"]])
def test_policy_of_another_decision_interval(
    command: list[str],
    crossing_policy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draft = load_policy(crossing_policy).model_copy(update={"decision_interval_s": 10})
    save_policy(draft.model_copy(update={"sha256": draft.compute_sha256()}), tmp_path / "hasty.json")
    monkeypatch.chdir(tmp_path)
    option = "--policy" if command[0] == "hil" else "--agent"
    assert tinylight(*command, "--network", "crossing", option, "hasty.json") == 2
    fault = "hasty.json: decision_interval_s: decides every 10 s, but crossing every 20 s"
    assert capsys.readouterr().err.strip() == f"tinylight: {fault}"


@pytest.mark.parametrize(("name", "hint"), [("nonsense", ""), ("phase_2_presure", "; did you mean phase_2_pressure")])
def test_policy_with_an_unknown_feature(
    name: str,
    hint: str,
    crossing_policy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draft = load_policy(crossing_policy)
    features = draft.intersections[0].features
    named = [features[0].model_copy(update={"name": name}), *features[1:]]
    part = draft.intersections[0].model_copy(update={"features": named})
    draft = draft.model_copy(update={"intersections": [part]})
    save_policy(draft.model_copy(update={"sha256": draft.compute_sha256()}), tmp_path / "badfeat.json")
    monkeypatch.chdir(tmp_path)
    place = "badfeat.json: intersections[0].features[0].name"
    assert tinylight("hil", "--policy", "badfeat.json") == 2
    assert one_line(capsys).startswith(f"tinylight: {place}: unknown feature {name}{hint}")
    assert tinylight("evaluate", "--network", "crossing", "--integer", "--agent", "badfeat.json", "--flows", "0") == 2
    assert one_line(capsys).startswith(f"tinylight: {place}: unknown feature {name}")


def test_policy_of_wrong_dimensions(crossing_policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(crossing_policy.read_text())
    content["intersections"][0]["layer2"]["weights"].pop()
    bad = change(crossing_policy, tmp_path / "bad.json", intersections=content["intersections"])
    assert tinylight("hil", "--policy", str(bad)) == 2
    assert "bad.json: intersections[0]: layer2.weights" in capsys.readouterr().err


def test_policy_of_another_network(crossing_policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight("hil", "--network", "arterial", "--policy", str(crossing_policy)) == 2
    assert "crossing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "changes", "named"),
    [
        ("flow_0.json", {"_0__interval": 0}, ["flow_0.json: [0].interval"]),
        ("flow_0.json", {"_0__route": ["nowhere", "elsewhere"]}, ["flow_0.json: [0].route", "nowhere"]),
        ("roadnet.json", {"roads__0__lanes": [{"width": "wide", "maxSpeed": 11}]}, ["roadnet.json: roads[0].lanes[0].width"]),
    ],
)
def test_spoilt_networks(
    file: str, changes: dict[str, object], named: list[str], data_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(data_set / file, **changes)
    assert tinylight("evaluate", "--network", "mine", "--agent", "SOTL", "--flows", "0") == 2
    error = capsys.readouterr().err
    for word in named:
        assert word in error


def test_lane_index_out_of_range(data_set: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roadnet = json.loads((data_set / "roadnet.json").read_text())
    number = next(i for i, each in enumerate(roadnet["intersections"]) if not each["virtual"])
    roadnet["intersections"][number]["roadLinks"][0]["laneLinks"][0]["startLaneIndex"] = 9
    (data_set / "roadnet.json").write_text(json.dumps(roadnet))
    assert tinylight("evaluate", "--network", "mine", "--agent", "SOTL", "--flows", "0") == 2
    assert f"intersections[{number}].roadLinks[0].laneLinks[0].startLaneIndex" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", '{"roads": []', "[1, 2"])
def test_malformed_json(text: str, data_set: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data_set / "roadnet.json").write_text(text)
    assert tinylight("evaluate", "--network", "mine", "--agent", "SOTL", "--flows", "0") == 2
    assert "roadnet.json: line 1" in capsys.readouterr().err


def test_missing_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], crossing_policy: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tinylight("size", "--policy", str(crossing_policy)) == 2
    error = capsys.readouterr().err
    assert "avr-gcc" in error and "apt" in error


def test_a_kernel_that_no_flash_could_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The generator refuses it in the middle of a build, whose log is not shown."""
    district = tmp_path / "district.json"
    write_random_policy(district, shapes=[((12, 9), (18, 20), 9)] * 12)
    assert tinylight("size", "--kernel", "unrolled", "--policy", str(district)) == 2
    fault = r"unrolled takes 1\d{5} bytes, too much even for measuring; take table"
    assert re.fullmatch(f"tinylight: --kernel: {re.escape(str(district))}: {fault}", one_line(capsys))


def test_evaluate_writes_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    assert tinylight("evaluate", "--network", "crossing", "--agent", "FixedTime", "--flows", "0,2", "--json", str(out)) == 0
    rows = json.loads(out.read_text())
    assert [(row["network"], row["flow"], row["agent"]) for row in rows] == [
        ("crossing", 0, "FixedTime"),
        ("crossing", 2, "FixedTime"),
    ]
    assert set(rows[0]) >= {"network", "flow", "seed", "agent", "average_travel_time_s", "throughput_veh_per_min"}
    assert rows[0]["average_travel_time_s"] > 30


def test_one_flow_may_be_named_as_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.json"
    run = ("evaluate", "--network", "crossing", "--agent", "FixedTime", "--json", str(out), "--flow")
    assert tinylight(*run, "1") == 0
    assert [row["flow"] for row in json.loads(out.read_text())] == [1]
    capsys.readouterr()
    assert tinylight(*run, "1-") == 2
    assert one_line(capsys).startswith("tinylight: --flows: '1-' is not a number or a range")


def test_networks_lists_the_built_in_ones(tmp_path: Path) -> None:
    out = tmp_path / "networks.json"
    assert tinylight("networks", "--json", str(out)) == 0
    assert {"crossing", "arterial"} <= {row["network"] for row in json.loads(out.read_text())}


def test_size_shows_the_ranges_that_the_integers_cover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the feature's unit, one row for each feature and range."""
    from model.policy.file import save_policy
    from model.policy.synthetic import random_intersection, random_policy

    parts = []
    for n, multiplier in enumerate((1, 1, 2)):
        part = random_intersection(n, intersection_id=f"light_{n}", widths=(4, 1), n_phases=2)
        first = {"name": "inlane_2_num_vehicle", "offset": 0, "multiplier": multiplier, "shift": 0}
        second = {"name": "inlane_2_delay", "lsb_per_unit": 256, "offset": -128, "multiplier": 1, "shift": 6}
        inputs = [f.model_copy(update=update) for f, update in zip(part.features, (first, second), strict=True)]
        parts.append(part.model_copy(update={"features": inputs}))
    file, out = tmp_path / "policy.json", tmp_path / "size.json"
    save_policy(random_policy(parts), file)
    assert tinylight("size", "--policy", str(file), "--kernel", "table", "--json", str(out)) == 0
    ranges = json.loads(out.read_text())["ranges"]
    delay = (256 * 64 - 1 - 32 - 128) / 256
    assert [(each["least"], each["greatest"], len(each["intersections"])) for each in ranges] == [
        (0, 127, 1),
        (0, 255, 2),
        (-0.5, delay, 3),
    ]
    assert ranges[0]["unit"] == "vehicles" and ranges[0]["intersections"] == ["light_2"]
    shown = capsys.readouterr().out
    assert "range that the integers cover" in shown and f"{delay:g}" in shown


def test_size_fits(tmp_path: Path) -> None:
    out = tmp_path / "size.json"
    assert tinylight("size", "--network", "crossing", "--json", str(out)) == 0
    content = json.loads(out.read_text())
    assert content["fits"] and 8_000 < content["flash_bytes"] <= 16_384 and Path(content["map"]).is_file()
    assert content["kernel"] == "unrolled" and 20 <= content["stack_bound_bytes"] <= 60


def test_size_shows_what_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, other = tmp_path / "table.json", tmp_path / "other.json"
    assert tinylight("size", "--network", "crossing", "--kernel", "table", "--json", str(out)) == 0
    before = json.loads(out.read_text())
    assert 3_000 < before["flash_bytes"] < 5_000
    assert tinylight("size", "--network", "crossing", "--against", str(out), "--json", str(other)) == 0
    change = json.loads(other.read_text())["flash_bytes"] - before["flash_bytes"]
    shown = capsys.readouterr().out
    assert f"{change:+d}" in shown and "avr/table.o" in shown
    out.write_text("{}")
    assert tinylight("size", "--network", "crossing", "--against", str(out)) == 2


def test_a_policy_is_held_against_all_networks_before_the_first_runs(
    crossing_policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the result of the first is lost."""
    assert tinylight("hil", "--network", "crossing", "--network", "arterial", "--policy", str(crossing_policy)) == 2
    seen = capsys.readouterr()
    assert "made for crossing" in " ".join(seen.err.split()) and "latency" not in seen.out
