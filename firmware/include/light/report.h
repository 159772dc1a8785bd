/* What STATS tells beside the counters of an answering chip. */
#ifndef REPORT_H
#define REPORT_H

#include "types.h"

struct light_report {
    uint16_t lamps_late_us; /* the most, from a tick's beginning until its lamps were shown; 65535: or more */
    uint16_t ticks_late;    /* began when the tick before was not over; stops at 65535 */
};

extern struct light_report light_report;

#endif
