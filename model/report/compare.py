"""From cells to the table's figures: means and deviations over the runs, ours against the paper's, model against model."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from model.baselines.registry import BASELINES
from model.report.bootstrap import Interval, mean_interval
from model.report.cells import Cell
from model.report.paper_table import PaperCell, paper_cell
from streetflow.control.measures import Summary, summarise
from streetflow.control.tuned import RULES, TUNED

ENUMERATED_RUNS = 16
DEVIATIONS_ALLOWED = 2.0  # a learned model's mean agrees with the paper's within so many of the paper's deviations


@dataclass(frozen=True)
class Row:
    """One model in one arithmetic on one network."""

    network: str
    model: str
    arithmetic: str  # "rule", "float" or "integer"
    flows: tuple[int, ...]
    travel_times_s: tuple[float, ...]  # by run, in the order of flows
    throughputs_veh_per_min: tuple[float, ...]
    travel_time_s: Summary
    throughput_veh_per_min: Summary
    paper: PaperCell | None
    wall_s: float  # of all runs

    @property
    def travel_time_interval_s(self) -> Interval:
        """The mean's 95 % interval."""
        return mean_interval(self.travel_times_s)

    @property
    def label(self) -> str:
        return row_label(self.model, self.arithmetic)

    @property
    def verdict(self) -> str:
        """The row compared with the paper's: a rule must equal it to the hundredth in mean and deviation of both measures."""
        if self.paper is None:
            return "-"
        if self.arithmetic == "rule":
            return "equal" if not self.unequal() else "differs: " + ", ".join(self.unequal())
        allowed_s = DEVIATIONS_ALLOWED * self.paper.travel_time_s.deviation
        gap_s = self.travel_time_s.mean - self.paper.travel_time_s.mean
        if abs(gap_s) <= allowed_s:
            return "within 2 sd"
        return "better" if gap_s < 0 else "worse"

    def unequal(self) -> list[str]:
        """Which of the four figures differ from the paper's when rounded to the hundredth."""
        assert self.paper is not None
        pairs = {
            "travel time": (self.travel_time_s.mean, self.paper.travel_time_s.mean),
            "its deviation": (self.travel_time_s.deviation, self.paper.travel_time_s.deviation),
            "throughput": (self.throughput_veh_per_min.mean, self.paper.throughput_veh_per_min.mean),
            "its deviation ": (self.throughput_veh_per_min.deviation, self.paper.throughput_veh_per_min.deviation),
        }
        return [name.strip() for name, (ours, papers) in pairs.items() if f"{ours:.2f}" != f"{papers:.2f}"]


def row_label(model: str, arithmetic: str) -> str:
    """The model, with its arithmetic where it has more than one."""
    return model if arithmetic == "rule" or model in BASELINES else f"{model}, {arithmetic}"


def table_rows(cells: Sequence[Cell]) -> list[Row]:
    """One row per network, model and arithmetic, in the order of first appearance."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        for arithmetic in cell.outcomes:
            groups.setdefault((cell.network, cell.model, arithmetic), []).append(cell)
    rows = []
    for (network, model, arithmetic), group in groups.items():
        runs = sorted(group, key=lambda cell: cell.flow)
        times_s = tuple(cell.outcomes[arithmetic].average_travel_time_s for cell in runs)
        rates = tuple(cell.outcomes[arithmetic].throughput_veh_per_min for cell in runs)
        rows.append(
            Row(
                network=network,
                model=model,
                arithmetic=arithmetic,
                flows=tuple(cell.flow for cell in runs),
                travel_times_s=times_s,
                throughputs_veh_per_min=rates,
                travel_time_s=summarise(times_s),
                throughput_veh_per_min=summarise(rates),
                paper=_paper(model, runs),
                wall_s=sum(cell.wall_s for cell in runs),
            )
        )
    return rows


def _paper(model: str, runs: Sequence[Cell]) -> PaperCell | None:
    """The paper's figures for the same; None where it has none: for a tuned rule, or another clearance."""
    if model in TUNED or any(cell.identity.get("clearance", "hold") != "hold" for cell in runs):
        return None
    return paper_cell(runs[0].network, model.split(".")[0])


@dataclass(frozen=True)
class Pair:
    """A model against the reference on the same flows with the same engine seeds."""

    network: str
    label: str
    reference: str
    runs: int
    mean_difference_s: float  # model - reference, travel time: below 0 the model is better
    deviation_s: float  # population, of the differences
    low_s: float  # the mean difference's 95 % interval
    high_s: float
    better_runs: int
    p: float  # two-sided, exact sign-flip permutation test of the mean difference


def paired(rows: Sequence[Row], reference: str) -> list[Pair]:
    """All other rows against the reference (a row's label), network by network, on the flows that both have."""
    bases = {network: _labelled(members, reference) for network, members in by_network(rows).items()}
    return _against(rows, bases)


def paired_with_strongest(rows: Sequence[Row]) -> list[Pair]:
    """All other rows against the network's strongest rule, on the flows that both have."""
    return _against(rows, {network: strongest_rule(members) for network, members in by_network(rows).items()})


def strongest_rule(members: Sequence[Row]) -> Row | None:
    """The rule of least mean travel time among a network's rows that have the most runs. It is chosen on the very runs that it
    is compared on, which flatters it."""
    rules = [row for row in members if row.model in RULES]
    most = max((len(row.flows) for row in rules), default=0)
    whole = [row for row in rules if len(row.flows) == most]
    return min(whole, key=lambda row: row.travel_time_s.mean, default=None)


def _labelled(members: Sequence[Row], label: str) -> Row | None:
    return next((row for row in members if row.label == label), None)


def _against(rows: Sequence[Row], bases: Mapping[str, Row | None]) -> list[Pair]:
    pairs = []
    for row in rows:
        base = bases[row.network]
        if base is None or row is base:
            continue
        base_s = dict(zip(base.flows, base.travel_times_s, strict=True))
        own_s = dict(zip(row.flows, row.travel_times_s, strict=True))
        both = sorted(own_s.keys() & base_s.keys())
        if not both:
            continue
        differences = [own_s[flow] - base_s[flow] for flow in both]
        interval = mean_interval(differences)
        pairs.append(
            Pair(
                network=row.network,
                label=row.label,
                reference=base.label,
                runs=len(both),
                mean_difference_s=fmean(differences),
                deviation_s=pstdev(differences),
                low_s=interval.low,
                high_s=interval.high,
                better_runs=sum(difference < 0 for difference in differences),
                p=sign_flip_p(differences),
            )
        )
    return pairs


def sign_flip_p(differences: Sequence[float]) -> float:
    """Share of the sign patterns with a mean at least as far from 0 as the observed one: of all 2^n for n <= 16, beyond that of
    65,536 drawn ones (the same each time)."""
    n = len(differences)
    if n <= ENUMERATED_RUNS:
        patterns = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    else:
        patterns = np.random.default_rng(0).choice((1.0, -1.0), (2**ENUMERATED_RUNS, n))
    values = np.array(differences)
    slack = 1e-9 * np.abs(values).sum()
    return float(np.mean(np.abs(patterns @ values) >= abs(values.sum()) - slack))


def default_reference(rows: Sequence[Row]) -> str:
    """The row that the others are compared with: TinyLight's integers if present, else MaxPressure, else the first."""
    labels = list(dict.fromkeys(row.label for row in rows))
    integers = [row.label for row in rows if row.arithmetic == "integer"]
    if integers:
        return integers[-1]
    return "MaxPressure" if "MaxPressure" in labels else labels[0]


def by_network(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows grouped, in their order."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.network, []).append(row)
    return grouped
