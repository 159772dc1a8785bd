/* CRC-16/MCRF4XX: reflected polynomial 0x1021, initial value 0xFFFF; of "123456789" it is 0x6F91.
 * Run over data and the CRC behind it (low byte first) it gives 0.
 */
#ifndef CRC_H
#define CRC_H

#define CRC_INITIAL 0xFFFF

#ifndef __ASSEMBLER__
#include "types.h"

MUST_USE uint16_t crc_update(uint16_t crc, uint8_t byte);
MUST_USE uint16_t crc_of(const void *bytes, uint8_t count);
#endif

#endif
