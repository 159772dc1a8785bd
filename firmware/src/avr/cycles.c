/* Timer 1 counts clock cycles, its overflow flag once more: 17 bits. It only runs between start and stop. */
#include "cycles.h"

#include "hardware.h"

#define CLOSE_TO_OVERFLOW 0xFFF0

/* The count is written and read while the timer runs: simavr knows no count of a timer that stands still. */
void cycles_start(void) {
    STOPWATCH_CONTROL = STOPWATCH_RUN;
    STOPWATCH_COUNT = 0;
    STOPWATCH_FLAGS = STOPWATCH_OVERFLOWED; /* writing a one clears the flag */
}

uint24 cycles_stop(void) {
    uint24 count = STOPWATCH_COUNT;
    if ((STOPWATCH_FLAGS & STOPWATCH_OVERFLOWED) != 0 && count < CLOSE_TO_OVERFLOW) { /* else it came after the reading */
        count += 0x10000;
    }
    STOPWATCH_CONTROL = 0;
    return count;
}
