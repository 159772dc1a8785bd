/* Packed values; the chip unpacks them by avr/unpack.S. */
#include "unpack.h"

#ifndef __AVR__
#include "infer.h"

#define WIDE 255

uint8_t unpack(const uint8_t *packed, const uint8_t *end, uint8_t values) {
    const int8_t base = (int8_t)*packed++;
    uint8_t *part = decision_or_parts.parts;
    for (; packed < end; values--) {
        if (values == 0) {
            return 1; /* more bytes than values */
        }
        uint16_t value = (uint16_t)(*packed + base);
        if (*packed++ == WIDE) {
            value = packed[0] | (uint16_t)packed[1] << 8;
            packed += 2;
        }
        *part++ = (uint8_t)value;
        *part++ = (uint8_t)(value >> 8);
    }
    return values | (packed != end);
}
#endif
