/* Frames: COBS around version, type, sequence, intersection, payload and CRC. Byte by byte in docs/protocol.md. */
#ifndef FRAME_H
#define FRAME_H

#include "policy_dimensions.h"

#define FRAME_VERSION 3

#define FRAME_HEADER_BYTES 4
#define FRAME_CRC_BYTES 2
#define FRAME_BYTES_MAX (FRAME_HEADER_BYTES + POLICY_MAX_PAYLOAD + FRAME_CRC_BYTES)
#define FRAME_WIRE_BYTES_MAX (FRAME_BYTES_MAX + 2) /* one COBS code and the delimiter */

#ifndef __ASSEMBLER__
#include "types.h"

_Static_assert(FRAME_BYTES_MAX < 254, "a frame must fit one COBS block");

/* Positions in a frame */
enum { FRAME_AT_VERSION, FRAME_AT_TYPE, FRAME_AT_SEQUENCE, FRAME_AT_INTERSECTION, FRAME_AT_PAYLOAD };

/* What is wrong with a frame has the numbers of docs/protocol.md. */
enum frame_status {
    FRAME_GOOD = 0,
    FRAME_BAD_CRC = 1,
    FRAME_BAD_VERSION = 2,
    FRAME_TOO_LONG = 6,
    FRAME_MALFORMED = 7, /* COBS error, or shorter than header and CRC */
    FRAME_INCOMPLETE = 255,
};

/* Decodes in place, byte by byte as they come, so that nothing is left to do when the delimiter arrives. */
struct frame_reader {
    uint8_t length;     /* bytes decoded so far; one more than there is room for: too long */
    uint8_t block_left; /* data bytes still to come in this COBS block */
    uint8_t code;       /* of this block; 0: the frame has not begun */
    uint16_t crc;
    uint8_t bytes[FRAME_BYTES_MAX]; /* sequence and intersection are 0 as long as they have not come */
};

void frame_reader_reset(struct frame_reader *reader); /* before the first byte, and after each frame */
MUST_USE enum frame_status frame_reader_push(struct frame_reader *reader, uint8_t byte);

static inline uint8_t frame_payload_length(const struct frame_reader *reader) { /* of a good frame */
    return reader->length - FRAME_HEADER_BYTES - FRAME_CRC_BYTES;
}

/* A frame goes straight to the line: header, then payload, then its end. A byte of it leaves as soon as its COBS block ends.
 * The header's sequence and intersection lie at `address`, as in a request.
 */
void frame_begin(uint8_t type, const uint8_t *address);
void frame_put_bytes(const void *bytes, uint8_t count); /* numbers lie in memory as they go over the wire: low byte first */
void frame_put_flash(const FLASH uint8_t *bytes, uint8_t count);
void frame_end(void);
#endif

#endif
