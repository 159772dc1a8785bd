"""Building the firmware: kept until something changes, and what is refused.

That the compilers have nothing to say of it is seen in test_pio.py.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from hil.build import compilers
from hil.build.firmware import BuildError, build_firmware
from hil.build.footprint import measure
from hil.build.project import project_root
from model import pretrained_policy
from model.policy.file import load_policy
from streetflow.errors import InputError
from tests.helpers.emulated_chip import emulated
from tests.helpers.random_policy import write_random_policy

VALUES = [30] * 28


@pytest.fixture
def policy_file() -> Path:
    """The built-in crossing's: other tests need most of these builds, too."""
    return pretrained_policy("crossing")


def edited(source: Path, target: Path, change: Callable[[dict], None]) -> Path:
    """A copy of a policy file after `change`, its hash not corrected."""
    content = json.loads(source.read_text())
    change(content)
    target.write_text(json.dumps(content))
    return target


def test_what_a_build_gives(policy_file: Path) -> None:
    firmware = build_firmware(policy_file)
    assert firmware.elf.read_bytes()[:4] == b"\x7fELF"
    assert firmware.hex is not None and firmware.hex.read_text().startswith(":")
    assert firmware.map is not None and "Linker script and memory map" in firmware.map.read_text()
    assert (firmware.target, firmware.f_cpu_hz, firmware.baud) == ("uno_system", 16_000_000, 115_200)
    assert firmware.policy_sha256 == load_policy(policy_file).sha256


def test_a_build_is_kept_until_something_changes(policy_file: Path, tmp_path: Path) -> None:
    first = build_firmware(policy_file)
    stamp = first.elf.stat().st_mtime_ns
    assert build_firmware(policy_file) == first
    assert first.elf.stat().st_mtime_ns == stamp
    other = tmp_path / "other.json"
    write_random_policy(other)
    elfs = {
        first.elf,
        build_firmware(other).elf,
        build_firmware(policy_file, baud=500_000).elf,
        build_firmware(policy_file, f_cpu_hz=8_000_000).elf,
        build_firmware(policy_file, extra_flags=["-DTL_GARBAGE"]).elf,
        build_firmware(policy_file, target="native").elf,
    }
    assert len(elfs) == 6 and all(elf.is_file() for elf in elfs)


def _build(arguments: tuple[Path, Path]) -> bytes:
    policy_file, build_dir = arguments
    return build_firmware(policy_file, build_dir=build_dir).elf.read_bytes()


def test_two_processes_may_build_the_same(policy_file: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        one, two = pool.map(_build, [(policy_file, tmp_path)] * 2)
    assert one == two
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_the_chip_knows_its_policy_clock_and_rate(policy_file: Path) -> None:
    for f_cpu_hz, baud in ((16_000_000, 115_200), (8_000_000, 500_000)):
        firmware = build_firmware(policy_file, f_cpu_hz=f_cpu_hz, baud=baud)
        link, close = emulated(firmware, load_policy(policy_file))
        hello = link.greeting
        close()
        assert hello is not None
        assert (hello.f_cpu_hz, hello.baud, hello.kernel, hello.intersections) == (f_cpu_hz, baud, 2, 1)
        assert hello.max_payload_bytes == 4 + 2 * 28


def test_the_chip_tells_its_ram_as_the_map_does(policy_file: Path) -> None:
    firmware = build_firmware(policy_file)
    link, close = emulated(firmware, load_policy(policy_file))
    link.decide(0, VALUES)
    stats, board_mark = link.stats(), link.board.stack_high_water_bytes()
    close()
    assert stats.static_ram_bytes == measure(firmware).static_ram_bytes
    chips_mark = 2048 - stats.static_ram_bytes - stats.untouched_ram_bytes
    assert board_mark is not None and 10 < chips_mark <= board_mark <= chips_mark + 8, "sending the answer may go deeper"


# Bad input


def test_a_missing_compiler_is_named_with_the_command_that_installs_it(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"^avr-gcc: .*apt install gcc-avr"):
        build_firmware(policy_file)
    with pytest.raises(InputError, match=r"^gcc: .*apt install gcc"):
        build_firmware(policy_file, target="native")
    (tmp_path / "avr-gcc").symlink_to("/bin/true")
    with pytest.raises(InputError, match=r"^avr-objcopy: not on PATH; .*apt install gcc-avr binutils-avr"):
        build_firmware(policy_file)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda policy: policy.update(network="other"), "sha256"),
        (lambda policy: policy["intersections"][0].update(hidden=[17, 20]), "layer1"),
        (lambda policy: policy["intersections"][0]["layer2"]["weights"][0].__setitem__(0, 128), "layer2"),
        (lambda policy: policy.pop("intersections"), "intersections"),
    ],
)
def test_a_faulty_policy_is_refused(policy_file: Path, tmp_path: Path, change: Callable[[dict], None], place: str) -> None:
    file = edited(policy_file, tmp_path / "faulty.json", change)
    with pytest.raises(InputError, match=place) as refused:
        build_firmware(file)
    assert str(refused.value).startswith(f"{file}: ") and "\n" not in str(refused.value)


def test_a_policy_that_no_frame_can_carry_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    write_random_policy(file, shapes=[((100,), (4, 4), 2)])
    with pytest.raises(InputError, match="a request or reply of 204 bytes, a frame carries 200"):
        build_firmware(file)


def test_the_generator_checks_for_itself_where_the_model_package_is_missing(policy_file: Path, tmp_path: Path) -> None:
    """As in a PlatformIO that does not run in our environment: -S leaves site-packages out."""
    shutil.copytree(project_root() / "firmware", tmp_path / "firmware")

    def generate(file: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-E", "-m", "firmware.generator", str(file), str(tmp_path / "out")]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert generate(policy_file).returncode == 0
    assert "#define POLICY_MAX_PAYLOAD 60" in (tmp_path / "out" / "policy_dimensions.h").read_text()
    faulty = edited(policy_file, tmp_path / "faulty.json", lambda policy: policy.update(network="other"))
    refused = generate(faulty)
    assert (refused.returncode, refused.stderr) == (2, f"{faulty}: sha256: not the hash of the content\n")
    (tmp_path / "none.json").write_text("[]")
    assert generate(tmp_path / "none.json").stderr.count("\n") == 1


def test_a_rate_out_of_reach_is_refused(policy_file: Path) -> None:
    with pytest.raises(InputError, match="230400 at 8000000 Hz: the nearest is 250000, off by"):
        build_firmware(policy_file, f_cpu_hz=8_000_000, baud=230_400)


def test_what_the_generator_refuses_during_a_build_is_told_alone(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = f"{policy_file}: intersections[3].phases: 300, the firmware takes 1 to 255\n"
    failed = subprocess.CompletedProcess(["python"], 1, stdout="", stderr=said)
    monkeypatch.setattr(compilers, "compile_firmware", lambda *_: failed)
    with pytest.raises(InputError) as refused:
        build_firmware(policy_file, build_dir=tmp_path)
    assert str(refused.value) == f"{policy_file}: intersections[3].phases: 300, the firmware takes 1 to 255"


def test_a_failed_build_says_what_the_compiler_said(policy_file: Path) -> None:
    with pytest.raises(BuildError, match=r"TL_SLOWDOWN_CYCLES|NoSuchNumber"):
        build_firmware(policy_file, extra_flags=["-DTL_SLOWDOWN_CYCLES=NoSuchNumber"])


def test_missing_headers_are_named_with_the_command_that_installs_them(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = "firmware/include/hardware.h:80:20: fatal error: avr/io.h: No such file or directory"
    failed = subprocess.CompletedProcess(["avr-gcc"], 1, stdout="", stderr=said)
    monkeypatch.setattr(compilers, "compile_firmware", lambda *_: failed)
    with pytest.raises(InputError, match=r"^avr-libc: .*apt install avr-libc"):
        build_firmware(policy_file, build_dir=tmp_path)


@pytest.mark.parametrize(("vector", "name"), [("TIMER2_OVF_vect", "__vector_9"), ("BADISR_vect", "__vector_default")])
def test_an_interrupt_that_the_start_does_not_route_is_refused(
    policy_file: Path, tmp_path: Path, vector: str, name: str
) -> None:
    """As if it had been added to a C file."""
    added = tmp_path / "added.h"
    added.write_text(
        "#ifndef __ASSEMBLER__\n#include <avr/interrupt.h>\n"
        f"ISR({vector}, __attribute__((weak))) {{ PORTD = 1; }}\n#endif\n"  # weak: it gets into every file
    )
    with pytest.raises(BuildError) as refused:
        build_firmware(policy_file, extra_flags=[f"-include{added}"])
    (reported,) = [line for line in str(refused.value).splitlines() if name in line]
    assert reported.startswith("Error: ") and "firmware.elf: " in reported and "start.S" in reported
