/* The CRC on the chip, as crc.h has it: of a byte, of bytes in RAM, and of the program in flash. */
#include "crc.h"
#include "flash_check.h"
#include "hardware.h"

/* crc r25:r24 and byte r22; beside the result, crc_update changes r0 alone: the rest of the assembly relies on that */
    .section .text.crc_update, "ax", @progbits
    .global crc_update
    .type crc_update, @function
crc_update:
    eor r24, r22
    mov r0, r24
    swap r24
    andi r24, 0xF0
    eor r24, r0
    mov r0, r25
    mov r25, r24
    swap r24
    andi r24, 0x0F
    eor r0, r24
    lsr r24
    eor r25, r24
    eor r24, r25
    lsl r24
    lsl r24
    lsl r24
    eor r24, r0
    ret

/* bytes r25:r24, count r22 */
    .section .text.crc_of, "ax", @progbits
    .global crc_of
    .type crc_of, @function
crc_of:
    movw r26, r24
    mov r23, r22
    ldi r24, lo8(CRC_INITIAL)
    ldi r25, hi8(CRC_INITIAL)
1:  subi r23, 1
    brcs 2f
    ld r22, X+
    rcall crc_update
    rjmp 1b
2:  ret

/* Takes 32 cycles a byte: 31 ms for 15 KB at 16 MHz. What the line receives meanwhile waits in its ring. */
    .section .text.flash_check, "ax", @progbits
    .global flash_check
    .type flash_check, @function
flash_check:
    clr r30
    clr r31
    ldi r24, lo8(CRC_INITIAL)
    ldi r25, hi8(CRC_INITIAL)
    ldi r23, hi8(__data_load_end) /* from the linker: the first byte behind the program */
1:  lpm r22, Z+
    rcall crc_update
    wdr
    cpi r30, lo8(__data_load_end)
    cpc r31, r23
    brne 1b
    or r24, r25
    brne 2f
    lds r24, WATCHDOG_CONTROL
    andi r24, WATCHDOG_IS_ON
    ori r24, FLASH_SOUND
    sts boot+2, r24
2:  ret
