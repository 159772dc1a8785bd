/* The monitor's chip: an ATmega328P at 16 MHz of its own. Pins: docs/controller.md.
 *
 * Timer 0 gives the millisecond. The lamps' lines come through a chain of 74HC165, first group 0's red, yellow and green, then group
 * 1's, ... The relay is held by a high pin: a chip without power, in reset or hanging (watchdog) lets it go, and the crossing
 * flashes.
 */
#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>

#include "monitor.h"

#include "monitor_table.h" /* generated */

#if F_CPU != 16000000
#error "the monitor's millisecond is counted at 16 MHz"
#endif

#define LOAD_BIT PD2      /* out: low takes the lines into the chain */
#define CLOCK_BIT PD3     /* out */
#define DATA_BIT PD4      /* in: the chain's end */
#define HEARTBEAT_BIT PD5 /* in */
#define BUTTON_BIT PD6    /* in, low: pressed */
#define RELAY_BIT PD7     /* out, high: the crossing shows what its controller shows */
#define LED_BIT PB5       /* out: lit while the crossing flashes */

/* In the EEPROM: reason and group, and the complement of both, so that an empty or half written one is noticed */
#define KEPT_AT ((uint8_t *)0)

static struct monitor monitor;

ISR(TIMER0_COMPA_vect, ISR_NAKED) { /* it only ends the sleep */
    reti();
}

static uint8_t read_line(void) {
    const uint8_t lit = (PIND >> DATA_BIT) & 1u;
    PORTD |= _BV(CLOCK_BIT);
    PORTD &= (uint8_t)~_BV(CLOCK_BIT);
    return lit;
}

static void read_lines(struct monitor_lines *lines) {
    lines->red = lines->yellow = lines->green = 0;
    PORTD &= (uint8_t)~_BV(LOAD_BIT);
    PORTD |= _BV(LOAD_BIT);
    for (uint16_t bit = 1, group = 0; group < monitor_table.groups; group++, bit <<= 1) {
        lines->red |= read_line() != 0 ? bit : 0;
        lines->yellow |= read_line() != 0 ? bit : 0;
        lines->green |= read_line() != 0 ? bit : 0;
    }
    lines->heartbeat = (PIND & _BV(HEARTBEAT_BIT)) != 0;
    lines->button = (PIND & _BV(BUTTON_BIT)) == 0;
}

static void keep_reason(void) {
    const uint8_t kept[4] = {monitor.reason, monitor.group, (uint8_t)~monitor.reason, (uint8_t)~monitor.group};
    eeprom_update_block(kept, KEPT_AT, sizeof kept);
}

static void start(void) {
    uint8_t kept[4];
    eeprom_read_block(kept, KEPT_AT, sizeof kept);
    const bool is_whole = (kept[0] ^ kept[2]) == 0xFF && (kept[1] ^ kept[3]) == 0xFF;
    const bool is_empty = (kept[0] & kept[1] & kept[2] & kept[3]) == 0xFF;
    monitor_start(&monitor, is_whole ? kept[0] : is_empty ? MONITOR_FINE : MONITOR_TABLE, is_whole ? kept[1] : 0);
}

static void show(void) {
    if (monitor.reason == MONITOR_FINE) {
        PORTD |= _BV(RELAY_BIT);
        PORTB &= (uint8_t)~_BV(LED_BIT);
    } else {
        PORTD &= (uint8_t)~_BV(RELAY_BIT);
        PORTB |= _BV(LED_BIT);
    }
}

int main(void) {
    wdt_enable(WDTO_30MS);
    DDRD = _BV(LOAD_BIT) | _BV(CLOCK_BIT) | _BV(RELAY_BIT);
    PORTD = _BV(LOAD_BIT) | _BV(BUTTON_BIT);
    DDRB = _BV(LED_BIT);
    TCCR0A = _BV(WGM01);
    OCR0A = 249;
    TCCR0B = _BV(CS01) | _BV(CS00); /* 16 MHz / 64 / 250 */
    TIMSK0 = _BV(OCIE0A);
    start();
    show();
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (;;) {
        struct monitor_lines lines;
        sleep_mode();
        wdt_reset();
        read_lines(&lines);
        if (monitor_tick(&monitor, &lines)) {
            show(); /* before the EEPROM, which takes its time */
            wdt_enable(WDTO_120MS);
            keep_reason();
            wdt_enable(WDTO_30MS);
        }
    }
}
