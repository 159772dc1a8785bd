/* See lines.h. */
#include "light/lines.h"

#if LIGHT_LINES
void lines_take(struct lines *lines, const uint8_t read[LINES_BYTES], uint8_t changed[LINES_BYTES]) {
    for (uint8_t at = 0; at < LINES_BYTES; at++) {
        const uint8_t differs = read[at] ^ lines->level[at];
        const uint8_t change = differs & lines->differs[at];
        lines->differs[at] = differs & (uint8_t)~change;
        lines->level[at] ^= change;
        changed[at] = change;
    }
}

#ifdef __AVR__
#include "hardware.h"

/* One by one: a loop over the bits takes twice as long. */
#define TAKE(bit)                                              \
    if ((DETECTOR_DATA & _BV(DETECTOR_DATA_BIT)) != 0) {       \
        byte |= (bit);                                         \
    }                                                          \
    DETECTOR_PORT |= _BV(DETECTOR_CLOCK_BIT);                  \
    DETECTOR_PORT &= (uint8_t)~_BV(DETECTOR_CLOCK_BIT)

void lines_read(uint8_t read[LINES_BYTES]) {
    DETECTOR_PORT &= (uint8_t)~_BV(DETECTOR_LOAD_BIT);
    DETECTOR_PORT |= _BV(DETECTOR_LOAD_BIT);
    for (uint8_t at = 0; at < LINES_BYTES; at++) {
        uint8_t byte = 0;
        TAKE(0x01);
        TAKE(0x02);
        TAKE(0x04);
        TAKE(0x08);
        TAKE(0x10);
        TAKE(0x20);
        TAKE(0x40);
        TAKE(0x80);
        read[at] = byte;
    }
}
#endif
#endif
