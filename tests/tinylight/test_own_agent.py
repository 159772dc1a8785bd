"""`--agent module:Class`: docs/own-agent.md as its readers use it, and one clear line for what is wrong with an agent."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from model import pretrained_policy
from model.evaluate import evaluate
from model.report.tasks import expand_models, is_done, plan, run_task
from streetflow.control.own_agent import offered_agents
from streetflow.errors import InputError
from tests.helpers.page_code import code_blocks, commands
from tests.helpers.run_cli import tinylight
from tests.helpers.short_network import SHORT, write_short_crossing

PAGE = "own-agent.md"
GOOD = code_blocks(PAGE, "python")[0]
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tests work in a folder of their own, and leave no module and no path behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if name.startswith(("my_agent", "agent_")):
            del sys.modules[name]


def written(source: str) -> str:
    """A module of a new name with this source."""
    name = f"agent_{next(_numbers)}"
    Path(f"{name}.py").write_text(source)
    return name


def test_the_page_does_what_it_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands; the figures in table and `evaluate` are the same; the part in Python agrees, too."""
    monkeypatch.setenv("COLUMNS", "200")
    Path("my_agent.py").write_text(GOOD)
    for arguments in commands(PAGE):
        if arguments[0] == "hil":
            continue  # test_the_pages_agent_decides_for_the_lamps
        extra = {"evaluate": ("--json", "rows.json"), "table": ("--processes", "1")}
        assert tinylight(*arguments, *extra.get(arguments[0], ())) == 0, capsys.readouterr().err
    rows = json.loads(Path("rows.json").read_text())
    assert [row["agent"] for row in rows] == ["my_agent:MyAgent"] * 3 and {row["clearance"] for row in rows} == {"hold"}
    cell = json.loads(Path("my_table/crossing/my_agent:MyAgent/flow_1.json").read_text())
    assert cell["outcomes"]["rule"]["average_travel_time_s"] == rows[1]["average_travel_time_s"]
    assert Path("my_agent.html").is_file()
    capsys.readouterr()
    exec(compile(code_blocks(PAGE, "python")[1], PAGE, "exec"), {})
    assert str(rows[0]["average_travel_time_s"]) in capsys.readouterr().out


def test_the_templates_agent_is_better_than_fixed_time() -> None:
    Path("my_agent.py").write_text(GOOD)
    own, fixed = (evaluate("crossing", agent, [0])[0] for agent in ("my_agent:MyAgent", "FixedTime"))
    assert own.average_travel_time_s < 0.9 * fixed.average_travel_time_s


def test_a_tables_run_is_made_again_when_the_agents_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_short_crossing(tmp_path / "data", 600)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    file = Path(f"{written(GOOD)}.py")
    assert expand_models(f"{file.stem}:MyAgent") == [f"{file.stem}:MyAgent"]
    (task,), _ = plan([SHORT], [f"{file.stem}:MyAgent"], [0])
    run_task(task, tmp_path, lambda _fraction: None)
    assert is_done(task, tmp_path)
    sys.modules.pop(file.stem)
    file.write_text(GOOD.replace("counts.argmax", "counts.argmin"))
    assert not is_done(task, tmp_path)


def test_an_installed_package_offers_agents_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = written(GOOD)
    folder = tmp_path / "clever-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: clever\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[tinylight.agents]\nclever = {module}:MyAgent\n")
    sys.path.append(str(tmp_path))
    assert offered_agents() == ["clever"]
    by_name, by_class = (evaluate("crossing", agent, [0])[0] for agent in ("clever", f"{module}:MyAgent"))
    assert by_name.average_travel_time_s == by_class.average_travel_time_s
    assert tinylight("evaluate", "--network", "crossing", "--agent", "clevr") == 2
    assert "did you mean clever?" in capsys.readouterr().err


@pytest.mark.hil
def test_the_pages_agent_decides_for_the_lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chip gets each wish, the shell's lamps are judged, and the agent knows what they show."""
    write_short_crossing(tmp_path / "data", 160)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    told = "print(self.environment.time_s, self.environment.current_action[0], actions[0], file=open('seen.txt', 'a'))"
    Path("my_agent.py").write_text(GOOD.replace("        return np.array", f"        {told}\n        return np.array"))
    (hil,) = (arguments for arguments in commands(PAGE) if arguments[0] == "hil")
    command = [SHORT if word == "crossing" else word for word in hil]
    assert tinylight(*command, "--json", "verdict.json") == 0
    (run,) = json.loads(Path("verdict.json").read_text())["runs"]
    outcomes = {check["name"]: check["outcome"] for check in run["checks"]}
    assert outcomes["lamps"] == outcomes["decisions"] == outcomes["latency"] == "pass"
    assert run["provenance"]["agent"] == "my_agent:MyAgent"
    lines = [tuple(map(int, line.split())) for line in Path("seen.txt").read_text().splitlines()]
    live, simulated = lines[:8], lines[8:]  # in the loop; then the same agent with simulated lights
    assert [second for second, _, _ in live] == list(range(0, 160, 20))
    wishes = [wish for _, _, wish in live]
    assert len(set(wishes)) > 1 and [shown for _, shown, _ in live[1:]] == wishes[:-1]
    assert live == simulated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--agent", "MaxPressure"], "--agent: decides on the host, and the chip drives the lamps: --mode light"),
        (["--agent", "MaxPresure", "--mode", "light"], "did you mean MaxPressure"),
        (["--agent", "MaxPressure", "--mode", "light"], "--network: is needed with --agent"),
        (["--agent", "MaxPressure", "--mode", "light", "--report", "x.html"], "--report: is for a policy that the chip"),
        (["--agent", "p.json", "--mode", "light", "--network", "crossing"], "which the chip itself decides by"),
    ],
)
def test_agents_that_cannot_decide_for_lamps(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.json").write_bytes(pretrained_policy("crossing").read_bytes())
    assert tinylight("hil", *options) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


FAULTS = {
    "no class": ("x = 1", "has no MyAgent"),
    "near": (GOOD.replace("MyAgent", "MyAgents"), "has no MyAgent; did you mean MyAgents?"),
    "no function": ("MyAgent = 3", "MyAgent is neither a class nor a function"),
    "syntax": ("class MyAgent\n", ".py:1: SyntaxError: expected ':'"),
    "import": ("import not_there", "making it: ModuleNotFoundError: No module named 'not_there' ("),
    "exit": ("import sys\nsys.exit(0)", "making it: SystemExit: 0 ("),
    "arguments": (GOOD.replace("    features =", "    def __init__(self, size): ...\n    features ="), "making it: TypeError"),
    "no act": (GOOD.replace("def act", "def action"), "act: the agent has no such method; it needs reset and act"),
    "no features": (GOOD.replace("features =", "feature ="), "features: must be a preset (all, release, deployable) or a list"),
    "features": (GOOD.replace("phase_2_num_vehicle", "phase_2_num_vehicles"), "features: phase_2_num_vehicles: unknown"),
    "not names": (GOOD.replace('["phase_2_num_vehicle"]', "[3]"), "features: must be a preset"),
    "interval": (GOOD.replace("    features =", "    decision_interval_s = 0\n    features ="),
                 "decision_interval_s: must be a whole number of seconds, at least 1, is 0"),
    "reset": (GOOD.replace("self.features)", "['inter_2_delay'])"), "environment: features: inter_2_delay is needed"),
    "act": (GOOD.replace("        actions = []", "        actions = [] if self.environment.time_s < 40 else [][7]"),
            "act at second 40: IndexError: list index out of range ("),
    "shape": (GOOD.replace("np.array(actions)", "np.array(actions * 2)"), "returned int32 of shape (2,); it must return 1"),
    "floats": (GOOD.replace("np.array(actions)", "np.array(actions) * 1.0"), "returned float64 of shape (1,)"),
    "nothing": (GOOD.replace("return np.array(actions)", "pass"), "returned object of shape ()"),
    "range": (GOOD.replace("np.array(actions)", "np.array(actions) + 8"), "for light 0, which has 0 to"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_line_says_what_is_wrong(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    source, message = FAULTS[fault]
    assert source != GOOD
    agent = f"{written(source)}:MyAgent"
    assert tinylight("evaluate", "--network", "crossing", "--agent", agent, "--flows", "0") == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert message in captured.err
    if fault not in ("reset",):
        assert agent in captured.err


def test_a_fault_names_the_line_of_the_agents_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the exception comes from a library that it calls."""
    source = GOOD.replace("np.array(actions)", "np.reshape(actions, 3)")
    line = source[: source.index("np.reshape")].count("\n") + 1
    module = written(source)
    assert tinylight("evaluate", "--network", "crossing", "--agent", f"{module}:MyAgent", "--flows", "0") == 2
    assert f"{module}.py:{line})" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("not_there:MyAgent", "no module not_there on Python's path or in this folder"),
        ("not_there:X", "tinylight: not_there:X: no module not_there"),
        ("numpy:no_such_thing", "has no no_such_thing"),
        ("my agent:MyAgent", "write module:Class, such as my_agent:MyAgent"),
        (":MyAgent", "write module:Class"),
        ("my_agent:", "write module:Class"),
        ("my_agent", "or module:Class"),
    ],
)
def test_names_that_are_none(agent: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("evaluate", "--network", "crossing", "--agent", agent), ("table", "--models", agent)):
        assert tinylight(*arguments) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        if arguments[0] == "evaluate" or ":" in agent:
            assert message in captured.err


def test_it_has_no_integer_form() -> None:
    with pytest.raises(InputError, match="has no integer form"):
        evaluate("crossing", f"{written(GOOD)}:MyAgent", [0], integer=True)
