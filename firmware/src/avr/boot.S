/* Before main, before even the statics are set up (.init3: the stack pointer is set, the stack still empty):
 * keep the reset cause, stop the watchdog (after a watchdog reset it runs on, at its shortest timeout), and
 * paint the RAM behind the statics, so that the deepest stack can be read off later (6 cycles a byte).
 */
#include <avr/io.h>

#include "stack.h"

.section .noinit, "aw", @nobits
.global boot_reset_cause
boot_reset_cause:
    .skip 1

.section .init3, "ax", @progbits
    in r24, _SFR_IO_ADDR(MCUSR)
    sts boot_reset_cause, r24
    out _SFR_IO_ADDR(MCUSR), r1 /* as long as WDRF is set the watchdog can't be stopped */
    wdr
    ldi r24, _BV(WDCE) | _BV(WDE)
    sts WDTCSR, r24 /* opens four cycles in which it may be changed */
    sts WDTCSR, r1

    ldi r30, lo8(_end)
    ldi r31, hi8(_end)
    ldi r24, STACK_PAINT
    ldi r25, hi8(RAMEND + 1)
1:  st Z+, r24
    cpi r30, lo8(RAMEND + 1)
    cpc r31, r25
    brne 1b
