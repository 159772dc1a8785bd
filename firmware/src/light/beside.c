/* See beside.h. */
#include "light/beside.h"

#include "light/sensing.h"

#if LIGHT_BESIDE
uint8_t beside_fullest(uint8_t lane) {
    uint8_t found = lane;
    for (uint8_t each = sensing_lanes[lane].beside; each != lane; each = sensing_lanes[each].beside) {
        if (sensing_counts[each] > sensing_counts[found]) {
            found = each;
        }
    }
    return found;
}

uint8_t beside_with_room(uint8_t lane) {
    uint8_t found = lane;
    for (uint8_t each = sensing_lanes[lane].beside; each != lane; each = sensing_lanes[each].beside) {
        if (sensing_counts[each] < sensing_counts[found] && sensing_counts[each] < sensing_lanes[each].most) {
            found = each;
        }
    }
    return found;
}

uint8_t beside_waiting(uint8_t lane) {
    uint8_t found = lane;
    for (uint8_t each = sensing_lanes[lane].beside; each != lane; each = sensing_lanes[each].beside) {
        if (!sensing_is_quiet(each) && (found == lane || sensing_counts[each] < sensing_counts[found])) {
            found = each;
        }
    }
    return found;
}

bool beside_calls(uint8_t lane) {
    for (uint8_t each = sensing_lanes[lane].beside; each != lane; each = sensing_lanes[each].beside) {
        if (sensing_counts[each] != 0 || sensing_is_suspect(each)) {
            return true;
        }
    }
    return false;
}
#else
typedef int beside_is_empty; /* ISO C wants something in a file */
#endif
