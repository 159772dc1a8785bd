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
/* Lines from the first button on: one a group, in at most three bytes, since a lane takes two lines */
static shell_set buttons_of(const uint8_t *bytes) {
    const uint8_t *byte = bytes + LIGHT_FIRST_BUTTON / 8;
    uint32_t found = byte[0];
    if (LINES_BYTES - LIGHT_FIRST_BUTTON / 8 > 1) {
        found |= (uint32_t)byte[1] << 8;
    }
    if (LINES_BYTES - LIGHT_FIRST_BUTTON / 8 > 2) {
        found |= (uint32_t)byte[2] << 16;
    }
    return (shell_set)(found >> LIGHT_FIRST_BUTTON % 8) & (shell_set)(2 * LIGHT_LAST_GROUP - 1);
}

static void note_buttons(uint32_t tick, const uint8_t *changed, struct shell_input *input) {
    shell_set pressed = buttons_of(lines.level);
    input->presses = pressed;
    shell_set turned = buttons_of(changed);
    for (uint8_t channel = 1; turned != 0; channel++, turned >>= 1, pressed >>= 1) {
        if ((turned & 1) != 0) {
            events_note(tick, (pressed & 1) != 0 ? EVENT_BUTTON_ON : EVENT_BUTTON_OFF, channel);
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
    sensing_take(tick, lines.level, changed, read, green); /* `read`: what flickered */
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
