/* The monitor: looks at the lamps' lines and the controller's heartbeat once a millisecond, and says when the crossing must flash.
 *
 * It trusts nobody: it shares no source with the controller, and its table comes from the road network by a path of its own
 * (firmware/monitor/derive.py). docs/controller.md lists its limits.
 */
#ifndef MONITOR_H
#define MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#define MONITOR_GROUPS_MAX 16

#ifdef __AVR__
#define IN_FLASH __flash
#else
#define IN_FLASH
#endif

struct monitor_table {
    uint16_t groups;
    uint16_t conflicts[MONITOR_GROUPS_MAX];
    uint16_t crc; /* CRC-16/XMODEM over the words before it, low byte first */
};

extern const IN_FLASH struct monitor_table monitor_table; /* generated */

/* Limits in ms. NEMA TS 2 leaves a range; each limit lies in its middle. */
#define MONITOR_CONFLICT_MS 350     /* 200 to 500 */
#define MONITOR_SEVERAL_MS 350      /* 200 to 500 */
#define MONITOR_DARK_MS 850         /* 700 to 1000 */
#define MONITOR_YELLOW_MS 2700      /* a shorter yellow is a fault */
#define MONITOR_HEARTBEAT_MS 1000
#define MONITOR_STEADY_MS 60        /* a lamp counts as changed once it has been steady so long; twice as much, the button */
#define MONITOR_EXCUSE_MS 1200      /* whoever skips a yellow and flashes all red within this time is a controller that restarts */
#define MONITOR_FLASH_DARK_MS 300   /* all dark for so long: it flashes */

enum monitor_reason {
    MONITOR_FINE,
    MONITOR_CONFLICT,     /* two groups in conflict are green or yellow */
    MONITOR_DARK,         /* a group shows nothing */
    MONITOR_SEVERAL,      /* a group shows two of red, yellow, green */
    MONITOR_SHORT_YELLOW, /* yellow, then red too soon */
    MONITOR_NO_YELLOW,    /* green, then red */
    MONITOR_HEARTBEAT,    /* no edge of it */
    MONITOR_TABLE,        /* its own table or memory is damaged */
    MONITOR_REASONS,
};

struct monitor_lines { /* as read; bit 0 is group 0 */
    uint16_t red, yellow, green;
    bool heartbeat;
    bool button; /* pressed */
};

struct monitor_group {
    uint8_t steady;     /* lamp that it has shown last for MONITOR_STEADY_MS; 0: none yet */
    uint8_t seen;       /* lamp that it shows now; 0: none, or several */
    uint8_t seen_ms;    /* for so long, up to MONITOR_STEADY_MS */
    uint16_t dark_ms;
    uint16_t several_ms;
    uint16_t conflict_ms;
    uint16_t yellow_ms; /* since it has been steadily yellow */
};

struct monitor {
    uint8_t reason; /* why the crossing flashes; MONITOR_FINE: it doesn't */
    uint8_t group;  /* which one, where the reason is about one */
    uint8_t excused_reason, excused_group; /* of a yellow that was skipped or cut, perhaps by a restart */
    uint16_t excused_ms;                   /* left to show it */
    uint16_t all_dark_ms;
    uint16_t silent_ms;
    uint16_t button_ms;
    bool heartbeat;
    struct monitor_group groups[MONITOR_GROUPS_MAX];
};

/* `reason` and `group`: kept from before the power went; MONITOR_FINE, 0 if nothing was. */
void monitor_start(struct monitor *monitor, uint8_t reason, uint8_t group);

/* One millisecond. Returns whether `reason` has changed: it is to be kept, and the relay to be set by it. */
bool monitor_tick(struct monitor *monitor, const struct monitor_lines *lines);

#endif
