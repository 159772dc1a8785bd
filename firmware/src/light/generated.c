/* The generated tables of the light, compiled into flash. */
#include "light/dimensions.h" /* generated */
#include "light/features.h"
#include "light/plan.h"
#include "light/sensing.h"

#include "light/light_tables.h" /* generated */
