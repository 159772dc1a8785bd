"""Intervals by the bootstrap: known cases, coverage, and the same figures every time."""

from __future__ import annotations

import numpy as np
import pytest

from model.report.bootstrap import Interval, mean_interval, ratio_interval, student_t


def test_one_run_or_equal_runs_have_no_width() -> None:
    assert mean_interval([3.5]) == Interval(3.5, 3.5, 3.5)
    assert mean_interval([0.1] * 7) == pytest.approx((0.1, 0.1, 0.1), abs=1e-12)
    assert mean_interval([0.0] * 10) == Interval(0.0, 0.0, 0.0) and not mean_interval([0.0] * 10).excludes_zero
    with pytest.raises(ValueError, match="no runs"):
        mean_interval([])


def test_two_runs_bound_their_mean_by_themselves() -> None:
    """Student's interval of two runs is wider than the runs lie apart, and the bootstrap can't go further than they do."""
    assert mean_interval([1.0, 5.0]) == Interval(3.0, 1.0, 5.0)


def test_an_interval_lies_around_its_mean_and_follows_scale_and_shift() -> None:
    values = np.random.default_rng(4).normal(5, 2, 10)
    first, moved = mean_interval(values.tolist()), mean_interval((10 - 3 * values).tolist())
    assert first.low < first.mean < first.high and first.mean == pytest.approx(values.mean())
    assert moved == pytest.approx((10 - 3 * first.mean, 10 - 3 * first.high, 10 - 3 * first.low), rel=0.02)
    assert first == mean_interval(values.tolist()), "the same every time"
    assert first.excludes_zero and not mean_interval((values - 5).tolist()).excludes_zero
    assert str(Interval(1.0, -0.5, 2.25)) == "+1.00 (-0.50 to +2.25)"


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (199, 1.972)]
)
def test_students_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert student_t(freedom) == pytest.approx(t, abs=5e-4)


@pytest.mark.parametrize(("runs", "least", "most"), [(5, 0.88, 0.97), (10, 0.925, 0.97), (20, 0.93, 0.975)])
def test_19_in_20_intervals_of_normal_data_hold_the_true_mean(runs: int, least: float, most: float) -> None:
    rng = np.random.default_rng(1)
    intervals = [mean_interval(rng.normal(2, 3, runs).tolist()) for _ in range(600)]
    assert least <= np.mean([each.low <= 2 <= each.high for each in intervals]) <= most


def test_a_ratio_is_of_pairs_that_belong_together() -> None:
    """Where one is a fixed share of the other, the ratio has no width though both vary; paired differences behave alike."""
    base = [90.0, 100.0, 120.0, 95.0, 140.0]
    assert ratio_interval([0.03 * each for each in base], base) == pytest.approx((0.03, 0.03, 0.03))
    noisy = ratio_interval([1.0, 4.0, 2.0, 3.0, 0.0], base)
    assert noisy.mean == pytest.approx(10 / sum(base)) and 0 < noisy.low < noisy.mean < noisy.high < 4 / 90
