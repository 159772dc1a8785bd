/* See control.h. */
#include "light/control.h"

#include "light/dimensions.h" /* generated */
#include "light/events.h"
#include "light/plan.h"
#include "mode.h"

static uint8_t wish, planned, who;
static bool has_overrun, is_suspect;
#if MODE == MODE_LIGHT
static uint16_t silent_ticks; /* since a decision was asked for */
#endif

void control_start(void) {
    wish = SHELL_NO_PHASE;
}

uint8_t control_who(void) {
    return who;
}

void control_decided(uint8_t action) {
#if MODE == MODE_LIGHT
    silent_ticks = 0;
#endif
    wish = action;
}

void control_forced(void) {
    wish = SHELL_NO_PHASE;
}

void control_overrun(void) {
    has_overrun = true;
}

void control_suspect(bool too_many) {
    is_suspect = too_many;
}

static uint8_t judge(void) {
    if (has_overrun) {
        return ALARM_OVERRUN;
    }
#if MODE == MODE_LIGHT
    if (silent_ticks >= LIGHT_PATIENCE_TICKS) {
        return ALARM_UNASKED;
    }
    silent_ticks++;
#endif
    return is_suspect ? ALARM_SUSPECTS : CONTROL_NETWORK;
}

uint8_t control_wish(void) {
    return who == CONTROL_NETWORK ? wish : planned;
}

uint8_t control_tick(uint32_t tick, bool is_running) {
    if (!is_running) {
        return SHELL_NO_PHASE;
    }
    const uint8_t judged = judge();
    if (judged != who) {
        if (who == CONTROL_NETWORK) {
            plan_start();
        }
        who = judged;
        events_note(tick, EVENT_ALARM, who == CONTROL_NETWORK ? ALARM_POLICY : who);
    }
    if (who != CONTROL_NETWORK) {
        planned = plan_tick();
    }
    return control_wish();
}
