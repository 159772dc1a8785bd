"""Faults that were seen from outside, or that a street would have to fear: each by name, as one change of the firmware."""

from pathlib import Path
from typing import NamedTuple


class Listed(NamedTuple):
    """``before`` stands in the file just once; ``after`` takes its place."""

    name: str
    file: str
    before: str
    after: str

    def apply(self, text: str) -> str:
        assert text.count(self.before) == 1, f"{self.name}: {self.file} has {self.before!r} {text.count(self.before)} times"
        return text.replace(self.before, self.after)


DISPATCH, SCALING, UNROLLED = "firmware/src/dispatch.c", "firmware/generator/scaling.py", "firmware/generator/unrolled.py"
WEIGHT = """    if flipped_weight is not None:
        flip_weight(policy, flipped_weight)
"""


def _weight(layer: int, place: int, bit: int) -> Listed:
    """One bit of one weight: number `place` of all of a layer's, the first intersection's."""
    rows = (
        'policy["intersections"][0]["layer1"]["weights"][0]'
        if layer == 1
        else f'policy["intersections"][0]["layer{layer}"]["weights"]'
    )
    change = f"""    rows = {rows}
    row = rows[{place} % len(rows)]
    column = {place} // len(rows) % len(row)
    row[column] = max(-127, min(127, row[column] + {1 << bit} * (1 if row[column] < 60 else -1)))
"""
    return Listed(f"weight {place} of layer {layer}, bit {bit}", "firmware/generator/generate.py", WEIGHT, WEIGHT + change)


LISTED = [
    Listed("inputs aren't clipped at 255", SCALING, "    if least_255 <= 65535:", "    if False:"),
    Listed(
        "clipping begins one too late",
        SCALING,
        "half) // multiplier)  # the least x",
        "half) // multiplier) + 1  # the least x",
    ),
    Listed("values below the offset give 255", SCALING, 'code.op("brge", aside.top)', 'code.op("rjmp", aside.top)'),
    Listed("hidden units are clipped at 254", UNROLLED, "r(MULTIPLIER), INPUT_MAX)", "r(MULTIPLIER), INPUT_MAX - 1)"),
    Listed(
        "hidden units are rounded down",
        "firmware/generator/narrowing.py",
        '        code.op("adc", r(lower), r(zero))\n        if',
        "        if",
    ),
    Listed("argmax takes the first logit that is lower", UNROLLED, 'code.op("brge", lower)', 'code.op("brlt", lower)'),
    *(
        _weight(layer, place, bit)
        for layer, place, bit in ((1, 3, 6), (1, 101, 0), (2, 17, 6), (2, 200, 1), (3, 5, 6), (3, 60, 0))
    ),
    Listed("no watchdog", "firmware/include/hardware.h", "#ifdef TL_NO_WATCHDOG", "#if 1"),
    Listed(
        "a watchdog of 16 ms",
        "firmware/include/hardware.h",
        "SETTING (WATCHDOG_IS_ON | _BV(WDP2) | _BV(WDP1))",
        "SETTING (WATCHDOG_IS_ON)",
    ),
    Listed(
        "a watchdog of 8 s",
        "firmware/include/hardware.h",
        "(WATCHDOG_IS_ON | _BV(WDP2) | _BV(WDP1))",
        "(WATCHDOG_IS_ON | _BV(WDP3) | _BV(WDP0))",
    ),
    Listed("no session is demanded", DISPATCH, "if (!dispatch->in_session) {", "if (false) {"),
    Listed("no flash check", "firmware/src/main.c", "    flash_check();\n", "    boot.conditions = 0x0A;\n"),
    Listed("what the flash check finds is ignored", DISPATCH, "if (!flash_is_sound()) {", "if (false) {"),
    Listed("no memory of repeats", DISPATCH, "    if (is_repeat()) {", "    if (false) {"),
    Listed(
        "repeats by their number alone",
        DISPATCH,
        "dispatch->last.crc[0] == crc[0] && dispatch->last.crc[1] == crc[1] && is_last",
        "crc && is_last",
    ),
    Listed(
        "each reply is sent twice",
        "firmware/src/main.c",
        "        dispatch_answer();\n",
        "        dispatch_answer();\n        dispatch_answer();\n",
    ),
    Listed(
        "a stopwatch that tells 1 cycle", "firmware/src/main.c", "dispatch_decided(cycles)", "dispatch_decided(cycles != 0)"
    ),
    Listed("any CRC will do", "firmware/src/frame.c", "if (reader->crc != 0) {", "if (false) {"),
    Listed("the minimum green isn't kept", DISPATCH, "if (light[1] < least_s) {", "if (false) {"),
    Listed("the phase is the action's number", DISPATCH, "= net->phases[action];", "= action;"),
    Listed("an intersection beyond the last is taken", DISPATCH, "] >= POLICY_INTERSECTIONS) {", "] > 254) {"),
    Listed("no sleep", "firmware/src/avr/board.c", "        sleep_cpu();\n", ""),
    Listed("the light stays on", "firmware/src/main.c", "    board_led(false);\n", ""),
    Listed("the statics aren't cleared", "firmware/src/avr/start.S", "2:  st -Y, r1\n", "2:  sbiw r28, 1\n"),
]


def check_places(root: Path) -> None:
    """AssertionError where one of them doesn't apply to these sources any more."""
    for mutant in LISTED:
        mutant.apply((root / mutant.file).read_text(encoding="utf-8"))
