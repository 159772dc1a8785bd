/* The portable kernel: exact integer arithmetic, meaning as in model/policy/integer.py.
 *
 * layer 1   one branch per kept feature; the branches' ReLUs are summed, then requantised to uint8. Where the branches are
 *           joined, there is one ReLU, of their sum.
 * layer 2   ReLU, requantised to uint8
 * layer 3   the logits
 *
 * A weight w is stored as u = w + 128, and sum(w * q) = sum(u * q) - 128 * sum(q). The second term is the
 * same for every row, so it is computed once per layer, and the inner loop multiplies unsigned by unsigned:
 * no sign to extend. The sums are modulo 2^24; since the true sum fits 24 bits, the result is the true sum.
 */
#include "infer.h"

#if KERNEL_ID == KERNEL_PORTABLE_C

#include <string.h>

/* Alone each of these functions keeps its loop in registers; inlined into one another they would spill. */
#define ALONE __attribute__((noinline))

#define PAIRS(rows) (((rows) + 1) / 2) /* tables of an odd number of rows end with a row of zeros */

static uint8_t scaled[POLICY_WIDTH_MAX];        /* the inputs of the current feature, uint8 */
uint8_t hidden1[POLICY_HIDDEN1_MAX];
uint8_t hidden2[POLICY_HIDDEN2_MAX];
static int24 branches[POLICY_HIDDEN1_MAX];      /* layer 1: sum of the branches so far */
static int24 sums[2 * PAIRS(POLICY_ROWS_MAX)];  /* of the rows of the current layer */

/* min(255, value / 2^shift), rounded half up; value + half fits 32 bits. The chip shifts one bit at a time, so it
 * drops whole bytes first and then shifts 16 bits.
 */
ALONE static uint8_t round_to_byte(uint32_t value, uint8_t shift) {
    for (; shift > 8; shift -= 8) {
        value >>= 8;
    }
    if (value > UINT16_MAX) {
        return UINT8_MAX; /* more than 255 whatever the shift */
    }
    uint16_t small = (uint16_t)value;
    if (shift != 0) {
        for (; shift > 1; shift--) {
            small >>= 1;
        }
        small = (small >> 1) + (small & 1); /* small + 1 might not fit */
    }
    return small > UINT8_MAX ? UINT8_MAX : (uint8_t)small;
}

ALONE static void scale_feature(const FLASH struct feature_scale *scale, const uint8_t *values, uint8_t *out) {
    const int16_t offset = scale->offset;
    const uint16_t multiplier = scale->multiplier;
    const uint8_t shift = scale->shift;
    for (uint8_t left = scale->width; left != 0; left--) {
        const int16_t value = (int16_t)(values[0] | (uint16_t)values[1] << 8);
        const uint16_t above = value > offset ? (uint16_t)value - (uint16_t)offset : 0;
        *out++ = round_to_byte((uint32_t)above * multiplier, shift);
        values += 2;
    }
}

/* What the excess of the weights adds to every row with these inputs */
ALONE static uint24 excess_of(const uint8_t *inputs, uint8_t count) {
    uint16_t sum = 0;
    while (count-- != 0) {
        sum += *inputs++;
    }
    return (uint24)sum << WEIGHT_EXCESS_LOG2;
}

/* Adds the products to two rows at once; their weights alternate, so each input is fetched once for both. */
ALONE static void add_products(const FLASH uint8_t *weights, const uint8_t *inputs, uint8_t count, int24 *pair) {
    uint24 first = (uint24)pair[0];
    uint24 second = (uint24)pair[1];
    do {
        const uint8_t input = *inputs++;
        first += (uint16_t)((uint16_t)flash_next(&weights) * input);
        second += (uint16_t)((uint16_t)flash_next(&weights) * input);
    } while (--count != 0);
    pair[0] = (int24)first;
    pair[1] = (int24)second;
}

/* sums[row] = bias + sum of weight * input, for `pairs` pairs of rows of count > 0 inputs */
ALONE static void sum_rows(const FLASH uint8_t *weights, const FLASH int24 *biases, const uint8_t *inputs,
                           uint8_t count, uint8_t pairs) {
    const uint24 excess = excess_of(inputs, count);
    int24 *pair = sums;
    for (; pairs != 0; pairs--) {
        pair[0] = (int24)((uint24)*biases++ - excess);
        pair[1] = (int24)((uint24)*biases++ - excess);
        add_products(weights, inputs, count, pair);
        weights += 2 * count;
        pair += 2;
    }
}

/* ReLU, then uint8 */
ALONE static void activate(const int24 *row, uint8_t rows, const FLASH struct requantisation *r, uint8_t *out) {
    for (; rows != 0; rows--, r++, row++) {
        *out++ = *row > 0 ? round_to_byte((uint32_t)*row * r->multiplier, r->shift) : 0;
    }
}

ALONE static void add_branch(uint8_t rows, uint8_t joined) {
    const int24 *sum = sums;
    int24 *total = branches;
    for (; rows != 0; rows--, total++, sum++) {
        if (joined || *sum > 0) {
            *total += *sum;
        }
    }
}

static void layer1(const FLASH struct intersection *net, const uint8_t *values) {
    const FLASH struct feature_scale *scale = net->scales;
    const FLASH uint8_t *weights = net->layer1_weights;
    const FLASH int24 *biases = net->layer1_biases;
    const uint8_t pairs = PAIRS(net->hidden1);
    memset(branches, 0, sizeof branches);
    for (uint8_t left = net->features; left != 0; left--, scale++) {
        const uint8_t width = scale->width;
        scale_feature(scale, values, scaled);
        sum_rows(weights, biases, scaled, width, pairs);
        add_branch(net->hidden1, net->joined);
        weights += 2 * pairs * width;
        biases += 2 * pairs;
        values += 2 * width;
    }
    activate(branches, net->hidden1, net->layer1_requantise, hidden1);
}

static void layer2(const FLASH struct intersection *net) {
    sum_rows(net->layer2_weights, net->layer2_biases, hidden1, net->hidden1, PAIRS(net->hidden2));
    activate(sums, net->hidden2, net->layer2_requantise, hidden2);
}

static void layer3(const FLASH struct intersection *net) {
    sum_rows(net->layer3_weights, net->layer3_biases, hidden2, net->hidden2, PAIRS(net->actions));
    const int24 *sum = sums;
    int24 *logit = inferred.logits;
    int24 greatest = INT24_LEAST;
    for (uint8_t a = 0; a < net->actions; a++, sum++) {
        *logit++ = *sum;
        if (*sum > greatest) {
            greatest = *sum;
            inferred.action = a;
        }
    }
}

#ifndef __AVR__
const uint8_t *inferred_logit_bytes(void) {
    static uint8_t bytes[LOGIT_BYTES * POLICY_ACTIONS_MAX];
    for (uint8_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(inferred.logits[i / LOGIT_BYTES] >> 8 * (i % LOGIT_BYTES));
    }
    return bytes;
}
#endif

void infer(const FLASH struct intersection *net, const uint8_t *values) {
    layer1(net, values);
    layer2(net);
    layer3(net);
}

#endif
