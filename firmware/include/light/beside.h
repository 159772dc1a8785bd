/* Lanes beside each other, of one road: vehicles change between them where no loop is. */
#ifndef BESIDE_H
#define BESIDE_H

#include "light/dimensions.h" /* generated */
#include "types.h"

#if LIGHT_BESIDE
/* Of the lane and those beside it, by their counts; the lane itself: it is none of the others. */
uint8_t beside_fullest(uint8_t lane);
uint8_t beside_with_room(uint8_t lane);                  /* the emptiest on which not all stand that fit */
uint8_t beside_waiting(uint8_t lane);                    /* the emptiest that isn't green without anybody */

/* Whether somebody on a lane beside, or a loop there that isn't believed, may mean somebody on this one. */
bool beside_calls(uint8_t lane);

#define MOST(lane) (sensing_lanes[lane].most + 3) /* counted where no loop is faulty: some stand beside */
#define LEADS_ON(lane) ((lane) >= LIGHT_IN_LANES || sensing_lanes[lane].groups != 0) /* else its vehicles change lanes */
#else
#define MOST(lane) (sensing_lanes[lane].most)
#define LEADS_ON(lane) true
#endif

#endif
