/* What every board provides to the program: start, watchdog, rest, LED, reset cause. */
#ifndef BOARD_H
#define BOARD_H

#include "types.h"

#ifdef __AVR__
#include "hardware.h"
#define BOARD_F_CPU_HZ ((uint32_t)F_CPU)
#define BOARD_BAUD ((uint32_t)BAUD)
#else
#define BOARD_F_CPU_HZ 0
#define BOARD_BAUD 0
#endif

#ifndef MIN_GREEN_S /* seconds that a light stays green at least, set by the build (TINYLIGHT_MIN_GREEN_S) */
#define MIN_GREEN_S 0
#endif

extern struct boot { /* as HELLO sends it; on the chip start.S sets it */
    uint8_t reset_cause; /* MCUSR as found at boot; 0 on the host */
    uint8_t count;       /* boots since power-on, this one included; stops at 255; 1 on the host */
    uint8_t conditions;  /* what flash_check finds: FLASH_SOUND, and WDE if the watchdog is on; 0: not sound, or not checked */
} boot;

void board_start(void);
void board_rest(void); /* sleeps until there may be something to do; on the host: ends at the end of input */

#ifdef __AVR__
#include <avr/wdt.h>

static inline void board_feed_watchdog(void) {
    wdt_reset();
}

static inline void board_led(bool lit) {
    if (lit) {
        LED_PORT |= _BV(LED_BIT);
    } else {
        LED_PORT &= (uint8_t)~_BV(LED_BIT);
    }
}
#else
static inline void board_feed_watchdog(void) {
}

static inline void board_led(bool lit) {
    (void)lit;
}
#endif

#endif
