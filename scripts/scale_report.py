"""Writes docs/scale.md's tables and docs/pictures/scale.svg from a run of benchmarks/test_scale.py.

python -m pytest benchmarks/test_scale.py --benchmark-only --benchmark-json=FILE
python scripts/scale_report.py FILE [TABLE ...]   (such as: test_steps; without a name all of them, and the picture)
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLUE, ORANGE, GREY = "#2b5c8a", "#d9822b", "#66748a"


def rows_of(file: Path) -> dict[str, list[dict[str, Any]]]:
    """By benchmark function that steps: its extra_info with ``us``, the least time of a step, and ``median_us``."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(file.read_text(encoding="utf-8"))["benchmarks"]:
        row = dict(each["extra_info"])
        if "steps" not in row:  # a ratio, which the page tells in words
            continue
        row["us"], row["median_us"] = (each["stats"][what] / row["steps"] * 1e6 for what in ("min", "median"))
        row["ns_per_vehicle"] = row["us"] / row["running"] * 1e3
        rows.setdefault(each["name"].partition("[")[0], []).append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    heads = ["network", "crossings", "lanes", "running", "standing", "µs a step (least)", "(median)", "ns a vehicle"]
    heads[1:1] = ["demand on each road in"] if "demand" in rows[0] else []
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in rows:
        cells = [
            row["network"],
            *([row["demand"]] if "demand" in row else []),
            f"{row['crossings']:,}",
            f"{row['lanes']:,}",
            f"{row['running']:,}",
            f"{row['standing']:,}",
        ]
        cells += [f"{row['us']:,.1f}", f"{row['median_us']:,.1f}", f"{row['ns_per_vehicle']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def loading_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| network | crossings | lanes | roadnet MiB | loading s (CPU) | memory MiB |", f"| --- |{' ---: |' * 5}"]
    for row in rows:
        took = f"{row['load_s']:.1f} ({row['load_cpu_s']:.1f})"
        cells = [
            row["network"],
            f"{row['crossings']:,}",
            f"{row['lanes']:,}",
            f"{row['roadnet_mib']:.2f}",
            took,
            f"{row['memory_mib']:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def draw(rows: dict[str, list[dict[str, Any]]], file: Path) -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "scale", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    draw_full(left, rows["test_steps"], rows.get("test_steps_of_data_sets", []))
    draw_few(right, rows["test_steps_with_few_vehicles"])
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", ylabel="µs a step")
        axes.legend(frameon=False, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    figure.savefig(file, metadata={"Date": None})


def draw_full(axes: Any, grids: list[dict[str, Any]], sets: list[dict[str, Any]]) -> None:
    axes.plot(*points(grids, "running"), "o-", color=BLUE, label="grids, 400 veh/h on each road in")
    axes.plot(*points(sets, "running"), "D", color=GREY, label="data sets")
    for row in grids:
        above = {"textcoords": "offset points", "xytext": (-7, 4), "ha": "right", "color": BLUE, "fontsize": 8}
        axes.annotate(f"{row['crossings']:,}", (row["running"], row["us"]), **above)
    for row in sets:
        below = {"textcoords": "offset points", "xytext": (7, -9), "color": GREY, "fontsize": 8}
        axes.annotate(row["network"], (row["running"], row["us"]), **below)
    axes.set(xlabel="running vehicles (crossings at the dots)", title="A step's time goes by vehicles ...")
    axes.set_xlim(min(row["running"] for row in grids) / 3, max(row["running"] for row in grids) * 2)
    axes.set_ylim(min(row["us"] for row in grids) / 3, max(row["us"] for row in grids) * 8)


def draw_few(axes: Any, grids: list[dict[str, Any]]) -> None:
    first, last = grids[0], grids[-1]
    mean = sum(row["running"] for row in grids) / len(grids)
    axes.plot(*points(grids, "lanes"), "o-", color=BLUE, label=f"{mean:.0f} running vehicles")
    by_lanes_us = first["us"] * last["lanes"] / first["lanes"]
    axes.plot([first["lanes"], last["lanes"]], [first["us"], by_lanes_us], "--", color=ORANGE, label="if it went by lanes")
    for row in grids:
        below = {"textcoords": "offset points", "xytext": (0, -14), "ha": "center", "color": BLUE, "fontsize": 8}
        axes.annotate(f"{row['crossings']:,}", (row["lanes"], row["us"]), **below)
    axes.set(xlabel="lanes of the network (crossings at the dots)", title="... not by the network's size")
    axes.set_ylim(first["us"] / 3, by_lanes_us * 4)


def points(rows: list[dict[str, Any]], by: str) -> tuple[list[float], list[float]]:
    return [row[by] for row in rows], [row["us"] for row in rows]


def main() -> None:
    file, *wanted = sys.argv[1:]
    rows = rows_of(Path(file))
    tables = {name: table(part) for name, part in rows.items()}
    tables["loading"] = loading_table(rows["test_steps"])
    page = DOCS / "scale.md"
    text = page.read_text(encoding="utf-8")
    for name in wanted or tables:
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found or name not in tables:
            sys.exit(f"{page}: there is no place for {name}")
        text = before + begin + "\n".join(tables[name]) + "\n" + end + after
    page.write_text(text, encoding="utf-8")
    if not wanted:
        draw(rows, DOCS / "pictures" / "scale.svg")


if __name__ == "__main__":
    main()
