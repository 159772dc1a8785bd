/* The emulated board as Python sees it: one ATmega328P in simavr with a faithful serial line.
 *
 * This header is both the C interface (the library's sources include it) and, less its preprocessor lines, the declaration that
 * cffi reads: the compiler itself checks that both agree. All times are CPU cycles since power-on.
 */
#ifndef TINYLIGHT_SIMAVR_GLUE_H
#define TINYLIGHT_SIMAVR_GLUE_H
#include <stdint.h>

typedef struct tl_sim tl_sim;

typedef struct {
    uint64_t cycle;            /* the board's clock */
    uint64_t asleep_cycles;    /* of these, those that the CPU has slept */
    uint64_t write_start;      /* last tl_write: its first byte starts on the wire */
    uint64_t request_end;      /* ... its last byte's stop bit ends */
    uint64_t reply_start;      /* last frame taken: its first byte's start bit begins */
    uint64_t reply_end;        /* ... its delimiter's stop bit ends */
    uint32_t watchdog_resets;  /* survived since power-on */
    uint32_t bytes_ignored;    /* arrived while the receiver was off */
    uint32_t bytes_overrun;    /* lost because the firmware did not read in time (DOR) */
    uint32_t bytes_misframed;  /* received at a line rate too far off (FE) */
    uint32_t bytes_unsent;     /* written by the firmware faster than the harness took them */
    uint32_t chip_byte_cycles; /* of a frame at the rate the firmware has set; 0: not yet */
    uint32_t receiver_on;      /* RXEN0 */
    uint32_t rate_matches;     /* both line rates are within what a receiver tolerates */
    uint32_t dead;             /* 0 alive, else a TL_DEAD_... reason; see tl_message */
    uint32_t pc;               /* program counter, byte address */
} tl_status;

enum { TL_ALIVE = 0, TL_DEAD_ASLEEP = 1, TL_DEAD_CRASHED = 2, TL_DEAD_OPCODE = 3, TL_DEAD_RAN_OFF = 4 };
enum { TL_POWER_ON = 0, TL_RESET_PIN = 1, TL_BROWN_OUT = 2 };

/* Of a trace: what happened from `start` to `end`; `value` is the byte; the pin: port (0 is B) << 4 | number; of a
 * reset, whether what was on the wire is lost. */
typedef struct {
    uint64_t start, end;
    uint8_t kind, value;
} tl_event;

enum { TL_REQUEST_BYTE = 0, TL_REPLY_BYTE = 1, TL_PIN_LOW = 2, TL_PIN_HIGH = 3, TL_ASLEEP = 4, TL_RESET = 5 };

/* NULL if simavr does not know the part. `baud` is the rate of the harness's end of the line. */
tl_sim *tl_create(const char *part, uint32_t f_cpu_hz, uint32_t baud);
void tl_destroy(tl_sim *sim);
/* From now on each word of flash that the CPU executes gets a 1 in `marks`, which must outlive the board. */
void tl_mark_executed(tl_sim *sim, uint8_t *marks);
/* From now on simavr's own interpreter executes everything: several times as slow, and the same to the cycle. */
void tl_run_by_simavr(tl_sim *sim);
/* -1 if it does not fit the flash. Call tl_reset once everything is loaded. */
int tl_load(tl_sim *sim, const uint8_t *code, uint32_t size, uint32_t address);
/* Where a reset starts: 0, or the bootloader's first byte (the fuses BOOTRST and BOOTSZ). */
void tl_set_reset_address(tl_sim *sim, uint32_t address);
/* The rate of the harness's end of the line, for what is written from now on. */
void tl_set_baud(tl_sim *sim, uint32_t baud);
/* A reset; the firmware finds its cause in MCUSR. The clock goes on, what is on the wire is lost. */
void tl_reset(tl_sim *sim, int cause);
/* As if a glitch had thrown the program counter there (byte address), with interrupts off. */
void tl_jump(tl_sim *sim, uint32_t address);
/* SRAM as a brown-out leaves it: noise. */
void tl_scramble_ram(tl_sim *sim, uint32_t seed);
/* Puts bytes on the wire behind those still being sent; -1 if there is no room. */
int tl_write(tl_sim *sim, const uint8_t *data, uint32_t size);
/* Runs until a frame's end has arrived or the deadline; takes bytes up to that end. Returns their number. */
uint32_t tl_read(tl_sim *sim, uint64_t deadline, uint8_t *data, uint32_t capacity);
/* Runs until the firmware has switched its receiver on, or the deadline. */
void tl_run_until_receiver_on(tl_sim *sim, uint64_t deadline);
/* Throws away what has arrived; returns how many bytes. */
uint32_t tl_drain(tl_sim *sim);
/* From now on all that happens at the pins is noted. */
void tl_trace(tl_sim *sim);
/* From now on the bytes on the serial line are noted, and resets, but neither pins nor sleep. */
void tl_trace_line(tl_sim *sim);
/* What was noted, in the order in which it became known; NULL if there was no memory for all of it. */
const tl_event *tl_traced(const tl_sim *sim, uint32_t *count);
void tl_get_status(const tl_sim *sim, tl_status *status);
/* simavr's last error message, or "". */
const char *tl_message(const tl_sim *sim);
/* Data memory (registers, I/O, SRAM), `*size` bytes. */
const uint8_t *tl_data_memory(const tl_sim *sim, uint32_t *size);

#endif
