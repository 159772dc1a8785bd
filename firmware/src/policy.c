/* The generated tables of the policy, compiled into flash. */
#include "policy.h"

#include "policy_tables.h" /* generated */
