"""What the lamps of a chip that is the light do when its host, its line, its flash or itself fails, in the closed loop.

python scripts/light_faults.py [--network NAME] [--out STEM]      # writes STEM.json and STEM.md

Each fault strikes in a run of its own, with traffic and the monitor, and the run's verdicts judge what the lamps showed then.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.light.job import run_light
from hil.loop.fault_spec import FaultSpec
from hil.loop.job import Job
from streetflow.files import write_whole

SECONDS = 200
CASES = (  # words, faults, modes, s
    ("the host is gone for good", "silence@50:10000", ("light", "alone"), 240),
    ("the line is cut, and mended after 100 s", "silence@50:100", ("light", "alone"), 240),
    ("one weight changes as it runs", "weight@50", ("light", "alone"), SECONDS),
    ("one weight has changed, and it starts anew", "weight@50,reset@51", ("light", "alone"), SECONDS),
    ("the network is overwritten, and it starts anew", "policy@50,reset@50", ("light", "alone"), SECONDS),
    ("a bit of the flash changes, and its power goes and comes", "flash@50,power@51", ("light", "alone"), SECONDS),
    ("it hangs", "hang@50", ("light", "alone"), SECONDS),
    ("its supply dips", "brownout@50", ("light", "alone"), SECONDS),
    ("it is reset", "reset@50", ("light", "alone"), SECONDS),
    ("its power goes and comes", "power@50", ("light", "alone"), SECONDS),
    ("three restarts within a minute, of each kind", "reset@50,hang@70,brownout@90", ("light", "alone"), SECONDS),
    ("the same, and then its power goes and comes", "reset@50,hang@70,brownout@90,power@120", ("alone",), SECONDS),
    ("three restarts, more than a minute between", "reset@10,hang@80,brownout@150", ("alone",), SECONDS),
)
VERDICTS = ("lamps", "monitor", "faults")
NAMES = {"light": "`light`", "alone": "`alone`"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Faults of the chip, its flash and its line, seen at the lamps.")
    parser.add_argument("--network", default="crossing", metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("docs/results/light_faults"), metavar="STEM")
    arguments = parser.parse_args()
    rows = []
    for words, faults, modes, seconds in CASES:
        for mode in modes:
            rows.append(row(arguments.network, words, faults, mode, seconds))
            print(f"{mode}, {faults}: {'as designed' if rows[-1]['passed'] else 'NOT as designed'}", flush=True)
    command = f"python scripts/light_faults.py {' '.join(sys.argv[1:])}".strip()
    document = {"command": command, "network": arguments.network, "rows": rows}
    write_whole(arguments.out.with_suffix(".json"), (json.dumps(document, indent=1) + "\n").encode())
    write_whole(arguments.out.with_suffix(".md"), page(document).encode())
    return 0 if all(each["passed"] for each in rows) else 1


def row(network: str, words: str, faults: str, mode: str, seconds: int) -> dict[str, Any]:
    """One run: what each of its faults should do and did, and the verdicts on the lamps."""
    job = Job.named(network, 0, None, mode=mode, monitor=True, faults=FaultSpec.parse(faults), kernel="table")
    verdict, run = run_light(replace(job, network=replace(job.network, horizon_s=seconds)))
    checks = [verdict.check(name) for name in VERDICTS]
    light: Any = verdict.figures["light"]
    return {
        "case": words,
        "faults": faults,
        "mode": mode,
        "seconds": seconds,
        "found": [
            {name: each[name] for name in ("at_s", "kind", "expected", "seen", "is_right")} for each in light["chip_faults"]
        ],
        "told": [event.name for crossing in run.crossings for event in crossing.told.events if event.kind in (173, 185)],
        "verdicts": {check.name: f"{check.outcome}: {check.measured}" for check in checks},
        "decisions": verdict.check("decisions").measured,
        "passed": verdict.passed and all(check.outcome == "pass" for check in checks),
    }


def page(document: dict[str, Any]) -> str:
    rows = document["rows"]
    right = sum(each["passed"] for each in rows)
    lines = [
        "# Faults of the chip, its flash and its line, seen at the lamps",
        "",
        f"`{document['command']}`: the chip in the closed loop on `{document['network']}` with its monitor, kernel `table`;",
        f"in {right} of {len(rows)} runs the lamps did what",
        "[the controller's page](../controller.md#what-happens-on-a-fault) says. No lamp was wrong, the monitor silent.",
        "",
        "| what happens | mode | spec | what the lamps did | decisions equal to numpy's | |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    for each in rows:
        did = "<br>".join(f"{found['at_s']:g} s: it {found['expected']}: {found['seen']}" for found in each["found"])
        outcome = "as designed" if each["passed"] else "**not as designed**"
        cells = (each["case"], NAMES[each["mode"]], f"`{each['faults']}`", did, each["decisions"], outcome)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    sys.exit(main())
