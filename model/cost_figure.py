"""The paper's log-log figure: parameters, FLOPs and travel time of every model, and what the chip can hold and do in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from model.cost import Cost
from model.paper_table import PAPER_NETWORKS, paper_cell
from streetflow.errors import InputError
from streetflow.json_reader import read_json

ROM_BYTES = 32 * 1024
RESPONSE_S = 0.1
CHIP_HZ = 8_000_000  # the paper's clock
PAPER_S_PER_FLOP = 18.78e-3 / 2031  # its TinyLight instance on the ATmega328P (Appendix B)
YARDSTICK = "FixedTime"  # travel times are shown as multiples of this model's
ZERO_AT = 0.3  # where a log axis shows 0


@dataclass(frozen=True)
class MeasuredPoint:
    """A policy on the emulated chip."""

    label: str
    parameters: int
    flops: int  # of one decision, counted
    cycles: float  # of one decision, measured (median)
    flash_bytes: int


def paper_travel_times() -> dict[str, float]:
    """Per model, its travel time as a multiple of FixedTime's: mean over the networks that it can do."""
    models = ["EcoLight", "FixedTime", "MaxPressure", "SOTL", "CoLight", "FRAP", "MPLight", "TLRP", "TinyLight"]
    figures = {(n, m): cell.travel_time_s.mean for n in PAPER_NETWORKS for m in models if (cell := paper_cell(n, m))}
    return normalised(figures)


def table_travel_times(table_json: Path) -> dict[str, float]:
    """The same from a `tinylight table` JSON file, integers where there are any; InputError if it isn't one."""
    content = read_json(table_json, exact=True)
    try:
        figures = {}
        for row in sorted(content["rows"], key=lambda row: row["arithmetic"] == "integer"):
            figures[row["network"], row["model"].split(".")[0]] = float(row["travel_time_s"]["mean"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(table_json, "rows", f"not a table of `tinylight table`: {error!r}") from None
    if not any(model == YARDSTICK for _, model in figures):
        raise InputError(table_json, "rows", f"no row of {YARDSTICK}, which the others are measured by")
    return normalised(figures)


def normalised(figures: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """figures: travel time by (network, model)."""
    ratios: dict[str, list[float]] = {}
    for (network, model), travel_time_s in figures.items():
        if (network, YARDSTICK) in figures:
            ratios.setdefault(model, []).append(travel_time_s / figures[network, YARDSTICK])
    return {model: fmean(values) for model, values in ratios.items()}


STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tinylight",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(file: Path, costs: Sequence[Cost], travel_times: Mapping[str, float], measured: Sequence[MeasuredPoint]) -> None:
    """Writes the figure as SVG or what else the suffix says; the same input, the same bytes. Needs matplotlib."""
    import matplotlib

    figure = figure_of(costs, travel_times, measured)
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def figure_of(costs: Sequence[Cost], travel_times: Mapping[str, float], measured: Sequence[MeasuredPoint]) -> Any:
    """The matplotlib Figure."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.8, 5.4), layout="constrained")
        axes = figure.subplots()
        _limits(axes, measured)
        _models(axes, costs, travel_times, measured)
        _measured(axes, measured)
        axes.set_title("Dots: counted cost. Bars: travel time as a multiple of FixedTime's", fontsize=9, loc="left")
        axes.set_xlabel("parameters of one intersection")
        axes.set_ylabel("floating-point operations of one decision")
    return figure


def _limits(axes: Any, measured: Sequence[MeasuredPoint]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ZERO_AT / 3, 1.1e5)
    axes.set_ylim(ZERO_AT / 6, 3e6)
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


def _models(axes: Any, costs: Sequence[Cost], travel_times: Mapping[str, float], measured: Sequence[MeasuredPoint]) -> None:
    """A dot a model, on it a bar as high as its travel time, and below it, and below stars that are near, its name."""
    at: dict[tuple[float, float], list[Cost]] = {}
    for cost in costs:
        at.setdefault((max(cost.parameters, ZERO_AT), max(cost.flops, ZERO_AT)), []).append(cost)
    for (x, y), members in at.items():
        axes.plot(x, y, "o", color="#1d3557", markersize=5, zorder=3)
        for k, cost in enumerate(members):
            left = x * 1.24 ** (2 * k - (len(members) - 1))
            ratio = travel_times.get(cost.model)
            if ratio is not None:
                axes.vlines(left, y * 1.25, y * 1.25 * 10 ** (ratio * 0.6), color="#457b9d", linewidth=6, zorder=2)
                foot = y * 1.35 * 10 ** (ratio * 0.6)
                foot = next((limit * 1.08 for limit in _time_limits(measured) if foot < limit * 1.08 < foot * 1.6), foot)
                axes.text(left, foot, f"{ratio:.2f}", ha="center", va="bottom", fontsize=7)
        names = ", ".join(cost.model for cost in members)
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
