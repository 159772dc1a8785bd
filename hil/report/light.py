"""The report's part on lamps: what each crossing showed, what its monitor did, and what faults on purpose made of it."""

from html import escape
from typing import Any

from hil.loop.verdict import Verdict
from hil.report import parts

MARGINS = ("yellow_margin_ms", "red_margin_ms", "green_margin_ms")


def crossings(verdict: Verdict) -> str:
    """ "" for a run without lamps."""
    light: Any = verdict.figures.get("light")
    if not light:
        return ""
    headings = [
        "crossing", "changes", "greens", "yellow at least", "red clearance", "minimum green", "longest wait, s",
        "longest green, s", "monitor", "events told", "frames lost",
    ]  # fmt: skip
    rows = [[escape(each["intersection"]), *map(escape, _cells(each))] for each in light["crossings"]]
    return (
        "<h3>Lamps</h3><p>Every change of a lamp at the chip's pins is judged by the crossing's signal plan alone. <em>At "
        "least</em> and the two after it: how much longer than computed, in ms, the shortest was. Waits count from when "
        "somebody could leave by a red group; greens from when somebody in conflict waits.</p>"
        f"{parts.table(headings, rows, numbers=(1, 2, 3, 4, 5, 6, 7, 9, 10))}" + _faults(light.get("chip_faults", []))
    )


def _cells(each: Any) -> list[str]:
    lamps = each["lamps"]
    trips = "; ".join(f"{trip['reason']}, group {trip['group']}, at {trip['at_s']:.3f} s" for trip in each["trips"])
    return [
        f"{lamps['changes']:,}",
        f"{lamps['greens']:,}",
        *(f"{round(lamps[name], 1) + 0.0:+.1f}" if lamps[name] < float("inf") else "-" for name in MARGINS),
        f"{lamps['longest_wait_s']:.0f}",
        f"{lamps['longest_green_s']:.0f}",
        trips or "silent",
        f"{each['events']:,}",
        f"{each['frames_lost']:,}",
    ]


def _faults(found: Any) -> str:
    if not found:
        return ""
    rows = [
        [
            escape(each["intersection"]),
            f"{each['at_s']:g}",
            escape(each["kind"]),
            escape(each["expected"]),
            escape(each["seen"]),
            parts.badge("pass" if each["is_right"] else "fail"),
        ]
        for each in found
    ]
    headings = ["crossing", "at s", "fault", "by design it", "its lamps", ""]
    return f"<h3>Faults of the chip, on purpose</h3>{parts.table(headings, rows, numbers=(1,))}"
