/* The chip's ports, driven and read without simavr's own, which calls a function of each of its modules for every edge.
 *
 * What simavr does differently from silicon: SBI on a PIN register toggles all pins that are high, not that one; corrected here.
 */
#include "simavr_state.h"

enum {
    PIN_B = 0x23, /* data address of PINB; DDRB and PORTB follow, then the same of C and D */
    REGISTERS = 3,
    SBI = 0x9A, /* an instruction's high byte */
};

static int port_at(avr_io_addr_t address)
{
    return (address - PIN_B) / REGISTERS;
}

static uint8_t *registers(tl_sim *sim, int port)
{
    return sim->avr->data + PIN_B + REGISTERS * port;
}

static void drive(tl_sim *sim, int port)
{
    const uint8_t *at = registers(sim, port), driven = at[1] & at[2], before = sim->ports[port].driven;
    if (driven == before)
        return;
    sim->ports[port].driven = driven;
    for (int pin = 0; sim->tracing == 1 && pin < 8; pin++)
        if ((driven ^ before) >> pin & 1)
            tl_note(sim, driven >> pin & 1 ? TL_PIN_HIGH : TL_PIN_LOW, sim->avr->cycle, sim->avr->cycle, (uint8_t)(port << 4 | pin));
    sim->on_pins(sim->bench, sim, port, before);
}

static void write_register(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
    avr->data[address] = value;
    drive(context, port_at(address));
}

static void toggle(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
    if (avr->flash[avr->pc + 1] == SBI)
        value = (uint8_t)(1 << (avr->flash[avr->pc] & 7));
    avr->data[address + 2] ^= value;
    drive(context, port_at(address));
}

static uint8_t read_pins(avr_t *avr, avr_io_addr_t address, void *context)
{
    (void)avr;
    tl_sim *sim = context;
    int port = port_at(address);
    const uint8_t *at = registers(sim, port);
    sim->look_at_pins(sim->bench, sim, port);
    return (uint8_t)(sim->ports[port].driven | (sim->ports[port].inputs & ~at[1]));
}

void tl_set_input(tl_sim *sim, int port, int pin, int level)
{
    uint8_t bit = (uint8_t)(1 << pin), inputs = sim->ports[port].inputs;
    sim->ports[port].inputs = (uint8_t)(level ? inputs | bit : inputs & ~bit);
}

void tl_release_pins(tl_sim *sim)
{
    for (int port = 0; sim->on_pins && port < TL_PORTS; port++)
        drive(sim, port);
}

void tl_take_over_pins(tl_sim *sim, tl_on_pins on_pins, tl_look_at_pins look, void *bench)
{
    sim->on_pins = on_pins;
    sim->look_at_pins = look;
    sim->bench = bench;
    for (int port = 0; port < TL_PORTS; port++) {
        int first = AVR_DATA_TO_IO(PIN_B + REGISTERS * port);
        sim->avr->io[first].r.c = read_pins;
        sim->avr->io[first].r.param = sim;
        sim->avr->io[first].w.c = toggle;
        sim->avr->io[first].w.param = sim;
        for (int place = first + 1; place < first + REGISTERS; place++) {
            sim->avr->io[place].w.c = write_register;
            sim->avr->io[place].w.param = sim;
        }
    }
}
