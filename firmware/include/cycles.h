/* The stopwatch: clock cycles between start and stop, up to 131071. Always 0 on the host. */
#ifndef CYCLES_H
#define CYCLES_H

#include "types.h"

void cycles_start(void);
MUST_USE uint24 cycles_stop(void);

#endif
