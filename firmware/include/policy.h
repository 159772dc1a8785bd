/* The policy as the build generates it from the policy file (firmware/generator/generate.py): tables in flash. */
#ifndef POLICY_H
#define POLICY_H

#include "kernel.h"
#include "policy_dimensions.h" /* generated: POLICY_... constants, the widest of all intersections */
#include "types.h"

struct intersection {
    uint8_t inputs; /* feature values of a request */
    uint8_t actions;
    uint8_t hidden1;
    uint8_t hidden2;
    const FLASH uint8_t *phases; /* [actions] */
#if KERNEL_ID == KERNEL_TABLE
    const FLASH uint8_t *kernel; /* all that the kernel reads, in order: firmware/generator/stream.py */
#elif KERNEL_ID == KERNEL_UNROLLED
    void (*kernel)(void); /* for infer() only: it knows no calling convention */
    const FLASH uint8_t *ranges; /* each feature's width, offset (2 bytes) and span (2); a 0 behind the last */
#else
    uint8_t features; /* branches of layer 1 */
    uint8_t joined;   /* whether there is one ReLU of all branches' sum, instead of one of each */
    const FLASH struct feature_scale *scales;             /* [features] */
    const FLASH uint8_t *layer1_weights;                  /* [features], [hidden1 / 2][width][2] each */
    const FLASH int24 *layer1_biases;                     /* [features], hidden1 (or 1 more) each */
    const FLASH struct requantisation *layer1_requantise; /* [hidden1] */
    const FLASH uint8_t *layer2_weights;                  /* [hidden2 / 2][hidden1][2] */
    const FLASH int24 *layer2_biases;                     /* [hidden2], or 1 more */
    const FLASH struct requantisation *layer2_requantise; /* [hidden2] */
    const FLASH uint8_t *layer3_weights;                  /* [actions / 2][hidden2][2] */
    const FLASH int24 *layer3_biases;                     /* [actions], or 1 more */
#endif
};

/* Of the portable kernel. Weights are stored as weight + 128, so that it multiplies unsigned by unsigned. Their rows come
 * in pairs: of two rows a and b the table has a[0], b[0], a[1], b[1], ...; to an odd number of rows one of zeros is added.
 */
#define WEIGHT_EXCESS_LOG2 7

/* q = min(255, (max(0, x - offset) * multiplier + half) >> shift), half = (1 << shift) / 2 */
struct feature_scale {
    int16_t offset;
    uint16_t span;       /* what is below the offset, or more than this above it, is beyond the feature's range */
    uint16_t multiplier; /* at most 32767 */
    uint8_t shift;       /* 0..16 */
    uint8_t width;       /* number of the feature's values */
};

/* h = min(255, (sum * multiplier + half) >> shift) */
struct requantisation {
    uint8_t multiplier; /* 1..255 */
    uint8_t shift;      /* 1..31 */
};

extern const FLASH struct intersection policy_intersections[POLICY_INTERSECTIONS];

#endif
