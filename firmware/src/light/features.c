/* See features.h. */
#include "light/features.h"

#include "light/dimensions.h" /* generated */
#include "light/sensing.h"

#if LIGHT_LANES
static uint8_t last_action;
static bool has_decided;

static int16_t sum_terms(const FLASH uint8_t **at) {
    int16_t sum = 0;
    for (uint8_t terms = flash_next(at); terms != 0; terms--) {
        const uint8_t lane = flash_next(at);
        sum += (int16_t)sensing_counts[lane] * (int8_t)flash_next(at);
    }
    return sum;
}

bool features_compute(int16_t values[POLICY_INPUTS_MAX], uint8_t action) {
    const FLASH uint8_t *at = feature_terms;
    int16_t *value = values;
    for (uint8_t kind; (kind = flash_next(&at)) != FEATURE_END;) {
        if (kind == FEATURE_VEHICLES) {
            for (uint8_t left = flash_next(&at); left != 0; left--) {
                *value++ = sum_terms(&at);
            }
        } else if (kind == FEATURE_ACTION) {
            for (uint8_t each = 0; each < LIGHT_ACTIONS; each++) {
                *value++ = each == action;
            }
        } else if (kind == FEATURE_CHANGED) {
            *value++ = has_decided && action != last_action;
        } else {
#if LIGHT_PASSED
            *value++ = (int16_t)sensing_take_passed();
#endif
        }
    }
    last_action = action;
    has_decided = true;
    return sensing_suspects() != 0;
}
#endif
