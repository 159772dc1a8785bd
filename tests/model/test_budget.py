"""Budgets of a sub-graph: parameters, and cycles and flash as predicted by the fitted model of the chip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hil.loop.fit_chip_model import Shape, drawn_shapes, least_squares, measured
from hil.loop.job import Job, run_job
from model import pretrained_policy
from model.policy.file import load_policy
from model.search.budget import Budget, parameter_count
from model.search.chip_model import chip_model, terms


def test_parameters_are_counted_as_in_the_papers_appendix() -> None:
    assert parameter_count([12, 10], 18, 20, 9) == 13 * 18 + 11 * 18 + 19 * 20 + 21 * 9 == 1001
    assert Budget(1001).allows([12, 10], 18, 20, 9) and not Budget(1000).allows([12, 10], 18, 20, 9)
    allowed = Budget(1001).allows([12, 9], np.array([[16], [24]]), np.array([16, 24]), 9)
    assert allowed.tolist() == [[True, True], [False, False]]  # 793, 1001; 1105, 1369


def test_cycles_and_flash_bind_beside_parameters() -> None:
    chip, row = chip_model(), terms([12, 9], 18, 20, 9)
    cycles = row @ chip.cycles * (1 + chip.largest_error_cycles)
    flash_bytes = row @ chip.flash_bytes * (1 + chip.largest_error_flash_bytes)
    assert Budget(max_cycles=int(cycles) + 1, max_flash_bytes=int(flash_bytes) + 1).allows([12, 9], 18, 20, 9)
    assert not Budget(max_cycles=int(cycles) - 1).allows([12, 9], 18, 20, 9)
    assert not Budget(max_flash_bytes=int(flash_bytes) - 1).allows([12, 9], 18, 20, 9)
    assert Budget(max_inputs=22).allows([12, 10], 18, 20, 9) and not Budget(max_inputs=21).allows([12, 10], 18, 20, 9)
    assert not Budget(max_inputs=98).is_free
    assert Budget().is_free and not Budget(max_cycles=10**6).is_free


def test_least_squares_finds_what_made_the_values_and_nothing_negative() -> None:
    rng = np.random.default_rng(0)
    matrix, truth = rng.uniform(0, 1, (40, 4)), np.array([3.0, 0.0, 0.5, 70.0])
    np.testing.assert_allclose(least_squares(matrix, matrix @ truth), truth, atol=1e-6)
    assert least_squares(matrix, matrix @ np.array([3.0, -1.0, 0.5, 70.0])).min() == 0.0


@pytest.mark.parametrize("network", ["crossing", "arterial"])
def test_a_trained_policy_is_within_the_models_prediction(network: str) -> None:
    """Whatever traffic feeds it: a budget of cycles and bytes is kept."""
    chip = chip_model()
    file = pretrained_policy(network)
    verdict = run_job(Job.named(network, 0, file, kernel="table"))
    for part in load_policy(file).intersections:
        row = terms([feature.width for feature in part.features], *part.hidden, len(part.phases))
        most_cycles = max(record.compute_cycles for record in verdict.records if record.intersection == part.id)
        limit = row @ chip.cycles * (1.0 + chip.largest_error_cycles)
        assert 0.7 * limit < most_cycles <= limit


def test_the_model_predicts_firmware_that_it_was_not_fitted_to(tmp_path: Path) -> None:
    """Within twice the error of the fit, on new dimensions: else the kernel has changed, and the model must be fitted anew."""
    chip = chip_model()
    new = [Shape((12, 8), 16, 18, 8), *drawn_shapes(2, seed=7)]
    for shape in new:
        cycles, flash_bytes = measured(shape, tmp_path)
        row = terms(shape.widths, shape.layer2, shape.layer3, shape.n_actions)
        assert row @ chip.cycles == pytest.approx(cycles, rel=2 * chip.largest_error_cycles)
        assert row @ chip.flash_bytes == pytest.approx(flash_bytes, rel=2 * chip.largest_error_flash_bytes)
