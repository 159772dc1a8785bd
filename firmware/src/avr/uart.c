/* UART 0, 8N1. Its interrupts are in uart_interrupts.S. */
#include "uart.h"

#include "frame.h"
#include "hardware.h"
#include "uart_rings.h"

#if UART_ERROR_NOTEWORTHY
#pragma message "the UART's divider misses this baud rate by more than 2.5 % (hil/baud.py tells the actual rate)"
#endif

_Static_assert(FRAME_WIRE_BYTES_MAX < SEND_RING_BYTES, "the ring must hold a whole frame");

volatile uint8_t uart_received[RECEIVE_RING_BYTES];
volatile uint8_t uart_sending[SEND_RING_BYTES];
volatile uint8_t uart_sending_head; /* the first that is not released */
volatile uint8_t uart_sending_tail; /* next to be sent, by the interrupt */
static uint8_t sending_end;         /* next to be put */
volatile struct uart_counters uart_counters;

void uart_start(void) {
    UART_STATUS = UART_DOUBLE_SPEED != 0 ? _BV(U2X0) : 0; /* before the divisor: simavr fixes the rate there */
    UART_DIVISOR = (uint16_t)UART_UBRR;
    UART_CONTROL = UART_LISTENING; /* 8N1 is what the format register resets to */
}

bool uart_is_quiet(void) {
    return RECEIVED_HEAD == RECEIVED_TAIL;
}

uint8_t uart_receive(void) {
    const uint8_t tail = RECEIVED_TAIL;
    const uint8_t byte = uart_received[tail];
    RECEIVED_TAIL = (tail + 1) & RECEIVE_MASK;
    return byte;
}

uint8_t uart_put(uint8_t byte) {
    const uint8_t place = sending_end;
    const uint8_t next = (place + 1) & SEND_MASK;
    while (next == uart_sending_tail) {
        /* the interrupt makes room; only reached when replies pile up */
    }
    uart_sending[place] = byte;
    sending_end = next;
    return place;
}

void uart_set(uint8_t place, uint8_t byte) {
    uart_sending[place] = byte;
}

void uart_release(void) {
    uart_sending_head = sending_end;
    UART_CONTROL = UART_LISTENING | _BV(UDRIE0);
}

uint8_t uart_ring_overruns(void) {
    return uart_counters.ring_overruns;
}

uint8_t uart_line_errors(void) {
    return uart_counters.line_errors;
}
