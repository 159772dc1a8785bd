/* See decision.h. */
#include "light/decision.h"

#include "crc.h"
#include "frame.h"
#include "infer.h"
#include "light/control.h"
#include "light/features.h"
#include "light/scan.h"
#include "light/sensing.h"
#include "light/unasked.h"

#if LIGHT_LANES
#define TYPE_DECISION 0xA1

static struct decision_told told;
static bool waits;

const uint8_t *decision_values(void) {
    return (const uint8_t *)told.values;
}

void decision_begin(void) {
    static uint16_t next;
    told.tick = ticks;
    told.number = next++;
    told.flags = features_compute(told.values, scan_action()) ? DECISION_REPLACED : 0;
}

void decision_end(uint24 cycles, uint24 too_many) {
    if (cycles > too_many) {
        control_overrun();
    }
    control_decided(inferred.action);
    told.action = control_wish();
    if (control_who() != CONTROL_NETWORK) {
        told.flags |= DECISION_BY_PLAN;
    }
    told.compute_cycles[0] = (uint8_t)cycles;
    told.compute_cycles[1] = (uint8_t)(cycles >> 8);
    told.compute_cycles[2] = (uint8_t)(cycles >> 16);
    told.logits_crc = crc_of(inferred_logit_bytes(), LOGIT_BYTES * LIGHT_ACTIONS);
    told.count = POLICY_INPUTS_MAX;
    waits = true;
}

bool decision_waits(void) {
    return waits;
}

void decision_tell(void) {
    unasked_begin(TYPE_DECISION);
    frame_put_bytes(&told, sizeof told);
    frame_end();
    waits = false;
}
#endif
