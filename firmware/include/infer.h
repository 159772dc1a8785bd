/* The kernel: feature values in, logits and action out. One of three is compiled; KERNEL_ID says which. */
#ifndef INFER_H
#define INFER_H

#include "mode.h"
#include "policy.h"
#include "types.h"

struct decision {
    uint8_t action; /* the lowest index of the greatest logit */
    int24 logits[POLICY_ACTIONS_MAX];
};

/* The result of infer(). Until then its memory may hold the values of a request that comes in parts. */
#if MODE == MODE_ALONE
#define PARTS_BYTES 1 /* nobody sends any */
#else
#define PARTS_BYTES (2 * POLICY_INPUTS_MAX + 2)
#endif
extern union decision_or_parts {
    struct decision decision;
    uint8_t parts[PARTS_BYTES];
} decision_or_parts __asm__("inferred");
#define inferred (decision_or_parts.decision)

/* The activations of its layers 1 and 2. The kernels in assembly have them too, under the same names. */
#if KERNEL_ID == KERNEL_PORTABLE_C
extern uint8_t hidden1[POLICY_HIDDEN1_MAX], hidden2[POLICY_HIDDEN2_MAX];
#endif

/* The logits' bytes as they go over the wire: 24 bits each, low byte first */
#define LOGIT_BYTES 3
#ifdef __AVR__
static inline const uint8_t *inferred_logit_bytes(void) {
    return (const uint8_t *)inferred.logits;
}
#else
const uint8_t *inferred_logit_bytes(void);
#endif

/* `values`: net->inputs numbers, int16 little-endian, as they come over the wire. */
#if KERNEL_ID == KERNEL_PORTABLE_C
void infer(const FLASH struct intersection *net, const uint8_t *values);
#else
/* The kernels in assembly use nearly all registers and restore Y alone: main, the only caller, has few to keep. */
static inline void infer(const FLASH struct intersection *net, const uint8_t *values) {
    register const FLASH struct intersection *first __asm__("r24") = net;
    register const uint8_t *second __asm__("r22") = values;
    __asm__ volatile("call infer_kernel"
                     : "+r"(first), "+r"(second)
                     :
                     : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16",
                       "r17", "r18", "r19", "r20", "r21", "r26", "r27", "r30", "r31", "memory");
}
#endif

#endif
