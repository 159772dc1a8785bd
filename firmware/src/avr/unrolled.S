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
    .section .bss.kernel_odd, "aw", @nobits
kernel_odd: /* the activations of layer 1 */
    .skip POLICY_HIDDEN1_MAX

/* const FLASH struct intersection *net in r25:r24, const uint8_t *values in r23:r22; see infer.h for what it leaves alone */
    .section .text.infer_kernel, "ax", @progbits
    .global infer_kernel
    .type infer_kernel, @function
infer_kernel:
    push r28
    push r29
    movw r30, r24
    adiw r30, INTERSECTION_KERNEL
    lpm r24, Z+
    lpm r25, Z+
    movw r30, r24
    clr r2
    movw r26, r22
    icall
    clr r1
    pop r29
    pop r28
    ret

#include "policy_kernel.inc"

#endif
