/* The rings between the UART's interrupts and the program; for the two files that know them. */
#ifndef UART_RINGS_H
#define UART_RINGS_H

#include "mode.h"
#include "policy_dimensions.h"

/* Powers of two. What the chip receives while it computes must fit the first; with stop and wait that is nothing. Sending
 * never waits if the second holds a whole frame, and would stall if it held less than a COBS block.
 */
#if MODE == MODE_ALONE
#define RECEIVE_RING_BYTES 32 /* nothing long is asked */
#else
#define RECEIVE_RING_BYTES 64
#endif
#if POLICY_MAX_PAYLOAD + 8 < 64
#define SEND_RING_BYTES 64
#elif POLICY_MAX_PAYLOAD + 8 < 128
#define SEND_RING_BYTES 128
#else
#define SEND_RING_BYTES 256
#endif
#define RECEIVE_MASK (RECEIVE_RING_BYTES - 1)
#define SEND_MASK (SEND_RING_BYTES - 1)

#define RECEIVED_HEAD GPIOR1 /* next to be written, by the interrupt: free I/O registers, read in one cycle */
#define RECEIVED_TAIL GPIOR2 /* next to be read */

#endif
