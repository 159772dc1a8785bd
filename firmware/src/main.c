/* The main loop: bytes form frames; each frame is checked, decided if it asks for that, and answered; in between the chip
 * sleeps.
 */
#include "board.h"
#include "cycles.h"
#include "dispatch.h"
#include "faults.h"
#include "flash_check.h"
#include "frame.h"
#include "infer.h"
#include "uart.h"

#ifdef __AVR__
__attribute__((OS_main)) int main(void); /* it has no caller, so no registers to save */
#endif

static inline void decide(void) {
    const uint8_t *values = dispatch_values();
    board_led(true);
    cycles_start();
    infer(dispatch_intersection(), values);
    FAULT_SLOWDOWN();
    const uint24 cycles = cycles_stop();
    board_led(false);
    dispatch_decided(cycles);
}

static inline void answer(void) {
    if (!FAULT_SWALLOWS_REPLY()) {
        dispatch_answer();
    }
}

int main(void) {
#ifdef __AVR__
    dispatch = &dispatch_state;
#endif
    board_start();
    flash_check();
    frame_reader_reset(&dispatch->request);
    for (;;) {
        board_feed_watchdog();
        if (uart_is_quiet()) {
            board_rest();
            continue;
        }
        const enum frame_status status = frame_reader_push(&dispatch->request, uart_receive());
        if (status == FRAME_INCOMPLETE) {
            continue;
        }
        if (dispatch_check(status)) {
            decide();
            answer();
            dispatch_count_range();
        } else {
            answer();
        }
        frame_reader_reset(&dispatch->request);
    }
}
