/* Lamps, detectors and the wires between them and the two chips of a crossing; the monitor's side of them: simavr_monitor.c.
 * Interface: simavr_bench.h; pins: docs/controller.md. */
#include "simavr_bench_state.h"

#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>

void tl_bench_note(tl_bench *bench, uint64_t cycle, int what, uint64_t value)
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
        tl_bench_note(bench, input->cycle, TL_BUTTON_PRESSED, input->level);
    }
    if (behind_faults(bench) != before)
        tl_bench_note(bench, input->cycle, TL_SHOWN, behind_faults(bench));
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
        tl_bench_note(bench, now, TL_LAMPS, lamps);
        if (behind_faults(bench) != shown)
            tl_bench_note(bench, now, TL_SHOWN, behind_faults(bench));
    }
    if (walks != ((uint64_t)(before >> lines) & 0xFFFFFFFFu))
        tl_bench_note(bench, now, TL_WALKS, walks);
}

static void on_lamp_pins(tl_bench *bench, uint8_t before, uint8_t now, uint64_t cycle)
{
    apply_faults(bench, cycle);
    if (tl_rose(before, now, LAMP_CLOCK))
        bench->shifted = (bench->shifted << 1 | (now >> LAMP_DATA & 1)) & (((shift_register)1 << bench->lamp_lines) - 1);
    if (tl_rose(before, now, LAMP_LATCH))
        show(bench, cycle);
    int beat = now >> BEAT_OUT & 1;
    if (beat != (before >> BEAT_OUT & 1) && !bench->beat_cut) {
        bench->beat = beat;
        tl_bench_note(bench, cycle, TL_HEARTBEAT, (uint64_t)beat);
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
    if (loads || tl_rose(before, now, DETECTOR_LOAD))
        take_detectors(bench, cycle);
    else if (tl_rose(before, now, DETECTOR_CLOCK))
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
    if (monitor)
        tl_monitor_wire_up(bench);
    return bench;
}

void tl_bench_destroy(tl_bench *bench)
{
    tl_memo_destroy(bench->memo);
    free(bench->inputs);
    free(bench->changes.at);
    free(bench);
}

void tl_bench_execute_all(tl_bench *bench)
{
    tl_memo_destroy(bench->memo);
    bench->memo = NULL;
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
        tl_monitor_run(bench, until);
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
