/* Lanes beside each other, of one road: vehicles change between them where no loop is. */
#ifndef BESIDE_H
#define BESIDE_H

#include "light/dimensions.h" /* generated */
#include "types.h"

#if LIGHT_BESIDE
/* Of the lane and those beside it, by their counts; the lane itself: it is none of the others. */
uint8_t beside_fullest(uint8_t lane);
uint8_t beside_with_room(uint8_t lane); /* the emptiest on which not all stand that fit */
#endif

#endif
