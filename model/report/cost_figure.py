"""The figure of costs, in two panels: every model's travel time over its operations, and its share of the chip's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from model.report.cost import Cost
from model.report.paper_table import PAPER_NETWORKS, paper_cell
from streetflow.errors import InputError
from streetflow.files import written_aside
from streetflow.roadnet.json_reader import read_json

FLASH_BYTES = 32 * 1024
RAM_BYTES = 2 * 1024
RESPONSE_S = 0.1
CHIP_HZ = 8_000_000  # the paper's clock
PAPER_S_PER_FLOP = 18.78e-3 / 2031  # its TinyLight instance on the ATmega328P (Appendix B)
TINYLIGHT = "TinyLight"  # travel times are shown as multiples of this model's
LABELS = {f"{TINYLIGHT}.best": f"{TINYLIGHT} (ours)", f"{TINYLIGHT}.paper": f"{TINYLIGHT} (paper's settings)"}
ZERO_AT = 3.0  # where the log axis of operations shows 0
DOT, FLASH, RAM, TIME, MUTED = "#1d3557", "#457b9d", "#8ab17d", "#e9a03b", "0.4"
SHARE_SHOWN = 1.15  # longer bars end here, in a point
FULL_BAR = 0.8  # rows are 1 apart


@dataclass(frozen=True)
class MeasuredPoint:
    """A policy on the emulated chip."""

    label: str
    flops: int  # of one decision, counted
    cycles: float  # of one decision, measured (median)
    flash_bytes: int  # of the whole firmware
    ram_bytes: int  # statics, and the stack that the machine code can need


@dataclass(frozen=True)
class TravelTime:
    """How long a model's vehicles take as a multiple of the reference's: mean over the networks that both have, each on the
    flows that both have. So all models' figures are comparable, whatever networks they can control."""

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
    """Writes the figure as SVG or in the suffix's format; the same input, the same bytes. Needs matplotlib."""
    import matplotlib

    figure = figure_of(costs, travel_times, measured)
    with matplotlib.rc_context(STYLE), written_aside(file) as aside:
        date = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(aside, format=file.suffix[1:] or None, metadata=date)


def figure_of(costs: Sequence[Cost], travel_times: Sequence[TravelTime], measured: Sequence[MeasuredPoint]) -> Any:
    """The matplotlib Figure."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 5.2))
        times, chip = figure.subplots(
            1,
            2,
            gridspec_kw={"width_ratios": [1.2, 1], "wspace": 0.29, "left": 0.06, "right": 0.98, "bottom": 0.11, "top": 0.88},
        )
        _travel_times(times, costs, travel_times)
        _chip(chip, costs, measured)
    return figure


def _travel_times(axes: Any, costs: Sequence[Cost], travel_times: Sequence[TravelTime]) -> None:
    """A dot a model: travel time over the operations of one decision."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    reference = next((each.label for each in travel_times if each.multiple == 1.0), TINYLIGHT)
    most = max((each.networks for each in travel_times), default=0)
    axes.set_title("Travel time against cost: less of both is better", loc="left", fontsize=11, weight="bold", pad=12)
    axes.set_ylabel(f"travel time, {reference} = 1" + f", mean over {most} networks" * (most > 1))
    axes.set_xlabel("operations of one decision (additions, multiplications, comparisons)")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([ZERO_AT, *(10.0**k for k in range(1, 6))]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == ZERO_AT else f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="0.92", zorder=0)
    flops = {cost.model: max(cost.flops, ZERO_AT) for cost in costs}
    dots = [(flops[each.model], each) for each in travel_times]
    axes.set_xlim(ZERO_AT / 1.6, max([1e5, *flops.values()]) * 25)
    axes.set_ylim(0.8, max([2.0, *(each.multiple for each in travel_times)]) + 0.15)
    for x, each in dots:
        axes.plot(x, each.multiple, "o", color=TIME if each.model == TINYLIGHT else DOT, markersize=7, zorder=3)
    texts = [f"{each.label} {each.multiple:.2f}{_few(each, most)}" for _, each in dots]
    _label_dots(axes, [(x, each.multiple) for x, each in dots], texts)


def _few(each: TravelTime, most: int) -> str:
    """The label's note on a model that can't control all networks."""
    return "" if each.networks == most else f"\n({each.networks} network{'s' * (each.networks > 1)})"


def _label_dots(axes: Any, dots: Sequence[tuple[float, float]], texts: Sequence[str]) -> None:
    """A text beside each dot, at the first place around it that lies on no other dot or text, and inside the axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    inside = axes.get_window_extent(renderer)
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in axes.transData.transform(dots)]
    places = [
        (sign * dx, dy, side, "center")
        for dy, dx in ((0, 8), (11, 4), (-11, 4), (14, -20), (-14, -20), (24, -40), (-24, -40), (36, -40), (-36, -40))
        for sign, side in ((1, "left"), (-1, "right"))
    ]
    for dot, text in sorted(zip(dots, texts, strict=True), key=lambda each: -each[0][0]):
        for x, y, horizontal, vertical in places:
            label = axes.annotate(text, dot, (x, y), textcoords="offset points", ha=horizontal, va=vertical, fontsize=8.5)
            box = label.get_window_extent(renderer)
            if inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1) and not any(map(box.overlaps, taken)):
                break
            label.remove()
        else:
            label = axes.annotate(text, dot, (8, 0), textcoords="offset points", va="center", fontsize=8.5)
        taken.append(label.get_window_extent(renderer).padded(5, 0))


def _chip(axes: Any, costs: Sequence[Cost], measured: Sequence[MeasuredPoint]) -> None:
    """Bars: shares of an ATmega328P's limits, counted for every model with any cost, measured for every policy."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import FixedLocator, FuncFormatter

    speed_s = fmean(point.cycles / point.flops for point in measured) / CHIP_HZ if measured else PAPER_S_PER_FLOP
    models = [(name, [(FLASH, size / FLASH_BYTES), (TIME, n * speed_s / RESPONSE_S)]) for name, size, n in _sizes(costs)]
    chips = [
        (point.label, [(FLASH, point.flash_bytes / FLASH_BYTES), (RAM, point.ram_bytes / RAM_BYTES),
                       (TIME, point.cycles / CHIP_HZ / RESPONSE_S)])
        for point in measured
    ]  # fmt: skip
    speed = f"{speed_s * CHIP_HZ:.1f} cycles an operation" if measured else "the paper's 9.2 µs an operation"
    groups = [
        (f"8-bit weights, {speed}", [row for row in models if _seen(row[1])]),
        ("TinyLight's firmware on the emulated chip", chips),
    ]
    y, ticks = 0.0, []
    for heading, rows in groups:
        if rows:
            axes.text(0.01, y, heading, fontsize=8.5, style="italic", color=MUTED, va="center", zorder=5)
        for name, bars in rows:
            y += 1
            _row_of_bars(axes, y - 0.2, bars)
            ticks.append((y - 0.2, name))
        y += 1
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(ticks[-1][0] + 0.6, -0.5)
    axes.set_xlim(0, SHARE_SHOWN + 0.05)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share * 100:.0f} %"))
    axes.axvline(1.0, color="#c1121f", linewidth=1.2, zorder=1)
    axes.set_title("What fits an ATmega328P: shares of its limits", loc="left", fontsize=11, weight="bold", pad=24)
    axes.set_xlabel("share of the limit (red: 100 %)")
    names = [(FLASH, f"{FLASH_BYTES // 1024} KB of flash"), (TIME, f"{RESPONSE_S} s at {CHIP_HZ // 1_000_000} MHz")]
    if measured:
        names.insert(1, (RAM, f"{RAM_BYTES // 1024} KB of RAM"))
    handles = [Patch(color=colour, label=name) for colour, name in names]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 0.995), ncols=3, frameon=False, borderpad=0.2, columnspacing=1.2
    )


def _seen(bars: Sequence[tuple[str, float]]) -> bool:
    return max(share for _, share in bars) >= 0.005


def _sizes(costs: Sequence[Cost]) -> list[tuple[str, int, int]]:
    """(models, parameters, FLOPs), one for all models of one size."""
    sizes: dict[tuple[int, int], list[str]] = {}
    for cost in costs:
        sizes.setdefault((cost.parameters, cost.flops), []).append(cost.model)
    return [(", ".join(sorted(models)), parameters, flops) for (parameters, flops), models in sizes.items()]


def _row_of_bars(axes: Any, row: float, bars: Sequence[tuple[str, float]]) -> None:
    height = FULL_BAR / len(bars)
    for k, (colour, share) in enumerate(bars):
        y = row - FULL_BAR / 2 + height * (k + 0.5)
        axes.barh(y, min(share, SHARE_SHOWN), height * 0.9, color=colour, zorder=2)
        text = f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:,.0f} %"
        if share > SHARE_SHOWN:
            axes.plot(SHARE_SHOWN, y, ">", color=colour, markersize=9, zorder=2)
        end = min(share, SHARE_SHOWN)
        inside = share > 0.9
        axes.text(end - 0.02 if inside else end + 0.012, y, text, va="center", ha="right" if inside else "left", fontsize=8)
