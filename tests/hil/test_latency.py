"""Latency figures by nearest rank, against counting by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.loop.latency import LatencyStats, nearest_rank


def test_one_to_a_hundred() -> None:
    assert LatencyStats.of(list(range(100, 0, -1))) == LatencyStats(100, 50, 99, 100)


def test_a_single_value_is_every_figure() -> None:
    assert LatencyStats.of([7.5]).as_dict() == {"count": 1, "p50": 7.5, "p99": 7.5, "max": 7.5}


def test_one_slow_decision_in_180_shows_in_p99_only_when_there_are_two() -> None:
    assert LatencyStats.of([1.0] * 179 + [9.0]).p99 == 1.0
    assert LatencyStats.of([1.0] * 178 + [9.0, 9.0]).p99 == 9.0


def test_no_values_have_no_figures() -> None:
    with pytest.raises(ValueError, match="no values"):
        LatencyStats.of([])


@pytest.mark.parametrize("percent", [0, -1, 100.5])
def test_percentiles_outside_their_range(percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        nearest_rank([1.0], percent)


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(1, 100))
def test_nearest_rank_is_the_smallest_value_that_covers_enough(values: list[int], percent: int) -> None:
    found = nearest_rank(values, percent)
    covered = [value for value in sorted(values) if 100 * sum(v <= value for v in values) >= percent * len(values)]
    assert found == covered[0]
