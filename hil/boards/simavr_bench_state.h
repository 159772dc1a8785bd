/* What the halves of the bench share: library-internal. */
#ifndef TINYLIGHT_SIMAVR_BENCH_STATE_H
#define TINYLIGHT_SIMAVR_BENCH_STATE_H
#include "simavr_bench.h"
#include "simavr_memo.h"

enum {
    /* The controller: port D, then B */
    LAMP_LATCH = 2, LAMP_CLOCK = 3, LAMP_DATA = 4, BEAT_OUT = 5,
    DETECTOR_LOAD = 0, DETECTOR_CLOCK = 1, DETECTOR_DATA = 2,
    /* The monitor: port D */
    LINE_LOAD = 2, LINE_CLOCK = 3, LINE_DATA = 4, BEAT_IN = 5, BUTTON = 6, RELAY = 7,
    DETECTORS_MAX = 256,
    EECR_ADDRESS = 0x3F,
    LONGEST_SLEEP = 20000, /* cycles: the monitor's millisecond, and some */
    LAMPS_A_GROUP = 3, WALKS_A_GROUP = 2,
};

typedef unsigned __int128 shift_register; /* of lamps and crosswalks: 16 groups need 80 bits */

typedef struct {
    tl_change *at;
    uint32_t count, capacity;
    int lost;
} change_list;

struct tl_bench {
    tl_sim *controller, *monitor;
    uint32_t groups, detectors, lamp_lines;
    /* inputs, in order; those before `next_detector` and `next_wire` have been applied */
    tl_input *inputs;
    uint32_t input_count, input_capacity, next_detector, next_wire;
    /* the 74HC595 chain */
    shift_register shifted, latched;
    /* the 74HC165 chain of the detectors: what its inputs are, what it holds, which of it is at its end */
    uint8_t occupied[DETECTORS_MAX], held[DETECTORS_MAX];
    uint32_t at_end;
    /* the wires to lamps and monitor, and their faults */
    uint64_t stuck_on, dark, lamps;
    uint8_t shorted[64]; /* line + 1 that this one touches; 0: none */
    int beat_cut, beat;
    /* what the monitor's pins see, as far as `next_seen` of `changes` */
    uint32_t next_seen;
    uint64_t seen_lamps, seen_chain;
    /* how the monitor gets ahead without executing what it has done before: its clock is its cycles and `ahead` */
    tl_memo *memo;
    uint64_t ahead, first_look, last_look;
    tl_around at_first_look;
    int is_spoiled; /* since the last sleep more has happened than its pins' reading */
    avr_io_write_t write_eecr;
    void *eecr_context;
    change_list changes;
    uint32_t next_told; /* the first of `changes` that Python hasn't taken */
};

/* Notes a change, for Python and for the monitor's wires. */
void tl_bench_note(tl_bench *bench, uint64_t cycle, int what, uint64_t value);
/* Whether a pin of a port has gone high. */
static inline int tl_rose(uint8_t before, uint8_t now, int pin)
{
    return !(before >> pin & 1) && now >> pin & 1;
}
/* Connects the monitor's chip. */
void tl_monitor_wire_up(tl_bench *bench);
/* Runs it over the cycles for which its wires are known: up to a millisecond before `until`, at least. */
void tl_monitor_run(tl_bench *bench, uint64_t until);

#endif
