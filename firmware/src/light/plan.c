/* See plan.h. */
#include "light/plan.h"

#include "light/dimensions.h" /* generated */
#include "light/tick.h"

static uint8_t step, seconds, ticks;

void plan_start(void) {
    step = 0;
    seconds = 0;
    ticks = 0;
}

uint8_t plan_tick(void) {
    const uint8_t action = plan_steps[step].action;
    if (++ticks == TICKS_PER_S) {
        ticks = 0;
        if (++seconds == plan_steps[step].seconds) {
            seconds = 0;
            step = step + 1 < LIGHT_PLAN_STEPS ? step + 1 : 0;
        }
    }
    return action;
}
