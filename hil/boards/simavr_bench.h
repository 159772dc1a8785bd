/* A crossing on the bench as Python sees it: the controller's emulated chip with its lamps and detectors, and the monitor's.
 *
 * Both chips count the cycles of one clock. No wire leads from the monitor to the controller, so the controller is run first and the
 * monitor after it, over the same cycles and with every line at the very cycle at which it changed: the same as running both
 * instruction by instruction.
 */
#ifndef TINYLIGHT_SIMAVR_BENCH_H
#define TINYLIGHT_SIMAVR_BENCH_H
#include "simavr_glue.h"

typedef struct tl_bench tl_bench;

/* What is done to the bench from outside, from `cycle` on. `line` of a detector or lamp line, as docs/controller.md numbers them. */
typedef struct {
    uint64_t cycle;
    uint8_t what, line, level;
    uint8_t other; /* TL_SHORTED: the line that `line` touches */
} tl_input;

enum { TL_DETECTOR = 0, TL_STUCK_ON = 1, TL_DARK = 2, TL_SHORTED = 3, TL_BUTTON = 4, TL_HEARTBEAT_CUT = 5 };

/* What the bench did at `cycle`. `value` is one bit a line. */
typedef struct {
    uint64_t cycle, value;
    uint8_t what;
} tl_change;

/* At the controller's register; at the lamps, behind the wires' faults; crosswalks at the register; heartbeat; relay (1: held);
 * the monitor's button */
enum { TL_LAMPS = 0, TL_SHOWN = 1, TL_WALKS = 2, TL_HEARTBEAT = 3, TL_RELAY = 4, TL_BUTTON_PRESSED = 5 };

/* `monitor`: NULL for none. `groups`: of three lamp lines each, and two more with crosswalks. Both chips must not have run yet, and
 * outlive the bench. NULL without memory. */
tl_bench *tl_bench_create(tl_sim *controller, tl_sim *monitor, uint32_t groups, int has_crosswalks, uint32_t detectors);
void tl_bench_destroy(tl_bench *bench);
/* From now on all that the monitor does is executed, also what it has done before from the same state (simavr_memo.h). */
void tl_bench_execute_all(tl_bench *bench);
/* More inputs, in the order of their cycles; those that are past take effect at once. -1 without memory. */
int tl_bench_feed(tl_bench *bench, const tl_input *inputs, uint32_t count);
/* Runs the controller and then the monitor until that cycle. -1 without memory. */
int tl_bench_run(tl_bench *bench, uint64_t until);
/* What has changed since the last call of tl_bench_forget; each kind in the order of its cycles. */
const tl_change *tl_bench_changes(const tl_bench *bench, uint32_t *count);
void tl_bench_forget(tl_bench *bench);
/* What the chip's EEPROM holds: its first `size` bytes. */
void tl_eeprom(tl_sim *sim, uint8_t *content, uint32_t size);

#endif
