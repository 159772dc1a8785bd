/* A DECIDE request's packed values made int16 (docs/protocol.md): a base, int8; then each value as half a byte above it, or more. */
#ifndef UNPACK_H
#define UNPACK_H

#include "types.h"

/* From `packed` up to `end`, into decision_or_parts.parts. Returns 0 if just so many values are there. What it reads beyond `end`, four
 * bytes at most, must be there, too. */
MUST_USE uint8_t unpack(const uint8_t *packed, const uint8_t *end, uint8_t values);

#endif
