/* The ATmega328P as a board: sleep and LED; its start and interrupts are in start.S. */
#include "board.h"

#include <avr/sleep.h>

#include "hardware.h"
#include "uart.h"

void board_start(void) {
    LED_DIRECTION |= _BV(LED_BIT);
    MODULES_OFF = UNUSED_MODULES;
    TIMER_MODE = TIMER_PLAIN;
    TIMER_CONTROL = TIMER_RUN;
    TIMER_INTERRUPTS = TIMER_OVERFLOW_INTERRUPT;
    SMCR = SLEEP_MODE_IDLE | _BV(SE); /* enables sleep instructions, for good */
    uart_start();
    sei();
}

void board_rest(void) {
    cli();
    if (uart_is_quiet()) { /* checked with interrupts off: a byte that comes now still ends the sleep below */
        sei(); /* takes effect after the next instruction, hence no gap before the sleep */
        sleep_cpu();
    }
    sei();
}
