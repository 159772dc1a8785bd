/* How much RAM is used: painted before main, counted later. All 0 on the host. */
#ifndef STACK_H
#define STACK_H

#define STACK_PAINT 0xC5 /* start.S fills the RAM with it from the last static (symbol _end) on */

#ifndef __ASSEMBLER__
#include "types.h"

#ifdef __AVR__
#include <avr/io.h>

extern uint8_t _end[]; /* from the linker: the first byte behind the statics */

/* Between statics and the deepest stack so far; there always is a byte that is not painted: the stack in use has some */
static inline uint16_t stack_untouched_bytes(void) {
    const uint8_t *byte = _end;
    while (*byte == STACK_PAINT) {
        byte++;
    }
    return (uint16_t)(byte - _end);
}

static inline uint16_t stack_static_bytes(void) {
    return (uint16_t)_end - RAMSTART;
}
#else
static inline uint16_t stack_untouched_bytes(void) {
    return 0;
}

static inline uint16_t stack_static_bytes(void) {
    return 0;
}
#endif
#endif

#endif
