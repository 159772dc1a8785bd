/* What the chip answers to each request. */
#include "dispatch.h"

#include <string.h>

#include "board.h"
#include "crc.h"
#include "flash_check.h"
#include "infer.h"
#include "policy.h"
#include "stack.h"
#include "uart.h"

#define FIRMWARE_MAJOR 1
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

/* A DECIDE request: flags, count, the values, and with the flag for it the light's state */
#define DECIDE_FLAGS 0
#define DECIDE_COUNT 1
#define DECIDE_VALUES 2
#define DECIDE_WANTS_LOGITS 0x01
#define DECIDE_HAS_LIGHT 0x02
#define DECIDE_WAS_PUT 0x04 /* the CRC of values and light instead of them: PUT has brought them */
#define DECIDE_PUT_LENGTH (DECIDE_VALUES + 2)
#define LIGHT_BYTES 2 /* action in force, seconds that it has been so (255: or more) */
_Static_assert(DECIDE_VALUES + 2 * POLICY_INPUTS_MAX + LIGHT_BYTES <= POLICY_MAX_PAYLOAD, "a DECIDE request must fit a frame");
_Static_assert(7 + 4 * POLICY_ACTIONS_MAX <= POLICY_MAX_PAYLOAD, "a DECIDE reply must fit a frame");
_Static_assert(16 + POLICY_SHA256_BYTES <= POLICY_MAX_PAYLOAD, "a HELLO reply must fit a frame");

/* PUT: offset, then bytes of values and light. GET: sequence of the decision, then offset and length in its answer */
#define PUT_OFFSET 0
#define PUT_BYTES 1
#define GET_SEQUENCE 0
#define GET_OFFSET 1
#define GET_LENGTH 2
#define GET_PAYLOAD_LENGTH 3

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
    uint8_t action; /* what was answered: that of `inferred`, or the one in force before its minimum green is over */
    uint8_t sequence;
    uint8_t intersection;
    uint8_t crc[FRAME_CRC_BYTES];
    uint24 cycles;
} last;

static bool in_session; /* HELLO has been said since the chip started */

/* What the frame in hand turned out to be */
static uint8_t error;
static uint8_t error_detail;

/* The beginning of a HELLO reply */
static const FLASH struct __attribute__((packed)) {
    uint8_t major, minor, kernel, min_green_s;
    uint32_t f_cpu_hz, baud;
    uint8_t intersections, max_payload;
} self = {FIRMWARE_MAJOR, FIRMWARE_MINOR, KERNEL_ID, MIN_GREEN_S, BOARD_F_CPU_HZ, BOARD_BAUD, POLICY_INTERSECTIONS, POLICY_MAX_PAYLOAD};

__attribute__((noinline)) static void count(uint16_t *counter) {
    const uint16_t next = *counter + 1;
    if (next != 0) {
        *counter = next;
    }
}

uint32_t dispatch_decisions(void) {
    return counters.decisions;
}

static void refuse(uint8_t code, uint8_t detail) {
    error = code;
    error_detail = detail;
}

static bool is_last(const struct frame_reader *request, uint8_t sequence) {
    return last.valid && last.sequence == sequence && last.intersection == request->bytes[FRAME_AT_INTERSECTION];
}

static bool is_repeat(const struct frame_reader *request) {
    const uint8_t *crc = request->bytes + request->length - FRAME_CRC_BYTES;
    return is_last(request, request->bytes[FRAME_AT_SEQUENCE]) && last.crc[0] == crc[0] && last.crc[1] == crc[1];
}

static uint8_t light_at(const FLASH struct intersection *net) {
    return FRAME_AT_PAYLOAD + DECIDE_VALUES + 2 * net->inputs;
}

/* Makes a request whose values were put the same that it would have been in one piece; false if they are not those that the
 * request means. The frame's CRC stays its last two bytes: a repeat is known by it.
 */
static bool put_together(struct frame_reader *request, uint8_t length) {
    uint8_t *values = request->bytes + FRAME_AT_PAYLOAD + DECIDE_VALUES;
    uint16_t crc = CRC_INITIAL;
    for (uint8_t i = 0; i < length; i++) {
        crc = crc_update(crc, decision_or_parts.parts[i]);
    }
    crc = crc_update(crc_update(crc, values[0]), values[1]);
    if (last.valid || crc != 0) { /* a decision has taken their place; or these are others */
        return false;
    }
    uint8_t *frame_crc = values + length;
    memmove(frame_crc, values + 2, FRAME_CRC_BYTES);
    memcpy(values, decision_or_parts.parts, length);
    request->length = FRAME_AT_PAYLOAD + DECIDE_VALUES + length + FRAME_CRC_BYTES;
    return true;
}

/* The intersection to be decided; null if the request is refused, or repeats the last one. */
static const FLASH struct intersection *check_decide(struct frame_reader *request, const FLASH struct intersection *net) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t length = frame_payload_length(request), flags = length != 0 ? payload[DECIDE_FLAGS] : 0;
    const bool has_light = (flags & DECIDE_HAS_LIGHT) != 0, was_put = (flags & DECIDE_WAS_PUT) != 0;
    const uint8_t put_length = 2 * net->inputs + (has_light ? LIGHT_BYTES : 0);
    const uint8_t expected = was_put ? DECIDE_PUT_LENGTH : DECIDE_VALUES + put_length;
    if (length != expected || payload[DECIDE_COUNT] != net->inputs) {
        refuse(ERROR_BAD_LENGTH, expected);
    } else if (is_repeat(request)) {
        count(&counters.repeats);
    } else if (was_put && !put_together(request, put_length)) {
        refuse(ERROR_BAD_PARTS, 0);
    } else if (has_light && request->bytes[light_at(net)] >= net->actions) {
        refuse(ERROR_BAD_PHASE, net->actions);
    } else {
        return net;
    }
    return NULL;
}

static void check_put(const struct frame_reader *request) {
    const uint8_t *payload = request->bytes + FRAME_AT_PAYLOAD;
    const uint8_t length = frame_payload_length(request) - PUT_BYTES; /* of an empty payload: 255, too much */
    const uint8_t room = sizeof decision_or_parts.parts;
    if (length > room || payload[PUT_OFFSET] > room - length) {
        refuse(ERROR_BAD_LENGTH, room);
        return;
    }
    last.valid = false;
    memcpy(decision_or_parts.parts + payload[PUT_OFFSET], payload + PUT_BYTES, length);
}

static void check_get(const struct frame_reader *request) {
    if (frame_payload_length(request) != GET_PAYLOAD_LENGTH) {
        refuse(ERROR_BAD_LENGTH, GET_PAYLOAD_LENGTH);
    } else if (!is_last(request, request->bytes[FRAME_AT_PAYLOAD + GET_SEQUENCE])) {
        refuse(ERROR_BAD_PARTS, 0);
    }
}

/* DECIDE, PUT and GET: what takes a sound flash, a session and an intersection */
static const FLASH struct intersection *check_in_session(struct frame_reader *request, uint8_t type) {
    const uint8_t number = request->bytes[FRAME_AT_INTERSECTION];
    if (!flash_is_sound()) {
        refuse(ERROR_FLASH_CORRUPT, 0);
    } else if (!in_session) {
        refuse(ERROR_NO_SESSION, board_reset_cause());
    } else if (number >= POLICY_INTERSECTIONS) {
        refuse(ERROR_BAD_INTERSECTION, POLICY_INTERSECTIONS);
    } else if (type == TYPE_PUT) {
        check_put(request);
    } else if (type == TYPE_GET) {
        check_get(request);
    } else {
        return check_decide(request, &policy_intersections[number]);
    }
    return NULL;
}

static const FLASH struct intersection *check_good(struct frame_reader *request) {
    const uint8_t type = request->bytes[FRAME_AT_TYPE];
    if (type == TYPE_DECIDE || type == TYPE_PUT || type == TYPE_GET) {
        return check_in_session(request, type);
    }
    if (type != TYPE_HELLO && type != TYPE_STATS) {
        refuse(ERROR_UNKNOWN_TYPE, type);
    } else if (frame_payload_length(request) != 0) {
        refuse(ERROR_BAD_LENGTH, 0);
    }
    return NULL;
}

const FLASH struct intersection *dispatch_check(enum frame_status status, struct frame_reader *request) {
    refuse((uint8_t)status, 0);
    if (status == FRAME_BAD_CRC) {
        count(&counters.bad_crc);
    } else if (status >= FRAME_TOO_LONG) {
        count(&counters.malformed);
        if (status == FRAME_TOO_LONG) {
            error_detail = POLICY_MAX_PAYLOAD;
        }
    } else {
        count(&counters.good);
        if (status == FRAME_GOOD) {
            return check_good(request);
        }
        error_detail = FRAME_VERSION;
    }
    return NULL;
}

const uint8_t *dispatch_values(const struct frame_reader *request) {
    return request->bytes + FRAME_AT_PAYLOAD + DECIDE_VALUES;
}

void dispatch_decided(const FLASH struct intersection *net, const struct frame_reader *request, uint24 cycles) {
    last.valid = true;
    last.sequence = request->bytes[FRAME_AT_SEQUENCE];
    last.intersection = request->bytes[FRAME_AT_INTERSECTION];
    last.crc[0] = request->bytes[request->length - 2];
    last.crc[1] = request->bytes[request->length - 1];
    last.cycles = cycles;
    last.action = inferred.action;
    const uint8_t *light = request->bytes + light_at(net);
    const uint8_t least_s = MIN_GREEN_S;
    if ((request->bytes[FRAME_AT_PAYLOAD + DECIDE_FLAGS] & DECIDE_HAS_LIGHT) != 0 && light[1] < least_s) {
        last.action = light[0];
    }
    counters.decisions++;
    if (cycles > counters.cycles_max) {
        counters.cycles_max = cycles;
    }
}

/* The reply repeats the request's sequence and intersection, as far as it got. */
static void begin(const struct frame_reader *request, uint8_t type) {
    const bool has_header = request->length >= FRAME_HEADER_BYTES;
    frame_begin(type, has_header ? request->bytes[FRAME_AT_SEQUENCE] : 0,
                has_header ? request->bytes[FRAME_AT_INTERSECTION] : 0);
}

static void answer_hello(void) {
    last.valid = false;
    in_session = true;
    frame_put_flash((const FLASH uint8_t *)&self, sizeof self);
    frame_put_flash(policy_sha256, POLICY_SHA256_BYTES);
    frame_put(board_reset_cause());
    frame_put(board_boot_count());
}

typedef void (*byte_sink)(uint8_t byte);

/* What DECIDE answers, byte by byte */
static void tell_decision(const struct frame_reader *request, bool with_logits, byte_sink tell) {
    const FLASH struct intersection *net = &policy_intersections[request->bytes[FRAME_AT_INTERSECTION]];
    tell(last.action);
    tell(net->phases[last.action]);
    const uint24 cycles = last.cycles;
    tell((uint8_t)cycles);
    tell((uint8_t)(cycles >> 8));
    tell((uint8_t)(cycles >> 16));
    tell(0);
    const uint8_t logits = with_logits ? net->actions : 0;
    tell(logits);
    for (uint8_t a = 0; a < logits; a++) {
        const int24 logit = inferred.logits[a];
        tell((uint8_t)logit);
        tell((uint8_t)(logit >> 8));
        tell((uint8_t)(logit >> 16));
        tell(logit < 0 ? UINT8_MAX : 0);
    }
}

/* Of GET's answer the part that is asked for, and the CRC of it as a whole */
static struct {
    uint8_t skipped, taken;
    uint16_t crc;
} window;

static void tell_window(uint8_t byte) {
    window.crc = crc_update(window.crc, byte);
    if (window.skipped != 0) {
        window.skipped--;
    } else if (window.taken != 0) {
        window.taken--;
        frame_put(byte);
    }
}

static void answer_get(const struct frame_reader *request) {
    const uint8_t wanted = request->bytes[FRAME_AT_PAYLOAD + GET_LENGTH];
    window.skipped = request->bytes[FRAME_AT_PAYLOAD + GET_OFFSET];
    window.taken = wanted < POLICY_MAX_PAYLOAD ? wanted : POLICY_MAX_PAYLOAD;
    window.crc = CRC_INITIAL;
    tell_decision(request, true, tell_window);
    const uint16_t crc = window.crc;
    tell_window((uint8_t)crc);
    tell_window((uint8_t)(crc >> 8));
}

static void answer_stats(void) {
    counters.ring_overruns = uart_ring_overruns();
    counters.line_errors = uart_line_errors();
    counters.untouched_ram = stack_untouched_bytes();
    counters.static_ram = stack_static_bytes();
    frame_put_bytes(&counters, sizeof counters);
}

void dispatch_answer(const struct frame_reader *request) {
    if (error != ERROR_NONE) {
        begin(request, TYPE_ERROR);
        frame_put(error);
        frame_put(error_detail);
    } else {
        const uint8_t type = request->bytes[FRAME_AT_TYPE];
        begin(request, type | TYPE_REPLY);
        if (type == TYPE_DECIDE) {
            tell_decision(request, (request->bytes[FRAME_AT_PAYLOAD + DECIDE_FLAGS] & DECIDE_WANTS_LOGITS) != 0, frame_put);
        } else if (type == TYPE_GET) {
            answer_get(request);
        } else if (type == TYPE_HELLO) {
            answer_hello();
        } else if (type == TYPE_STATS) {
            answer_stats();
        }
    }
    frame_end();
}
