"""PlatformIO: typed by hand, missing, and used by the harness beside the user's own projects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hil.build.firmware import build_firmware, pio
from hil.build.project import project_root
from streetflow.errors import InputError
from tests.helpers.processes import PATIENCE_S
from tests.helpers.random_policy import write_random_policy


def pio_run(arguments: list[str], home: Path, policy_file: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`pio run ARGUMENTS` with an empty home folder, no network and a build folder of its own."""
    unreachable = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    keep = {name: os.environ[name] for name in ("PATH",)}
    own = {"HOME": str(home), "PLATFORMIO_WORKSPACE_DIR": str(home / "work"), "TINYLIGHT_POLICY": str(policy_file)}
    command = [sys.executable, "-m", "platformio", "run", *arguments]
    environment = keep | unreachable | own | variables
    return subprocess.run(command, cwd=project_root(), env=environment, capture_output=True, text=True, timeout=PATIENCE_S)


def test_pio_run_by_hand_needs_no_network_and_the_compilers_have_nothing_to_say(policy_file: Path, tmp_path: Path) -> None:
    result = pio_run(["-e", "uno_system", "-e", "native", "-e", "bare_8mhz"], tmp_path, policy_file)
    assert result.returncode == 0, result.stdout + result.stderr
    built = tmp_path / "work" / "build"
    assert f"linker map: {built / 'uno_system' / 'firmware.map'}" in result.stdout
    assert "Clock 8000000 Hz, 115200 baud" in result.stdout
    assert "misses this baud rate by more than 2.5 %" in result.stderr, "a note of ours, which is shown"
    assert "warning: " not in result.stdout + result.stderr
    for name in ("uno_system/firmware.hex", "uno_system/firmware.map", "bare_8mhz/firmware.hex", "native/firmware"):
        assert (built / name).is_file()


def test_pio_run_by_hand_says_what_is_wrong(policy_file: Path, tmp_path: Path) -> None:
    missing = pio_run(["-e", "native"], tmp_path, tmp_path / "missing.json")
    assert missing.returncode != 0 and f"Error: {tmp_path / 'missing.json'}: there is no such file" in missing.stderr
    bad_clock = pio_run(["-e", "uno_system"], tmp_path, policy_file, TINYLIGHT_F_CPU="16MHz")
    assert bad_clock.returncode != 0 and "TINYLIGHT_F_CPU: '16MHz' is not a positive whole number" in bad_clock.stderr
    big = tmp_path / "big.json"
    write_random_policy(big, shapes=[((12, 9), (18, 20), 9)] * 30)
    too_big = pio_run(["-e", "uno_system"], tmp_path, big)
    assert too_big.returncode != 0 and "greater than maximum allowed" in too_big.stderr


def test_a_missing_platformio_is_named(policy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pio, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^platformio: not installed.*pip install"):
        pio.run(["run"], project=project_root())


def test_the_users_own_projects_do_not_leak_into_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Variables that stand for options of a project are for another one; where PlatformIO keeps its things is the user's."""
    foreign = ("SRC_DIR", "DEFAULT_ENVS", "BUILD_FLAGS", "BUILD_UNFLAGS", "EXTRA_SCRIPTS", "INCLUDE_DIR", "BUILD_DIR")
    for name in foreign:
        monkeypatch.setenv(f"PLATFORMIO_{name}", "elsewhere")
    monkeypatch.setenv("PLATFORMIO_SETTING_PROJECTS_DIR", "/projects")
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", "/core")
    passed = pio.environment(None, {"PLATFORMIO_BUILD_DIR": "ours"})
    assert passed["PLATFORMIO_BUILD_DIR"] == "ours"
    assert {f"PLATFORMIO_{name}" for name in foreign} & passed.keys() == {"PLATFORMIO_BUILD_DIR"}
    assert passed["PLATFORMIO_SETTING_PROJECTS_DIR"] == "/projects" and passed["PLATFORMIO_CORE_DIR"] == "/core"
    assert pio.environment(tmp_path)["PLATFORMIO_CORE_DIR"] == str(tmp_path / "core")
    assert passed["PATH"] == os.environ["PATH"]


def test_a_build_with_such_variables_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy_file: Path) -> None:
    monkeypatch.setenv("PLATFORMIO_SRC_DIR", str(tmp_path))
    monkeypatch.setenv("PLATFORMIO_BUILD_FLAGS", "-DNONSENSE=(")
    assert build_firmware(policy_file, build_dir=tmp_path / "builds").elf.is_file()
