"""Decisions that leave the integers' range (model/policy/integer.py), as the chip counts them and as the loop expects them."""

from collections.abc import Sequence
from typing import NamedTuple

from hil.loop.closed_loop import DecisionRecord
from hil.wire.link import Link, LinkError
from hil.wire.protocol import COUNTER_MAX


class RangeCount(NamedTuple):
    """Decisions in all, those with an input beyond its range, and those with a unit at its limit."""

    decisions: int
    beyond_range: int
    at_limit: int


class ChipRange(NamedTuple):
    """One chip: what it has counted in the run and what it should have; else why it can't be told."""

    counted: RangeCount | None
    expected: RangeCount
    fault: str = ""


def expected_range(records: Sequence[DecisionRecord]) -> RangeCount:
    """The reference's count of these decisions."""
    return RangeCount(len(records), sum(each.beyond_range for each in records), sum(each.at_limit for each in records))


def read_range(link: Link) -> RangeCount | str:
    """The chip's counters so far, or why they can't be had."""
    try:
        stats = link.stats()
    except LinkError as fault:
        return f"the chip's counters couldn't be read: {type(fault).__name__}"
    if stats.beyond_range is None or stats.at_limit is None:
        return "the board's firmware doesn't count this (it does from 2.1 on)"
    return RangeCount(stats.decisions, stats.beyond_range, stats.at_limit)


def chip_range(link: Link, before: RangeCount | str | None, records: Sequence[DecisionRecord]) -> ChipRange:
    """What the chip behind a link has counted since `before`, for the decisions of these records. None: on a bad line, where
    it isn't asked before the run; then it has counted nothing if it has just started.

    Where it has computed fewer or more than were asked for, because it has restarted, an answer got lost or a decision was
    put together twice, the counts can't be compared."""
    expected = expected_range(records)
    after = read_range(link)
    is_unknown = before is None
    before = RangeCount(0, 0, 0) if before is None else before
    for each in (before, after):
        if isinstance(each, str):
            return ChipRange(None, expected, each)
    assert isinstance(before, RangeCount) and isinstance(after, RangeCount)
    computed = after.decisions - before.decisions
    disturbed = link.counters.sessions_lost or link.counters.in_parts or not all(each.answered for each in records)
    if computed != expected.decisions and (disturbed or is_unknown):
        return ChipRange(None, expected, f"the chip has computed {computed} decisions, the run had {expected.decisions}")
    if COUNTER_MAX in after[1:]:
        return ChipRange(None, expected, f"the chip's counter is full: {COUNTER_MAX}")
    return ChipRange(RangeCount(*(now - then for now, then in zip(after, before, strict=True))), expected)
