"""MT19937, 32-bit outputs, with its state in the engine's tables (docs/cityflow-semantics.md, section 3)."""

from __future__ import annotations

from streetflow.kernels.jit import helper
from streetflow.kernels.tables import PENDING, PRIORITY_BUCKETS, RNG_POSITION, RNG_WORDS, State

_SHIFT = 397
_MATRIX = 0x9908B0DF
_UPPER = 0x80000000
_LOWER = 0x7FFFFFFF
_MASK = 0xFFFFFFFF


@helper
def _to_signed(word: int) -> int:
    return word - (1 << 32) if word >= (1 << 31) else word


@helper
def _refill(s: State) -> None:
    for i in range(RNG_WORDS):
        following = int(s.rng[(i + 1) % RNG_WORDS]) & _LOWER
        y = (int(s.rng[i]) & _UPPER) | following
        word = (int(s.rng[(i + _SHIFT) % RNG_WORDS]) & _MASK) ^ (y >> 1)
        if y & 1:
            word ^= _MATRIX
        s.rng[i] = _to_signed(word)
    s.counters[RNG_POSITION] = 0


@helper
def draw(s: State) -> int:
    """The next output, 0 .. 2**32 - 1."""
    if s.counters[RNG_POSITION] >= RNG_WORDS:
        _refill(s)
    y = int(s.rng[s.counters[RNG_POSITION]]) & _MASK
    s.counters[RNG_POSITION] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


@helper
def draw_priority(s: State) -> int:
    """A random signed 32-bit priority that no present vehicle has."""
    while True:
        priority = _to_signed(draw(s))
        taken = False
        if s.priority_uses[priority & (PRIORITY_BUCKETS - 1)] > 0:
            for v in range(s.status.size):
                if s.status[v] >= PENDING and s.priority[v] == priority:
                    taken = True
        if not taken:
            break
    s.priority_uses[priority & (PRIORITY_BUCKETS - 1)] += 1
    return priority
