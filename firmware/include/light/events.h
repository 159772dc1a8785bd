/* What happened, for whoever listens: kinds of the Purdue enumerations for signal controllers' high-resolution data, in frames
 * that docs/protocol.md describes. Noting one never waits: what finds the queue full is counted and told once there is room.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include "light/shell.h"

enum event_kind {
    EVENT_BEGIN_GREEN = 1, /* the channel of these is a group, counted from 1 */
    EVENT_MAX_OUT = 5,
    EVENT_FORCE_OFF = 6,
    EVENT_GREEN_TERMINATION = 7,
    EVENT_BEGIN_YELLOW = 8,
    EVENT_END_YELLOW = 9,
    EVENT_BEGIN_RED_CLEARANCE = 10,
    EVENT_END_RED_CLEARANCE = 11,
    EVENT_BEGIN_WALK = 21,
    EVENT_BEGIN_WALK_CLEARANCE = 22,
    EVENT_DONT_WALK = 23,
    EVENT_DETECTOR_OFF = 81, /* of these a detector's line, counted from 1 */
    EVENT_DETECTOR_ON = 82,
    EVENT_DETECTOR_RESTORED = 83,
    EVENT_DETECTOR_FAULTY = 84,  /* "other": more vehicles than fit */
    EVENT_DETECTOR_STUCK = 85,   /* "watchdog fault" */
    EVENT_DETECTOR_SILENT = 86,  /* "open loop fault" */
    EVENT_DETECTOR_CHATTERS = 88, /* "excessive change fault" */
    EVENT_BUTTON_OFF = 89,
    EVENT_BUTTON_ON = 90,
    EVENT_FLASH_STATUS = 173, /* one of enum event_flash */
    EVENT_POWER_RESTORED = 184,
    EVENT_ALARM = 185, /* one of enum event_alarm: what a vendor may number */
};

enum event_flash { FLASH_NONE = 2, FLASH_FAULT = 5, FLASH_START = 7 }; /* as NTCIP 1202 numbers a unit's flash status */

enum event_alarm {
    ALARM_EXTERNAL_RESET = 1,
    ALARM_WATCHDOG_RESET,
    ALARM_BROWN_OUT_RESET,
    ALARM_FLASH_DAMAGED,
    ALARM_TABLES_DAMAGED,
    ALARM_RESETS,       /* three within a minute */
    ALARM_UNASKED,      /* nobody has asked for a decision: the plan in flash decides */
    ALARM_SUSPECTS,     /* too many detectors are suspect: the plan in flash decides */
    ALARM_OVERRUN,      /* a decision took longer than a tick: the plan in flash decides until a reset */
    ALARM_POLICY,       /* the network decides again */
    ALARM_EVENTS_LOST,
    ALARM_TICKS_LATE,   /* a tick had begun before the one before it was over */
};

#define EVENTS_MAX 32 /* what a change of phases and all detectors bring within some frames' time */

struct event {
    uint16_t tick; /* its low half: none waits for so long that it would turn over */
    uint8_t kind, channel;
};

void events_note(uint32_t tick, uint8_t kind, uint8_t channel);
MUST_USE bool events_wait(void);

/* Takes the oldest out of the queue if it is of that tick, or of any if `tick` is NULL; returns whether it did. */
MUST_USE bool events_take(struct event *event, const uint16_t *tick);

extern uint16_t events_lost; /* stops at 65535 */

/* What the lamps tell: from what one tick shows and what the next does */
void events_note_lamps(uint32_t tick, const struct shell_output *before, const struct shell_output *now, uint8_t mode);

#endif
