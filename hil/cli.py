"""The `tinylight` command. Exit code 0: passed; 1: a verdict failed; 2: bad input, one line on stderr saying what is wrong."""

import csv
import sys
from dataclasses import asdict, fields
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from streetflow.errors import InputError

if TYPE_CHECKING:
    from hil.job import Job
    from hil.verdict import Verdict
    from model.training import EpisodeRow

app = typer.Typer(
    name="tinylight",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Traffic lights that learn, on a microcontroller: train a TinyLight policy, and prove it on the chip "
    "(an ATmega328P, real or emulated) with the traffic simulator in the loop.",
)
console = Console()
errors = Console(stderr=True, soft_wrap=True)

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Also write the result as JSON to this file.")]
NetworkOption = Annotated[
    str,
    typer.Option("--network", metavar="NAME", help="Road network, by a name that `tinylight networks` lists."),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="builtin|cityflow",
        help="Traffic simulator: our own, or the real CityFlow where it is installed (same results).",
    ),
]
ClearanceOption = Annotated[
    str | None,
    typer.Option(
        "--clearance",
        metavar="hold|yellow|all_red",
        help="What the light shows in the 3 s between two phases: the old green (as the paper's tables), yellow, or all red. "
        "Default: what the policy was trained with.",
    ),
]


@app.command()
def hil(
    board: Annotated[
        str,
        typer.Option(
            metavar="simavr|host|URL",
            help="Where the policy runs: simavr (emulated ATmega328P), host (the firmware built for this machine), or a real "
            "board's serial port or pyserial URL, such as /dev/ttyUSB0 or rfc2217://bench:4000.",
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
    engine: EngineOption = "builtin",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line.")] = 115_200,
    clearance: ClearanceOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run traffic with the chip in the loop, and judge it.

    The simulator steps the network; at every decision the features go over the serial line to the board, which runs the pruned
    8-bit network and answers with the phase. The verdict covers latency (0.1 s), flash and RAM, equality with the integer
    reference on every logit, and the traffic's travel time. Exit code 1 if any verdict fails.
    """
    from hil.job import Job
    from hil.json_file import write_json
    from hil.summary import summary_table
    from hil.verdict import latency_table, verdict_table
    from model import pretrained_policies

    if network:
        names = network
    elif policy is not None:
        from model.policy import load_policy

        names = [load_policy(policy).network]
    else:
        from streetflow.network import list_networks

        names = [entry.name for entry in list_networks() if entry.name in pretrained_policies()]
    _writable(json_file)
    jobs = [
        Job.named(
            name,
            flow,
            policy or _pretrained(name),
            board=board,
            engine=engine,
            f_cpu_hz=f_cpu,
            baud=baud,
            clearance=clearance,
        )
        for name in names
    ]
    verdicts = []
    for job in jobs:
        verdict = _run_with_progress(job)
        title = f"{job.network.name}, flow {job.flow}, on {job.board} at {job.f_cpu_hz / 1e6:g} MHz, {job.baud} baud"
        console.print(verdict_table(verdict, title))
        if "latency" in verdict.figures:
            console.print(latency_table(verdict))
        _say(
            "; ".join(f"{key} {value}" for key, value in verdict.provenance.items() if "sha256" not in key),
            style="dim",
        )
        console.print()
        verdicts.append((job.network.name, verdict))
    if len(verdicts) > 1:
        console.print(summary_table(verdicts, "all runs (largest of each figure)"))
    passed = all(verdict.passed for _, verdict in verdicts)
    if json_file is not None:
        runs = [verdict.as_dict() for _, verdict in verdicts]
        write_json({"passed": passed, "runs": runs}, json_file)
    _say("PASS" if passed else "FAIL", style="bold green" if passed else "bold red")
    raise typer.Exit(0 if passed else 1)


@app.command()
def evaluate(
    network: NetworkOption,
    agent: Annotated[
        str,
        typer.Option(
            metavar="FixedTime|MaxPressure|SOTL|POLICYFILE",
            help="Who sets the lights: a rule, or a policy file.",
        ),
    ],
    integer: Annotated[
        bool,
        typer.Option("--integer", help="Decide with the 8-bit network that runs on the chip instead of the float one."),
    ] = False,
    flows: Annotated[str, typer.Option(metavar="0-9", help="Flows to run: numbers and ranges, such as 0-4,7.")] = "0-9",
    engine: EngineOption = "builtin",
    clearance: ClearanceOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run an agent over a network's flows without a chip, and print travel time and throughput."""
    from hil.json_file import write_json
    from model.evaluate import evaluate as run
    from streetflow.network import find_network

    _writable(json_file)
    found = find_network(network)
    numbers = parse_flows(flows, len(found.flow_files))
    with _progress() as bar:
        task = bar.add_task(f"{agent} on {network}", total=len(numbers))
        rows = run(
            found,
            agent,
            numbers,
            integer=integer,
            engine=engine,
            clearance=clearance,
            progress=lambda _row: bar.advance(task),
        )
    table = Table(title=f"{agent} on {network}" + (", integers" if integer else ""), title_justify="left")
    for heading in ("flow", "seed", "average travel time s", "throughput veh/min"):
        table.add_column(heading, justify="right")
    times = [row.average_travel_time_s for row in rows]
    throughputs = [row.throughput_veh_per_min for row in rows]
    for row in rows:
        table.add_row(str(row.flow), str(row.seed), f"{row.average_travel_time_s:.3f}", f"{row.throughput_veh_per_min:.3f}")
    table.add_section()
    table.add_row("mean", "", f"{mean(times):.3f}", f"{mean(throughputs):.3f}")
    table.add_row("deviation", "", f"{pstdev(times):.3f}", f"{pstdev(throughputs):.3f}")
    console.print(table)
    if json_file is not None:
        write_json([asdict(row) for row in rows], json_file)


@app.command()
def train(
    network: NetworkOption,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Policy file to write.")],
    flow: Annotated[int, typer.Option(metavar="K", min=0, help="Demand to train on: flow_K.json.")] = 0,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of all randomness: same seed, same file.")] = 0,
    replicas: Annotated[
        int,
        typer.Option(
            metavar="R",
            min=1,
            help="Train the seeds S to S+R-1 side by side and keep the one that does best on the training flow.",
        ),
    ] = 1,
    features: Annotated[
        str, typer.Option(metavar="PRESET|NAMES", help="Features to search: a preset, or names separated by commas.")
    ] = "release",
    clearance: Annotated[
        str, typer.Option("--clearance", metavar="hold|yellow|all_red", help="What the light shows between two phases.")
    ] = "hold",
    search_episodes: Annotated[int, typer.Option(metavar="N", min=1, help="Episodes with the super-graph.")] = 64,
    refine_episodes: Annotated[int, typer.Option(metavar="N", min=1, help="Episodes with the sub-graph.")] = 128,
    max_parameters: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Largest sub-graph of an intersection, in weights and biases. Default: any."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Write loss, entropies and travel time of every episode here.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Train a policy: search the super-graph, prune it to two features and one component a layer, refine, quantise.

    The defaults are the paper's. Stopped in the middle, it leaves FILE.checkpoint; the same command goes on from there
    and ends with the same policy as without the stop.
    """
    try:
        import torch  # noqa: F401
    except ImportError as fault:
        raise InputError("tinylight train", "", "needs PyTorch: pip install 'tinylight-hil[train]'") from fault
    from hil.json_file import write_json
    from model.train_policy import train_policy
    from model.training import EpisodeRow, Progress, TrainingConfig
    from streetflow.network import find_network

    for file in (out, log, json_file):
        _writable(file)
    found = find_network(network)
    found.flow_file(flow)
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    resume_from = checkpoint if checkpoint.is_file() else None
    if resume_from is not None:
        _say(f"going on from {checkpoint}", style="dim")
    rows: list[EpisodeRow] = []
    with _progress() as bar:
        task = bar.add_task(f"training on {network}, flow {flow}", total=search_episodes + refine_episodes)

        def told(state: Progress) -> None:
            rows.extend(state.rows)
            times = [row.average_travel_time_s for row in state.rows]
            label = f"{state.rows[0].stage}: travel time {min(times):.1f} s"
            bar.update(task, description=label, completed=state.done_episodes, total=state.total_episodes)

        policy = train_policy(
            found,
            flow,
            seed,
            out,
            replicas=replicas,
            features=features,
            clearance=clearance,
            config=TrainingConfig(
                search_episodes=search_episodes, refine_episodes=refine_episodes, max_parameters=max_parameters
            ),
            progress=told,
            checkpoint=checkpoint,
            resume_from=resume_from,
        )
    checkpoint.unlink(missing_ok=True)
    table = Table(title=f"{out}: policy {policy.sha256[:12]}", title_justify="left")
    for heading in ("flow", "float: travel time s", "integers: travel time s"):
        table.add_column(heading, justify="right")
    for row in policy.measured:
        table.add_row(str(row.flow), f"{row.float_average_travel_time_s:.3f}", f"{row.integer_average_travel_time_s:.3f}")
    console.print(table)
    for part in policy.intersections:
        kept = " + ".join(f"{feature.name} ({feature.width})" for feature in part.features)
        _say(f"{part.id}: {kept} -> {part.hidden[0]} -> {part.hidden[1]} -> {len(part.phases)}, {part.n_parameters} parameters")
    if log is not None:
        _write_log(rows, log)
    if json_file is not None:
        write_json(policy.model_dump(mode="json", include={"sha256", "network", "provenance", "measured"}), json_file)


@app.command()
def size(
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy file. Default: the trained policy of the network."),
    ] = None,
    network: NetworkOption = "crossing",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line.")] = 115_200,
    json_file: JsonOption = None,
) -> None:
    """Build the firmware for a policy and show what it takes of the chip's flash and RAM, from the linker map.

    Exit code 1 if it doesn't fit. The deepest stack is measured by `tinylight hil`.
    """
    from hil.build import build_firmware
    from hil.footprint import measure
    from hil.json_file import write_json
    from hil.verdict import FLASH_LIMIT_BYTES, SRAM_LIMIT_BYTES
    from model.policy import load_policy

    _writable(json_file)
    file = policy or _pretrained(network)
    parameters = sum(part.n_parameters for part in load_policy(file).intersections)
    with console.status("building the firmware"):
        firmware = build_firmware(file, target="uno_system", f_cpu_hz=f_cpu, baud=baud)
        footprint = measure(firmware)
    table = Table(title=f"{file.name}: {parameters} parameters", title_justify="left")
    table.add_column("object")
    table.add_column("flash B", justify="right")
    table.add_column("static RAM B", justify="right")
    for name, part in sorted(footprint.per_object.items(), key=lambda entry: -entry[1].flash_bytes):
        table.add_row(name, str(part.flash_bytes), str(part.static_ram_bytes))
    table.add_section()
    table.add_row("all", str(footprint.flash_bytes), str(footprint.static_ram_bytes))
    table.add_row("limit", str(FLASH_LIMIT_BYTES), f"{SRAM_LIMIT_BYTES} with the stack")
    console.print(table)
    _say(f"linker map: {firmware.map}")
    fits = footprint.flash_bytes <= FLASH_LIMIT_BYTES and footprint.static_ram_bytes < SRAM_LIMIT_BYTES
    if json_file is not None:
        write_json(footprint.as_dict() | {"fits": fits, "map": str(firmware.map)}, json_file)
    raise typer.Exit(0 if fits else 1)


@app.command()
def networks(json_file: JsonOption = None) -> None:
    """List the road networks at hand: the built-in ones, and those in the folders that TINYLIGHT_DATA names."""
    from hil.json_file import write_json
    from model import pretrained_policies
    from streetflow.network import list_networks

    found = list_networks()
    table = Table()
    for heading in ("network", "source", "flows", "horizon s", "trained policy"):
        table.add_column(heading)
    rows = [
        {
            "network": entry.name,
            "source": entry.source,
            "flows": len(entry.flow_files),
            "horizon_s": entry.horizon_s,
            "trained_policy": entry.name in pretrained_policies(),
            "roadnet_file": str(entry.roadnet_file),
        }
        for entry in found
    ]
    for row in rows:
        cells = [row["network"], row["source"], row["flows"], row["horizon_s"], "yes" if row["trained_policy"] else "no"]
        table.add_row(*map(str, cells))
    console.print(table)
    if json_file is not None:
        write_json(rows, json_file)


def parse_flows(text: str, count: int) -> list[int]:
    """Flow numbers of `0-4,7` in order, each once. InputError if it isn't such a list or names a flow >= count."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError("--flows", "", f"{part!r} is not a number or a range such as 0-9")
        end = int(last) if dash else int(first)
        if end < int(first):
            raise InputError("--flows", "", f"{part!r} runs backwards")
        if end >= count:
            raise InputError("--flows", "", f"there is no flow {end}: the network has flows 0 to {count - 1}")
        numbers += [number for number in range(int(first), end + 1) if number not in numbers]
    return numbers


def main() -> NoReturn:
    """Entry point: runs the command line and turns bad input into one line and exit code 2."""
    from hil.build import BuildError

    try:
        app()
    except (InputError, BuildError) as fault:
        errors.print(f"tinylight: {fault}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("tinylight: stopped", style="red")
        sys.exit(130)
    sys.exit(0)


def _run_with_progress(job: "Job") -> "Verdict":
    from hil.job import run_job

    with _progress() as bar:
        task = bar.add_task("starting", total=None)

        def told(what: str, made: int, total: int) -> None:
            bar.update(task, description=what, completed=made, total=total)

        return run_job(job, progress=told)


def _write_log(rows: list["EpisodeRow"], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, [field.name for field in fields(rows[0])])
        table.writeheader()
        table.writerows(asdict(row) for row in rows)


def _pretrained(network: str) -> Path:
    from model import pretrained_policy

    try:
        return pretrained_policy(network)
    except FileNotFoundError as fault:
        raise InputError("--policy", "", f"{fault}; name a policy file, or train one with `tinylight train`") from None


def _writable(file: Path | None) -> None:
    """Finds out before the work, not after it, that the result can't be written."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise InputError(file, "", f"can't be written: there is no folder {file.parent}")
    if file.is_dir():
        raise InputError(file, "", "can't be written: it is a folder")


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    )


def _say(text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
