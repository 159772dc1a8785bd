"""A user's own module with the name of one of our packages: one clear line that names the file and the remedy."""

import subprocess
import sys
from pathlib import Path

import pytest

from hil.own_packages import MARKS, shadowed
from model import pretrained_policy
from tests.helpers.processes import with_path

pytest_plugins = ["pytester"]
TRAP = "raise SystemExit('a user\\'s module was run')\n"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """With `folder` before our packages on Python's path."""
    return subprocess.run([sys.executable, *command], cwd=folder, env=with_path(folder), capture_output=True, text=True)


def test_nothing_is_in_the_way_here() -> None:
    assert shadowed() is None


@pytest.mark.parametrize("form", ["module", "package"])
@pytest.mark.parametrize("name", [*(name for name in MARKS if name != "hil")])
def test_the_command_names_the_file(tmp_path: Path, name: str, form: str) -> None:
    file = tmp_path / (f"{name}.py" if form == "module" else f"{name}/__init__.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(TRAP)
    done = run(tmp_path, "-c", "from tinylight.entry import main; main()", "networks")
    remedy = "rename it, or run where it isn't on Python's path"
    assert done.stderr == f"tinylight: {file}: is found in place of tinylight-hil's package {name!r}: {remedy}\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_the_command_names_a_module_in_place_of_the_harness(tmp_path: Path) -> None:
    (tmp_path / "hil.py").write_text("")
    done = run(tmp_path, "-c", "from tinylight.entry import main; main()", "networks")
    assert done.returncode == 2 and done.stderr.startswith(f"tinylight: {tmp_path / 'hil.py'}: is found in place of")


def test_a_folder_of_the_name_that_is_no_package_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.py").write_text(TRAP)
    done = run(tmp_path, "-c", "from tinylight.entry import main; main()", "networks")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("imported", ["", "import model\n"])
@pytest.mark.parametrize("board", ["simavr", "host", "/dev/ttyNone"])
def test_the_plugin_names_the_file(pytester: pytest.Pytester, imported: str, board: str) -> None:
    pytester.makepyfile(model="WEIGHTS = 3\n")
    pytester.makepyfile(f"{imported}def test_board(board):\n    pass\n\ndef test_own():\n    pass\n")
    result = pytester.runpytest_subprocess(f"--hil={board}")
    result.assert_outcomes(errors=1, passed=1)
    file = pytester.path / "model.py"
    result.stdout.fnmatch_lines([f"{file}: is found in place of tinylight-hil's package 'model': rename it, *"])
    result.stdout.no_fnmatch_line("*.py:[0-9]*")


def test_the_firmwares_generator_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(TRAP)
    policy = pretrained_policy("crossing")
    done = run(tmp_path, "-m", "firmware.generator", str(policy), str(tmp_path / "generated"))
    fault = f"can't be checked: {tmp_path / 'model.py'} is found in place of tinylight-hil's package 'model': rename it"
    assert (done.returncode, done.stderr) == (2, f"{policy}: {fault}\n")
