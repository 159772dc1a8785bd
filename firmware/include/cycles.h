/* The stopwatch: clock cycles between start and stop, 32 bits. Always 0 on the host. */
#ifndef CYCLES_H
#define CYCLES_H

#include "types.h"

void cycles_start(void);
MUST_USE uint32_t cycles_stop(void);

#endif
