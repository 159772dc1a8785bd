"""Every policy of a table run once more with the chip in the loop: the paper's Table 1, decided by an ATmega328P.

python scripts/on_chip.py docs/results/policies --out docs/results/on_chip     # writes on_chip.json and on_chip.md

FOLDER holds NETWORK/flow_K.json, policies each trained on flow K, which is the flow that it runs on here. Exit code 1 unless
every verdict of every run is a pass.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from hil.loop.job import Job, run_job
from hil.loop.verdict import Verdict
from model.report.paper_table import PAPER_NETWORKS, paper_models
from model.report.write import machine, versions
from tinylight.console import progress_bar


def main() -> int:
    parser = argparse.ArgumentParser(description="Policies trained per flow, run with the emulated chip in the loop.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with NETWORK/flow_K.json")
    parser.add_argument("--out", type=Path, required=True, metavar="STEM", help="write STEM.json and STEM.md")
    arguments = parser.parse_args()
    jobs = [
        Job.named(name, int(file.stem.removeprefix("flow_")), file)
        for name in PAPER_NETWORKS
        for file in sorted((arguments.folder / name).glob("flow_*.json"))
    ]
    rows = []
    with progress_bar() as bar:
        task = bar.add_task("", total=len(jobs))
        for job in jobs:
            bar.update(task, description=f"{job.network.name}, flow {job.flow}")
            rows.append(row(job, run_job(job)))
            bar.advance(task)
    made = {"machine": machine(), "versions": versions(), "board": "simavr, 16 MHz, 115200 baud"}
    lines = ",\n  ".join(json.dumps(each) for each in rows)
    arguments.out.with_suffix(".json").write_text(f'{{\n "made": {json.dumps(made)},\n "runs": [\n  {lines}\n ]\n}}\n')
    text = markdown(rows, f"{arguments.folder} --out {arguments.out}")
    arguments.out.with_suffix(".md").write_text(text)
    print(text)
    return 0 if rows and all(each["passed"] for each in rows) else 1


def row(job: Job, verdict: Verdict) -> dict[str, Any]:
    figures: dict[str, Any] = verdict.figures
    return {
        "network": job.network.name,
        "flow": job.flow,
        "policy_sha256": verdict.provenance["policy_sha256"],
        "passed": verdict.passed,
        "average_travel_time_s": figures["traffic"]["average_travel_time_s"],
        "throughput_veh_per_min": figures["traffic"]["throughput_veh_per_min"],
        "decisions": figures["traffic"]["decisions"],
        "unequal": figures["traffic"]["unequal"],
        "largest_compute_cycles": figures["latency"]["compute_cycles"]["max"],
        "largest_round_trip_us": figures["latency"]["round_trip_us"]["max"],
        **figures["footprint"],
    }


def markdown(rows: list[dict[str, Any]], asked: str) -> str:
    lines = [
        "# Table 1 on the chip",
        "",
        "Average travel time (s) with every decision made by the emulated ATmega328P (simavr, 16 MHz, 115200 baud): mean ±",
        "population deviation over the flows, each with the policy that was trained on it; one chip holds all intersections",
        f"of a network. Made by `python scripts/on_chip.py {asked}`.",
        "",
        "| network | on the chip | the paper's TinyLight | the paper's best other row | decisions, equal to numpy's "
        "| slowest | flash B | RAM B |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for name in PAPER_NETWORKS:
        mine = [each for each in rows if each["network"] == name]
        if not mine:
            continue
        times = [each["average_travel_time_s"] for each in mine]
        papers = paper_models(name)
        tinylight = papers.pop("TinyLight")
        best = min(papers, key=lambda model: papers[model].travel_time_s.mean)
        decisions, unequal = (sum(each[key] for each in mine) for key in ("decisions", "unequal"))
        flash = max(each["flash_bytes"] for each in mine)
        ram = max(each["ram_bytes"] for each in mine)
        lines.append(
            f"| {name} ({len(mine)} runs) | **{mean(times):.2f} ± {pstdev(times):.2f}** "
            f"| {tinylight.travel_time_s.mean:.2f} ± {tinylight.travel_time_s.deviation:.2f} "
            f"| {best} {papers[best].travel_time_s.mean:.2f} ± {papers[best].travel_time_s.deviation:.2f} "
            f"| {decisions:,}, {decisions - unequal:,} | {max(each['largest_round_trip_us'] for each in mine) / 1000:.2f} ms "
            f"| {flash:,} | {ram:,} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
