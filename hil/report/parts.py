"""The parts of a run's section in the report, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hil.loop.closed_loop import DecisionRecord
from hil.loop.energy import energy_line
from hil.loop.job import Job
from hil.loop.verdict import FLASH_LIMIT_BYTES, SRAM_LIMIT_BYTES, Check, Verdict
from hil.report.charts import Series, Tile, bar, dots, histogram, lines, treemap
from hil.report.traffic import Course, courses
from hil.words import counted

OUTCOMES = {"pass": ("pass", "pass"), "fail": ("fail", "FAIL"), "not measured": ("none", "not measured")}
KINDS = {  # of a symbol's object file: CSS class and what it is
    "t0": "the policy: weights and the code that computes them",
    "t1": "inference: scaling, sums, ranges",
    "t2": "frames, commands, the serial line",
    "t3": "start, libraries, the rest",
}
POLICY, INFERENCE = ("policy", "unrolled", "kernel", "stream"), ("infer", "range", "table")
LINE = ("dispatch", "frame", "uart", "crc", "session", "unpack")
NAMES = {"f_cpu_hz": "clock, Hz", "logits": "logits fetched"}  # of the provenance
Rows = Iterable[Sequence[str]]


def badge(outcome: str) -> str:
    css, text = OUTCOMES[outcome]
    return f'<span class="badge {css}">{text}</span>'


def whole_badge(passed: bool) -> str:
    """Of a whole run, or of all."""
    return badge("fail") if not passed else '<span class="badge pass">PASS</span>'


def table(headings: Sequence[str], rows: Rows, *, numbers: Iterable[int] = (), own: str = "") -> str:
    """Cells are HTML. `numbers` are the columns of figures; the row that begins with `own` stands out."""
    right = set(numbers)

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f'<{tag} class="number">{c}</{tag}>' if n in right else f"<{tag}>{c}</{tag}>" for n, c in enumerate(row))

    css = {True: ' class="own"', False: ""}
    body = "".join(f"<tr{css[bool(own) and row[0] == own]}>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{cells("th", headings)}</tr></thead><tbody>{body}</tbody></table></div>'


def facts(rows: Iterable[tuple[str, str]], css: str = "") -> str:
    """Two columns; names and values are text."""
    cells = "".join(f'<tr><th scope="row">{escape(k)}</th><td class="{css}">{escape(v)}</td></tr>' for k, v in rows)
    return f'<div class="scroll"><table class="facts"><tbody>{cells}</tbody></table></div>'


def figure(caption: str, picture: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}</figure>"


def checks(found: Sequence[Check]) -> str:
    rows = "".join(
        f"<tr><td>{escape(c.name)}</td><td>{badge(c.outcome)}</td><td>{escape(c.measured)}</td>"
        f'<td>{escape(c.limit).replace("&lt;=", "≤")}</td><td class="remark">{escape(c.detail)}</td></tr>'
        for c in found
    )
    heads = "".join(f"<th>{name}</th>" for name in ("check", "verdict", "measured", "limit", "remark"))
    return f'<h3>Verdicts</h3><div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def cards(verdict: Verdict) -> str:
    """The figures that people look for first."""
    found: list[tuple[str, str, str]] = []
    latency: Any = verdict.figures.get("latency") or {}
    if "round_trip_us" in latency:
        found.append(("slowest decision", f"{latency['round_trip_us']['max'] / 1e3:.2f} ms", "round trip; 100 ms allowed"))
    if "compute_cycles" in latency:
        found.append(("of it computing", f"{latency['compute_cycles']['max']:,.0f}", "cycles, the largest"))
    if verdict.footprint is not None:
        share = verdict.footprint.flash_bytes / FLASH_LIMIT_BYTES
        found.append(("flash", f"{verdict.footprint.flash_bytes:,} B", f"{share:.0%} of {FLASH_LIMIT_BYTES:,} B"))
        footprint: Any = verdict.figures["footprint"]
        ram = footprint["ram_bytes"]
        found.append(("RAM with the stack", f"{ram:,} B", f"{ram / SRAM_LIMIT_BYTES:.0%} of {SRAM_LIMIT_BYTES:,} B"))
    traffic: Any = verdict.figures.get("traffic")
    if traffic:
        equal = traffic["decisions"] - traffic["unequal"] - traffic["unanswered"]
        found.append(("equal decisions", f"{equal:,} / {traffic['decisions']:,}", "phase and logits"))
        found.append(("mean travel time", f"{traffic['average_travel_time_s']:.2f} s", "with the chip deciding"))
    energy = verdict.figures.get("energy")
    if isinstance(energy, list):
        found.append(("energy a decision", f"{max(e['decision_uj'] for e in energy):,.0f} µJ", "a model, not measured"))
    cells = (f"<div><dt>{k}</dt><dd>{escape(v)}<small>{escape(s)}</small></dd></div>" for k, v, s in found)
    return f'<dl class="cards">{"".join(cells)}</dl>' if found else ""


def latency(job: Job, verdict: Verdict) -> str:
    figures: Any = verdict.figures.get("latency")
    if not figures:
        return ""
    records = verdict.records
    rows = []
    for name, stats in figures.items():
        label, _, unit = name.rpartition("_")
        scale, digits, unit = (1, 0, "cycles") if unit == "cycles" else (1000, 3, "ms")
        shown = (f"{stats[key] / scale:,.{digits}f}" for key in ("p50", "p99", "max"))
        rows.append([f"{label.replace('_', ' ')}, {unit}", *shown, f"{stats['count']:,}"])
    pictures = []
    if "compute_cycles" in figures:
        cycles = [float(r.compute_cycles) for r in records if r.compute_cycles is not None]
        pictures.append(figure("Computing", histogram(cycles, label="distribution of the compute cycles", x_title="cycles")))
    for name, field in (("Response", "response_us"), ("Round trip", "round_trip_us")):
        times = [getattr(record, field) / 1e3 for record in records if getattr(record, field) is not None]
        if times:
            pictures.append(figure(name, histogram(times, label=f"distribution of the {name.lower()}", x_title="ms")))
    lights = len({record.intersection for record in records})
    steps = [records[first : first + lights] for first in range(0, len(records), lights)]
    trips = [[r.round_trip_us / 1e3 for r in step if r.round_trip_us is not None] for step in steps]
    if not any(trips):
        return "<h3>Latency</h3><p>No decision arrived.</p>"
    lost = [number for number, step in enumerate(steps) if not all(record.answered for record in step)]
    caption = "Round trip of each decision in the run, ms" + (f", of {lights} lights each time" if lights > 1 else "")
    caption += f"; red: {counted(len(lost), 'step')} with a decision that didn't arrive" if lost else ""
    time_line = dots(trips, lost, label="round trips over the run", x_title="decision", limit=job.budget_s * 1e3)
    return (
        "<h3>Latency</h3><p>Computing is the chip's own stopwatch around a decision; the response is from the last bit of the "
        "request to the first of the reply; the round trip from the first byte sent to the decision in hand, retries "
        f"included.</p>{table(['', 'median', '99 %', 'largest', 'decisions'], rows, numbers=(1, 2, 3, 4))}"
        f'<div class="row">{"".join(pictures)}</div>{figure(caption, time_line)}'
    )


def kind_of(symbol: str) -> str:
    """The CSS class of a symbol, by the object file that it is in."""
    file = symbol.partition(":")[0].rpartition("/")[2]
    for css, beginnings in (("t0", POLICY), ("t1", INFERENCE), ("t2", LINE)):
        if file.startswith(beginnings):
            return css
    return "t3"


def footprint(verdict: Verdict) -> str:
    found = verdict.footprint
    if found is None:
        why = next((f": {check.detail}" for check in verdict.checks if check.name == "flash" and check.detail), "")
        return f"<h3>Footprint</h3><p>Not measured{escape(why)}.</p>"
    flash = [Tile(name.partition(":")[2] or name, size.flash_bytes, kind_of(name)) for name, size in found.per_symbol.items()]
    ram = sorted(
        (Tile(name.partition(":")[2] or name, size.static_ram_bytes, kind_of(name)) for name, size in found.per_symbol.items()),
        key=lambda tile: (tile.css, -tile.size),
    )
    figures: Any = verdict.figures["footprint"]
    stack = figures["ram_bytes"] - found.static_ram_bytes
    ram_parts = [tile for tile in ram if tile.size] + [Tile("stack, the most it can be", stack, "t0")]
    largest = sorted(found.per_symbol.items(), key=lambda item: -item[1].flash_bytes)[:10]
    rows = [[escape(name), f"{size.flash_bytes:,}", f"{size.static_ram_bytes:,}"] for name, size in largest]
    key = "".join(f'<li><i class="{css}"></i>{what}</li>' for css, what in KINDS.items())
    more = len(found.per_symbol) - len(rows)
    return (
        f'<h3>Footprint</h3><ul class="key">{key}</ul>'
        + figure(
            f"Flash by symbol: {found.flash_bytes:,} of {FLASH_LIMIT_BYTES:,} B",
            treemap(flash, label="flash by symbol", unit="B"),
        )
        + figure(
            f"RAM: {found.static_ram_bytes:,} B of statics and {stack:,} B of stack (the last part), of {SRAM_LIMIT_BYTES:,} B",
            bar(ram_parts, SRAM_LIMIT_BYTES, label="RAM by symbol, and the stack", unit="B"),
        )
        + table(["largest symbols", "flash, B", "RAM, B"], rows, numbers=(1, 2))
        + (f'<p class="note">and {more} smaller ones</p>' if more > 0 else "")
    )


def traffic(job: Job, verdict: Verdict) -> str:
    if not verdict.records:
        return ""
    runs = courses(job, verdict.records)
    series = [Series(run.name, f"s{n}", [t / 60 for t in run.time_s], run.queued) for n, run in enumerate(runs)]
    dash = '<svg viewBox="0 0 30 12" aria-hidden="true"><path class="line {css}" d="M0 6H30"/></svg>'
    key = "".join(f"<li>{dash.format(css=each.css)}{escape(each.name)}</li>" for each in series)
    headings = ["", "travel time, s", "delay, s", "mean queue", "largest queue", "waiting to enter", "finished", "vehicles/min"]
    rows = [[escape(run.name), *_course_cells(run)] for run in runs]
    return (
        "<h3>Traffic</h3><p>The same vehicles under this policy, as the board decided, and under three rules, with the same "
        f'clearance.</p><ul class="key">{key}</ul>'
        + figure(
            "Vehicles that stand or wait to enter, at the end of each decision's interval",
            lines(series, label="queues over the run", x_title="minutes"),
        )
        + table(headings, rows, numbers=range(1, 8), own="this policy")
    )


def _course_cells(run: Course) -> list[str]:
    def cell(name: str, digits: int, scale: float = 1.0, unit: str = "") -> str:
        value = run.measures[name]
        return "-" if value is None else f"{value * scale:,.{digits}f}{unit}"

    return [
        cell("travel_time_s", 2),
        cell("delay_s", 2),
        cell("queue_vehicles", 1),
        cell("largest_queue_vehicles", 0),
        cell("entry_queue_vehicles", 1),
        cell("completion_rate", 1, 100, " %"),
        f"{run.throughput_veh_per_min:.2f}",
    ]


def trials(verdict: Verdict) -> str:
    """Sweep, conduct, range, line and faults, in words and figures."""
    rows: list[tuple[str, str]] = []
    figures: Mapping[str, Any] = verdict.figures
    if sweep := figures.get("sweep"):
        text = f"{counted(sweep['inputs'], 'input')} made from the policy; they show {sweep['shown']:,} of {sweep['total']:,} "
        text += f"things that inputs can show; largest decision {sweep['largest_compute_cycles']:,} cycles"
        rows.append(("sweep", _with_faults(text, [*sweep["wrong"], *sweep["unanswered"]])))
    if conduct := figures.get("conduct"):
        text = f"tried: {', '.join(conduct['tried'])}"
        text += f"; not tried on this board: {', '.join(conduct['not_tried'])}" if conduct["not_tried"] else ""
        rows.append(("conduct", _with_faults(text, conduct["faults"])))
    if found := figures.get("range"):
        text = f"of {found['decisions']:,} decisions, {found['beyond_range']:,} with an input beyond its range and "
        rows.append(("range", text + f"{found['at_limit']:,} with a hidden unit at its limit"))
    if line := figures.get("link"):
        rows.append(("line", ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in line.items())))
    if verdict.records:
        faults: Any = figures.get("faults") or {}
        injected = ", ".join(f"{count:,} {kind}" for kind, count in faults.items())
        rows.append(("faults on purpose", injected or "none"))
    unlike = [record for record in verdict.records if not record.equal][:5]
    rows += [(f"decision {record.decision}, {record.intersection}", _unlike(record)) for record in unlike]
    return f"<h3>Trials, range and line</h3>{facts(rows)}" if rows else ""


def _with_faults(text: str, faults: Sequence[str]) -> str:
    return text + (f". {counted(len(faults), 'fault')}: {'; '.join(faults[:5])}" if faults else "")


def _unlike(record: DecisionRecord) -> str:
    if record.fault is not None:
        return record.fault
    return (
        f"phase {record.phase} for {record.expected_phase}; logits {list(record.logits or ())} for "
        f"{list(record.expected_logits)}"
    )


def energy(verdict: Verdict) -> str:
    found = verdict.figures.get("energy")
    if found is None:
        return ""
    head = "<h3>Energy: a model, not a measurement</h3>"
    if not isinstance(found, list):
        return f"{head}<p>{escape(energy_line(found))}</p>"
    headings = ["chip", "awake, cycles", "asleep, cycles", "µJ a decision", "J a day", "mean mA", "at V", "battery, days"]
    rows = [
        [
            str(number),
            f"{each['awake_cycles']:,}",
            f"{each['asleep_cycles']:,}",
            f"{each['decision_uj']:,.1f}",
            f"{each['day_j']:,.0f}",
            f"{each['mean_ma']:.2f}",
            f"{each['volts']:g}",
            f"{each['battery_days']:.1f}",
        ]
        for number, each in enumerate(found, 1)
    ]
    return (
        f"{head}<p>The emulated cycles of the run's decisions times the typical currents of the ATmega328P's datasheet, for "
        "the chip alone. A day has a decision of each light every interval; between them the chip sleeps. Battery: "
        f"{escape(found[0]['battery'])}.</p>{table(headings, rows, numbers=range(1, 8))}"
    )


def provenance(verdict: Verdict) -> str:
    rows = [(NAMES.get(name, name.replace("_", " ")), str(value)) for name, value in verdict.provenance.items()]
    return f"<h3>Provenance</h3>{facts(rows, 'hash')}"
