/* Whether the program's bytes in flash are still those that were built: a CRC over all of them, once at boot.
 *
 * After linking, firmware/generator/flash_crc.py chooses two bytes of start.S such that the CRC is 0.
 */
#ifndef FLASH_CHECK_H
#define FLASH_CHECK_H

#define FLASH_SOUND 0x02 /* in boot.conditions */

#ifndef __ASSEMBLER__
#include "types.h"

void flash_check(void);

#ifdef __AVR__
#include "board.h"

static inline bool flash_is_sound(void) {
    return boot.conditions != 0;
}
#else
static inline bool flash_is_sound(void) {
    return true;
}
#endif
#endif

#endif
