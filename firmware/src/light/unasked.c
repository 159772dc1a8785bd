/* See unasked.h. */
#include "light/unasked.h"

#include "frame.h"
#include "light/events.h"
#include "light/scan.h"

#define TYPE_EVENT 0xA0
#define TICK_BYTES 4
#define EVENT_BYTES 2

static uint8_t address[2]; /* sequence number and intersection, as a request has them */

void unasked_begin(uint8_t type) {
    frame_begin(type, address);
    address[0]++;
}

void unasked_send_events(void) {
    struct event event;
    if (!events_take(&event, NULL)) {
        return;
    }
    const uint16_t age = (uint16_t)ticks - event.tick;
    const uint32_t tick = ticks - age;
    unasked_begin(TYPE_EVENT);
    frame_put_bytes(&tick, TICK_BYTES);
    uint8_t room = POLICY_MAX_PAYLOAD - TICK_BYTES;
    do {
        frame_put_bytes(&event.kind, EVENT_BYTES);
        room -= EVENT_BYTES;
    } while (room >= EVENT_BYTES && events_take(&event, &event.tick));
    frame_end();
}
