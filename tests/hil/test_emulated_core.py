"""The emulated chip's own interpreter, against simavr's: the same registers, flags, memory and cycles after every stretch."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from hil.boards.simavr import PART
from hil.boards.simavr_library import simavr_library

pytestmark = pytest.mark.hil
INSTRUCTIONS = 400
SREG, SPL, SPH = 0x3F, 0x3D, 0x3E  # as `in` and `out` have them
SAVED_FLAGS = 0x8F0  # of SRAM
X, Y, Z = 26, 28, 30


def two_registers(op: int, d: int, r: int) -> int:
    return op << 10 | (r & 16) << 5 | d << 4 | r & 15


def with_constant(op: int, d: int, k: int) -> int:
    return op << 12 | (k & 0xF0) << 4 | (d - 16) << 4 | k & 15


def ldi(d: int, k: int) -> list[int]:
    return [with_constant(0xE, d, k)]


def out(place: int, r: int) -> list[int]:
    return [0xB800 | (place & 0x30) << 5 | r << 4 | place & 15]


def point(pair: int, address: int) -> list[int]:
    """Loads X, Y or Z."""
    return [*ldi(pair, address & 255), *ldi(pair + 1, address >> 8)]


def access(rng: random.Random) -> list[int]:
    """A load or store at a pointer that is set first, now and then to an I/O register or beyond the memory's end."""
    pair = rng.choice((X, Y, Z))
    address = rng.choice((rng.randrange(0x110, 0x8E0), rng.randrange(0x110, 0x8E0), 0x2A, 0x100, 0x8FF))
    d, stores = rng.randrange(26), rng.randrange(2) << 9
    kinds = {X: (0xC, 0xD, 0xE), Y: (0x9, 0xA), Z: (0x1, 0x2)}[pair]
    if pair != X and rng.random() < 0.5:
        q = rng.randrange(min(64, 0x900 - address))
        return [*point(pair, address), 0x8000 | stores | (q & 0x20) << 8 | (q & 0x18) << 7 | d << 4 | (pair == Y) << 3 | q & 7]
    return [*point(pair, address), 0x9000 | stores | d << 4 | rng.choice(kinds)]


def simple(rng: random.Random) -> list[int]:
    """One instruction on registers and flags, now and then with the flags kept in memory."""
    d, r, high, k = rng.randrange(32), rng.randrange(32), rng.randrange(16, 32), rng.randrange(256)
    kinds: list[Callable[[], list[int]]] = [
        lambda: [two_registers(rng.choice((1, 2, 3, 5, 6, 7, 8, 9, 10, 11)), d, r)],
        lambda: [with_constant(rng.choice((3, 4, 5, 6, 7, 14)), high, k)],
        lambda: [0x9400 | d << 4 | rng.choice((0, 1, 2, 3, 5, 6, 7, 10))],
        lambda: [rng.choice((0x9600, 0x9700)) | (k & 0x30) << 2 | rng.randrange(4) << 4 | k & 15],
        lambda: [0x9C00 | (r & 16) << 5 | d << 4 | r & 15],
        lambda: [0x0200 | k],
        lambda: [0x0300 | k],  # mulsu, fmul and its kin
        lambda: [0x0100 | k],
        lambda: [0x9408 | rng.randrange(7) << 4 | rng.randrange(2) << 7],
        lambda: [rng.choice((0xF800, 0xFA00)) | d << 4 | r & 7],
        lambda: [0xB60F | d << 4 & 0x1F0 | 0, 0x9200 | d << 4, SAVED_FLAGS],  # in d, SREG; sts
        lambda: [0x9000 | d << 4 | rng.randrange(2) << 9, rng.randrange(0x100, 0x8F0)],
        lambda: [0x920F | d << 4, 0x900F | r << 4],  # push, pop
        lambda: [*point(Z, rng.randrange(0x700)), 0x9004 | (d % 30) << 4 | rng.randrange(2)],
        lambda: [0x9A00 | rng.randrange(2) << 9 | 0x15 << 3 & 0xF8 | k & 7],  # sbi, sbic: left to simavr
    ]
    return rng.choice(kinds)()


def is_skipped_too_far(word: int) -> bool:
    """By simavr, which takes some ADIW and SBIW for instructions of two words."""
    return word >> 9 == 0x9600 >> 9 and word & 0xFC0F in (0x940C, 0x940E)


def jump(rng: random.Random, place: int) -> list[int]:
    """A skip, a branch, a call that comes back, or a jump, over a long or a short instruction; `place`: its word."""
    d, r, bit = rng.randrange(32), rng.randrange(32), rng.randrange(8)
    over = simple(rng)
    while len(over) > 2 or (len(over) == 2 and (over[0] & 0xFC0F) != 0x9000) or is_skipped_too_far(over[0]):
        over = simple(rng)
    after = place + 1 + len(over)
    kinds: list[list[int]] = [
        [two_registers(4, d, r), *over],
        [0xFC00 | rng.randrange(2) << 9 | d << 4 | bit, *over],
        [0xF000 | rng.randrange(2) << 10 | len(over) << 3 | rng.randrange(7), *over],
        [0xC000 | len(over), *over],
        [0x940C, after + 1, *over],
        [0xD001, 0xC001, 0x9508],  # rcall over an rjmp to a ret, which comes back to the rjmp
        [0x940E, place + 3, 0xC001, 0x9508],
        [*point(Z, place + 3 + len(over)), 0x9409, *over],
        [*point(Z, place + 4), 0x9509, 0xC001, 0x9508],
    ]
    return rng.choice(kinds)


def program(seed: int) -> bytes:
    rng = random.Random(seed)
    words = [*ldi(16, 0xFF), *out(SPL, 16), *ldi(16, 0x08), *out(SPH, 16)]
    for d in range(32):
        words += [*ldi(16 + d % 16, rng.randrange(256)), *([two_registers(11, d, 16 + d % 16)] if d < 16 else [])]
    while len(words) < INSTRUCTIONS:
        words += rng.choice((simple, simple, access))(rng) if rng.random() < 0.8 else jump(rng, len(words))
    return b"".join(word.to_bytes(2, "little") for word in [*words, 0xCFFF])


def stretches(code: bytes, *, by_simavr: bool) -> list[tuple[int, int, bytes]]:
    """Cycle, program counter and memory after each of many short runs."""
    ffi, library = simavr_library()
    sim = library.tl_create(PART.encode(), 16_000_000, 115_200)
    if by_simavr:
        library.tl_run_by_simavr(sim)
    assert library.tl_load(sim, code, len(code), 0) == 0
    library.tl_reset(sim, library.TL_POWER_ON)
    status, size, buffer, found = ffi.new("tl_status *"), ffi.new("uint32_t *"), ffi.new("uint8_t[]", 16), []
    for stretch in range(1, 60):
        library.tl_read(sim, stretch * 23, buffer, 16)
        library.tl_get_status(sim, status)
        memory = library.tl_data_memory(sim, size)
        found.append((status.cycle, status.pc, bytes(ffi.buffer(memory, size[0]))))
    library.tl_destroy(sim)
    return found


@pytest.mark.parametrize("first", range(0, 120, 60))
def test_random_programs_go_as_in_simavr(first: int) -> None:
    ends = set()
    for seed in range(first, first + 60):
        code = program(seed)
        own, simavr = stretches(code, by_simavr=False), stretches(code, by_simavr=True)
        for stretch, (a, b) in enumerate(zip(own, simavr, strict=True)):
            assert a[:2] == b[:2], (seed, stretch)
            differs = np.flatnonzero(np.frombuffer(a[2], np.uint8) != np.frombuffer(b[2], np.uint8))
            assert not differs.size, (seed, stretch, hex(a[1]), differs[:5])
        ends.add(own[-1][1] == len(code) - 2)
    assert True in ends, "some programs come to their end"


def test_a_skip_leads_over_one_word_where_simavr_takes_it_for_two() -> None:
    adiw = 0x964C  # adiw r24, 0x1C
    assert is_skipped_too_far(adiw)
    code = b"".join(word.to_bytes(2, "little") for word in [*ldi(16, 0), 0xFD00, adiw, *ldi(17, 5), 0xCFFF])  # sbrc r16, 0
    own, simavr = stretches(code, by_simavr=False)[-1], stretches(code, by_simavr=True)[-1]
    assert own[2][17] == 5
    assert simavr[2][17] == 0
