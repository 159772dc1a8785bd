/* How much RAM is used: painted before main, counted later. All 0 on the host. */
#ifndef STACK_H
#define STACK_H

#define STACK_PAINT 0xC5 /* start.S fills the RAM with it from the last static (symbol _end) to the end */

#ifndef __ASSEMBLER__
#include "types.h"

MUST_USE uint16_t stack_untouched_bytes(void); /* between statics and the deepest stack so far */
MUST_USE uint16_t stack_static_bytes(void);    /* .data + .bss + .noinit */
#endif

#endif
