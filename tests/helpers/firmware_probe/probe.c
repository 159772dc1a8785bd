/* A tiny firmware that shows what the emulated board does: it answers one-byte commands. For the tests only.
 *
 *   any byte >= 0x80, and 0x00: echoed    'D' cli; sleep          'W' waits for the watchdog's reset
 *   'I' invalid instruction               'J' jumps off the end   'O' writes outside of RAM
 *   'T' Timer1 around 1000 known cycles: u16, 0x00               'S' uses about 200 bytes of stack, then 0x00
 *   'E' the same with interrupts on, and 'F' with Timer0's overflow in it, every 256 cycles (4 times): u16, 0x00
 *   'M' MCUSR at boot + 1, 0x00           'B' ignores its UART for a while, then echoes what survived
 *
 * Compiled with F_CPU and BAUD; -DPOLLED polls RXC0, otherwise an interrupt wakes it from idle sleep.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/delay_basic.h>

#define DIVISOR ((F_CPU + BAUD * 4UL) / (BAUD * 8UL) - 1)

static uint8_t boot_cause __attribute__((section(".noinit")));
extern uint8_t _end;

/* Paints RAM from the end of the statics to the end of RAM, before anything is on the stack. */
__attribute__((naked, used, section(".init1"))) static void paint(void)
{
    __asm__ volatile("ldi r30, lo8(_end)\n ldi r31, hi8(_end)\n ldi r24, 0xc5\n ldi r25, hi8(0x900)\n"
                     "1: st Z+, r24\n cpi r30, lo8(0x900)\n cpc r31, r25\n brlo 1b\n");
}

/* After a watchdog reset the watchdog runs on at 16 ms: stop it first. */
__attribute__((naked, used, section(".init3"))) static void stop_watchdog(void)
{
    boot_cause = MCUSR;
    MCUSR = 0;
    wdt_disable();
}

static void send(uint8_t byte)
{
    while (!(UCSR0A & _BV(UDRE0)))
        ;
    UDR0 = byte;
}

static __attribute__((noinline)) uint8_t deep(void)
{
    volatile uint8_t use[200];
    for (uint8_t i = 0; i < sizeof use; i++)
        use[i] = i;
    return use[100];
}

/* Entry 4 cycles, the vector's jump 3, reti 4: 11 of silicon's cycles. */
ISR(TIMER0_OVF_vect, ISR_NAKED)
{
    reti();
}

/* Cycles that 250 turns of 4 cycles take. */
static __attribute__((noinline)) void time_loop(void)
{
    TCCR1B = _BV(CS10);
    uint16_t begin = TCNT1;
    _delay_loop_2(250);
    uint16_t cycles = TCNT1 - begin;
    send(cycles & 0xff);
    send(cycles >> 8);
    send(0);
}

static void handle(uint8_t command)
{
    switch (command) {
    case 'D':
        cli();
        sleep_mode();
        break;
    case 'W':
        wdt_enable(WDTO_15MS);
        for (;;)
            ;
    case 'I':
        __asm__ volatile(".word 0x9404"); /* not an AVR instruction */
        break;
    case 'J':
        ((void (*)(void))(0x7000 / 2))();
        break;
    case 'O':
        *(volatile uint8_t *)0x1000 = 1;
        break;
    case 'T':
        cli();
        time_loop();
        sei();
        break;
    case 'E':
    case 'F':
        TCNT0 = 128;
        TIFR0 = _BV(TOV0);
        TIMSK0 = command == 'F' ? _BV(TOIE0) : 0;
        TCCR0B = _BV(CS00);
        sei();
        time_loop();
        TIMSK0 = 0;
        TCCR0B = 0;
        break;
    case 'S':
        deep();
        send(0);
        break;
    case 'M':
        send(boot_cause + 1);
        send(0);
        break;
    case 'B': {
        cli();
        for (uint8_t i = 0; i < 20; i++)
            _delay_loop_2((F_CPU / BAUD) * 10 / 4); /* 20 byte times */
        uint8_t overrun = 0;
        while (UCSR0A & _BV(RXC0)) {
            overrun |= UCSR0A & _BV(DOR0);
            send(UDR0);
        }
        send(overrun | 1);
        send(0);
        sei();
        break;
    }
    default:
        send(command);
    }
}

#ifndef POLLED
static volatile uint8_t received, has_received;

ISR(USART_RX_vect)
{
    received = UDR0;
    has_received = 1;
}
#endif

int main(void)
{
    UBRR0H = DIVISOR >> 8;
    UBRR0L = DIVISOR & 0xff;
    UCSR0A = _BV(U2X0); /* after the divisor, which simavr alone would misread */
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
#ifdef POLLED
    UCSR0B = _BV(RXEN0) | _BV(TXEN0);
    for (;;) {
        while (!(UCSR0A & _BV(RXC0)))
            ;
        handle(UDR0);
    }
#else
    UCSR0B = _BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0);
    set_sleep_mode(SLEEP_MODE_IDLE);
    for (;;) {
        cli();
        if (has_received) {
            has_received = 0;
            uint8_t command = received;
            sei();
            handle(command);
        } else {
            sleep_enable();
            sei();
            sleep_cpu();
        }
    }
#endif
}
