/* All of a light that isn't pins, on this machine, tick by tick: what firmware/src/light/scan.c does with the very same sources.
 *
 * Lines of the script:
 *   lines HEX     what the detectors show from now on; line 0 is the lowest bit
 *   run TICKS
 *   wish ACTION   the network has decided so
 *   green HEX     these groups are green, whatever the shell shows, for `sense`
 *   sense TICKS   as `run`, of the loops alone
 *   counts        says "counts N N ...", of each lane; `suspects` likewise
 *   calls         says "calls HEX"
 *   values ACTION says "values N N ...": the network's inputs
 * Answers of `run`: "lamps TICK RED YELLOW GREEN WALK CLEARING" where they change, "event TICK KIND CHANNEL".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "light/control.h"
#include "light/events.h"
#include "light/features.h"
#include "light/lines.h"
#include "light/sensing.h"
#include "light/shell.h"

static uint32_t tick_number;
static struct shell state;
static struct shell_output output;
static struct lines detectors;
static uint8_t levels[LINES_BYTES];

static void set_levels(const char *text) {
    memset(levels, 0, sizeof levels);
    const size_t length = strcspn(text, "\n");
    for (size_t i = 0; i < length; i++) {
        const char digit[2] = {text[length - 1 - i], 0};
        if (i / 2 < sizeof levels) {
            levels[i / 2] |= (uint8_t)(strtoul(digit, NULL, 16) << 4 * (i % 2));
        }
    }
}

static void print_events(void) {
    struct event event;
    while (events_take(&event, NULL)) {
        printf("event %lu %u %u\n", (unsigned long)(tick_number - (uint16_t)((uint16_t)tick_number - event.tick)), event.kind, event.channel);
    }
}

static void look(shell_set green_now) {
    uint8_t changed[LINES_BYTES], read[LINES_BYTES];
    memcpy(read, levels, sizeof read);
    tick_number++;
    lines_take(&detectors, read, changed);
    sensing_take(tick_number, detectors.level, changed, read, green_now);
}

static shell_set presses(void) {
    shell_set found = 0;
    for (int group = 0; group < LIGHT_GROUPS && LIGHT_CROSSWALKS; group++) {
        found |= (shell_set)(lines_bit(detectors.level, (uint8_t)(LIGHT_FIRST_BUTTON + group)) << group);
    }
    return found;
}

static void one_tick(void) {
    struct shell_output next;
    look(output.green);
    struct shell_input input = {.calls = sensing_calls(), .presses = presses()};
    control_suspect(sensing_is_poor());
    input.wish = control_tick(tick_number, state.mode == SHELL_GREEN || state.mode == SHELL_CHANGE);
    shell_tick(&state, &input, &next);
    if ((next.events & (SHELL_FORCED | SHELL_MAXED_OUT)) != 0) {
        control_forced();
    }
    if (tick_number == 1 || memcmp(&next, &output, offsetof(struct shell_output, shown)) != 0) {
        printf("lamps %lu %u %u %u %u %u\n", (unsigned long)tick_number, next.red, next.yellow, next.green, next.walk, next.clearing);
    }
    events_note_lamps(tick_number, &output, &next, state.mode);
    output = next;
    print_events();
}

static void print_lanes(const char *what, uint8_t (*of)(uint8_t)) {
    printf("%s", what);
    for (uint8_t lane = 0; lane < LIGHT_LANES; lane++) {
        printf(" %u", of(lane));
    }
    printf("\n");
}

static uint8_t count_of(uint8_t lane) {
    return sensing_counts[lane];
}

static uint8_t suspicion_of(uint8_t lane) {
    return sensing_is_suspect(lane);
}

int main(void) {
    static char line[256];
    unsigned number, green_groups_now = 0;
    control_start();
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "lines ", 6) == 0) {
            set_levels(line + 6);
        } else if (sscanf(line, "run %u", &number) == 1) {
            for (; number != 0; number--) {
                one_tick();
            }
        } else if (sscanf(line, "sense %u", &number) == 1) {
            for (; number != 0; number--) {
                look((shell_set)green_groups_now);
                (void)sensing_calls();
                print_events();
            }
        } else if (sscanf(line, "wish %u", &number) == 1) {
            control_decided((uint8_t)number);
        } else if (sscanf(line, "green %x", &green_groups_now) == 1) {
        } else if (strcmp(line, "counts\n") == 0) {
            print_lanes("counts", count_of);
        } else if (strcmp(line, "suspects\n") == 0) {
            print_lanes("suspects", suspicion_of);
        } else if (strcmp(line, "calls\n") == 0) {
            printf("calls %x\n", sensing_calls());
        } else if (sscanf(line, "values %u", &number) == 1) {
            int16_t values[POLICY_INPUTS_MAX];
            const bool replaced = features_compute(values, (uint8_t)number);
            printf("values %d", replaced);
            for (int i = 0; i < POLICY_INPUTS_MAX; i++) {
                printf(" %d", values[i]);
            }
            printf("\n");
        } else {
            return 2;
        }
    }
    return 0;
}
