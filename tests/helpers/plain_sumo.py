"""SUMO alone, without anything of ours: a run as its command line makes it, and what it says of its lights.

A program of its own (`python plain_sumo.py CONFIG SECONDS SEED TRIPINFO`), since a process can hold one simulation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.places import ROOT


def run_plain_sumo(config: Path, seconds: int, seed: int, tripinfo: Path) -> dict[str, Any]:
    """Run a scenario for so long and write SUMO's trips. Returns its lights and the conflicts of its lanes within junctions."""
    command = [sys.executable, "-m", __name__, str(config), str(seconds), str(seed), str(tripinfo)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def trip_lines(tripinfo: Path) -> list[str]:
    """Every finished trip, all that SUMO writes of it."""
    return [line for line in tripinfo.read_text(encoding="utf-8").splitlines() if "<tripinfo " in line]


def main() -> None:
    import libsumo

    config, seconds, seed, tripinfo = sys.argv[1:]
    libsumo.start(
        ["sumo", "-c", config, "--seed", seed, "--tripinfo-output", tripinfo, "--no-step-log", "--no-warnings",
         "--duration-log.disable"]
    )  # fmt: skip
    lights = {}
    for light in libsumo.trafficlight.getIDList():
        programs = libsumo.trafficlight.getAllProgramLogics(light)
        current = libsumo.trafficlight.getProgram(light)
        phases = next(each.phases for each in programs if each.programID == current)
        links = libsumo.trafficlight.getControlledLinks(light)
        lights[light] = {"links": links, "phases": [[phase.duration, phase.state] for phase in phases]}
    foes = {lane: libsumo.lane.getInternalFoes(lane) for lane in libsumo.lane.getIDList() if lane.startswith(":")}
    lanes = {lane: libsumo.lane.getLength(lane) for lane in libsumo.lane.getIDList()}
    for _ in range(round(int(seconds) / libsumo.simulation.getDeltaT())):
        libsumo.simulationStep()
    libsumo.close()
    print(json.dumps({"lights": lights, "foes": foes, "lanes": lanes}))


if __name__ == "__main__":
    main()
