/* The policy's features, from the lanes' vehicles and the lights: sums of (lane, weight) in flash, generated. */
#ifndef FEATURES_H
#define FEATURES_H

#include "policy_dimensions.h"
#include "types.h"

/* Of each feature one byte says what it is; then, for FEATURE_VEHICLES, its number of values, and of each one its number of terms
 * and these: a lane, a weight. */
enum { FEATURE_END, FEATURE_VEHICLES, FEATURE_ACTION, FEATURE_CHANGED, FEATURE_PASSED };

extern const FLASH uint8_t feature_terms[];

/* All inputs of the network, in its order, for a decision while `action` is in force. Returns whether a lane is suspect. */
bool features_compute(int16_t values[POLICY_INPUTS_MAX], uint8_t action);

#endif
