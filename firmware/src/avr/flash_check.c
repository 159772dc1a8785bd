/* Takes 22 cycles a byte: 0.02 s for 15 KB at 16 MHz. What the line receives meanwhile waits in its ring. */
#include "flash_check.h"

#include "board.h"
#include "crc.h"

extern const FLASH uint8_t __data_load_end; /* from the linker: the first byte behind the program and its statics' values */

static bool sound;

void flash_check(void) {
    const FLASH uint8_t *byte = 0;
    uint16_t crc = CRC_INITIAL;
    do {
        crc = crc_update(crc, flash_next(&byte));
    } while (byte != &__data_load_end);
    sound = crc == 0;
}

bool flash_is_sound(void) {
    return sound;
}
