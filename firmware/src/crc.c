/* The CRC in C; the chip has its own (avr/crc.S). */
#include "crc.h"

#ifndef __AVR__
uint16_t crc_update(uint16_t crc, uint8_t byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) {
        crc = (uint16_t)((crc & 1) != 0 ? crc >> 1 ^ 0x8408 : crc >> 1);
    }
    return crc;
}

uint16_t crc_of(const void *bytes, uint8_t count) {
    uint16_t crc = CRC_INITIAL;
    for (const uint8_t *byte = bytes; count != 0; count--) {
        crc = crc_update(crc, *byte++);
    }
    return crc;
}
#endif
