/* See scan.h. */
#include "light/scan.h"

#include "board.h"
#include "crc.h"
#include "flash_check.h"
#include "light/control.h"
#include "light/dimensions.h" /* generated */
#include "light/events.h"
#include "light/inputs.h"
#include "light/lamps.h"
#include "light/report.h"
#include "light/resets.h"
#include "light/shell.h"

enum { FAULT_FLASH = 0x01, FAULT_TABLES = 0x02, FAULT_RESETS = 0x04 };

static struct shell shell;
static struct shell_output shown;
static struct shell_input input;
uint32_t ticks;
volatile uint8_t tick_parts, ticks_come;

struct light_report light_report;

static bool tables_are_sound(void) {
    const FLASH uint8_t *byte = (const FLASH uint8_t *)&shell_tables;
    uint16_t crc = CRC_INITIAL;
    for (uint16_t left = sizeof shell_tables; left != 0; left--) {
        crc = crc_update(crc, flash_next(&byte));
    }
    return crc == 0;
}

static void note_fault(uint8_t fault, uint8_t alarm) {
    input.faults |= fault;
    events_note(ticks, EVENT_ALARM, alarm);
}

static void check_itself(void) {
    flash_check();
    resets_note(ticks);
    if (!flash_is_sound()) {
        note_fault(FAULT_FLASH, ALARM_FLASH_DAMAGED);
    }
    if (!tables_are_sound()) {
        note_fault(FAULT_TABLES, ALARM_TABLES_DAMAGED);
    }
    if (resets_are_many()) {
        note_fault(FAULT_RESETS, ALARM_RESETS);
    }
}

static void report_times(void) {
    const uint16_t age_us = tick_age_us((uint8_t)ticks);
    if (age_us > light_report.lamps_late_us) {
        light_report.lamps_late_us = age_us;
    }
    if ((uint8_t)(ticks_come - (uint8_t)ticks) != 0) {
        light_report.ticks_late += light_report.ticks_late != UINT16_MAX;
        events_note(ticks, EVENT_ALARM, ALARM_TICKS_LATE);
    }
}

#if MODE == MODE_ALONE
static bool has_begun, is_decision_due;
static uint16_t ticks_left; /* to the next decision */

/* The first decision is made when the first green begins. */
static void count_down(void) {
    has_begun |= shown.shown != SHELL_NO_PHASE;
    if (has_begun && shell.mode != SHELL_FLASH) {
        if (ticks_left == 0) {
            ticks_left = LIGHT_INTERVAL_S * TICKS_PER_S;
            is_decision_due = control_who() != ALARM_OVERRUN;
        }
        ticks_left--;
    }
}

bool scan_takes_decision(void) {
    const bool is_due = is_decision_due;
    is_decision_due = false;
    return is_due;
}

uint8_t scan_action(void) {
    return shell.phase;
}
#endif

void scan(void) {
    struct shell_output next;
    ticks++;
    inputs_tick(ticks, shown.green, &input);
    input.wish = control_tick(ticks, shell.mode == SHELL_GREEN || shell.mode == SHELL_CHANGE);
    shell_tick(&shell, &input, &next);
    if ((next.events & (SHELL_FORCED | SHELL_MAXED_OUT)) != 0) {
        control_forced();
    }
    lamps_show(&next);
    HEARTBEAT_TOGGLE = _BV(HEARTBEAT_BIT);
    board_feed_watchdog();
    report_times();
    events_note_lamps(ticks, &shown, &next, shell.mode);
    shown = next;
    resets_pass(ticks);
#if MODE == MODE_ALONE
    count_down();
#endif
}

void scan_start(void) {
    lamps_start();
    inputs_start();
    control_start();
    check_itself();
}
