/* What the two halves of the glue share: the board itself, and the line functions that running it needs. Library-internal. */
#ifndef TINYLIGHT_SIMAVR_STATE_H
#define TINYLIGHT_SIMAVR_STATE_H
#include "simavr_decode.h"
#include "simavr_glue.h"

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>

enum {
    WIRE_CAPACITY = 1024, /* request bytes in transit */
    SENT_CAPACITY = 4096, /* reply bytes not taken yet */
    WAITING_CAPACITY = 2, /* received bytes behind the one in UDR0: buffer and shift register */
};

typedef struct {
    uint64_t start, end;
    uint8_t value;
} sent_byte;

enum { FLASH_WORDS = 0x4000 };

enum { TL_PORTS = 3, TL_PORT_B = 0, TL_PORT_C = 1, TL_PORT_D = 2 };

/* What a port's pins drive (0 where they are inputs), and the levels that its inputs would read. */
typedef struct {
    uint8_t driven, inputs;
} tl_port;

typedef void (*tl_on_pins)(void *bench, tl_sim *sim, int port, uint8_t before);
typedef void (*tl_look_at_pins)(void *bench, tl_sim *sim, int port);

struct tl_sim {
    avr_t *avr;
    avr_uart_t *uart;
    avr_irq_t *uart_irq;
    avr_run_t plain_run, simavr_run;
    uint32_t baud;
    uint32_t code_end;
    int was_asleep;
    tl_decoded decoded[FLASH_WORDS + 3]; /* by word of flash; a program may run so far over its end before that is seen */
    tl_status status;
    /* request bytes on the wire, oldest first */
    uint8_t wire[WIRE_CAPACITY];
    uint64_t wire_end[WIRE_CAPACITY];
    uint32_t wire_head, wire_count;
    uint64_t wire_free_at; /* when the last byte's stop bit ends */
    /* bytes received in full that the firmware has not been given yet */
    uint16_t waiting[WAITING_CAPACITY];
    uint32_t waiting_count;
    /* reply bytes, oldest first */
    sent_byte sent[SENT_CAPACITY];
    uint32_t sent_head, sent_count;
    uint64_t sent_free_at;
    uint64_t frame_start;
    int at_frame_start;
    uint32_t frame_ends; /* delimiters among the reply bytes held */
    char message[160];
    uint8_t *executed; /* a mark for each word of flash, from tl_mark_executed on */
    /* what a wave form needs, from tl_trace on */
    int tracing, trace_lost;
    tl_event *trace;
    uint32_t trace_count, trace_capacity;
    avr_irq_t *pins[3][8];
    /* ports that a bench has taken over from simavr: simavr_pins.c */
    tl_port ports[TL_PORTS];
    tl_on_pins on_pins;
    tl_look_at_pins look_at_pins;
    void *bench;
};

/* Takes the ports B, C and D over from simavr, whose own call some dozen functions for an edge. `on_pins` is called for each change
 * of what the chip drives, `look` before each reading of a port (it may set inputs). */
void tl_take_over_pins(tl_sim *sim, tl_on_pins on_pins, tl_look_at_pins look, void *bench);
void tl_set_input(tl_sim *sim, int port, int pin, int level);
/* All pins are inputs again. */
void tl_release_pins(tl_sim *sim);
/* The chip's run function in place of simavr's own: the same to the cycle, and faster. */
void tl_core_run(avr_t *avr);
/* One instruction, some, or a sleep */
void tl_run_step(tl_sim *sim);
/* Runs until the deadline, or the chip's end. */
void tl_run(tl_sim *sim, uint64_t deadline);

/* Of a character at the rate that the chip has set. */
uint32_t tl_chip_byte_cycles(const tl_sim *sim);
/* Whether each end can read what the other sends. */
int tl_rates_match(const tl_sim *sim);
/* Has simavr call the line for every byte that the chip sends, or is ready to receive. */
void tl_line_connect(tl_sim *sim);
/* Loses what is on the wire in either direction. */
void tl_line_reset(tl_sim *sim);
/* Puts the request's bytes back into simavr's timer queue, which a reset has emptied; received bytes are lost. */
void tl_line_after_reset(tl_sim *sim);
/* Whether the oldest frame end that is held has arrived. */
int tl_frame_arrived(const tl_sim *sim);
/* Takes bytes that have arrived, up to a frame's end; returns how many. */
uint32_t tl_take(tl_sim *sim, uint8_t *data, uint32_t capacity);
/* A timer that does nothing: it is there so that no batch of instructions and no sleep reaches beyond it. */
avr_cycle_count_t tl_on_stop(avr_t *avr, avr_cycle_count_t when, void *context);

/* Adds to the trace, where one is kept. */
void tl_note(tl_sim *sim, int kind, uint64_t start, uint64_t end, uint8_t value);

#endif
