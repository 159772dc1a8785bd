/* Reading frames, and writing them; the chip writes them by avr/frame_send.S. */
#include "frame.h"

#include "crc.h"
#include "faults.h"
#include "uart.h"

#define COBS_FULL_BLOCK 0xFF /* a block of 254 data bytes without a zero behind it */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they lie in memory");

void frame_reader_reset(struct frame_reader *reader) {
    reader->length = 0;
    reader->block_left = 0;
    reader->code = 0;
    reader->crc = CRC_INITIAL;
    reader->bytes[FRAME_AT_SEQUENCE] = 0;
    reader->bytes[FRAME_AT_INTERSECTION] = 0;
}

static enum frame_status judge(const struct frame_reader *reader) {
    if (reader->code == 0) {
        return FRAME_INCOMPLETE; /* an empty frame: a sender may flush the line with it */
    }
    if (reader->length > FRAME_BYTES_MAX) {
        return FRAME_TOO_LONG;
    }
    if (reader->block_left != 0 || reader->length < FRAME_HEADER_BYTES + FRAME_CRC_BYTES) {
        return FRAME_MALFORMED;
    }
    if (reader->crc != 0) {
        return FRAME_BAD_CRC;
    }
    return reader->bytes[FRAME_AT_VERSION] == FRAME_VERSION ? FRAME_GOOD : FRAME_BAD_VERSION;
}

enum frame_status frame_reader_push(struct frame_reader *reader, uint8_t byte) {
    if (byte == 0) {
        return judge(reader);
    }
    if (reader->block_left != 0) {
        reader->block_left--;
    } else {
        const uint8_t code = reader->code;
        reader->code = byte;
        reader->block_left = byte - 1;
        if (code == 0 || code == COBS_FULL_BLOCK) {
            return FRAME_INCOMPLETE;
        }
        byte = 0; /* what the block before stood for, now that another one follows */
    }
    const uint8_t length = reader->length;
    if (length <= FRAME_BYTES_MAX) {
        reader->length = length + 1;
        if (length < FRAME_BYTES_MAX) {
            reader->bytes[length] = byte;
            reader->crc = crc_update(reader->crc, byte);
        }
    }
    return FRAME_INCOMPLETE;
}

#ifndef __AVR__

/* The frame being sent */
static uint16_t crc;
static uint8_t code;       /* of the open COBS block, so far */
static uint8_t code_place; /* where it goes */

static void open_block(void) {
    code = 1;
    code_place = uart_put(0);
}

static void close_block(void) {
    uart_set(code_place, code);
    uart_release();
}

static void put(uint8_t byte) {
    byte = FAULT_SCRAMBLE(byte);
    if (byte == 0) {
        close_block();
        open_block();
    } else {
        code++;
        (void)uart_put(byte);
    }
}

static void send(uint8_t byte) {
    crc = crc_update(crc, byte);
    put(byte);
}

void frame_begin(uint8_t type, const uint8_t *address) {
    crc = CRC_INITIAL;
    open_block();
    send(FRAME_VERSION);
    send(type);
    frame_put_bytes(address, 2);
}

void frame_put_bytes(const void *bytes, uint8_t count) {
    for (const uint8_t *byte = bytes; count != 0; count--) {
        send(*byte++);
    }
}

void frame_put_flash(const FLASH uint8_t *bytes, uint8_t count) {
    for (; count != 0; count--) {
        send(*bytes++);
    }
}

void frame_end(void) {
    const uint16_t sum = crc;
    put((uint8_t)sum);
    put((uint8_t)(sum >> 8));
    close_block();
    (void)uart_put(0);
    uart_release();
}

#endif
