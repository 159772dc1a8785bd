/* The ATmega328P as a board: reset cause, watchdog, sleep, LED. */
#include "board.h"

#include <avr/sleep.h>
#include <avr/wdt.h>

#include "hardware.h"
#include "uart.h"

#define WATCHDOG_TIMEOUT WDTO_1S /* a decision takes a hundredth of it; an alarm ends each sleep far earlier */

ISR(ALARM_VECTOR) {
    /* it only has to end the sleep */
}

void board_start(void) {
    LED_DIRECTION |= _BV(LED_BIT);
    ALARM_CONTROL = ALARM_RUN;
    set_sleep_mode(SLEEP_MODE_IDLE);
    uart_start();
    wdt_enable(WATCHDOG_TIMEOUT);
    sei();
}

/* The alarm may only ring during the rest, so that it never falls into the timed part of a decision. */
void board_rest(void) {
    ALARM_FLAGS = ALARM_RANG;
    ALARM_INTERRUPTS = ALARM_INTERRUPT;
    cli();
    if (uart_is_quiet()) { /* asked with interrupts off: a byte that comes now still ends the sleep below */
        sleep_enable();
        sei(); /* takes effect after the next instruction, hence no gap before the sleep */
        sleep_cpu();
        sleep_disable();
    }
    sei();
    ALARM_INTERRUPTS = 0;
}
