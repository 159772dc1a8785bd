/* The firmware's frame codec on its own: hexadecimal frames come in, one a line and without delimiter; out goes what
 * the codec made of each: its status, and for a good one the bytes (without CRC) and the frame encoded again.
 */
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "uart.h"

#define LINE_CHARACTERS 4096

/* The line that the codec writes to: bytes are kept until they are released, then printed */
static uint8_t line_bytes[256];
static uint8_t line_end, line_released;

uint8_t uart_put(uint8_t byte) {
    line_bytes[line_end] = byte;
    return line_end++;
}

void uart_set(uint8_t place, uint8_t byte) {
    line_bytes[place] = byte;
}

void uart_release(void) {
    while (line_released != line_end) {
        printf("%02x", line_bytes[line_released++]);
    }
}

static const char *const names[] = {
    [FRAME_INCOMPLETE] = "INCOMPLETE", [FRAME_GOOD] = "GOOD",         [FRAME_BAD_CRC] = "BAD_CRC",
    [FRAME_BAD_VERSION] = "BAD_VERSION", [FRAME_TOO_LONG] = "TOO_LONG", [FRAME_MALFORMED] = "MALFORMED",
};

int main(void) {
    static char line[LINE_CHARACTERS];
    static struct frame_reader reader;
    frame_reader_reset(&reader);
    while (fgets(line, sizeof line, stdin) != NULL) {
        unsigned byte;
        for (const char *digits = line; sscanf(digits, "%2x", &byte) == 1; digits += 2) {
            if (frame_reader_push(&reader, (uint8_t)byte) != FRAME_INCOMPLETE) {
                return 1; /* only a delimiter ends a frame */
            }
        }
        const enum frame_status status = frame_reader_push(&reader, 0);
        printf("%s", names[status]);
        if (status == FRAME_GOOD) {
            const uint8_t *bytes = reader.bytes;
            printf(" ");
            for (uint8_t i = 0; i < reader.length - FRAME_CRC_BYTES; i++) {
                printf("%02x", bytes[i]);
            }
            printf(" ");
            frame_begin(bytes[FRAME_AT_TYPE], bytes + FRAME_AT_SEQUENCE);
            frame_put_bytes(bytes + FRAME_AT_PAYLOAD, frame_payload_length(&reader));
            frame_end();
        }
        frame_reader_reset(&reader);
        printf("\n");
    }
    return 0;
}
