/* The stopwatch: clock cycles between start and stop, 24 bits of them: far more than a policy that fits the flash can take.
 * Always 0 on the host.
 */
#ifndef CYCLES_H
#define CYCLES_H

#include "types.h"

#ifdef __AVR__
#include "hardware.h"

static inline void cycles_start(void) {
    TIMER_COUNT = 0;
    TIMER_FLAGS = TIMER_OVERFLOWED; /* writing a one clears the flag; an overflow just before has been counted by now */
    TIMER_OVERFLOWS = 0;
}

static inline uint24 cycles_stop(void) {
    cli();
    const uint16_t count = TIMER_COUNT;
    uint8_t overflows = TIMER_OVERFLOWS;
    if ((TIMER_FLAGS & TIMER_OVERFLOWED) != 0 && count < 0x8000) { /* not counted yet; else it came after the reading */
        overflows++;
    }
    sei();
    return (uint24)overflows << 16 | count;
}
#else
static inline void cycles_start(void) {
}

static inline uint24 cycles_stop(void) {
    return 0;
}
#endif

#endif
