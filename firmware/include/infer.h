/* The kernel: feature values in, logits and action out. One implementation is linked; KERNEL_ID says which. */
#ifndef INFER_H
#define INFER_H

#include "policy.h"
#include "types.h"

#define KERNEL_PORTABLE_C 0
#ifndef KERNEL_ID
#define KERNEL_ID KERNEL_PORTABLE_C
#endif

struct decision {
    uint8_t action; /* the lowest index of the greatest logit */
    int32_t logits[POLICY_ACTIONS_MAX];
};

/* `values`: net->inputs numbers, int16 little-endian, as they come over the wire. */
void infer(const FLASH struct intersection *net, const uint8_t *values, struct decision *decision);

#endif
