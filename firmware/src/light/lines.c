/* See lines.h. */
#include "light/lines.h"

#if LIGHT_LINES
/* Bit by bit for eight lines at a time. A fall is taken at its second look. */
void lines_take(struct lines *lines, uint8_t read[LINES_BYTES], uint8_t changed[LINES_BYTES]) {
    uint8_t counts = 0;
    if (++lines->turn == LINES_TURN) {
        lines->turn = 0;
        counts = 0xFF;
    }
    for (uint8_t at = 0; at < LINES_BYTES; at++) {
        const uint8_t level = lines->level[at], differed = lines->differs[at], differs = read[at] ^ level;
        const uint8_t again = differs & differed & (level | counts);
        const uint8_t ones = lines->ones[at], twos = lines->twos[at];
        const uint8_t change = again & (level | (ones & twos));
        const uint8_t waits = differs & (uint8_t)~change;
        lines->ones[at] = (ones ^ again) & waits;
        lines->twos[at] = (twos ^ (again & ones)) & waits;
        lines->differs[at] = waits;
        lines->level[at] = level ^ change;
        changed[at] = change;
        read[at] = differed & (uint8_t)~(differs | level);
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
