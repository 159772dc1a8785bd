/* What happens at the chip's pins, noted for a wave form (hil/boards/waves.py): bytes in either direction, levels, sleep, resets. */
#include "simavr_state.h"

#include <stdlib.h>

#include <simavr/avr_ioport.h>

enum { FIRST_CAPACITY = 4096, PINS = 8, ALL = 1, LINE_ONLY = 2 };

static const char ports[] = "BCD"; /* of the ATmega328P */

void tl_note(tl_sim *sim, int kind, uint64_t start, uint64_t end, uint8_t value)
{
    if (!sim->tracing || (sim->tracing == LINE_ONLY && kind == TL_ASLEEP))
        return;
    if (sim->trace_count == sim->trace_capacity) {
        uint32_t capacity = sim->trace_capacity ? 2 * sim->trace_capacity : FIRST_CAPACITY;
        tl_event *larger = realloc(sim->trace, capacity * sizeof *larger);
        if (!larger) {
            sim->tracing = 0;
            sim->trace_lost = 1;
            return;
        }
        sim->trace = larger;
        sim->trace_capacity = capacity;
    }
    sim->trace[sim->trace_count++] = (tl_event){start, end, (uint8_t)kind, value};
}

static void on_pin(avr_irq_t *irq, uint32_t level, void *context)
{
    tl_sim *sim = context;
    for (int port = 0; ports[port]; port++)
        for (int pin = 0; pin < PINS; pin++)
            if (irq == sim->pins[port][pin])
                tl_note(sim, level ? TL_PIN_HIGH : TL_PIN_LOW, sim->avr->cycle, sim->avr->cycle, (uint8_t)(port << 4 | pin));
}

void tl_trace(tl_sim *sim)
{
    sim->tracing = ALL;
    for (int port = 0; ports[port]; port++)
        for (int pin = 0; pin < PINS; pin++) {
            sim->pins[port][pin] = avr_io_getirq(sim->avr, AVR_IOCTL_IOPORT_GETIRQ(ports[port]), pin);
            if (!sim->pins[port][pin])
                continue;
            avr_irq_register_notify(sim->pins[port][pin], on_pin, sim);
            if (sim->pins[port][pin]->value)
                on_pin(sim->pins[port][pin], 1, sim);
        }
}

void tl_trace_line(tl_sim *sim)
{
    sim->tracing = LINE_ONLY;
}

const tl_event *tl_traced(const tl_sim *sim, uint32_t *count)
{
    *count = sim->trace_count;
    return sim->trace_lost ? NULL : sim->trace;
}
