/* Reading and writing frames; pure, the same on chip and host. */
#include "frame.h"

#include "crc.h"

#define COBS_FULL_BLOCK 0xFF /* a block of 254 data bytes without a zero behind it */

void frame_reader_reset(struct frame_reader *reader) {
    reader->length = 0;
    reader->block_left = 0;
    reader->begun = false;
    reader->zero_due = false;
    reader->too_long = false;
    reader->complete = false;
    reader->crc = CRC_INITIAL;
}

static void store(struct frame_reader *reader, uint8_t byte) {
    if (reader->length == FRAME_BYTES_MAX) {
        reader->too_long = true;
        return;
    }
    reader->bytes[reader->length++] = byte;
    reader->crc = crc_update(reader->crc, byte);
}

static enum frame_status judge(const struct frame_reader *reader) {
    if (!reader->begun) {
        return FRAME_INCOMPLETE; /* an empty frame: a sender may flush the line with it */
    }
    if (reader->too_long) {
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
    if (reader->complete) {
        frame_reader_reset(reader);
    }
    if (byte == 0) {
        reader->complete = true;
        return judge(reader);
    }
    if (reader->block_left != 0) {
        reader->block_left--;
        store(reader, byte);
        return FRAME_INCOMPLETE;
    }
    if (reader->zero_due) {
        store(reader, 0);
    }
    reader->begun = true;
    reader->block_left = byte - 1;
    reader->zero_due = byte != COBS_FULL_BLOCK;
    return FRAME_INCOMPLETE;
}

uint8_t frame_payload_length(const struct frame_reader *reader) {
    return reader->length - FRAME_HEADER_BYTES - FRAME_CRC_BYTES;
}

void frame_begin(struct frame_writer *writer, uint8_t type, uint8_t sequence, uint8_t intersection) {
    writer->length = 0;
    frame_put_u8(writer, FRAME_VERSION);
    frame_put_u8(writer, type);
    frame_put_u8(writer, sequence);
    frame_put_u8(writer, intersection);
}

void frame_put_u8(struct frame_writer *writer, uint8_t value) {
    if (writer->length < FRAME_BYTES_MAX) { /* always so: POLICY_MAX_PAYLOAD is the longest reply */
        writer->bytes[writer->length++] = value;
    }
}

void frame_put_u16(struct frame_writer *writer, uint16_t value) {
    frame_put_u8(writer, (uint8_t)value);
    frame_put_u8(writer, (uint8_t)(value >> 8));
}

void frame_put_u32(struct frame_writer *writer, uint32_t value) {
    frame_put_u16(writer, (uint16_t)value);
    frame_put_u16(writer, (uint16_t)(value >> 16));
}

void frame_end(struct frame_writer *writer) {
    uint16_t crc = CRC_INITIAL;
    for (uint8_t i = 0; i < writer->length; i++) {
        crc = crc_update(crc, writer->bytes[i]);
    }
    frame_put_u16(writer, crc);
}

void frame_send(const struct frame_writer *writer, frame_sink send) {
    uint8_t begin = 0;
    for (;;) {
        uint8_t end = begin;
        while (end < writer->length && writer->bytes[end] != 0) {
            end++;
        }
        send(end - begin + 1);
        while (begin < end) {
            send(writer->bytes[begin++]);
        }
        if (end == writer->length) {
            break;
        }
        begin = end + 1;
    }
    send(0);
}
