/* Resets, counted in the EEPROM: so often that something must be wrong, and the lamps flash until the power goes. */
#ifndef RESETS_H
#define RESETS_H

#include "types.h"

/* Byte for byte as it lies in the EEPROM, and as HELLO sends the counts */
struct resets {
    uint16_t power_on, external, watchdog, brown_out; /* each stops at 65535 */
    uint8_t recent; /* others than power-on, none more than a minute after the one before */
    uint8_t check;  /* of the bytes before */
};

#define RESETS_TOO_MANY 3
#define RESETS_MINUTE_TICKS 6000

extern struct resets resets;

/* What the record, as it was found, becomes by a reset with this cause (MCUSR). `is_warm`: RAM has lasted. Returns the event of it. */
uint8_t resets_add(struct resets *record, uint8_t cause, bool is_warm);

void resets_note(uint32_t tick);  /* at the start: reads, adds, writes */
void resets_pass(uint32_t ticks); /* once a tick: a minute without any is written to the EEPROM, byte by byte */

static inline bool resets_are_many(void) {
    return resets.recent >= RESETS_TOO_MANY;
}

#endif
