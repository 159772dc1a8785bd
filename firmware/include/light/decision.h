/* A decision of a light that decides alone, and the frame that tells it (docs/protocol.md). */
#ifndef DECISION_H
#define DECISION_H

#include "policy_dimensions.h"
#include "types.h"

#define DECISION_BY_PLAN 0x01
#define DECISION_REPLACED 0x02

struct decision_told { /* as the frame has it */
    uint32_t tick;
    uint16_t number;
    uint8_t action;
    uint8_t flags;
    uint8_t compute_cycles[3];
    uint16_t logits_crc;
    uint8_t count;
    int16_t values[POLICY_INPUTS_MAX];
} __attribute__((packed));

/* A decision is due when the scan says so; then the network's inputs are formed, and what it chooses is taken. */
void decision_begin(void);
const uint8_t *decision_values(void);
void decision_end(uint24 cycles, uint24 too_many);

bool decision_waits(void); /* to be told */
void decision_tell(void);

#endif
