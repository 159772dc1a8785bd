/* The generated tables of the shell, compiled into flash. */
#include "light/shell.h"

#include <stddef.h>

#include "shell_tables.h" /* generated */

_Static_assert(offsetof(struct shell_tables, served) == 2 && sizeof(struct shell_tables) == 2 + 2 * (3 + 7 * 16 + 1),
               "firmware/generator/light/tables.py computes the CRC over these very bytes");
