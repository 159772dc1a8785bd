"""The paper's log-log figure: parameters, FLOPs and travel time of every model, and what the chip can hold and do in time."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from model.report.cost import Cost
from model.report.paper_table import PAPER_NETWORKS, paper_cell
from streetflow.errors import InputError
from streetflow.roadnet.json_reader import read_json

ROM_BYTES = 32 * 1024
RESPONSE_S = 0.1
CHIP_HZ = 8_000_000  # the paper's clock
PAPER_S_PER_FLOP = 18.78e-3 / 2031  # its TinyLight instance on the ATmega328P (Appendix B)
TINYLIGHT = "TinyLight"  # travel times are shown as multiples of this model's
LABELS = {f"{TINYLIGHT}.best": f"{TINYLIGHT} (ours)", f"{TINYLIGHT}.paper": f"{TINYLIGHT} (paper's settings)"}
NAMES_COLUMNS = 20  # below a dot
BAR_STEP = 1.24  # half the distance of two bars at one dot
BAR_DECADES = 0.35  # a bar's height, for a multiple of 1
ZERO_AT = 0.3  # where a log axis shows 0


@dataclass(frozen=True)
class MeasuredPoint:
    """A policy on the emulated chip."""

    label: str
    parameters: int
    flops: int  # of one decision, counted
    cycles: float  # of one decision, measured (median)
    flash_bytes: int


@dataclass(frozen=True)
class TravelTime:
    """How long a model's vehicles take as a multiple of the reference's: mean over the networks that both have, each on the
    flows that both have. So all models' figures can be held beside each other, whatever networks they can do."""

    model: str  # as in model/report/cost.py
    label: str
    multiple: float
    networks: int


Figures = Mapping[tuple[str, str], Mapping[int, float]]  # travel time, s, by flow; by (network, row of the table)


def paper_travel_times() -> list[TravelTime]:
    """The paper's Table 1, which has means only."""
    models = ["EcoLight", "FixedTime", "MaxPressure", "SOTL", "CoLight", "FRAP", "MPLight", "TLRP", TINYLIGHT]
    cells = {(network, model): paper_cell(network, model) for network in PAPER_NETWORKS for model in models}
    return relative({place: {0: cell.travel_time_s.mean} for place, cell in cells.items() if cell is not None}, TINYLIGHT)


def table_travel_times(table_json: Path) -> list[TravelTime]:
    """The same from a `tinylight table` JSON file, integers where there are any; the reference is the best of TinyLight's
    settings that it holds. InputError if it isn't one."""
    content = read_json(table_json, exact=True)
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise InputError(table_json, "rows", "missing: this isn't what `tinylight table` writes")
    figures: dict[tuple[str, str], dict[int, float]] = {}
    integers = set()
    for number, row in enumerate(content["rows"]):
        try:
            place, times_s = (row["network"], row["model"]), [float(time_s) for time_s in row["travel_times_s"]]
            by_flow = dict(zip(row["flows"], times_s, strict=True))
            exact = row["arithmetic"] == "integer"
            sound = all(isinstance(name, str) for name in place) and all(time_s > 0 for time_s in times_s)
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise InputError(table_json, f"rows[{number}]", "not a row as `tinylight table` writes them")
        if place not in integers:
            figures[place] = by_flow
        if exact:
            integers.add(place)
    rows = {row for _, row in figures if row.partition(".")[0] == TINYLIGHT}
    if not rows:
        raise InputError(table_json, "rows", f"no row of {TINYLIGHT}, which the others are measured by")
    return relative(figures, f"{TINYLIGHT}.best" if f"{TINYLIGHT}.best" in rows else min(rows))


def relative(figures: Figures, reference: str) -> list[TravelTime]:
    """One a row of the table that has a network in common with the reference, which is a row too."""
    multiples: dict[str, list[float]] = {}
    for (network, row), own_s in figures.items():
        base_s = figures.get((network, reference), {})
        if both := own_s.keys() & base_s.keys():
            mean, base_mean = (fmean(times_s[flow] for flow in both) for times_s in (own_s, base_s))
            multiples.setdefault(row, []).append(mean / base_mean)
    return [TravelTime(row.partition(".")[0], LABELS.get(row, row), fmean(each), len(each)) for row, each in multiples.items()]


STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tinylight",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(file: Path, costs: Sequence[Cost], travel_times: Sequence[TravelTime], measured: Sequence[MeasuredPoint]) -> None:
    """Writes the figure as SVG or what else the suffix says; the same input, the same bytes. Needs matplotlib."""
    import matplotlib

    figure = figure_of(costs, travel_times, measured)
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def figure_of(costs: Sequence[Cost], travel_times: Sequence[TravelTime], measured: Sequence[MeasuredPoint]) -> Any:
    """The matplotlib Figure."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.8, 5.4), layout="constrained")
        axes = figure.subplots()
        _limits(axes, measured)
        _models(axes, costs, travel_times, measured)
        _measured(axes, measured)
        axes.set_title(_title(travel_times), fontsize=9, loc="left")
        axes.set_xlabel("parameters of one intersection")
        axes.set_ylabel("floating-point operations of one decision")
    return figure


def _title(travel_times: Sequence[TravelTime]) -> str:
    reference = next((each for each in travel_times if each.multiple == 1.0), None)
    if reference is None:
        return "Dots: counted cost"
    return (
        f"Dots: counted cost. Bars: travel time as a multiple of that of {reference.label},\n"
        f"mean over the networks that both have: {reference.networks}, or the number in brackets"
    )


def _limits(axes: Any, measured: Sequence[MeasuredPoint]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ZERO_AT / 3, 1.1e5)
    axes.set_ylim(ZERO_AT / 6, 6e6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([ZERO_AT, *(10.0**k for k in range(7))]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == ZERO_AT else f"{value:,.0f}"))
        axis.set_minor_locator(NullLocator())
    grey = {"color": "0.55", "linewidth": 0.9, "linestyle": "--", "zorder": 1}
    for width_bytes, name in ((4, "float"), (1, "8 bits")):
        axes.axvline(ROM_BYTES / width_bytes, **grey)
        axes.text(ROM_BYTES / width_bytes * 0.93, 0.1, f"32 KB, {name}", rotation=90, ha="right", va="bottom", color="0.4")
    for flops, text in _time_limits(measured).items():
        axes.axhline(flops, **grey)
        axes.text(ZERO_AT / 2.7, flops * 1.08, text, va="bottom", color="0.4")


def _time_limits(measured: Sequence[MeasuredPoint]) -> dict[float, str]:
    """FLOPs that take as long as a decision may, and in which arithmetic."""
    limits = {RESPONSE_S / PAPER_S_PER_FLOP: "0.1 s at the paper's 9.2 µs a FLOP"}
    if measured:
        cycles_per_flop = fmean(point.cycles / point.flops for point in measured)
        limits[RESPONSE_S * CHIP_HZ / cycles_per_flop] = f"0.1 s at 8 MHz and our {cycles_per_flop:.2f} cycles a FLOP"
    return limits


def _models(axes: Any, costs: Sequence[Cost], travel_times: Sequence[TravelTime], measured: Sequence[MeasuredPoint]) -> None:
    """A dot a model, on it a bar as high as its travel time, and below it, and below stars that are near, its name."""
    at: dict[tuple[float, float], list[Cost]] = {}
    for cost in costs:
        at.setdefault((max(cost.parameters, ZERO_AT), max(cost.flops, ZERO_AT)), []).append(cost)
    most = max((each.networks for each in travel_times), default=0)
    for (x, y), members in at.items():
        axes.plot(x, y, "o", color="#1d3557", markersize=5, zorder=3)
        bars = [each for cost in members for each in travel_times if each.model == cost.model]
        for k, each in enumerate(bars):
            left = x * BAR_STEP ** (2 * k - (len(bars) - 1))
            top = y * 1.25 * 10 ** (each.multiple * BAR_DECADES)
            axes.vlines(left, y * 1.25, top, color="#457b9d", linewidth=6, zorder=2)
            foot = top * 1.08
            foot = next((limit * 1.08 for limit in _time_limits(measured) if foot < limit * 1.08 < foot * 1.6), foot)
            few = f"\n({each.networks})" if each.networks < most else ""
            axes.text(left, foot, f"{each.multiple:.2f}{few}", ha="center", va="bottom", fontsize=7)
        shown = {each.model for each in bars}
        labels = [cost.model for cost in members if cost.model not in shown] + [each.label for each in bars]
        names = textwrap.fill(", ".join(labels), NAMES_COLUMNS)
        stars = [point.flops for point in measured if x / 4 < point.parameters < x * 4 and y / 8 < point.flops < y]
        below: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top", "weight": "bold", "zorder": 5}
        below["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.annotate(names, (x, min([y, *stars])), (0, -8), fontsize=8, **below)


def _measured(axes: Any, measured: Sequence[MeasuredPoint]) -> None:
    """A star a policy, and what it takes of the chip in a corner."""
    for point in measured:
        axes.plot(point.parameters, point.flops, marker="*", markersize=10, color="#c1121f", linestyle="none", zorder=6)
    lines = []
    for point in measured:
        time_ms = point.cycles / CHIP_HZ * 1e3
        lines.append(f"{point.label}: {point.cycles:,.0f} cycles, {time_ms:.1f} ms at 8 MHz, {point.flash_bytes:,} B flash")
    if lines:
        text = "\n".join(["★ measured on the emulated ATmega328P, 8-bit weights:", *lines])
        axes.text(0.2, 0.05, text, transform=axes.transAxes, color="#c1121f", fontsize=8, va="bottom")
