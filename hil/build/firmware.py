"""Builds the firmware for a policy, and keeps what it has built.

A build is known by the hash of everything that goes into it, so the same request is answered from the folder where
its results lie. Several processes may build at once: each works in a folder of its own and moves it into place.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from firmware.generator.light.control import MODES
from firmware.generator.policy import PolicyError, read_policy
from hil.build import compilers
from hil.build.baud import divisor
from hil.build.build_id import BuildId, read_build_id
from hil.build.project import checkout, content_hash, project_files, project_root
from model.policy.file import load_policy
from streetflow.cache import cache_folder
from streetflow.errors import FieldError, InputError
from streetflow.near import or_else

Target = Literal["uno_system", "native"]
Mode = Literal["answer", "light", "alone"]  # who senses, decides and shows: docs/controller.md
KERNELS = ("c", "table", "unrolled")  # by their number in HELLO; "auto": unrolled where it fits the flash, else table

COMPILERS = {
    "uno_system": (("avr-gcc", "avr-objcopy"), "gcc-avr binutils-avr avr-libc"),
    "native": (("gcc",), "gcc libc6-dev"),
}  # target: programs that must be on PATH, Debian packages that bring them
NO_WATCHDOG = "-DTL_NO_WATCHDOG"  # a hang lasts until the power goes: for bootloaders that a watchdog's reset would hang
NO_SUSPICION = "-DTL_NO_SUSPICION"  # mode alone believes every detector, whatever it shows: to compare with
OUTPUT_LINES = 30  # shown of a failed build


class BuildError(RuntimeError):
    """The compiler failed; the message ends with the last lines that it printed."""


@dataclass(frozen=True)
class Firmware:
    """A built firmware. `elf` is the program for the host on target "native", which has no `hex` and no `map`."""

    elf: Path
    hex: Path | None
    map: Path | None
    target: Target
    f_cpu_hz: int
    baud: int
    policy_sha256: str

    @property
    def kernel(self) -> str:
        """Which kernel it has: "c", "table" or "unrolled"."""
        dimensions = self.elf.with_name("generated") / "policy_dimensions.h"
        match = re.search(r"KERNEL_ID (\d)", dimensions.read_text(encoding="ascii"))
        assert match is not None
        return KERNELS[int(match[1])]

    @property
    def build(self) -> BuildId | None:
        """Which build it is, as HELLO tells it; None for the host's program, which tells none."""
        return None if self.target == "native" else read_build_id(self.elf)


def require_kernel(kernel: str, native: bool) -> None:
    """FieldError for a kernel that doesn't exist, or not in the host build (`native`)."""
    if kernel not in ("auto", *KERNELS):
        raise FieldError("kernel", f"unknown kernel {kernel!r}{or_else(kernel, ['auto', *reversed(KERNELS)])}")
    if native and kernel not in ("auto", "c"):
        raise FieldError("kernel", f"{kernel}: the board host has only the portable C (c or auto)")


def default_build_dir() -> Path:
    """build/firmware of a checkout; a cache folder of the user for an installed package."""
    root = checkout()
    return root / "build" / "firmware" if root is not None else cache_folder() / "firmware"


def build_firmware(
    policy_file: Path,
    *,
    target: Target = "uno_system",
    f_cpu_hz: int = 16_000_000,
    baud: int = 115_200,
    kernel: str = "auto",
    min_green_s: int = 0,
    build_dir: Path | None = None,
    extra_flags: Sequence[str] = (),
    mode: Mode = "answer",
    plans: Sequence[Mapping[str, Any]] = (),
) -> Firmware:
    """The firmware with this policy inside. The target "native" has only the portable C; `min_green_s` (0..255) is the minimum
    green that the chip keeps where requests carry the light's state. `extra_flags` go to the compiler (NO_WATCHDOG; tests:
    firmware/include/faults.h). Modes "light" and "alone" drive the lamps of the policy's one intersection, by its plan among
    `plans` (hil/build/light_plan.py).

    InputError for a policy that can't become firmware, a baud rate out of reach, a compiler that is missing;
    BuildError if compiling fails.
    """
    named, policy_file = Path(policy_file), Path(policy_file).resolve()
    policy_sha256 = _check_policy(named)
    require_kernel(kernel, target == "native")
    plan = _plan_of(named, mode, plans, target)
    if not 0 <= min_green_s <= 255:
        raise FieldError("min_green_s", f"{min_green_s} s: the chip counts from 0 to 255")
    if target != "native":
        divisor(f_cpu_hz, baud)
    builder = _builder(target)
    build_dir = (build_dir or default_build_dir()).resolve()
    texts = (target, str(f_cpu_hz), str(baud), kernel, str(min_green_s), builder, *extra_flags)
    key = _content_hash(policy_file, *texts, *([] if plan is None else [mode, plan]))
    folder = build_dir / f"{target}-{key[:16]}"
    if not folder.is_dir():
        settings = compilers.Settings(target, policy_file, kernel, f_cpu_hz, baud, min_green_s, mode, extra_flags)
        _build(folder, settings, named, plan)
    if target == "native":
        return Firmware(folder / "firmware", None, None, target, f_cpu_hz, baud, policy_sha256)
    elf, hex_file, map_file = (folder / f"firmware.{suffix}" for suffix in ("elf", "hex", "map"))
    return Firmware(elf, hex_file, map_file, target, f_cpu_hz, baud, policy_sha256)


def _plan_of(policy_file: Path, mode: Mode, plans: Sequence[Mapping[str, Any]], target: Target) -> str | None:
    """The text of the signal plan of the policy's intersection; None where the mode needs none."""
    if mode not in MODES:
        raise FieldError("mode", f"unknown mode {mode!r}{or_else(mode, MODES)}")
    if mode == "answer":
        return None
    if target == "native":
        raise FieldError("mode", f"{mode}: the board host has no pins for lamps")
    ids = [part.id for part in load_policy(policy_file).intersections]
    if len(ids) != 1:
        raise FieldError("mode", f"{mode}: the policy is of {len(ids)} intersections, a light of one", str(policy_file))
    named = [plan for plan in plans if plan.get("intersection") == ids[0]]
    if not named:
        raise FieldError("plans", f"no signal plan of {ids[0]}", str(policy_file))
    return json.dumps(named[0], indent=1)


def _build(folder: Path, settings: compilers.Settings, policy_file: Path, plan: str | None) -> None:
    """Builds into `folder`; errors name `policy_file` as the caller does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as draft:
        plan_file = Path(draft) / "plan.json"
        built = Path(draft) / "build"
        if plan is not None:
            plan_file.write_text(plan, encoding="utf-8")
        result = compilers.compile_firmware(settings, plan_file, project_root(), built)
        if result.returncode != 0:
            raise _failure(settings.target, result, policy_file, plan_file)
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process has just built the same
                raise


def _failure(target: Target, result: subprocess.CompletedProcess[str], policy_file: Path, plan_file: Path) -> Exception:
    lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    if any("avr/io.h: No such file" in line for line in lines):
        return InputError("avr-libc", "", "its headers are missing; install it: apt install avr-libc")
    if refused := _refused(lines, policy_file.resolve()):
        place, _, why = refused.partition(": ")
        return FieldError("kernel", why, str(policy_file)) if place == "kernel" else InputError(policy_file, place, why)
    if refused := _refused(lines, plan_file.resolve()):
        return FieldError("plans", refused, str(policy_file))
    return BuildError("\n".join([f"building the firmware for {target} failed:", *lines[-OUTPUT_LINES:]]))


def _refused(lines: Sequence[str], file: Path) -> str | None:
    """What the generator has against a file, if that is why it has failed."""
    return next((line.removeprefix(f"{file}: ") for line in lines if line.startswith(f"{file}: ")), None)


def _check_policy(policy_file: Path) -> str:
    """The policy's hash, after checking the policy file and the firmware's own limits."""
    sha256 = load_policy(policy_file).sha256
    try:
        read_policy(policy_file)
    except PolicyError as error:
        raise InputError(policy_file, "", str(error)) from None
    return sha256


def _builder(target: Target) -> str:
    """What a build depends on beside sources and settings: the version of the compiler on PATH, and how it is called.
    InputError naming the packages if there is none."""
    programs, packages = COMPILERS[target]
    for program in programs:
        if shutil.which(program) is None:
            raise InputError(program, "", f"not on PATH; install it: apt install {packages}")
    told = subprocess.run([programs[0], "--version"], capture_output=True, text=True, check=True).stdout
    return told + Path(compilers.__file__).read_text(encoding="utf-8")


def _content_hash(policy_file: Path, *settings: str) -> str:
    """SHA-256 over the firmware's sources, the policy and all settings."""
    digest = hashlib.sha256(content_hash(project_files()).encode())
    digest.update(hashlib.sha256(policy_file.read_bytes()).digest())
    for setting in settings:
        digest.update(f"{setting}\0".encode())
    return digest.hexdigest()
