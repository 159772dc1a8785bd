/* The UART's two interrupts, in assembly since at 1 Mbaud a byte takes 160 cycles: these take 48 and 50 of them, entry and
 * vector included. They only move bytes between the line and the rings of uart.c, and count what was lost.
 */
#include "hardware.h"
#include "uart_rings.h"

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

/* r30 = index to Z = address */
.macro POINT_INTO ring
    ldi r31, 0
    subi r30, lo8(-(\ring))
    sbci r31, hi8(-(\ring))
.endm

    .section .text.uart_received, "ax", @progbits
    .global UART_RECEIVED_VECTOR
    .type UART_RECEIVED_VECTOR, @function
UART_RECEIVED_VECTOR:
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
    LEAVE
2:  lds r30, uart_counters+1
    inc r30
    breq 1b
    sts uart_counters+1, r30
    rjmp 1b
3:  lds r30, uart_counters
    inc r30
    breq 4f
    sts uart_counters, r30
4:  LEAVE

    .section .text.uart_can_send, "ax", @progbits
    .global UART_CAN_SEND_VECTOR
    .type UART_CAN_SEND_VECTOR, @function
UART_CAN_SEND_VECTOR:
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
    brne 1f
    ldi r24, UART_LISTENING
    sts UART_CONTROL, r24
1:  LEAVE
