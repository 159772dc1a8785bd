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

#ifdef TL_BALLAST_BYTES
#ifdef __AVR__ /* in a section that the linker always keeps: it would run after main, which never ends */
__attribute__((used, section(".fini8")))
#endif
const uint8_t faults_ballast[TL_BALLAST_BYTES] = {1};
#endif

#if defined(TL_GARBAGE_AFTER) || defined(TL_SILENT_AFTER) || defined(TL_HANG_AFTER)
#include "dispatch.h"

#if defined(TL_GARBAGE_AFTER)
#define SOUND_DECISIONS TL_GARBAGE_AFTER
#elif defined(TL_SILENT_AFTER)
#define SOUND_DECISIONS TL_SILENT_AFTER
#else
#define SOUND_DECISIONS TL_HANG_AFTER
#endif

static bool failing;      /* the current reply */
static bool next_changes; /* the next reply fails and the first does not, or vice versa */

/* The first SOUND_DECISIONS are answered as they should be; whole replies fail from then on. */
bool faults_swallow_reply(void) {
    failing = next_changes != (SOUND_DECISIONS == 0);
    next_changes = (dispatch->counters.decisions + 1 > SOUND_DECISIONS) != (SOUND_DECISIONS == 0);
#if defined(TL_HANG_AFTER)
    while (failing) {
    }
#endif
#if defined(TL_SILENT_AFTER)
    return failing;
#else
    return false;
#endif
}

uint8_t faults_scramble(uint8_t byte) {
#if defined(TL_GARBAGE_AFTER)
    return failing ? byte ^ 0xA5 : byte;
#else
    return byte;
#endif
}
#endif
