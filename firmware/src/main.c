/* The story: bytes come in, frames form, each one is answered, and in between the chip sleeps. */
#include "board.h"
#include "dispatch.h"
#include "faults.h"
#include "frame.h"
#include "uart.h"

static struct frame_reader request;
static struct frame_writer reply;

int main(void) {
    board_start();
    frame_reader_reset(&request);
    for (;;) {
        board_feed_watchdog();
        uint8_t byte;
        if (!uart_receive(&byte)) {
            board_rest();
            continue;
        }
        const enum frame_status status = frame_reader_push(&request, byte);
        if (status == FRAME_INCOMPLETE) {
            continue;
        }
        dispatch(status, &request, &reply);
        frame_send(&reply, FAULT_SEND);
    }
}
