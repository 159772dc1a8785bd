/* Before main, before even the statics are set up (.init3: the stack pointer is set, the stack still empty):
 * keep the reset cause, count the boot, stop the watchdog (after a watchdog reset it runs on, at its shortest timeout), and
 * paint the RAM behind the statics, so that the deepest stack can be read off later (6 cycles a byte).
 */
#include <avr/io.h>

#include "stack.h"

.section .noinit, "aw", @nobits
.global boot_reset_cause
boot_reset_cause:
    .skip 1
.global boot_count /* since power came; valid while boot_count_check is its complement */
boot_count:
    .skip 1
boot_count_check:
    .skip 1

.section .init3, "ax", @progbits
    in r24, _SFR_IO_ADDR(MCUSR)
    sts boot_reset_cause, r24
    lds r30, boot_count
    lds r31, boot_count_check
    com r31
    cpse r30, r31
    clr r30
    andi r24, _BV(PORF) | _BV(BORF) /* power was off, or nearly so: RAM may have forgotten */
    breq 1f
    clr r30
1:  inc r30
    brne 2f
    dec r30
2:  sts boot_count, r30
    com r30
    sts boot_count_check, r30
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
    rjmp 2f
.global flash_patch
flash_patch: /* see flash_check.h */
    .word 0
2:
