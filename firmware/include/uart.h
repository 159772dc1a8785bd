/* Bytes in and out. On the chip: two rings that interrupts fill and empty. On the host: stdin and stdout. */
#ifndef UART_H
#define UART_H

#include "types.h"

void uart_start(void);
MUST_USE bool uart_receive(uint8_t *byte); /* false: nothing has come */
void uart_send(uint8_t byte);              /* waits while the ring is full */
MUST_USE bool uart_is_quiet(void);         /* nothing received waits to be read */

MUST_USE uint16_t uart_ring_overruns(void); /* bytes lost since the receive ring was full; stops at 65535 */
MUST_USE uint16_t uart_line_errors(void);   /* wrong stop bits and bytes lost in the hardware; stops at 65535 */

#endif
