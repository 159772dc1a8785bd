/* See simavr_memo.h. States are kept as differences from the first one, in tables that are emptied when they are full. */
#include "simavr_memo.h"

#include <stdlib.h>
#include <string.h>

enum {
    DATA_BYTES = 0x900, /* of the ATmega328P: registers, I/O, SRAM */
    NODES = 1 << 19, NODE_SLOTS = 1 << 20,
    WAYS = 1 << 19, WAY_SLOTS = 1 << 20,
    DIFFERENCES = 1 << 23,
};

typedef struct {
    uint8_t data[DATA_BYTES];
    uint64_t timers;
    uint32_t pc, unused;
    uint8_t sreg[8];
    uint8_t driven[8];
} snapshot;

enum { WORDS = sizeof(snapshot) / 8, TIMERS_WORD = DATA_BYTES / 8 };

typedef struct {
    uint64_t value;
    uint32_t word;
} difference;

typedef struct {
    uint64_t hash;
    uint32_t first, count;
} node;

typedef struct {
    tl_around around;
    uint32_t place;
    tl_way way;
} known_way;

struct tl_memo {
    snapshot base;
    uint32_t nodes, ways, differences;
    node *node;
    known_way *way;
    difference *difference;
    uint32_t *node_slots, *way_slots; /* number + 1; 0: free */
};

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

tl_memo *tl_memo_create(void)
{
    tl_memo *memo = calloc(1, sizeof *memo);
    if (!memo)
        return NULL;
    memo->node = malloc(NODES * sizeof *memo->node);
    memo->way = malloc(WAYS * sizeof *memo->way);
    memo->difference = malloc(DIFFERENCES * sizeof *memo->difference);
    memo->node_slots = calloc(NODE_SLOTS, sizeof *memo->node_slots);
    memo->way_slots = calloc(WAY_SLOTS, sizeof *memo->way_slots);
    if (memo->node && memo->way && memo->difference && memo->node_slots && memo->way_slots)
        return memo;
    tl_memo_destroy(memo);
    return NULL;
}

void tl_memo_destroy(tl_memo *memo)
{
    if (!memo)
        return;
    free(memo->node);
    free(memo->way);
    free(memo->difference);
    free(memo->node_slots);
    free(memo->way_slots);
    free(memo);
}

void tl_memo_flush(tl_memo *memo)
{
    if (!memo->nodes)
        return;
    memo->nodes = memo->ways = memo->differences = 0;
    memset(memo->node_slots, 0, NODE_SLOTS * sizeof *memo->node_slots);
    memset(memo->way_slots, 0, WAY_SLOTS * sizeof *memo->way_slots);
}

int tl_memo_is_place(const tl_sim *sim)
{
    const avr_t *avr = sim->avr;
    return avr->state == cpu_Sleeping && avr->run == sim->plain_run && avr->interrupt_state == 0 && avr->interrupts.running_ptr == 0 &&
           avr->interrupts.pending.read == avr->interrupts.pending.write && sim->sent_count == 0;
}

/* Which timers are due, and in how many cycles */
static uint64_t timers_of(const avr_t *avr)
{
    uint64_t hash = 1;
    for (const avr_cycle_timer_slot_t *slot = avr->cycle_timers.timer; slot; slot = slot->next)
        if (slot->timer != tl_on_stop)
            hash = mixed(mixed(mixed(hash, slot->when - avr->cycle), (uintptr_t)slot->timer), (uintptr_t)slot->param);
    return hash;
}

static void take_snapshot(const tl_sim *sim, snapshot *taken)
{
    memset(taken, 0, sizeof *taken);
    memcpy(taken->data, sim->avr->data, DATA_BYTES);
    memcpy(taken->sreg, sim->avr->sreg, sizeof taken->sreg);
    taken->pc = sim->avr->pc;
    taken->timers = timers_of(sim->avr);
    for (int port = 0; port < TL_PORTS; port++)
        taken->driven[port] = sim->ports[port].driven;
}

uint32_t tl_memo_place(tl_memo *memo, const tl_sim *sim)
{
    snapshot now;
    uint64_t words[WORDS], base[WORDS], hash = 1;
    take_snapshot(sim, &now);
    if (memo->nodes == NODES || memo->differences + WORDS > DIFFERENCES)
        tl_memo_flush(memo);
    if (!memo->nodes)
        memo->base = now;
    memcpy(words, &now, sizeof words);
    memcpy(base, &memo->base, sizeof base);
    difference *found = memo->difference + memo->differences;
    uint32_t count = 0;
    for (uint32_t word = 0; word < WORDS; word++)
        if (words[word] != base[word]) {
            found[count++] = (difference){words[word], word};
            hash = mixed(mixed(hash, word), words[word]);
        }
    uint32_t slot = (uint32_t)hash & (NODE_SLOTS - 1);
    for (; memo->node_slots[slot]; slot = (slot + 1) & (NODE_SLOTS - 1)) {
        const node *other = &memo->node[memo->node_slots[slot] - 1];
        if (other->hash != hash || other->count != count)
            continue;
        const difference *there = memo->difference + other->first;
        uint32_t same = 0;
        while (same < count && there[same].word == found[same].word && there[same].value == found[same].value)
            same++;
        if (same == count)
            return memo->node_slots[slot] - 1;
    }
    memo->node[memo->nodes] = (node){hash, memo->differences, count};
    memo->differences += count;
    memo->node_slots[slot] = ++memo->nodes;
    return memo->nodes - 1;
}

static void rebuild(const tl_memo *memo, uint32_t place, snapshot *built)
{
    uint64_t words[WORDS];
    memcpy(words, &memo->base, sizeof words);
    const node *at = &memo->node[place];
    for (uint32_t i = 0; i < at->count; i++)
        words[memo->difference[at->first + i].word] = memo->difference[at->first + i].value;
    memcpy(built, words, sizeof *built);
}

void tl_memo_restore(const tl_memo *memo, uint32_t place, tl_sim *sim)
{
    snapshot built;
    rebuild(memo, place, &built);
    memcpy(sim->avr->data, built.data, DATA_BYTES);
    memcpy(sim->avr->sreg, built.sreg, sizeof built.sreg);
    sim->avr->pc = built.pc;
    for (int port = 0; port < TL_PORTS; port++)
        sim->ports[port].driven = built.driven[port];
}

static uint64_t timers_at(const tl_memo *memo, uint32_t place)
{
    const node *at = &memo->node[place];
    for (uint32_t i = 0; i < at->count; i++)
        if (memo->difference[at->first + i].word == TIMERS_WORD)
            return memo->difference[at->first + i].value;
    return memo->base.timers;
}

int tl_memo_same_timers(const tl_memo *memo, uint32_t one, uint32_t other)
{
    return timers_at(memo, one) == timers_at(memo, other);
}

static uint32_t way_slot(uint32_t place, tl_around around)
{
    return (uint32_t)mixed(mixed(mixed(7, place), around.wires), around.parts) & (WAY_SLOTS - 1);
}

const tl_way *tl_memo_find(const tl_memo *memo, uint32_t place, tl_around around)
{
    for (uint32_t slot = way_slot(place, around); memo->way_slots[slot]; slot = (slot + 1) & (WAY_SLOTS - 1)) {
        const known_way *known = &memo->way[memo->way_slots[slot] - 1];
        if (known->place == place && known->around.wires == around.wires && known->around.parts == around.parts)
            return &known->way;
    }
    return NULL;
}

void tl_memo_keep(tl_memo *memo, uint32_t place, tl_around around, tl_way way)
{
    if (memo->ways == WAYS || tl_memo_find(memo, place, around))
        return;
    uint32_t slot = way_slot(place, around);
    while (memo->way_slots[slot])
        slot = (slot + 1) & (WAY_SLOTS - 1);
    memo->way[memo->ways] = (known_way){around, place, way};
    memo->way_slots[slot] = ++memo->ways;
}
