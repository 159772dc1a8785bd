/* What the chip answers to each request. */
#include "dispatch.h"

#include "board.h"
#include "crc.h"
#include "flash_check.h"
#include "infer.h"
#include "policy.h"
#include "stack.h"
#include "uart.h"

#define FIRMWARE_MAJOR 2
#define FIRMWARE_MINOR 0

enum {
    TYPE_HELLO = 0x01,
    TYPE_DECIDE = 0x02,
    TYPE_STATS = 0x03,
    TYPE_PUT = 0x04,
    TYPE_GET = 0x05,
    TYPE_REPLY = 0x80,
    TYPE_ERROR = 0xFF
};

/* Beside those of enum frame_status */
enum error_code {
    ERROR_NONE = FRAME_GOOD,
    ERROR_UNKNOWN_TYPE = 3,
    ERROR_BAD_LENGTH = 4,
    ERROR_BAD_INTERSECTION = 5,
    ERROR_FLASH_CORRUPT = 8,
    ERROR_BAD_PHASE = 9,
    ERROR_NO_SESSION = 10,
    ERROR_BAD_PARTS = 11,
};

/* A DECIDE request: flags, count, the values, and with the flag for it the light's state */
#define DECIDE_FLAGS 0
#define DECIDE_COUNT 1
#define DECIDE_VALUES 2
#define DECIDE_HAS_LIGHT 0x02
#define DECIDE_WAS_PUT 0x04 /* the CRC of values and light instead of them: PUT has brought them */
#define DECIDE_PUT_LENGTH (DECIDE_VALUES + 2)
#define LIGHT_BYTES 2 /* action in force, seconds that it has been so (255: or more) */
_Static_assert(DECIDE_VALUES + 2 * POLICY_INPUTS_MAX + LIGHT_BYTES <= POLICY_MAX_PAYLOAD, "a DECIDE request must fit a frame");
_Static_assert(LOGIT_BYTES * POLICY_ACTIONS_MAX <= POLICY_MAX_PAYLOAD, "a GET reply must fit a frame");
_Static_assert(16 + POLICY_SHA256_BYTES <= POLICY_MAX_PAYLOAD, "a HELLO reply must fit a frame");

/* PUT: offset, then bytes of values and light. GET: sequence of the decision, then offset and length in its logits */
#define PUT_OFFSET 0
#define PUT_BYTES 1
#define GET_SEQUENCE 0
#define GET_OFFSET 1
#define GET_LENGTH 2
#define GET_PAYLOAD_LENGTH 3

#define ALONE __attribute__((noinline)) /* where avr-gcc would make more of it by inlining */

/* As STATS sends them */
static struct {
    uint32_t decisions;
    uint32_t cycles_max;
    uint16_t good;
    uint16_t bad_crc;
    uint16_t malformed;
    uint16_t ring_overruns;
    uint16_t line_errors;
    uint16_t repeats;
    uint16_t untouched_ram;
    uint16_t static_ram;
} counters;

/* The last decision, kept with `inferred` so that a repeated request is answered again without new work */
static struct {
    bool valid;
    uint8_t sequence;
    uint8_t intersection;
    uint8_t crc[FRAME_CRC_BYTES];
    struct __attribute__((packed)) {
        uint8_t action; /* that of `inferred`, or the one in force before its minimum green is over */
        uint8_t phase;
        uint8_t logits; /* how many */
        uint24 cycles;
    } answer; /* as DECIDE's reply begins */
} last;
#define ANSWER_BYTES 6

static uint8_t held_action; /* in the decision to be made: the action in force that its minimum green holds */
#define NOTHING_HELD UINT8_MAX

static bool in_session; /* HELLO has been said since the chip started */

/* What the frame in hand turned out to be */
static uint8_t error;
static uint8_t error_detail;
static bool must_decide;

/* The beginning of a HELLO reply */
static const FLASH struct __attribute__((packed)) {
    uint8_t major, minor, kernel, min_green_s;
    uint32_t f_cpu_hz, baud;
    uint8_t intersections, max_payload;
} self = {FIRMWARE_MAJOR, FIRMWARE_MINOR, KERNEL_ID, MIN_GREEN_S, BOARD_F_CPU_HZ, BOARD_BAUD, POLICY_INTERSECTIONS, POLICY_MAX_PAYLOAD};

ALONE static void count(uint16_t *counter) {
    const uint16_t next = *counter + 1;
    if (next != 0) {
        *counter = next;
    }
}

uint32_t dispatch_decisions(void) {
    return counters.decisions;
}

/* Whether the last decision is the request's intersection's, and has this sequence number */
ALONE static bool is_last(const struct frame_reader *request, uint8_t sequence) {
    return last.sequence == sequence && last.intersection == request->bytes[FRAME_AT_INTERSECTION] && last.valid;
}

static bool is_repeat(const struct frame_reader *request) {
    const uint8_t *crc = request->bytes + request->length - FRAME_CRC_BYTES;
    return last.crc[0] == crc[0] && last.crc[1] == crc[1] && is_last(request, request->bytes[FRAME_AT_SEQUENCE]);
}

/* Whether what was put, `length` bytes, is what the request means */
static bool is_put(uint8_t length, const uint8_t *wanted_crc) {
    const uint16_t crc = crc_of(decision_or_parts.parts, length);
    return (uint8_t)crc == wanted_crc[0] && (uint8_t)(crc >> 8) == wanted_crc[1] && !last.valid; /* a decision takes its place */
}

/* What follows returns an enum error_code, with its detail in `error_detail`; ERROR_NONE for a request that can be answered. */

ALONE static uint8_t check_decide(const struct frame_reader *request, const FLASH struct intersection *net) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t length = frame_payload_length(request), least_s = MIN_GREEN_S, inputs = net->inputs;
    const uint8_t flags = length != 0 ? payload[DECIDE_FLAGS] : 0;
    const uint8_t *light = dispatch_values(request) + 2 * inputs;
    const bool was_put = (flags & DECIDE_WAS_PUT) != 0;
    uint8_t put_length = 2 * inputs;
    if ((flags & DECIDE_HAS_LIGHT) != 0) {
        put_length += LIGHT_BYTES;
    }
    error_detail = was_put ? DECIDE_PUT_LENGTH : DECIDE_VALUES + put_length;
    if (length != error_detail || payload[DECIDE_COUNT] != inputs) {
        return ERROR_BAD_LENGTH;
    }
    if (is_repeat(request)) {
        count(&counters.repeats);
        return ERROR_NONE;
    }
    if (was_put && !is_put(put_length, payload + DECIDE_VALUES)) {
        error_detail = 0;
        return ERROR_BAD_PARTS;
    }
    held_action = NOTHING_HELD;
    if ((flags & DECIDE_HAS_LIGHT) != 0) {
        error_detail = net->actions;
        if (light[0] >= error_detail) {
            return ERROR_BAD_PHASE;
        }
        if (light[1] < least_s) {
            held_action = light[0];
        }
    }
    must_decide = true;
    return ERROR_NONE;
}

static uint8_t check_put(const uint8_t *payload, uint8_t length) {
    const uint8_t room = sizeof decision_or_parts.parts;
    length -= PUT_BYTES; /* of an empty payload: 255, too much */
    error_detail = room;
    if (length > room || payload[PUT_OFFSET] > (uint8_t)(room - length)) {
        return ERROR_BAD_LENGTH;
    }
    last.valid = false;
    uint8_t *part = decision_or_parts.parts + payload[PUT_OFFSET];
    for (; length != 0; length--) {
        *part++ = *++payload;
    }
    return ERROR_NONE;
}

static uint8_t check_get(const struct frame_reader *request, uint8_t room) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t wanted = payload[GET_LENGTH];
    error_detail = GET_PAYLOAD_LENGTH;
    if (frame_payload_length(request) != GET_PAYLOAD_LENGTH) {
        return ERROR_BAD_LENGTH;
    }
    error_detail = room;
    if (wanted > room || payload[GET_OFFSET] > (uint8_t)(room - wanted)) {
        return ERROR_BAD_LENGTH;
    }
    error_detail = 0;
    return is_last(request, payload[GET_SEQUENCE]) ? ERROR_NONE : ERROR_BAD_PARTS;
}

static uint8_t check_good(const struct frame_reader *request) {
    const uint8_t type = request->bytes[FRAME_AT_TYPE], number = request->bytes[FRAME_AT_INTERSECTION];
    error_detail = type;
    if (type == 0 || type > TYPE_GET) {
        return ERROR_UNKNOWN_TYPE;
    }
    error_detail = 0;
    if (type == TYPE_HELLO || type == TYPE_STATS) {
        return frame_payload_length(request) != 0 ? ERROR_BAD_LENGTH : ERROR_NONE;
    }
    if (flash_fault != 0) { /* from here on: what takes a sound flash, a session and an intersection */
        return ERROR_FLASH_CORRUPT;
    }
    if (!in_session) {
        error_detail = board_reset_cause();
        return ERROR_NO_SESSION;
    }
    if (number >= POLICY_INTERSECTIONS) {
        error_detail = POLICY_INTERSECTIONS;
        return ERROR_BAD_INTERSECTION;
    }
    const FLASH struct intersection *net = &policy_intersections[number];
    if (type == TYPE_DECIDE) {
        return check_decide(request, net);
    }
    return type == TYPE_PUT ? check_put(request->bytes + FRAME_AT_PAYLOAD, frame_payload_length(request))
                            : check_get(request, LOGIT_BYTES * net->actions);
}

const FLASH struct intersection *dispatch_check(enum frame_status status, const struct frame_reader *request) {
    uint16_t *counter = &counters.good;
    must_decide = false;
    error = (uint8_t)status;
    error_detail = 0;
    if (status == FRAME_GOOD) {
        error = check_good(request);
    } else if (status == FRAME_BAD_VERSION) {
        error_detail = FRAME_VERSION;
    } else {
        counter = &counters.malformed;
        if (status == FRAME_BAD_CRC) {
            counter = &counters.bad_crc;
        } else if (status == FRAME_TOO_LONG) {
            error_detail = POLICY_MAX_PAYLOAD;
        }
    }
    count(counter);
    return must_decide ? &policy_intersections[request->bytes[FRAME_AT_INTERSECTION]] : NULL;
}

const uint8_t *dispatch_values(const struct frame_reader *request) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    return (payload[DECIDE_FLAGS] & DECIDE_WAS_PUT) != 0 ? decision_or_parts.parts : payload + DECIDE_VALUES;
}

void dispatch_decided(const FLASH struct intersection *net, const struct frame_reader *request, uint24 cycles) {
    last.valid = true;
    last.sequence = request->bytes[FRAME_AT_SEQUENCE];
    last.intersection = request->bytes[FRAME_AT_INTERSECTION];
    const uint8_t *crc = request->bytes + request->length - FRAME_CRC_BYTES;
    last.crc[0] = crc[0];
    last.crc[1] = crc[1];
    const uint8_t action = held_action != NOTHING_HELD ? held_action : inferred.action;
    last.answer.action = action;
    last.answer.phase = net->phases[action];
    last.answer.logits = net->actions;
    last.answer.cycles = cycles;
    counters.decisions++;
    if (cycles > counters.cycles_max) {
        counters.cycles_max = cycles;
    }
}

static void answer_hello(void) {
    last.valid = false;
    in_session = true;
    frame_put_flash((const FLASH uint8_t *)&self, sizeof self);
    frame_put_flash(policy_sha256, POLICY_SHA256_BYTES);
    frame_put(board_reset_cause());
    frame_put(board_boot_count());
}

/* The CRC of the logits stands for them; it is reckoned while the bytes before it are on their way. */
static void answer_decide(uint8_t logits_length) {
    frame_put_bytes(&last.answer, ANSWER_BYTES);
    const uint16_t crc = crc_of(inferred_logit_bytes(), logits_length);
    frame_put_bytes(&crc, sizeof crc);
}

static void answer_get(const uint8_t *payload) {
    frame_put_bytes(inferred_logit_bytes() + payload[GET_OFFSET], payload[GET_LENGTH]);
}

static void answer_stats(void) {
    counters.ring_overruns = uart_counters.ring_overruns;
    counters.line_errors = uart_counters.line_errors;
    counters.untouched_ram = stack_untouched_bytes();
    counters.static_ram = stack_static_bytes();
    frame_put_bytes(&counters, sizeof counters);
}

void dispatch_answer(const struct frame_reader *request) {
    const uint8_t *bytes = request->bytes;
    const uint8_t type = bytes[FRAME_AT_TYPE];
    const bool refused = error != ERROR_NONE;
    frame_begin(refused ? TYPE_ERROR : type | TYPE_REPLY, bytes + FRAME_AT_SEQUENCE);
    if (refused) {
        frame_put(error);
        frame_put(error_detail);
    } else if (type == TYPE_DECIDE) {
        answer_decide(LOGIT_BYTES * last.answer.logits);
    } else if (type == TYPE_GET) {
        answer_get(bytes + FRAME_AT_PAYLOAD);
    } else if (type == TYPE_HELLO) {
        answer_hello();
    } else if (type == TYPE_STATS) {
        answer_stats();
    }
    frame_end();
}
