/* What every board gives to the program: start, watchdog, rest, LED, reset cause. */
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

#ifndef MIN_GREEN_S /* seconds that a light stays green at least, told by the build (TINYLIGHT_MIN_GREEN_S) */
#define MIN_GREEN_S 0
#endif

void board_start(void);
void board_rest(void); /* sleeps until there may be something to do; on the host: ends at the end of input */

#ifdef __AVR__
#include <avr/wdt.h>

extern uint8_t boot_reset_cause, boot_count; /* start.S */

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
enum { boot_reset_cause = 0, boot_count = 1 };

static inline void board_feed_watchdog(void) {
}

static inline void board_led(bool lit) {
    (void)lit;
}
#endif

/* MCUSR as found at boot; 0 on the host */
static inline uint8_t board_reset_cause(void) {
    return boot_reset_cause;
}

/* Boots since power came, this one included; stops at 255; 1 on the host */
static inline uint8_t board_boot_count(void) {
    return boot_count;
}

#endif
