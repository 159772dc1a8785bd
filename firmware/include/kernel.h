/* What the kernels in assembly share. */
#ifndef KERNEL_H
#define KERNEL_H

#include "policy_dimensions.h"

#define KERNEL_PORTABLE_C 0
#define KERNEL_TABLE 1
#define KERNEL_UNROLLED 2

/* Offsets in struct intersection; policy.c checks them */
#define INTERSECTION_HIDDEN 2
#define INTERSECTION_KERNEL 6
#if KERNEL_ID == KERNEL_TABLE
#define INTERSECTION_RANGES INTERSECTION_KERNEL /* how its bytes begin */
#else
#define INTERSECTION_RANGES 8
#endif

#endif
