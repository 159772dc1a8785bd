/* Requests and replies: HELLO, DECIDE, PUT, GET, STATS and typed errors, as in docs/protocol.md. */
#ifndef DISPATCH_H
#define DISPATCH_H

#include "frame.h"
#include "policy.h"

/* Judges the frame that the reader has just completed with `status`. Returns the intersection to be decided; null: none. */
MUST_USE const FLASH struct intersection *dispatch_check(enum frame_status status, const struct frame_reader *request);

/* Where the decision has its feature values; and what was decided goes to `inferred`, with the cycles it took. */
MUST_USE const uint8_t *dispatch_values(const struct frame_reader *request);
void dispatch_decided(const FLASH struct intersection *net, const struct frame_reader *request, uint24 cycles);

/* Answers the frame that was judged last. */
void dispatch_answer(const struct frame_reader *request);

MUST_USE uint32_t dispatch_decisions(void); /* computed since boot */

#endif
