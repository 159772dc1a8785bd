"""pytest --hil=simavr | host | PORT: the harness as a pytest plugin.

Fixtures: `board` (an open board that holds the policy's firmware and has said HELLO) and `closed_loop` (runs the loop and gives
its Verdict). Tests that use them, or are marked `hil`, are skipped with the reason when no board was asked for; when one was
asked for and is not there, they fail. All verdicts reached are printed at the end, written into the JUnit report, and with
--hil-report into one page.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hil.boards import Board
    from hil.loop.job import Job
    from hil.loop.verdict import Verdict
    from streetflow.errors import InputError

EMULATED = ("simavr", "host")  # as of hil.boards, which takes long to import
GROUPED = "loadgroup"  # of pytest-xdist's --dist
GROUP = "hil"  # of the tests of one port
IN_USE = "in use"  # what hil.boards.port_trouble says of a port that another process has open
ONE_WORKER = f"; a port serves one worker of pytest-xdist: use -n without --dist, or --dist={GROUPED}"
NO_BOARD = "needs a board: run pytest with --hil=simavr, --hil=host or --hil=PORT (a serial port or pyserial URL)"
FIXTURES = {"board", "closed_loop", "hil_job"}
OPTIONS = {
    "board": "--hil",
    "network": "--hil-network",
    "policy_file": "--hil-policy",
    "baud": "--hil-baud",
    "f_cpu_hz": "--hil-f-cpu",
    "budget_s": "--hil-budget",
    "faults": "--hil-faults",
    "kernel": "--hil-kernel",
    "mode": "--hil-mode",
    "monitor": "--hil-monitor",
    "pedestrians": "--hil-pedestrians",
    "detector_faults": "--hil-detector-faults",
    "lamp_faults": "--hil-lamp-faults",
}  # fields of hil.loop.job.Job, and which option sets them
RUN_PROPERTY = "hil.run"  # of a test's report: a run in plain text
ROWS = pytest.StashKey[list[list[str]]]()  # of a test: its runs as rows of the summary
REPORTED_ROWS = "hil_rows"  # the same in its report, which may come from a worker of pytest-xdist
SECTIONS = pytest.StashKey[list[Any]]()  # of a test: its runs as sections of the page
REPORTED_SECTIONS = "hil_sections"
REPORT_OPTION = "--hil-report"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hil", "hardware in the loop (tinylight-hil)")
    group.addoption(
        "--hil",
        metavar="BOARD",
        help="run the tests that need a board on this one: simavr (emulated ATmega328P), host (the firmware built for this "
        "machine), a serial port or pyserial URL such as /dev/ttyUSB0, or auto, which finds the port. Without it they are "
        "skipped; a board that is named "
        "here and missing is a failure.",
    )
    group.addoption(
        "--hil-network",
        metavar="NAME",
        default="crossing",
        help="network of the closed loop (default: crossing)",
    )
    group.addoption(
        "--hil-policy",
        metavar="FILE",
        help="policy file on the board (default: the trained one of the network)",
    )
    group.addoption("--hil-baud", metavar="N", type=int, default=115_200, help="baud rate (default: 115200)")
    group.addoption(
        "--hil-f-cpu",
        metavar="HZ",
        type=int,
        default=16_000_000,
        help="clock of the chip (default: 16000000)",
    )
    group.addoption(
        "--hil-budget",
        metavar="SECONDS",
        type=float,
        default=0.1,
        help="what a decision may take, round trip (default: 0.1); more for an emulated board on a busy machine",
    )
    group.addoption(
        "--hil-faults",
        metavar="SPEC",
        help="faults on the line and the chip, on purpose, such as bytes=0.05,reset@40,seed=7",
    )
    group.addoption(
        "--hil-mode",
        metavar="MODE",
        default="answer",
        help="answer, light (the chip drives the lamps at its pins) or alone (it senses, too); default: answer",
    )
    group.addoption("--hil-monitor", action="store_true", help="a second chip watches the lamps (modes light and alone)")
    group.addoption(
        "--hil-pedestrians", metavar="N", type=float, default=0.0, help="how many press each crosswalk's button in an hour"
    )
    group.addoption("--hil-detector-faults", metavar="SPEC", help="faulty detectors, such as dead:10%%,seed=7 (mode alone)")
    group.addoption("--hil-lamp-faults", metavar="SPEC", help="faults of the lamps' wires, such as on@60:green2")
    group.addoption(
        REPORT_OPTION,
        metavar="OUT.html",
        type=Path,
        help="write a report of all verdicts reached: one page, all inside, a section for each run",
    )
    group.addoption(
        "--hil-kernel",
        metavar="KERNEL",
        default="auto",
        help="unrolled, table or c (default: auto, unrolled where it fits the flash, else table)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hil: needs a board; runs with --hil=simavr, --hil=host or --hil=PORT")
    if (page := config.getoption(REPORT_OPTION)) is not None:
        from streetflow.errors import InputError
        from streetflow.files import require_writable

        try:
            require_writable(page)
        except InputError as fault:
            raise pytest.UsageError(f"{REPORT_OPTION}: {fault}") from None


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """With only -n, tests are distributed by groups, so that those of one port run in one worker."""
    several = getattr(config.option, "numprocesses", None) is not None
    if several and _is_port(config) and config.option.dist == "no" and not config.option.distload:
        config.option.dist = GROUPED
    if getattr(config, "workerinput", {}).get(GROUPED):
        config.option.loadgroup = True  # a worker parses the command line again
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes on to a worker of pytest-xdist how tests are distributed."""
    node.workerinput[GROUPED] = node.config.option.dist == GROUPED


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    ours = [item for item in items if item.get_closest_marker("hil") or _uses_our_fixture(item)]
    if config.getoption("--hil") is None:
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=NO_BOARD))
    result = yield
    if _is_port(config) and config.getoption(GROUPED, False):
        for item in ours:
            _put_into_group(item)
    return result


def _put_into_group(item: pytest.Item) -> None:
    """As pytest-xdist does with its mark xdist_group: by a suffix of the test's id. Its version 3.8 sets the attribute that
    held the id before pytest 9.2, so with pytest 9.2 its own groups have no effect."""
    nodeid: Any = f"{item.nodeid}@{GROUP}"
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(nodeid)
    else:
        item._nodeid = nodeid  # type: ignore[attr-defined]


def _is_port(config: pytest.Config) -> bool:
    """Whether the board is behind a port, which only one process at a time can open."""
    board = config.getoption("--hil")
    return board is not None and board not in EMULATED


def _ungrouped(config: pytest.Config) -> bool:
    """Whether this is one of several workers of pytest-xdist that may all get tests of the same port."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1 and not config.getoption(GROUPED, False)


def _uses_our_fixture(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of this plugin, and not another one (or a parameter) of the same name."""
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    used = FIXTURES & set(getattr(item, "fixturenames", ()))
    return any(name in definitions and definitions[name][-1].func.__module__ == __name__ for name in used)


@contextmanager
def _bad_input_reported(config: pytest.Config) -> Iterator[None]:
    """Bad input fails the test with the one line that says what is wrong, as the command line does."""
    from hil.build.firmware import BuildError
    from streetflow.errors import InputError, fields_from

    try:
        with fields_from(lambda field: (OPTIONS[field], "") if field in OPTIONS else None):
            yield
    except BuildError as fault:
        raise pytest.fail.Exception(str(fault), pytrace=False) from None
    except InputError as fault:
        raise pytest.fail.Exception(_with_option(fault, config), pytrace=False) from None


def _with_option(fault: "InputError", config: pytest.Config) -> str:
    """The fault; where it starts with an option's value, with the option's name in front."""
    values = {name: config.getoption(name) for name in OPTIONS.values()}
    option = next((name for name, value in values.items() if value and Path(str(value)) == Path(fault.file)), None)
    shared = option == OPTIONS["board"] and IN_USE in fault.fault and _ungrouped(config)
    return f"{option}: {fault}{ONE_WORKER if shared else ''}" if option else str(fault)


@pytest.fixture(scope="session")
def hil_job(request: pytest.FixtureRequest) -> "Job":
    """The job that the command line describes."""
    from hil.own_packages import shadowed

    if (fault := shadowed()) is not None:
        raise pytest.fail.Exception(fault, pytrace=False)
    from hil.boards.find_port import AUTO, find_port
    from hil.loop.detector_faults import DetectorFaultSpec
    from hil.loop.fault_spec import FaultSpec
    from hil.loop.job import Job
    from hil.loop.lamp_faults import parse_lamp_faults
    from streetflow.errors import InputError

    option = request.config.getoption
    network, board = option("--hil-network"), option("--hil")
    policy = option("--hil-policy")
    with _bad_input_reported(request.config):
        for name in OPTIONS.values():
            if option(name) == "":
                raise InputError(name, "", "has no value")
        return Job.named(
            network,
            0,
            Path(policy) if policy else None,
            board=find_port().port if board == AUTO else board,
            f_cpu_hz=option("--hil-f-cpu"),
            baud=option("--hil-baud"),
            budget_s=option("--hil-budget"),
            faults=FaultSpec.parse(option("--hil-faults")) if option("--hil-faults") else None,
            kernel=option("--hil-kernel"),
            mode=option("--hil-mode"),
            monitor=option("--hil-monitor"),
            pedestrians=option("--hil-pedestrians"),
            detector_faults=DetectorFaultSpec.parse(spec) if (spec := option("--hil-detector-faults")) else None,
            lamp_faults=parse_lamp_faults(spec) if (spec := option("--hil-lamp-faults")) else (),
        )


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest, hil_job: "Job") -> Iterator["Board"]:
    """The requested board, open, with the handshake done, holding the firmware of the policy."""
    from hil.boards import open_board
    from hil.loop.job import build
    from hil.wire.link import Link
    from hil.wire.probe import handshake_fault
    from hil.words import named

    with _bad_input_reported(request.config):
        firmware, _ = build(hil_job)
        opened = open_board(hil_job.board, firmware, f_cpu_hz=hil_job.f_cpu_hz, baud=hil_job.baud)
    with opened:
        fault = handshake_fault(Link(opened, budget_s=hil_job.budget_s), firmware.policy_sha256, hil_job.setting)
        if fault is not None:
            raise pytest.fail.Exception(f"{OPTIONS['board']}: {hil_job.board}: {named(fault, OPTIONS)}", pytrace=False)
        yield opened


@pytest.fixture
def closed_loop(request: pytest.FixtureRequest, hil_job: "Job") -> Callable[..., "Verdict"]:
    """closed_loop(**changes) runs the job, with fields of `hil.loop.job.Job` changed, and returns its Verdict."""
    from hil.light.job import run_light
    from hil.loop.job import run_job
    from hil.loop.summary import summary_row, summary_text

    def run(**changes: object) -> "Verdict":
        job = replace(hil_job, **changes)  # type: ignore[arg-type]
        shared = job.board == hil_job.board and job.board not in EMULATED and job.mode == "answer"  # not twice
        opened = request.getfixturevalue("board") if shared else None
        with _bad_input_reported(request.config):
            verdict = run_job(job, opened=opened) if job.mode == "answer" else run_light(job)[0]
        verdict = verdict.naming(OPTIONS)
        for check in verdict.checks:
            shown = f"{check.outcome}: {check.measured} (limit {check.limit})"
            if check.outcome != "pass" and check.detail:
                shown += f": {check.detail}"
            request.node.user_properties.append((f"hil.{check.name}", shown))
        label = f"{job.network.name}/{job.flow} {job.board}\n{job.f_cpu_hz / 1e6:g} MHz {job.baud} baud"
        row = summary_row(label, verdict)
        request.node.user_properties.append((RUN_PROPERTY, summary_text(row)))
        request.node.stash.setdefault(ROWS, []).append(row)
        if request.config.getoption(REPORT_OPTION) is not None:
            from hil.report.page import section

            request.node.stash.setdefault(SECTIONS, []).append(section(job, verdict, request.node.nodeid))
        return verdict

    return run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        setattr(report, REPORTED_ROWS, item.stash.get(ROWS, []))
        setattr(report, REPORTED_SECTIONS, item.stash.get(SECTIONS, []))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    rows = [row for report in reports for row in getattr(report, REPORTED_ROWS, [])]
    _write_page(terminalreporter, [each for report in reports for each in getattr(report, REPORTED_SECTIONS, [])])
    if not rows:
        return
    from rich.console import Console

    from hil.loop.summary import summary_table

    terminalreporter.section("hardware in the loop")
    with (console := Console(width=terminalreporter._tw.fullwidth, emoji=False)).capture() as capture:
        console.print(summary_table(rows))
    terminalreporter.write(capture.get())


def _write_page(terminalreporter: pytest.TerminalReporter, sections: list[Any]) -> None:
    """The report, where one was asked for and any verdict was reached."""
    page = terminalreporter.config.getoption(REPORT_OPTION)
    if page is None:
        return
    if not sections:
        terminalreporter.write_line(f"{REPORT_OPTION}: no verdict was reached, so {page} is not written")
        return
    from hil.report.page import write_report
    from streetflow.errors import InputError

    try:
        write_report(sections, page)
        terminalreporter.write_line(f"hardware in the loop: report in {page}")
    except InputError as fault:
        terminalreporter.write_line(f"{REPORT_OPTION}: {fault}", red=True)
