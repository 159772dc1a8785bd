/* One ATmega328P in simavr: its life, its memories, and running it. Interface: simavr_glue.h; the serial line: simavr_line.c.
 *
 * What simavr does differently from silicon beside its UART, and what is done about it here:
 *  - Interrupt entry costs no cycles in simavr; on silicon 4, and 4 more from sleep: added.
 *  - A sleeping core is skipped ahead to its next event instead of sleeping for real.
 *  - A wild pointer of the firmware reaches into the memory of this process: the chip's memories get room for every address.
 */
#include "simavr_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/sim_interrupts.h>

enum {
    INTERRUPT_ENTRY_CYCLES = 4,    /* datasheet, section 7.7.1 "Interrupt Response Time" */
    INTERRUPT_FROM_SLEEP_CYCLES = 4,
    VECTORS = 26,                  /* of the ATmega328P, reset included */
    ADDRESS_SPACE = 0x10000,
    SRAM_BEGIN = 0x100,            /* of the ATmega328P */
    MAX_RUN_CYCLES = 1 << 20,      /* timers end a batch of instructions earlier */
};

static void log_error(avr_t *avr, const int level, const char *format, va_list arguments)
{
    tl_sim *sim = avr ? avr->custom.data : NULL;
    if (!sim || level > LOG_ERROR)
        return;
    vsnprintf(sim->message, sizeof sim->message, format, arguments);
    if (strstr(sim->message, "Invalid Opcode")) { /* simavr only mentions it, and goes on */
        sim->status.dead = TL_DEAD_OPCODE;
        avr->run_cycle_count = 0; /* ends the batch of instructions */
    }
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

static void on_interrupt(avr_irq_t *irq, uint32_t running, void *context)
{
    (void)irq;
    tl_sim *sim = context;
    if (running)
        sim->avr->cycle += INTERRUPT_ENTRY_CYCLES + (sim->was_asleep ? INTERRUPT_FROM_SLEEP_CYCLES : 0);
}

static void skip_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
    tl_sim *sim = avr->custom.data;
    tl_note(sim, TL_ASLEEP, avr->cycle, avr->cycle + cycles + 1, 0);
    sim->status.asleep_cycles += cycles + 1; /* the caller adds them to the clock, and one more */
}

/* simavr's reset empties its timer queue and forgets the batch limit. */
/* How far one run may go: a single instruction where each is marked. */
static uint32_t batch_cycles(const tl_sim *sim)
{
    return sim->executed ? 1 : MAX_RUN_CYCLES;
}

static void after_reset(tl_sim *sim)
{
    tl_release_pins(sim);
    sim->avr->run_cycle_limit = batch_cycles(sim);
    tl_line_after_reset(sim);
}

static void step(tl_sim *sim)
{
    avr_t *avr = sim->avr;
    if (avr->run != sim->plain_run) { /* the watchdog put its reset there */
        avr->run(avr);
        sim->status.watchdog_resets++;
        tl_note(sim, TL_RESET, avr->cycle, avr->cycle, 0);
        after_reset(sim);
        return;
    }
    sim->was_asleep = avr->state == cpu_Sleeping;
    if (sim->executed && !sim->was_asleep) {
        sim->executed[(avr->pc & (ADDRESS_SPACE - 1)) >> 1] = 1;
    }
    avr->run(avr);
    if (avr->state == cpu_Done)
        sim->status.dead = TL_DEAD_ASLEEP;
    else if (avr->state != cpu_Running && avr->state != cpu_Sleeping)
        sim->status.dead = TL_DEAD_CRASHED;
    else if (avr->pc >= sim->code_end && !sim->status.dead)
        sim->status.dead = TL_DEAD_RAN_OFF;
}

void tl_run_by_simavr(tl_sim *sim)
{
    sim->avr->run = sim->plain_run = sim->simavr_run;
}

void tl_mark_executed(tl_sim *sim, uint8_t *marks)
{
    sim->executed = marks;
}

static void stop_at(tl_sim *sim, uint64_t deadline)
{
    uint64_t now = sim->avr->cycle;
    avr_cycle_timer_register(sim->avr, deadline > now ? deadline - now : 0, tl_on_stop, sim);
}

uint32_t tl_read(tl_sim *sim, uint64_t deadline, uint8_t *data, uint32_t capacity)
{
    uint32_t resets = sim->status.watchdog_resets;
    stop_at(sim, deadline);
    while (!sim->status.dead && sim->avr->cycle < deadline && !tl_frame_arrived(sim) && sim->sent_count < capacity) {
        step(sim);
        if (sim->status.watchdog_resets != resets) {
            resets = sim->status.watchdog_resets;
            stop_at(sim, deadline);
        }
    }
    avr_cycle_timer_cancel(sim->avr, tl_on_stop, sim);
    return tl_take(sim, data, capacity);
}

void tl_run_step(tl_sim *sim)
{
    step(sim);
}

void tl_run(tl_sim *sim, uint64_t deadline)
{
    uint32_t resets = sim->status.watchdog_resets;
    stop_at(sim, deadline);
    while (!sim->status.dead && sim->avr->cycle < deadline) {
        step(sim);
        if (sim->status.watchdog_resets != resets) {
            resets = sim->status.watchdog_resets;
            stop_at(sim, deadline);
        }
    }
    avr_cycle_timer_cancel(sim->avr, tl_on_stop, sim);
}

void tl_run_until_receiver_on(tl_sim *sim, uint64_t deadline)
{
    stop_at(sim, deadline);
    while (!sim->status.dead && sim->avr->cycle < deadline && !avr_regbit_get(sim->avr, sim->uart->rxen)) {
        sim->avr->run_cycle_limit = 1;
        step(sim);
    }
    sim->avr->run_cycle_limit = batch_cycles(sim);
    avr_cycle_timer_cancel(sim->avr, tl_on_stop, sim);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

/* 16-bit pointers must stay inside: simavr notices an access beyond the memory's end, but makes it all the same. */
static int give_room(avr_t *avr)
{
    uint32_t data_size = avr->ramend + 1, flash_size = avr->flashend + 4;
    uint8_t *data = realloc(avr->data, ADDRESS_SPACE);
    if (data)
        avr->data = data;
    uint8_t *flash = realloc(avr->flash, ADDRESS_SPACE + 4);
    if (flash)
        avr->flash = flash;
    if (!data || !flash)
        return -1;
    memset(data + data_size, 0, ADDRESS_SPACE - data_size);
    memset(flash + flash_size, 0xff, ADDRESS_SPACE + 4 - flash_size);
    return 0;
}

static avr_uart_t *find_uart(avr_t *avr)
{
    for (avr_io_t *io = avr->io_port; io; io = io->next)
        if (!strcmp(io->kind, "uart") && ((avr_uart_t *)io)->name == '0')
            return (avr_uart_t *)io;
    return NULL;
}

tl_sim *tl_create(const char *part, uint32_t f_cpu_hz, uint32_t baud)
{
    avr_global_logger_set(log_error);
    avr_t *avr = avr_make_mcu_by_name(part);
    if (!avr)
        return NULL;
    avr_init(avr);
    avr_uart_t *uart = find_uart(avr);
    tl_sim *sim = uart && give_room(avr) == 0 ? calloc(1, sizeof *sim) : NULL;
    if (!sim) {
        avr_terminate(avr);
        free(avr);
        return NULL;
    }
    avr->custom.data = sim;
    avr->frequency = f_cpu_hz;
    avr->gdb_port = 0;
    avr->sleep = skip_sleep;
    sim->avr = avr;
    sim->uart = uart;
    sim->baud = baud;
    sim->simavr_run = avr->run;
    avr->run = sim->plain_run = tl_core_run;
    tl_line_connect(sim);
    for (int vector = 1; vector < VECTORS; vector++) {
        avr_irq_t *irq = avr_get_interrupt_irq(avr, vector);
        if (irq)
            avr_irq_register_notify(irq + AVR_INT_IRQ_RUNNING, on_interrupt, sim);
    }
    return sim;
}

void tl_destroy(tl_sim *sim)
{
    avr_terminate(sim->avr);
    free(sim->avr);
    free(sim->trace);
    free(sim);
}

int tl_load(tl_sim *sim, const uint8_t *code, uint32_t size, uint32_t address)
{
    uint32_t capacity = sim->avr->flashend + 1;
    if (address > capacity || size > capacity - address)
        return -1;
    avr_loadcode(sim->avr, (uint8_t *)code, size, address);
    if (address + size > sim->code_end)
        sim->code_end = address + size;
    sim->avr->codeend = sim->code_end;
    return 0;
}

void tl_set_reset_address(tl_sim *sim, uint32_t address)
{
    sim->avr->reset_pc = address;
}

void tl_jump(tl_sim *sim, uint32_t address)
{
    sim->avr->sreg[S_I] = 0;
    sim->avr->state = cpu_Running;
    sim->avr->pc = address;
}

void tl_scramble_ram(tl_sim *sim, uint32_t seed)
{
    for (uint32_t address = SRAM_BEGIN; address <= sim->avr->ramend; address++) {
        seed = seed * 1664525u + 1013904223u;
        sim->avr->data[address] = (uint8_t)(seed >> 24);
    }
}

void tl_reset(tl_sim *sim, int cause)
{
    avr_t *avr = sim->avr;
    avr->run = sim->plain_run; /* a watchdog reset that was due is overtaken */
    avr_reset(avr);
    if (cause == TL_RESET_PIN)
        avr_regbit_set(avr, avr->reset_flags.extrf);
    else
        avr_regbit_set(avr, cause == TL_BROWN_OUT ? avr->reset_flags.borf : avr->reset_flags.porf);
    tl_line_reset(sim);
    tl_note(sim, TL_RESET, avr->cycle, avr->cycle, 1);
    sim->status.dead = TL_ALIVE;
    sim->message[0] = 0;
    after_reset(sim);
}

void tl_get_status(const tl_sim *sim, tl_status *status)
{
    *status = sim->status;
    status->cycle = sim->avr->cycle;
    status->pc = sim->avr->pc;
    status->receiver_on = avr_regbit_get(sim->avr, sim->uart->rxen);
    status->chip_byte_cycles = status->receiver_on ? tl_chip_byte_cycles(sim) : 0;
    status->rate_matches = tl_rates_match(sim);
}

const char *tl_message(const tl_sim *sim)
{
    return sim->message;
}

const uint8_t *tl_data_memory(const tl_sim *sim, uint32_t *size)
{
    *size = sim->avr->ramend + 1;
    return sim->avr->data;
}
