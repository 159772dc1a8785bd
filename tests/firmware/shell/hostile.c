/* Drives the safety shell as it is, clocks included, with wishes and calls that mean no good, and judges each tick.
 *
 *     hostile TICKS SEED BOUNDS...
 *
 * BOUNDS: for each group the ticks in which a call that is due is green at most, then for each group those in which a green that is
 * due ends, both as explore finds them. Every tick has a wish and calls drawn anew by the strategy in force, which changes every now
 * and then, and so does the power: a reset, or a fault that must stop the shell for good. TICKS more single ticks start from memory
 * filled with noise: no two groups in conflict may move, whatever it held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../firmware/src/light/shell.c"
#include "../../../firmware/src/light/tables.c"

#include "judge.h"

#define LONGEST_STRATEGY 4000
#define RESET_ONE_IN 60 /* changes of strategy */

static uint64_t seed;

static uint32_t draw(uint32_t below) {
    seed += 0x9E3779B97F4A7C15u;
    uint64_t bits = seed;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((bits ^ bits >> 31) >> 32) % below;
}

static struct strategy {
    uint32_t ticks, wish, calls, presses;
    uint8_t one, two;
    shell_set some;
} strategy;

static void change_strategy(void) {
    strategy = (struct strategy){.ticks = 1 + draw(LONGEST_STRATEGY), .wish = draw(6), .calls = draw(5), .presses = draw(3),
        .one = (uint8_t)draw(shell_tables.phases), .two = (uint8_t)draw(shell_tables.phases), .some = (shell_set)draw(65536)};
}

static struct shell_input hostile_input(uint8_t shown) {
    struct shell_input input = {0};
    switch (strategy.wish) {
    case 0: input.wish = (uint8_t)draw(256); break;
    case 1: input.wish = strategy.one; break;
    case 2: input.wish = SHELL_NO_PHASE; break;
    case 3: input.wish = shown; break; /* never to leave */
    case 4: input.wish = shown == strategy.one ? strategy.two : strategy.one; break;
    default: input.wish = (uint8_t)draw(shell_tables.phases); break;
    }
    switch (strategy.calls) {
    case 0: break;
    case 1: input.calls = UINT16_MAX; break;
    case 2: input.calls = draw(100) == 0 ? (shell_set)draw(65536) : 0; break;
    case 3: input.calls = strategy.some; break;
    default: input.calls = (shell_set)draw(65536); break;
    }
    input.presses = strategy.presses == 0 ? 0 : strategy.presses == 1 ? (shell_set)draw(65536) : UINT16_MAX;
    return input;
}

/* Waits and greens of the judge's own counting */
static uint32_t waits[SHELL_GROUPS_MAX], greens[SHELL_GROUPS_MAX], longest_wait, longest_green;
static shell_set waiting;

static void most(uint32_t *longest, uint32_t value) {
    *longest = value > *longest ? value : *longest;
}

static enum judge_fault judge_waits(const struct shell_output *output, shell_set calls, const uint32_t *bounds) {
    waiting = (waiting | (calls & shell_tables.served)) & ~output->green;
    for (unsigned group = 0; group < JUDGE_GROUPS; group++) {
        const bool is_green = (output->green >> group & 1) != 0, others_wait = (judge_conflicts[group] & waiting) != 0;
        waits[group] = (waiting >> group & 1) != 0 ? waits[group] + 1 : 0;
        greens[group] = is_green && others_wait ? greens[group] + 1 : 0;
        most(&longest_wait, waits[group]);
        most(&longest_green, greens[group]);
        if (waits[group] > shell_tables.longest_red_ticks + bounds[group] + 1) {
            return JUDGE_CALL_TOO_LATE;
        }
        if (greens[group] > shell_tables.max_green_ticks[group] + bounds[JUDGE_GROUPS + group] + 1) {
            return JUDGE_GREEN_TOO_LONG;
        }
    }
    return JUDGE_FINE;
}

static void forget(struct shell *shell, struct judge *judge) {
    memset(shell, 0, sizeof *shell);
    memset(judge, 0, sizeof *judge);
    memset(waits, 0, sizeof waits);
    memset(greens, 0, sizeof greens);
    waiting = 0;
}

/* A fault flag at any moment: flashing at once, and nothing ends it. */
static enum judge_fault check_stop(struct shell *shell, struct judge *judge) {
    struct shell_output output;
    for (unsigned tick = 0; tick < 500; tick++) {
        struct shell_input input = hostile_input(SHELL_NO_PHASE);
        input.faults = tick == 0 ? (uint8_t)(1u << draw(8)) : 0;
        shell_tick(shell, &input, &output);
        const enum judge_fault fault = judge_tick(judge, &output, 1, true);
        if (fault != JUDGE_FINE || (output.green | output.yellow) != 0 || shell->mode != SHELL_FLASH) {
            return fault != JUDGE_FINE ? fault : JUDGE_FLASH;
        }
    }
    return JUDGE_FINE;
}

static enum judge_fault run(uint64_t ticks, const uint32_t *bounds, uint64_t *changes) {
    struct shell shell;
    struct judge judge;
    struct shell_output output = {.shown = SHELL_NO_PHASE};
    forget(&shell, &judge);
    for (uint64_t tick = 0; tick < ticks; tick++) {
        if (strategy.ticks-- == 0) {
            change_strategy();
            const uint32_t power = draw(RESET_ONE_IN);
            if (power == 0) {
                const enum judge_fault fault = check_stop(&shell, &judge);
                if (fault != JUDGE_FINE) {
                    return fault;
                }
            }
            if (power <= 1) {
                forget(&shell, &judge);
            }
        }
        const struct shell_input input = hostile_input(output.shown);
        const shell_set before = output.green;
        shell_tick(&shell, &input, &output);
        *changes += before != output.green;
        enum judge_fault fault = judge_tick(&judge, &output, 1, false);
        if (fault == JUDGE_FINE) {
            fault = judge_waits(&output, input.calls, bounds);
        }
        if (fault != JUDGE_FINE) {
            return fault;
        }
    }
    return JUDGE_FINE;
}

static enum judge_fault run_noise(uint64_t ticks) {
    for (uint64_t tick = 0; tick < ticks; tick++) {
        struct shell shell;
        struct shell_output output;
        for (unsigned i = 0; i < sizeof shell; i++) {
            ((uint8_t *)&shell)[i] = (uint8_t)draw(256);
        }
        shell.mode %= SHELL_MODES + 1; /* or nearly all would be refused at once */
        shell.phase %= SHELL_PHASES_MAX + 1;
        shell.next %= SHELL_PHASES_MAX + 1;
        if (draw(2) == 0 && shell.phase < shell_tables.phases) {
            shell.walking &= shell_tables.phase_groups[shell.phase];
        }
        const struct shell_input input = hostile_input(SHELL_NO_PHASE);
        shell_tick(&shell, &input, &output);
        const shell_set moving = output.green | output.yellow;
        for (unsigned group = 0; group < JUDGE_GROUPS; group++) {
            if ((moving >> group & 1) != 0 && (judge_conflicts[group] & moving) != 0) {
                return JUDGE_CONFLICT;
            }
            if (moving != 0 && judge_lit(&output, group) == JUDGE_DARK) {
                return JUDGE_NOT_ONE_LAMP;
            }
        }
        if (((output.walk | output.clearing) & ~output.green) != 0) {
            return JUDGE_WALK_CUT;
        }
    }
    return JUDGE_FINE;
}

int main(int argc, char **argv) {
    uint32_t bounds[2 * SHELL_GROUPS_MAX] = {0};
    uint64_t changes = 0;
    if (argc != 3 + 2 * JUDGE_GROUPS) {
        fprintf(stderr, "usage: hostile TICKS SEED BOUNDS...\n");
        return 2;
    }
    const uint64_t ticks = strtoull(argv[1], NULL, 10);
    seed = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        bounds[i - 3] = (uint32_t)strtoul(argv[i], NULL, 10);
    }
    enum judge_fault fault = run(ticks, bounds, &changes);
    if (fault == JUDGE_FINE) {
        fault = run_noise(ticks);
    }
    printf("{\"fault\": \"%s\", \"ticks\": %" PRIu64 ", \"changes\": %" PRIu64 ", \"longest_wait\": %" PRIu32
           ", \"longest_green\": %" PRIu32 "}\n",
        judge_words[fault], ticks, changes, longest_wait, longest_green);
    return fault != JUDGE_FINE;
}
