/* Bytes in and out. On the chip: two rings that interrupts fill and empty. On the host: stdin and stdout. */
#ifndef UART_H
#define UART_H

#include "types.h"

void uart_start(void);

extern volatile struct uart_counters { /* both stop at 255; 0 on the host */
    uint8_t ring_overruns; /* bytes lost since the receive ring was full */
    uint8_t line_errors;   /* wrong stop bits and bytes lost in the hardware */
} uart_counters;

#ifdef __AVR__
#include "hardware.h"
#include "uart_rings.h"

extern volatile uint8_t uart_received[RECEIVE_RING_BYTES];

static inline bool uart_is_quiet(void) {
    return RECEIVED_HEAD == RECEIVED_TAIL;
}

static inline uint8_t uart_receive(void) {
    const uint8_t tail = RECEIVED_TAIL;
    RECEIVED_TAIL = (tail + 1) & RECEIVE_MASK;
    return uart_received[tail];
}

#if MODE != MODE_ANSWER
extern volatile uint8_t uart_sending_head, uart_sending_tail;

/* Whether a whole frame can be sent without waiting */
static inline bool uart_has_room(void) {
    return ((uart_sending_tail - uart_sending_head - 1) & SEND_MASK) >= POLICY_MAX_PAYLOAD + 8;
}
#endif
#else
MUST_USE uint8_t uart_receive(void); /* the next byte; only if the line is not quiet */
MUST_USE bool uart_is_quiet(void);   /* nothing received waits to be read */

/* Sending: bytes are put one after another, may be changed in place, and go out once they are released. */
uint8_t uart_put(uint8_t byte); /* returns the byte's place */
void uart_set(uint8_t place, uint8_t byte);
void uart_release(void);
#endif

#endif
