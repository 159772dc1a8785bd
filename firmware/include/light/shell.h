/* The safety shell: from wishes and calls to lamps, one tick every 10 ms. docs/controller.md says what it promises.
 *
 * It knows nothing of who wishes. Each signal group moves green -> yellow -> red -> green and no other way, whatever the wishes
 * and calls are; the tables (generated, in flash) say which groups each phase opens, which may never be open together, and how
 * long everything lasts at least.
 *
 * One timer does: it counts ticks since the state began, and is only ever compared by SHELL_REACHED, set to 0, or counted up.
 * tests/firmware/shell relies on that to explore all states with the real times.
 */
#ifndef SHELL_H
#define SHELL_H

#include "types.h"

#define SHELL_TICK_MS 10
#define SHELL_GROUPS_MAX 16
#define SHELL_PHASES_MAX 16
#define SHELL_NO_PHASE 0xFF

/* In ticks. Flashing: half a second lit, half a second dark. */
#define SHELL_FLASH_TICKS 100
#define SHELL_FLASH_LIT_TICKS 50
#define SHELL_START_FLASHES 5
#define SHELL_START_RED_TICKS 600

typedef uint16_t shell_set; /* of groups, one bit each */

struct shell_tables {
    uint8_t groups;
    uint8_t phases;
    shell_set served;           /* groups that some phases open and others do not: those that can be called */
    uint16_t longest_red_ticks; /* a call that has waited so long is served next */
    uint16_t walk_ticks;        /* how long pedestrians may start */
    shell_set phase_groups[SHELL_PHASES_MAX];
    uint16_t phase_least_ticks[SHELL_PHASES_MAX]; /* the minimum green of each of its groups, and the red clearance of the others */
    shell_set conflicts[SHELL_GROUPS_MAX];
    uint16_t yellow_ticks[SHELL_GROUPS_MAX];
    uint16_t red_ticks[SHELL_GROUPS_MAX];
    uint16_t max_green_ticks[SHELL_GROUPS_MAX];   /* while somebody in conflict waits */
    uint16_t walk_clear_ticks[SHELL_GROUPS_MAX];  /* walk and clearance of the crosswalk beside the group; 0: has none */
    uint16_t crc;                                 /* over all bytes before it: crc.h */
};

extern const FLASH struct shell_tables shell_tables; /* generated: firmware/generator/light */

enum shell_mode {
    SHELL_OFF,         /* before the first tick: all of the state is 0 */
    SHELL_START_FLASH, /* flashing red, SHELL_START_FLASHES times */
    SHELL_START_RED,
    SHELL_GREEN,  /* of `phase` */
    SHELL_CHANGE, /* from `phase` to `next` */
    SHELL_FLASH,  /* flashing red, until a reset */
    SHELL_MODES,
};

/* All state there is */
struct shell {
    uint8_t mode;
    uint8_t phase;
    uint8_t next;     /* in a change; at the start: flashes so far */
    uint16_t timer;   /* ticks that the lamps have shown this mode, or phase; starts anew with a walk */
    shell_set called;  /* wait for green: not green, called since they were */
    shell_set pressed; /* wait for their walk */
    shell_set due;     /* called: has waited too long; green: has been green too long while others wait */
    shell_set walking; /* of the groups of `phase`: their walk began with `timer` */
    uint16_t clocks[SHELL_GROUPS_MAX]; /* until a group is due, ticks so far */
};

struct shell_input {
    uint8_t wish;      /* phase that should be green next, or any other number: no wish */
    uint8_t faults;    /* any bit: flash, for good */
    shell_set calls;   /* groups with vehicles at a detector */
    shell_set presses; /* groups whose crosswalk's button is pressed */
};

/* In `events` */
#define SHELL_PHASE_ENDED 0x01  /* its change began */
#define SHELL_PHASE_BEGAN 0x02
#define SHELL_MAXED_OUT 0x04    /* with SHELL_PHASE_ENDED: a green had reached its longest time */
#define SHELL_FORCED 0x08       /* with SHELL_PHASE_ENDED: a call had waited its longest time */
#define SHELL_WALK_BEGAN 0x10
#define SHELL_STOPPED 0x20      /* it began to flash, for good */

struct shell_output {
    shell_set red; /* lamps that are lit; neither: dark, for half a second of flashing */
    shell_set yellow;
    shell_set green;
    shell_set walk;     /* crosswalks that may be entered */
    shell_set clearing; /* and those whose pedestrians still have time to reach the other side */
    uint8_t shown;      /* the phase that the lamps show, all of its groups being green; SHELL_NO_PHASE in between */
    uint8_t events;
};

/* One tick. The lamps are to be shown until the next one. */
void shell_tick(struct shell *shell, const struct shell_input *input, struct shell_output *output);

#endif
