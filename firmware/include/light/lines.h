/* Detector lines: a chain of 74HC165 at the pins, and each line's level once it is one that a vehicle can make. */
#ifndef LINES_H
#define LINES_H

#include "light/dimensions.h" /* generated */
#include "types.h"

#define LINES_BYTES ((LIGHT_LINES + 7) / 8)

#define LINES_TURN 4 /* looks from one that counts for a rise to the next; it takes four of these, which is 14 to 17 looks */

struct lines {
    uint8_t level[LINES_BYTES];  /* line 0 is the lowest bit of byte 0 */
    uint8_t differs[LINES_BYTES]; /* lines whose last look differed from `level` */
    uint8_t ones[LINES_BYTES], twos[LINES_BYTES]; /* of those that rise: looks that have counted, in binary digits */
    uint8_t turn;
};

void lines_read(uint8_t read[LINES_BYTES]); /* at the pins, now */

/* Takes a look in. `changed`: lines whose level has changed by it. What was read gives way to the lines that flickered: a rise
 * has ended before it was one. */
void lines_take(struct lines *lines, uint8_t read[LINES_BYTES], uint8_t changed[LINES_BYTES]);

static inline bool lines_bit(const uint8_t *bytes, uint8_t line) {
    return (bytes[line >> 3] >> (line & 7) & 1) != 0;
}

#endif
