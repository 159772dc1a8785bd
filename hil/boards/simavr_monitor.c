/* The monitor of a crossing: its side of the wires, and how its chip gets ahead without executing what it has done before. */
#include "simavr_bench_state.h"

/* ---- the monitor's pins -------------------------------------------------------------------------------------------- */

static uint64_t monitor_clock(const tl_bench *bench)
{
    return bench->monitor->avr->cycle + bench->ahead;
}

/* The monitor's wires as they are at that cycle of its clock; returns whether any has changed */
static int follow_wires(tl_bench *bench, uint64_t now)
{
    tl_sim *sim = bench->monitor;
    uint32_t before = bench->next_seen;
    for (; bench->next_seen < bench->changes.count && bench->changes.at[bench->next_seen].cycle <= now; bench->next_seen++) {
        const tl_change *change = &bench->changes.at[bench->next_seen];
        if (change->what == TL_SHOWN)
            bench->seen_lamps = change->value;
        else if (change->what == TL_HEARTBEAT)
            tl_set_input(sim, TL_PORT_D, BEAT_IN, (int)change->value);
        else if (change->what == TL_BUTTON_PRESSED)
            tl_set_input(sim, TL_PORT_D, BUTTON, !change->value);
    }
    return bench->next_seen != before;
}

static tl_around around(const tl_bench *bench)
{
    return (tl_around){bench->seen_lamps | (uint64_t)bench->monitor->ports[TL_PORT_D].inputs << 56, bench->seen_chain};
}

static void look_at_wires(tl_bench *bench)
{
    uint64_t now = monitor_clock(bench);
    int has_changed = follow_wires(bench, now);
    if (!bench->first_look) {
        bench->first_look = now;
        bench->at_first_look = around(bench);
    } else if (has_changed) {
        bench->is_spoiled = 1;
    }
    bench->last_look = now;
}

static void on_monitor_pins(void *context, tl_sim *sim, int port, uint8_t before)
{
    tl_bench *bench = context;
    uint8_t now = sim->ports[port].driven;
    if (port != TL_PORT_D)
        return;
    if (!(now >> LINE_LOAD & 1) || tl_rose(before, now, LINE_LOAD)) {
        look_at_wires(bench);
        bench->seen_chain = bench->seen_lamps;
    } else if (tl_rose(before, now, LINE_CLOCK)) {
        bench->seen_chain >>= 1;
    }
    tl_set_input(sim, TL_PORT_D, LINE_DATA, (int)(bench->seen_chain & 1));
    if ((before ^ now) >> RELAY & 1) {
        tl_bench_note(bench, monitor_clock(bench), TL_RELAY, now >> RELAY & 1);
        bench->is_spoiled = 1;
    }
}

static void on_monitor_looks(void *context, tl_sim *sim, int port)
{
    tl_bench *bench = context;
    look_at_wires(bench);
    if (port == TL_PORT_D && !(sim->ports[port].driven >> LINE_LOAD & 1)) {
        bench->seen_chain = bench->seen_lamps;
        tl_set_input(sim, TL_PORT_D, LINE_DATA, (int)(bench->seen_chain & 1));
    }
}

/* ---- the monitor's time -------------------------------------------------------------------------------------------- */

/* The EEPROM is no part of the state that is remembered: whatever goes on with it is executed. */
static void on_eeprom(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
    tl_bench *bench = context;
    bench->is_spoiled = 1;
    bench->write_eecr(avr, address, value, bench->eecr_context);
}

static void watch_eeprom(tl_bench *bench)
{
    int place = AVR_DATA_TO_IO(EECR_ADDRESS);
    avr_t *avr = bench->monitor->avr;
    bench->write_eecr = avr->io[place].w.c;
    bench->eecr_context = avr->io[place].w.param;
    avr->io[place].w.c = on_eeprom;
    avr->io[place].w.param = bench;
}

static uint64_t next_wire_change(const tl_bench *bench)
{
    return bench->next_seen < bench->changes.count ? bench->changes.at[bench->next_seen].cycle : UINT64_MAX;
}

/* From a sleep on, along known ways; returns the last place. The wires are followed up to there. */
static uint32_t hop(tl_bench *bench, uint32_t place, uint64_t until)
{
    tl_sim *sim = bench->monitor;
    uint64_t now = monitor_clock(bench);
    uint32_t first = place;
    for (;;) {
        follow_wires(bench, now);
        const tl_way *way = tl_memo_find(bench->memo, place, around(bench));
        while (way && next_wire_change(bench) <= now + way->first_look) { /* before the chip looks: as if it were now */
            follow_wires(bench, next_wire_change(bench));
            way = tl_memo_find(bench->memo, place, around(bench));
        }
        if (!way || now + way->cycles > until || next_wire_change(bench) <= now + way->last_look ||
            !tl_memo_same_timers(bench->memo, first, way->next))
            return place;
        place = way->next;
        now += way->cycles;
        bench->ahead += way->cycles;
        bench->seen_chain = way->parts;
        tl_set_input(sim, TL_PORT_D, LINE_DATA, (int)(way->parts & 1));
        sim->status.asleep_cycles += way->asleep;
    }
}

/* From one sleep of the chip to the next one, executed and remembered */
static void execute(tl_bench *bench, uint32_t place, uint64_t until)
{
    tl_sim *sim = bench->monitor;
    uint64_t begin = monitor_clock(bench), asleep = sim->status.asleep_cycles;
    bench->first_look = 0;
    bench->is_spoiled = 0;
    do {
        tl_run_step(sim);
    } while (!sim->status.dead && monitor_clock(bench) < until && !tl_memo_is_place(sim));
    if (bench->is_spoiled || !bench->first_look || !tl_memo_is_place(sim) || monitor_clock(bench) >= until)
        return;
    uint64_t took = monitor_clock(bench) - begin;
    uint32_t nodes = place;
    uint32_t next = tl_memo_place(bench->memo, sim);
    if (nodes > next && next == 0) /* all has been forgotten */
        return;
    tl_memo_keep(bench->memo, place, bench->at_first_look,
                 (tl_way){next, (uint32_t)took, (uint32_t)(sim->status.asleep_cycles - asleep), (uint32_t)(bench->first_look - begin),
                          (uint32_t)(bench->last_look - begin), bench->seen_chain});
}

void tl_monitor_run(tl_bench *bench, uint64_t until)
{
    tl_sim *sim = bench->monitor;
    while (bench->memo && !sim->status.dead && monitor_clock(bench) < until) {
        if (!tl_memo_is_place(sim)) {
            tl_run_step(sim);
            continue;
        }
        uint32_t here = tl_memo_place(bench->memo, sim), place = hop(bench, here, until);
        if (place != here)
            tl_memo_restore(bench->memo, place, sim);
        if (until - monitor_clock(bench) < LONGEST_SLEEP)
            return; /* the rest comes with the next call */
        execute(bench, place, until);
    }
    if (!bench->memo)
        tl_run(sim, until - bench->ahead);
}

void tl_monitor_wire_up(tl_bench *bench)
{
    tl_take_over_pins(bench->monitor, on_monitor_pins, on_monitor_looks, bench);
    tl_set_input(bench->monitor, TL_PORT_D, BUTTON, 1);
    bench->memo = tl_memo_create(); /* without memory for it, all is executed */
    watch_eeprom(bench);
}
