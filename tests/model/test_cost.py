"""Counted costs: the paper's totals and rows, other intersections by hand, and what is measured on the chip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hil.loop.chip_cost import counted_costs, measure_policy
from model import pretrained_policy
from model.policy.file import load_policy
from model.report.cost import (
    PAPER_GEOMETRY,
    PAPER_SHAPE,
    Geometry,
    costs,
    geometry_of,
    neighbours,
    tinylight_cost,
)
from model.report.cost_figure import (
    MeasuredPoint,
    TravelTime,
    draw,
    figure_of,
    paper_travel_times,
    relative,
    table_travel_times,
)
from streetflow.control.intersection import signalled_intersections
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.reader import read_roadnet
from tests.helpers.places import ROOT
from tests.helpers.run_cli import tinylight
from tests.helpers.shared_data import needs_data_set

TABLE = ROOT / "docs" / "results" / "table1.json"
TOTALS = {
    "CoLight": (19_337, 102_996), "EcoLight": (162, 342), "FRAP": (1_369, 183_676), "MPLight": (1_369, 183_676),
    "TinyLight": (1_001, 2_031), "TLRP": (1_001, 2_031), "SOTL": (2, 14), "MaxPressure": (0, 33), "FixedTime": (0, 0),
}  # fmt: skip
INSTANTIATIONS = {  # Appendix C's rightmost columns, parameters and FLOPs, rows that are 0 left out
    "CoLight": (
        [1_088, 1_056, 5_280, 5_280, 5_280, 1_056, 297],
        [2_208, 2_144, 17_408, 10_720, 53_600, 1_600, 75, 10_720, 1_600, 192, 2_144, 585],
    ),
    "EcoLight": ([30, 110, 22], [70, 230, 42]),
    "FRAP": ([8, 8, 144, 8, 660, 100, 420, 21], [20, 20, 304, 20, 93_600, 12_960, 61_920, 2_952, 10_368, 1_440, 72]),
    "TinyLight": ([234, 198, 380, 189], [486, 378, 18, 780, 369]),
}


def test_totals_are_the_papers() -> None:
    assert {each.model: (each.parameters, each.flops) for each in costs(PAPER_GEOMETRY)} == TOTALS


@pytest.mark.parametrize("model", INSTANTIATIONS)
def test_rows_are_the_papers(model: str) -> None:
    (counted,) = (each for each in costs(PAPER_GEOMETRY) if each.model == model)
    assert [row.parameters for row in counted.rows if row.parameters] == INSTANTIATIONS[model][0]
    assert [row.flops for row in counted.rows if row.flops] == INSTANTIATIONS[model][1]


def test_the_papers_count_of_tinylight_has_18_parameters_too_many_and_says_so() -> None:
    tinylight = costs(PAPER_GEOMETRY)[-1]
    assert tinylight.parameters - tinylight.actual_parameters == 18
    assert "9-wide feature as of one 10 wide; there are 983" in tinylight.note
    exact = tinylight_cost(PAPER_SHAPE, 9)
    assert (exact.parameters, exact.flops) == (13 * 18 + 10 * 18 + 19 * 20 + 21 * 9, 2_031)


def test_another_intersection_by_hand() -> None:
    """2 in-lanes, 3 out-lanes, 2 phases, 4 lane links, alone."""
    counted = {each.model: (each.parameters, each.flops) for each in costs(Geometry(2, 3, 2, 4, 1))}
    assert counted["MaxPressure"] == (0, 7)
    assert counted["SOTL"] == (2, 4)
    assert counted["EcoLight"] == TOTALS["EcoLight"]
    assert counted["FRAP"] == (1_369, 20 * 3 + 304 + 2 * (1_300 + 180 + 860 + 41) + 2 * 4 * 16 * 2 + 2 * 20 + 2)
    assert counted["TinyLight"] == (3 * 18 + 4 * 18 + 380 + 42, 7 * 18 + 7 * 18 + 18 + 780 + 82)
    alone = 15 * 32 + 64 + 2_144 + 3 * 10_720 + 5 * (2 * 32 + 3 + 2 * 32) + 192 + 2_144 + 130
    assert counted["CoLight"] == (8 * 32 + 1_056 * 17 + 66, alone)


@needs_data_set("Jinan")
def test_jinan_has_the_papers_intersection() -> None:
    found = signalled_intersections(read_roadnet(find_network("Jinan").roadnet_file))
    geometries = [geometry_of(found, index) for index in range(len(found))]
    assert [geometry.relevant_intersections for geometry in geometries].count(5) == 2  # the inner ones of 4 x 3
    assert PAPER_GEOMETRY in geometries


def test_neighbours_are_mutual_and_joined_by_a_road() -> None:
    """The arterial has three lights in a row."""
    found = signalled_intersections(read_roadnet(find_network("arterial").roadnet_file))
    assert [neighbours(found, index) for index in range(3)] == [[1], [0, 2], [1]]


def test_models_are_held_against_tinylight_on_the_networks_and_flows_that_both_have() -> None:
    """X does only the easier network, on which the reference takes 10 s, and there one flow more."""
    figures = {
        ("a", "R"): {0: 8.0, 1: 12.0},
        ("b", "R"): {0: 90.0},
        ("a", "X"): {0: 9.0, 1: 13.0, 2: 99.0},
        ("b", "Y"): {1: 7.0},
    }
    assert relative(figures, "R") == [TravelTime("R", "R", 1.0, 2), TravelTime("X", "X", 1.1, 1)]


def test_the_papers_travel_times() -> None:
    papers = {each.label: each for each in paper_travel_times()}
    assert papers["CoLight"].multiple == pytest.approx(856.53 / 310.62) and papers["CoLight"].networks == 1
    four = [128.61 / 102.87, 121.87 / 121.0, 82.48 / 81.79, 297.0 / 310.62]  # Hangzhou1 to 3, Jinan
    assert papers["MPLight"].networks == 4 and papers["MPLight"].multiple == pytest.approx(sum(four) / 4)
    assert papers["TinyLight"] == TravelTime("TinyLight", "TinyLight", 1.0, 6)


def table_file(folder: Path, *rows: tuple[str, str, float]) -> Path:
    """Of one network and run: model, arithmetic and travel time of each row."""
    held = [
        {"network": "a", "model": model, "arithmetic": arithmetic, "flows": [0], "travel_times_s": [time_s]}
        for model, arithmetic, time_s in rows
    ]
    file = folder / "t.json"
    file.write_text(json.dumps({"rows": held}))
    return file


OURS = [("FixedTime", "rule", 6.0), ("TinyLight.best", "integer", 3.0), ("TinyLight.best", "float", 9.0)]
BESIDE = [("TinyLight.paper", "float", 8.0), ("TinyLight.paper", "integer", 4.5)]


def test_a_tables_travel_times_tell_our_settings_from_the_papers(tmp_path: Path) -> None:
    for rows in ([*OURS, *BESIDE], [*BESIDE, *OURS]):
        found = {each.label: (each.model, each.multiple) for each in table_travel_times(table_file(tmp_path, *rows))}
        assert found == {
            "FixedTime": ("FixedTime", 2.0),
            "TinyLight (ours)": ("TinyLight", 1.0),
            "TinyLight (paper's settings)": ("TinyLight", 1.5),
        }
    assert {each.label for each in table_travel_times(table_file(tmp_path, *BESIDE))} == {"TinyLight (paper's settings)"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "line 1"),
        ("{}", "rows: missing: this isn't what `tinylight table` writes"),
        ("[]", "rows: missing"),
        ('{"rows": 3}', "rows: missing"),
        ('{"rows": []}', "rows: no row of TinyLight"),
        ('{"rows": [{"network": 1}]}', "rows[0]: not a row"),
        ('{"rows": [7]}', "rows[0]: not a row"),
        ('{"rows": [{"network": [], "model": "X", "arithmetic": "rule", "flows": [], "travel_times_s": []}]}', "rows[0]: not"),
    ],
)
def test_a_file_that_is_no_table_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        table_travel_times(file)
    assert str(refused.value).startswith(f"{file}: {fault}")


def test_the_figure_shows_every_model_and_line(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = tmp_path / "1.svg", tmp_path / "2.svg"
    for file in (first, second):
        draw(file, costs(PAPER_GEOMETRY), paper_travel_times(), [])
    text = first.read_text()
    assert text == second.read_text()
    for each in paper_travel_times():
        assert f">{each.label} {each.multiple:.2f}</text>" in text
    for shown in ("FRAP, MPLight", "TLRP, TinyLight", "(4 networks)", "32 KB of flash", "the paper's 9.2 µs an operation"):
        assert shown in text


MEASURED = [
    MeasuredPoint("Hangzhou1 flow 0", 1_600, 4_837.0, 10_230, 330),
    MeasuredPoint("crossing flow 0", 1_908, 5_982.0, 12_078, 352),
    MeasuredPoint("Jinan flow 0", 1_965, 11_837.0, 17_838, 376),
]


def test_bars_are_shares_of_the_chips_limits() -> None:
    """A bar past the limit is cut off beyond the limit's line, and its number says how long it is."""
    pytest.importorskip("matplotlib")
    _, chip = figure_of(costs(PAPER_GEOMETRY), paper_travel_times(), MEASURED).axes
    rows = [label.get_text() for label in chip.get_yticklabels()]
    assert rows == ["CoLight", "FRAP, MPLight", "TLRP, TinyLight", *(point.label for point in MEASURED)]
    crossing = [bar.get_width() for bar in chip.patches[9:12]]
    assert crossing == pytest.approx([12_078 / 32_768, 352 / 2_048, 5_982 / 800_000])
    _, chip = figure_of(costs(PAPER_GEOMETRY), paper_travel_times(), []).axes
    assert max(bar.get_width() for bar in chip.patches) == 1.15
    share = 183_676 * 18.78e-3 / 2_031 / 0.1
    assert share > 1.15 and f"{share * 100:,.0f} %" in [text.get_text() for text in chip.texts]


@pytest.mark.parametrize("measured", [MEASURED, []], ids=["with policies", "without"])
@pytest.mark.parametrize("times", ["paper", "ours"])
def test_nothing_in_the_figure_lies_on_a_text(measured: list[MeasuredPoint], times: str) -> None:
    """Neither another text, nor a dot, nor a bar's end, nor the limit's line; and nothing is cut off at the picture's rim."""
    matplotlib_text = pytest.importorskip("matplotlib.text")

    travel_times = paper_travel_times() if times == "paper" else table_travel_times(TABLE)
    figure = figure_of(costs(PAPER_GEOMETRY), travel_times, measured)
    figure.canvas.draw()
    texts = [text for text in figure.findobj(matplotlib_text.Text) if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    bars = [(f"bar of {bar.get_width():.3f}", bar.get_window_extent()) for axes in figure.axes for bar in axes.patches]
    lines = [(f"{line.get_marker()} {line.get_xydata()[0]}", line.get_window_extent()) for a in figure.axes for line in a.lines]
    for text, box in boxes:
        others = [each for each in boxes if each[1] is not box]
        if not any(bar.x0 < box.x0 and box.x1 < bar.x1 and bar.y0 < box.y0 and box.y1 < bar.y1 for _, bar in bars):
            others += bars + lines  # a text within a bar, which hides what is behind it, meets texts only
        met = [name for name, place in others if place.overlaps(box)]
        assert not met, f"{text!r} meets {met}"
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, f"{text!r} is cut off"


def test_a_policys_parameters_are_the_policy_files_own_count() -> None:
    policy = load_policy(pretrained_policy("arterial"))
    assert [parameters for parameters, _ in counted_costs(policy)] == [part.n_parameters for part in policy.intersections]


@pytest.mark.hil
def test_measured_beside_counted() -> None:
    measured = measure_policy(pretrained_policy("crossing"))
    assert (measured.policy, measured.name) == ("crossing.json", "crossing flow 0")
    assert measured.parameters == 854 and measured.flops == 1_794
    multiply_accumulates = 854 - 3 * 16 - 14 - 8  # without biases: at least 2 cycles each
    assert 2 * multiply_accumulates < measured.cycles_p50 <= measured.cycles_max < 100_000
    assert measured.parameters < measured.flash_bytes < 32_256


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cost.json"
    assert tinylight("cost", "--rows", "--json", str(out)) == 0
    shown = capsys.readouterr().out
    assert "102,996" in shown and "53,600" in shown
    models = {each["model"]: (each["parameters"], each["flops"]) for each in json.loads(out.read_text())["models"]}
    assert models == TOTALS
    for bad, fault in ((["--intersection", "x"], "--network"), (["--network", "arterial", "--intersection", "x"], "has no")):
        assert tinylight("cost", *bad) == 2 and fault in capsys.readouterr().err
