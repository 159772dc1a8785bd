/* Packed values; the chip unpacks them by avr/unpack.S. */
#include "unpack.h"

#ifndef __AVR__
#include "infer.h"

#define WIDE_HALF 0x0F
#define WIDE_BYTE 0xFF

static const uint8_t *next;
static bool upper; /* of the byte before `next` */

static uint8_t half(void) {
    upper = !upper;
    return upper ? *next++ & 0x0F : next[-1] >> 4;
}

static uint8_t whole(void) {
    const uint8_t low = half();
    return (uint8_t)(low | half() << 4);
}

uint8_t unpack(const uint8_t *packed, const uint8_t *end, uint8_t values) {
    const int8_t base = (int8_t)*packed;
    uint8_t *part = decision_or_parts.parts;
    next = packed + 1;
    upper = false;
    for (; values != 0 && next <= end; values--) {
        uint16_t value = half();
        if (value == WIDE_HALF) {
            value = whole();
        }
        if (value == WIDE_BYTE) {
            value = whole();
            value |= (uint16_t)(whole() << 8);
        } else {
            value = (uint16_t)(value + base);
        }
        *part++ = (uint8_t)value;
        *part++ = (uint8_t)(value >> 8);
    }
    return values | (next != end);
}
#endif
