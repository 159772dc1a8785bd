/* One ATmega328P in simavr, with a serial line that keeps the wire's time. Interface: simavr_glue.h.
 *
 * What simavr's own UART does differently from silicon, and what is done about it here:
 *  - A byte takes 11 bit times in simavr: `cycles_per_byte` is set to the 10 of 8N1 before simavr uses it.
 *  - Its receive queue of 64 hides overruns: it gets one byte at a time, at the moment the stop bit ends on the wire; two
 *    more wait here (silicon: two-byte buffer and shift register), and the next one is lost with DOR set.
 *  - The harness's end of the line has its own rate: request bytes are paced by `baud`, reply bytes by the chip's divisor,
 *    and rates further apart than the datasheet allows give framing errors.
 *  - UART_IRQ_OUTPUT fires when UDR0 is written: the byte's place on the wire is computed from there.
 *  - Interrupt entry costs no cycles in simavr; on silicon 4, and 4 more from sleep: added.
 *  - A sleeping core is skipped ahead to its next event instead of sleeping for real.
 *  - A wild pointer of the firmware reaches into the memory of this process: the chip's memories get room for every address.
 */
#include "simavr_glue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_interrupts.h>

enum {
    WIRE_CAPACITY = 1024,          /* request bytes on their way */
    SENT_CAPACITY = 4096,          /* reply bytes not taken yet */
    WAITING_CAPACITY = 2,          /* received bytes behind the one in UDR0: buffer and shift register */
    INTERRUPT_ENTRY_CYCLES = 4,    /* datasheet, section 7.7.1 "Interrupt Response Time" */
    INTERRUPT_FROM_SLEEP_CYCLES = 4,
    VECTORS = 26,                  /* of the ATmega328P, reset included */
    ADDRESS_SPACE = 0x10000,
    SRAM_BEGIN = 0x100,            /* of the ATmega328P */
    MAX_RUN_CYCLES = 1 << 20,      /* timers end a batch of instructions earlier */
};

typedef struct {
    uint64_t start, end;
    uint8_t value;
} sent_byte;

struct tl_sim {
    avr_t *avr;
    avr_uart_t *uart;
    avr_irq_t *uart_irq;
    avr_run_t plain_run;
    uint32_t baud;
    uint32_t code_end;
    int was_asleep;
    tl_status status;
    /* request bytes on the wire, oldest first */
    uint8_t wire[WIRE_CAPACITY];
    uint64_t wire_end[WIRE_CAPACITY];
    uint32_t wire_head, wire_count;
    uint64_t wire_free_at; /* when the last byte's stop bit ends */
    /* bytes received in full that the firmware has not been given yet */
    uint16_t waiting[WAITING_CAPACITY];
    uint32_t waiting_count;
    /* reply bytes, oldest first */
    sent_byte sent[SENT_CAPACITY];
    uint32_t sent_head, sent_count;
    uint64_t sent_free_at;
    uint64_t frame_start;
    int at_frame_start;
    uint32_t frame_ends; /* delimiters among the reply bytes held */
    char message[160];
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

/* ---- line rates ---------------------------------------------------------------------------------------------------- */

static uint32_t chip_bit_cycles(const tl_sim *sim)
{
    avr_t *avr = sim->avr;
    const avr_uart_t *uart = sim->uart;
    uint32_t divisor = avr_regbit_get(avr, uart->ubrrl) | (uint32_t)avr_regbit_get(avr, uart->ubrrh) << 8;
    return (divisor + 1) * (avr_regbit_get(avr, uart->u2x) ? 8 : 16);
}

/* start bit, 8 data bits, 1 or 2 stop bits */
static uint32_t chip_byte_cycles(const tl_sim *sim)
{
    return chip_bit_cycles(sim) * (10 + avr_regbit_get(sim->avr, sim->uart->usbs));
}

/* Whether a receiver with `receiver_bit` cycles a bit, sampling `samples` times a bit, can read bits of `sender_bit` cycles:
 * the datasheet's R_slow and R_fast (section 19.8.3) for 8 data bits. */
static int tolerates(double receiver_bit, double sender_bit, int samples)
{
    const int bits = 8, middle = samples / 2, first = middle + 1;
    double ratio = receiver_bit / sender_bit;
    double slow = (double)((bits + 1) * samples) / (samples - 1 + bits * samples + middle);
    double fast = (double)((bits + 2) * samples) / ((bits + 1) * samples + first);
    return ratio >= slow && ratio <= fast;
}

/* What a receiver at another rate makes of a byte: something else, and not a delimiter. */
static uint8_t misread(uint8_t byte)
{
    return (uint8_t)(byte << 1) | 1;
}

static int chip_hears_host(const tl_sim *sim)
{
    int samples = avr_regbit_get(sim->avr, sim->uart->u2x) ? 8 : 16;
    return tolerates(chip_bit_cycles(sim), (double)sim->avr->frequency / sim->baud, samples);
}

static int host_hears_chip(const tl_sim *sim)
{
    return tolerates((double)sim->avr->frequency / sim->baud, chip_bit_cycles(sim), 16);
}

/* ---- from the harness to the chip ---------------------------------------------------------------------------------- */

static void hand_over(tl_sim *sim, uint16_t value)
{
    avr_uart_t *uart = sim->uart;
    uart->cycles_per_byte = 1; /* the byte is complete: simavr shall raise RXC at once */
    avr_raise_irq(sim->uart_irq + UART_IRQ_INPUT, value);
    uart->cycles_per_byte = chip_byte_cycles(sim);
}

/* The firmware has read UDR0, or looks at an empty one: the next byte moves up. */
static void on_receive_buffer_empty(avr_irq_t *irq, uint32_t value, void *context)
{
    (void)irq;
    (void)value;
    tl_sim *sim = context;
    if (!sim->waiting_count)
        return;
    uint16_t next = sim->waiting[0];
    sim->waiting[0] = sim->waiting[1];
    sim->waiting_count--;
    hand_over(sim, next);
}

static void receive(tl_sim *sim, uint8_t byte)
{
    avr_t *avr = sim->avr;
    avr_uart_t *uart = sim->uart;
    uint16_t value = byte;
    if (!avr_regbit_get(avr, uart->rxen)) {
        sim->waiting_count = 0;
        sim->status.bytes_ignored++;
        return;
    }
    if (!chip_hears_host(sim)) {
        value = misread(byte) | UART_INPUT_FE;
        sim->status.bytes_misframed++;
    }
    if (uart->input.read == uart->input.write) {
        hand_over(sim, value);
    } else if (sim->waiting_count < WAITING_CAPACITY) {
        sim->waiting[sim->waiting_count++] = value;
    } else {
        avr_regbit_set(avr, uart->dor);
        sim->status.bytes_overrun++;
    }
}

static avr_cycle_count_t on_byte_received(avr_t *avr, avr_cycle_count_t when, void *context)
{
    (void)avr;
    (void)when;
    tl_sim *sim = context;
    uint8_t byte = sim->wire[sim->wire_head];
    sim->wire_head = (sim->wire_head + 1) % WIRE_CAPACITY;
    sim->wire_count--;
    receive(sim, byte);
    return sim->wire_count ? sim->wire_end[sim->wire_head] : 0;
}

static void schedule_wire(tl_sim *sim)
{
    if (!sim->wire_count)
        return;
    uint64_t end = sim->wire_end[sim->wire_head], now = sim->avr->cycle;
    avr_cycle_timer_register(sim->avr, end > now ? end - now : 0, on_byte_received, sim);
}

int tl_write(tl_sim *sim, const uint8_t *data, uint32_t size)
{
    uint64_t start = sim->avr->cycle > sim->wire_free_at ? sim->avr->cycle : sim->wire_free_at;
    uint64_t frequency = sim->avr->frequency;
    int idle = sim->wire_count == 0;
    if (sim->wire_count + size > WIRE_CAPACITY)
        return -1;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t slot = (sim->wire_head + sim->wire_count++) % WIRE_CAPACITY;
        sim->wire[slot] = data[i];
        sim->wire_end[slot] = start + ((i + 1) * 10 * frequency + sim->baud - 1) / sim->baud;
        sim->wire_free_at = sim->wire_end[slot];
    }
    sim->status.write_start = start;
    sim->status.request_end = sim->wire_free_at;
    if (idle)
        schedule_wire(sim);
    return 0;
}

/* ---- from the chip to the harness ---------------------------------------------------------------------------------- */

static avr_cycle_count_t on_stop(avr_t *avr, avr_cycle_count_t when, void *context)
{
    (void)avr;
    (void)when;
    (void)context;
    return 0; /* it is there so that no batch of instructions and no sleep reaches beyond it */
}

static void on_byte_sent(avr_irq_t *irq, uint32_t value, void *context)
{
    (void)irq;
    tl_sim *sim = context;
    uint32_t duration = chip_byte_cycles(sim);
    sim->uart->cycles_per_byte = duration; /* simavr starts its timer right after this call */
    if (sim->sent_count == SENT_CAPACITY) {
        sim->status.bytes_unsent++;
        return;
    }
    sent_byte *byte = &sim->sent[(sim->sent_head + sim->sent_count++) % SENT_CAPACITY];
    byte->start = sim->avr->cycle > sim->sent_free_at ? sim->avr->cycle : sim->sent_free_at;
    byte->end = sim->sent_free_at = byte->start + duration;
    byte->value = host_hears_chip(sim) ? (uint8_t)value : misread((uint8_t)value);
    if (byte->value == 0) {
        sim->frame_ends++;
        avr_cycle_timer_register(sim->avr, byte->end - sim->avr->cycle, on_stop, &sim->frame_ends);
    }
}

/* Takes bytes that have arrived, up to a frame's end. */
static uint32_t take(tl_sim *sim, uint8_t *data, uint32_t capacity)
{
    uint32_t taken = 0;
    while (sim->sent_count && taken < capacity) {
        const sent_byte *byte = &sim->sent[sim->sent_head];
        if (byte->end > sim->avr->cycle)
            break;
        sim->sent_head = (sim->sent_head + 1) % SENT_CAPACITY;
        sim->sent_count--;
        data[taken++] = byte->value;
        if (byte->value) {
            if (sim->at_frame_start)
                sim->frame_start = byte->start;
            sim->at_frame_start = 0;
            continue;
        }
        sim->frame_ends--;
        if (sim->at_frame_start) /* an empty frame is no reply */
            continue;
        sim->at_frame_start = 1;
        sim->status.reply_start = sim->frame_start;
        sim->status.reply_end = byte->end;
        break;
    }
    return taken;
}

/* Whether the oldest frame end held has arrived. */
static int frame_arrived(const tl_sim *sim)
{
    for (uint32_t i = 0; sim->frame_ends && i < sim->sent_count; i++) {
        const sent_byte *byte = &sim->sent[(sim->sent_head + i) % SENT_CAPACITY];
        if (byte->end > sim->avr->cycle)
            return 0;
        if (byte->value == 0)
            return 1;
    }
    return 0;
}

uint32_t tl_drain(tl_sim *sim)
{
    uint8_t scrap[64];
    uint32_t dropped = 0, taken;
    while ((taken = take(sim, scrap, sizeof scrap)))
        dropped += taken;
    sim->at_frame_start = 1;
    return dropped;
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
    (void)avr;
    (void)cycles; /* the caller adds them to the clock */
}

/* simavr's reset empties its timer queue and forgets the batch limit. */
static void after_reset(tl_sim *sim)
{
    sim->avr->run_cycle_limit = MAX_RUN_CYCLES;
    sim->waiting_count = 0;
    schedule_wire(sim);
}

static void step(tl_sim *sim)
{
    avr_t *avr = sim->avr;
    if (avr->run != sim->plain_run) { /* the watchdog put its reset there */
        avr->run(avr);
        sim->status.watchdog_resets++;
        after_reset(sim);
        return;
    }
    sim->was_asleep = avr->state == cpu_Sleeping;
    avr->run(avr);
    if (avr->state == cpu_Done)
        sim->status.dead = TL_DEAD_ASLEEP;
    else if (avr->state != cpu_Running && avr->state != cpu_Sleeping)
        sim->status.dead = TL_DEAD_CRASHED;
    else if (avr->pc >= sim->code_end && !sim->status.dead)
        sim->status.dead = TL_DEAD_RAN_OFF;
}

static void stop_at(tl_sim *sim, uint64_t deadline)
{
    uint64_t now = sim->avr->cycle;
    avr_cycle_timer_register(sim->avr, deadline > now ? deadline - now : 0, on_stop, sim);
}

uint32_t tl_read(tl_sim *sim, uint64_t deadline, uint8_t *data, uint32_t capacity)
{
    uint32_t resets = sim->status.watchdog_resets;
    stop_at(sim, deadline);
    while (!sim->status.dead && sim->avr->cycle < deadline && !frame_arrived(sim) && sim->sent_count < capacity) {
        step(sim);
        if (sim->status.watchdog_resets != resets) {
            resets = sim->status.watchdog_resets;
            stop_at(sim, deadline);
        }
    }
    avr_cycle_timer_cancel(sim->avr, on_stop, sim);
    return take(sim, data, capacity);
}

void tl_run_until_receiver_on(tl_sim *sim, uint64_t deadline)
{
    stop_at(sim, deadline);
    while (!sim->status.dead && sim->avr->cycle < deadline && !avr_regbit_get(sim->avr, sim->uart->rxen)) {
        sim->avr->run_cycle_limit = 1;
        step(sim);
    }
    sim->avr->run_cycle_limit = MAX_RUN_CYCLES;
    avr_cycle_timer_cancel(sim->avr, on_stop, sim);
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
    sim->plain_run = avr->run;
    sim->at_frame_start = 1;

    uint32_t flags = 0; /* neither echo to stdout nor sleep for real */
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    sim->uart_irq = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), 0);
    avr_irq_register_notify(sim->uart_irq + UART_IRQ_OUTPUT, on_byte_sent, sim);
    avr_irq_register_notify(sim->uart_irq + UART_IRQ_OUT_XON, on_receive_buffer_empty, sim);
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

void tl_set_baud(tl_sim *sim, uint32_t baud)
{
    sim->baud = baud;
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
    sim->wire_count = 0;
    sim->wire_free_at = avr->cycle;
    sim->sent_count = sim->frame_ends = 0;
    sim->sent_free_at = avr->cycle;
    sim->at_frame_start = 1;
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
    status->chip_byte_cycles = status->receiver_on ? chip_byte_cycles(sim) : 0;
    status->rate_matches = chip_hears_host(sim) && host_hears_chip(sim);
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
