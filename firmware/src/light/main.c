/* The main loop of a chip that drives lamps: a scan every 10 ms; between two of them it decides, answers and tells, each of which takes
 * less than a tick, and else it sleeps.
 */
#include "board.h"
#include "cycles.h"
#include "dispatch.h"
#include "faults.h"
#include "frame.h"
#include "infer.h"
#include "light/control.h"
#include "light/decision.h"
#include "light/events.h"
#include "light/scan.h"
#include "light/tick.h"
#include "light/unasked.h"
#include "range.h"
#include "uart.h"

#include <avr/sleep.h>

__attribute__((OS_main)) int main(void); /* it has no caller, so no registers to save */

#define TOO_LONG_CYCLES (F_CPU / TICKS_PER_S)

static inline uint24 run_network(const uint8_t *values) {
    board_led(true);
    TIMER_INTERRUPTS = TIMER_OVERFLOW_INTERRUPT;
    cycles_start();
    infer(dispatch_intersection(), values);
    FAULT_SLOWDOWN();
    const uint24 cycles = cycles_stop();
    TIMER_INTERRUPTS = 0;
    board_led(false);
    return cycles;
}

#if MODE == MODE_ALONE
static inline void decide(void) {
    decision_begin();
    const uint24 cycles = run_network(decision_values());
    decision_end(cycles, TOO_LONG_CYCLES);
    dispatch->counters.decisions++;
    if (cycles > (uint24)dispatch->counters.cycles_max) {
        dispatch->counters.cycles_max = cycles;
    }
    range_count_inputs(dispatch_intersection(), decision_values());
    range_count_units(dispatch_intersection());
}

static inline void take(enum frame_status status) {
    if (!dispatch_check(status)) { /* as ever: it decides by itself */
        dispatch_answer();
    }
}
#else
static inline void decide(void) {
    const uint24 cycles = run_network(dispatch_values());
    dispatch_decided(cycles);
    control_decided(dispatch->last.answer.action);
    if (cycles > TOO_LONG_CYCLES) {
        control_overrun();
    }
}

static inline void take(enum frame_status status) {
    if (dispatch_check(status)) {
        decide();
        dispatch_answer();
        dispatch_count_range();
    } else {
        dispatch_answer();
    }
}
#endif

static inline void take_byte(void) {
    const enum frame_status status = frame_reader_push(&dispatch->request, uart_receive());
    if (status == FRAME_INCOMPLETE) {
        return;
    }
    take(status);
    frame_reader_reset(&dispatch->request);
}

/* Until there is something to do; `for_room`: until the next interrupt, which may be that of a byte sent */
static inline void rest(bool for_room) {
    do {
        cli();
        if (scan_is_due() || (!for_room && !uart_is_quiet())) { /* with interrupts off: what comes now still ends the sleep */
            break;
        }
        sei(); /* takes effect after the next instruction, hence no gap before the sleep */
        sleep_cpu();
        __asm__ volatile("nop\n\tnop"); /* simavr takes an interrupt that ended the sleep a little later than the chip does */
    } while (!for_room);
    sei();
}

int main(void) {
    dispatch = &dispatch_state;
    board_start();
    TIMER_INTERRUPTS = 0; /* only while it is the stopwatch */
    scan_start();
    frame_reader_reset(&dispatch->request);
    tick_start();
    for (;;) {
        if (scan_is_due()) {
            scan();
#if MODE == MODE_ALONE
        } else if (scan_takes_decision()) {
            decide();
#endif
        } else if (!uart_has_room()) {
            rest(true);
        } else if (!uart_is_quiet()) {
            take_byte();
#if MODE == MODE_ALONE
        } else if (decision_waits()) {
            decision_tell();
#endif
        } else if (events_wait()) {
            unasked_send_events();
        } else {
            rest(false);
        }
    }
}
