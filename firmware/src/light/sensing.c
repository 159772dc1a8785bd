/* See sensing.h, and docs/controller.md for the rules.
 *
 * Edges are taken as they come; all that takes seconds is judged once a second for each lane, in a tick of its own.
 */
#include "light/sensing.h"

#include "light/events.h"
#include "light/lines.h"
#include "light/tick.h"

#if LIGHT_LANES

enum { ENTRY, STOP_LINE, LOOPS };

#define COUNT_MAX UINT8_MAX
#define QUIET_S 11         /* green, and nobody passed the stop line: nobody waits there */
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
#define OTHERS_LIMIT 200   /* entered the neighbours since somebody entered this lane: 0.2 % where it has 3 % of them */
#define OTHERS_MOST 240    /* counted up to here */
#define SANE_S 20          /* without a sign of its fault: it is believed again */
#define POOR_SHARE 3       /* a third of the lanes */

struct loop {
    uint8_t on_s;        /* seconds that it has been occupied, no edge between */
    uint8_t missed;      /* what should have been seen since its last edge: at the entry deficits, at the stop line entries */
    uint8_t edges : 2;   /* in this second, up to CHATTER_EDGES */
    uint8_t chatter : 4; /* score */
    uint8_t fault : 3;   /* 0, or its event less FAULTS */
    uint8_t sane_s : 5;
};

#define FAULTS (EVENT_DETECTOR_RESTORED) /* events 84 to 88 follow it */

static struct lane {
    struct loop loops[LOOPS];
    uint8_t quiet_s;      /* green, and nobody left; in pairs of seconds where a lane leads out */
    uint8_t green_s;      /* since somebody left; likewise */
    uint8_t entry_at;     /* what `entries` of its road was when somebody entered this lane last */
    uint8_t age_s;        /* of this period of clear_s seconds */
    uint8_t now, before;  /* entries in this period, and in the one before */
} lanes[LIGHT_LANES];

uint8_t sensing_counts[LIGHT_LANES];
static uint8_t entries[LIGHT_ROADS]; /* into each road, modulo 256 */

#if LIGHT_PASSED
static struct {
    uint8_t left; /* since the last decision */
    uint8_t had;  /* then */
} passing[LIGHT_IN_LANES];
#endif

static shell_set calls;
static bool is_poor;
static bool has_news; /* both must be formed again */

static void add(uint8_t *counter) {
    *counter += *counter != COUNT_MAX;
}

bool sensing_is_suspect(uint8_t lane) {
    return (lanes[lane].loops[ENTRY].fault | lanes[lane].loops[STOP_LINE].fault) != 0;
}

static void enter(uint8_t number) {
    struct lane *lane = lanes + number;
    add(sensing_counts + number);
    add(&lane->now);
    add(&lane->loops[STOP_LINE].missed);
    lane->loops[ENTRY].missed = 0;
    lane->entry_at = ++entries[sensing_lanes[number].road];
}

static void leave(uint8_t number) {
    struct lane *lane = lanes + number;
    if (sensing_counts[number] != 0) {
        sensing_counts[number]--;
    } else {
        add(&lane->loops[ENTRY].missed);
    }
    lane->loops[STOP_LINE].missed = 0;
    lane->green_s = 0;
    lane->quiet_s = 0;
#if LIGHT_PASSED
    if (number < LIGHT_IN_LANES) {
        add(&passing[number].left);
    }
#endif
}

static void take_edges(uint32_t tick, const uint8_t *level, const uint8_t *changed) {
    for (uint8_t line = 0; line < LOOPS * LIGHT_LANES; line += 8) {
        uint8_t bits = changed[line >> 3], levels = level[line >> 3];
        for (uint8_t at = line; bits != 0 && at < LOOPS * LIGHT_LANES; at++, bits >>= 1, levels >>= 1) {
            if ((bits & 1) == 0) {
                continue;
            }
            has_news = true;
            events_note(tick, (levels & 1) != 0 ? EVENT_DETECTOR_ON : EVENT_DETECTOR_OFF, at + 1);
            if ((levels & 1) != 0) {
                const uint8_t number = at >> 1;
                    struct loop *loop = lanes[number].loops + (at & 1);
                loop->edges += loop->edges != CHATTER_EDGES;
                if ((at & 1) == ENTRY) {
                    enter(number);
                } else {
                    leave(number);
                }
            }
        }
    }
}

static uint8_t entries_of_others(uint8_t number) {
    return (uint8_t)(entries[sensing_lanes[number].road] - lanes[number].entry_at);
}

static bool is_silent(uint8_t number, uint8_t which) {
    const struct lane *lane = lanes + number;
    if (which == ENTRY) {
        return lane->loops[ENTRY].missed >= DEFICIT_LIMIT || entries_of_others(number) >= OTHERS_LIMIT;
    }
    const uint8_t limit = number < LIGHT_IN_LANES ? KEPT_GREEN_S : KEPT_OUT;
    return lane->loops[STOP_LINE].missed >= KEPT_LIMIT && lane->green_s >= limit;
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
    return which == ENTRY && sensing_counts[number] > sensing_lanes[number].most ? EVENT_DETECTOR_FAULTY : 0;
}

/* Of the believed lanes of a road, or of all that lead in (out) if it has none: the mean count, rounded */
static uint8_t mean_of_neighbours(uint8_t number) {
    const uint8_t road = sensing_lanes[number].road;
    const bool leads_in = number < LIGHT_IN_LANES;
    for (bool all = false;; all = true) {
        uint16_t sum = 0;
        uint8_t count = 0;
        for (uint8_t other = 0; other < LIGHT_LANES; other++) {
            if ((all ? (other < LIGHT_IN_LANES) == leads_in : sensing_lanes[other].road == road) && !sensing_is_suspect(other)) {
                sum += sensing_counts[other];
                count++;
            }
        }
        if (count != 0) {
            return (uint8_t)((sum + count / 2) / count);
        }
        if (all) {
            return 0;
        }
    }
}

static void judge_loop(uint32_t tick, uint8_t number, uint8_t which) {
#ifndef TL_NO_SUSPICION
    struct loop *loop = lanes[number].loops + which;
    const uint8_t sign = sign_of_fault(number, which), channel = LOOPS * number + which + 1;
    if (sign != 0) {
        loop->sane_s = 0;
        if (loop->fault == 0) {
            loop->fault = sign - FAULTS;
            has_news = true;
            events_note(tick, sign, channel);
        }
        if (sign == EVENT_DETECTOR_FAULTY) {
            sensing_counts[number] = sensing_lanes[number].most;
        }
    } else if (loop->fault != 0 && ++loop->sane_s == SANE_S) { /* 20 s: fits its bits */
        const uint8_t mean = mean_of_neighbours(number);
        loop->fault = 0;
        has_news = true;
        if (!sensing_is_suspect(number)) {
            sensing_counts[number] = mean; /* a better beginning than what a faulty loop has made of it */
        }
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
    const uint16_t lately = (uint16_t)(lane->now + lane->before);
    if (lane->quiet_s >= (number < LIGHT_IN_LANES ? QUIET_S : QUIET_OUT) && sensing_counts[number] > lately) {
        sensing_counts[number] = (uint8_t)lately;
        has_news = true;
    }
}

static void end_second(uint32_t tick, uint8_t number, const uint8_t *level, shell_set green) {
    struct lane *lane = lanes + number;
    const shell_set groups = sensing_lanes[number].groups;
    const bool is_on = lines_bit(level, LOOPS * number + STOP_LINE);
    if (entries_of_others(number) > OTHERS_MOST) { /* so that it doesn't turn over */
        lane->entry_at = entries[sensing_lanes[number].road] - OTHERS_MOST;
    }
    correct(number, (groups & ~green) == 0, is_on);
    end_second_of_loop(lane->loops + ENTRY, lines_bit(level, LOOPS * number + ENTRY));
    end_second_of_loop(lane->loops + STOP_LINE, is_on);
    judge_loop(tick, number, ENTRY);
    judge_loop(tick, number, STOP_LINE);
}

void sensing_take(uint32_t tick, const uint8_t *level, const uint8_t *changed, shell_set green) {
    static uint8_t turn; /* of the second */
    take_edges(tick, level, changed);
    if (turn < LIGHT_LANES) {
        end_second(tick, turn, level, green);
    }
    turn = turn + 1 < TICKS_PER_S ? turn + 1 : 0;
}

shell_set sensing_calls(void) {
    if (has_news) {
        has_news = false;
        uint8_t suspects = 0;
        calls = 0;
        for (uint8_t lane = 0; lane < LIGHT_IN_LANES; lane++) {
            const bool is_suspect = sensing_is_suspect(lane);
            suspects += is_suspect;
            if (is_suspect || sensing_counts[lane] != 0) {
                calls |= sensing_lanes[lane].groups;
            }
        }
        is_poor = suspects * POOR_SHARE > LIGHT_IN_LANES;
    }
    return calls;
}

uint8_t sensing_value(uint8_t lane) {
    return sensing_is_suspect(lane) ? mean_of_neighbours(lane) : sensing_counts[lane];
}

bool sensing_is_poor(void) {
    return is_poor;
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
