#include "crc.h"

#ifdef __AVR__
#include <util/crc16.h>

uint16_t crc_update(uint16_t crc, uint8_t byte) {
    return _crc_ccitt_update(crc, byte);
}
#else
uint16_t crc_update(uint16_t crc, uint8_t byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) {
        crc = (uint16_t)((crc & 1) != 0 ? crc >> 1 ^ 0x8408 : crc >> 1);
    }
    return crc;
}
#endif
