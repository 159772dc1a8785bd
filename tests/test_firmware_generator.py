"""The generator's proofs: partial sums that fit whatever the inputs, and the flash CRC."""

import importlib.util
import itertools
import random
import sys
from types import ModuleType

import pytest
from fastcrc import crc16
from hypothesis import given
from hypothesis import strategies as st

from hil.build import project_root

sys.path.insert(0, str(project_root() / "firmware"))
from generator.grouping import CAPACITY, Row, Term, group, prove
from generator.stream import ROWS_MAX, block_sizes

weights = st.lists(st.integers(-127, 127).filter(bool), max_size=64)


@given(weights, st.booleans())
def test_every_term_is_summed_once_and_no_partial_sum_can_overflow(row: list[int], some_in_ram: bool) -> None:
    terms = [Term(w, f"ram+{n}" if some_in_ram and n % 3 == 0 else n) for n, w in enumerate(row)]
    grouped = group(terms)
    summed = [*grouped.lead, *itertools.chain(*grouped.partial), *grouped.single]
    assert sorted(map(str, summed)) == sorted(map(str, terms))
    assert all(term.weight > 0 for term in grouped.lead)
    for part in (grouped.lead, *grouped.partial):
        assert sum(abs(term.weight) for term in part) <= CAPACITY
        assert 255 * sum(abs(term.weight) for term in part) <= 65535
    for part in grouped.partial:
        assert len({term.weight > 0 for term in part}) == 1 and not any(isinstance(term.source, str) for term in part)


def test_a_partial_sum_that_could_overflow_is_refused() -> None:
    terms = [Term(127, 3), Term(127, 4), Term(4, 5)]
    with pytest.raises(AssertionError):
        prove(Row(terms, [], []))
    with pytest.raises(AssertionError):
        prove(Row([], [[Term(5, 3), Term(-5, 4)]], []))


@given(st.integers(1, 255))
def test_blocks_are_few_and_of_few_sizes(rows: int) -> None:
    sizes = block_sizes(rows)
    assert sum(sizes) == rows and set(sizes[:-1]) <= {ROWS_MAX} and 1 <= sizes[-1] <= ROWS_MAX
    assert len(sizes) == -(-rows // ROWS_MAX)


def flash_crc() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flash_crc", project_root() / "firmware" / "flash_crc.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_bytes_make_the_crc_zero_wherever_they_are() -> None:
    module, rng = flash_crc(), random.Random(1)
    for _ in range(20):
        image = bytearray(rng.randbytes(rng.randrange(2, 400)))
        at = rng.randrange(len(image) - 1)
        image[at : at + 2] = module.solution(bytes(image), at)
        assert crc16.mcrf4xx(bytes(image)) == 0
