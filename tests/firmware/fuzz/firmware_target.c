/* The firmware's frame reader and dispatcher under hostile bytes, on this machine with sanitizers.
 *
 * An input's first byte says what the rest is: 0, bytes on the line; else frames, each one's length in front, which get their
 * CRC and their COBS here, so that they reach the dispatcher. Whatever it holds: each reply is a sound frame within its bounds, a DECIDE's phase is
 * one of the policy's, and a good frame behind it is answered within two frames (the first may close what the input left open).
 *
 * With libFuzzer this is its target; with -DSTANDALONE=1 it has a main that makes inputs itself: `target SEED INPUTS`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "dispatch.h"
#include "frame.h"
#include "infer.h"
#include "policy.h"
#include "uart.h"

#define REQUIRE(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

enum { HELLO = 0x01, DECIDE_REPLY = 0x82, HELLO_REPLY = 0x81, ERROR_REPLY = 0xFF };

static struct frame_reader echo;
static uint64_t frames, good_frames, errors;

/* The line: what frame.c puts on it */
static uint8_t line[FRAME_WIRE_BYTES_MAX];
static size_t line_length;

static void fail(const char *condition, int line) {
    fprintf(stderr, "line %d: %s\n", line, condition);
    abort();
}

uint8_t uart_put(uint8_t byte) {
    REQUIRE(line_length < sizeof line);
    line[line_length] = byte;
    return (uint8_t)line_length++;
}

void uart_set(uint8_t place, uint8_t byte) {
    REQUIRE(place < line_length);
    line[place] = byte;
}

void uart_release(void) {
}

volatile struct uart_counters uart_counters;
struct boot boot;

static bool knows_phase(uint8_t phase) {
    for (unsigned i = 0; i < POLICY_INTERSECTIONS; i++) {
        for (unsigned a = 0; a < policy_intersections[i].actions; a++) {
            if (policy_intersections[i].phases[a] == phase) {
                return true;
            }
        }
    }
    return false;
}

static void check_reply(void) {
    enum frame_status status = FRAME_INCOMPLETE;
    frame_reader_reset(&echo);
    REQUIRE(line_length > 0 && memchr(line, 0, line_length) == line + line_length - 1);
    for (size_t i = 0; i < line_length; i++) {
        status = frame_reader_push(&echo, line[i]);
    }
    REQUIRE(status == FRAME_GOOD);
    const uint8_t type = echo.bytes[FRAME_AT_TYPE];
    REQUIRE((type & 0x80) != 0);
    errors += type == ERROR_REPLY;
    if (type == DECIDE_REPLY) {
        REQUIRE(knows_phase(echo.bytes[FRAME_AT_PAYLOAD + 1]));
    }
}

/* As firmware/src/main.c has it. */
static void hear(uint8_t byte) {
    const enum frame_status status = frame_reader_push(&dispatch->request, byte);
    if (status == FRAME_INCOMPLETE) {
        return;
    }
    frames++;
    good_frames += status == FRAME_GOOD;
    if (dispatch_check(status)) {
        infer(dispatch_intersection(), dispatch_values());
        dispatch_decided(0);
    }
    line_length = 0;
    dispatch_answer();
    frame_reader_reset(&dispatch->request);
    check_reply();
}

/* A frame from this end, which frame.c makes too. */
static void send_frame(const uint8_t *content, size_t length) {
    uint8_t encoded[FRAME_WIRE_BYTES_MAX];
    line_length = 0;
    frame_begin(content[FRAME_AT_TYPE], content + FRAME_AT_SEQUENCE);
    frame_put_bytes(content + FRAME_AT_PAYLOAD, (uint8_t)(length - FRAME_AT_PAYLOAD));
    frame_end();
    const size_t encoded_length = line_length;
    memcpy(encoded, line, encoded_length);
    for (size_t i = 0; i < encoded_length; i++) {
        hear(encoded[i]);
    }
}

static void greet(void) {
    static const uint8_t hello[FRAME_HEADER_BYTES] = {FRAME_VERSION, HELLO, 7, 0};
    send_frame(hello, sizeof hello);
}

static void hear_frames(const uint8_t *data, size_t size) {
    uint8_t content[FRAME_HEADER_BYTES + POLICY_MAX_PAYLOAD];
    while (size > 0) {
        size_t length = *data++;
        size--;
        length = length < size ? length : size;
        memset(content, 0, FRAME_HEADER_BYTES);
        const size_t taken = length < sizeof content ? length : sizeof content;
        memcpy(content, data, taken);
        data += length;
        size -= length;
        send_frame(content, taken < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES : taken);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] != 0) {
        hear_frames(data + 1, size - 1);
    } else {
        for (size_t i = 1; i < size; i++) {
            hear(data[i]);
        }
    }
    greet();
    if (echo.bytes[FRAME_AT_TYPE] != HELLO_REPLY) { /* the input's open end has swallowed it */
        greet();
    }
    REQUIRE(echo.bytes[FRAME_AT_TYPE] == HELLO_REPLY && echo.bytes[FRAME_AT_SEQUENCE] == 7);
    return 0;
}

static void report(void) {
    fprintf(stderr, "frames heard: %" PRIu64 ", good: %" PRIu64 ", answered with an error: %" PRIu64 "\n", frames, good_frames,
            errors);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    frame_reader_reset(&dispatch->request);
    frame_reader_reset(&echo);
    atexit(report);
    return 0;
}

#if STANDALONE
#define INPUT_BYTES 512

static uint64_t state;

static uint32_t random_below(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

static uint8_t input[INPUT_BYTES];
static size_t input_size;

static void put_byte(uint8_t byte) {
    if (input_size < INPUT_BYTES) {
        input[input_size++] = byte;
    }
}

/* A frame as it should be, of any type and with any payload, and then some of its bytes changed. */
static void make_frame(void) {
    const size_t begin = input_size;
    line_length = 0;
    const uint8_t type = (uint8_t)(random_below(8) != 0 ? 1 + random_below(5) : random_below(256));
    const uint8_t address[] = {(uint8_t)random_below(4), (uint8_t)random_below(POLICY_INTERSECTIONS + 1)};
    frame_begin(type, address);
    const uint32_t length = random_below(3) == 0 ? 2 + 2 * POLICY_INPUTS_MAX : random_below(POLICY_MAX_PAYLOAD + 1);
    for (uint32_t i = 0; i < length; i++) {
        const uint8_t byte = i == 1 && random_below(2) == 0 ? POLICY_INPUTS_MAX : (uint8_t)random_below(256);
        frame_put_bytes(&byte, sizeof byte);
    }
    frame_end();
    for (size_t i = 0; i < line_length; i++) {
        put_byte(line[i]);
    }
    for (uint32_t changes = random_below(3); changes > 0 && input_size > begin; changes--) {
        const size_t at = begin + random_below((uint32_t)(input_size - begin));
        switch (random_below(3)) {
        case 0:
            input[at] = (uint8_t)random_below(256);
            break;
        case 1:
            memmove(input + at, input + at + 1, input_size - at - 1);
            input_size--;
            break;
        default:
            if (input_size < INPUT_BYTES) {
                memmove(input + at + 1, input + at, input_size - at);
                input_size++;
            }
        }
    }
}

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    state = strtoull(argv[1], NULL, 10);
    const unsigned long inputs = strtoul(argv[2], NULL, 10);
    (void)LLVMFuzzerInitialize(NULL, NULL);
    for (unsigned long i = 0; i < inputs; i++) {
        input_size = 1; /* the first byte stays 0 */
        for (uint32_t count = 1 + random_below(4); count > 0; count--) {
            make_frame();
        }
        (void)LLVMFuzzerTestOneInput(input, input_size);
    }
    return 0;
}
#endif
