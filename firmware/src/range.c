/* What has left the integers' range, with the portable kernel; the others have avr/range.S. */
#include "range.h"

#include "dispatch.h"
#include "infer.h"

#if KERNEL_ID == KERNEL_PORTABLE_C

void range_count_inputs(const FLASH struct intersection *net, const uint8_t *values) {
    const FLASH struct feature_scale *scale = net->scales;
    for (uint8_t features = net->features; features != 0; features--, scale++) {
        for (uint8_t left = scale->width; left != 0; left--, values += 2) {
            const int16_t value = (int16_t)(values[0] | (uint16_t)values[1] << 8);
            if (value < scale->offset || (uint16_t)((uint16_t)value - (uint16_t)scale->offset) > scale->span) {
                dispatch_count(RANGE_BEYOND);
                return;
            }
        }
    }
}

static bool is_any_at_limit(const uint8_t *units, uint8_t count) {
    for (; count != 0; count--) {
        if (*units++ == UINT8_MAX) {
            return true;
        }
    }
    return false;
}

void range_count_units(const FLASH struct intersection *net) {
    if (is_any_at_limit(hidden1, net->hidden1) || is_any_at_limit(hidden2, net->hidden2)) {
        dispatch_count(RANGE_AT_LIMIT);
    }
}

#endif
