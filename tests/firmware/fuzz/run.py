"""`make fuzz`: libFuzzer over the firmware's frame reader and dispatcher, from the test vectors on, until a number of inputs.

Says how many frames were heard and how much of the code was reached; exit code 1 with the input's file if anything broke.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hil.build.project import project_root
from model import pretrained_policy
from tests.firmware.fuzz.build import build_target
from tests.firmware.vectors.make_frames import FILE

LONGEST_INPUT_BYTES = 512


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000, help="inputs (default: %(default)s); each holds some frames")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("clang") is None:
        print("fuzz: clang is missing; install it: sudo apt install clang libclang-rt-14-dev", file=sys.stderr)
        return 2
    findings = project_root() / "build" / "fuzz"
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        corpus, program = Path(folder) / "corpus", Path(folder) / "target"
        corpus.mkdir()
        for vector in json.loads(FILE.read_text(encoding="ascii"))["frames"]:
            name, encoded = vector["name"].replace("/", "_"), bytes.fromhex(vector["encoded_hex"])
            (corpus / name).write_bytes(b"\0" + encoded + b"\0")
            if vector["kind"] == "good":
                head = bytes([vector["version"], vector["type"], vector["sequence"], vector["intersection"]])
                content = head + bytes.fromhex(vector["payload_hex"])
                (corpus / f"{name}.frame").write_bytes(bytes([1, len(content)]) + content)
        build_target(program, pretrained_policy("arterial"), "clang", "-fsanitize=fuzzer")
        options = [
            f"-runs={arguments.runs}",
            f"-seed={arguments.seed}",
            f"-max_len={LONGEST_INPUT_BYTES}",
            f"-artifact_prefix={findings}/",
            "-print_final_stats=1",
            "-verbosity=1",
        ]
        done = subprocess.run([str(program), *options, str(corpus)], stderr=subprocess.PIPE, text=True)
    lines = done.stderr.splitlines()
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return 1
    reached = [line for line in lines if "cov:" in line]
    print("\n".join([reached[-1], *(line for line in lines if line.startswith(("stat::number", "frames heard")))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
