"""The report: one self-contained HTML page with a section for each run, to read, print and file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TypedDict

from hil.loop.job import Job
from hil.loop.summary import HEADINGS, summary_row
from hil.loop.verdict import Verdict
from hil.report import light, parts
from model.policy.provenance import tool_version
from streetflow.files import write_whole

TEMPLATE = Path(__file__).with_name("page.html")


class Section(TypedDict):
    """A run's part of the page: plain data, so that a worker process can send it."""

    title: str
    passed: bool
    row: list[str]  # of the summary: its cells from the fourth on
    html: str


def section(job: Job, verdict: Verdict, where: str = "") -> Section:
    """The section of one run. `where` says what ran it, a test's name say."""
    title = f"{job.network.name}, flow {job.flow}, on {job.board} at {job.f_cpu_hz / 1e6:g} MHz, {job.baud:,} baud"
    title += f", mode {job.mode}" if job.mode != "answer" else ""
    pieces = (
        f'<p class="soft">{escape(where)}</p>' if where else "",
        parts.cards(verdict),
        parts.checks(verdict.checks),
        light.crossings(verdict),
        parts.latency(job, verdict),
        parts.footprint(verdict),
        parts.traffic(job, verdict) if job.mode == "answer" else "",
        parts.trials(verdict),
        parts.energy(verdict),
        parts.provenance(verdict),
    )
    return Section(title=title, passed=verdict.passed, row=summary_row(title, verdict)[2:], html="".join(pieces))


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    passed = all(each["passed"] for each in sections)
    title = f"tinylight-hil: {'PASS' if passed else 'FAIL'}"
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = (
        f'<header><div class="head"><h1>Hardware in the loop</h1>{parts.whole_badge(passed)}</div>'
        f'<p class="soft">Traffic in the simulator, every decision made by the board, judged by tinylight-hil '
        f"{tool_version()}. Written {written}.</p></header>"
    )
    body = "".join(
        f'<article id="run-{number}"><div class="head"><h2>{escape(each["title"])}</h2>'
        f"{parts.whole_badge(each['passed'])}</div>{each['html']}</article>"
        for number, each in enumerate(sections, 1)
    )
    content = head + (_summary(sections) if len(sections) > 1 else "") + body
    return TEMPLATE.read_text(encoding="utf-8").replace("{title}", title, 1).replace("{content}", content, 1)


def write_report(sections: Sequence[Section], file: Path) -> None:
    """Write the page. InputError where the file can't be written."""
    write_whole(file, page(sections))


def _summary(sections: Sequence[Section]) -> str:
    headings = ["run", "", *(heading.replace("\n", " ") for heading in HEADINGS)]
    rows = [
        [
            f'<a href="#run-{number}">{escape(each["title"])}</a>',
            parts.whole_badge(each["passed"]),
            *map(escape, each["row"]),
        ]
        for number, each in enumerate(sections, 1)
    ]
    count = len(sections)
    failed = sum(not each["passed"] for each in sections)
    words = f"{count} runs, {failed} failed" if failed else f"{count} runs, all passed"
    return f"<article><h2>{words}</h2>{parts.table(headings, rows, numbers=range(2, len(headings)))}</article>"
