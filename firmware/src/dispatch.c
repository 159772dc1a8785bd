/* What the chip answers to each request. */
#include "dispatch.h"

#include <string.h>

#include "board.h"
#include "crc.h"
#include "cycles.h"
#include "infer.h"
#include "policy.h"
#include "stack.h"
#include "uart.h"

#define FIRMWARE_MAJOR 1
#define FIRMWARE_MINOR 1

enum {
    TYPE_HELLO = 0x01,
    TYPE_DECIDE = 0x02,
    TYPE_STATS = 0x03,
    TYPE_PUT = 0x04,
    TYPE_GET = 0x05,
    TYPE_REPLY = 0x80,
    TYPE_ERROR = 0xFF
};

enum error_code {
    ERROR_BAD_CRC = 1,
    ERROR_BAD_VERSION,
    ERROR_UNKNOWN_TYPE,
    ERROR_BAD_LENGTH,
    ERROR_BAD_INTERSECTION,
    ERROR_TOO_LONG,
    ERROR_MALFORMED,
    ERROR_NO_SESSION,
    ERROR_BAD_PARTS,
};

/* A DECIDE request: flags, count, then the values */
#define DECIDE_FLAGS 0
#define DECIDE_COUNT 1
#define DECIDE_VALUES 2
#define DECIDE_CRC 2 /* instead of the values, where PUT has brought them */
#define DECIDE_PUT_LENGTH 4
#define DECIDE_WANTS_LOGITS 0x01
#define DECIDE_VALUES_WERE_PUT 0x02

/* PUT: offset, then bytes of the values. GET: sequence of the decision, then offset and length in its answer */
#define PUT_OFFSET 0
#define PUT_BYTES 1
#define GET_SEQUENCE 0
#define GET_OFFSET 1
#define GET_LENGTH 2
#define GET_PAYLOAD_LENGTH 3
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

/* The last decision, kept so that a repeated request is answered again without new work. The values of the next one take its
 * place where they come in parts: they make it invalid.
 */
static struct {
    bool valid;
    uint8_t sequence;
    uint8_t intersection;
    uint8_t crc[FRAME_CRC_BYTES];
    uint32_t cycles;
    union {
        struct decision decision;
        uint8_t put[2 * POLICY_INPUTS_MAX];
    };
} last;

static bool in_session; /* HELLO has been said since the chip started */

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
    in_session = true;
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

static bool is_last(const struct frame_reader *request, uint8_t sequence) {
    return last.valid && last.sequence == sequence && last.intersection == request->bytes[FRAME_AT_INTERSECTION];
}

static bool is_repeat(const struct frame_reader *request) {
    const uint8_t *crc = request->bytes + request->length - FRAME_CRC_BYTES;
    return is_last(request, request->bytes[FRAME_AT_SEQUENCE]) && last.crc[0] == crc[0] && last.crc[1] == crc[1];
}

static void decide(const FLASH struct intersection *net, const struct frame_reader *request, const uint8_t *values) {
    board_led(true);
    cycles_start();
    infer(net, values, &last.decision);
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

static uint16_t crc_of(const uint8_t *bytes, uint8_t length) {
    uint16_t crc = CRC_INITIAL;
    while (length-- > 0) {
        crc = crc_update(crc, *bytes++);
    }
    return crc;
}

/* Action, phase, cycles, and as many of the logits */
static void put_decision(struct frame_writer *reply, const FLASH struct intersection *net, uint8_t logits) {
    frame_put_u8(reply, last.decision.action);
    frame_put_u8(reply, net->phases[last.decision.action]);
    frame_put_u32(reply, last.cycles);
    frame_put_u8(reply, logits);
    for (uint8_t a = 0; a < logits; a++) {
        frame_put_u32(reply, (uint32_t)last.decision.logits[a]);
    }
}

static void answer_decide(struct frame_writer *reply, const struct frame_reader *request,
                          const FLASH struct intersection *net) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t length = frame_payload_length(request), values_length = 2 * net->inputs;
    const bool were_put = length == DECIDE_PUT_LENGTH && (payload[DECIDE_FLAGS] & DECIDE_VALUES_WERE_PUT) != 0;
    const uint8_t expected = were_put ? DECIDE_PUT_LENGTH : DECIDE_VALUES + values_length;
    if (length != expected || payload[DECIDE_COUNT] != net->inputs) {
        answer_error(reply, request, ERROR_BAD_LENGTH, expected);
        return;
    }
    if (is_repeat(request)) {
        count(&counters.repeats);
    } else if (!were_put) {
        decide(net, request, payload + DECIDE_VALUES);
    } else {
        const uint16_t crc = crc_of(last.put, values_length);
        if (last.valid || payload[DECIDE_CRC] != (uint8_t)crc || payload[DECIDE_CRC + 1] != (uint8_t)(crc >> 8)) {
            answer_error(reply, request, ERROR_BAD_PARTS, 0);
            return;
        }
        memcpy(reply->bytes, last.put, values_length); /* the decision is about to take their place */
        decide(net, request, reply->bytes);
    }
    begin(reply, request, TYPE_DECIDE | TYPE_REPLY);
    put_decision(reply, net, (payload[DECIDE_FLAGS] & DECIDE_WANTS_LOGITS) != 0 ? net->actions : 0);
}

static void answer_put(struct frame_writer *reply, const struct frame_reader *request) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t length = frame_payload_length(request) - PUT_BYTES; /* of an empty payload: 255, too much */
    const uint8_t room = sizeof last.put;
    if (length > room || payload[PUT_OFFSET] > room - length) {
        answer_error(reply, request, ERROR_BAD_LENGTH, room);
        return;
    }
    last.valid = false;
    memcpy(last.put + payload[PUT_OFFSET], payload + PUT_BYTES, length);
    begin(reply, request, TYPE_PUT | TYPE_REPLY);
}

/* A part of what DECIDE answers when asked for logits, followed by the CRC of the whole. */
static void answer_get(struct frame_writer *reply, const struct frame_reader *request,
                       const FLASH struct intersection *net) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    if (frame_payload_length(request) != GET_PAYLOAD_LENGTH) {
        answer_error(reply, request, ERROR_BAD_LENGTH, GET_PAYLOAD_LENGTH);
        return;
    }
    if (!is_last(request, payload[GET_SEQUENCE])) {
        answer_error(reply, request, ERROR_BAD_PARTS, 0);
        return;
    }
    begin(reply, request, TYPE_GET | TYPE_REPLY);
    put_decision(reply, net, net->actions);
    uint8_t *whole = reply->bytes + FRAME_AT_PAYLOAD;
    frame_put_u16(reply, crc_of(whole, reply->length - FRAME_AT_PAYLOAD));
    const uint8_t length = reply->length - FRAME_AT_PAYLOAD, offset = payload[GET_OFFSET];
    const uint8_t left = offset < length ? length - offset : 0;
    const uint8_t taken = payload[GET_LENGTH] < left ? payload[GET_LENGTH] : left;
    memmove(whole, whole + offset, taken);
    reply->length = FRAME_AT_PAYLOAD + taken;
}

/* DECIDE, PUT and GET: what takes a session and an intersection */
static void answer_session(struct frame_writer *reply, const struct frame_reader *request, uint8_t type) {
    const uint8_t number = request->bytes[FRAME_AT_INTERSECTION];
    if (!in_session) {
        answer_error(reply, request, ERROR_NO_SESSION, board_reset_cause());
    } else if (number >= POLICY_INTERSECTIONS) {
        answer_error(reply, request, ERROR_BAD_INTERSECTION, POLICY_INTERSECTIONS);
    } else if (type == TYPE_DECIDE) {
        answer_decide(reply, request, &policy_intersections[number]);
    } else if (type == TYPE_PUT) {
        answer_put(reply, request);
    } else {
        answer_get(reply, request, &policy_intersections[number]);
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
    if (type == TYPE_DECIDE || type == TYPE_PUT || type == TYPE_GET) {
        answer_session(reply, request, type);
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
