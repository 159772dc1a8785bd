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
void board_feed_watchdog(void);
void board_rest(void); /* sleeps until there may be something to do; on the host: ends at the end of input */
void board_led(bool lit);
uint8_t board_reset_cause(void); /* MCUSR as found at boot; 0 on the host */
uint8_t board_boot_count(void);  /* boots since power came, this one included; stops at 255; 1 on the host */

#endif
