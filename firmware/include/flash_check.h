/* Whether the program's bytes in flash are still those that were built: a CRC over all of them, once at boot.
 *
 * After linking, firmware/generator/flash_crc.py chooses two bytes of start.S such that the CRC is 0.
 */
#ifndef FLASH_CHECK_H
#define FLASH_CHECK_H

#include "types.h"

void flash_check(void);

#ifdef __AVR__
extern uint8_t flash_fault; /* what flash_check found: 0 if nothing */
#else
enum { flash_fault = 0 };
#endif

#endif
