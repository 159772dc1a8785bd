/* The host as a board: stdin and stdout are the line; no clock, no watchdog, no stack to measure. */
#include "board.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "flash_check.h"
#include "frame.h"
#include "uart.h"

#define INPUT_BYTES 4096
#define OUTPUT_BYTES FRAME_WIRE_BYTES_MAX

static uint8_t input[INPUT_BYTES];
static size_t input_length;
static size_t input_position;
static uint8_t output[OUTPUT_BYTES];
static size_t output_length;
volatile struct uart_counters uart_counters;
struct boot boot = {.count = 1};

static void flush(void) {
    size_t sent = 0;
    while (sent < output_length) {
        const ssize_t written = write(STDOUT_FILENO, output + sent, output_length - sent);
        if (written < 0 && errno != EINTR) {
            exit(EXIT_FAILURE); /* the reader has gone */
        }
        sent += written > 0 ? (size_t)written : 0;
    }
    output_length = 0;
}

void uart_start(void) {
}

bool uart_is_quiet(void) {
    return input_position == input_length;
}

uint8_t uart_receive(void) {
    return input[input_position++];
}

uint8_t uart_put(uint8_t byte) {
    output[output_length] = byte;
    return (uint8_t)output_length++;
}

void uart_set(uint8_t place, uint8_t byte) {
    output[place] = byte;
}

void uart_release(void) {
    if (output[output_length - 1] == 0) { /* the end of a frame, which the buffer is made for */
        flush();
    }
}

void flash_check(void) {
}

void board_start(void) {
}

void board_rest(void) {
    ssize_t length;
    do {
        length = read(STDIN_FILENO, input, INPUT_BYTES);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        exit(EXIT_FAILURE);
    }
    if (length == 0) {
        exit(EXIT_SUCCESS); /* the end of input is the host's power switch */
    }
    input_length = (size_t)length;
    input_position = 0;
}
