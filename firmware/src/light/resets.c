/* See resets.h. */
#include "light/resets.h"

#include "light/events.h"

struct resets resets;

#define BLANK 0xFF /* what an erased EEPROM holds */
enum { POWER_ON = 0x01, EXTERNAL = 0x02, BROWN_OUT = 0x04, WATCHDOG = 0x08 }; /* in MCUSR */

static uint8_t check_of(const struct resets *record) {
    const uint8_t *byte = (const uint8_t *)record;
    uint8_t sum = 0x5A;
    for (uint8_t left = offsetof(struct resets, check); left != 0; left--) {
        sum = (uint8_t)(sum << 1 | sum >> 7) ^ *byte++;
    }
    return sum;
}

static bool is_blank(const struct resets *record) {
    const uint8_t *byte = (const uint8_t *)record;
    uint8_t all = BLANK;
    for (uint8_t left = sizeof *record; left != 0; left--) {
        all &= *byte++;
    }
    return all == BLANK;
}

static void count(uint16_t *counter) {
    *counter += *counter != UINT16_MAX;
}

uint8_t resets_add(struct resets *record, uint8_t cause, bool is_warm) {
    if (check_of(record) != record->check) { /* a reset may have come while it was written: for all we know, one of many */
        *record = (struct resets){.recent = is_blank(record) ? 0 : RESETS_TOO_MANY};
    }
    uint8_t event;
    if ((cause & POWER_ON) != 0 || (cause == 0 && !is_warm)) { /* some bootloaders take the cause away */
        count(&record->power_on);
        record->recent = 0;
        event = 0;
    } else {
        if ((cause & BROWN_OUT) != 0) {
            count(&record->brown_out);
            event = ALARM_BROWN_OUT_RESET;
        } else if ((cause & WATCHDOG) != 0) {
            count(&record->watchdog);
            event = ALARM_WATCHDOG_RESET;
        } else {
            count(&record->external);
            event = ALARM_EXTERNAL_RESET;
        }
        record->recent += record->recent < RESETS_TOO_MANY;
    }
    record->check = check_of(record);
    return event;
}

#ifdef __AVR__
#include <avr/eeprom.h>

#include "board.h"

#define KEPT_AT ((uint8_t *)16)

/* Only what differs is written: a cell bears 100,000 times. */
static void write(uint8_t at) {
    eeprom_update_byte(KEPT_AT + at, ((const uint8_t *)&resets)[at]);
}

void resets_note(uint32_t tick) {
    eeprom_read_block(&resets, KEPT_AT, sizeof resets);
    const uint8_t event = resets_add(&resets, boot.reset_cause, boot.count > 1);
    for (uint8_t at = 0; at < sizeof resets; at++) {
        board_feed_watchdog();
        write(at);
    }
    if (event != 0) {
        events_note(tick, EVENT_ALARM, event);
    } else {
        events_note(tick, EVENT_POWER_RESTORED, 0);
    }
}

void resets_pass(uint32_t ticks) {
    if (ticks == RESETS_MINUTE_TICKS && !resets_are_many() && resets.recent != 0) {
        resets.recent = 0;
        resets.check = check_of(&resets);
        write(offsetof(struct resets, recent));
    } else if (ticks == RESETS_MINUTE_TICKS + 1 && eeprom_read_byte(KEPT_AT + offsetof(struct resets, check)) != resets.check) {
        write(offsetof(struct resets, check)); /* the other byte takes 3.4 ms */
    }
}
#endif
