/* Sending frames on the chip: what frame.c does elsewhere, into the ring that an interrupt empties (start.S).
 *
 * A zero of the content takes no byte of its own in COBS: its place gets the next block's code. So each zero, the
 * one that ends a frame included, closes the block before it: the code goes to that block's first byte, and all before the zero may
 * leave.
 *
 * A byte travels in r22. Sending it leaves r20, r21, r23 and X alone.
 */
#include "crc.h"
#include "faults.h"
#include "frame.h"
#include "hardware.h"
#include "uart_rings.h"

#define CODE _SFR_IO_ADDR(GPIOR0) /* of the open block, so far; the kernels use that register too, in between */

    .section .bss.uart_sending, "aw", @nobits
    .balign SEND_RING_BYTES
    .global uart_sending
uart_sending:
    .skip SEND_RING_BYTES
    .section .bss.frame_send, "aw", @nobits
    .global uart_sending_head
uart_sending_head: /* the first that may not leave yet */
    .skip 1
    .global uart_sending_tail
uart_sending_tail: /* next to leave, by the interrupt */
    .skip 1
sending_end: /* next to be put */
    .skip 1
code_place:
    .skip 1
crc:
    .skip 2

    .section .text.frame_send, "ax", @progbits

/* uint8_t type r24, const uint8_t *address r23:r22 */
    .global frame_begin
    .type frame_begin, @function
frame_begin:
    mov r20, r24
    movw r26, r22
    ldi r24, 0xFF
    sts crc, r24
    sts crc+1, r24
    lds r24, sending_end
    sts code_place, r24
    out CODE, r1
    ldi r22, FRAME_VERSION
    rcall put /* any byte: the code will replace it */
    rcall send
    mov r22, r20
    rcall send
    ldi r23, 2
    rjmp bytes

/* const FLASH uint8_t *bytes r25:r24, uint8_t count r22 */
    .global frame_put_flash
    .type frame_put_flash, @function
frame_put_flash:
    set
    rjmp 1f

/* const void *bytes r25:r24, uint8_t count r22 */
    .global frame_put_bytes
    .type frame_put_bytes, @function
frame_put_bytes:
    clt
1:  movw r26, r24
    mov r23, r22
next:
    subi r23, 1
    brcs done
    movw r30, r26
    lpm r22, Z
    brts 2f
    ld r22, X
2:  adiw r26, 1
    rcall send
    rjmp next
bytes:
    clt
    rjmp next

send:
    lds r24, crc
    lds r25, crc+1
    call crc_update
    sts crc, r24
    sts crc+1, r25
put_content:
#ifdef TL_GARBAGE_AFTER
    push r20
    push r23
    push r26
    push r27
    mov r24, r22
    call faults_scramble
    mov r22, r24
    pop r27
    pop r26
    pop r23
    pop r20
#endif
put:
    lds r19, sending_end
    mov r30, r19
    mov r24, r19
    inc r24
    andi r24, SEND_MASK
1:  lds r18, uart_sending_tail /* the interrupt makes room; only needed when replies pile up */
    cp r18, r24
    breq 1b
    sts sending_end, r24
    ldi r31, hi8(uart_sending)
    ori r30, lo8(uart_sending)
    st Z, r22
    in r18, CODE
    tst r22
    brne 2f
    lds r30, code_place
    ori r30, lo8(uart_sending)
    st Z, r18
    sts code_place, r19
    ldi r18, 0
    rcall release
2:  inc r18
    out CODE, r18
done:
    ret

    .global frame_end
    .type frame_end, @function
frame_end:
    lds r22, crc
    rcall put_content
    lds r22, crc+1
    rcall put_content
    ldi r22, 0
    rcall put
    lds r19, sending_end
release:
    sts uart_sending_head, r19
    ldi r19, UART_LISTENING | _BV(UDRIE0)
    sts UART_CONTROL, r19
    ret
