/* Reads off what start.S painted. */
#include "stack.h"

#include "hardware.h"

/* From the linker */
extern uint8_t __data_start;
extern uint8_t _end; /* the first byte behind the statics */

uint16_t stack_untouched_bytes(void) {
    const uint8_t *byte = &_end;
    while (byte <= (const uint8_t *)RAMEND && *byte == STACK_PAINT) {
        byte++;
    }
    return (uint16_t)(byte - &_end);
}

uint16_t stack_static_bytes(void) {
    return (uint16_t)(&_end - &__data_start);
}
