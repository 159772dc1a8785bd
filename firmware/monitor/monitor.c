/* See monitor.h. */
#include "monitor.h"

#include <string.h>

enum { NO_LAMP, RED, YELLOW, GREEN, SEVERAL };

static uint16_t table_crc(void) {
    uint16_t crc = 0;
    const IN_FLASH uint8_t *byte = (const IN_FLASH uint8_t *)&monitor_table;
    for (uint8_t count = 0; count < sizeof monitor_table - sizeof monitor_table.crc; count++) {
        crc ^= (uint16_t)((uint16_t)byte[count] << 8);
        for (uint8_t bit = 0; bit < 8; bit++) {
            crc = (uint16_t)(crc << 1 ^ ((crc & 0x8000u) != 0 ? 0x1021u : 0));
        }
    }
    return crc;
}

void monitor_start(struct monitor *monitor, uint8_t reason, uint8_t group) {
    memset(monitor, 0, sizeof *monitor);
    const bool is_sound = table_crc() == monitor_table.crc && monitor_table.groups <= MONITOR_GROUPS_MAX;
    monitor->reason = !is_sound ? MONITOR_TABLE : reason < MONITOR_REASONS ? reason : MONITOR_TABLE;
    monitor->group = group;
}

static void trip(struct monitor *monitor, uint8_t reason, uint8_t group) {
    if (monitor->reason == MONITOR_FINE) {
        monitor->reason = reason;
        monitor->group = group;
    }
}

/* A millisecond more of a state that has lasted `*ms`, or its end. Returns whether it has lasted for `limit`. */
static bool lasts(uint16_t *ms, bool is_so, uint16_t limit) {
    *ms = !is_so ? 0 : *ms < limit ? *ms + 1 : limit;
    return *ms == limit;
}

static uint8_t lamp_of(const struct monitor_lines *lines, uint16_t bit) {
    const bool red = (lines->red & bit) != 0, yellow = (lines->yellow & bit) != 0, green = (lines->green & bit) != 0;
    if (red + yellow + green != 1) {
        return red + yellow + green == 0 ? NO_LAMP : SEVERAL;
    }
    return red ? RED : yellow ? YELLOW : GREEN;
}

/* The yellow before a red was too short or missing: a fault, unless all lamps begin to flash now. */
static void suspect(struct monitor *monitor, uint8_t reason, uint8_t group) {
    if (monitor->excused_ms == 0) {
        monitor->excused_reason = reason;
        monitor->excused_group = group;
        monitor->excused_ms = MONITOR_EXCUSE_MS;
    }
}

static void change_lamp(struct monitor *monitor, uint8_t number, uint8_t lamp) {
    struct monitor_group *group = &monitor->groups[number];
    if (lamp == RED && group->steady == GREEN) {
        suspect(monitor, MONITOR_NO_YELLOW, number);
    } else if (lamp == RED && group->steady == YELLOW && group->yellow_ms < MONITOR_YELLOW_MS) {
        suspect(monitor, MONITOR_SHORT_YELLOW, number);
    }
    group->steady = lamp;
    group->yellow_ms = 0;
}

static void look_at(struct monitor *monitor, uint8_t number, const struct monitor_lines *lines) {
    struct monitor_group *group = &monitor->groups[number];
    const uint16_t bit = (uint16_t)(1u << number), moving = lines->green | lines->yellow;
    const uint8_t lamp = lamp_of(lines, bit);
    if (lasts(&group->conflict_ms, (moving & bit) != 0 && (monitor_table.conflicts[number] & moving) != 0, MONITOR_CONFLICT_MS)) {
        trip(monitor, MONITOR_CONFLICT, number);
    }
    if (lasts(&group->dark_ms, lamp == NO_LAMP, MONITOR_DARK_MS)) {
        trip(monitor, MONITOR_DARK, number);
    }
    if (lasts(&group->several_ms, lamp == SEVERAL, MONITOR_SEVERAL_MS)) {
        trip(monitor, MONITOR_SEVERAL, number);
    }
    if (group->steady == YELLOW && group->yellow_ms < MONITOR_YELLOW_MS) {
        group->yellow_ms++;
    }
    if (lamp != group->seen || lamp == NO_LAMP || lamp == SEVERAL) {
        group->seen = lamp == SEVERAL ? NO_LAMP : lamp;
        group->seen_ms = lamp != NO_LAMP && lamp != SEVERAL;
    } else if (group->seen_ms < MONITOR_STEADY_MS) {
        group->seen_ms++;
    }
    if (group->seen_ms == MONITOR_STEADY_MS && group->seen != group->steady) {
        change_lamp(monitor, number, group->seen);
    }
}

static void look_for_flashing(struct monitor *monitor, const struct monitor_lines *lines) {
    const bool is_dark = (lines->red | lines->yellow | lines->green) == 0;
    if (lasts(&monitor->all_dark_ms, is_dark, MONITOR_FLASH_DARK_MS)) {
        monitor->excused_ms = 0;
    }
    if (monitor->excused_ms != 0) {
        monitor->excused_ms--;
        if (monitor->excused_ms == 0) {
            trip(monitor, monitor->excused_reason, monitor->excused_group);
        }
    }
}

bool monitor_tick(struct monitor *monitor, const struct monitor_lines *lines) {
    const uint8_t before = monitor->reason;
    if (before != MONITOR_FINE) {
        if (lasts(&monitor->button_ms, lines->button, 2 * MONITOR_STEADY_MS)) {
            monitor_start(monitor, MONITOR_FINE, 0); /* a damaged table is found again */
        }
        return monitor->reason != before;
    }
    for (uint8_t number = 0; number < monitor_table.groups; number++) {
        look_at(monitor, number, lines);
    }
    look_for_flashing(monitor, lines);
    if (lasts(&monitor->silent_ms, lines->heartbeat == monitor->heartbeat, MONITOR_HEARTBEAT_MS)) {
        trip(monitor, MONITOR_HEARTBEAT, 0);
    }
    monitor->heartbeat = lines->heartbeat;
    return monitor->reason != before;
}
