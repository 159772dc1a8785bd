"""`tinylight hil`: traffic with the chip in the loop, judged."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streetflow.errors import InputError
from tinylight.commands.options import (
    ClearanceOption,
    EngineOption,
    JsonOption,
    KernelOption,
    WatchdogOption,
    option_names,
    require_alone,
)
from tinylight.commands.which_board import port_of
from tinylight.console import console, progress_bar, require_writable, say, show

if TYPE_CHECKING:
    from hil.loop.job import Job, OnProgress
    from hil.loop.job_settings import JobSettings
    from hil.loop.verdict import Verdict


def hil(
    context: typer.Context,
    board: Annotated[
        str,
        typer.Option(
            metavar="simavr|host|auto|URL",
            help="Where the policy runs: simavr (emulated ATmega328P), host (the firmware built for this machine), or a real "
            "board's serial port or pyserial URL, such as /dev/ttyUSB0 or rfc2217://bench:4000; auto finds the port.",
        ),
    ] = "simavr",
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Road network (may be given more than once). Default: all at hand that a trained policy exists for.",
        ),
    ] = None,
    flow: Annotated[int, typer.Option(metavar="K", min=0, help="Which demand file of the network: flow_K.json.")] = 0,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy file. Default: the trained policy that comes with the network."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|module:Class",
            help="With --mode light: a rule or an agent of your own decides on the host, the chip's shell drives the lamps.",
        ),
    ] = None,
    engine: EngineOption = "builtin",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line.")] = 115_200,
    clearance: ClearanceOption = None,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="What a decision may take, round trip, retries included.")
    ] = 0.1,
    faults: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Put faults on the line and the chip on purpose, such as bytes=0.05,reset@40,silence@90:2,seed=7.",
        ),
    ] = None,
    kernel: KernelOption = "auto",
    boards: Annotated[
        str,
        typer.Option(
            metavar="one|per-intersection",
            help="One chip for all intersections of a network, or one for each, side by side (real ones: --board URL,URL,..., "
            "each with tinylight flash --intersection).",
        ),
    ] = "one",
    logits: Annotated[
        bool,
        typer.Option(help="Fetch all logits of every decision, instead of comparing their CRC."),
    ] = False,
    sweep: Annotated[
        bool, typer.Option(help="Try inputs and frames first that no traffic brings (verdicts sweep and conduct).")
    ] = True,
    watchdog: WatchdogOption = True,
    min_green: Annotated[
        int, typer.Option("--min-green", metavar="S", min=0, max=255, help="Seconds that a light stays green at least.")
    ] = 0,
    record: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Also keep all that passes between harness and board, for --replay (one network)."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judge a run that --record has kept: no board, no build. Alone, or with --policy."),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="answer|light|alone",
            help="answer: the chip names a phase, and the host shows it; light: the chip drives the lamps at its pins; alone: "
            "it senses vehicles, too, by detectors at its pins. In these two each crossing has a chip, whose lamps rule.",
        ),
    ] = "answer",
    monitor: Annotated[bool, typer.Option("--monitor", help="A second chip watches the lamps of each crossing.")] = False,
    pedestrians: Annotated[
        float, typer.Option(metavar="N", min=0, help="How many press each crosswalk's button in an hour (0: no crosswalks).")
    ] = 0.0,
    max_green: Annotated[
        float, typer.Option("--max-green", metavar="S", help="Longest green while somebody in conflict waits (light, alone).")
    ] = 120.0,
    longest_red: Annotated[
        float, typer.Option("--longest-red", metavar="S", help="Who has waited so long is served next (light, alone).")
    ] = 240.0,
    detector_faults: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Faulty detectors, such as dead:10%,seed=7; also miss, double, stuck, chatter."),
    ] = None,
    lamp_faults: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Faults of the lamps' wires, such as on@60:green2 or dark@90:red0:0.5; also short."),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="OUT.csv", help="Also write what the chip has told of lamps and detectors (one crossing)."),
    ] = None,
    vcd: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.vcd", help="Also write the emulated chip's serial line and pins as a wave form (one network)."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.html",
            help="Also write a page that plays the traffic with lamps and loops (light, alone; one network).",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="OUT.html", help="Also write a report to read, print and file: one page, all inside.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Run traffic with the chip in the loop, and judge it.

    The simulator steps the network; at every decision the features go over the serial line to the board, which runs the pruned
    8-bit network and answers with the phase. The verdict covers latency (0.1 s), flash and RAM, equality with the integer
    reference on every logit (by their CRC), in the traffic and on a sweep of inputs that show what no traffic may reach, and
    the traffic's travel time. Exit code 1 if any verdict fails.
    """
    from hil.loop.summary import summary_row, summary_table
    from hil.report.page import section, write_report
    from tinylight.json_file import write_json

    if replay is not None:
        require_alone(context, "replay", "policy", "json_file", "report")
        require_writable(json_file, report)
        runs = _replayed(replay, policy)
    else:
        from hil.loop.detector_faults import DetectorFaultSpec
        from hil.loop.fault_spec import FaultSpec
        from hil.loop.job_settings import JobSettings
        from hil.loop.lamp_faults import parse_lamp_faults

        settings = JobSettings(
            board=board,
            engine=engine,
            f_cpu_hz=f_cpu,
            baud=baud,
            clearance=clearance,
            budget_s=budget,
            faults=FaultSpec.parse(faults) if faults is not None else None,
            kernel=kernel,
            logits=logits,
            boards=boards,
            min_green_s=min_green,
            sweep=sweep,
            watchdog=watchdog,
            mode=mode,  # type: ignore[arg-type]  # checked there
            monitor=monitor,
            pedestrians=pedestrians,
            max_green_s=max_green,
            longest_red_s=longest_red,
            detector_faults=DetectorFaultSpec.parse(detector_faults) if detector_faults is not None else None,
            lamp_faults=parse_lamp_faults(lamp_faults) if lamp_faults is not None else (),
        )
        if boards == "one" and "," in board and not Path(board).exists():
            raise InputError("--board", "", f"{board} are several boards: add --boards per-intersection")
        _require_possible(settings, vcd, record, events, page)
        require_writable(json_file, record, vcd, events, page, report)
        if agent is not None:
            _require_agent(agent, mode, policy, report)
            jobs = _agent_jobs(agent, settings, network, flow)
        else:
            outputs = {"--record": record, "--vcd": vcd, "--events": events, "--page": page}
            jobs = _jobs(settings, network, flow, policy, outputs)
        runs = _run_all(jobs, record, vcd) if mode == "answer" else _run_lights(jobs, vcd, events, page)
    verdicts, sections = [], []
    for job, verdict in runs:
        verdict = verdict.naming(option_names(context.command))
        _show(job, verdict)
        verdicts.append((job.network.name, verdict))
        if report is not None:
            sections.append(section(job, verdict))
    if len(verdicts) > 1:
        rows = [summary_row(name, verdict) for name, verdict in verdicts]
        show(summary_table(rows, "all runs (largest of each figure)"))
    passed = all(verdict.passed for _, verdict in verdicts)
    if json_file is not None:
        results = [verdict.as_dict() for _, verdict in verdicts]
        write_json({"passed": passed, "runs": results}, json_file)
    if report is not None:
        write_report(sections, report)
        say(f"{report}: the report, for any browser", style="dim")
    ending = "" if mode == "answer" else _light_line(mode, monitor, verdicts)
    say(("PASS" if passed else "FAIL") + ending, style="bold green" if passed else "bold red")
    raise typer.Exit(0 if passed else 1)


def _require_possible(
    settings: "JobSettings", vcd: Path | None, record: Path | None, events: Path | None, page: Path | None
) -> None:
    """InputError for boards that can't be, or whose pins can't be seen; none is opened."""
    from hil.boards import require_board
    from hil.loop.pins import require_pins

    for name in settings.board_names:
        require_board(name)
    if vcd is not None:
        require_pins(settings)
    if events is not None and settings.mode == "answer":
        raise InputError("--events", "", "a chip that only answers tells none: --mode light or alone")
    if page is not None and settings.mode == "answer":
        raise InputError("--page", "", "has lamps and loops: --mode light or alone; tinylight replay plays other runs")
    if record is not None and settings.mode != "answer":
        raise InputError("--record", "", "keeps requests and answers: --mode answer")


def _require_agent(agent: str, mode: str, policy: Path | None, report: Path | None) -> None:
    """InputError for an agent that there isn't, and for options that have no meaning with one."""
    from model.evaluate import require_agent

    if mode != "light":
        raise InputError("--agent", "", "decides on the host, and the chip drives the lamps: --mode light")
    for option, value in (("--policy", policy), ("--report", report)):
        if value is not None:
            raise InputError(option, "", "is for a policy that the chip decides by: leave it out with --agent")
    require_agent(agent)


def _agent_jobs(agent: str, settings: "JobSettings", network: list[str] | None, flow: int) -> list["Job"]:
    """The jobs that an agent decides; the files that they need go with the process."""
    from hil.light.host_agent import AgentJob

    if not network:
        raise InputError("--network", "", "is needed with --agent")
    folder = Path(tempfile.mkdtemp(prefix="tinylight-agent-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return [AgentJob.deciding(agent, name, flow, folder, **vars(settings)) for name in network]


def _jobs(
    settings: "JobSettings", network: list[str] | None, flow: int, policy: Path | None, of_one_run: Mapping[str, Path | None]
) -> list["Job"]:
    """The jobs on these networks, or on all with a trained policy; `of_one_run` are files that hold one."""
    from hil.loop.job import Job
    from model import pretrained_policies
    from model.policy.agent import check_policy_fits
    from model.policy.file import load_policy
    from streetflow.networks.catalogue import find_networks, list_networks

    made_for = [load_policy(policy).network] if policy is not None else None
    if network:
        find_networks(network)
        names = network
    else:
        names = made_for or [entry.name for entry in list_networks() if entry.name in pretrained_policies(settings.mode)]
    for option, file in of_one_run.items():
        if file is not None and len(names) > 1:
            raise InputError(option, "", f"holds one run, and these are {len(names)}: name one --network")
    settings = replace(settings, board=port_of(settings.board))
    jobs = [Job.named(name, flow, policy, **vars(settings)) for name in names]
    for job in jobs if len(jobs) > 1 else ():  # all that would stop a later run, before the first
        loaded = load_policy(job.policy_file)
        check_policy_fits(loaded, job.environment(loaded), str(job.policy_file))
    return jobs


def _run_all(jobs: Sequence["Job"], record: Path | None, vcd: Path | None) -> Iterator[tuple["Job", "Verdict"]]:
    from hil.loop.job import run_job
    from hil.loop.pins import PinTrace
    from hil.loop.record import run_recorded

    for job in jobs:
        pins = PinTrace() if vcd is not None else None
        with _progress() as progress:
            if record is not None:
                verdict = run_recorded(job, record, progress=progress, around=pins)
            else:
                verdict = run_job(job, progress=progress, around=pins)
        if vcd is not None and pins is not None and not pins.write(job, vcd):
            say(f"{vcd}: not written, since nothing was run", style="dim")
        if record is not None and not verdict.records and verdict.check("handshake").outcome == "not measured":
            say(f"{record}: not written, since nothing was run", style="dim")
        yield job, verdict


def _run_lights(
    jobs: Sequence["Job"], vcd: Path | None, events: Path | None, page: Path | None
) -> Iterator[tuple["Job", "Verdict"]]:
    from hil.light.event_log import write_events
    from hil.light.job import run_light
    from hil.light.page import write_page
    from hil.light.waves import write_waves

    for job in jobs:
        with _progress() as progress:
            verdict, run = run_light(
                job, progress=progress, keeps_all=vcd is not None or page is not None, films=page is not None
            )
        if vcd is not None:
            write_waves(run, vcd)
        if events is not None:
            write_events(run, events)
        if page is not None and verdict.check("handshake").outcome == "pass":
            write_page(run, page)
        yield job, verdict


def _light_line(mode: str, monitor: bool, verdicts: Sequence[tuple[str, "Verdict"]]) -> str:
    """What the runs came to, for a last line."""
    runs = [
        f"{name} {verdict.check('decisions').measured}, lamps {verdict.check('lamps').measured}, "
        f"travel time {verdict.check('traffic').measured}"
        if verdict.check("handshake").outcome == "pass"
        else f"{name} {verdict.check('handshake').measured}"
        for name, verdict in verdicts
    ]
    return f": {mode}{' with a monitor' if monitor else ''}, {'; '.join(runs)}"


def _replayed(file: Path, policy: Path | None) -> Iterator[tuple["Job", "Verdict"]]:
    from hil.loop.record import replay

    with _progress() as progress:
        run = replay(file, policy_file=policy, progress=progress)
    say(f"replayed from {file}: no board was asked", style="dim")
    yield run


def _show(job: "Job", verdict: "Verdict") -> None:
    from hil.loop.energy import energy_line
    from hil.loop.verdict import latency_table, verdict_table

    title = f"{job.network.name}, flow {job.flow}, on {job.board} at {job.f_cpu_hz / 1e6:g} MHz, {job.baud} baud"
    show(verdict_table(verdict, title))
    if "latency" in verdict.figures:
        show(latency_table(verdict))
    if "energy" in verdict.figures:
        say(energy_line(verdict.figures["energy"]))
    say("; ".join(f"{key} {value}" for key, value in verdict.provenance.items() if "sha256" not in key), style="dim")
    console.print()


@contextmanager
def _progress() -> Iterator["OnProgress"]:
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def on_progress(what: str, made: int, total: int) -> None:
            bar.update(task, description=what, completed=made, total=total)

        yield on_progress
