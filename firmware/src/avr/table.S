/* The kernel `table`: one run of bytes per intersection, read from front to back. What they mean: firmware/generator/stream.py.
 *
 * The sums of a block of up to 6 rows lie in r2..r19, 24 bits each ("slots"); slot n holds the block's first row where the
 * block has n rows. Code for all slots is a chain that is entered at slot n and runs down to slot 1. An unsigned weight w + 128
 * adds 128 * input too much; the excess lies ready in the three bytes before the inputs, where the code that wrote them put it,
 * and is subtracted from the biases. All of it is modulo 2^24, and since the true sum fits, the result is the true sum. No byte
 * w + 128 is 0, so the first product of a column is 0 only if its input is: then the rest of the column is skipped.
 *
 * Z runs through the bytes, X through a layer's inputs, Y through its outputs; the outputs' sum so far is in r23:r22.
 */
#include "kernel.h"

#if KERNEL_ID == KERNEL_TABLE

#include <avr/io.h>

#define STAGE _SFR_IO_ADDR(GPIOR0) /* bits of a matrix: what is done with its sums */
#define FROM_EVEN 0                /* begins with the first input, in kernel_even */
#define FROM_ODD 1                 /* ... in kernel_odd */
#define PLAIN 2                    /* they are the layer's outputs as they are: logits */
#define TOTALS 3                   /* one of several branches of layer 1 */
#define ADD 4                      /* added to the branches before it */
#define STORE 5                    /* stored: others follow, or PLAIN */
#define LAST 6                     /* of the layer */
#define JOINED 7                   /* as TOTALS, but it is the branches' sum that has a ReLU */

#define EXCESS_BYTES 3 /* before a feature's and a layer's numbers: what sums over them have too much */

    .section .bss.kernel_even, "aw", @nobits
kernel_even: /* the inputs, then the activations of layer 2 */
    .skip KERNEL_EVEN_BYTES
#include "kernel_entry.inc"
    ACTIVATIONS EXCESS_BYTES
#if TABLE_FEATURES_MAX > 1
    .section .bss.kernel_totals, "aw", @nobits
kernel_totals: /* layer 1: a block's sums over the branches so far */
    .skip 3 * TABLE_ROWS_MAX
#endif

.macro KERNEL_DATA number
    .section .progmem.data.kernel_\number, "a", @progbits
    .global kernel_\number
    .type kernel_\number, @object
kernel_\number:
.endm

    .set table_rows_1, TABLE_ROWS_1
    .set table_rows_2, TABLE_ROWS_2
    .set table_rows_3, TABLE_ROWS_3
    .set table_rows_4, TABLE_ROWS_4
    .set table_rows_5, TABLE_ROWS_5
    .set table_rows_6, TABLE_ROWS_6

.macro SLOTS what
    .irp slot, "6,r12,r13,r19", "5,r10,r11,r18", "4,r8,r9,r17", "3,r6,r7,r16", "2,r4,r5,r15", "1,r2,r3,r14"
    \what \slot
    .endr
.endm

/* To the label of the rows in r24 */
.macro GO_TO label
    .irp rows, 6, 5, 4, 3, 2, 1
    .if table_rows_\rows & (\rows > TABLE_ROWS_LEAST)
    cpi r24, \rows
    brne .+2
    rjmp \label\()_\rows
    .endif
    .endr
    .irp rows, 1, 2, 3, 4, 5, 6
    .if \rows == TABLE_ROWS_LEAST
    rjmp \label\()_\rows
    .endif
    .endr
.endm

.macro POINT low, high, to
    ldi \low, lo8(\to)
    ldi \high, hi8(\to)
.endm

    ENTER_KERNEL
    movw r26, r22
    POINT r28, r29, kernel_even
    clr r11
    rcall no_outputs
feature:
    lpm r8, Z+ /* width */
    tst r8
    breq layers_0
    lpm r2, Z+ /* offset */
    lpm r3, Z+
    lpm r9, Z+ /* span: the greatest that isn't clipped */
    lpm r10, Z+
    lpm r4, Z+ /* multiplier */
    lpm r5, Z+
    lpm r6, Z+ /* factor */
    lpm r7, Z+ /* window */
    movw r14, r28
    adiw r28, EXCESS_BYTES
    movw r12, r22
value:
    ld r24, X+
    ld r25, X+
    clr r22
    sub r24, r2
    sbc r25, r3
    breq scaled
    brlt scaled
    ldi r22, 255
    cp r9, r24
    cpc r10, r25
    brlo scaled
#if TABLE_WITHOUT_SHIFT
    tst r6
    breq whole
#endif
    mul r25, r5 /* the product fits three bytes, r22..r20 */
    mov r22, r0
    mul r24, r4
    movw r20, r0
    mul r24, r5
    add r21, r0
    adc r22, r1
    mul r25, r4
    add r21, r0
    adc r22, r1
    clr r23
    mov r25, r6
    mov r24, r7
    rcall narrow_window
#if TABLE_WITHOUT_SHIFT
    rjmp scaled
whole: /* no shift: what does not saturate is a product of two bytes that fits one */
    mul r24, r4
    mov r22, r0
#endif
scaled:
    st Y+, r22
    add r12, r22
    adc r13, r11
    dec r8
    brne value
    movw r16, r28
    movw r28, r14
    movw r22, r12
    rcall put_excess
    movw r28, r16
    rjmp feature

layers_0: /* for tests that count cycles from here on */
#if TABLE_WINDOWS
    clt /* set where a row's window is not the usual one */
#endif
    POINT r28, r29, kernel_odd+EXCESS_BYTES
    rcall layer
    POINT r28, r29, kernel_odd
    rcall put_excess
    POINT r28, r29, kernel_even+EXCESS_BYTES
    rcall layer
    POINT r28, r29, kernel_even
    rcall put_excess
    POINT r28, r29, inferred+1
    rcall layer

/* The first of the greatest logits, which end at Y */
    POINT r26, r27, inferred+1
    ldi r24, 0x80 /* the greatest so far, r24..r22: the least there is */
    clr r23
    clr r22
    clr r20 /* number of the logit */
compare:
    ld r18, X+
    ld r19, X+
    ld r21, X+
    cp r22, r18
    cpc r23, r19
    cpc r24, r21
    brge not_greater
    movw r22, r18
    mov r24, r21
    mov r25, r20
not_greater:
    inc r20
    cp r26, r28
    brne compare
    sts inferred, r25
    LEAVE_KERNEL

/* All matrices of a layer */
layer:
    lpm r24, Z+ /* rows */
    lpm r25, Z+
    out STAGE, r25
    sbic STAGE, FROM_EVEN
    rjmp from_even
    sbis STAGE, FROM_ODD
    rjmp sized
    POINT r26, r27, kernel_odd
    rjmp sized
from_even:
    POINT r26, r27, kernel_even
sized:
    lpm r25, Z+ /* columns */
    ld r0, X+ /* the excess */
    ld r1, X+
    ld r20, X+
    clr r21
    GO_TO biases

/* To Y: the excess of sums over outputs. It is 128 times the outputs' sum, in r23:r22, with the excess of the biases. */
put_excess:
    clr r20
    lsr r23
    ror r22
    ror r20
    st Y+, r20
    st Y+, r22
    st Y+, r23
no_outputs:
    ldi r22, lo8(TABLE_BIAS_EXCESS)
    ldi r23, hi8(TABLE_BIAS_EXCESS)
    ret

.macro BIAS slot, low, middle, high
    .if \slot <= TABLE_ROWS_MAX
biases_\slot:
    lpm \low, Z+
    lpm \middle, Z+
#if TABLE_BIAS_BYTES == 2
    clr \high
#else
    lpm \high, Z+
#endif
    sub \low, r0
    sbc \middle, r1
    sbc \high, r20
    .endif
.endm

    SLOTS BIAS
    GO_TO columns

.macro MULTIPLY slot, low, middle, high
    .if \slot <= block
    lpm r0, Z+
    mul r0, r20
    .if \slot == block
    breq 4b
    .endif
    add \low, r0
    adc \middle, r1
    adc \high, r21
    .endif
.endm

.macro ROWS rows
    .set block, \rows
4:  adiw r30, \rows - 1 /* past the other weights of an input that is 0 */
    rjmp 2f
columns_\rows:
1:  ld r20, X+
    SLOTS MULTIPLY
2:  dec r25
    brne 1b
#if TABLE_FEATURES_MAX > 1
    movw r24, r26 /* where the next branch's inputs are */
#endif
    movw r26, r28 /* where sums go that are outputs */
#if TABLE_FEATURES_MAX > 1
    sbic STAGE, TOTALS
    rcall relu_\rows
#if TABLE_JOINED
    sbic STAGE, JOINED
    rcall to_totals
#endif
    sbic STAGE, ADD
    rcall add_\rows
#if TABLE_FEATURES_MAX > 2
    sbic STAGE, ADD
    rcall to_totals
#endif
#endif
    sbic STAGE, STORE
    rjmp store_\rows
    movw r26, r22
    rjmp activate_\rows
.endm

    .irp rows, 6, 5, 4, 3, 2, 1
    .if table_rows_\rows
    ROWS \rows
    .endif
    .endr

.macro RELU slot, low, middle, high
    .if \slot <= TABLE_ROWS_MAX
relu_\slot:
    tst \high
    brpl 1f
    clr \low
    clr \middle
    clr \high
1:
    .endif
.endm

.macro ADD_TOTAL slot, low, middle, high
    .if \slot <= TABLE_ROWS_MAX
add_\slot:
    ld r20, X+
    add \low, r20
    ld r20, X+
    adc \middle, r20
    ld r20, X+
    adc \high, r20
    .endif
.endm

.macro STORE_SUM slot, low, middle, high
    .if \slot <= TABLE_ROWS_MAX
store_\slot:
    st X+, \low
    st X+, \middle
    st X+, \high
    .endif
.endm

.macro ACTIVATE slot, low, middle, high
    .if \slot <= TABLE_ROWS_MAX
activate_\slot:
    movw r24, \low
    mov r23, \high
    rcall activate
    .endif
.endm

#if TABLE_FEATURES_MAX > 1
/* Behind it X is at the sums of the branches so far, or where the first branch's go */
    SLOTS RELU
to_totals:
    POINT r26, r27, kernel_totals
    ret
    SLOTS ADD_TOTAL
    ret
#endif

    SLOTS STORE_SUM
    sbic STAGE, PLAIN
    movw r28, r26
#if TABLE_FEATURES_MAX > 1
    movw r26, r24
#endif
    sbis STAGE, LAST
    rjmp layer
    ret

    SLOTS ACTIVATE
    movw r22, r26
    sbis STAGE, LAST
    rjmp layer
    ret

#include "table_outputs.inc"

#include "policy_kernel.inc"

#endif
