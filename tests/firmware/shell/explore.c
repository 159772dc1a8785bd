/* Explores all states of the safety shell, as it is in firmware/src/light/shell.c, and judges the lamps of each transition.
 *
 * A node is the shell's state and the judge's. Three kinds of edges lead on: a group is called, or its button pressed (no time
 * passes); a group becomes due (no time passes); one tick, with each wish. A tick of shell_tick is any number of the first two and
 * then the third, so every input of every tick is covered.
 *
 * Clocks. The shell's clocks only decide when a group becomes due. Here it may become due at any time that its clock would run:
 * more than can happen, so what holds here holds there.
 *
 * The timer. The code reads it by SHELL_REACHED alone, and else sets it to 0 or counts it up. Here SHELL_REACHED notes what it is
 * compared with. Between two neighbouring limits that were ever compared in one place (mode, phase, next phase) every tick does
 * the same, but for the timer's count. So only the first and the last tick between two limits are nodes: a tick that leads from
 * the first one on jumps to the last, and the judge is told how many ticks that was. Leaving earliest and leaving latest are both
 * explored, and every promise is about a time that is too short or too long. If a limit turns up that was not known, all is
 * explored again with it.
 *
 * How long a call or a green that is due lasts at most is the longest path through the nodes in which it is: if there is a circle,
 * it has no bound.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reached_hook(uint16_t ticks, uint16_t limit);
#define SHELL_REACHED(ticks, limit) (reached_hook((ticks), (limit)), (ticks) >= (limit))
#include "../../../firmware/src/light/shell.c"

#define BIT(group) ((shell_set)(1u << (group)))
#include "../../../firmware/src/light/tables.c"

#include "judge.h"

#define PLACES (SHELL_MODES * SHELL_PHASES_MAX * SHELL_PHASES_MAX)
#define LIMITS_MAX 64
#define NONE UINT32_MAX
#define MICRO_STEPS (3 * SHELL_GROUPS_MAX)
#define STEPS (MICRO_STEPS + SHELL_PHASES_MAX + 1) /* calls, presses, dues, wishes, no wish */
#define SAMPLE 64 /* at every so-manieth node all 256 wishes are tried */

struct node {
    uint8_t mode, phase, next, unused;
    uint16_t timer;
    shell_set called, pressed, due, walking;
    struct judge judge;
};

static struct node *nodes;
static uint32_t *table; /* by hash: a node's number, or NONE */
static size_t count, capacity, table_size;
static uint64_t transitions, ticks_judged;

static struct limits {
    uint8_t count;
    uint32_t at[LIMITS_MAX]; /* ascending; the timer's values, at the start of a tick, from which on a comparison turns out otherwise */
} limits[PLACES];
static bool is_new_limit;
static uint8_t is_known[PLACES][(UINT16_MAX + 1) / 8]; /* the limits again, one bit each */

static size_t place_now;     /* of the node whose tick is being computed */
static uint32_t timer_now;

static size_t place_of(const struct node *node) {
    return ((size_t)node->mode * SHELL_PHASES_MAX + node->phase) * SHELL_PHASES_MAX + node->next;
}

static void note_limit(size_t place, uint32_t at) {
    struct limits *known = &limits[place];
    unsigned i = 0;
    if ((is_known[place][at / 8] >> at % 8 & 1) != 0) {
        return;
    }
    is_known[place][at / 8] |= (uint8_t)(1u << at % 8);
    while (i < known->count && known->at[i] < at) {
        i++;
    }
    if (known->count == LIMITS_MAX) {
        fprintf(stderr, "explore: more than %d limits in one place\n", LIMITS_MAX);
        exit(2);
    }
    memmove(known->at + i + 1, known->at + i, (known->count - i) * sizeof *known->at);
    known->at[i] = at;
    known->count++;
    is_new_limit = true;
}

/* Compared is the timer as it was, or one more: a tick counts first. Any other value is that of a state which has just begun. */
static void reached_hook(uint16_t ticks, uint16_t limit) {
    if (place_now != PLACES && (ticks == timer_now || ticks == timer_now + 1)) {
        const uint32_t counted = ticks - timer_now;
        if (limit >= counted && (limit > counted || counted == 0)) {
            note_limit(place_now, limit - counted);
        }
    }
}

/* The last timer value for which all comparisons turn out as for this one */
static uint32_t last_alike(size_t place, uint32_t timer) {
    for (unsigned i = 0; i < limits[place].count; i++) {
        if (limits[place].at[i] > timer) {
            return limits[place].at[i] - 1;
        }
    }
    return timer;
}

static uint64_t hash(const struct node *node) {
    uint64_t words[sizeof *node / 8 + 1] = {0}, sum = 0x9E3779B97F4A7C15u;
    memcpy(words, node, sizeof *node);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        sum = (sum ^ words[i]) * 0xD6E8FEB86659FD93u;
        sum ^= sum >> 32;
    }
    return sum;
}

static void enlarge(void) {
    capacity = capacity == 0 ? 1u << 16 : 2 * capacity;
    table_size = 2 * capacity;
    nodes = realloc(nodes, capacity * sizeof *nodes);
    table = realloc(table, table_size * sizeof *table);
    if (nodes == NULL || table == NULL) {
        fprintf(stderr, "explore: no memory for %zu states\n", capacity);
        exit(2);
    }
    memset(table, 0xFF, table_size * sizeof *table);
    for (size_t i = 0; i < count; i++) {
        size_t at = hash(&nodes[i]) % table_size;
        while (table[at] != NONE) {
            at = at + 1 == table_size ? 0 : at + 1;
        }
        table[at] = (uint32_t)i;
    }
}

/* The node's number; it is added if it is new, unless `add` is false: then it must be known. */
static uint32_t number_of(const struct node *node, bool add) {
    size_t at = hash(node) % table_size;
    while (table[at] != NONE) {
        if (memcmp(&nodes[table[at]], node, sizeof *node) == 0) {
            return table[at];
        }
        at = at + 1 == table_size ? 0 : at + 1;
    }
    if (!add) {
        return NONE;
    }
    if (count + 1 > capacity * 3 / 4) {
        enlarge();
        return number_of(node, true);
    }
    nodes[count] = *node;
    table[at] = (uint32_t)count;
    return (uint32_t)count++;
}

static struct shell shell_of(const struct node *node) {
    return (struct shell){.mode = node->mode, .phase = node->phase, .next = node->next, .timer = node->timer,
        .called = node->called, .pressed = node->pressed, .due = node->due, .walking = node->walking};
}

static void keep(struct node *node, const struct shell *shell) {
    node->mode = shell->mode;
    node->phase = shell->phase;
    node->next = shell->next;
    node->timer = shell->timer;
    node->called = shell->called;
    node->pressed = shell->pressed;
    node->due = shell->due;
    node->walking = shell->walking;
}

/* What step `step` leads to from `node`: false if nothing new. `ticks`: how long it takes; `fault`: what the judge says. */
static bool follow(const struct node *from, unsigned step, struct node *to, uint32_t *ticks, enum judge_fault *fault) {
    struct shell shell = shell_of(from);
    struct shell_output output;
    *to = *from;
    *ticks = 0;
    *fault = JUDGE_FINE;
    place_now = place_of(from);
    timer_now = from->timer;
    if (step < MICRO_STEPS) {
        const shell_set group = BIT(step % SHELL_GROUPS_MAX);
        if (step % SHELL_GROUPS_MAX >= shell_tables.groups) {
            return false;
        }
        if (step < SHELL_GROUPS_MAX) {
            take_calls(&shell, group, 0);
        } else if (step < 2 * SHELL_GROUPS_MAX) {
            take_calls(&shell, 0, group);
        } else {
            shell.due |= group & (shell.called | in_conflict(green_groups(&shell), shell.called));
        }
        keep(to, &shell);
        return memcmp(to, from, sizeof *to) != 0;
    }
    const unsigned wish = step - MICRO_STEPS;
    if (wish >= shell_tables.phases && wish != SHELL_PHASES_MAX) {
        return false;
    }
    memset(&output, 0xA5, sizeof output);
    advance(&shell, wish == SHELL_PHASES_MAX ? SHELL_NO_PHASE : (uint8_t)wish, &output);
    memset(shell.clocks, 0, sizeof shell.clocks);
    keep(to, &shell);
    *ticks = 1;
    if (place_of(to) == place_now && to->timer == from->timer + 1) {
        const uint32_t last = last_alike(place_now, from->timer);
        if (to->timer < last) { /* nothing but the count changes until then */
            *ticks += last - to->timer;
            to->timer = (uint16_t)last;
        }
    }
    *fault = judge_tick(&to->judge, &output, *ticks, false);
    ticks_judged += *ticks;
    return true;
}

/* Every number that is no phase is no wish; a fault flag stops the shell from every state. */
static enum judge_fault check_all_bytes(const struct node *from) {
    struct shell_output output;
    struct shell expected = shell_of(from);
    place_now = PLACES; /* notes nothing */
    advance(&expected, SHELL_NO_PHASE, &output);
    for (unsigned wish = shell_tables.phases; wish <= UINT8_MAX; wish++) {
        struct shell shell = shell_of(from);
        advance(&shell, (uint8_t)wish, &output);
        if (memcmp(&shell, &expected, sizeof shell) != 0) {
            return JUDGE_WISH_CLASS;
        }
    }
    struct shell shell = shell_of(from);
    const struct shell_input input = {.faults = 1, .calls = UINT16_MAX, .wish = 1};
    shell_tick(&shell, &input, &output);
    return shell.mode != SHELL_FLASH || (output.green | output.yellow) != 0 ? JUDGE_FLASH : JUDGE_FINE;
}

static void tell(const struct node *node, enum judge_fault fault, unsigned step) {
    printf("{\"fault\": \"%s\", \"mode\": %u, \"phase\": %u, \"next\": %u, \"timer\": %u, \"called\": %u, \"due\": %u, \"step\": %u}\n",
        judge_words[fault], node->mode, node->phase, node->next, node->timer, node->called, node->due, step);
}

/* All nodes from the start on. Returns the first fault, with its node and step told, or JUDGE_FINE; neither counts if there is a
 * new limit.
 */
static enum judge_fault explore(void) {
    struct node start, to, told;
    uint32_t ticks;
    unsigned told_step = 0;
    enum judge_fault fault, first = JUDGE_FINE;
    is_new_limit = false;
    memset(&start, 0, sizeof start);
    count = 0;
    transitions = ticks_judged = 0;
    memset(table, 0xFF, table_size * sizeof *table);
    (void)number_of(&start, true);
    for (size_t i = 0; i < count; i++) {
        for (unsigned step = 0; step < STEPS; step++) {
            const struct node from = nodes[i];
            if (!follow(&from, step, &to, &ticks, &fault)) {
                continue;
            }
            transitions++;
            if (fault == JUDGE_FINE) {
                (void)number_of(&to, true);
            } else if (first == JUDGE_FINE) {
                first = fault;
                told = from;
                told_step = step;
            }
        }
        if (first == JUDGE_FINE && i % SAMPLE == 0 && (first = check_all_bytes(&nodes[i])) != JUDGE_FINE) {
            told = nodes[i];
            told_step = STEPS;
        }
        if (first != JUDGE_FINE && !is_new_limit) {
            break;
        }
    }
    if (first != JUDGE_FINE && !is_new_limit) {
        tell(&told, first, told_step);
    }
    return first;
}

/* Longest paths */

#define UNSEEN UINT32_MAX
#define OPEN (UINT32_MAX - 1)

static bool is_waiting(const struct node *node, shell_set group, bool green) {
    const struct shell shell = shell_of(node);
    return (node->due & group) != 0 && (green ? green_groups(&shell) & group : node->called & group) != 0;
}

struct frame {
    uint32_t node, step, most; /* the step to be followed next; the longest path behind the steps before it */
};

/* The longest path from node `first` on while `group` waits, into `bound`; false if there is a circle. */
static bool measure(uint32_t first, shell_set group, bool green, uint32_t *bound, struct frame *stack) {
    size_t depth = 0;
    stack[depth++] = (struct frame){first, 0, 0};
    bound[first] = OPEN;
    while (depth > 0) {
        struct frame *top = &stack[depth - 1];
        uint32_t deeper = NONE;
        for (; top->step < STEPS; top->step++) {
            struct node to;
            uint32_t ticks, behind = 0;
            enum judge_fault fault;
            if (!follow(&nodes[top->node], top->step, &to, &ticks, &fault)) {
                continue;
            }
            if (is_waiting(&to, group, green)) {
                const uint32_t next = number_of(&to, false);
                if (bound[next] == OPEN) {
                    return false;
                }
                if (bound[next] == UNSEEN) {
                    deeper = next; /* this step again, once that node is done */
                    break;
                }
                behind = bound[next];
            }
            top->most = behind + ticks > top->most ? behind + ticks : top->most;
        }
        if (deeper != NONE) {
            bound[deeper] = OPEN;
            stack[depth++] = (struct frame){deeper, 0, 0};
        } else {
            bound[top->node] = top->most;
            depth--;
        }
    }
    return true;
}

/* Ticks until `group`, due, is green (or, with `green`, no longer green), at most; UINT32_MAX: for ever. 0: it is never due. */
static uint32_t longest(unsigned group, bool green) {
    uint32_t *bound = malloc(count * sizeof *bound), best = 0;
    struct frame *stack = malloc((count + 1) * sizeof *stack);
    if (bound == NULL || stack == NULL) {
        fprintf(stderr, "explore: no memory for the longest paths\n");
        exit(2);
    }
    memset(bound, 0xFF, count * sizeof *bound);
    for (size_t first = 0; first < count && best != UINT32_MAX; first++) {
        if (bound[first] == UNSEEN && is_waiting(&nodes[first], BIT(group), green)) {
            best = !measure((uint32_t)first, BIT(group), green, bound, stack) ? UINT32_MAX
                : bound[first] > best ? bound[first] : best;
        }
    }
    free(bound);
    free(stack);
    return best;
}

static void print_bounds(const char *name, bool green) {
    printf(", \"%s\": [", name);
    for (unsigned group = 0; group < shell_tables.groups; group++) {
        const uint32_t ticks = longest(group, green);
        printf(ticks == UINT32_MAX ? "%snull" : "%s%" PRIu32, group == 0 ? "" : ", ", ticks);
    }
    printf("]");
}

/* explore [--no-bounds]: one line of JSON; exit status 1 if a promise is broken */
int main(int argc, char **argv) {
    unsigned rounds = 0;
    enum judge_fault fault;
    enlarge();
    do {
        fault = explore();
        rounds++;
    } while (is_new_limit);
    if (fault != JUDGE_FINE) {
        return 1;
    }
    printf("{\"states\": %zu, \"transitions\": %" PRIu64 ", \"ticks\": %" PRIu64 ", \"rounds\": %u", count, transitions,
        ticks_judged, rounds);
    if (argc < 2 || strcmp(argv[1], "--no-bounds") != 0) {
        print_bounds("due_to_green", false);
        print_bounds("due_to_yellow", true);
    }
    printf("}\n");
    return is_new_limit ? 2 : 0;
}
