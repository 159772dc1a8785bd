/* Requests and replies: HELLO, DECIDE, PUT, GET, STATS and typed errors, as in docs/protocol.md. */
#ifndef DISPATCH_H
#define DISPATCH_H

#include "frame.h"
#include "policy.h"

/* Counters of 16 bits, in the order of STATS; those of the range are in range.h. The first are frames by their outcome. */
enum { GOOD_FRAMES, CRC_ERRORS, MALFORMED_FRAMES, RING_OVERRUNS, LINE_ERRORS, REPEATS, UNTOUCHED_RAM, STATIC_RAM, COUNTERS = 10 };

/* All that lives from one request to the next. On the chip Y points to it all the time but in the kernel, so that what lies
 * in its first 64 bytes takes one word of code to read or write; a source file that includes this has no other use of Y.
 */
struct dispatch_state {
    struct { /* as STATS sends them */
        uint32_t decisions; /* computed since boot */
        uint32_t cycles_max;
        uint16_t number[COUNTERS];
    } counters;

    struct { /* the last decision, kept with `inferred` so that a repeated request is answered again without new work */
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
        uint16_t logits_crc;
    } last;

    bool in_session;      /* a HELLO has been received since the chip started */
    uint8_t held_action;  /* in the decision to be made: the action in force that its minimum green holds */
    uint8_t error;        /* of the current frame */
    uint8_t error_detail;
    struct frame_reader request;
};

extern struct dispatch_state dispatch_state;

#ifdef __AVR__
register struct dispatch_state *dispatch __asm__("r28");
#else
#define dispatch (&dispatch_state)
#endif

/* Checks the frame that `dispatch->request` has just completed with `status`. Returns whether a decision is due: then this
 * gives the intersection and its feature values; the decision must go to `inferred`, and its cycles to dispatch_decided.
 */
MUST_USE bool dispatch_check(enum frame_status status);
MUST_USE const uint8_t *dispatch_values(void);
void dispatch_decided(uint24 cycles);
void dispatch_count(uint8_t counter); /* up to 65535 */

static inline const FLASH struct intersection *dispatch_intersection(void) {
    return &policy_intersections[POLICY_INTERSECTIONS > 1 ? dispatch->request.bytes[FRAME_AT_INTERSECTION] : 0];
}

/* Answers the frame that was checked last. */
void dispatch_answer(void);

/* Behind the answer to a decision that was computed: counts it if it has left the integers' range. */
void dispatch_count_range(void);

#endif
