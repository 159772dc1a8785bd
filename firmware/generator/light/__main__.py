"""python -m firmware.generator.light PLAN.json FOLDER: see `tables.py`."""

import sys
from pathlib import Path

from firmware.generator.light.tables import generate
from firmware.generator.policy import PolicyError


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python -m firmware.generator.light PLAN.json FOLDER", file=sys.stderr)
        return 2
    try:
        plan = generate(Path(sys.argv[1]), Path(sys.argv[2]))
    except PolicyError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        return 2
    print(f"Signal plan ({plan.groups} groups, {len(plan.phase_groups)} phases): {sys.argv[1]}")
    return 0


sys.exit(main())
