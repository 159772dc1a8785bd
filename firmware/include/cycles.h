/* The stopwatch: clock cycles between start and stop, up to 131071. Always 0 on the host.
 *
 * Timer 1 counts them, its overflow flag once more: 17 bits. It only runs between start and stop.
 */
#ifndef CYCLES_H
#define CYCLES_H

#include "types.h"

#ifdef __AVR__
#include "hardware.h"

#define CYCLES_CLOSE_TO_OVERFLOW 0xFFF0

/* The count is written and read while the timer runs: simavr knows no count of a timer that stands still. */
static inline void cycles_start(void) {
    STOPWATCH_CONTROL = STOPWATCH_RUN;
    STOPWATCH_COUNT = 0;
    STOPWATCH_FLAGS = STOPWATCH_OVERFLOWED; /* writing a one clears the flag */
}

static inline uint24 cycles_stop(void) {
    uint24 count = STOPWATCH_COUNT;
    if ((STOPWATCH_FLAGS & STOPWATCH_OVERFLOWED) != 0 && count < CYCLES_CLOSE_TO_OVERFLOW) { /* else it came after the reading */
        count += 0x10000;
    }
    STOPWATCH_CONTROL = 0;
    return count;
}
#else
static inline void cycles_start(void) {
}

static inline uint24 cycles_stop(void) {
    return 0;
}
#endif

#endif
