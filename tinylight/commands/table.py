"""`tinylight table`: the paper's Table 1, made again."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from streetflow.errors import InputError
from streetflow.files import require_folder
from streetflow.near import or_else
from tinylight.commands.jobs import require_place, run_with_bar
from tinylight.commands.options import ClusterOption, ProcessesOption
from tinylight.console import require_writable, say, show

if TYPE_CHECKING:
    from model.report.compare import Pair, Row
    from streetflow.control.measures import Summary


SIGNS = {"equal": "=", "within 2 sd": "≈", "better": "<", "worse": ">"}


def table(
    models: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Rows, separated by commas: rules, baselines, TinyLight.paper, .best or .planned for TinyLight with these "
            "settings, and agents of your own as module:Class. `rules`, `baselines` and `all` stand for several.",
        ),
    ] = "rules",
    networks: Annotated[
        str, typer.Option(metavar="NAMES", help="Networks, separated by commas; `paper` stands for its six.")
    ] = "paper",
    flows: Annotated[str, typer.Option("--flows", "--flow", metavar="0-9", help="Runs: flow k with engine seed k.")] = "0-9",
    clearance: Annotated[
        str,
        typer.Option(
            "--clearance",
            metavar="hold|yellow|all_red|computed|shell",
            help="What the lights show between two phases, in training too. The paper's figures are for hold.",
        ),
    ] = "hold",
    work: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Where every finished run is kept: stopped or killed, the same command goes on."),
    ] = Path("build/table"),
    out: Annotated[
        Path | None, typer.Option(metavar="STEM", help="Write STEM.csv, STEM.json and STEM.md. Default: WORK/table.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Row that the others are compared with, flow by flow. Default: TinyLight's integers."
        ),
    ] = None,
    processes: ProcessesOption = None,
    cluster: ClusterOption = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: show and write what the work folder holds so far.")
    ] = False,
) -> None:
    """Make the paper's Table 1: models x networks x ten runs, each trained and run per flow.

    Mean and population deviation of travel time and throughput, with the paper's figures beside ours. All cores are used.
    """
    from model.report.compare import by_network, default_reference, paired_with_strongest, table_rows
    from model.report.tasks import expand_models, plan, planned_cells, row_labels
    from model.report.write import ordered, write_report
    from streetflow.control.clearance import require_clearance
    from streetflow.networks.catalogue import find_networks, parse_flows, require_flow_list

    chosen_models = expand_models(models)
    names = _network_names(networks)
    require_flow_list(flows)
    require_clearance(clearance)
    require_place(processes, cluster)
    if reference is not None:
        _require_row(reference, row_labels(chosen_models))
    require_folder(work)
    stem = out or work / "table"
    if out is not None or work.is_dir():  # otherwise the runs create the folder
        require_writable(*(stem.with_suffix(suffix) for suffix in (".csv", ".json", ".md")))
    count = min(len(network.flow_files) for network in find_networks(names))
    tasks, dashes = plan(ordered(names), chosen_models, parse_flows(flows, count), clearance)
    if reference is not None:
        _require_row(reference, row_labels(task.model for task in tasks))
    if not report_only:
        run_with_bar("table", tasks, work, processes, cluster)
    cells = planned_cells(tasks, work)
    if not cells:
        raise InputError(work, "", "holds no finished run of this table")
    rows = table_rows(cells)
    chosen = reference or default_reference(rows)
    _require_row(chosen, [row.label for row in rows])
    write_report(stem, cells, dashes, chosen, "tinylight " + shlex.join(sys.argv[1:]))
    strongest = paired_with_strongest(rows)
    for network, members in by_network(rows).items():
        show(_shown(members))
        show(_intervals(members, [pair for pair in strongest if pair.network == network]))
    say("= equal to the hundredth; ≈ < > mean travel time within two of the paper's deviations, below, above", style="dim")
    for (network, model), why in dashes.items():
        say(f"{model} on {network}: - ({why})", style="dim")
    say(f"written: {stem}.csv, .json, .md")


def _require_row(reference: str, labels: list[str]) -> None:
    if reference not in labels:
        raise InputError("--reference", "", f"no row {reference!r}{or_else(reference, dict.fromkeys(labels))}")


def _network_names(text: str) -> list[str]:
    from model.report.paper_table import PAPER_NETWORKS

    names = list(PAPER_NETWORKS) if text == "paper" else [name.strip() for name in text.split(",")]
    if "" in names:
        raise InputError("--networks", "", f"{text!r} leaves a name empty")
    return list(dict.fromkeys(names))


def _shown(rows: list["Row"]) -> Table:
    """One network's rows for the terminal."""
    shown = Table(title=rows[0].network, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("model", no_wrap=True)
    for heading in ("travel time s", "paper", "veh/min", "paper"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for row in rows:
        ours = [row.travel_time_s, row.throughput_veh_per_min]
        papers = [None, None] if row.paper is None else [row.paper.travel_time_s, row.paper.throughput_veh_per_min]
        figures = [_sd(each) for pair in zip(ours, papers, strict=True) for each in pair]
        shown.add_row(row.label, *figures, SIGNS.get(row.verdict, row.verdict))
    return shown


def _intervals(rows: list["Row"], pairs: list["Pair"]) -> Table:
    """One network's 95 % intervals, of the means and of the differences from its strongest rule."""
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("model", no_wrap=True)
    shown.add_column("travel time s, 95 %", justify="right", no_wrap=True)
    by_label = {pair.label: pair for pair in pairs}
    if pairs:
        shown.add_column(f"less {pairs[0].reference}, 95 %", justify="right", no_wrap=True)
        shown.add_column("p", justify="right", no_wrap=True)
    for row in rows:
        interval, pair = row.travel_time_interval_s, by_label.get(row.label)
        cells = [f"{interval.low:.2f} to {interval.high:.2f}" if len(row.flows) > 1 else "-"]
        if pair is not None:
            width = f" ({pair.low_s:+.2f} to {pair.high_s:+.2f})" * (pair.runs > 1)
            cells += [f"{pair.mean_difference_s:+.2f}{width}", f"{pair.p:.3f}"]
        elif pairs:
            cells += ["strongest rule", ""]
        shown.add_row(row.label, *cells)
    return shown


def _sd(summary: "Summary | None") -> str:
    return "-" if summary is None else f"{summary.mean:.2f} ± {summary.deviation:.2f}"
