/* What has left the integers' range, with the kernels in assembly; see range.h. Y points to the dispatcher's state. */
#include "kernel.h"
#include "range.h"

#if KERNEL_ID != KERNEL_PORTABLE_C

    .section .text.range, "ax", @progbits

/* const FLASH struct intersection *net r25:r24, const uint8_t *values r23:r22 */
    .global range_count_inputs
    .type range_count_inputs, @function
range_count_inputs:
    movw r26, r22
    movw r30, r24
    adiw r30, INTERSECTION_RANGES
    lpm r24, Z+
    lpm r25, Z
    movw r30, r24
1:  lpm r18, Z+ /* width */
    tst r18
    breq done
    lpm r20, Z+ /* offset */
    lpm r21, Z+
    lpm r22, Z+ /* span */
    lpm r23, Z+
#if KERNEL_ID == KERNEL_TABLE
    adiw r30, 4
#endif
2:  ld r24, X+
    ld r25, X+
    sub r24, r20
    sbc r25, r21
    brlt 3f
    cp r22, r24
    cpc r23, r25
    brlo 3f
    dec r18
    brne 2b
    rjmp 1b
3:  ldi r24, RANGE_BEYOND
    jmp dispatch_count

/* const FLASH struct intersection *net r25:r24 */
    .global range_count_units
    .type range_count_units, @function
range_count_units:
    movw r30, r24
    adiw r30, INTERSECTION_HIDDEN
    ldi r26, lo8(hidden1)
    ldi r27, hi8(hidden1)
    rcall search
    brcc 1f
    ldi r26, lo8(hidden2)
    ldi r27, hi8(hidden2)
    rcall search
    brcs done
1:  ldi r24, RANGE_AT_LIMIT
    jmp dispatch_count

/* Clears the carry if one of the units at X is at its limit. Their number is at Z, which goes on. */
search:
    lpm r18, Z+
1:  ld r24, X+
    cpi r24, 255
    brcc done
    dec r18
    brne 1b
done:
    ret

#endif
