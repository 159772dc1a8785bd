/* The ATmega328P as a board: sleep and LED; its start and interrupts are in start.S. */
#include "board.h"

#include <avr/sleep.h>

#include "hardware.h"
#include "uart.h"

void board_start(void) {
    LED_DIRECTION |= _BV(LED_BIT);
    ALARM_CONTROL = ALARM_RUN;
    SMCR = SLEEP_MODE_IDLE | _BV(SE); /* a sleep instruction sleeps, whenever */
    uart_start();
    sei();
}

/* The alarm may only ring during the rest, so that it never falls into the timed part of a decision. */
void board_rest(void) {
    ALARM_FLAGS = ALARM_RANG;
    ALARM_INTERRUPTS = ALARM_INTERRUPT;
    cli();
    if (uart_is_quiet()) { /* asked with interrupts off: a byte that comes now still ends the sleep below */
        sei(); /* takes effect after the next instruction, hence no gap before the sleep */
        sleep_cpu();
    }
    sei();
    ALARM_INTERRUPTS = 0;
}
