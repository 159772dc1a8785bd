/* Requests and replies: HELLO, DECIDE, STATS and typed errors, as in docs/protocol.md. */
#ifndef DISPATCH_H
#define DISPATCH_H

#include "frame.h"

/* Answers the frame that the reader has just completed with `status`. */
void dispatch(enum frame_status status, const struct frame_reader *request, struct frame_writer *reply);

MUST_USE uint32_t dispatch_decisions(void); /* computed since boot */

#endif
