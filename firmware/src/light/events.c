/* The queue of events; see events.h. */
#include "light/events.h"

static struct event queue[EVENTS_MAX];
static uint8_t first, count;
static bool has_lost; /* and not told yet */
uint16_t events_lost;

static void put(uint32_t tick, uint8_t kind, uint8_t channel) {
    uint8_t place = first + count;
    if (place >= EVENTS_MAX) {
        place -= EVENTS_MAX;
    }
    queue[place] = (struct event){(uint16_t)tick, kind, channel};
    count++;
}

void events_note(uint32_t tick, uint8_t kind, uint8_t channel) {
    if (count >= EVENTS_MAX - has_lost) { /* one place for the telling itself */
        has_lost = true;
        events_lost += events_lost != UINT16_MAX;
        return;
    }
    if (has_lost) {
        has_lost = false;
        put(tick, EVENT_ALARM, ALARM_EVENTS_LOST);
        events_note(tick, kind, channel);
        return;
    }
    put(tick, kind, channel);
}

bool events_wait(void) {
    return count != 0;
}

bool events_take(struct event *event, const uint16_t *tick) {
    if (count == 0 || (tick != NULL && queue[first].tick != *tick)) {
        return false;
    }
    *event = queue[first];
    count--;
    first = first + 1 < EVENTS_MAX ? first + 1 : 0;
    return true;
}
