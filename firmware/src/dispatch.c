/* What the chip answers to each request. */
#include "dispatch.h"

#include "board.h"
#include "cycles.h"
#include "infer.h"
#include "policy.h"
#include "stack.h"
#include "uart.h"

#define FIRMWARE_MAJOR 1
#define FIRMWARE_MINOR 0

enum { TYPE_HELLO = 0x01, TYPE_DECIDE = 0x02, TYPE_STATS = 0x03, TYPE_REPLY = 0x80, TYPE_ERROR = 0xFF };

enum error_code {
    ERROR_BAD_CRC = 1,
    ERROR_BAD_VERSION,
    ERROR_UNKNOWN_TYPE,
    ERROR_BAD_LENGTH,
    ERROR_BAD_INTERSECTION,
    ERROR_TOO_LONG,
    ERROR_MALFORMED,
};

/* A DECIDE request: flags, count, then the values */
#define DECIDE_FLAGS 0
#define DECIDE_COUNT 1
#define DECIDE_VALUES 2
#define DECIDE_WANTS_LOGITS 0x01
_Static_assert(DECIDE_VALUES + 2 * POLICY_INPUTS_MAX <= POLICY_MAX_PAYLOAD, "a DECIDE request must fit a frame");
_Static_assert(7 + 4 * POLICY_ACTIONS_MAX <= POLICY_MAX_PAYLOAD, "a DECIDE reply must fit a frame");
_Static_assert(14 + POLICY_SHA256_BYTES <= POLICY_MAX_PAYLOAD, "a HELLO reply must fit a frame");

static struct {
    uint32_t decisions;
    uint32_t cycles_max;
    uint16_t good;
    uint16_t bad_crc;
    uint16_t malformed;
    uint16_t repeats;
} counters;

/* The last decision, kept so that a repeated request is answered again without new work */
static struct {
    bool valid;
    uint8_t sequence;
    uint8_t intersection;
    uint8_t crc[FRAME_CRC_BYTES];
    uint32_t cycles;
    struct decision decision;
} last;

static void count(uint16_t *counter) {
    if (*counter != UINT16_MAX) {
        (*counter)++;
    }
}

uint32_t dispatch_decisions(void) {
    return counters.decisions;
}

/* The reply repeats the request's sequence and intersection, as far as it got. */
static void begin(struct frame_writer *reply, const struct frame_reader *request, uint8_t type) {
    const bool has_header = request->length >= FRAME_HEADER_BYTES;
    frame_begin(reply, type, has_header ? request->bytes[FRAME_AT_SEQUENCE] : 0,
                has_header ? request->bytes[FRAME_AT_INTERSECTION] : 0);
}

static void answer_error(struct frame_writer *reply, const struct frame_reader *request, enum error_code code,
                         uint8_t detail) {
    begin(reply, request, TYPE_ERROR);
    frame_put_u8(reply, code);
    frame_put_u8(reply, detail);
}

static void answer_hello(struct frame_writer *reply, const struct frame_reader *request) {
    last.valid = false;
    begin(reply, request, TYPE_HELLO | TYPE_REPLY);
    frame_put_u8(reply, FIRMWARE_MAJOR);
    frame_put_u8(reply, FIRMWARE_MINOR);
    frame_put_u8(reply, KERNEL_ID);
    frame_put_u8(reply, board_reset_cause());
    frame_put_u32(reply, BOARD_F_CPU_HZ);
    frame_put_u32(reply, BOARD_BAUD);
    frame_put_u8(reply, POLICY_INTERSECTIONS);
    frame_put_u8(reply, POLICY_MAX_PAYLOAD);
    for (uint8_t i = 0; i < POLICY_SHA256_BYTES; i++) {
        frame_put_u8(reply, policy_sha256[i]);
    }
}

static bool is_repeat(const struct frame_reader *request) {
    const uint8_t *crc = request->bytes + request->length - FRAME_CRC_BYTES;
    return last.valid && last.sequence == request->bytes[FRAME_AT_SEQUENCE] &&
           last.intersection == request->bytes[FRAME_AT_INTERSECTION] && last.crc[0] == crc[0] &&
           last.crc[1] == crc[1];
}

static void decide(const FLASH struct intersection *net, const struct frame_reader *request) {
    board_led(true);
    cycles_start();
    infer(net, request->bytes + FRAME_AT_PAYLOAD + DECIDE_VALUES, &last.decision);
    last.cycles = cycles_stop();
    board_led(false);

    last.valid = true;
    last.sequence = request->bytes[FRAME_AT_SEQUENCE];
    last.intersection = request->bytes[FRAME_AT_INTERSECTION];
    last.crc[0] = request->bytes[request->length - 2];
    last.crc[1] = request->bytes[request->length - 1];
    counters.decisions++;
    if (last.cycles > counters.cycles_max) {
        counters.cycles_max = last.cycles;
    }
}

static void answer_decide(struct frame_writer *reply, const struct frame_reader *request) {
    const uint8_t number = request->bytes[FRAME_AT_INTERSECTION];
    if (number >= POLICY_INTERSECTIONS) {
        answer_error(reply, request, ERROR_BAD_INTERSECTION, POLICY_INTERSECTIONS);
        return;
    }
    const FLASH struct intersection *net = &policy_intersections[number];
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t expected = DECIDE_VALUES + 2 * net->inputs;
    if (frame_payload_length(request) != expected || payload[DECIDE_COUNT] != net->inputs) {
        answer_error(reply, request, ERROR_BAD_LENGTH, expected);
        return;
    }
    if (is_repeat(request)) {
        count(&counters.repeats);
    } else {
        decide(net, request);
    }
    begin(reply, request, TYPE_DECIDE | TYPE_REPLY);
    frame_put_u8(reply, last.decision.action);
    frame_put_u8(reply, net->phases[last.decision.action]);
    frame_put_u32(reply, last.cycles);
    const uint8_t logits = (payload[DECIDE_FLAGS] & DECIDE_WANTS_LOGITS) != 0 ? net->actions : 0;
    frame_put_u8(reply, logits);
    for (uint8_t a = 0; a < logits; a++) {
        frame_put_u32(reply, (uint32_t)last.decision.logits[a]);
    }
}

static void answer_stats(struct frame_writer *reply, const struct frame_reader *request) {
    begin(reply, request, TYPE_STATS | TYPE_REPLY);
    frame_put_u32(reply, counters.decisions);
    frame_put_u32(reply, counters.cycles_max);
    frame_put_u16(reply, counters.good);
    frame_put_u16(reply, counters.bad_crc);
    frame_put_u16(reply, counters.malformed);
    frame_put_u16(reply, uart_ring_overruns());
    frame_put_u16(reply, uart_line_errors());
    frame_put_u16(reply, counters.repeats);
    frame_put_u16(reply, stack_untouched_bytes());
    frame_put_u16(reply, stack_static_bytes());
}

static void answer_good(struct frame_writer *reply, const struct frame_reader *request) {
    const uint8_t type = request->bytes[FRAME_AT_TYPE];
    count(&counters.good);
    if (type == TYPE_DECIDE) {
        answer_decide(reply, request);
    } else if (type != TYPE_HELLO && type != TYPE_STATS) {
        answer_error(reply, request, ERROR_UNKNOWN_TYPE, type);
    } else if (frame_payload_length(request) != 0) {
        answer_error(reply, request, ERROR_BAD_LENGTH, 0);
    } else if (type == TYPE_HELLO) {
        answer_hello(reply, request);
    } else {
        answer_stats(reply, request);
    }
}

void dispatch(enum frame_status status, const struct frame_reader *request, struct frame_writer *reply) {
    switch (status) {
    case FRAME_GOOD:
        answer_good(reply, request);
        break;
    case FRAME_BAD_CRC:
        count(&counters.bad_crc);
        answer_error(reply, request, ERROR_BAD_CRC, 0);
        break;
    case FRAME_BAD_VERSION:
        count(&counters.good);
        answer_error(reply, request, ERROR_BAD_VERSION, FRAME_VERSION);
        break;
    case FRAME_TOO_LONG:
        count(&counters.malformed);
        answer_error(reply, request, ERROR_TOO_LONG, POLICY_MAX_PAYLOAD);
        break;
    default:
        count(&counters.malformed);
        answer_error(reply, request, ERROR_MALFORMED, 0);
        break;
    }
    frame_end(reply);
}
