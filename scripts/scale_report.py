"""Writes docs/scale.md's tables and docs/pictures/scale.svg from a run of benchmarks/test_scale.py.

python -m pytest benchmarks/test_scale.py --benchmark-only --benchmark-json=FILE
python scripts/scale_report.py FILE
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLUE, ORANGE, GREY = "#2b5c8a", "#d9822b", "#66748a"


def rows_of(file: Path) -> dict[str, list[dict[str, Any]]]:
    """By benchmark function: its extra_info with ``us``, the least time of a step, and ``median_us``."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(file.read_text(encoding="utf-8"))["benchmarks"]:
        row = dict(each["extra_info"])
        row["us"], row["median_us"] = (each["stats"][what] / row["steps"] * 1e6 for what in ("min", "median"))
        row["ns_per_vehicle"] = row["us"] / row["running"] * 1e3
        rows.setdefault(each["name"].partition("[")[0], []).append(row)
    return rows


def table(rows: list[dict[str, Any]], loading: bool) -> list[str]:
    heads = ["network", "crossings", "lanes", "running", "standing", "us a step (least)", "(median)", "ns a vehicle"]
    heads += ["loading s (CPU)", "memory MiB"] if loading else []
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in rows:
        cells = [row["network"], f"{row['crossings']:,}", f"{row['lanes']:,}", f"{row['running']:,}", f"{row['standing']:,}"]
        cells += [f"{row['us']:,.1f}", f"{row['median_us']:,.1f}", f"{row['ns_per_vehicle']:.1f}"]
        cells += [f"{row['load_s']:.1f} ({row['load_cpu_s']:.1f})", f"{row['memory_mib']:,.0f}"] if loading else []
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def draw(rows: dict[str, list[dict[str, Any]]], file: Path) -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "scale", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    full, few, sets = rows["test_steps"], rows["test_steps_with_few_vehicles"], rows.get("test_steps_of_data_sets", [])
    left.plot(
        [row["running"] for row in full], [row["us"] for row in full], "o-", color=BLUE, label="grids at 400 veh/h an entry"
    )
    left.plot([row["running"] for row in sets], [row["us"] for row in sets], "D", color=GREY, label="data sets")
    for row in full:
        below = {"textcoords": "offset points", "xytext": (6, -10), "color": BLUE, "fontsize": 8}
        left.annotate(
            f"{row['crossings']:,} crossings" if row["crossings"] > 1 else "1 crossing", (row["running"], row["us"]), **below
        )
    for row in sets:
        above = {"textcoords": "offset points", "xytext": (-6, 6), "ha": "right", "color": GREY, "fontsize": 8}
        left.annotate(row["network"], (row["running"], row["us"]), **above)
    left.set(
        xscale="log", yscale="log", xlabel="running vehicles", ylabel="us a step", title="A step's time goes by vehicles ..."
    )
    left.set_xlim(right=max(row["running"] for row in full) * 6)
    least, most = (end(row["lanes"] for row in few) for end in (min, max))
    lanes, scanned_us = [least, most], [few[0]["us"], few[0]["us"] * most / least]
    right.plot([row["lanes"] for row in few], [row["us"] for row in few], "o-", color=BLUE, label="about 460 vehicles")
    right.plot(lanes, scanned_us, "--", color=ORANGE, label="if it went by lanes")
    for row in few:
        note = {"textcoords": "offset points", "xytext": (0, -14), "ha": "center", "color": BLUE, "fontsize": 8}
        right.annotate(f"{row['crossings']:,}", (row["lanes"], row["us"]), **note)
    right.set(
        xscale="log", yscale="log", xlabel="lanes of the network (crossings at the dots)", title="... not by the network's size"
    )
    for axes in (left, right):
        axes.legend(frameon=False, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
    right.set_ylim(bottom=few[0]["us"] / 3)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    rows = rows_of(Path(sys.argv[1]))
    page = DOCS / "scale.md"
    text = page.read_text(encoding="utf-8")
    for name, part in rows.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            sys.exit(f"{page}: there is no place for {name}")
        text = before + begin + "\n".join(table(part, "load_s" in part[0])) + "\n" + end + after
    page.write_text(text, encoding="utf-8")
    draw(rows, DOCS / "pictures" / "scale.svg")


if __name__ == "__main__":
    main()
