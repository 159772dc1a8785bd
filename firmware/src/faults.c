/* Faults on demand; see faults.h. Empty without its flags. */
#include "faults.h"

#ifdef TL_SLOWDOWN_CYCLES
#ifdef __AVR__
void faults_slow_down(void) {
    __builtin_avr_delay_cycles(TL_SLOWDOWN_CYCLES);
}
#else
#include <time.h>

void faults_slow_down(void) {
    const struct timespec pause = {TL_SLOWDOWN_CYCLES / 16000000, TL_SLOWDOWN_CYCLES % 16000000 * 1000LL / 16};
    (void)nanosleep(&pause, NULL);
}
#endif
#endif

#ifdef TL_FLIP_WEIGHT
#include "policy.h"

uint8_t faults_read_weight(const FLASH uint8_t *weight) {
    const FLASH struct intersection *net = &policy_intersections[0];
    const uint8_t row = TL_FLIP_WEIGHT / net->hidden2;
    const uint8_t column = TL_FLIP_WEIGHT % net->hidden2;
    const FLASH uint8_t *pair = net->layer3_weights + row / 2 * 2 * net->hidden2;
    return weight == pair + 2 * column + row % 2 ? *weight ^ 0x40 : *weight;
}
#endif

#ifdef TL_BALLAST_BYTES
#ifdef __AVR__ /* in a section that the linker always keeps: it would run after main, which never ends */
__attribute__((used, section(".fini8")))
#endif
const uint8_t faults_ballast[TL_BALLAST_BYTES] = {1};
#endif

#if defined(TL_GARBAGE_AFTER) || defined(TL_SILENT_AFTER) || defined(TL_HANG_AFTER)
#include "dispatch.h"
#include "uart.h"

#if defined(TL_GARBAGE_AFTER)
#define SOUND_DECISIONS TL_GARBAGE_AFTER
#elif defined(TL_SILENT_AFTER)
#define SOUND_DECISIONS TL_SILENT_AFTER
#else
#define SOUND_DECISIONS TL_HANG_AFTER
#endif

static void fail(uint8_t byte) {
#if defined(TL_GARBAGE_AFTER)
    uart_send(byte == 0 || byte == 0xA5 ? byte : byte ^ 0xA5); /* the delimiter stays */
#elif defined(TL_SILENT_AFTER)
    (void)byte;
#else
    (void)byte;
    for (;;) {
    }
#endif
}

/* The first SOUND_DECISIONS are answered as they should be; whole replies fail from then on. */
void faults_send(uint8_t byte) {
    static bool failing = SOUND_DECISIONS == 0;
    if (failing) {
        fail(byte);
    } else {
        uart_send(byte);
    }
    if (byte == 0) {
        failing = dispatch_decisions() + 1 > SOUND_DECISIONS;
    }
}
#endif
