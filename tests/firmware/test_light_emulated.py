"""The light's firmware on an emulated chip: what its lamps, heartbeat, frames and EEPROM do, in order and in trouble."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hil.boards.elf_image import read_elf
from hil.build.firmware import Firmware
from hil.wire.events import Alarm, FlashStatus, Kind
from hil.wire.protocol import (
    DecideRequest,
    MessageType,
    decode_decide_reply,
    decode_hello_reply,
    decode_stats_reply,
    encode_decide,
    logits_checksum,
)
from model.policy.file import load_policy
from model.policy.integer import IntegerPolicy
from tests.firmware.light.chip import Seen, play
from tests.firmware.light.host import answers, compile_host
from tests.firmware.light.scenes import (
    LAMP_LINES,
    POLICY,
    START_TICKS,
    TICK_CYCLES,
    chain,
    documents,
    drawn_lines,
    light,
    request,
    ticks_of,
)
from tests.helpers.host_shell import FORCED, MAXED_OUT, NO_PHASE, HostShell

ALL = 0b111111111
DARK, RED = chain(0, 0, 0), chain(ALL, 0, 0)
PHASE_0 = chain(0b110111001, 0, 0b001000110)
HELLO, STATS = request(MessageType.HELLO, 1), request(MessageType.STATS, 2)
EVERYBODY = 0b111111011  # all groups that can be called


@pytest.fixture(scope="module")
def lit() -> Firmware:
    return light("light")


@pytest.fixture(scope="module")
def alone() -> Firmware:
    return light("alone")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_host(POLICY, documents()[0], tmp_path_factory.mktemp("host"))


def decide(sequence: int, values: list[int]) -> str:
    return request(MessageType.DECIDE, sequence, encode_decide(DecideRequest(values)))


def host_lamps(host: Path, script: list[str]) -> list[tuple[int, int]]:
    """(tick, lines) of each change."""
    said = [list(map(int, line[1:])) for line in answers(host, script) if line[0] == "lamps"]
    return [(tick, chain(*lamps)) for tick, *lamps in said]


# In order


@pytest.mark.parametrize("mode", ["light", "alone"])
def test_it_starts_as_the_shell_says_and_beats_every_tick(mode: str, lit: Firmware, alone: Firmware) -> None:
    seen = play(lit if mode == "light" else alone, LAMP_LINES, "run 1200", HELLO, "run 10", STATS, "run 10")
    flashes = [(1 + 50 * n, RED if n % 2 == 0 else DARK) for n in range(11)]
    assert ticks_of(seen.lamps) == [*flashes, (START_TICKS, PHASE_0)]
    edges, even = seen.beats[0]
    assert 1_190 < edges < 1_200 and even, "none while it checks its flash"
    assert seen.kinds(Kind.POWER_RESTORED) == [(0, 0)]
    assert seen.kinds(Kind.UNIT_FLASH_STATUS_CHANGE) == [(1, FlashStatus.STARTUP), (501, FlashStatus.NOT_FLASHING)]
    assert seen.kinds(Kind.PHASE_BEGIN_GREEN) == [(START_TICKS, 2), (START_TICKS, 3), (START_TICKS, 7)]
    hello, stats = (next(f.payload for _, f in seen.frames if f.type == kind) for kind in (0x81, 0x83))
    identity = decode_hello_reply(hello).light
    assert identity is not None and (identity.mode, identity.power_on_resets, identity.watchdog_resets) == (mode, 1, 0)
    counters = decode_stats_reply(stats).light
    assert counters is not None and (counters.events_lost, counters.ticks_late) == (0, 0)
    assert 100 < counters.lamps_late_us < 1_000


def test_the_tick_is_10_ms_at_8_mhz_too() -> None:
    seen = play(light("light", f_cpu_hz=8_000_000), LAMP_LINES, "run 1150")
    assert seen.lamps[-1][1] == PHASE_0
    assert seen.lamps[-1][0] - seen.lamps[0][0] == pytest.approx((START_TICKS - 1) * TICK_CYCLES / 2, abs=3_000)


def test_in_mode_light_lamps_follow_the_answers_to_decide_as_the_shell_on_the_host_does(lit: Firmware, tmp_path: Path) -> None:
    draw, script = random.Random(5), ["run 1003", HELLO, "run 100"]
    for number in range(25):
        script += [decide(10 + number, [draw.randrange(40) for _ in range(28)]), f"run {500 + draw.randrange(2_000)}"]
    seen = play(lit, LAMP_LINES, *script)
    replies = [(cycle, decode_decide_reply(f.payload)) for cycle, f in seen.frames if f.type == 0x82]
    assert len(replies) == 25 and len({reply.action for _, reply in replies}) >= 4
    first = seen.lamps[0][0] - TICK_CYCLES
    wished = {
        1 + int((cycle - 10_000 - first) // TICK_CYCLES): reply.action for cycle, reply in replies
    }  # from the next tick on
    shell, wish, shown = HostShell((lit.elf.parent / "generated/shell_tables.h").read_text(), tmp_path), NO_PHASE, []
    forced = 0
    for tick in range(1, max(wished) + 400):
        wish = wished.get(tick, wish)
        output = shell.tick(wish=wish, calls=[group for group in range(9) if EVERYBODY >> group & 1])
        if output.events & (FORCED | MAXED_OUT):
            forced, wish = forced + 1, NO_PHASE  # the wish is out of date
        lines = chain(output.red, output.yellow, output.green)
        if not shown or shown[-1][1] != lines:
            shown.append((tick, lines))
    chips = [(tick, lines) for tick, lines in ticks_of(seen.lamps) if tick < max(wished) + 400]
    assert chips == shown and len(chips) > 60 and forced > 2


def test_alone_its_lamps_are_those_of_the_host_with_the_same_detectors_and_decisions(alone: Firmware, host: Path) -> None:
    traffic = drawn_lines(3, 700)
    script = [line for levels, ticks in traffic for line in (f"lines {levels:x}", f"run {ticks}")]
    seen = play(alone, LAMP_LINES, "run 50", *script)
    decisions = {each.tick: each.action for each in seen.decisions if not each.by_plan}
    offset = 50 - seen.beats[0][0]  # ticks of the emulator before the chip's first
    twin, now = [f"run {50 - offset}"], 50 - offset
    for levels, ticks in traffic:
        twin.append(f"lines {levels:x}")
        for _ in range(ticks):
            twin.append("run 1")
            now += 1
            if now in decisions:
                twin.append(f"wish {decisions[now]}")
    chips, hosts = ticks_of(seen.lamps), host_lamps(host, twin)
    assert len(decisions) > 8 and len(chips) > 40 and any(lines >> 27 for _, lines in chips), "crosswalks, too"
    assert chips == hosts[: len(chips)] and len(hosts) - len(chips) <= 1


def test_alone_each_decision_is_numpys_on_the_chips_own_values(alone: Firmware, host: Path) -> None:
    script = [line for levels, ticks in drawn_lines(4, 900, buttons=False) for line in (f"lines {levels:x}", f"run {ticks}")]
    seen = play(alone, LAMP_LINES, *script, "run 100")
    network = IntegerPolicy(load_policy(POLICY).intersections[0])
    decisions = seen.decisions
    assert len(decisions) > 12 and len({each.action for each in decisions}) > 2
    for number, each in enumerate(decisions):
        assert (each.tick, each.number) == (START_TICKS + 2_000 * number, number)
        logits = network.logits(each.values)
        assert (each.action, each.logits_crc) == (int(logits.argmax()), logits_checksum(logits.tolist()))
        assert 3_000 < each.compute_cycles < 7_000
    assert max(max(each.values) for each in decisions) > 10


def test_frames_that_nobody_asked_for_are_counted_through(alone: Firmware) -> None:
    script = [line for levels, ticks in drawn_lines(6, 200) for line in (f"lines {levels:x}", f"run {ticks}")]
    seen = play(alone, LAMP_LINES, *script)
    numbers = [frame.sequence for _, frame in seen.frames if frame.type in (0xA0, 0xA1)]
    assert len(numbers) > 300 and numbers == [n % 256 for n in range(len(numbers))]
    ons, offs = (len(seen.kinds(kind)) for kind in (Kind.DETECTOR_ON, Kind.DETECTOR_OFF))
    assert ons == 200 and abs(ons - offs) <= 1


# In trouble


def test_unasked_for_two_and_a_half_intervals_its_plan_in_flash_decides(lit: Firmware) -> None:
    plan = documents()[0]["plan"]
    seen = play(lit, LAMP_LINES, "run 1005", HELLO, "run 100", decide(3, [0] * 28), "run 16000", decide(4, [0] * 28), "run 200")
    asked, alarms = START_TICKS, seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)
    assert [channel for _, channel in alarms] == [Alarm.PLAN_UNASKED, Alarm.POLICY_DECIDES]
    assert alarms[0][0] == pytest.approx(asked + 5_000, abs=12)
    begun = {tick for tick, _ in seen.kinds(Kind.PHASE_BEGIN_GREEN) if tick > alarms[0][0]}
    assert len(begun) >= len(plan), "it goes through its steps"


def test_a_decision_over_a_tick_leaves_the_lamps_to_the_plan() -> None:
    seen = play(light("alone", "-DTL_SLOWDOWN_CYCLES=200000"), LAMP_LINES, "run 14000")
    assert (START_TICKS + 1, Alarm.PLAN_OVERRUN) in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)
    assert len(seen.decisions) == 1
    assert len({tick for tick, _ in seen.kinds(Kind.PHASE_BEGIN_GREEN)}) >= 3


def test_too_many_suspects_leave_the_lamps_to_the_plan(alone: Firmware) -> None:
    """Nine of twelve lanes whose entry loops stay occupied."""
    entries = sum(1 << 2 * lane for lane in range(9))
    seen = play(alone, LAMP_LINES, "run 100", f"lines {entries:x}", "run 31000", "lines 0", "run 4000")
    assert {channel for _, channel in seen.kinds(Kind.DETECTOR_FAULT_WATCHDOG)} == set(range(1, 18, 2))
    alarms = [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)]
    assert alarms == [Alarm.PLAN_SUSPECT_DETECTORS, Alarm.POLICY_DECIDES]
    by_plan = [each.by_plan for each in seen.decisions]
    assert by_plan.count(True) >= 2 and not by_plan[0] and not by_plan[-1]
    assert any(each.input_replaced for each in seen.decisions) and not seen.decisions[-1].input_replaced


def stop_program(firmware: Firmware) -> int:
    return read_elf(firmware.elf).symbols["__stop_program"]


def test_a_hang_ends_in_a_start_within_a_fifth_of_a_second(lit: Firmware) -> None:
    seen = play(lit, LAMP_LINES, "run 1500", f"hang {stop_program(lit)}", "run 100", HELLO, "run 10", "kept")
    hung = 1_500 * TICK_CYCLES
    assert len(seen.watchdog) == 1 and 0 < seen.watchdog[0] - hung < 0.15 * 16e6
    red = next(cycle for cycle, lines in seen.lamps if cycle > hung)
    assert dict(seen.lamps)[red] == RED and red - hung < 0.2 * 16e6, "the monitor excuses it for 1.2 s"
    assert seen.kinds(Kind.VENDOR_SPECIFIC_ALARM) == [(0, Alarm.WATCHDOG_RESET)]
    identity = decode_hello_reply(next(f.payload for _, f in seen.frames if f.type == 0x81)).light
    assert identity is not None and (identity.power_on_resets, identity.watchdog_resets) == (1, 1)


def flashes_only(seen: Seen, since: int) -> bool:
    return {lines for cycle, lines in seen.lamps if cycle > since} == {RED, DARK}


def test_three_resets_within_a_minute_and_it_flashes_until_the_power_goes(lit: Firmware) -> None:
    thrice = ["run 1200", "reset", "run 1200", "brown", "run 1200", f"hang {stop_program(lit)}", "run 8000"]
    seen = play(lit, LAMP_LINES, *thrice, "reset", "run 2000", "kept", "power", "run 1200", HELLO, "run 20")
    alarms = [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)]
    assert alarms == [
        Alarm.EXTERNAL_RESET, Alarm.BROWN_OUT_RESET, Alarm.WATCHDOG_RESET, Alarm.THREE_RESETS, Alarm.EXTERNAL_RESET,
        Alarm.THREE_RESETS,
    ]  # fmt: skip
    third, power = 3_600 * TICK_CYCLES, 13_600 * TICK_CYCLES
    assert flashes_only(Seen(lamps=[each for each in seen.lamps if each[0] < power]), third)
    assert seen.lamps[-1][1] == PHASE_0, "power has gone and come"
    identity = decode_hello_reply(next(f.payload for _, f in seen.frames if f.type == 0x81)).light
    assert identity is not None
    assert vars(identity) == {
        "mode": "light", "power_on_resets": 2, "external_resets": 2, "watchdog_resets": 1, "brown_out_resets": 1,
    }  # fmt: skip


def test_resets_more_than_a_minute_apart_are_no_reason_to_flash(lit: Firmware) -> None:
    seen = play(lit, LAMP_LINES, "run 1200", "reset", "run 1200", "reset", "run 6200", "reset", "run 1200", "reset", "run 1200")
    resets = [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM) if channel == Alarm.EXTERNAL_RESET]
    assert len(resets) == 4
    assert Alarm.THREE_RESETS not in [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)]
    assert seen.lamps[-1][1] == PHASE_0


@pytest.mark.parametrize(
    ("symbol", "alarms"),
    [("shell_tables", [Alarm.FLASH_DAMAGED, Alarm.TABLES_DAMAGED]), ("plan_steps", [Alarm.FLASH_DAMAGED])],
)
def test_one_changed_byte_of_the_flash_keeps_it_flashing(lit: Firmware, symbol: str, alarms: list[Alarm]) -> None:
    """As a flipped bit would change it: in the shell's tables, or anywhere."""
    at = read_elf(lit.elf).symbols[symbol] + 2
    seen = play(lit, LAMP_LINES, f"flash {at} 55", "run 2000")
    assert [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)] == alarms
    assert {lines for _, lines in seen.lamps} == {RED, DARK}
    assert seen.kinds(Kind.UNIT_FLASH_STATUS_CHANGE) == [(1, FlashStatus.FAULT)]
    assert seen.beats[0][1], "flashing is no reason for the monitor to trip"


def test_a_record_of_resets_that_is_damaged_counts_as_too_many(lit: Firmware) -> None:
    """As if a reset had come while it was written."""
    seen = play(lit, LAMP_LINES, "run 100", "eeprom 16 77", "reset", "run 1300", "kept", "power", "run 1300")
    assert Alarm.THREE_RESETS in [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)]
    assert PHASE_0 not in [lines for cycle, lines in seen.lamps if cycle < 1_400 * TICK_CYCLES]
    assert seen.lamps[-1][1] == PHASE_0


def test_events_that_find_no_room_are_lost_and_told_and_the_lamps_are_on_time(alone: Firmware) -> None:
    """All lines turn over at once: 48 events in a tick, where 32 wait."""
    script = ["run 1000", *["lines ffffffffffff", "run 18", "lines 0", "run 3"] * 60, "run 300", STATS, "run 20"]
    seen = play(alone, LAMP_LINES, *script)
    counters = decode_stats_reply(next(f.payload for _, f in seen.frames if f.type == 0x83)).light
    assert counters is not None and counters.events_lost > 1_000
    assert counters.ticks_late == 0 and counters.lamps_late_us < 2_000
    assert Alarm.EVENTS_LOST in [channel for _, channel in seen.kinds(Kind.VENDOR_SPECIFIC_ALARM)]
    assert (START_TICKS, PHASE_0) in ticks_of(seen.lamps)
