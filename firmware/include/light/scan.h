/* What happens every 10 ms: from inputs by the shell to the lamps. */
#ifndef SCAN_H
#define SCAN_H

#include "light/tick.h"

extern uint32_t ticks; /* scans so far; the chip's time */

void scan_start(void); /* looks for all that would make the lamps flash */
void scan(void);       /* one tick */

bool scan_takes_decision(void); /* whether one is due; it is asked once */
uint8_t scan_action(void);      /* in force: what is green, or was before the change under way */

static inline bool scan_is_due(void) {
    return ticks_come != (uint8_t)ticks;
}

#endif
