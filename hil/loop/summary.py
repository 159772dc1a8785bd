"""Many verdicts side by side: one line each, for pytest's summary and for runs over several networks."""

import re
from collections.abc import Iterable

from rich import box
from rich.table import Table

from hil.loop.verdict import Verdict

HEADINGS = ("compute\ncycles", "response\nms", "round\ntrip ms", "flash\nB", "RAM\nB", "equal", "travel\ntime s")


def summary_row(label: str, verdict: Verdict) -> list[str]:
    """One verdict as cells: label, outcome, compute, response and round trip (largest), flash, RAM, equality, travel time."""
    latency = verdict.figures.get("latency", {})
    footprint = verdict.figures.get("footprint", {})
    traffic = verdict.figures.get("traffic", {})
    assert isinstance(latency, dict) and isinstance(footprint, dict) and isinstance(traffic, dict)
    failed = [check.name for check in verdict.checks if check.outcome == "fail"]
    equal = traffic and f"{traffic['decisions'] - traffic['unequal'] - traffic['unanswered']}/{traffic['decisions']}"
    return [
        label,
        "[green]pass[/]" if verdict.passed else f"[bold red]FAIL: {', '.join(failed) or 'nothing measured'}[/]",
        _largest(latency, "compute_cycles", 1, 0),
        _largest(latency, "response_us", 1000, 3),
        _largest(latency, "round_trip_us", 1000, 3),
        _shown(footprint.get("flash_bytes")),
        _shown(footprint.get("ram_bytes")),
        str(equal or "-"),
        f"{traffic['average_travel_time_s']:.2f}" if traffic else "-",
    ]


def summary_text(row: list[str]) -> str:
    """A row of `summary_row` as one line of plain text."""
    label, outcome, *figures = (re.sub(r"\[[^]]*\]", "", cell).replace("\n", " ") for cell in row)
    named = (f"{heading.replace(chr(10), ' ')} {figure}" for heading, figure in zip(HEADINGS, figures, strict=True))
    return f"{label}: {outcome}; {', '.join(named)}"


def summary_table(rows: Iterable[list[str]], title: str | None = None) -> Table:
    """Rows of `summary_row` under their headings."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _largest(latency: dict[str, dict[str, float]], name: str, divisor: float, digits: int) -> str:
    return f"{latency[name]['max'] / divisor:,.{digits}f}" if name in latency else "-"


def _shown(value: int | None) -> str:
    return "-" if value is None else str(value)
