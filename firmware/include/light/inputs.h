/* What the chip knows of vehicles and pedestrians: from detector lines to calls and presses. */
#ifndef INPUTS_H
#define INPUTS_H

#include "light/shell.h"

void inputs_start(void);
void inputs_tick(uint32_t tick, shell_set green, struct shell_input *input); /* gives calls and presses */

#endif
