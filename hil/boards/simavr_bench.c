/* Lamps, detectors, heartbeat and relay around the two chips of a crossing. Interface: simavr_bench.h; pins: docs/controller.md. */
#include "simavr_bench.h"
#include "simavr_state.h"

#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>

enum {
    /* The controller: port D, then B */
    LAMP_LATCH = 2, LAMP_CLOCK = 3, LAMP_DATA = 4, BEAT_OUT = 5,
    DETECTOR_LOAD = 0, DETECTOR_CLOCK = 1, DETECTOR_DATA = 2,
    /* The monitor: port D */
    LINE_LOAD = 2, LINE_CLOCK = 3, LINE_DATA = 4, BEAT_IN = 5, BUTTON = 6, RELAY = 7,
    DETECTORS_MAX = 256,
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
    change_list changes;
    uint32_t next_told; /* the first of `changes` that Python hasn't taken */
};

static void append(tl_bench *bench, uint64_t cycle, int what, uint64_t value)
{
    change_list *list = &bench->changes;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 1024;
        tl_change *larger = realloc(list->at, capacity * sizeof *larger);
        if (!larger) {
            list->lost = 1;
            return;
        }
        list->at = larger;
        list->capacity = capacity;
    }
    list->at[list->count++] = (tl_change){cycle, value, (uint8_t)what};
}

static int rose(uint8_t before, uint8_t now, int pin)
{
    return !(before >> pin & 1) && now >> pin & 1;
}

/* ---- wires between controller, lamps and monitor ------------------------------------------------------------------- */

static uint64_t behind_faults(const tl_bench *bench)
{
    uint64_t shown = bench->lamps;
    for (uint32_t line = 0; line < LAMPS_A_GROUP * bench->groups; line++)
        if (bench->shorted[line] && bench->lamps >> line & 1)
            shown |= 1ull << (bench->shorted[line] - 1);
    return (shown | bench->stuck_on) & ~bench->dark;
}

static void put_bit(uint64_t *set, const tl_input *input)
{
    uint64_t bit = 1ull << input->line;
    *set = input->level ? *set | bit : *set & ~bit;
}

static void apply_fault(tl_bench *bench, const tl_input *input)
{
    uint64_t before = behind_faults(bench);
    if (input->what == TL_STUCK_ON) {
        put_bit(&bench->stuck_on, input);
    } else if (input->what == TL_DARK) {
        put_bit(&bench->dark, input);
    } else if (input->what == TL_SHORTED) {
        bench->shorted[input->line] = input->level ? input->other + 1 : 0;
        bench->shorted[input->other] = input->level ? input->line + 1 : 0;
    } else if (input->what == TL_HEARTBEAT_CUT) {
        bench->beat_cut = input->level;
    } else if (input->what == TL_BUTTON) {
        append(bench, input->cycle, TL_BUTTON_PRESSED, input->level);
    }
    if (behind_faults(bench) != before)
        append(bench, input->cycle, TL_SHOWN, behind_faults(bench));
}

/* Faults of the wires that have begun by now */
static void apply_faults(tl_bench *bench, uint64_t now)
{
    for (; bench->next_wire < bench->input_count && bench->inputs[bench->next_wire].cycle <= now; bench->next_wire++)
        if (bench->inputs[bench->next_wire].what != TL_DETECTOR)
            apply_fault(bench, &bench->inputs[bench->next_wire]);
}

/* ---- the controller's pins ----------------------------------------------------------------------------------------- */

static void show(tl_bench *bench, uint64_t now)
{
    uint32_t lines = LAMPS_A_GROUP * bench->groups;
    shift_register before = bench->latched;
    bench->latched = bench->shifted;
    uint64_t mask = (1ull << lines) - 1, lamps = (uint64_t)bench->latched & mask;
    uint64_t walks = (uint64_t)(bench->latched >> lines) & 0xFFFFFFFFu;
    if (lamps != ((uint64_t)before & mask)) {
        uint64_t shown = behind_faults(bench);
        bench->lamps = lamps;
        append(bench, now, TL_LAMPS, lamps);
        if (behind_faults(bench) != shown)
            append(bench, now, TL_SHOWN, behind_faults(bench));
    }
    if (walks != ((uint64_t)(before >> lines) & 0xFFFFFFFFu))
        append(bench, now, TL_WALKS, walks);
}

static void on_lamp_pins(tl_bench *bench, uint8_t before, uint8_t now, uint64_t cycle)
{
    apply_faults(bench, cycle);
    if (rose(before, now, LAMP_CLOCK))
        bench->shifted = (bench->shifted << 1 | (now >> LAMP_DATA & 1)) & (((shift_register)1 << bench->lamp_lines) - 1);
    if (rose(before, now, LAMP_LATCH))
        show(bench, cycle);
    int beat = now >> BEAT_OUT & 1;
    if (beat != (before >> BEAT_OUT & 1) && !bench->beat_cut) {
        bench->beat = beat;
        append(bench, cycle, TL_HEARTBEAT, (uint64_t)beat);
    }
}

static void take_detectors(tl_bench *bench, uint64_t now)
{
    for (; bench->next_detector < bench->input_count && bench->inputs[bench->next_detector].cycle <= now; bench->next_detector++) {
        const tl_input *input = &bench->inputs[bench->next_detector];
        if (input->what == TL_DETECTOR)
            bench->occupied[input->line] = input->level;
    }
    memcpy(bench->held, bench->occupied, sizeof bench->held);
    bench->at_end = 0;
}

static void show_detector(tl_bench *bench)
{
    int level = bench->at_end < bench->detectors && bench->held[bench->at_end];
    tl_set_input(bench->controller, TL_PORT_B, DETECTOR_DATA, level);
}

static void on_detector_pins(tl_bench *bench, uint8_t before, uint8_t now, uint64_t cycle)
{
    int loads = !(now >> DETECTOR_LOAD & 1);
    if (loads || rose(before, now, DETECTOR_LOAD))
        take_detectors(bench, cycle);
    else if (rose(before, now, DETECTOR_CLOCK))
        bench->at_end++;
    show_detector(bench);
}

static void on_controller_pins(void *context, tl_sim *sim, int port, uint8_t before)
{
    uint8_t now = sim->ports[port].driven;
    if (port == TL_PORT_D)
        on_lamp_pins(context, before, now, sim->avr->cycle);
    else if (port == TL_PORT_B && ((before ^ now) & (1 << DETECTOR_LOAD | 1 << DETECTOR_CLOCK)))
        on_detector_pins(context, before, now, sim->avr->cycle);
}

/* While the load is low, the chain follows its inputs. */
static void on_controller_looks(void *context, tl_sim *sim, int port)
{
    tl_bench *bench = context;
    if (port == TL_PORT_B && !(sim->ports[port].driven >> DETECTOR_LOAD & 1)) {
        take_detectors(bench, sim->avr->cycle);
        show_detector(bench);
    }
}

/* ---- the monitor's pins -------------------------------------------------------------------------------------------- */

/* The monitor's wires as they are at its present cycle */
static void follow_wires(tl_bench *bench)
{
    tl_sim *sim = bench->monitor;
    for (; bench->next_seen < bench->changes.count && bench->changes.at[bench->next_seen].cycle <= sim->avr->cycle; bench->next_seen++) {
        const tl_change *change = &bench->changes.at[bench->next_seen];
        if (change->what == TL_SHOWN)
            bench->seen_lamps = change->value;
        else if (change->what == TL_HEARTBEAT)
            tl_set_input(sim, TL_PORT_D, BEAT_IN, (int)change->value);
        else if (change->what == TL_BUTTON_PRESSED)
            tl_set_input(sim, TL_PORT_D, BUTTON, !change->value);
    }
}

static void on_monitor_pins(void *context, tl_sim *sim, int port, uint8_t before)
{
    tl_bench *bench = context;
    uint8_t now = sim->ports[port].driven;
    if (port != TL_PORT_D)
        return;
    if (!(now >> LINE_LOAD & 1) || rose(before, now, LINE_LOAD)) {
        follow_wires(bench);
        bench->seen_chain = bench->seen_lamps;
    } else if (rose(before, now, LINE_CLOCK)) {
        bench->seen_chain >>= 1;
    }
    tl_set_input(sim, TL_PORT_D, LINE_DATA, (int)(bench->seen_chain & 1));
    if ((before ^ now) >> RELAY & 1)
        append(bench, sim->avr->cycle, TL_RELAY, now >> RELAY & 1);
}

static void on_monitor_looks(void *context, tl_sim *sim, int port)
{
    tl_bench *bench = context;
    follow_wires(bench);
    if (port == TL_PORT_D && !(sim->ports[port].driven >> LINE_LOAD & 1)) {
        bench->seen_chain = bench->seen_lamps;
        tl_set_input(sim, TL_PORT_D, LINE_DATA, (int)(bench->seen_chain & 1));
    }
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

tl_bench *tl_bench_create(tl_sim *controller, tl_sim *monitor, uint32_t groups, int has_crosswalks, uint32_t detectors)
{
    tl_bench *bench = calloc(1, sizeof *bench);
    if (!bench || groups > 16 || detectors > DETECTORS_MAX) {
        free(bench);
        return NULL;
    }
    bench->controller = controller;
    bench->monitor = monitor;
    bench->groups = groups;
    bench->lamp_lines = (LAMPS_A_GROUP + (has_crosswalks ? WALKS_A_GROUP : 0)) * groups;
    bench->detectors = detectors;
    tl_take_over_pins(controller, on_controller_pins, on_controller_looks, bench);
    if (monitor) {
        tl_take_over_pins(monitor, on_monitor_pins, on_monitor_looks, bench);
        tl_set_input(monitor, TL_PORT_D, BUTTON, 1);
    }
    return bench;
}

void tl_bench_destroy(tl_bench *bench)
{
    free(bench->inputs);
    free(bench->changes.at);
    free(bench);
}

/* Inputs that have been applied to the detectors and to the wires are dropped. */
static void drop_past_inputs(tl_bench *bench)
{
    uint32_t past = bench->next_detector < bench->next_wire ? bench->next_detector : bench->next_wire;
    memmove(bench->inputs, bench->inputs + past, (bench->input_count - past) * sizeof *bench->inputs);
    bench->input_count -= past;
    bench->next_detector -= past;
    bench->next_wire -= past;
}

int tl_bench_feed(tl_bench *bench, const tl_input *inputs, uint32_t count)
{
    if (bench->input_count)
        drop_past_inputs(bench);
    if (bench->input_count + count > bench->input_capacity) {
        uint32_t capacity = 2 * (bench->input_count + count);
        tl_input *larger = realloc(bench->inputs, capacity * sizeof *larger);
        if (!larger)
            return -1;
        bench->inputs = larger;
        bench->input_capacity = capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        tl_input input = inputs[i];
        if (input.cycle < bench->controller->avr->cycle)
            input.cycle = bench->controller->avr->cycle;
        bench->inputs[bench->input_count++] = input;
    }
    return 0;
}

int tl_bench_run(tl_bench *bench, uint64_t until)
{
    tl_run(bench->controller, until);
    apply_faults(bench, until);
    if (bench->monitor) {
        tl_run(bench->monitor, until);
        follow_wires(bench);
    }
    return bench->changes.lost ? -1 : 0;
}

const tl_change *tl_bench_changes(const tl_bench *bench, uint32_t *count)
{
    *count = bench->changes.count - bench->next_told;
    return bench->changes.at + bench->next_told;
}

void tl_bench_forget(tl_bench *bench)
{
    change_list *list = &bench->changes;
    uint32_t past = bench->monitor ? bench->next_seen : list->count;
    memmove(list->at, list->at + past, (list->count - past) * sizeof *list->at);
    list->count -= past;
    bench->next_seen = 0;
    bench->next_told = list->count;
}

void tl_eeprom(tl_sim *sim, uint8_t *content, uint32_t size)
{
    avr_eeprom_desc_t part = {.ee = content, .offset = 0, .size = size};
    avr_ioctl(sim->avr, AVR_IOCTL_EEPROM_GET, &part);
}
