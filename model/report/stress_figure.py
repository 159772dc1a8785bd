"""The figure of the scorecard: every agent's loss against the best rule, column by column, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.report.cost_figure import STYLE
from model.report.stress import Score, labels
from streetflow.files import written_aside

# Okabe and Ito's colours, which differ for all kinds of colour-blindness, each with a marker of its own for print in grey.
LOOKS = (
    ("#D55E00", "o"), ("#0072B2", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"),
    ("#000000", "X"), ("#7F7F7F", "*"),
)  # fmt: skip
LINEAR_TO = 10.0  # per cent; beyond it the axis is logarithmic
TICKS = (-100, -30, -10, -5, 0, 5, 10, 30, 100, 300, 1000, 3000, 10_000)
ROW_INCHES, HEAD_INCHES = 0.5, 1.5


def draw(file: Path, scores: Sequence[Score], network: str, agents: Sequence[str]) -> None:
    """Writes the figure as SVG or in the suffix's format; the same input, the same bytes. Needs matplotlib."""
    import matplotlib

    figure = figure_of(scores, network, agents)
    with matplotlib.rc_context(STYLE), written_aside(file) as aside:
        date = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(aside, format=file.suffix[1:] or None, metadata=date)


def figure_of(scores: Sequence[Score], network: str, agents: Sequence[str]) -> Any:
    """The matplotlib Figure. agents: those that are shown, beside the names of the best rules."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = list(dict.fromkeys(score.column for score in scores))
    with matplotlib.rc_context(STYLE):
        height = HEAD_INCHES + ROW_INCHES * len(columns)
        figure = Figure(figsize=(9, height))
        axes = figure.subplots(
            gridspec_kw={"left": 0.11, "right": 0.79, "bottom": 0.55 / height, "top": 1 - (HEAD_INCHES - 0.55) / height}
        )
        _axes(axes, columns)
        for number, agent in enumerate(agents):
            own = [score for score in scores if score.agent == agent]
            _agent(axes, own, columns, (number + 0.5) / len(agents) - 0.5, number, labels(agents)[agent])
        _best_rules(axes, scores, columns)
        _range(axes, [score for score in scores if score.agent in agents])
        axes.set_title(
            f"{network}: mean travel time against the best rule on the same traffic, 95 % intervals",
            loc="left", x=-0.15, fontsize=11, weight="bold", pad=34,
        )  # fmt: skip
        figure.legend(
            loc="upper left",
            bbox_to_anchor=(0.005, 1 - 0.48 / height),
            ncols=6,
            frameon=False,
            columnspacing=1.2,
            handletextpad=0.4,
        )
    return figure


def _axes(axes: Any, columns: Sequence[str]) -> None:
    axes.set_xscale("symlog", linthresh=LINEAR_TO, linscale=1.6)
    axes.set_ylim(len(columns) - 0.5, -0.5)
    axes.set_yticks(range(len(columns)), columns)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.9", zorder=0)
    axes.set_axisbelow(True)
    for row in range(0, len(columns), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=-1, linewidth=0)
    axes.axvline(0, color="0.2", linewidth=1.2, zorder=1.5)
    axes.set_xlabel("loss against the best rule, % of its travel time (left of 0: better than every rule)")


def _agent(axes: Any, own: Sequence[Score], columns: Sequence[str], offset: float, number: int, label: str) -> None:
    colour, marker = LOOKS[number % len(LOOKS)]
    filled = number < len(LOOKS)
    mean, low, high = ([100 * getattr(score.loss, name) for score in own] for name in ("mean", "low", "high"))
    rows = [columns.index(score.column) + 0.72 * offset for score in own]
    axes.hlines(rows, low, high, color=colour, linewidth=1.3, zorder=2)
    axes.plot(
        mean, rows, marker, color=colour, markerfacecolor=colour if filled else "white", markersize=4.5, label=label, zorder=3
    )  # fmt: skip


def _best_rules(axes: Any, scores: Sequence[Score], columns: Sequence[str]) -> None:
    """At the right of each row, the rule that all are measured by."""
    at = axes.get_yaxis_transform()
    axes.text(1.02, -0.75, "best rule", transform=at, fontsize=8.5, style="italic", color="0.4", va="center")
    for row, column in enumerate(columns):
        (best,) = (score for score in scores if score.column == column and score.agent == score.best_rule)
        text = f"{best.best_rule} {best.travel_time_s.mean:.1f} s"
        axes.text(1.02, row, text, transform=at, fontsize=8.5, va="center")


def _range(axes: Any, shown: Sequence[Score]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = (100 * bound for bound in (min(each.loss.low for each in shown), max(each.loss.high for each in shown)))
    low, high = min(1.25 * low, -LINEAR_TO / 2), max(1.25 * high, LINEAR_TO)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in TICKS if low <= tick <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+,.0f}" if value else "0"))
