/* The one header that knows the ATmega328P: clock, baud rate, registers, pins.
 *
 * F_CPU and BAUD come from the build (TINYLIGHT_F_CPU, TINYLIGHT_BAUD; 16 MHz and 115200 by default).
 * hil/build/baud.py computes the same divisor in Python.
 */
#ifndef HARDWARE_H
#define HARDWARE_H

#ifndef F_CPU
#error "F_CPU (Hz) is not defined"
#endif
#ifndef BAUD
#error "BAUD is not defined"
#endif
#if F_CPU < 1000000 || F_CPU > 20000000
#error "F_CPU is outside of 1 to 20 MHz"
#endif
#if BAUD < 1200 || BAUD > 2000000
#error "BAUD is outside of 1200 to 2000000"
#endif

/* Baud rate: of the two dividers (16, or 8 with U2X) the one that comes closer; 16 where they are equal,
 * since it samples the line more often. util/setbaud.h would take the first within a whole percentage.
 */
#define UBRR_16 ((F_CPU + 8LL * BAUD) / (16LL * BAUD) - 1)
#define UBRR_8 ((F_CPU + 4LL * BAUD) / (8LL * BAUD) - 1)
#if UBRR_8 < 0
#error "this baud rate is too fast for F_CPU"
#endif
#define BAUD_ERROR_PPM(factor, ubrr) (F_CPU * 1000000LL / ((factor) * ((ubrr) + 1)) / BAUD - 1000000LL)
#define MAGNITUDE(x) ((x) < 0 ? -(x) : (x))
#if UBRR_16 < 0 || UBRR_16 > 4095
#define UART_DOUBLE_SPEED 1
#elif UBRR_8 <= 4095 && MAGNITUDE(BAUD_ERROR_PPM(8, UBRR_8)) < MAGNITUDE(BAUD_ERROR_PPM(16, UBRR_16))
#define UART_DOUBLE_SPEED 1
#else
#define UART_DOUBLE_SPEED 0
#endif
#if UART_DOUBLE_SPEED
#define UART_UBRR UBRR_8
#define UART_ERROR_PPM BAUD_ERROR_PPM(8, UBRR_8)
#else
#define UART_UBRR UBRR_16
#define UART_ERROR_PPM BAUD_ERROR_PPM(16, UBRR_16)
#endif

/* A receiver samples 8N1 mid-bit: both ends together may be off by 5 %, half of it is ours. 115200 at 8 MHz is off by -3.5 %:
 * it is widely used, and works where the other end's clock is exact, so it compiles with a message.
 */
#define BAUD_ERROR_LIMIT_PPM 25000
#define BAUD_IS_THE_EXCEPTION (F_CPU == 8000000 && BAUD == 115200)
#if UART_UBRR > 4095
#error "this baud rate is too slow for F_CPU"
#endif
#if MAGNITUDE(UART_ERROR_PPM) > BAUD_ERROR_LIMIT_PPM && !BAUD_IS_THE_EXCEPTION
#error "no UART divider comes within 2.5 % of this baud rate; take another BAUD or F_CPU"
#endif
#define UART_ERROR_NOTEWORTHY BAUD_IS_THE_EXCEPTION

#include "mode.h"

#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/io.h>

/* UART 0 on pins PD0 (receive) and PD1 (transmit) */
#define UART_DATA UDR0
#define UART_STATUS UCSR0A
#define UART_CONTROL UCSR0B
#define UART_FORMAT UCSR0C
#define UART_8N1 (_BV(UCSZ01) | _BV(UCSZ00))
#define UART_DIVISOR UBRR0
#define UART_LISTENING (_BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0))
#define UART_ERROR_BITS (_BV(FE0) | _BV(DOR0)) /* wrong stop bit; a byte was lost in the hardware */
#define UART_RECEIVED_VECTOR_NUMBER USART_RX_vect_num
#define UART_CAN_SEND_VECTOR_NUMBER USART_UDRE_vect_num

/* Timer 1 counts clock cycles, always: the stopwatch of the compute time. Its overflow, every 65536 cycles (4 ms at 16 MHz), is
 * counted, and ends a sleep, so that the watchdog gets fed.
 */
#define TIMER_COUNT TCNT1
#define TIMER_MODE TCCR1A
#define TIMER_PLAIN 0 /* it counts through all of its range, and moves no pin */
#define TIMER_CONTROL TCCR1B
#define TIMER_RUN _BV(CS10)
#define TIMER_FLAGS TIFR1
#define TIMER_OVERFLOWED _BV(TOV1)
#define TIMER_INTERRUPTS TIMSK1
#define TIMER_OVERFLOW_INTERRUPT _BV(TOIE1)
#define TIMER_OVERFLOW_VECTOR_NUMBER TIMER1_OVF_vect_num
#define TIMER_OVERFLOWS OCR0B /* a free register, read in one cycle: Timer 0 is not used */

/* What isn't used gets no clock: two fifths of the current asleep. Timer 0 keeps its own, for the register above. */
#define MODULES_OFF PRR
#if MODE == MODE_ANSWER
#define UNUSED_MODULES (_BV(PRTWI) | _BV(PRTIM2) | _BV(PRSPI) | _BV(PRADC))
#else
#define UNUSED_MODULES (_BV(PRTWI) | _BV(PRSPI) | _BV(PRADC))
#endif

/* The watchdog: a decision takes a hundredth of this; the timer ends each sleep far earlier */
#define WATCHDOG_CONTROL WDTCSR
#define WATCHDOG_IS_ON _BV(WDE)
#ifdef TL_NO_WATCHDOG /* for old bootloaders, which a watchdog reset sends round in circles: TINYLIGHT_WATCHDOG=off */
#define WATCHDOG_SETTING 0
#elif MODE == MODE_ANSWER
#define WATCHDOG_SETTING (WATCHDOG_IS_ON | _BV(WDP2) | _BV(WDP1)) /* a second */
#else
#define WATCHDOG_SETTING (WATCHDOG_IS_ON | _BV(WDP1) | _BV(WDP0)) /* 0.12 s: a hanging chip flashes before its monitor trips */
#endif

/* The Uno's LED, pin PB5: lit while a decision is computed */
#define LED_PORT PORTB
#define LED_DIRECTION DDRB
#define LED_BIT PB5

#if MODE != MODE_ANSWER
/* Timer 2 gives the tick, which takes TICK_PARTS of its periods. */
#if F_CPU == 16000000
#define TICK_CLOCK (_BV(CS22) | _BV(CS21)) /* a 256th */
#elif F_CPU == 8000000
#define TICK_CLOCK (_BV(CS22) | _BV(CS20)) /* a 128th */
#else
#error "modes light and alone: the tick of 10 ms is exact at 16 and at 8 MHz (F_CPU)"
#endif
#define TICK_PARTS 5
#define TICK_COUNTS 125 /* in a part */
#define TICK_COUNT_US 16
#define TICK_MODE TCCR2A
#define TICK_MODE_PERIODIC _BV(WGM21)
#define TICK_CONTROL TCCR2B
#define TICK_LIMIT OCR2A
#define TICK_COUNT TCNT2
#define TICK_FLAGS TIFR2
#define TICK_PART_ENDED _BV(OCF2A)
#define TICK_INTERRUPTS TIMSK2
#define TICK_INTERRUPT _BV(OCIE2A)
#define TICK_VECTOR_NUMBER TIMER2_COMPA_vect_num

/* Lamps: a chain of 74HC595; the heartbeat */
#define LAMP_PORT PORTD
#define LAMP_DIRECTION DDRD
#define LAMP_LATCH_BIT PD2 /* its rising edge shows what was shifted in */
#define LAMP_CLOCK_BIT PD3 /* shifts at its rising edge */
#define LAMP_DATA_BIT PD4
#define HEARTBEAT_BIT PD5
#define LAMP_OUTPUTS (_BV(LAMP_LATCH_BIT) | _BV(LAMP_CLOCK_BIT) | _BV(LAMP_DATA_BIT) | _BV(HEARTBEAT_BIT))
#define HEARTBEAT_TOGGLE PIND /* writing a one turns the output over */

/* Detectors: a chain of 74HC165 */
#define DETECTOR_PORT PORTB
#define DETECTOR_DIRECTION DDRB
#define DETECTOR_LOAD_BIT PB0  /* low takes the inputs in */
#define DETECTOR_CLOCK_BIT PB1 /* shifts at its rising edge */
#define DETECTOR_OUTPUTS (_BV(DETECTOR_LOAD_BIT) | _BV(DETECTOR_CLOCK_BIT))
#define DETECTOR_DATA PINB
#define DETECTOR_DATA_BIT PB2
#endif
#endif

#endif
