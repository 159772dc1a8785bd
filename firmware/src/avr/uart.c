/* UART 0, 8N1. Its interrupts are in start.S, what is sent in frame_send.S. */
#include "uart.h"

#include "frame.h"
#include "hardware.h"

#if UART_ERROR_NOTEWORTHY
#pragma message "the UART's divider misses this baud rate by more than 2.5 % (hil/build/baud.py gives the actual rate)"
#endif

_Static_assert(FRAME_WIRE_BYTES_MAX < SEND_RING_BYTES, "the ring must hold a whole frame");

volatile uint8_t uart_received[RECEIVE_RING_BYTES] __attribute__((aligned(RECEIVE_RING_BYTES)));
volatile struct uart_counters uart_counters;

void uart_start(void) {
    UART_STATUS = UART_DOUBLE_SPEED != 0 ? _BV(U2X0) : 0; /* before the divisor: simavr fixes the rate there */
    UART_DIVISOR = (uint16_t)UART_UBRR;
    UART_FORMAT = UART_8N1; /* a bootloader may have left another */
    UART_CONTROL = UART_LISTENING;
}
