"""python -m firmware.generator: see `generate.py`."""

import argparse
import sys
from pathlib import Path

from firmware.generator.generate import KERNELS, PolicyError, generate
from firmware.generator.light.control import MODES, generate_light


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m firmware.generator", description="Turns a policy file into firmware sources."
    )
    parser.add_argument("policy", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernel", nargs="?", default="auto", help=f"{', '.join(KERNELS)} or auto (default)")
    parser.add_argument("--flip-weight", type=int, help="one flipped bit in flash, for tests (firmware/include/faults.h)")
    parser.add_argument("--checked", action="store_true", help="the policy file has just been read by model.policy.file")
    parser.add_argument("--mode", choices=MODES, default="answer", help="what the firmware is (docs/controller.md)")
    parser.add_argument("--plan", type=Path, help="the crossing's signal plan, for the modes light and alone")
    options = parser.parse_args()
    is_light = options.mode != "answer"
    faulty = options.policy
    try:
        policy = generate(
            options.policy,
            options.folder,
            options.kernel,
            options.flip_weight,
            is_checked=options.checked,
            is_light=is_light,
        )
        if is_light:
            faulty = options.plan
            generate_light(options.plan, policy, options.mode, options.folder)
    except PolicyError as error:
        print(f"{faulty}: {error}", file=sys.stderr)
        return 2
    count, kernel = len(policy["intersections"]), policy["kernel"]
    print(f"Policy {policy['sha256'][:12]} ({policy['network']}, {count} intersections, kernel {kernel}): {options.policy}")
    return 0


sys.exit(main())
