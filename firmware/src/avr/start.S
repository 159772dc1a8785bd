/* What runs outside of main: the start, at address 0, and the interrupts. The firmware is linked without the compiler's own start
 * files, since their table of 26 jumps would be a large part of it: the code needed lies in the unused vectors.
 *
 * The start keeps the reset cause, counts the boot, sets the watchdog (after a watchdog reset it runs on, at its shortest
 * timeout), paints the RAM behind the statics, so that the deepest stack can be read off later, and sets the statics to 0.
 *
 * The UART's two interrupts only move bytes between the line and the rings of uart.c, and count what was lost. At 1 Mbaud a byte
 * takes 160 cycles: they take 48 and 46 of them, entry and vector included.
 */
#include "hardware.h"
#include "stack.h"
#include "uart_rings.h"

    .section .bss.boot, "aw", @nobits
    .global boot /* struct boot of board.h; the count of boots is valid while boot_count_check is its complement */
boot:
    .skip 3
boot_count_check:
    .skip 1

.macro POINT low, high, to
    ldi \low, lo8(\to)
    ldi \high, hi8(\to)
.endm

.macro VECTOR number
    .org 4 * \number
    .global __vector_\number
    .type __vector_\number, @function
__vector_\number:
.endm

.macro ENTER
    push r24
    in r24, _SFR_IO_ADDR(SREG)
    push r24
    push r30
    push r31
.endm

.macro LEAVE
    pop r31
    pop r30
    pop r24
    out _SFR_IO_ADDR(SREG), r24
    pop r24
    reti
.endm

/* r30 = index to Z = address: a ring begins at a multiple of its size */
.macro POINT_INTO ring
    ldi r31, hi8(\ring)
    ori r30, lo8(\ring)
.endm

.macro START
    clr r1
    out _SFR_IO_ADDR(SREG), r1
    POINT r28, r29, RAMEND
    out _SFR_IO_ADDR(SPH), r29
    out _SFR_IO_ADDR(SPL), r28
    in r16, _SFR_IO_ADDR(MCUSR)
    out _SFR_IO_ADDR(MCUSR), r1 /* as long as WDRF is set the watchdog can't be set */
    ldi r24, _BV(WDCE) | _BV(WDE)
    sts WATCHDOG_CONTROL, r24 /* opens four cycles in which it may be changed */
    ldi r24, WATCHDOG_SETTING
    sts WATCHDOG_CONTROL, r24
    wdr
    lds r17, boot+1
    lds r24, boot_count_check
    com r24
    cpse r17, r24
    clr r17
    rjmp count_boot
.endm

    .section .vectors, "ax", @progbits
    .global __vectors
    .type __vectors, @function
__vectors:
#if MODE == MODE_ANSWER
    START
#else
    rjmp start

VECTOR TICK_VECTOR_NUMBER
    rjmp tick
#endif

    .global __stop_program
    .type __stop_program, @function
__stop_program: /* never reached: an endless loop for tests to throw the program into, as a glitch might */
    cli
    rjmp __stop_program

VECTOR TIMER_OVERFLOW_VECTOR_NUMBER /* ends at the next vector that is used */
    push r24
    in r24, _SFR_IO_ADDR(SREG)
    push r24
    in r24, _SFR_IO_ADDR(TIMER_OVERFLOWS)
    inc r24
    out _SFR_IO_ADDR(TIMER_OVERFLOWS), r24
    pop r24
    out _SFR_IO_ADDR(SREG), r24
    pop r24
    reti

VECTOR UART_RECEIVED_VECTOR_NUMBER
    rjmp received

    .global flash_patch
flash_patch: /* see flash_check.h */
    .word 0

VECTOR UART_CAN_SEND_VECTOR_NUMBER
    ENTER
    lds r24, uart_sending_tail
    mov r30, r24
    POINT_INTO uart_sending
    ld r30, Z
    sts UART_DATA, r30
    inc r24
    andi r24, SEND_MASK
    sts uart_sending_tail, r24
    lds r30, uart_sending_head
    cp r24, r30
    brne leave
    ldi r24, UART_LISTENING
    sts UART_CONTROL, r24
leave:
    LEAVE

received:
    ENTER
    lds r30, UART_STATUS /* before the data: reading that clears the error bits */
    lds r24, UART_DATA
    andi r30, UART_ERROR_BITS
    brne 2f
1:  in r30, _SFR_IO_ADDR(RECEIVED_HEAD)
    POINT_INTO uart_received
    st Z, r24
    in r24, _SFR_IO_ADDR(RECEIVED_HEAD)
    inc r24
    andi r24, RECEIVE_MASK
    in r30, _SFR_IO_ADDR(RECEIVED_TAIL)
    cp r24, r30
    breq 3f
    out _SFR_IO_ADDR(RECEIVED_HEAD), r24
    rjmp leave
2:  lds r30, uart_counters+1
    inc r30
    breq 1b
    sts uart_counters+1, r30
    rjmp 1b
3:  lds r30, uart_counters
    inc r30
    breq leave
    sts uart_counters, r30
    rjmp leave

#if MODE != MODE_ANSWER
start:
    START

tick:
    push r24
    in r24, _SFR_IO_ADDR(SREG)
    push r24
    lds r24, tick_parts
    inc r24
    cpi r24, TICK_PARTS
    brne 1f
    lds r24, ticks_come
    inc r24
    sts ticks_come, r24
    clr r24
1:  sts tick_parts, r24
    pop r24
    out _SFR_IO_ADDR(SREG), r24
    pop r24
    reti
#endif

count_boot:
    mov r24, r16
    andi r24, _BV(PORF) | _BV(BORF) /* power was off, or nearly so: RAM may have forgotten */
    breq 1f
    clr r17
1:  inc r17
    brne clear
    dec r17

    .global __do_clear_bss /* what the compiler calls it */
__do_clear_bss:
clear:
    ldi r24, STACK_PAINT
    ldi r25, hi8(_end)
1:  st -Y, r24
    cpi r28, lo8(_end)
    cpc r29, r25
    brne 1b
    ldi r25, hi8(RAMSTART)
2:  st -Y, r1
    cpi r28, lo8(RAMSTART)
    cpc r29, r25
    brne 2b
    sts boot, r16
    sts boot+1, r17
    com r17
    sts boot_count_check, r17
    jmp main
