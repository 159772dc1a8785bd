/* See sensing.h, and docs/controller.md for the rules.
 *
 * Edges are taken as they come; all that takes seconds is judged once a second for each lane, in a tick of its own.
 */
#include "light/sensing.h"

#include "light/beside.h"
#include "light/events.h"
#include "light/lines.h"
#include "light/tick.h"

#if LIGHT_LANES

#define ALONE __attribute__((noinline)) /* where inlining by avr-gcc would make the code larger */

enum { ENTRY, STOP_LINE, LOOPS };

#define COUNT_MAX UINT8_MAX
#define QUIET_S (LIGHT_BESIDE ? 20 : 11) /* green, and nobody passed the stop line: nobody waits there; who yields does so for longer */
#define QUIET_OUT COUNT_MAX /* pairs of seconds, of a lane that leads out: another light may hold it for as long as its longest red */
#define CHATTER_EDGES 3    /* in a second: vehicles are two seconds apart */
#define CHATTER_SCORE 2    /* for such a second, less one for any other */
#define CHATTER_LIMIT 4
#define STUCK_ENTRY_S COUNT_MAX /* hardly a queue stands so long */
#define STUCK_STOP_S 90    /* behind the stop line nobody waits */
#define DEFICIT_LIMIT 3    /* left the lane without having entered it */
#define KEPT_LIMIT 12      /* entered, and nobody left */
#define KEPT_GREEN_S 30
#define KEPT_OUT COUNT_MAX /* pairs of seconds, as above */
#define OTHERS_MOST 240    /* entered other lanes since somebody entered this one; counted up to here */
#define FEW_SHARE 4        /* of those that fit: with more, a full lane may keep others out */
#define SANE_S 20          /* without a sign of its fault: it is believed again */
#define POOR_SHARE 3       /* of the lanes that lead in: so many at least must be believed */
#define LEAVING 2          /* seconds from one vehicle to the next as a queue leaves: a power of 2 */

struct loop {
    uint8_t on_s;        /* seconds that it has been occupied, no edge between */
    uint8_t missed;      /* what should have been seen since its last edge: at the entry deficits, at the stop line entries */
    uint8_t edges : 2;   /* in this second, up to CHATTER_EDGES */
    uint8_t flickers : 2; /* likewise: too short for a vehicle, so not counted as one */
    uint8_t chatter : 4; /* score */
    uint8_t fault : 3;   /* 0, FLICKERS, or its event less FAULTS */
    uint8_t sane_s : 5;
};

#define FAULTS (EVENT_DETECTOR_RESTORED) /* events 84 to 88 follow it */
#define FLICKERS 6                       /* reported as chatter, but still believed */

static struct lane {
    struct loop loops[LOOPS];
    uint8_t quiet_s;      /* green, and nobody left; in pairs of seconds where a lane leads out */
    uint8_t green_s;      /* since somebody left; likewise */
    uint8_t entry_at;     /* what `entries` was when somebody entered this lane last */
    uint8_t age_s;        /* of this period of clear_s seconds */
    uint8_t now, before;  /* entries in this period, and in the one before */
#if LIGHT_BESIDE
    uint8_t handed;       /* taken to have come from a lane beside, and not seen yet */
#endif
} lanes[LIGHT_LANES];

uint8_t sensing_counts[LIGHT_LANES];
static uint8_t entries; /* of all lanes that lead in, modulo 256 */

#if LIGHT_PASSED
static struct {
    uint8_t left; /* since the last decision */
    uint8_t had;  /* then */
} passing[LIGHT_IN_LANES];
#endif

static uint8_t second;
static uint8_t suspects; /* lanes that lead in */
static shell_set calls;
static bool has_news; /* these must be formed again */

static void add(uint8_t *counter) {
    *counter += *counter != COUNT_MAX;
}

ALONE static bool is_doubted(uint8_t number, uint8_t which) {
    const uint8_t fault = lanes[number].loops[which].fault;
    return fault != 0 && fault != FLICKERS;
}

bool sensing_is_suspect(uint8_t lane) {
    return is_doubted(lane, ENTRY) || is_doubted(lane, STOP_LINE);
}

#if LIGHT_BESIDE
bool sensing_is_quiet(uint8_t lane) {
    return lanes[lane].quiet_s != 0;
}

/* A vehicle has changed lanes */
static void move(uint8_t from, uint8_t to) {
    if (from != to && sensing_counts[to] != COUNT_MAX) {
        uint8_t *missed = &lanes[from].loops[STOP_LINE].missed;
        *missed -= *missed != 0;
        sensing_counts[from]--;
        sensing_counts[to]++;
        has_news = true;
    }
}
#endif

static void come(uint8_t number) {
    add(sensing_counts + number);
    add(&lanes[number].now);
    has_news = true;
}

static void go(uint8_t number) {
    struct lane *lane = lanes + number;
    if (sensing_counts[number] != 0) {
        sensing_counts[number]--;
    }
    lane->green_s = 0;
    lane->quiet_s = 0;
#if LIGHT_BESIDE
    lane->handed -= lane->handed != 0;
#endif
#if LIGHT_PASSED
    if (number < LIGHT_IN_LANES) {
        add(&passing[number].left);
    }
#endif
    has_news = true;
}

#if LIGHT_BESIDE
/* So many aren't on this lane any more, and nobody saw them leave: they wait beside, but for those that were handed to it */
static void hand_over(uint8_t number, uint8_t vehicles) {
    const uint8_t handed = lanes[number].handed;
    lanes[number].handed = 0;
    uint8_t to, left = vehicles > handed ? vehicles - handed : 0;
    for (; left != 0 && (to = beside_waiting(number)) != number; left--) {
        move(number, to);
        add(&lanes[to].handed);
    }
}
#endif

static void enter(uint8_t number) {
    struct lane *lane = lanes + number;
    if (!is_doubted(number, ENTRY)) { /* else it is no vehicle: nothing speaks against the other loops */
        come(number);
        add(&lane->loops[STOP_LINE].missed);
        entries += number < LIGHT_IN_LANES;
#if LIGHT_BESIDE
        if (sensing_counts[number] > sensing_lanes[number].most) {
            move(number, beside_with_room(number));
        }
#endif
    }
    lane->loops[ENTRY].missed = 0;
    lane->entry_at = entries;
}

static void leave(uint8_t number) {
    struct lane *lane = lanes + number;
    if (!is_doubted(number, STOP_LINE)) {
#if LIGHT_BESIDE
        if (sensing_counts[number] == 0) { /* he may be one of those that are counted beside */
            move(beside_fullest(number), number);
        }
#endif
        if (sensing_counts[number] == 0) {
            add(&lane->loops[ENTRY].missed);
        }
        go(number);
    }
    lane->loops[STOP_LINE].missed = 0;
}

static uint8_t lately(uint8_t number) {
    const uint8_t now = lanes[number].now, sum = now + lanes[number].before;
    return sum >= now ? sum : COUNT_MAX;
}

/* At the end of a second: who passes the doubted loops of a lane, if as many come as planned, and a queue leaves as queues do */
static void imagine(uint8_t number, bool is_green) {
    const uint8_t rate = sensing_lanes[number].rate;
    const bool is_due = (uint8_t)((unsigned)second * rate) < rate;
    if (is_due && is_doubted(number, ENTRY)) {
        come(number);
    }
    if ((number < LIGHT_IN_LANES ? is_green && second % LEAVING == 0 && sensing_counts[number] > lately(number) : is_due)
        && is_doubted(number, STOP_LINE)) {
        go(number);
    }
}

static void take_edge(uint32_t tick, uint8_t line, bool is_on) {
    const uint8_t number = line >> 1, which = line & 1;
    events_note(tick, is_on ? EVENT_DETECTOR_ON : EVENT_DETECTOR_OFF, line + 1);
    if (is_on) {
        struct loop *loop = lanes[number].loops + which;
        loop->edges += loop->edges != CHATTER_EDGES;
        if (which == ENTRY) {
            enter(number);
        } else {
            leave(number);
        }
    }
}

static void take_flicker(uint8_t line) {
    struct loop *loop = lanes[line >> 1].loops + (line & 1);
    loop->flickers += loop->flickers != CHATTER_EDGES;
}

static void take_lines(uint32_t tick, const uint8_t *level, const uint8_t *changed, const uint8_t *flickers) {
    uint8_t levels = 0, edges = 0, short_ones = 0;
    for (uint8_t line = 0; line < LOOPS * LIGHT_LANES; line++, levels >>= 1, edges >>= 1, short_ones >>= 1) {
        if (line % 8 == 0) {
            levels = *level++;
            edges = *changed++;
            short_ones = *flickers++;
            if ((edges | short_ones) == 0) {
                line += 7;
                continue;
            }
        }
        if ((edges & 1) != 0) {
            take_edge(tick, line, (levels & 1) != 0);
        }
        if ((short_ones & 1) != 0) {
            take_flicker(line);
        }
    }
}

static uint8_t entries_of_others(uint8_t number) {
    return (uint8_t)(entries - lanes[number].entry_at);
}

static bool is_silent(uint8_t number, uint8_t which) {
    const struct lane *lane = lanes + number;
    if (which == ENTRY) {
        const bool is_full = sensing_counts[number] > sensing_lanes[number].most / FEW_SHARE;
        return lane->loops[ENTRY].missed >= DEFICIT_LIMIT
               || (!is_full && entries_of_others(number) >= sensing_lanes[number].others);
    }
    const uint8_t limit = number < LIGHT_IN_LANES ? KEPT_GREEN_S : KEPT_OUT;
    return lane->loops[STOP_LINE].missed >= KEPT_LIMIT && LEADS_ON(number)
           && (is_doubted(number, STOP_LINE) || lane->green_s >= limit);
}

/* What speaks against a loop, at the end of a second: 0, or the kind of the event */
static uint8_t sign_of_fault(uint8_t number, uint8_t which) {
    const struct loop *loop = lanes[number].loops + which;
    if (loop->chatter >= CHATTER_LIMIT) {
        return EVENT_DETECTOR_CHATTERS;
    }
    if (loop->on_s >= (which == ENTRY ? STUCK_ENTRY_S : STUCK_STOP_S)) {
        return EVENT_DETECTOR_STUCK;
    }
    if (is_silent(number, which)) {
        return EVENT_DETECTOR_SILENT;
    }
    if (which == ENTRY && sensing_counts[number] > MOST(number)) {
        return EVENT_DETECTOR_FAULTY;
    }
    return loop->flickers == CHATTER_EDGES ? FAULTS + FLICKERS : 0;
}

static void judge_loop(uint32_t tick, uint8_t number, uint8_t which) {
#ifndef TL_NO_SUSPICION
    struct loop *loop = lanes[number].loops + which;
    const uint8_t sign = sign_of_fault(number, which), channel = LOOPS * number + which + 1;
    if (sign != 0) {
        loop->sane_s = 0;
        if (!is_doubted(number, which) && loop->fault != sign - FAULTS) {
            loop->fault = sign - FAULTS;
            has_news = true;
            events_note(tick, sign == FAULTS + FLICKERS ? EVENT_DETECTOR_CHATTERS : sign, channel);
        }
        if (sign == EVENT_DETECTOR_FAULTY) {
            sensing_counts[number] = sensing_lanes[number].most;
        }
    } else if (loop->fault != 0 && ++loop->sane_s == SANE_S) { /* 20 s: fits its bits */
        loop->fault = 0;
        has_news = true;
        events_note(tick, EVENT_DETECTOR_RESTORED, channel);
    }
#else
    (void)tick, (void)number, (void)which;
    (void)sign_of_fault;
#endif
}

static void end_second_of_loop(struct loop *loop, bool is_on) {
    loop->on_s = is_on && loop->edges == 0 ? loop->on_s + (loop->on_s != COUNT_MAX) : 0;
    if (loop->edges == CHATTER_EDGES) {
        loop->chatter += loop->chatter < 2 * CHATTER_LIMIT ? CHATTER_SCORE : 0;
    } else if (loop->chatter != 0) {
        loop->chatter--;
    }
    loop->edges = 0;
}

/* Counting drifts. Where nobody waits, all who are on the lane have entered it lately. */
static void correct(uint8_t number, bool is_green, bool is_on) {
    struct lane *lane = lanes + number;
    if (++lane->age_s >= sensing_lanes[number].clear_s) {
        lane->age_s = 0;
        lane->before = lane->now;
        lane->now = 0;
    }
    if (!is_green || is_on) {
        lane->quiet_s = 0;
        return;
    }
    if (number < LIGHT_IN_LANES || (lane->age_s & 1) != 0) {
        add(&lane->green_s);
        add(&lane->quiet_s);
    }
    const uint8_t most = lately(number);
    const bool is_quiet = lane->quiet_s >= (number < LIGHT_IN_LANES ? QUIET_S : QUIET_OUT);
    if ((is_quiet || sensing_lanes[number].is_free) && sensing_counts[number] > most) {
#if LIGHT_BESIDE
        if (!sensing_lanes[number].is_free) {
            hand_over(number, sensing_counts[number] - most);
        }
#endif
        sensing_counts[number] = most;
        has_news = true;
    }
}

static void end_second(uint32_t tick, uint8_t number, const uint8_t *level, shell_set green) {
    struct lane *lane = lanes + number;
    const shell_set groups = sensing_lanes[number].groups;
    const bool is_on = lines_bit(level, LOOPS * number + STOP_LINE);
    if (entries_of_others(number) > OTHERS_MOST) { /* so that it doesn't turn over */
        lane->entry_at = entries - OTHERS_MOST;
    }
    correct(number, (groups & ~green) == 0, is_on && !is_doubted(number, STOP_LINE));
    imagine(number, (groups & green) != 0);
    end_second_of_loop(lane->loops + ENTRY, lines_bit(level, LOOPS * number + ENTRY));
    end_second_of_loop(lane->loops + STOP_LINE, is_on);
    for (uint8_t which = ENTRY; which < LOOPS; which++) {
        judge_loop(tick, number, which);
        lane->loops[which].flickers = 0;
    }
}

void sensing_take(uint32_t tick, const uint8_t *level, const uint8_t *changed, const uint8_t *flickers, shell_set green) {
    static uint8_t turn; /* of the second */
    take_lines(tick, level, changed, flickers);
    if (turn < LIGHT_LANES) {
        end_second(tick, turn, level, green);
    }
    if (++turn == TICKS_PER_S) {
        turn = 0;
        second++;
    }
}

shell_set sensing_calls(void) {
    if (has_news) {
        has_news = false;
        suspects = 0;
        calls = 0;
        for (uint8_t lane = 0; lane < LIGHT_IN_LANES; lane++) {
            const bool is_suspect = sensing_is_suspect(lane);
            suspects += is_suspect;
            if (is_suspect || sensing_counts[lane] != 0
#if LIGHT_BESIDE
                || beside_calls(lane)
#endif
            ) {
                calls |= sensing_lanes[lane].groups;
            }
        }
    }
    return calls;
}

uint8_t sensing_suspects(void) {
    return suspects;
}

bool sensing_is_poor(void) {
    return suspects > LIGHT_IN_LANES * (POOR_SHARE - 1) / POOR_SHARE;
}

#if LIGHT_PASSED
uint16_t sensing_take_passed(void) {
    uint16_t passed = 0;
    for (uint8_t number = 0; number < LIGHT_IN_LANES; number++) {
        passed += passing[number].left < passing[number].had ? passing[number].left : passing[number].had;
        passing[number].left = 0;
        passing[number].had = sensing_counts[number];
    }
    return passed;
}
#endif

#endif
