/* What the kernels in assembly share. */
#ifndef KERNEL_H
#define KERNEL_H

#include "policy_dimensions.h"

#define KERNEL_PORTABLE_C 0
#define KERNEL_TABLE 1
#define KERNEL_UNROLLED 2

#define INTERSECTION_KERNEL 4 /* offset in struct intersection; policy.c checks it */

#endif
