/* Detector lines: a chain of 74HC165 at the pins, and each line's level once it has been the same for two ticks. */
#ifndef LINES_H
#define LINES_H

#include "light/dimensions.h" /* generated */
#include "types.h"

#define LINES_BYTES ((LIGHT_LINES + 7) / 8)

struct lines {
    uint8_t level[LINES_BYTES];  /* line 0 is the lowest bit of byte 0 */
    uint8_t differs[LINES_BYTES]; /* lines whose last look differed from `level` */
};

void lines_read(uint8_t read[LINES_BYTES]); /* at the pins, now */

/* Takes a look in. `changed`: lines whose level has changed by it. */
void lines_take(struct lines *lines, const uint8_t read[LINES_BYTES], uint8_t changed[LINES_BYTES]);

static inline bool lines_bit(const uint8_t *bytes, uint8_t line) {
    return (bytes[line >> 3] >> (line & 7) & 1) != 0;
}

#endif
