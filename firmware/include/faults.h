/* Faults on demand, for tests that must see a verdict fail. Without these flags none of this is compiled.
 *
 * -DTL_SLOWDOWN_CYCLES=N  each decision takes N more clock cycles (on the host: N / 16 microseconds)
 * -DTL_FLIP_WEIGHT=K      one flipped bit in flash: weight K of the first intersection's layer 3 is 64 off (weight K is that
 *                         of action K / hidden2 and hidden unit K % hidden2); done by firmware/generator/generate.py
 * -DTL_GARBAGE_AFTER=N    after N decisions every reply is scrambled (0, or just -DTL_GARBAGE: from the start)
 * -DTL_SILENT_AFTER=N     after N decisions nothing is answered any more (0: from the start)
 * -DTL_HANG_AFTER=N       after N decisions the program hangs, until the watchdog resets the chip
 * -DTL_BALLAST_BYTES=N    N unused bytes of flash (at most 32767, avr-gcc's limit for an object)
 */
#ifndef FAULTS_H
#define FAULTS_H

#if defined(TL_GARBAGE) && !defined(TL_GARBAGE_AFTER)
#define TL_GARBAGE_AFTER 0
#endif

#ifndef __ASSEMBLER__
#include "types.h"

#ifdef TL_SLOWDOWN_CYCLES
void faults_slow_down(void);
#define FAULT_SLOWDOWN() faults_slow_down()
#else
#define FAULT_SLOWDOWN() ((void)0)
#endif

#if defined(TL_GARBAGE_AFTER) || defined(TL_SILENT_AFTER) || defined(TL_HANG_AFTER)
MUST_USE bool faults_swallow_reply(void);
MUST_USE uint8_t faults_scramble(uint8_t byte);
#define FAULT_SWALLOWS_REPLY() faults_swallow_reply()
#define FAULT_SCRAMBLE(byte) faults_scramble(byte)
#else
#define FAULT_SWALLOWS_REPLY() false
#define FAULT_SCRAMBLE(byte) (byte)
#endif
#endif

#endif
