/* The chip's answer to each request. */
#include "dispatch.h"

#include "board.h"
#include "crc.h"
#include "flash_check.h"
#include "infer.h"
#include "mode.h"
#include "policy.h"
#include "range.h"
#include "stack.h"
#include "uart.h"
#include "unpack.h"

#if MODE != MODE_ANSWER
#include "light/events.h"
#include "light/report.h"
#include "light/resets.h"
#endif

#define FIRMWARE_MAJOR 2
#define FIRMWARE_MINOR 2

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

/* A DECIDE request: flags, count, the values, and with the flag for it the light's state. Values are int16; packed ones are made so
 * where PUT would have brought them.
 */
#define DECIDE_FLAGS 0
#define DECIDE_COUNT 1
#define DECIDE_VALUES 2
#define DECIDE_HAS_LIGHT 0x02
#define DECIDE_WAS_PUT 0x04 /* the CRC of values and light instead of them: PUT has brought them */
#define DECIDE_IS_PACKED 0x08 /* means nothing beside the flag above */
#define DECIDE_FROM_PARTS (DECIDE_WAS_PUT | DECIDE_IS_PACKED) /* where the values are */
#define DECIDE_PUT_LENGTH (DECIDE_VALUES + 2)
#define LIGHT_BYTES 2 /* action in force, seconds that it has been so (255: or more) */
_Static_assert(DECIDE_VALUES + 2 * POLICY_INPUTS_MAX + LIGHT_BYTES <= POLICY_MAX_PAYLOAD, "a DECIDE request must fit a frame");
_Static_assert(LOGIT_BYTES * POLICY_ACTIONS_MAX <= POLICY_MAX_PAYLOAD, "a GET reply must fit a frame");
#define HELLO_BYTES (23 + POLICY_SHA256_BYTES + (MODE == MODE_ANSWER ? 0 : 9))
_Static_assert(HELLO_BYTES <= POLICY_MAX_PAYLOAD, "a HELLO reply must fit a frame");

/* PUT: offset, then bytes of values and light. GET: sequence of the decision, then offset and length in its logits */
#define PUT_OFFSET 0
#define PUT_BYTES 1
#define GET_SEQUENCE 0
#define GET_OFFSET 1
#define GET_LENGTH 2
#define GET_PAYLOAD_LENGTH 3

#define ALONE __attribute__((noinline)) /* where inlining by avr-gcc would make the code larger */

struct dispatch_state dispatch_state;

#define ANSWER_BYTES 6
_Static_assert(offsetof(struct dispatch_state, last.logits_crc) <= 62, "what a word of code reaches");
_Static_assert(RANGE_BEYOND == STATIC_RAM + 1 && RANGE_AT_LIMIT == COUNTERS - 1, "the last two of STATS");

#define NOTHING_HELD UINT8_MAX
#define DECISION_DUE UINT8_MAX /* in place of an error */

/* How a HELLO reply begins. After linking firmware/generator/flash_crc.py writes which build it is; 0 on the host. */
const FLASH struct __attribute__((packed)) {
    uint8_t major, minor, kernel, min_green_s;
    uint32_t f_cpu_hz, baud;
    uint8_t intersections, max_payload, policy_sha256[POLICY_SHA256_BYTES];
    uint32_t build_id; /* a hash of the program's bytes */
    uint16_t program_bytes;
} firmware_self = {FIRMWARE_MAJOR, FIRMWARE_MINOR,       KERNEL_ID,          MIN_GREEN_S,   BOARD_F_CPU_HZ,
                   BOARD_BAUD,     POLICY_INTERSECTIONS, POLICY_MAX_PAYLOAD, POLICY_SHA256, 0, 0};

ALONE void dispatch_count(uint8_t counter) {
    uint16_t *number = dispatch->counters.number + counter;
    const uint16_t next = *number + 1;
    if (next != 0) {
        *number = next;
    }
}

const uint8_t *dispatch_values(void) {
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    return (payload[DECIDE_FLAGS] & DECIDE_FROM_PARTS) != 0 ? decision_or_parts.parts : payload + DECIDE_VALUES;
}

static const uint8_t *request_crc(void) {
    return dispatch->request.bytes + dispatch->request.length - FRAME_CRC_BYTES;
}

/* Whether the last decision is the request's intersection's, and has this sequence number */
static bool is_last(uint8_t sequence) {
    return dispatch->last.sequence == sequence && dispatch->last.intersection == dispatch->request.bytes[FRAME_AT_INTERSECTION] &&
           dispatch->last.valid;
}

static bool is_repeat(void) {
    const uint8_t *crc = request_crc();
    return dispatch->last.crc[0] == crc[0] && dispatch->last.crc[1] == crc[1] && is_last(dispatch->request.bytes[FRAME_AT_SEQUENCE]);
}

/* Whether what was put, `length` bytes, is what the request means */
static bool is_put(uint8_t length, const uint8_t *wanted_crc) {
    const uint16_t wanted = wanted_crc[0] | (uint16_t)wanted_crc[1] << 8;
    return crc_of(decision_or_parts.parts, length) == wanted && !dispatch->last.valid; /* else it is overwritten */
}

/* What follows returns an enum error_code, with its detail in the state; ERROR_NONE for a request that can be answered. */

static uint8_t check_decide(uint8_t length, const FLASH struct intersection *net) {
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    const uint8_t least_s = MIN_GREEN_S, inputs = net->inputs;
    const uint8_t flags = length != 0 ? payload[DECIDE_FLAGS] : 0;
    uint8_t put_length = 2 * inputs;
    if ((flags & DECIDE_HAS_LIGHT) != 0) {
        put_length += LIGHT_BYTES;
    }
    const uint8_t *light = payload + length - LIGHT_BYTES;
    if ((flags & DECIDE_WAS_PUT) != 0) {
        light = decision_or_parts.parts + 2 * inputs;
    }
    dispatch->error_detail = (flags & DECIDE_WAS_PUT) != 0 ? DECIDE_PUT_LENGTH : DECIDE_VALUES + put_length;
    if ((length != dispatch->error_detail && (flags & DECIDE_FROM_PARTS) != DECIDE_IS_PACKED) || payload[DECIDE_COUNT] != inputs) {
        return ERROR_BAD_LENGTH;
    }
    if (is_repeat()) {
        dispatch_count(REPEATS);
        return ERROR_NONE;
    }
    if ((flags & DECIDE_WAS_PUT) != 0 && !is_put(put_length, payload + DECIDE_VALUES)) {
        dispatch->error_detail = 0;
        return ERROR_BAD_PARTS;
    }
    if ((flags & DECIDE_FROM_PARTS) == DECIDE_IS_PACKED) {
        dispatch->last.valid = false;
        if (unpack(payload + DECIDE_VALUES, (flags & DECIDE_HAS_LIGHT) != 0 ? light : light + LIGHT_BYTES, inputs) != 0) {
            return ERROR_BAD_LENGTH;
        }
    }
    dispatch->held_action = NOTHING_HELD;
    if ((flags & DECIDE_HAS_LIGHT) != 0) {
        dispatch->error_detail = net->actions;
        if (light[0] >= dispatch->error_detail) {
            return ERROR_BAD_PHASE;
        }
        if (light[1] < least_s) {
            dispatch->held_action = light[0];
        }
    }
    if ((flags & DECIDE_FROM_PARTS) != 0) { /* now: the decision overwrites its values */
        range_count_inputs(net, decision_or_parts.parts);
    }
    return DECISION_DUE;
}

/* Whether a part of `length` bytes, from `offset` on, lies in `room` bytes */
ALONE static uint8_t fits(uint8_t offset, uint8_t length, uint8_t room) {
    dispatch->error_detail = room;
    return length <= room && offset <= (uint8_t)(room - length);
}

static uint8_t check_put(uint8_t length) {
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    length -= PUT_BYTES; /* of an empty payload: 255, too much */
    if (!fits(payload[PUT_OFFSET], length, sizeof decision_or_parts.parts)) {
        return ERROR_BAD_LENGTH;
    }
    dispatch->last.valid = false;
    uint8_t *part = decision_or_parts.parts + payload[PUT_OFFSET];
    for (; length != 0; length--) {
        *part++ = *++payload;
    }
    return ERROR_NONE;
}

static uint8_t check_get(uint8_t length, uint8_t room) {
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    dispatch->error_detail = GET_PAYLOAD_LENGTH;
    if (length != GET_PAYLOAD_LENGTH || !fits(payload[GET_OFFSET], payload[GET_LENGTH], room)) {
        return ERROR_BAD_LENGTH;
    }
    dispatch->error_detail = 0;
    return is_last(payload[GET_SEQUENCE]) ? ERROR_NONE : ERROR_BAD_PARTS;
}

static uint8_t check_good(void) {
    const uint8_t type = dispatch->request.bytes[FRAME_AT_TYPE], length = frame_payload_length(&dispatch->request);
    dispatch->error_detail = type;
    if (type == 0 || type > TYPE_GET) {
        return ERROR_UNKNOWN_TYPE;
    }
    dispatch->error_detail = 0;
    if (type == TYPE_HELLO || type == TYPE_STATS) {
        return length != 0 ? ERROR_BAD_LENGTH : ERROR_NONE;
    }
    if (MODE == MODE_ALONE) {
        dispatch->error_detail = type;
        return ERROR_UNKNOWN_TYPE; /* it decides by itself */
    }
    if (!flash_is_sound()) { /* from here on: what takes a sound flash, a session and an intersection */
        return ERROR_FLASH_CORRUPT;
    }
    if (!dispatch->in_session) {
        dispatch->error_detail = boot.reset_cause;
        return ERROR_NO_SESSION;
    }
    if (dispatch->request.bytes[FRAME_AT_INTERSECTION] >= POLICY_INTERSECTIONS) {
        dispatch->error_detail = POLICY_INTERSECTIONS;
        return ERROR_BAD_INTERSECTION;
    }
    const FLASH struct intersection *net = dispatch_intersection();
    if (type == TYPE_DECIDE) {
        return check_decide(length, net);
    }
    return type == TYPE_PUT ? check_put(length) : check_get(length, LOGIT_BYTES * net->actions);
}

bool dispatch_check(enum frame_status status) {
    uint8_t outcome = GOOD_FRAMES;
    uint8_t error = (uint8_t)status;
    dispatch->error_detail = 0;
    if (status == FRAME_GOOD) {
        error = check_good();
    } else if (status == FRAME_BAD_VERSION) {
        dispatch->error_detail = FRAME_VERSION;
    } else {
        outcome = MALFORMED_FRAMES;
        if (status == FRAME_BAD_CRC) {
            outcome = CRC_ERRORS;
        } else if (status == FRAME_TOO_LONG) {
            dispatch->error_detail = POLICY_MAX_PAYLOAD;
        }
    }
    dispatch_count(outcome);
    dispatch->error = error;
    if (error != DECISION_DUE) {
        return false;
    }
    dispatch->counters.decisions++;
    return true;
}

void dispatch_decided(uint24 cycles) {
    dispatch->error = ERROR_NONE;
    dispatch->last.answer.cycles = cycles;
    if (cycles > (uint24)dispatch->counters.cycles_max) {
        dispatch->counters.cycles_max = cycles;
    }
    const uint8_t *crc = request_crc();
    dispatch->last.crc[0] = crc[0];
    dispatch->last.crc[1] = crc[1];
    dispatch->last.valid = true;
    dispatch->last.sequence = dispatch->request.bytes[FRAME_AT_SEQUENCE];
    dispatch->last.intersection = dispatch->request.bytes[FRAME_AT_INTERSECTION];
    const uint8_t action = dispatch->held_action != NOTHING_HELD ? dispatch->held_action : inferred.action;
    const FLASH struct intersection *net = dispatch_intersection();
    dispatch->last.answer.action = action;
    dispatch->last.answer.phase = net->phases[action];
    dispatch->last.answer.logits = net->actions;
}

static void answer_hello(void) {
    dispatch->last.valid = false;
    dispatch->in_session = true;
    frame_put_flash((const FLASH uint8_t *)&firmware_self, sizeof firmware_self);
    frame_put_bytes(&boot, sizeof boot);
#if MODE != MODE_ANSWER
    static const FLASH uint8_t mode = MODE;
    frame_put_flash(&mode, sizeof mode);
    frame_put_bytes(&resets, offsetof(struct resets, recent));
#endif
}

/* The CRC of the logits stands for them; it is computed while the bytes before it are being sent. */
static void answer_decide(void) {
    frame_put_bytes(&dispatch->last.answer, ANSWER_BYTES);
    dispatch->last.logits_crc = crc_of(inferred_logit_bytes(), LOGIT_BYTES * dispatch->last.answer.logits);
    frame_put_bytes(&dispatch->last.logits_crc, sizeof dispatch->last.logits_crc);
}

static void answer_get(void) {
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    frame_put_bytes(inferred_logit_bytes() + payload[GET_OFFSET], payload[GET_LENGTH]);
}

static void answer_stats(void) {
    uint16_t *number = dispatch->counters.number;
    number[RING_OVERRUNS] = uart_counters.ring_overruns;
    number[LINE_ERRORS] = uart_counters.line_errors;
    number[UNTOUCHED_RAM] = stack_untouched_bytes();
    number[STATIC_RAM] = stack_static_bytes();
    frame_put_bytes(&dispatch->counters, sizeof dispatch->counters);
#if MODE != MODE_ANSWER
    frame_put_bytes(&events_lost, sizeof events_lost);
    frame_put_bytes(&light_report, sizeof light_report);
#endif
}

void dispatch_answer(void) {
    const uint8_t type = dispatch->request.bytes[FRAME_AT_TYPE];
    const bool refused = dispatch->error != ERROR_NONE;
    frame_begin(refused ? TYPE_ERROR : type | TYPE_REPLY, dispatch->request.bytes + FRAME_AT_SEQUENCE);
    if (refused) {
        frame_put_bytes(&dispatch->error, 2); /* and its detail */
    } else if (type == TYPE_DECIDE) {
        answer_decide();
    } else if (type == TYPE_GET) {
        answer_get();
    } else if (type == TYPE_HELLO) {
        answer_hello();
    } else if (type == TYPE_STATS) {
        answer_stats();
    }
    frame_end();
}

void dispatch_count_range(void) {
    const FLASH struct intersection *net = dispatch_intersection();
    const uint8_t *payload = dispatch->request.bytes + FRAME_AT_PAYLOAD;
    if ((payload[DECIDE_FLAGS] & DECIDE_FROM_PARTS) == 0) {
        range_count_inputs(net, payload + DECIDE_VALUES);
    }
    range_count_units(net);
}
