/* What the monitor's chip does from one sleep to the next, remembered: library-internal.
 *
 * A sleeping chip's whole state is looked at: memory, registers, timers. What it does until it sleeps again follows from that state and
 * from what its pins read; so where both were met before, the state that came then is taken, without executing anything. Nothing
 * is assumed of the program.
 */
#ifndef TINYLIGHT_SIMAVR_MEMO_H
#define TINYLIGHT_SIMAVR_MEMO_H
#include "simavr_state.h"

typedef struct tl_memo tl_memo;

/* Of the pins, what a program may read; and of the parts around the chip, what they hold. */
typedef struct {
    uint64_t wires, parts;
} tl_around;

/* From one sleep to the next: how long it took, and when within it the pins were read first and last. */
typedef struct {
    uint32_t next, cycles, asleep, first_look, last_look;
    uint64_t parts;
} tl_way;

enum { TL_NOWHERE = 0xFFFFFFFFu };

tl_memo *tl_memo_create(void);
void tl_memo_destroy(tl_memo *memo);
/* All is forgotten. */
void tl_memo_flush(tl_memo *memo);
/* Whether the chip sleeps and nothing is pending that the state doesn't show. */
int tl_memo_is_place(const tl_sim *sim);
/* The number of the chip's state. TL_NOWHERE without memory. */
uint32_t tl_memo_place(tl_memo *memo, const tl_sim *sim);
/* The chip gets the state of that number, which had the same timers as its own. */
void tl_memo_restore(const tl_memo *memo, uint32_t place, tl_sim *sim);
const tl_way *tl_memo_find(const tl_memo *memo, uint32_t place, tl_around around);
void tl_memo_keep(tl_memo *memo, uint32_t place, tl_around around, tl_way way);
/* Whether two states have the same timers. */
int tl_memo_same_timers(const tl_memo *memo, uint32_t one, uint32_t other);

#endif
