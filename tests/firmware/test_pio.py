"""PlatformIO typed by hand: it needs no network, says what is wrong, and comes to the harness's own builds, byte for byte."""

import json
from pathlib import Path

import pytest

from hil.build.compilers import Settings, compile_firmware
from hil.build.firmware import NO_WATCHDOG, Mode
from hil.build.light_plan import light_documents
from hil.build.project import project_root
from model import pretrained_policy
from tests.helpers.pio import pio_run
from tests.helpers.random_policy import write_random_policy


def assert_the_harness_builds_the_same(settings: Settings, plan_file: Path, built: Path) -> None:
    """The program has the path of its folder inside: so the other one is moved away and it is built there once more."""
    programs = ["firmware"] if settings.target == "native" else ["firmware.elf", "firmware.hex", "firmware.map"]
    by_platformio = built.rename(built.with_name(f"{built.name}-by-platformio"))
    done = compile_firmware(settings, plan_file, project_root(), built)
    assert done.returncode == 0, done.stderr
    for name in programs:
        assert (built / name).read_bytes() == (by_platformio / name).read_bytes(), name


def test_it_needs_no_network_the_compilers_have_nothing_to_say_and_the_harness_builds_the_same(
    policy_file: Path, tmp_path: Path
) -> None:
    environments = ["-e", "uno_system", "-e", "native", "-e", "bare_8mhz"]
    result = pio_run(environments, tmp_path, TINYLIGHT_POLICY=str(policy_file))
    assert result.returncode == 0, result.stdout + result.stderr
    built = tmp_path / "build"
    assert f"linker map: {built / 'uno_system' / 'firmware.map'}" in result.stdout
    assert "Clock 8000000 Hz, 115200 baud" in result.stdout
    assert "misses this baud rate by more than 2.5 %" in result.stderr, "a note of ours, which is shown"
    assert "warning: " not in result.stdout + result.stderr
    for target, folder, f_cpu_hz in (
        ("uno_system", "uno_system", 16_000_000),
        ("uno_system", "bare_8mhz", 8_000_000),
        ("native", "native", 16_000_000),
    ):
        settings = Settings(target, policy_file, "auto", f_cpu_hz, 115_200, 0, "answer", [])
        assert_the_harness_builds_the_same(settings, tmp_path / "no plan", built / folder)


@pytest.mark.parametrize(
    ("mode", "kernel", "flags"),
    [
        ("answer", "c", ["-Werror", "-DTL_GARBAGE", "-DTL_FLIP_WEIGHT=3"]),
        ("light", "table", ["-Werror", "-DTL_HANG_AFTER=1"]),
        ("alone", "auto", [NO_WATCHDOG, "-include{}"]),
    ],
)
def test_with_other_settings_the_harness_builds_the_same(mode: Mode, kernel: str, flags: list[str], tmp_path: Path) -> None:
    included, plan_file, policy = tmp_path / "included.h", tmp_path / "plan.json", pretrained_policy("crossing")
    included.write_text("#ifndef __ASSEMBLER__\n__attribute__((weak)) void included(void);\nvoid included(void) {}\n#endif\n")
    plan_file.write_text(json.dumps(light_documents("crossing")[0]))
    flags = [flag.format(included) for flag in flags]
    result = pio_run(
        ["-e", "uno_system", "-t", "buildprog"],
        tmp_path,
        TINYLIGHT_POLICY=str(policy),
        TINYLIGHT_F_CPU="8000000",
        TINYLIGHT_BAUD="500000",
        TINYLIGHT_KERNEL=kernel,
        TINYLIGHT_MIN_GREEN_S="7",
        TINYLIGHT_MODE=mode,
        TINYLIGHT_PLAN=str(plan_file),
        PLATFORMIO_BUILD_FLAGS=" ".join(flags),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    settings = Settings("uno_system", policy, kernel, 8_000_000, 500_000, 7, mode, flags)
    assert_the_harness_builds_the_same(settings, plan_file, tmp_path / "build" / "uno_system")


def test_it_says_what_is_wrong(policy_file: Path, tmp_path: Path) -> None:
    missing = pio_run(["-e", "native"], tmp_path, TINYLIGHT_POLICY=str(tmp_path / "missing.json"))
    assert missing.returncode != 0 and f"Error: {tmp_path / 'missing.json'}: there is no such file" in missing.stderr
    bad_clock = pio_run(["-e", "uno_system"], tmp_path, TINYLIGHT_POLICY=str(policy_file), TINYLIGHT_F_CPU="16MHz")
    assert bad_clock.returncode != 0 and "TINYLIGHT_F_CPU: '16MHz' is not a positive whole number" in bad_clock.stderr
    big = tmp_path / "big.json"
    write_random_policy(big, shapes=[((12, 9), (18, 20), 9)] * 30)
    too_big = pio_run(["-e", "uno_system"], tmp_path, TINYLIGHT_POLICY=str(big))
    assert too_big.returncode != 0 and "greater than maximum allowed" in too_big.stderr
