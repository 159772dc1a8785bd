/* Vehicles on each lane, from its two loops: one where it begins, one behind its stop line. And which loops not to believe. */
#ifndef SENSING_H
#define SENSING_H

#include "light/dimensions.h" /* generated */
#include "light/shell.h"
#include "types.h"

/* Of a lane, generated */
struct sensing_lane {
    shell_set groups; /* that it can be left by; 0: another crossing's, or none */
    uint8_t most;     /* vehicles that fit */
    uint8_t clear_s;  /* who doesn't wait has driven along it in this time */
    uint8_t rate;     /* vehicles in 256 s, as planned */
    uint8_t others;   /* so many onto other lanes that lead in, and none onto this one: its entry is silent; 255: never */
    bool is_free;     /* it leads out, to no other light: nobody waits at its end */
#if LIGHT_BESIDE
    uint8_t beside;   /* the next lane of its road, the first one after the last; itself: it has no other */
#endif
};

extern const FLASH struct sensing_lane sensing_lanes[]; /* in-lanes, then out-lanes */

extern uint8_t sensing_counts[]; /* entered less left, 0 to 255; past a doubted loop: as planned */

/* One tick: the loops' levels (line 2k: entry of lane k, 2k + 1: its stop line), those that have changed or only flickered, and
 * what is green. */
void sensing_take(uint32_t tick, const uint8_t *level, const uint8_t *changed, const uint8_t *flickers, shell_set green);

/* Groups with a vehicle on a lane of theirs. A suspect lane always calls. */
shell_set sensing_calls(void);

bool sensing_is_suspect(uint8_t lane);
uint8_t sensing_suspects(void); /* lanes that lead in, as of the last sensing_calls */
bool sensing_is_poor(void); /* so many that a decision is worth nothing */

#if LIGHT_BESIDE
bool sensing_is_quiet(uint8_t lane); /* green, and nobody has passed its stop line in this second */
#endif

#if LIGHT_PASSED
/* Vehicles that were on lanes that lead in at the last call, and have left since. */
uint16_t sensing_take_passed(void);
#endif

#endif
