"""Compiles the fuzz target with the firmware's own sources, as the host build has them."""

import subprocess
from pathlib import Path

from hil.build.firmware import build_firmware
from hil.build.project import project_root

TARGET = Path(__file__).with_name("firmware_target.c")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build_target(program: Path, policy_file: Path, compiler: str, *flags: str) -> None:
    """The firmware with this policy, its `main` and its board replaced by the target's."""
    root = project_root()
    generated = build_firmware(policy_file, target="native").elf.parent / "generated"
    sources = [file for file in sorted((root / "firmware" / "src").glob("*.c")) if file.name != "main.c"]
    includes = [f"-I{generated}", f"-I{root / 'firmware' / 'include'}"]
    options = ["-std=gnu11", "-g", "-O1", *SANITIZERS, *flags, *includes]
    subprocess.run([compiler, *options, *map(str, [TARGET, *sources]), "-o", str(program)], check=True)
