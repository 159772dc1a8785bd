/* Integer types that the chip and the host share.
 *
 * The chip sums in 24 bits, the host in 32. Both are exact and therefore equal: the policy's loader has
 * proved that no sum leaves 24 bits, whatever the input.
 */
#ifndef TYPES_H
#define TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __AVR__
typedef __int24 int24;
typedef __uint24 uint24;
#define FLASH __flash /* lives in program memory, read with LPM. Read members, never whole structs: avr-gcc 5.4
                       * looks for a struct that is passed on by value in RAM. */
#else
typedef int32_t int24;
typedef uint32_t uint24;
#define FLASH
#endif

/* The byte at *place, which then points to the next one. avr-gcc makes poor use of LPM's own increment. */
static inline uint8_t flash_next(const FLASH uint8_t **place) {
#ifdef __AVR__
    uint8_t byte;
    __asm__("lpm %0, Z+" : "=r"(byte), "+z"(*place));
    return byte;
#else
    return *(*place)++;
#endif
}

#define INT24_LEAST ((int24)-8388608)

#define MUST_USE __attribute__((warn_unused_result))

#endif
