/* See shell.h and docs/controller.md. */
#include "light/shell.h"

#ifndef SHELL_REACHED /* tests/firmware/shell/explore.c looks on here */
#define SHELL_REACHED(ticks, limit) ((ticks) >= (limit))
#endif

/* In loops through the groups `bit` is the set of this one: a shift by a variable takes the chip a loop of its own. */

static shell_set phase_groups(uint8_t phase) {
    return shell_tables.phase_groups[phase];
}

static shell_set all_groups(void) {
    return (shell_set)(0xFFFFu >> (SHELL_GROUPS_MAX - shell_tables.groups));
}

/* Groups that are green, or stay so through the change */
static shell_set green_groups(const struct shell *s) {
    if (s->mode == SHELL_GREEN) {
        return phase_groups(s->phase);
    }
    return s->mode == SHELL_CHANGE ? phase_groups(s->phase) & phase_groups(s->next) : 0;
}

/* Of `set`, the groups in conflict with any of `others` */
static shell_set in_conflict(shell_set set, shell_set others) {
    shell_set found = 0;
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((set & bit) != 0 && (shell_tables.conflicts[group] & others) != 0) {
            found |= bit;
        }
    }
    return found;
}

/* What no step leads to, and a disturbed memory may */
static bool is_sane(const struct shell *s) {
    const uint8_t phases = shell_tables.phases;
    if (s->mode == SHELL_GREEN) {
        return s->phase < phases && (s->walking & ~phase_groups(s->phase)) == 0;
    }
    if (s->walking != 0) {
        return false;
    }
    if (s->mode == SHELL_CHANGE) {
        return s->phase < phases && s->next < phases && s->phase != s->next;
    }
    return s->mode < SHELL_MODES && s->next < SHELL_START_FLASHES;
}

static void enter(struct shell *s, uint8_t mode) {
    s->mode = mode;
    s->timer = 0;
    s->walking = 0;
}

static void restart_clocks(struct shell *s, shell_set groups) {
    s->due &= ~groups;
    shell_set bit = 1;
    for (uint8_t group = 0; group < SHELL_GROUPS_MAX; group++, bit <<= 1) {
        if ((groups & bit) != 0) {
            s->clocks[group] = 0;
        }
    }
}

/* Those of the green groups whose buttons were pressed get their walk */
static uint8_t begin_walk(struct shell *s) {
    s->walking = s->pressed & phase_groups(s->phase);
    s->pressed &= ~s->walking;
    return s->walking != 0 ? SHELL_WALK_BEGAN : 0;
}

static uint8_t begin_phase(struct shell *s, uint8_t phase) {
    restart_clocks(s, phase_groups(phase) & ~green_groups(s));
    enter(s, SHELL_GREEN);
    s->phase = phase;
    s->next = phase;
    s->called &= ~phase_groups(phase);
    return SHELL_PHASE_BEGAN | begin_walk(s);
}

/* Each group that ends shows its yellow, and then red for as long as what begins must wait for it. */
static bool change_is_over(const struct shell *s) {
    const shell_set leaving = phase_groups(s->phase) & ~phase_groups(s->next);
    const shell_set entering = phase_groups(s->next) & ~phase_groups(s->phase);
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((leaving & bit) != 0) {
            const uint16_t red = (shell_tables.conflicts[group] & entering) != 0 ? shell_tables.red_ticks[group] : 0;
            if (!SHELL_REACHED(s->timer, (uint16_t)(shell_tables.yellow_ticks[group] + red))) {
                return false;
            }
        }
    }
    return true;
}

static uint8_t begin_change(struct shell *s, uint8_t next) {
    const shell_set leaving = phase_groups(s->phase) & ~phase_groups(next);
    restart_clocks(s, leaving);
    enter(s, SHELL_CHANGE);
    s->next = next;
    s->called |= s->pressed & leaving;
    return SHELL_PHASE_ENDED | (change_is_over(s) ? begin_phase(s, next) : 0);
}

/* Minimum green, and nobody is left in the middle of a crosswalk */
static bool may_end(const struct shell *s) {
    if (!SHELL_REACHED(s->timer, shell_tables.phase_least_ticks[s->phase])) {
        return false;
    }
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((s->walking & bit) != 0 && !SHELL_REACHED(s->timer, shell_tables.walk_clear_ticks[group])) {
            return false;
        }
    }
    return true;
}

/* The first phase after this one, in a circle, that opens any of `groups`; SHELL_NO_PHASE: none does */
static uint8_t next_phase_for(const struct shell *s, shell_set groups) {
    uint8_t phase = s->phase;
    for (uint8_t count = 1; count < shell_tables.phases; count++) {
        phase = phase + 1 < shell_tables.phases ? phase + 1 : 0;
        if ((phase_groups(phase) & groups) != 0) {
            return phase;
        }
    }
    return SHELL_NO_PHASE;
}

/* Whoever is due comes first, in the order of the phases, so that nobody is passed over; then the wish. */
static uint8_t end_green(struct shell *s, uint8_t wish) {
    if (!may_end(s)) {
        return 0;
    }
    if (s->due != 0) {
        const shell_set too_green = s->due & phase_groups(s->phase);
        const shell_set too_late = s->due & s->called;
        const uint8_t next = next_phase_for(s, too_late | in_conflict(s->called, too_green));
        if (next != SHELL_NO_PHASE) {
            const uint8_t why = (phase_groups(next) & too_late) != 0 ? SHELL_FORCED : SHELL_MAXED_OUT;
            return why | begin_change(s, next);
        }
    }
    if (wish < shell_tables.phases && wish != s->phase) {
        return begin_change(s, wish);
    }
    if ((s->pressed & phase_groups(s->phase)) != 0 && s->called == 0) {
        enter(s, SHELL_GREEN); /* nobody else waits: once more for those who want to cross */
        return begin_walk(s);
    }
    return 0;
}

static uint8_t flash_at_start(struct shell *s) {
    if (SHELL_REACHED(s->timer, SHELL_FLASH_TICKS)) {
        s->timer = 0;
        s->next++;
        if (s->next == SHELL_START_FLASHES) {
            s->next = 0;
            enter(s, SHELL_START_RED);
        }
    }
    return 0;
}

/* As if everybody had been waiting: nobody knows who was */
static uint8_t end_red_at_start(struct shell *s) {
    if (!SHELL_REACHED(s->timer, SHELL_START_RED_TICKS)) {
        return 0;
    }
    s->called |= shell_tables.served;
    return begin_phase(s, 0);
}

static uint8_t stop(struct shell *s) {
    enter(s, SHELL_FLASH);
    s->phase = 0;
    s->next = 0;
    s->called = 0;
    s->pressed = 0;
    s->due = 0;
    return SHELL_STOPPED;
}

/* The latches: what is called stays called until it is green, what is pressed until it walks. */
static void take_calls(struct shell *s, shell_set calls, shell_set presses) {
    if (s->mode == SHELL_FLASH) {
        return;
    }
    shell_set bit = 1;
    for (uint8_t group = 0; group < SHELL_GROUPS_MAX; group++, bit <<= 1) {
        if ((presses & bit) != 0 && shell_tables.walk_clear_ticks[group] == 0) {
            presses &= ~bit;
        }
    }
    if ((presses & s->walking) != 0 && !SHELL_REACHED(s->timer, shell_tables.walk_ticks)) {
        presses &= ~s->walking; /* they may start now */
    }
    s->pressed |= presses;
    s->called |= (calls | presses) & shell_tables.served & ~green_groups(s);
}

/* Who has waited, or been green, for too long? A clock runs while its group waits, or is green and somebody in conflict waits. */
static void run_clocks(struct shell *s) {
    const shell_set running = s->called | in_conflict(green_groups(s), s->called);
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((running & bit) == 0) {
            s->clocks[group] = 0;
            continue;
        }
        const uint16_t limit = (s->called & bit) != 0 ? shell_tables.longest_red_ticks : shell_tables.max_green_ticks[group];
        if (s->clocks[group] >= limit) {
            s->due |= bit;
        } else {
            s->clocks[group]++;
        }
    }
}

static uint8_t move(struct shell *s, uint8_t wish) {
    if (!SHELL_REACHED(s->timer, UINT16_MAX)) {
        s->timer++;
    }
    switch (s->mode) {
    case SHELL_OFF:
        enter(s, SHELL_START_FLASH);
        return 0;
    case SHELL_START_FLASH:
        return flash_at_start(s);
    case SHELL_START_RED:
        return end_red_at_start(s);
    case SHELL_GREEN:
        return end_green(s, wish);
    case SHELL_CHANGE:
        return change_is_over(s) ? begin_phase(s, s->next) : 0;
    default:
        if (SHELL_REACHED(s->timer, SHELL_FLASH_TICKS)) {
            s->timer = 0;
        }
        return 0;
    }
}

static void show_crosswalks(const struct shell *s, struct shell_output *output) {
    if (s->mode != SHELL_GREEN || s->walking == 0) {
        return;
    }
    if (!SHELL_REACHED(s->timer, shell_tables.walk_ticks)) {
        output->walk = s->walking;
        return;
    }
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((s->walking & bit) != 0 && !SHELL_REACHED(s->timer, shell_tables.walk_clear_ticks[group])) {
            output->clearing |= bit;
        }
    }
}

static shell_set yellow_groups(const struct shell *s) {
    const shell_set leaving = s->mode == SHELL_CHANGE ? phase_groups(s->phase) & ~phase_groups(s->next) : 0;
    shell_set yellow = 0;
    shell_set bit = 1;
    for (uint8_t group = 0; group < shell_tables.groups; group++, bit <<= 1) {
        if ((leaving & bit) != 0 && !SHELL_REACHED(s->timer, shell_tables.yellow_ticks[group])) {
            yellow |= bit;
        }
    }
    return yellow;
}

static void show(const struct shell *s, struct shell_output *output) {
    const bool flashes = s->mode == SHELL_START_FLASH || s->mode == SHELL_FLASH;
    output->green = green_groups(s);
    output->yellow = yellow_groups(s);
    output->red = all_groups() & ~(output->green | output->yellow);
    if (flashes && SHELL_REACHED(s->timer, SHELL_FLASH_LIT_TICKS)) {
        output->red = 0;
    }
    output->walk = 0;
    output->clearing = 0;
    output->shown = s->mode == SHELL_GREEN ? s->phase : SHELL_NO_PHASE;
    show_crosswalks(s, output);
}

/* The rest of a tick, once calls and clocks are known */
static void advance(struct shell *s, uint8_t wish, struct shell_output *output) {
    output->events = move(s, wish);
    show(s, output);
    const shell_set moving = output->green | output->yellow;
    if (in_conflict(moving, moving) != 0) { /* tables or memory are wrong: no step leads here */
        output->events |= stop(s);
        show(s, output);
    }
}

void shell_tick(struct shell *shell, const struct shell_input *input, struct shell_output *output) {
    if (shell->mode != SHELL_FLASH && (input->faults != 0 || !is_sane(shell))) {
        output->events = stop(shell);
        show(shell, output);
        return;
    }
    take_calls(shell, input->calls, input->presses);
    run_clocks(shell);
    advance(shell, input->wish, output);
}
