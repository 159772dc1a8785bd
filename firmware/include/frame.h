/* Frames: COBS around version, type, sequence, intersection, payload and CRC. Byte by byte in docs/protocol.md. */
#ifndef FRAME_H
#define FRAME_H

#include "policy_dimensions.h"
#include "types.h"

#define FRAME_VERSION 1

#define FRAME_HEADER_BYTES 4
#define FRAME_CRC_BYTES 2
#define FRAME_BYTES_MAX (FRAME_HEADER_BYTES + POLICY_MAX_PAYLOAD + FRAME_CRC_BYTES)
#define FRAME_WIRE_BYTES_MAX (FRAME_BYTES_MAX + 2) /* one COBS code and the delimiter */
_Static_assert(FRAME_BYTES_MAX < 254, "a frame must fit one COBS block");

/* Positions in a frame */
enum { FRAME_AT_VERSION, FRAME_AT_TYPE, FRAME_AT_SEQUENCE, FRAME_AT_INTERSECTION, FRAME_AT_PAYLOAD };

enum frame_status {
    FRAME_INCOMPLETE,
    FRAME_GOOD,
    FRAME_BAD_CRC,
    FRAME_BAD_VERSION,
    FRAME_TOO_LONG,
    FRAME_MALFORMED, /* COBS error, or shorter than header and CRC */
};

/* Decodes byte by byte as they come, so that nothing is left to do when the delimiter arrives. */
struct frame_reader {
    uint8_t bytes[FRAME_BYTES_MAX];
    uint8_t length;     /* bytes decoded so far */
    uint8_t block_left; /* data bytes still to come in this COBS block */
    bool begun;         /* a COBS code has been seen */
    bool zero_due;      /* the block stands for a zero at its end, if another block follows */
    bool too_long;
    bool complete; /* the delimiter has come: the next byte begins a new frame */
    uint16_t crc;
};

void frame_reader_reset(struct frame_reader *reader);
MUST_USE enum frame_status frame_reader_push(struct frame_reader *reader, uint8_t byte);
MUST_USE uint8_t frame_payload_length(const struct frame_reader *reader); /* of a good frame */

/* A frame to be sent: header, then payload, appended byte by byte. */
struct frame_writer {
    uint8_t bytes[FRAME_BYTES_MAX];
    uint8_t length;
};

void frame_begin(struct frame_writer *writer, uint8_t type, uint8_t sequence, uint8_t intersection);
void frame_put_u8(struct frame_writer *writer, uint8_t value);
void frame_put_u16(struct frame_writer *writer, uint16_t value);
void frame_put_u32(struct frame_writer *writer, uint32_t value);
void frame_end(struct frame_writer *writer); /* appends the CRC */

typedef void (*frame_sink)(uint8_t byte);
void frame_send(const struct frame_writer *writer, frame_sink send); /* COBS and delimiter */

#endif
