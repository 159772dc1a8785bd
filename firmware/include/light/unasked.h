/* Frames that nobody asked for: EVENT, and in mode alone DECISION. Only sent where the line has room for all of one. */
#ifndef UNASKED_H
#define UNASKED_H

#include "types.h"

void unasked_send_events(void); /* all of the oldest one's tick, as far as a frame holds them */
void unasked_begin(uint8_t type);       /* a frame of the next sequence number */

#endif
