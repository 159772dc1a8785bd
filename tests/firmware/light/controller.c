/* A controller for tests of the bench: the shell at its pins, wishing the next phase for ever, and the detectors sent as bytes.
 *
 * Pins: docs/controller.md.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "light/shell.h"

#ifndef DETECTORS
#define DETECTORS 8
#endif
#define CHANGE_TICKS 1000

static struct shell shell;

ISR(TIMER1_COMPA_vect, ISR_NAKED) { reti(); }

static void shift_out(uint8_t lit) {
    PORTD = (uint8_t)((PORTD & ~_BV(PD4)) | (lit ? _BV(PD4) : 0));
    PORTD |= _BV(PD3);
    PORTD &= (uint8_t)~_BV(PD3);
}

static void show(const struct shell_output *output) {
    for (uint8_t group = shell_tables.groups; group-- > 0;) {
        shift_out((output->clearing >> group & 1) != 0);
        shift_out((output->walk >> group & 1) != 0);
    }
    for (uint8_t group = shell_tables.groups; group-- > 0;) {
        shift_out((output->green >> group & 1) != 0);
        shift_out((output->yellow >> group & 1) != 0);
        shift_out((output->red >> group & 1) != 0);
    }
    PORTD |= _BV(PD2);
    PORTD &= (uint8_t)~_BV(PD2);
}

/* One byte a line, '0' or '1', and a line's end: what the chain gave */
static void tell_detectors(void) {
    PORTB &= (uint8_t)~_BV(PB0);
    PORTB |= _BV(PB0);
    for (uint8_t line = 0; line < DETECTORS; line++) {
        const uint8_t occupied = (PINB >> PB2) & 1u;
        PORTB |= _BV(PB1);
        PORTB &= (uint8_t)~_BV(PB1);
        while ((UCSR0A & _BV(UDRE0)) == 0) {
        }
        UDR0 = (uint8_t)('0' + occupied);
    }
    while ((UCSR0A & _BV(UDRE0)) == 0) {
    }
    UDR0 = '\n';
}

int main(void) {
    uint16_t ticks = 0;
    uint8_t wish = 0;
    DDRD = _BV(PD2) | _BV(PD3) | _BV(PD4) | _BV(PD5);
    DDRB = _BV(PB0) | _BV(PB1);
    PORTB = _BV(PB0);
    UBRR0 = 16; /* 115,200 baud */
    UCSR0A = _BV(U2X0);
    UCSR0B = _BV(RXEN0) | _BV(TXEN0);
    OCR1A = 2499;
    TCCR1B = _BV(WGM12) | _BV(CS11) | _BV(CS10); /* 16 MHz / 64 / 2500 */
    TIMSK1 = _BV(OCIE1A);
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (;;) {
        struct shell_output output;
        const struct shell_input input = {.wish = wish};
        sleep_mode();
        shell_tick(&shell, &input, &output);
        show(&output);
        PIND = _BV(PD5);
        if (++ticks == CHANGE_TICKS) {
            ticks = 0;
            wish = (uint8_t)(wish + 1 < shell_tables.phases ? wish + 1 : 0);
        }
        tell_detectors();
    }
}
