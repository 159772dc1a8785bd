/* See inputs.h. Without loops, as in mode light, nobody knows where vehicles are: all count as waiting. */
#include "light/inputs.h"

#include "hardware.h"
#include "light/events.h"
#include "light/control.h"
#include "light/lines.h"
#include "light/sensing.h"

#if LIGHT_LINES
static struct lines lines;
#endif

void inputs_start(void) {
    DETECTOR_PORT |= _BV(DETECTOR_LOAD_BIT);
    DETECTOR_DIRECTION |= DETECTOR_OUTPUTS;
}

#if LIGHT_CROSSWALKS
static void note_buttons(uint32_t tick, const uint8_t *changed, struct shell_input *input) {
    input->presses = 0;
    shell_set group = 1;
    for (uint8_t line = LIGHT_FIRST_BUTTON; line < LIGHT_LINES; line++, group <<= 1) {
        if (lines_bit(lines.level, line)) {
            input->presses |= group;
        }
        if (lines_bit(changed, line)) {
            events_note(tick, lines_bit(lines.level, line) ? EVENT_BUTTON_ON : EVENT_BUTTON_OFF, line - LIGHT_FIRST_BUTTON + 1);
        }
    }
}
#endif

void inputs_tick(uint32_t tick, shell_set green, struct shell_input *input) {
#if LIGHT_LINES
    uint8_t read[LINES_BYTES], changed[LINES_BYTES];
    lines_read(read);
    lines_take(&lines, read, changed);
#endif
#if LIGHT_LANES
    sensing_take(tick, lines.level, changed, green);
    input->calls = sensing_calls();
    control_suspect(sensing_is_poor());
#else
    (void)green;
    input->calls = shell_tables.served;
#endif
#if LIGHT_CROSSWALKS
    note_buttons(tick, changed, input);
#else
    (void)tick;
#endif
}
