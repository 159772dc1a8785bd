/* The generated tables of the policy, compiled into flash. */
#include "policy.h"

#include <stddef.h>

#include "infer.h"

#include "policy_tables.h" /* generated */

union decision_or_parts decision_or_parts;

#if KERNEL_ID != KERNEL_PORTABLE_C
_Static_assert(offsetof(struct intersection, kernel) == INTERSECTION_KERNEL, "the assembly reads it there");
_Static_assert(offsetof(struct intersection, hidden1) == INTERSECTION_HIDDEN, "the assembly reads it there");
#if KERNEL_ID == KERNEL_UNROLLED
_Static_assert(offsetof(struct intersection, ranges) == INTERSECTION_RANGES, "the assembly reads it there");
#endif
_Static_assert(offsetof(struct decision, logits) == 1 && sizeof(int24) == 3, "the assembly writes them there");
#endif
