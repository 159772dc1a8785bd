/* CRC-16/MCRF4XX: reflected polynomial 0x1021, initial value 0xFFFF; of "123456789" it is 0x6F91.
 * Run over data and the CRC behind it (low byte first) it gives 0.
 */
#ifndef CRC_H
#define CRC_H

#include "types.h"

#define CRC_INITIAL 0xFFFF

#ifdef __AVR__
#include <util/crc16.h>

static inline uint16_t crc_update(uint16_t crc, uint8_t byte) {
    return _crc_ccitt_update(crc, byte);
}
#else
static inline uint16_t crc_update(uint16_t crc, uint8_t byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) {
        crc = (uint16_t)((crc & 1) != 0 ? crc >> 1 ^ 0x8408 : crc >> 1);
    }
    return crc;
}
#endif

#endif
