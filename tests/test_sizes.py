"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

FILE_LINES, FUNCTION_LINES, PARAMETERS = 400, 80, 8
JUSTIFIED = {
    ("streetflow/control/environment.py", "__init__"): "the settings of a run, each given by its name",
    ("hil/build/firmware.py", "build_firmware"): "the settings of a build, each given by its name",
}
REASON = f"Over {FILE_LINES} lines"  # a longer file says why, near its top


def sources(*suffixes: str) -> list[Path]:
    """Our files in git, or all of them where this is no git checkout."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *(f"*{suffix}" for suffix in suffixes)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    found = [ROOT / name for name in listed] or [path for suffix in suffixes for path in ROOT.glob(f"[!.]*/**/*{suffix}")]
    return sorted(path for path in found if path.is_file())


def too_long(text: str) -> bool:
    return text.count("\n") > FILE_LINES and REASON not in "\n".join(text.split("\n")[:20])


def too_large(text: str) -> list[str]:
    """Functions with too many lines or parameters."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if lines > FUNCTION_LINES or len([name for name in names if name not in ("self", "cls")]) > PARAMETERS:
                found.append(f"{node.name}: {lines} lines, {len(names)} parameters")
    return found


def test_no_file_is_long_without_a_reason() -> None:
    files = sources(".py", ".c", ".h", ".S", ".inc")
    assert len(files) > 200
    assert [str(path.relative_to(ROOT)) for path in files if too_long(path.read_text(encoding="utf-8"))] == []


def test_no_function_is_large() -> None:
    """Kernels take the engine's blocks one by one; a command's parameters are its options."""
    found = {}
    for path in sources(".py"):
        name = path.relative_to(ROOT)
        if "kernels" in name.parts or name.parts[:2] == ("tinylight", "commands"):
            continue
        large = [
            each for each in too_large(path.read_text(encoding="utf-8")) if (str(name), each.partition(":")[0]) not in JUSTIFIED
        ]
        if large:
            found[str(name)] = large
    assert found == {}


@pytest.mark.parametrize(
    "function",
    [
        "def f(a, b, c, d, e, f, g, h, i): ...",
        "def f():\n" + "    x = 1\n" * 80,
        "class C:\n    def f(self, a, b, c, d, e, f, g, h, *, i): ...",
    ],
)
def test_a_large_function_is_seen(function: str) -> None:
    assert len(too_large(function)) == 1


def test_a_long_file_is_seen() -> None:
    assert too_long("x\n" * 401) and not too_long("x\n" * 400) and not too_long(f'"""{REASON}, since it must."""\n' * 401)
