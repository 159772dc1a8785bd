/* See lamps.h. Lines are written when they change, and now and then all the same: a register may have been disturbed. */
#include "light/lamps.h"

#include "hardware.h"
#include "light/dimensions.h" /* generated */

#define REFRESH_TICKS 16 /* sooner than a monitor counts a disturbed line as a fault */

static struct shell_output shown;
static uint8_t fresh_ticks;

void lamps_start(void) {
    LAMP_DIRECTION |= LAMP_OUTPUTS;
}

static inline void put(bool lit) {
    if (lit) {
        LAMP_PORT |= _BV(LAMP_DATA_BIT);
    } else {
        LAMP_PORT &= (uint8_t)~_BV(LAMP_DATA_BIT);
    }
    LAMP_PORT |= _BV(LAMP_CLOCK_BIT);
    LAMP_PORT &= (uint8_t)~_BV(LAMP_CLOCK_BIT);
}

static void put_all(const struct shell_output *output) {
    shell_set group;
#if LIGHT_CROSSWALKS
    for (group = LIGHT_LAST_GROUP; group != 0; group >>= 1) {
        put((output->clearing & group) != 0);
        put((output->walk & group) != 0);
    }
#endif
    for (group = LIGHT_LAST_GROUP; group != 0; group >>= 1) {
        put((output->green & group) != 0);
        put((output->yellow & group) != 0);
        put((output->red & group) != 0);
    }
    LAMP_PORT |= _BV(LAMP_LATCH_BIT);
    LAMP_PORT &= (uint8_t)~_BV(LAMP_LATCH_BIT);
}

void lamps_show(const struct shell_output *output) {
    fresh_ticks++;
    if (fresh_ticks < REFRESH_TICKS && output->red == shown.red && output->yellow == shown.yellow &&
        output->green == shown.green && output->walk == shown.walk && output->clearing == shown.clearing) {
        return;
    }
    put_all(output);
    shown = *output;
    fresh_ticks = 0;
}
