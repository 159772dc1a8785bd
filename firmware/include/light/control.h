/* Who wishes: the network, or the plan in flash where there is no decision of it. */
#ifndef CONTROL_H
#define CONTROL_H

#include "light/shell.h"
#include "types.h"

#define CONTROL_NETWORK 0 /* else an enum event_alarm: why the plan decides */

void control_start(void);

/* One tick. Returns the wish. Before the first green nobody decides, and a plan begins with it. */
uint8_t control_tick(uint32_t tick, bool is_running);

void control_decided(uint8_t action); /* by the network */
void control_forced(void);            /* the shell served somebody who was due: the wish is out of date until the next decision */
void control_overrun(void);           /* it took too long: it won't be asked again */
void control_suspect(bool too_many);  /* whether its inputs are worth a decision */

uint8_t control_wish(void); /* at the last tick, or since a decision */
uint8_t control_who(void); /* CONTROL_NETWORK or why not */

#endif
