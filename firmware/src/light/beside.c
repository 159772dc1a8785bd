/* See beside.h. */
#include "light/beside.h"

#include "light/sensing.h"

#if LIGHT_BESIDE
shell_set beside_green;

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
        const bool waits = (sensing_lanes[each].groups & ~beside_green) != 0;
        if (waits && (found == lane || sensing_counts[each] < sensing_counts[found])) {
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
