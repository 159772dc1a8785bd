/* The events of signal groups, from what their lamps show. */
#include "light/events.h"

static uint32_t now;

static void note_each(shell_set groups, uint8_t kind) {
    for (uint8_t channel = 1; groups != 0; groups >>= 1, channel++) {
        if ((groups & 1) != 0) {
            events_note(now, kind, channel);
        }
    }
}

static void note_crosswalks(const struct shell_output *before, const struct shell_output *after) {
    note_each(after->walk & ~before->walk, EVENT_BEGIN_WALK);
    note_each(after->clearing & ~before->clearing, EVENT_BEGIN_WALK_CLEARANCE);
    note_each((before->walk | before->clearing) & ~(after->walk | after->clearing), EVENT_DONT_WALK);
}

static void note_flashing(uint8_t mode) {
    static uint8_t last = SHELL_OFF;
    if (mode != last) {
        if (mode == SHELL_START_FLASH) {
            events_note(now, EVENT_FLASH_STATUS, FLASH_START);
        } else if (mode == SHELL_START_RED) {
            events_note(now, EVENT_FLASH_STATUS, FLASH_NONE);
        } else if (mode == SHELL_FLASH) {
            events_note(now, EVENT_FLASH_STATUS, FLASH_FAULT);
        }
        last = mode;
    }
}

void events_note_lamps(uint32_t tick, const struct shell_output *before, const struct shell_output *after, uint8_t mode) {
    static shell_set clearing; /* were green before this change, and are no longer */
    now = tick;
    note_flashing(mode);
    if (after->green == before->green && after->yellow == before->yellow && (before->walk | before->clearing) == 0 &&
        after->walk == 0) {
        return;
    }
    if ((after->events & SHELL_STOPPED) != 0) {
        clearing = 0; /* no clearance now */
    }
    const shell_set ended = before->green & ~after->green, cleared = before->yellow & ~after->yellow;
    if ((after->events & SHELL_FORCED) != 0) {
        note_each(ended, EVENT_FORCE_OFF);
    } else if ((after->events & SHELL_MAXED_OUT) != 0) {
        note_each(ended, EVENT_MAX_OUT);
    }
    note_crosswalks(before, after);
    note_each(ended, EVENT_GREEN_TERMINATION);
    note_each(after->yellow & ~before->yellow, EVENT_BEGIN_YELLOW);
    note_each(cleared, EVENT_END_YELLOW);
    if (mode == SHELL_CHANGE || (after->events & SHELL_PHASE_BEGAN) != 0) {
        note_each(cleared, EVENT_BEGIN_RED_CLEARANCE);
        clearing |= cleared;
    }
    if ((after->events & SHELL_PHASE_BEGAN) != 0) {
        note_each(clearing, EVENT_END_RED_CLEARANCE);
        clearing = 0;
    }
    note_each(after->green & ~before->green, EVENT_BEGIN_GREEN);
}
