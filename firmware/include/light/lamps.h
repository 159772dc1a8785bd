/* Lamps at the pins, through a chain of 74HC595: docs/controller.md has the order of the lines. */
#ifndef LAMPS_H
#define LAMPS_H

#include "light/shell.h"

void lamps_start(void);
void lamps_show(const struct shell_output *output);

#endif
