"""The chip as the light on SUMO's streets for an hour, in emulation and with its monitor: docs/results/sumo_street.md.

python scripts/sumo_street.py [NAME ...]   # writes docs/results/sumo_street.json and .md; stopped, the same command goes on
python scripts/sumo_street.py --show       # .md alone, from .json

The scenarios of the RESCO benchmark that have a policy in docs/results/sumo/ (`sumo_table.py` reads and imports them). Each
light has a chip and a monitor; vehicles change lanes between the loops. Beside them stand the same policy and vehicle-actuated
control with true counts. The seed is the first of the table's.
"""

import sys
from dataclasses import asdict
from pathlib import Path

import sumo_distil
import sumo_table
from on_street import Row, Rows, chip_files

from hil.light.job import run_light
from hil.loop.job_spec import Job
from model.policy.provenance import file_sha256
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.vehicle_actuated import VehicleActuated
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network

FILE = sumo_table.RESULTS / "sumo_street.json"
HEAD = """# The chip as the light on SUMO's streets, for an hour

`python scripts/sumo_street.py`: `tinylight hil --engine sumo --mode alone --monitor`, a chip and a monitor for each light of
the RESCO scenarios that have a policy ([sumo.md](sumo.md)), in emulation; 3,600 s, SUMO's seed 992832. The lamps at the
chips' pins are SUMO's signals, yellow included; the chips count by two loops a lane, made of SUMO's vehicles, which change
lanes between them. Yellow, red clearance and least green are computed for each light, the longest green and red are 120 and
240 s. Times are average travel times in s; *off* is how far the chips' values were from SUMO's at their decisions, in
vehicles: by whole roads, which is judged, and each value by itself.

| | lights | verdicts | chips alone | same policy, true counts | VehicleActuated, true counts | off, roads | off, all |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |
"""


def policy_of(name: str) -> Path:
    """The one that was made for a chip that is the light, where there is one."""
    own = sumo_table.POLICIES / f"{name}{sumo_distil.ALONE}"
    return own if own.is_file() else sumo_table.POLICIES / f"{name}.json"


def measure_loop(network: Network, policy_file: Path) -> Row:
    """An hour with the chips."""
    verdict, light = run_light(Job(network, 0, policy_file, engine="sumo", mode="alone", monitor=True))
    figures = verdict.figures["light"]
    assert isinstance(figures, dict)
    return {
        "average_travel_time_s": light.result.average_travel_time_s,
        "true_counts_s": light.reference.average_travel_time_s,
        "checks": [asdict(check) for check in verdict.checks],
        "lights": len(light.crossings),
        "off_by_roads": figures["sensing_mean_off"],
        "off_by_lanes": figures["sensing_mean_off_by_lanes"],
    }


def measure_actuated(network: Network) -> Row:
    """An hour of vehicle-actuated control, with its defaults and the chips' clearances and limits."""
    rule = VehicleActuated()
    environment = Environment(network, engine="sumo", features=rule.features, clearance="shell", decision_interval_s=1)
    run(environment, rule)
    return {"average_travel_time_s": environment.average_travel_time_s()}


def measure(rows: Rows, name: str) -> None:
    """Both, unless they are there."""
    network, file = sumo_table.Variant(name).network(), policy_of(name)
    known = {"network": name, "sumo_sha256": file_sha256(network.roadnet_file.parent / "sumo.json")}
    rows.of({"what": "loop"} | known | chip_files(file), ("what", "network"), lambda: measure_loop(network, file))
    rows.of({"what": "VehicleActuated"} | known, ("what", "network"), lambda: measure_actuated(network))


def page(rows: Rows) -> str:
    """The results as Markdown."""
    found = {(row["what"], row["network"]): row for row in rows.rows}
    lines, told = [], []
    for name in sumo_table.NAMES:
        loop, actuated = found.get(("loop", name)), found.get(("VehicleActuated", name))
        if loop is None or actuated is None:
            continue
        failed = [check for check in loop["checks"] if check["outcome"] == "fail"]
        verdicts = f"not {', '.join(check['name'] for check in failed)}" if failed else "all pass"
        time_s, true_s = loop["average_travel_time_s"], loop["true_counts_s"]
        times = f"{time_s:.2f} ({time_s / true_s - 1:+.1%}) | {true_s:.2f} | {actuated['average_travel_time_s']:.2f}"
        off = " | ".join("-" if value is None else f"{value:.3f}" for value in (loop["off_by_roads"], loop["off_by_lanes"]))
        lines.append(f"| {name} | {loop['lights']} | {verdicts} | {times} | {off} |")
        for check in failed:
            told.append(f"* {name}, `{check['name']}`: {check['measured']}; limit {check['limit']}. {check['detail']}")
    return "\n".join([HEAD + "\n".join(lines), "", *(["What fails:", "", *told, ""] if told else [])])


def main(arguments: list[str]) -> None:
    rows = Rows(FILE, "python scripts/sumo_street.py")
    have = [name for name in sumo_table.NAMES if (sumo_table.POLICIES / f"{name}.json").is_file()]
    if "--show" not in arguments:
        for name in arguments or have:
            measure(rows, name)
            write_whole(FILE.with_suffix(".md"), page(rows))
    write_whole(FILE.with_suffix(".md"), page(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
