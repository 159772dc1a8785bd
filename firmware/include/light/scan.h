/* What happens every 10 ms: from inputs by the shell to the lamps. */
#ifndef SCAN_H
#define SCAN_H

#include "light/tick.h"

extern uint32_t ticks; /* scans so far; the chip's time */

void scan_start(void); /* looks for all that would make the lamps flash */
void scan(void);       /* one tick */

static inline bool scan_is_due(void) {
    return ticks_come != (uint8_t)ticks;
}

#endif
