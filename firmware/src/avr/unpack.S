/* What unpack.c does elsewhere: packed r25:r24, end r23:r22, values r20; some 25 cycles for a value of half a byte. T: the upper half of
 * the byte in r18 comes next.
 */
#define BASE r19

    .section .text.unpack, "ax", @progbits
    .global unpack
    .type unpack, @function
unpack:
    movw r26, r24
    ldi r30, lo8(inferred)
    ldi r31, hi8(inferred)
    ld BASE, X+
    clt
next:
    cp r22, r26
    cpc r23, r27
    brlo beyond
    subi r20, 1
    brcs all
    rcall half
    cpi r24, 0x0F
    breq wide
put:
    clr r25
    add r24, BASE
    adc r25, r1
    sbrc BASE, 7
    dec r25
put_both:
    st Z+, r24
    st Z+, r25
    rjmp next
wide:
    rcall whole
    cpi r24, 0xFF
    brne put
    rcall whole
    mov r21, r24
    rcall whole
    mov r25, r24
    mov r24, r21
    rjmp put_both
all:
    mov r24, r22
    sub r24, r26 /* 0 where the last one ends at the end */
    ret
beyond:
    ldi r24, 1
    ret

whole: /* r24 = the next two halves, the lower first */
    rcall half
    mov r25, r24
    rcall half
    swap r24
    or r24, r25
    ret

half: /* r24 = the next half */
    brts 1f
    ld r18, X+
    set
    rjmp 2f
1:  swap r18
    clt
2:  mov r24, r18
    andi r24, 0x0F
    ret
