/* The tick of 10 ms: timer 2 counts it, an interrupt of start.S notes it. */
#ifndef TICK_H
#define TICK_H

#include "light/shell.h"
#include "types.h"

#define TICKS_PER_S (1000 / SHELL_TICK_MS)

#ifdef __AVR__
#include "hardware.h"

extern volatile uint8_t tick_parts; /* of the tick under way, those that are over */
extern volatile uint8_t ticks_come;

static inline void tick_start(void) {
    TICK_MODE = TICK_MODE_PERIODIC;
    TICK_LIMIT = TICK_COUNTS - 1;
    TICK_CONTROL = TICK_CLOCK;
    TICK_INTERRUPTS = TICK_INTERRUPT;
}

/* Since the tick numbered `tick` (low byte) came, in microseconds; 65535: longer */
static inline uint16_t tick_age_us(uint8_t tick) {
    cli();
    uint8_t count = TICK_COUNT;
    const uint8_t parts = tick_parts, come = ticks_come;
    if ((TICK_FLAGS & TICK_PART_ENDED) != 0 && count < TICK_COUNTS / 2) { /* not noted yet */
        count += TICK_COUNTS;
    }
    sei();
    const uint8_t late = come - tick;
    if (late > 5) {
        return UINT16_MAX;
    }
    return (uint16_t)TICK_COUNT_US * (uint16_t)((TICK_PARTS * late + parts) * TICK_COUNTS + count);
}
#endif

#endif
