/* What unpack.c does elsewhere: packed r25:r24, end r23:r22, values r20; 20 cycles a value, 21 if it is wide. */
#define BASE r19

    .section .text.unpack, "ax", @progbits
    .global unpack
    .type unpack, @function
unpack:
    movw r26, r24
    ldi r30, lo8(inferred)
    ldi r31, hi8(inferred)
    ld BASE, X+
1:  cp r26, r22
    cpc r27, r23
    brsh 4f
    subi r20, 1
    brcs 5f
    ld r24, X+
    clr r25
    cpi r24, 0xFF
    breq 3f
    add r24, BASE
    adc r25, r1
    sbrc BASE, 7
    dec r25
2:  st Z+, r24
    st Z+, r25
    rjmp 1b
3:  ld r24, X+
    ld r25, X+
    rjmp 2b
4:  sub r26, r22 /* the last one may have gone beyond */
    or r20, r26
5:  mov r24, r20
    ret
