/* The firmware's frame codec on its own: hexadecimal frames come in, one a line and without delimiter; out goes what
 * the codec made of each: its status, and for a good one the bytes (without CRC) and the frame encoded again.
 */
#include <stdio.h>
#include <string.h>

#include "frame.h"

#define LINE_CHARACTERS 4096

static void print_byte(uint8_t byte) {
    printf("%02x", byte);
}

static const char *const names[] = {
    [FRAME_INCOMPLETE] = "INCOMPLETE", [FRAME_GOOD] = "GOOD",         [FRAME_BAD_CRC] = "BAD_CRC",
    [FRAME_BAD_VERSION] = "BAD_VERSION", [FRAME_TOO_LONG] = "TOO_LONG", [FRAME_MALFORMED] = "MALFORMED",
};

int main(void) {
    static char line[LINE_CHARACTERS];
    static struct frame_reader reader;
    static struct frame_writer writer;
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
            frame_begin(&writer, bytes[FRAME_AT_TYPE], bytes[FRAME_AT_SEQUENCE], bytes[FRAME_AT_INTERSECTION]);
            for (uint8_t i = 0; i < frame_payload_length(&reader); i++) {
                frame_put_u8(&writer, bytes[FRAME_AT_PAYLOAD + i]);
            }
            printf(" ");
            for (uint8_t i = 0; i < writer.length; i++) {
                print_byte(writer.bytes[i]);
            }
            frame_end(&writer);
            printf(" ");
            frame_send(&writer, print_byte);
        }
        printf("\n");
    }
    return 0;
}
