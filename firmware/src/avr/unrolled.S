/* The kernel `unrolled`: what surrounds the generated code (firmware/generator/unrolled.py). */
#include "kernel.h"

#if KERNEL_ID == KERNEL_UNROLLED

.macro KERNEL_CODE number
    .section .text.kernel_\number, "ax", @progbits
    .global kernel_\number
    .type kernel_\number, @function
kernel_\number:
.endm

    .section .bss.kernel_even, "aw", @nobits
kernel_even: /* inputs that have no register; after layer 1 the activations of layer 2 */
    .skip KERNEL_EVEN_BYTES
#include "kernel_entry.inc"
    ACTIVATIONS 0

    ENTER_KERNEL
    clr r2
    movw r26, r22
    icall
    LEAVE_KERNEL

#include "policy_kernel.inc"

#endif
