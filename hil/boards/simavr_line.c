/* The serial line of the emulated board, which keeps the wire's time.
 *
 * What simavr's own UART does differently from silicon, and what is done about it here:
 *  - A byte takes 11 bit times in simavr: `cycles_per_byte` is set to the 10 of 8N1 before simavr uses it.
 *  - Its receive queue of 64 hides overruns: it gets one byte at a time, at the moment the stop bit ends on the wire; two
 *    more wait here (silicon: two-byte buffer and shift register), and the next one is lost with DOR set.
 *  - The harness's end of the line has its own rate: request bytes are paced by `baud`, reply bytes by the chip's divisor,
 *    and rates further apart than the datasheet allows give framing errors.
 *  - UART_IRQ_OUTPUT fires when UDR0 is written: the byte's place on the wire is computed from there.
 */
#include "simavr_state.h"

/* ---- rates --------------------------------------------------------------------------------------------------------- */

static uint32_t chip_bit_cycles(const tl_sim *sim)
{
    avr_t *avr = sim->avr;
    const avr_uart_t *uart = sim->uart;
    uint32_t divisor = avr_regbit_get(avr, uart->ubrrl) | (uint32_t)avr_regbit_get(avr, uart->ubrrh) << 8;
    return (divisor + 1) * (avr_regbit_get(avr, uart->u2x) ? 8 : 16);
}

/* start bit, 8 data bits, 1 or 2 stop bits */
uint32_t tl_chip_byte_cycles(const tl_sim *sim)
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

/* What a receiver at another rate makes of a byte: a different one, and not a delimiter. */
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

int tl_rates_match(const tl_sim *sim)
{
    return chip_hears_host(sim) && host_hears_chip(sim);
}

/* ---- from the harness to the chip ---------------------------------------------------------------------------------- */

static void hand_over(tl_sim *sim, uint16_t value)
{
    avr_uart_t *uart = sim->uart;
    uart->cycles_per_byte = 1; /* the byte is complete: simavr shall raise RXC at once */
    avr_raise_irq(sim->uart_irq + UART_IRQ_INPUT, value);
    uart->cycles_per_byte = tl_chip_byte_cycles(sim);
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
        tl_note(sim, TL_REQUEST_BYTE, sim->wire_free_at > start ? sim->wire_free_at : start, sim->wire_end[slot], data[i]);
        sim->wire_free_at = sim->wire_end[slot];
    }
    sim->status.write_start = start;
    sim->status.request_end = sim->wire_free_at;
    if (idle)
        schedule_wire(sim);
    return 0;
}

/* ---- from the chip to the harness ---------------------------------------------------------------------------------- */

avr_cycle_count_t tl_on_stop(avr_t *avr, avr_cycle_count_t when, void *context)
{
    (void)avr;
    (void)when;
    (void)context;
    return 0;
}

static void on_byte_sent(avr_irq_t *irq, uint32_t value, void *context)
{
    (void)irq;
    tl_sim *sim = context;
    uint32_t duration = tl_chip_byte_cycles(sim);
    sim->uart->cycles_per_byte = duration; /* simavr starts its timer right after this call */
    if (sim->sent_count == SENT_CAPACITY) {
        sim->status.bytes_unsent++;
        return;
    }
    sent_byte *byte = &sim->sent[(sim->sent_head + sim->sent_count++) % SENT_CAPACITY];
    byte->start = sim->avr->cycle > sim->sent_free_at ? sim->avr->cycle : sim->sent_free_at;
    byte->end = sim->sent_free_at = byte->start + duration;
    tl_note(sim, TL_REPLY_BYTE, byte->start, byte->end, (uint8_t)value);
    byte->value = host_hears_chip(sim) ? (uint8_t)value : misread((uint8_t)value);
    if (byte->value == 0) {
        sim->frame_ends++;
        avr_cycle_timer_register(sim->avr, byte->end - sim->avr->cycle, tl_on_stop, &sim->frame_ends);
    }
}

uint32_t tl_take(tl_sim *sim, uint8_t *data, uint32_t capacity)
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

int tl_frame_arrived(const tl_sim *sim)
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
    while ((taken = tl_take(sim, scrap, sizeof scrap)))
        dropped += taken;
    sim->at_frame_start = 1;
    return dropped;
}

/* ---- connecting ---------------------------------------------------------------------------------------------------- */

void tl_line_connect(tl_sim *sim)
{
    uint32_t flags = 0; /* neither echo to stdout nor sleep for real */
    avr_ioctl(sim->avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    sim->uart_irq = avr_io_getirq(sim->avr, AVR_IOCTL_UART_GETIRQ('0'), 0);
    avr_irq_register_notify(sim->uart_irq + UART_IRQ_OUTPUT, on_byte_sent, sim);
    avr_irq_register_notify(sim->uart_irq + UART_IRQ_OUT_XON, on_receive_buffer_empty, sim);
    sim->at_frame_start = 1;
}

void tl_line_reset(tl_sim *sim)
{
    sim->wire_count = 0;
    sim->wire_free_at = sim->avr->cycle;
    sim->sent_count = sim->frame_ends = 0;
    sim->sent_free_at = sim->avr->cycle;
    sim->at_frame_start = 1;
}

void tl_line_after_reset(tl_sim *sim)
{
    sim->waiting_count = 0;
    schedule_wire(sim);
}

void tl_set_baud(tl_sim *sim, uint32_t baud)
{
    sim->baud = baud;
}
