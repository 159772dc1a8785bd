/* What has left the integers' range in a decision (model/policy/integer.py): judged when its answer is on its way. */
#ifndef RANGE_H
#define RANGE_H

/* The counters (dispatch.h) of decisions computed with an input beyond its range, and with a unit at its limit */
#define RANGE_BEYOND 8
#define RANGE_AT_LIMIT 9

#ifndef __ASSEMBLER__
#include "policy.h"

/* Each counts the decision if it is so. The first: a value is beyond its feature's range; `values` as for infer(). The second:
 * a unit of layer 1 or 2 is at its limit, in the inference before. */
void range_count_inputs(const FLASH struct intersection *net, const uint8_t *values);
void range_count_units(const FLASH struct intersection *net);
#endif

#endif
