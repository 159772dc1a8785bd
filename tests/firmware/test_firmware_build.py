"""Building the firmware: through PlatformIO and offline, what it refuses, and the faults that it can be built with."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hil.boards import Board, open_board
from hil.build.baud import LIMIT, divisor
from hil.build.firmware import BuildError, Firmware, Target, build_firmware, pio
from hil.build.footprint import measure
from hil.build.project import project_root
from hil.wire.link import GarbageAnswer, Link, NoAnswer
from hil.wire.protocol import (
    DecideReply,
    DecideRequest,
    Frame,
    MessageType,
    decode_decide_reply,
    decode_frame,
    encode_decide,
    encode_frame,
)
from model.policy.file import Policy, load_policy
from model.policy.integer import IntegerPolicy
from streetflow.errors import InputError
from tests.helpers.random_policy import write_random_policy

VALUES = [30] * 21
WATCHDOG_RESET = 1 << 3  # WDRF in MCUSR
OVERFLOW_CYCLES = 21  # that counting an overflow of the stopwatch's timer takes, itself timed


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("build") / "policy.json"
    write_random_policy(file)
    return file


def edited(source: Path, target: Path, change: Callable[[dict], None]) -> Path:
    """A copy of a policy file after `change`, its hash not corrected."""
    content = json.loads(source.read_text())
    change(content)
    target.write_text(json.dumps(content))
    return target


def emulated(firmware: Firmware, policy: Policy) -> tuple[Link, Callable[[], None]]:
    board = open_board("simavr", firmware, f_cpu_hz=firmware.f_cpu_hz, baud=firmware.baud)
    board.open()
    link = Link(board)
    link.hello(policy.sha256)
    return link, board.close


def patiently_decided(board: Board) -> DecideReply:
    """One request, and the reply whenever it comes."""
    board.write(encode_frame(Frame(MessageType.DECIDE, 99, 0, encode_decide(DecideRequest(VALUES)))))
    received = b""
    while not received.endswith(b"\0"):
        received += board.read(board.now_us() + 1e6)
    return decode_decide_reply(decode_frame(received[:-1]).payload)


def test_what_a_build_gives(policy_file: Path) -> None:
    firmware = build_firmware(policy_file)
    assert firmware.elf.read_bytes()[:4] == b"\x7fELF"
    assert firmware.hex is not None and firmware.hex.read_text().startswith(":")
    assert firmware.map is not None and "Linker script and memory map" in firmware.map.read_text()
    assert (firmware.target, firmware.f_cpu_hz, firmware.baud) == ("uno_system", 16_000_000, 115_200)
    assert firmware.policy_sha256 == load_policy(policy_file).sha256


@pytest.mark.parametrize("target", ["uno_system", "native"])
def test_the_compiler_has_nothing_to_say(policy_file: Path, target: Target) -> None:
    assert build_firmware(policy_file, target=target, extra_flags=["-Werror"]).elf.is_file()


def test_a_build_is_kept_until_something_changes(policy_file: Path, tmp_path: Path) -> None:
    first = build_firmware(policy_file)
    stamp = first.elf.stat().st_mtime_ns
    assert build_firmware(policy_file) == first
    assert first.elf.stat().st_mtime_ns == stamp
    other = tmp_path / "other.json"
    write_random_policy(other, seed=2)
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
        assert hello.max_payload_bytes == 48


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
    assert "#define POLICY_MAX_PAYLOAD 48" in (tmp_path / "out" / "policy_dimensions.h").read_text()
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
    said = f"Processing uno_system\nError: {policy_file}: intersections[3].phases: 300, the firmware takes 1 to 255"
    failed = subprocess.CompletedProcess(["pio"], 1, stdout=f"{said}\n==== [FAILED] ====", stderr="")
    monkeypatch.setattr(pio, "run", lambda *arguments, **options: failed)
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
    failed = subprocess.CompletedProcess(["pio"], 1, stdout="", stderr=said)
    monkeypatch.setattr(pio, "run", lambda *arguments, **options: failed)
    with pytest.raises(InputError, match=r"^avr-libc: .*apt install avr-libc"):
        build_firmware(policy_file, build_dir=tmp_path)


@pytest.mark.parametrize(("vector", "name"), [("TIMER2_OVF_vect", "__vector_9"), ("BADISR_vect", "__vector_default")])
def test_an_interrupt_that_the_start_does_not_route_is_refused(
    policy_file: Path, tmp_path: Path, vector: str, name: str
) -> None:
    """As if somebody had added it to a C file."""
    added = tmp_path / "added.h"
    added.write_text(
        "#ifndef __ASSEMBLER__\n#include <avr/interrupt.h>\n"
        f"ISR({vector}, __attribute__((weak))) {{ PORTD = 1; }}\n#endif\n"  # weak: it gets into every file
    )
    with pytest.raises(BuildError) as refused:
        build_firmware(policy_file, extra_flags=[f"-include{added}"], build_dir=tmp_path)
    told = [line for line in str(refused.value).splitlines() if name in line]
    assert len(told) == 1 and told[0].startswith("Error: ") and "firmware.elf: " in told[0] and "start.S" in told[0]


# Baud rates: hil/build/baud.py and firmware/include/hardware.h must choose the same

RATES = [(f, baud) for f in (16_000_000, 8_000_000, 20_000_000, 1_000_000) for baud in (1200, 9600, 57_600, 76_800)]
RATES += [(f, baud) for f in (999_999, 1_200_000, 20_000_001, 10**9) for baud in (300, 1200, 9600)]
RATES += [(f, baud) for f in (16_000_000, 20_000_000) for baud in (300, 600, 1199, 2_000_000, 2_000_001)]
RATES += [(f, baud) for f in (16_000_000, 8_000_000) for baud in (115_200, 230_400, 250_000, 500_000, 1_000_000)]


@pytest.mark.parametrize(("f_cpu_hz", "baud"), RATES)
def test_c_and_python_choose_the_same_divisor(f_cpu_hz: int, baud: int) -> None:
    include = project_root() / "firmware" / "include"
    command = ["gcc", "-E", "-P", f"-I{include}", f"-DF_CPU={f_cpu_hz}L", f"-DBAUD={baud}L", "-"]
    source = '#include "hardware.h"\nUART_UBRR | UART_DOUBLE_SPEED\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    try:
        setting = divisor(f_cpu_hz, baud)
    except InputError:
        assert result.returncode != 0 and "#error" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    ubrr, u2x = result.stdout.strip().replace("L", "").split("|")
    assert re.fullmatch(r"[\d\s()+*/-]+", ubrr)
    assert (int(eval(ubrr.replace("/", "//"))), int(u2x) == 1) == (setting.ubrr, setting.u2x)


def test_known_rates() -> None:
    at_16 = divisor(16_000_000, 115_200)
    assert (at_16.ubrr, at_16.u2x, round(at_16.actual_baud)) == (16, True, 117_647)
    assert at_16.error == pytest.approx(0.02124, abs=1e-5)
    at_8 = divisor(8_000_000, 115_200)
    assert (at_8.ubrr, at_8.u2x, round(at_8.actual_baud)) == (8, True, 111_111)
    assert at_8.error == pytest.approx(-0.03549, abs=1e-5) and abs(at_8.error) > LIMIT, "the one exception"
    assert divisor(16_000_000, 500_000)[:2] == (1, False) and divisor(8_000_000, 500_000)[:2] == (0, False)
    for impossible in ((16_000_000, 230_400), (16_000_000, 3_000_000), (16_000_000, 300), (0, 9600), (16_000_000, -1)):
        with pytest.raises(InputError, match=r"^--(baud|f-cpu): "):
            divisor(*impossible)


# PlatformIO, typed by hand


def pio_run(arguments: list[str], home: Path, policy_file: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`pio run ARGUMENTS` with an empty home folder, no network and a build folder of its own."""
    unreachable = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    keep = {name: os.environ[name] for name in ("PATH",)}
    own = {"HOME": str(home), "PLATFORMIO_WORKSPACE_DIR": str(home / "work"), "TINYLIGHT_POLICY": str(policy_file)}
    command = [sys.executable, "-m", "platformio", "run", *arguments]
    environment = keep | unreachable | own | variables
    return subprocess.run(command, cwd=project_root(), env=environment, capture_output=True, text=True, timeout=60)


def test_pio_run_by_hand_needs_no_network(policy_file: Path, tmp_path: Path) -> None:
    result = pio_run(["-e", "uno_system", "-e", "native", "-e", "bare_8mhz"], tmp_path, policy_file)
    assert result.returncode == 0, result.stdout + result.stderr
    built = tmp_path / "work" / "build"
    assert f"linker map: {built / 'uno_system' / 'firmware.map'}" in result.stdout
    assert "Clock 8000000 Hz, 115200 baud" in result.stdout
    assert "misses this baud rate by more than 2.5 %" in result.stderr
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


# Faults on demand


@pytest.mark.parametrize("slowdown_cycles", [100_000, 140_000, 300_000, 1_500_000])
def test_a_slowed_kernel_takes_that_much_longer(policy_file: Path, slowdown_cycles: int) -> None:
    """However often the 16 bits of the stopwatch's timer overflow, and it tells so."""
    policy, cycles = load_policy(policy_file), []
    for flags in ([], [f"-DTL_SLOWDOWN_CYCLES={slowdown_cycles}"]):
        link, close = emulated(build_firmware(policy_file, extra_flags=flags), policy)
        cycles.append(patiently_decided(link.board).compute_cycles)
        assert link.stats().largest_compute_cycles == cycles[-1]
        close()
    overflows = slowdown_cycles // 65_536
    assert cycles[1] - cycles[0] == pytest.approx(slowdown_cycles + OVERFLOW_CYCLES * overflows, abs=100)


def test_the_stopwatch_is_right_around_an_overflow(policy_file: Path) -> None:
    """Decisions that end some cycles before one, and after: the same delay makes each longer by the same."""
    policy, rng = load_policy(policy_file), np.random.default_rng(1)
    inputs = rng.integers(-100, 400, (600, 21)).tolist()
    series = []
    for flags in ([], ["-DTL_SLOWDOWN_CYCLES=59380"]):
        link, close = emulated(build_firmware(policy_file, extra_flags=flags), policy)
        series.append([link.decide(0, values).compute_cycles for values in inputs])
        close()
    longer = {slowed: slowed - plain for plain, slowed in zip(*series, strict=True)}
    delay = longer[min(longer)]
    assert len({slowed for slowed in longer if abs(slowed - 65_536) < 8}) > 8
    for slowed, more in longer.items():
        assert more == delay if slowed < 65_536 else more == delay + OVERFLOW_CYCLES or (more == delay and slowed < 65_550)


def test_a_flipped_weight_changes_just_the_logit_that_it_belongs_to(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    reference = IntegerPolicy(policy.intersections[0])
    unit = int(reference.activations(VALUES).h2.argmax())
    weight = 4 * 20 + unit  # of action 4
    boards: dict[str, Target] = {"simavr": "uno_system", "host": "native"}
    for board_name, target in boards.items():
        firmware = build_firmware(policy_file, target=target, extra_flags=[f"-DTL_FLIP_WEIGHT={weight}"])
        with open_board(board_name, firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
            link = Link(board)
            link.hello(policy.sha256)
            logits = link.decide(0, VALUES, logits=True).logits
        different = [a for a, expected in enumerate(reference.logits(VALUES)) if logits[a] != expected]
        assert different == [4]


def test_garbage_and_silence_begin_after_that_many_decisions(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    for flag, failure in (("TL_GARBAGE_AFTER", GarbageAnswer), ("TL_SILENT_AFTER", NoAnswer)):
        link, close = emulated(build_firmware(policy_file, extra_flags=[f"-D{flag}=2"]), policy)
        for _ in range(2):
            link.decide(0, VALUES)
        with pytest.raises(failure):
            link.decide(0, VALUES)
        close()


def test_the_watchdog_ends_a_hang_and_the_chip_says_so(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    link, close = emulated(build_firmware(policy_file, extra_flags=["-DTL_HANG_AFTER=1"]), policy)
    assert link.greeting is not None and link.greeting.reset_cause & WATCHDOG_RESET == 0
    link.decide(0, VALUES)
    with pytest.raises(NoAnswer):
        link.decide(0, VALUES)
    again = link.hello(policy.sha256, patience_s=3.0)
    assert again.reset_cause & WATCHDOG_RESET
    assert link.stats().decisions == 0
    close()


def test_a_quiet_chip_is_not_reset(policy_file: Path) -> None:
    """Nothing to do for five seconds: the sleep is ended often enough to feed the watchdog."""
    policy = load_policy(policy_file)
    link, close = emulated(build_firmware(policy_file), policy)
    link.decide(0, VALUES)
    assert link.board.read(link.board.now_us() + 5e6) == b""
    stats = link.stats()
    close()
    assert stats.decisions == 1


def test_ballast_takes_flash(policy_file: Path) -> None:
    plain, heavy = (measure(build_firmware(policy_file, extra_flags=flags)) for flags in ([], ["-DTL_BALLAST_BYTES=30000"]))
    assert 0 <= heavy.flash_bytes - plain.flash_bytes - 30_000 < 4
    assert heavy.static_ram_bytes == plain.static_ram_bytes


def test_the_default_firmware_has_no_faults_in_it(policy_file: Path) -> None:
    assert not any("faults" in symbol for symbol in measure(build_firmware(policy_file)).per_symbol)


@pytest.mark.parametrize("bias_size", [60_000, 400_000])
def test_wide_biases_take_more_bytes(policy_file: Path, tmp_path: Path, bias_size: int) -> None:
    """As docs/firmware.md tells: the limit of 4,096 B is one with biases of 16 bits."""
    wide = tmp_path / "wide.json"
    write_random_policy(wide, bias_size=bias_size)
    plain, more = (measure(build_firmware(file, kernel="table")).flash_bytes for file in (policy_file, wide))
    assert plain + 60 <= more <= plain + 130


@pytest.mark.parametrize("kernel", ["table", "c"])
def test_each_function_of_the_firmware_is_called(policy_file: Path, kernel: str) -> None:
    """The linker leaves out what C doesn't use, but nothing that stands in assembly beside something used."""
    elf = build_firmware(policy_file, kernel=kernel).elf
    symbols, code = (
        subprocess.check_output(["avr-objdump", option, "--no-show-raw-insn", str(elf)], text=True) for option in ("-t", "-d")
    )
    functions = set(re.findall(r" F \.text\s+\w+ (\S+)", symbols))
    called = set(re.findall(r"<([^+>]+)>$", code, re.MULTILINE))
    assert {name for name in functions - called if not re.fullmatch(r"__vectors|__vector_\d+", name)} == set()


def test_a_policy_of_the_papers_size_meets_the_limits(policy_file: Path) -> None:
    """At most 4 KB of flash; static RAM and the proven stack at most 400 B together."""
    footprint = measure(build_firmware(policy_file, kernel="table"))
    assert 3_900 < footprint.flash_bytes <= 4_096
    assert footprint.stack is not None
    assert 330 < footprint.static_ram_bytes + footprint.stack.total_bytes <= 400


def test_the_unrolled_kernel_is_taken_where_it_fits(tmp_path: Path) -> None:
    """What the generator reckons for the rest of the firmware is enough, and not far too much."""
    for count, kernel in ((1, "unrolled"), (2, "unrolled"), (3, "table"), (12, "table")):
        file = tmp_path / f"{count}.json"
        write_random_policy(file, shapes=[((12, 9), (18, 20), 9)] * count)
        firmware = build_firmware(file)
        assert firmware.kernel == kernel
        if kernel == "unrolled":
            footprint = measure(firmware)
            code = sum(size.flash_bytes for name, size in footprint.per_symbol.items() if "unrolled.o:kernel_" in name)
            assert 1_800 < footprint.flash_bytes - code <= 2_300 + 64 * count
    with pytest.raises(InputError, match=rf"^--kernel: {re.escape(str(file))}: unrolled takes 1\d{{5}} bytes, .*; take table$"):
        build_firmware(file, kernel="unrolled")
    district = measure(build_firmware(file))
    assert district.stack is not None
    assert district.flash_bytes <= 30_000 and district.static_ram_bytes + district.stack.total_bytes <= 640
