"""scripts/system_packages.sh, which `make` runs first, on machines that lack the system's packages. apt-get is played."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

ALWAYS_THERE = ("bash", "env", "sh", "id", "cat", "chmod")
INSTALLS = """
for word in "$@"; do
  case "$word" in
    gcc-avr) name=avr-gcc ;;
    binutils-avr) name=avr-objcopy ;;
    gcc|simavr|avrdude|chromium) name=$word ;;
    *) continue ;;
  esac
  printf '#!/bin/sh\\ncat > /dev/null\\n' > {bin}/$name
  chmod +x {bin}/$name
done
"""
TOOLS = "gcc libc6-dev gcc-avr binutils-avr avr-libc libsimavr-dev simavr avrdude"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with nothing on it but a shell's own tools."""
    for name in ALWAYS_THERE:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def play_apt(bare: Path, script: str) -> None:
    (bare / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {bare}/asked\n{script}\n')
    (bare / "apt-get").chmod(0o755)
    (bare / "sudo").write_text('#!/bin/sh\n[ "$1" = -n ] && shift\n[ "$1" = true ] || exec "$@"\n')  # for who isn't root
    (bare / "sudo").chmod(0o755)


def set_up(bare: Path, *optional: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [bare / "bash", ROOT / "scripts" / "system_packages.sh", *optional],
        env={"PATH": str(bare), "PYTHON": sys.executable},
        cwd=bare,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_without_apt_the_packages_are_named(bare: Path) -> None:
    done = set_up(bare)
    assert done.returncode == 2
    missing, remedy = done.stderr.splitlines()
    assert missing.startswith(f"setup: these system packages are missing (Debian's names): {TOOLS}")
    assert remedy.startswith("setup: install them and run make again:  sudo apt-get install -y --no-install-recommends gcc ")


def test_apt_is_asked_for_what_is_missing_and_the_result_is_looked_at(bare: Path) -> None:
    play_apt(bare, INSTALLS.format(bin=bare))
    done = set_up(bare, "chromium")
    assert done.returncode == 0, done.stderr
    update, install, browser = (bare / "asked").read_text().splitlines()
    assert update == "update -qq" and install.startswith(f"install -y --no-install-recommends {TOOLS}")
    assert browser == "install -y --no-install-recommends chromium"
    assert set_up(bare, "chromium").stdout == "" and len((bare / "asked").read_text().splitlines()) == 3, (
        "nothing is asked twice"
    )


@pytest.mark.parametrize("script", ["exit 100", "[ $1 = update ] || exit 100", "exit 0"])
def test_where_apt_brings_nothing_the_packages_are_named(bare: Path, script: str) -> None:
    play_apt(bare, script)
    done = set_up(bare, "chromium")
    assert done.returncode == 2
    assert f"setup: install them and run make again:  sudo apt-get install -y --no-install-recommends {TOOLS}" in done.stderr
    assert "setup: no chromium here; tests that need it are skipped" in done.stdout


def test_an_old_python_is_named(bare: Path) -> None:
    environment = {"PATH": str(bare), "PYTHON": "python2.7"}
    script = ROOT / "scripts" / "system_packages.sh"
    done = subprocess.run([bare / "bash", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "setup: python2.7 is missing or older than 3.11; name another with: make PYTHON=/path/to/python3.11\n"
