"""What PlatformIO runs before each build of ours: policy tables, clock and baud rate, linker map.

From the environment: TINYLIGHT_POLICY (policy file; model/pretrained/crossing.json unless set), TINYLIGHT_F_CPU
(Hz; the board's own unless set), TINYLIGHT_BAUD (115200 unless set), TINYLIGHT_KERNEL (table, unrolled or c; auto unless
set: unrolled where it fits; the host has only the portable C), TINYLIGHT_WATCHDOG (on unless set; off for an old
bootloader that a watchdog reset sends round in circles), TINYLIGHT_MODE (answer, light or alone; answer unless set) and
TINYLIGHT_PLAN (a signal plan, JSON, for the last two: hil/build/light_plan.py), TINYLIGHT_SUSPICION (off: mode alone
believes every detector).
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from SCons.Script import COMMAND_LINE_TARGETS

Import("env")  # type: ignore[name-defined]  # noqa: F821  SCons gives us its environment

env = env  # type: ignore[name-defined]  # noqa: F821
root = Path(env.subst("$PROJECT_DIR"))
build = Path(env.subst("$BUILD_DIR"))

DEFAULT_BAUD = 115200
MODES = ("answer", "light", "alone")  # by their number in HELLO
VECTORS = 26  # of the ATmega328P, reset included


def stop(message: str) -> None:
    sys.stderr.write(f"Error: {message}\n")
    env.Exit(2)


def run(module: str, *arguments: str) -> None:
    """Runs a module of `firmware.generator` in its own process: SCons's Python doesn't find this project's packages."""
    command = [sys.executable, "-m", module, *arguments]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    sys.stdout.write(result.stdout)
    if result.returncode:
        stop(result.stderr.strip().removeprefix("Error: "))


def upload_port() -> str:
    """The board's port by the rule of `--board auto`: PlatformIO itself would take any port, even one without a board."""
    command = [sys.executable, "-c", "from hil.boards.find_port import find_port; print(find_port().port)"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if result.returncode:
        reason = result.stderr.strip().splitlines()[-1].partition(": ")[2]
        stop(f"{reason}; name the board's port with --upload-port PORT")
    return result.stdout.strip()


def set_crc(target: list[object], source: list[object], env: object) -> None:
    """After linking: makes the program's CRC 0, and refuses what start.S doesn't support."""
    run("firmware.generator.flash_crc", str(Path(str(target[0])).resolve()))


def number(variable: str, default: int, least: int = 1) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or int(text) < least:
        stop(f"{variable}: {text!r} is not a {'positive ' if least else ''}whole number")
    return int(text)


def min_green_s() -> int:
    seconds = number("TINYLIGHT_MIN_GREEN_S", 0, least=0)
    if seconds > 255:
        stop(f"TINYLIGHT_MIN_GREEN_S: {seconds} is more than 255")
    return seconds


def has_watchdog() -> bool:
    text = os.environ.get("TINYLIGHT_WATCHDOG") or "on"
    if text not in ("on", "off"):
        stop(f"TINYLIGHT_WATCHDOG: {text!r} is neither on nor off")
    return text == "on"


def mode() -> str:
    text = os.environ.get("TINYLIGHT_MODE") or MODES[0]
    if text not in MODES:
        stop(f"TINYLIGHT_MODE: {text!r} is none of {', '.join(MODES)}")
    if text != MODES[0] and "BOARD" not in env:
        stop(f"TINYLIGHT_MODE: {text} has lamps to drive: the host has no pins")
    if text != MODES[0] and not os.environ.get("TINYLIGHT_PLAN"):
        stop(f"TINYLIGHT_PLAN: mode {text} needs the crossing's signal plan")
    return text


def suspects_detectors() -> bool:
    text = os.environ.get("TINYLIGHT_SUSPICION") or "on"
    if text not in ("on", "off"):
        stop(f"TINYLIGHT_SUSPICION: {text!r} is neither on nor off")
    return text == "on"


def default_policy() -> Path:
    """The file in the checkout, or in the installed package `model`."""
    spec = find_spec("model")
    found = Path(spec.origin) if spec and spec.origin else None
    folders = [root / "model", *([found.parent] if found is not None and found.name == "__init__.py" else [])]
    files = [folder / "pretrained" / "crossing.json" for folder in folders]
    file = next((file for file in files if file.is_file()), None)
    if file is None and found is not None:
        stop(f"{found}: is found in place of tinylight-hil's package 'model': rename it, or set TINYLIGHT_POLICY=FILE")
    return file or files[0]


policy_file = Path(os.environ.get("TINYLIGHT_POLICY") or default_policy()).absolute()
kernel = (os.environ.get("TINYLIGHT_KERNEL") or "auto") if "BOARD" in env else "c"
flip = re.search(r"-DTL_FLIP_WEIGHT=(\d+)", os.environ.get("PLATFORMIO_BUILD_FLAGS", ""))
run(
    "firmware.generator",
    *(str(policy_file), str((build / "generated").resolve()), kernel),
    *(("--flip-weight", flip[1]) if flip else ()),
    *(("--mode", mode(), "--plan", str(Path(os.environ["TINYLIGHT_PLAN"]).absolute())) if mode() != MODES[0] else ()),
)
env.Append(CPPPATH=[str(build / "generated"), str(root / "firmware" / "include")])
if mode() != MODES[0]:
    env.Append(CPPDEFINES=[("MODE", MODES.index(mode())), *([] if suspects_detectors() else ["TL_NO_SUSPICION"])])
    env.Replace(SRC_FILTER=["+<*>", "-<host>", "-<main.c>"])
env.Append(CPPDEFINES=[("MIN_GREEN_S", min_green_s())])

if "BOARD" in env:  # an AVR; the host build has no clock and no line
    board = env.BoardConfig()
    f_cpu_hz = number("TINYLIGHT_F_CPU", int(str(board.get("build.f_cpu")).rstrip("L")))
    baud = number("TINYLIGHT_BAUD", DEFAULT_BAUD)
    board.update("build.f_cpu", f"{f_cpu_hz}L")
    env.Replace(BOARD_F_CPU=f"{f_cpu_hz}L")
    env.Append(CPPDEFINES=[("BAUD", f"{baud}L"), *([] if has_watchdog() else ["TL_NO_WATCHDOG"])])
    if "upload" in COMMAND_LINE_TARGETS and board.get("upload.require_upload_port", False) and not env.subst("$UPLOAD_PORT"):
        env.Replace(UPLOAD_PORT=upload_port())
    map_file = build / "firmware.map"
    env.Append(LINKFLAGS=["-nostartfiles", f"-Wl,-Map,{map_file}"])
    # Keeps interrupts that no vector leads to, so that set_crc sees them; the linker would drop them silently.
    env.Append(LINKFLAGS=[f"-Wl,-u,__vector_{number}" for number in (*range(1, VECTORS), "default")])
    env.AddPostAction("$BUILD_DIR/${PROGNAME}.elf", set_crc)
    print(f"Clock {f_cpu_hz} Hz, {baud} baud; linker map: {map_file}")
