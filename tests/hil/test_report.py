"""The report: all of it inside, right figures, and sound to look at in a browser, light and dark, wide and narrow."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hil.loop.job import Job, run_job
from hil.loop.record import run_recorded
from hil.loop.verdict import Check, Verdict
from hil.report.charts import Tile, bar, dots, histogram, ticks, treemap
from hil.report.page import page, section
from hil.report.traffic import RULES, courses
from model.evaluate import RunSettings, evaluate
from tests.helpers.processes import PATIENCE_S
from tests.helpers.run_cli import tinylight

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--dump-dom"]
VOID = {"meta", "br", "path", "rect", "polyline"}
# What a reader would see: run in the page, its result is left in the DOM.
LOOK = """<script>
const of = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const meet = (a, b) => a[0] < b[2] - 1 && b[0] < a[2] - 1 && a[1] < b[3] - 1 && b[1] < a[3] - 1;
const overlaps = [], outside = [];
for (const svg of document.querySelectorAll("svg")) {
  const box = of(svg), texts = [...svg.querySelectorAll("text")];
  for (const [n, text] of texts.entries()) {
    const own = of(text);
    const inside = own[0] >= box[0] - 1 && own[2] <= box[2] + 1 && own[1] >= box[1] - 3 && own[3] <= box[3] + 3;
    if (!inside) outside.push(text.textContent);
    for (const other of texts.slice(n + 1)) if (meet(own, of(other))) overlaps.push([text.textContent, other.textContent]);
  }
}
const wide = (e) => e.scrollWidth > e.clientWidth + 1;
const cells = [...document.querySelectorAll("td.number, dd")].filter(wide).map((e) => e.textContent);
const colour = (e, what) => getComputedStyle(e)[what];
const seen = { overlaps, outside, cells, width: document.documentElement.scrollWidth, window: innerWidth,
  page: colour(document.body, "backgroundColor"), ink: colour(document.body, "color"), badges: [] };
for (const badge of document.querySelectorAll(".badge"))
  seen.badges.push([badge.textContent, colour(badge, "color"), colour(badge, "backgroundColor")]);
const pre = document.createElement("pre");
pre.id = "seen"; pre.textContent = JSON.stringify(seen); document.body.append(pre);
</script>"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Job, Verdict, Path]]:
    """A passing run, three lights on one chip, and one with a wrong weight."""
    found = []
    for number, job in enumerate(
        (
            Job.named("crossing", 0, None),
            Job.named("arterial", 0, None, kernel="table", sweep=False),
            Job.named("crossing", 0, None, firmware_flags=("-DTL_FLIP_WEIGHT=3",), sweep=False),
        )
    ):
        record = tmp_path_factory.mktemp("report") / f"{number}.record"
        found.append((job, run_recorded(job, record), record))
    return found


@pytest.fixture(scope="module")
def whole(runs: list[tuple[Job, Verdict, Path]]) -> str:
    return page([section(job, verdict) for job, verdict, _ in runs])


class Reader(HTMLParser):
    """Tags that match, what refers to elsewhere, ids, and the text by article."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.references += [str(named[name]) for name in ("src", "href", "xlink:href", "data", "action") if name in named]
        self.ids += [str(named["id"])] if "id" in named else []


@pytest.mark.hil
def test_all_of_it_is_inside(whole: str) -> None:
    reader = Reader(whole)
    assert reader.references and all(each.removeprefix("#") in reader.ids for each in reader.references)
    assert not re.search(r"https?:|url\(|@import|//[a-z]", whole) and not reader.tags & {"script", "link", "img", "iframe"}
    assert len(whole.encode()) < 300_000, "three runs of an hour; the limit for a page is 1 MB"


@pytest.mark.hil
def test_it_says_what_the_verdicts_say(runs: list[tuple[Job, Verdict, Path]], whole: str) -> None:
    articles = [Reader(each).text for each in re.findall(r'<article id="run-\d+">.*?</article>', whole, re.DOTALL)]
    assert len(articles) == len(runs)
    for (_, verdict, _), text in zip(runs, articles, strict=True):
        for check in verdict.checks:
            assert check.name in text and check.measured in text and check.detail in text
        for value in verdict.provenance.values():
            assert str(value) in text
        traffic: Any = verdict.figures["traffic"]
        assert f"{traffic['average_travel_time_s']:.2f}" in text and "a model, not a measurement" in text
        assert ("PASS" in text, "FAIL" in text) == (verdict.passed, not verdict.passed)
    assert "3 runs, 1 failed" in Reader(whole).text
    assert "phase" in articles[2].partition("Trials")[2] and "logits [" in articles[2]


@pytest.mark.hil
def test_the_traffic_is_the_runs_and_the_rules_are_evaluates(runs: list[tuple[Job, Verdict, Path]]) -> None:
    for job, verdict, _ in runs[1:]:  # one with a wrong weight: the traffic is that of the chip's own decisions
        own, *rules = courses(job, verdict.records)
        traffic: Any = verdict.figures["traffic"]
        assert own.measures["travel_time_s"] == pytest.approx(traffic["average_travel_time_s"], abs=1e-9)
        assert own.throughput_veh_per_min == traffic["throughput_veh_per_min"]
        assert [each.name for each in rules] == list(RULES)
        assert len(own.queued) == len(own.time_s) == 181 and own.time_s[-1] == 3600
    settings = RunSettings(clearance=str(verdict.provenance["clearance"]))
    for rule in rules:
        (row,) = evaluate("crossing", rule.name, [0], settings=settings)
        assert rule.measures["travel_time_s"] == pytest.approx(row.average_travel_time_s, abs=1e-9)


@pytest.mark.hil
def test_a_report_of_a_replay_is_that_of_the_run(
    runs: list[tuple[Job, Verdict, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job, verdict, record = runs[0]
    assert tinylight("hil", "--replay", str(record), "--report", "report.html") == 0
    written = re.compile(r"Written .*? UTC")
    assert written.sub("", Path("report.html").read_text()) == written.sub("", page([section(job, verdict)]))


@pytest.mark.hil
def test_a_run_that_never_began_has_a_section(runs: list[tuple[Job, Verdict, Path]]) -> None:
    job, verdict, _ = runs[0]
    silent = run_job(replace(job, firmware_flags=("-DTL_SILENT_AFTER=0",)))
    broken = replace(verdict, checks=[Check("handshake", "fail", "<b>a & b</b>", "'", '"><script>x</script>')], footprint=None)
    text = page([section(job, silent), section(job, broken, "<where>")])
    assert "no answer" in Reader(text).text and "script" not in Reader(text).tags and "&lt;where&gt;" in text


@pytest.mark.hil
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian's package chromium)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 500)])
def test_a_browser_shows_it_well(whole: str, scheme: str, width: int, tmp_path: Path) -> None:
    """No text runs into another or out of its picture, nothing is wider than the window, colours follow the scheme."""
    seen = looked_at(whole, scheme, width, tmp_path)
    assert (seen["overlaps"], seen["outside"], seen["cells"]) == ([], [], [])
    assert seen["width"] <= seen["window"] == width
    assert (luminance(seen["page"]) > 0.5) is (scheme == "light")
    assert contrast(seen["ink"], seen["page"]) > 10
    assert {text for text, *_ in seen["badges"]} >= {"PASS", "FAIL", "pass", "not measured"}
    for text, ink, back in seen["badges"]:
        assert contrast(ink, back) >= 4.5, f"{text} can be read"


def looked_at(text: str, scheme: str, width: int, folder: Path) -> dict[str, Any]:
    assert CHROMIUM is not None
    file = folder / "report.html"
    file.write_text(text.replace("</body>", LOOK + "</body>"))
    preferred = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    command = [
        CHROMIUM,
        *SWITCHES,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},900",
        preferred,
        file.as_uri(),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen


def luminance(colour: str) -> float:
    """Of a CSS colour, as WCAG 2 defines it."""
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rectangles(picture: str) -> list[tuple[float, float, float, float]]:
    pattern = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    return [(float(x), float(y), float(w), float(h)) for x, y, w, h in re.findall(pattern, picture)]


@pytest.mark.parametrize("sizes", [[1], [10_866, 534, 264, 208, 178, 142, 3, 2, 1], [7] * 40])
def test_a_treemaps_areas_are_its_sizes(sizes: Sequence[int]) -> None:
    found = rectangles(treemap([Tile(f"s{n}", size, "t0") for n, size in enumerate(sizes)], label="", unit="B"))
    scale = 960 * 300 / sum(sizes)
    assert len(found) == len(sizes)
    for size, (x, y, width, height) in zip(sorted(sizes, reverse=True), found, strict=True):
        assert (width + 1) * (height + 1) == pytest.approx(size * scale, rel=0.02, abs=30)
        assert x >= 0 and y >= 0 and x + width <= 960 and y + height <= 300
    for number, (x, y, width, height) in enumerate(found):
        for left, top, other_width, other_height in found[number + 1 :]:
            apart = x + width <= left or left + other_width <= x or y + height <= top or top + other_height <= y
            assert apart


def test_a_histogram_has_every_value_and_a_bars_parts_their_share() -> None:
    picture = histogram([1.0, 1.0, 1.0, 2.0], label="", x_title="ms", bins=2)
    heights = [float(a) - float(b) for a, b in re.findall(r'd="M[\d.]+ ([\d.]+)V([\d.]+)h', picture)]
    assert len(heights) == 2 and heights[0] == pytest.approx(3 * heights[1], abs=0.3)
    assert "nan" not in histogram([5.0], label="", x_title="ms") and "nan" not in histogram([0.0], label="", x_title="ms")
    stack = bar([Tile("a", 512, "t0"), Tile("b", 1_024, "t1")], 2_048, label="", unit="B")
    assert [round(width + 1) for _, _, width, _ in rectangles(stack)] == [240, 480]


def test_ticks_are_round_and_cover_the_range() -> None:
    assert ticks(0, 100, 4) == [0, 50, 100] and ticks(7.5148, 7.5246, 4) == pytest.approx([7.51, 7.515, 7.52, 7.525])
    for low, high in ((0.0, 0.0), (-3.0, 5.0), (1e-7, 2e-7), (1e9, 3e9)):
        found = ticks(low, high, 5)
        assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 8


def test_lost_decisions_are_marked() -> None:
    picture = dots([[1.0], [], [2.0, 3.0]], [1], label="", x_title="decision", limit=100.0)
    assert picture.count('class="missing"') == 1 and 'class="limit"' not in picture
    assert 'class="limit"' in dots([[60.0]], [], label="", x_title="decision", limit=100.0)
