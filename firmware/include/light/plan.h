/* The plan in flash: fixed times, for when no network decides. */
#ifndef PLAN_H
#define PLAN_H

#include "types.h"

struct plan_step {
    uint8_t action;
    uint8_t seconds;
};

extern const FLASH struct plan_step plan_steps[]; /* generated; LIGHT_PLAN_STEPS of them */

void plan_start(void);    /* from its beginning */
uint8_t plan_tick(void);  /* one tick; returns the action to wish for */

#endif
