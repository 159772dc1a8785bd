/* Judges lamps tick by tick, from its own tables, knowing nothing of the shell's state: what docs/controller.md promises. */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdint.h>

#include "light/shell.h"

/* judge_tables.h, written by prove.py from the road network itself: JUDGE_GROUPS, JUDGE_WALK_TICKS and these arrays */
#include "judge_tables.h"

enum judge_fault {
    JUDGE_FINE,
    JUDGE_NOT_ONE_LAMP,     /* a group shows none or several of red, yellow, green, and it isn't flashing */
    JUDGE_CONFLICT,         /* two groups in conflict are green or yellow */
    JUDGE_SKIPPED_YELLOW,   /* green, then red */
    JUDGE_WRONG_WAY,        /* red, then yellow; yellow, then green */
    JUDGE_YELLOW_TIME,      /* not the yellow that was computed */
    JUDGE_RED_TOO_SHORT,    /* green before the red clearance of a group in conflict */
    JUDGE_GREEN_TOO_SHORT,  /* less than the minimum */
    JUDGE_WALK_TIME,        /* not the walk, or not the clearance, that was computed */
    JUDGE_WALK_CUT,         /* a group ended its green with pedestrians on its crosswalk */
    JUDGE_FLASH,            /* flashing that nobody asked for */
    JUDGE_CALL_TOO_LATE,    /* a call waited longer than its bound (hostile.c, explore.c) */
    JUDGE_GREEN_TOO_LONG,   /* so did somebody in conflict with a green (the same) */
    JUDGE_WISH_CLASS,       /* two numbers that are no phases do not do the same (explore.c) */
};

static const char *const judge_words[] = {
    "fine", "not one lamp", "conflict", "skipped yellow", "wrong way", "yellow time", "red clearance too short",
    "green too short", "walk time", "walk cut", "flash", "call too late", "green too long", "wish class",
};

enum { JUDGE_DARK, JUDGE_RED, JUDGE_YELLOW, JUDGE_GREEN };

#define JUDGE_AGE_BITS 14
#define JUDGE_AGE_MASK ((1u << JUDGE_AGE_BITS) - 1)

struct judge {
    uint16_t cells[SHELL_GROUPS_MAX]; /* lamp, and for how many ticks: counted up to what matters */
    shell_set crosswalks;             /* those in use; they all began with one walk, */
    uint16_t walk_age;                /* so many ticks ago */
    uint16_t has_operated;            /* something has been green: the start is over */
};

static inline unsigned judge_lamp(const struct judge *judge, unsigned group) {
    return judge->cells[group] >> JUDGE_AGE_BITS;
}

/* From here on a longer time makes no difference */
static inline unsigned judge_enough(unsigned lamp, unsigned group) {
    switch (lamp) {
    case JUDGE_RED:
        return judge_red[group];
    case JUDGE_YELLOW:
        return judge_yellow[group] + 1u;
    case JUDGE_GREEN:
        return judge_min_green[group];
    default:
        return 1;
    }
}

static inline unsigned judge_lit(const struct shell_output *output, unsigned group) {
    const unsigned red = output->red >> group & 1, yellow = output->yellow >> group & 1, green = output->green >> group & 1;
    return red + yellow + green != 1 ? JUDGE_DARK : red != 0 ? JUDGE_RED : yellow != 0 ? JUDGE_YELLOW : JUDGE_GREEN;
}

static inline enum judge_fault judge_change(const struct judge *judge, unsigned group, unsigned lamp, bool may_flash) {
    const unsigned before = judge_lamp(judge, group), age = judge->cells[group] & JUDGE_AGE_MASK;
    if (before == lamp || (may_flash && lamp <= JUDGE_RED)) {
        return JUDGE_FINE;
    }
    if (before == JUDGE_GREEN) {
        return lamp != JUDGE_YELLOW ? JUDGE_SKIPPED_YELLOW : age < judge_min_green[group] ? JUDGE_GREEN_TOO_SHORT : JUDGE_FINE;
    }
    if (before == JUDGE_YELLOW) {
        return lamp != JUDGE_RED ? JUDGE_WRONG_WAY : age != judge_yellow[group] ? JUDGE_YELLOW_TIME : JUDGE_FINE;
    }
    if (before == JUDGE_DARK || lamp == JUDGE_DARK) {
        return lamp <= JUDGE_RED ? JUDGE_FINE : JUDGE_WRONG_WAY;
    }
    if (lamp != JUDGE_GREEN) {
        return JUDGE_WRONG_WAY;
    }
    for (unsigned other = 0; other < JUDGE_GROUPS; other++) {
        if ((judge_conflicts[group] >> other & 1) != 0) {
            if (judge_lamp(judge, other) != JUDGE_RED || (judge->cells[other] & JUDGE_AGE_MASK) < judge_red[other]) {
                return JUDGE_RED_TOO_SHORT;
            }
        }
    }
    return JUDGE_FINE;
}

/* What the crosswalks in use must show at an age */
static inline void judge_expects(const struct judge *judge, unsigned age, shell_set *walk, shell_set *clearing) {
    *walk = age < JUDGE_WALK_TICKS ? judge->crosswalks : 0;
    *clearing = 0;
    for (unsigned group = 0; group < JUDGE_GROUPS && *walk == 0; group++) {
        if ((judge->crosswalks >> group & 1) != 0 && age < judge_walk_clear[group]) {
            *clearing |= (shell_set)(1u << group);
        }
    }
}

static inline enum judge_fault judge_walks(struct judge *judge, const struct shell_output *output, unsigned ticks) {
    shell_set walk, clearing, last_walk, last_clearing;
    if (((output->walk | output->clearing) & ~output->green) != 0) {
        return JUDGE_WALK_CUT;
    }
    judge_expects(judge, judge->walk_age, &walk, &clearing);
    if ((walk | clearing) == 0) { /* nobody is left on a crosswalk: another walk may begin */
        judge->crosswalks = output->walk;
        judge->walk_age = 0;
        judge_expects(judge, 0, &walk, &clearing);
    }
    judge_expects(judge, judge->walk_age + ticks - 1, &last_walk, &last_clearing);
    if (output->walk != walk || output->clearing != clearing || walk != last_walk || clearing != last_clearing) {
        return JUDGE_WALK_TIME;
    }
    judge->walk_age = judge->crosswalks != 0 ? (uint16_t)(judge->walk_age + ticks) : 0;
    return JUDGE_FINE;
}

/* The same lamps for `ticks` ticks. `is_faulty`: a fault has been reported. */
static inline enum judge_fault judge_tick(
    struct judge *judge, const struct shell_output *output, unsigned ticks, bool is_faulty) {
    const shell_set moving = output->green | output->yellow;
    const bool is_dark = (output->red | moving) == 0, may_flash = is_faulty || judge->has_operated == 0;
    struct judge next = *judge;
    if (is_dark && !may_flash) {
        return JUDGE_FLASH;
    }
    for (unsigned group = 0; group < JUDGE_GROUPS; group++) {
        const unsigned lamp = judge_lit(output, group);
        if (lamp == JUDGE_DARK && !is_dark) {
            return JUDGE_NOT_ONE_LAMP;
        }
        if ((moving >> group & 1) != 0 && (judge_conflicts[group] & moving) != 0) {
            return JUDGE_CONFLICT;
        }
        const enum judge_fault found = judge_change(judge, group, lamp, may_flash);
        if (found != JUDGE_FINE) {
            return found;
        }
        const unsigned age = (lamp == judge_lamp(judge, group) ? judge->cells[group] & JUDGE_AGE_MASK : 0) + ticks;
        const unsigned enough = judge_enough(lamp, group);
        next.cells[group] = (uint16_t)(lamp << JUDGE_AGE_BITS | (age < enough ? age : enough));
    }
    next.has_operated = judge->has_operated != 0 || moving != 0;
    *judge = next;
    if (is_faulty && moving == 0) {
        judge->crosswalks = 0;
        return JUDGE_FINE;
    }
    return judge_walks(judge, output, ticks);
}

#endif
