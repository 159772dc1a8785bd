"""pytest --hil: skipped with the reason without it, a failure when the board is missing, a table at the end.

What stops before a loop runs is tried in this process, which has imported what the plugin imports: a process takes seconds.
"""

import importlib
import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace

import pytest
import serial

from model import pretrained_policy
from model.policy.file import load_policy, save_policy
from streetflow.control.environment import Environment
from tests.helpers.board_server import Server, firmware
from tests.helpers.fake_board import HELLO

pytest_plugins = ["pytester"]

for late in (
    "boards.find_port",
    "build.firmware",
    "light.light_run",
    "loop.fault_spec",
    "loop.job",
    "loop.summary",
    "own_packages",
    "report.page",
    "wire.probe",
):
    importlib.import_module(f"hil.{late}")  # pytester makes Python forget what is imported during a run in this process

MARKUP = re.compile(r"\[/?[a-z ]*\]|\x1b|[\u2500-\u259f]")  # of rich, of terminals, of tables

TEST = """
    import pytest

    def test_loop(closed_loop):
        assert closed_loop().passed

    def test_board(board):
        assert board.name

    @pytest.mark.hil
    def test_marked():
        pass

    def test_other():
        pass
"""


@pytest.fixture(autouse=True, scope="module")
def numba_has_imported_what_it_imports_late() -> None:
    """With its first call of compiled code: imported a second time, after it was forgotten, it would refuse all work."""
    Environment("crossing", 0).reset()


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(TEST)
    return pytester


def test_without_a_board_the_tests_are_skipped_with_the_reason(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("-rs")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(["*needs a board: run pytest with --hil=simavr*"])


def test_a_missing_board_is_a_failure(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--hil=/dev/ttyNone")
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 2
    result.stdout.fnmatch_lines(["*--hil: /dev/ttyNone: there is no such port*"])


def test_an_unknown_network_is_a_failure(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--hil=simavr", "--hil-network=crosing")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["--hil-network: crosing: unknown network; did you mean crossing?*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hil=/dev/ttyNone"], "--hil: /dev/ttyNone: there is no such port: *"),
        (["--hil=simvar"], "--hil: simvar: there is no such port; did you mean simavr?*"),
        (["--hil=simavr", "--hil-faults=bits=1"], "--hil-faults: 'bits=1' is not a fault; *"),
        (["--hil=host", "--hil-faults=hang@3"], "--hil-faults: host can't do 'hang' on demand; *"),
        (["--hil=simavr", "--hil-baud=3"], "--hil-baud: 3 baud is out of range: 1200 to 2000000"),
        (["--hil=simavr", "--hil-f-cpu=3"], "--hil-f-cpu: 3 Hz is out of range: *"),
        (
            ["--hil=simavr", "--hil-budget=0"],
            "--hil-budget: 0.0 s is not a possible time for a decision: it must be above 0 and finite",
        ),
        (["--hil=simavr", "--hil-kernel=fast"], "--hil-kernel: unknown kernel 'fast'; there are auto, unrolled, table, c"),
        (["--hil=host", "--hil-kernel=table"], "--hil-kernel: table: the board host has only the portable C (c or auto)"),
        (
            ["--hil=simavr", "--hil-baud=19200", "--hil-f-cpu=1000000"],
            "--hil-baud: 19200 at 1000000 Hz: the nearest is 17857, off by -7.0 % (limit 2.5 %)",
        ),
        (["--hil=simavr", "--hil-policy=none.json"], "--hil-policy: none.json: there is no such file *"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_bad_input_is_reported_in_one_line(suite: pytest.Pytester, options: list[str], message: str) -> None:
    """Without a traceback."""
    result = suite.runpytest_inprocess(*options, "-k", "loop")
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1 and "passed" not in outcomes
    result.stdout.fnmatch_lines([message])
    for traced in ("E  *", "*.py:[0-9]*", "During handling*"):
        result.stdout.no_fnmatch_line(traced)


def test_a_policys_unknown_feature_is_told_with_its_place(suite: pytest.Pytester) -> None:
    policy = load_policy(pretrained_policy("crossing"))
    (part,) = policy.intersections
    named = [part.features[0].model_copy(update={"name": "nonsense"}), *part.features[1:]]
    draft = policy.model_copy(update={"intersections": [part.model_copy(update={"features": named})]})
    save_policy(draft.model_copy(update={"sha256": draft.compute_sha256()}), suite.path / "badfeat.json")
    result = suite.runpytest_inprocess("--hil=host", "--hil-policy=badfeat.json", "-k", "loop")
    result.stdout.fnmatch_lines(
        ["--hil-policy: badfeat.json: intersections[[]0[]].features[[]0[]].name: unknown feature nonsense"]
    )


def test_verdicts_are_printed_and_reported(suite: pytest.Pytester) -> None:
    """Also by workers of pytest-xdist: the page is written once, by the process that gathers."""
    options = ("--hil=simavr", "--hil-baud=500000", "--junitxml=report.xml", "--hil-report=report.html", "-n1")
    result = suite.runpytest_subprocess(*options)
    result.assert_outcomes(passed=4)
    page = (suite.path / "report.html").read_text()
    assert page.count("<article id=") == 1 and "test_loop" in page and "500,000 baud" in page
    result.stdout.fnmatch_lines(["hardware in the loop: report in report.html"])
    result.stdout.fnmatch_lines(["*hardware in the loop*", "*crossing/0 simavr*"])
    report = (suite.path / "report.xml").read_text()
    run = re.search('name="hil.run" value="([^"]*)"', report)
    assert run is not None and re.fullmatch(
        r"crossing/0 simavr 16 MHz 500000 baud: pass; compute cycles [0-9,]+, response ms [0-9.]+, round trip ms [0-9.]+, "
        r"flash B \d+, RAM B \d+, equal 180/180, travel time s [0-9.]+",
        run[1],
    )
    assert 'name="hil.latency"' in report and 'name="hil.equality" value="pass: 180 of 180' in report
    properties = {each.get("name"): each.get("value") for each in ElementTree.parse(suite.path / "report.xml").iter("property")}
    assert len(properties) > 10
    for name, value in properties.items():
        assert value is not None and value.isprintable() and not MARKUP.search(value), f"{name} is plain text: {value}"


def test_a_failing_verdicts_property_says_why_in_plain_text(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_loop(closed_loop):
            verdict = closed_loop(firmware_flags=("-DTL_FLIP_WEIGHT=3",), sweep=False)
            assert not verdict.passed
        """
    )
    pytester.runpytest_subprocess("--hil=simavr", "--junitxml=report.xml").assert_outcomes(passed=1)
    properties = {
        each.get("name"): each.get("value") for each in ElementTree.parse(pytester.path / "report.xml").iter("property")
    }
    equality, run = properties["hil.equality"], properties["hil.run"]
    assert equality is not None and re.match(r"fail: \d+ of 180 decisions \(limit .*\): first at decision \d+", equality)
    assert run is not None and ": FAIL: line, equality, traffic; compute cycles" in run and not MARKUP.search(run)


def test_a_report_that_cant_be_written_is_told_before_the_tests(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--hil=simavr", "--hil-report=none/report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --hil-report: none/report.html: can't be written: there is no folder none"])


def test_without_a_verdict_no_report_is_written(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--hil-report=report.html")
    result.stdout.fnmatch_lines(["--hil-report: no verdict was reached, so report.html is not written"])
    assert not (suite.path / "report.html").exists()


def test_fixtures_and_parameters_of_the_same_name_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def board():
            return 1

        def test_own_fixture(board):
            assert board == 2

        @pytest.mark.parametrize("closed_loop", [1])
        def test_parameter(closed_loop):
            assert closed_loop == 2
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(failed=2)


@pytest.mark.parametrize("option", ["", "-network", "-policy", "-baud", "-f-cpu", "-budget", "-faults", "-kernel"])
def test_an_empty_value_is_a_failure_not_a_skip_nor_a_default(suite: pytest.Pytester, option: str) -> None:
    result = suite.runpytest_inprocess(*([] if option == "" else ["--hil=simavr"]), f"--hil{option}=")
    if option in ("-baud", "-f-cpu", "-budget"):  # pytest itself asks for a number
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*argument --hil{option}: invalid * value: ''*"])
        return
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 2 and "skipped" not in outcomes
    result.stdout.fnmatch_lines([f"--hil{option}: has no value"])


def test_a_firmware_built_with_other_settings_is_refused_with_the_field_of_the_job(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from dataclasses import replace

        import pytest

        from hil.wire.link import Link, WrongFirmware

        def test_setting(board, hil_job):
            for field, value in (("f_cpu_hz", 8_000_000), ("baud", 9600), ("kernel", "table"), ("min_green_s", 5)):
                with pytest.raises(WrongFirmware, match=rf" \\(`{field}`\\)$"):
                    Link(board).hello(setting=replace(hil_job, **{field: value}).setting)
        """
    )
    pytester.runpytest_subprocess("--hil=simavr").assert_outcomes(passed=1)


ALIVE = """
    def test_board_is_alive(board):
        assert board.is_open
"""


def test_a_port_where_nothing_answers_fails_in_setup(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hil.boards.SerialBoard.boot_us", 300_000.0)
    monkeypatch.setattr("hil.wire.probe.PATIENCE_S", 0.05)
    pytester.makepyfile(ALIVE)
    result = pytester.runpytest_inprocess("--hil=loop://")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["--hil: loop://: *Answer: *"])
    result.stdout.no_fnmatch_line("*.py:[0-9]*")


def test_a_board_with_another_policy_or_firmware_fails_in_setup(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ALIVE)
    sha256 = load_policy(pretrained_policy("crossing")).sha256
    for hello, message in (
        (HELLO, f"WrongPolicy: the board holds policy {HELLO.policy_sha256[:12]}, not {sha256[:12]}: *"),
        (
            replace(HELLO, policy_sha256=sha256, f_cpu_hz=8_000_000),
            "WrongFirmware: *its clock is 8000000 Hz, not 16000000 Hz (--hil-f-cpu)",
        ),
    ):
        server = Server(firmware(hello))
        result = pytester.runpytest_inprocess(f"--hil={server.url}")
        server.hang_up()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"--hil: {server.url}: {message}"])


def test_a_board_that_answers_is_greeted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ALIVE)
    server = Server(firmware(replace(HELLO, policy_sha256=load_policy(pretrained_policy("crossing")).sha256)))
    pytester.runpytest_subprocess(f"--hil={server.url}").assert_outcomes(passed=1)
    server.hang_up()


def test_the_host_build_is_greeted_too(pytester: pytest.Pytester) -> None:
    """As the emulated chip is in the tests above."""
    pytester.makepyfile(ALIVE)
    pytester.runpytest_subprocess("--hil=host").assert_outcomes(passed=1)


WORKERS = """
    import os
    import pytest

    @pytest.mark.parametrize("number", range(6))
    def test_worker(request, number):
        request.node.user_properties.append(("worker", os.environ["PYTEST_XDIST_WORKER"]))

    @pytest.mark.hil
    @pytest.mark.parametrize("number", range(6))
    def test_port(record_property, number):
        record_property("port", os.environ["PYTEST_XDIST_WORKER"])

    def test_open(board):
        pass
"""


@pytest.fixture
def port() -> Iterator[str]:
    """A port that is open already, as in another worker; nothing answers there."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    with serial.Serial(name, exclusive=True):
        yield name
    os.close(master)


def workers(pytester: pytest.Pytester, *options: str) -> set[str]:
    """The workers that ran tests marked hil."""
    pytester.runpytest_subprocess(*options, "-n", "2", "--junitxml=report.xml", "--strict-markers")
    return set(re.findall('name="port" value="(gw.)"', (pytester.path / "report.xml").read_text()))


def test_tests_of_one_port_run_in_one_worker(pytester: pytest.Pytester, port: str) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(WORKERS)
    advice = "use -n without --dist, or --dist=loadgroup"
    for options in ([], ["--dist=loadgroup"]):
        assert len(workers(pytester, f"--hil={port}", *options)) == 1
        report = (pytester.path / "report.xml").read_text()
        assert "is in use by another program" in report and advice not in report
    assert len(workers(pytester, f"--hil={port}", "--dist=load")) == 2
    report = (pytester.path / "report.xml").read_text()
    assert re.search(
        f"--hil: {port}: is in use by another program: .*; a port serves one worker of pytest-xdist: {advice}", report
    )
    assert len(workers(pytester, "--hil=host")) == 2, "each worker has an emulated board of its own"
