"""Why drawn mutants that no verdict finds are no fault that a verdict could find, where that is known."""

WINDOWS = "rows with another window, which this policy doesn't have (tests/firmware/coverage.py)"
LINE_ERRORS = "line errors, which a sound line doesn't make (tests/hil/test_boards_simavr.py makes them)"
OVERFLOW = "a decision of more than 65,536 cycles (tests/firmware/test_faults_on_demand.py makes them)"
SLEEPS = "at 115,200 baud interrupts come while the chip sleeps; at 1,000,000 five verdicts fail"
UNITS = "units are counted at the wrong place: no input tried has just that unit at its limit"
BEHIND = "a fault that nothing shows: layer 1 ends behind its buffer, where nothing else lies"
LONGER = "another program that computes the same: longer code, or larger buffers"
REASONS = {
    "firmware/generator/generate.py:94: == -> !=": LONGER,
    "firmware/generator/narrow_row.py:17: 4 -> 5": LONGER,
    "firmware/generator/narrow_row.py:49: + -> -": LONGER,
    "firmware/generator/narrow_row.py:52: == -> !=": LONGER,
    "firmware/generator/narrow_row.py:73: & -> |": LONGER,
    "firmware/generator/stream.py:119: == -> !=": LONGER,
    "firmware/generator/stream.py:54: 0 -> 1": BEHIND,
    "firmware/src/avr/unrolled.S:17: 0 -> 1": UNITS,
    "firmware/src/avr/range.S:53: ldi r26, lo8(hidden2) -> nop": UNITS,
    "firmware/src/infer.c:35: > -> >=": "the same: 65,535 gives 255 either way",
    "firmware/include/stack.h:5: 0xC5 -> 0xC6": "any paint will do; the stack's mark isn't measured then",
    "firmware/src/dispatch.c:290: number[LINE_ERRORS] = uart_counters.line_errors; -> ;": LINE_ERRORS,
    "firmware/src/avr/start.S:140: inc -> dec": LINE_ERRORS,
    "firmware/src/avr/table_outputs.inc:64: clt -> set": WINDOWS,
    "firmware/src/avr/table_outputs.inc:67: rcall narrow_window -> nop": WINDOWS,
    "firmware/src/avr/table_outputs.inc:80: rjmp 4f -> nop": WINDOWS,
    "firmware/src/avr/table.S:167: clr r23 -> nop": "the same but for logits below -8,323,072",
    "firmware/src/avr/start.S:71: wdr -> nop": "the same: the watchdog has just been set, and the flash check feeds it",
    "firmware/src/avr/start.S:45: out _SFR_IO_ADDR(SREG), r24 -> nop": SLEEPS,
    "firmware/src/avr/start.S:91: out _SFR_IO_ADDR(TIMER_OVERFLOWS), r24 -> nop": OVERFLOW,
}
