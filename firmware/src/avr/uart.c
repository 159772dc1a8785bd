/* UART 0, 8N1. The two interrupts only move bytes between the line and the rings, and count what was lost. */
#include "uart.h"

#include <util/atomic.h>

#include "frame.h"
#include "hardware.h"

#if UART_ERROR_NOTEWORTHY
#pragma message "the UART's divider misses this baud rate by more than 2.5 % (hil/baud.py tells the actual rate)"
#endif

/* A power of two that holds a whole frame: in stop and wait nothing can be lost, and sending never waits. */
#if FRAME_WIRE_BYTES_MAX < 64
#define RING_BYTES 64
#elif FRAME_WIRE_BYTES_MAX < 128
#define RING_BYTES 128
#else
#define RING_BYTES 256
#endif
#define RING_MASK (RING_BYTES - 1)
_Static_assert(FRAME_WIRE_BYTES_MAX < RING_BYTES, "the rings must hold a whole frame");

struct ring {
    volatile uint8_t head; /* next to be written */
    volatile uint8_t tail; /* next to be read */
    volatile uint8_t bytes[RING_BYTES];
};

static struct ring received;
static struct ring sending;
static volatile uint16_t ring_overruns;
static volatile uint16_t line_errors;

static inline void count(volatile uint16_t *counter) {
    if (*counter != UINT16_MAX) {
        (*counter)++;
    }
}

static uint16_t read_counter(const volatile uint16_t *counter) {
    uint16_t value;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        value = *counter;
    }
    return value;
}

ISR(UART_RECEIVED_VECTOR) {
    const uint8_t status = UART_STATUS; /* before the data: reading that clears the error bits */
    const uint8_t byte = UART_DATA;
    if ((status & UART_ERROR_BITS) != 0) {
        count(&line_errors);
    }
    const uint8_t next = (received.head + 1) & RING_MASK;
    if (next == received.tail) {
        count(&ring_overruns);
        return;
    }
    received.bytes[received.head] = byte;
    received.head = next;
}

ISR(UART_CAN_SEND_VECTOR) {
    const uint8_t tail = sending.tail;
    if (tail == sending.head) {
        UART_CONTROL &= (uint8_t)~_BV(UDRIE0);
        return;
    }
    UART_DATA = sending.bytes[tail];
    sending.tail = (tail + 1) & RING_MASK;
}

void uart_start(void) {
    UART_STATUS = UART_DOUBLE_SPEED != 0 ? _BV(U2X0) : 0; /* before the divisor: simavr fixes the rate there */
    UART_DIVISOR = (uint16_t)UART_UBRR;
    UART_FORMAT = UART_FORMAT_8N1;
    UART_CONTROL = _BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0);
}

bool uart_is_quiet(void) {
    return received.head == received.tail;
}

bool uart_receive(uint8_t *byte) {
    const uint8_t tail = received.tail;
    if (tail == received.head) {
        return false;
    }
    *byte = received.bytes[tail];
    received.tail = (tail + 1) & RING_MASK;
    return true;
}

void uart_send(uint8_t byte) {
    const uint8_t head = sending.head;
    const uint8_t next = (head + 1) & RING_MASK;
    while (next == sending.tail) {
        /* the interrupt makes room; only reached when replies pile up */
    }
    sending.bytes[head] = byte;
    sending.head = next;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { /* the interrupt changes this register too */
        UART_CONTROL |= _BV(UDRIE0);
    }
}

uint16_t uart_ring_overruns(void) {
    return read_counter(&ring_overruns);
}

uint16_t uart_line_errors(void) {
    return read_counter(&line_errors);
}
