/* Timer 1 counts clock cycles, its overflow interrupt the upper 16 bits. It only runs between start and stop. */
#include "cycles.h"

#include <util/atomic.h>

#include "hardware.h"

static volatile uint16_t overflows;

ISR(STOPWATCH_VECTOR) {
    overflows++;
}

/* The count is written and read while the timer runs: simavr knows no count of a timer that stands still. */
void cycles_start(void) {
    overflows = 0;
    STOPWATCH_CONTROL = STOPWATCH_RUN;
    STOPWATCH_COUNT = 0;
    STOPWATCH_FLAGS = STOPWATCH_OVERFLOWED; /* writing a one clears the flag */
    STOPWATCH_INTERRUPTS = STOPWATCH_OVERFLOW_INTERRUPT;
}

uint32_t cycles_stop(void) {
    uint16_t low;
    uint16_t high;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        low = STOPWATCH_COUNT;
        high = overflows;
        if ((STOPWATCH_FLAGS & STOPWATCH_OVERFLOWED) != 0 && low < 0x8000) {
            high++; /* the overflow came with interrupts already off */
        }
        STOPWATCH_INTERRUPTS = 0;
        STOPWATCH_CONTROL = 0;
    }
    return (uint32_t)high << 16 | low;
}
