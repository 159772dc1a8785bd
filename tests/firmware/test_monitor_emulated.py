"""The monitor's firmware on an emulated ATmega328P: its limits at the pins, its latch, its EEPROM. Phase 0 of the built-in
crossing is green: groups 1 and 6, and the right turns, 2."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hil.build.monitor import build_monitor
from hil.build.project import project_root
from streetflow.networks.catalogue import find_network
from tests.helpers.host_monitor import CONFLICT, DARK, FINE, HEARTBEAT, NO_YELLOW, SEVERAL, SHORT_YELLOW

SOURCE = project_root() / "tests/firmware/monitor/emulated.c"
ALL, OPEN = 0b111111111, 0b001000110
SOUND = f"lamps {ALL & ~OPEN} 0 {OPEN}"
RELEASED, FLASHES = ("relay 1", "led 0"), ("relay 0", "led 1")
JITTER_US = 1_100  # lamps change at any moment between two of the monitor's looks, a millisecond apart


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("monitor") / "emulated"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, str(SOURCE), "-o", str(built), "-lsimavr"], check=True)
    return built


def play(program: Path, *script: str) -> list[list[str]]:
    """The answers to the lines of a script, split at their commas."""
    elf = build_monitor(find_network("crossing").roadnet_file, "intersection_1_1").elf
    text = "\n".join((*script, ""))
    done = subprocess.run([str(program), str(elf)], input=text, capture_output=True, text=True, check=True, timeout=120)
    return [line.split(", ") for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("before", "fault", "limit_ms", "reason", "group"),
    [
        ((), f"lamps {ALL & ~OPEN & ~16} 0 {OPEN | 16}", 350, CONFLICT, 1),
        ((), f"lamps {ALL & ~OPEN & ~16} 16 {OPEN}", 350, CONFLICT, 1),
        ((), f"lamps {ALL & ~OPEN} 0 {OPEN & ~2}", 850, DARK, 1),
        ((), f"lamps {ALL & ~OPEN | 64} 0 {OPEN}", 350, SEVERAL, 6),
        ((), f"lamps {ALL & ~4} 0 4", 60 + 1_199, NO_YELLOW, 1),
        ((f"lamps {ALL & ~OPEN} 66 4", "run 2600"), f"lamps {ALL & ~4} 0 4", 60 + 1_199, SHORT_YELLOW, 1),
        ((), "beat 0", 1_000 - 10, HEARTBEAT, 0),  # its last edge was 10 ms ago
    ],
)
def test_each_fault_opens_the_relay_at_its_limit(
    program: Path, before: tuple[str, ...], fault: str, limit_ms: int, reason: int, group: int
) -> None:
    *sound, tripped, kept = play(program, SOUND, "run 200", *before, fault, f"run {limit_ms + 40}", "kept")
    assert all((relay, led) == RELEASED for relay, led, _ in sound)
    assert (tripped[0], tripped[1]) == FLASHES
    assert int(tripped[2].removeprefix("at ")) == pytest.approx(1_000 * limit_ms, abs=JITTER_US)
    assert kept == [f"kept {reason} {group}"]


def test_shorter_disturbances_do_not_open_it(program: Path) -> None:
    answers = play(
        program, SOUND, "run 200",
        f"lamps {ALL & ~OPEN | 64} 0 {OPEN}", "run 345", SOUND, "run 100",
        f"lamps {ALL & ~OPEN} 0 {OPEN & ~2}", "run 845", SOUND, "run 100",
        "beat 0", "run 980", "beat 1", "run 100",
        f"lamps {ALL & ~OPEN} 66 4", "run 2710", f"lamps {ALL & ~4} 0 4", "run 1400",
    )  # fmt: skip
    assert [tuple(answer[:2]) for answer in answers] == [RELEASED] * 9


def test_it_latches_over_a_power_cycle_until_its_button_is_held(program: Path) -> None:
    answers = play(
        program, SOUND, "run 200", f"lamps {ALL & ~OPEN} 0 {OPEN & ~2}", "run 900", "beat 0", SOUND, "run 1200", "kept",
        "beat 1", "power", "run 300", "button 1", "run 100", "button 0", "run 50", "button 1", "run 160", "kept",
        "button 0", "power", "run 300",
    )  # fmt: skip
    _, tripped, sound_again, kept, powered, bounce, let_go, held, kept_at_last, fine = answers
    for answer in (tripped, sound_again, powered, bounce, let_go):
        assert tuple(answer[:2]) == FLASHES
    assert kept == [f"kept {DARK} 1"], "the first reason stays, though the heartbeat is lost as well"
    assert int(held[2].removeprefix("at ")) == pytest.approx(120_000, abs=JITTER_US)
    assert kept_at_last == [f"kept {FINE} 0"]
    assert tuple(held[:2]) == tuple(fine[:2]) == RELEASED
