"""Quantisation-aware refinement: a sub-graph that computes, in float, with the chip's rounding (beyond the paper).

Its weights, inputs and hidden units lie on the grids that `model/quantise/quantise.py` will give them: inputs and hidden units
8 bits over the range that they visit, weights -127..127 a row (or fewer: `Grid`); biases are corrected as there; sums are wide
on the chip and stay exact here. It acts and gives the gradients; these move the exact weights behind it, as if the rounding
were not there (straight-through estimator: Bengio, Leonard, Courville 2013).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from model.policy.file import INPUT_MAX
from model.quantise.quantise import BOUND_ROOM, FULL_GRID, MAX_HIDDEN_SHIFT, NARROW_LIMIT, Grid, Headroom
from model.search.subgraph import SubGraph

SMALLEST_RANGE = 1e-3  # as a share of a layer's greatest: a unit that never fires gets at least this


class RoundedSubGraph(SubGraph):
    """The rounding of `exact`, which it follows. unit float32[G, K]: the value of each kept feature's integer 1."""

    def __init__(self, exact: SubGraph, unit: Tensor, headroom: Headroom | None = None, grid: Grid = FULL_GRID) -> None:
        nn.Module.__init__(self)
        self.register_buffer("missing_action", exact.missing_action)
        self.width = exact.width
        self.w1, self.b1, self.w2, self.b2, self.w3, self.b3 = (
            nn.Parameter(weights.detach().clone(), requires_grad=False) for weights in exact.theta()
        )
        self._exact = (exact,)  # a tuple, so that it isn't taken for a part of this module
        self._unit, self._headroom, self._grid = unit, headroom or Headroom(), grid
        self._exists = (exact.missing_action == 0).to(unit.dtype)  # [G, 1, A]

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Takes the ranges from visited states x float32[G, T, S], and the weights anew."""
        (exact,) = self._exact
        inputs, _, h1, h2 = exact.activations(x)
        by_feature = inputs.reshape(*self._unit.shape, -1)
        self._low = by_feature.amin(dim=2).clamp(max=0.0) * self._headroom.inputs
        span = (by_feature.amax(dim=2) * self._headroom.inputs - self._low).clamp(min=self._unit)
        whole = (INPUT_MAX * self._unit / span).floor()  # a range of up to 255 is scaled by a whole number: no rounding
        self._step = torch.where(whole >= 1, self._unit / whole, span / INPUT_MAX)  # [G, K]: a step of the chip's input
        self._top1, self._top2 = (self._top(h) for h in (h1, h2))  # [G, 1, P]: what the hidden units' ranges cover
        self._corrections = [torch.zeros_like(biases) for biases in (self.b1, self.b2, self.b3)]
        self.follow()
        self._corrections[0] = _mean_sums(self._on_grid(x), exact.w1.flatten(0, 1) - self.w1.flatten(0, 1)).view_as(self.b1)
        self.follow()  # each layer's correction needs the rounded units that come before it
        self._corrections[1] = _mean_sums(h1, exact.w2) - _mean_sums(self.activations(x)[2], self.w2)
        self.follow()
        self._corrections[2] = _mean_sums(h2, exact.w3) - _mean_sums(self.activations(x)[3], self.w3)
        self.follow()

    def _top(self, h: Tensor) -> Tensor:
        top = self._headroom.hidden * h.amax(dim=1, keepdim=True)
        return torch.maximum(top, SMALLEST_RANGE * top.amax(dim=2, keepdim=True)).clamp(min=1e-9)

    @torch.no_grad()
    def follow(self) -> None:
        """Rounds the exact weights as they are now, each row by the greatest of its products with its inputs' steps."""
        (exact,) = self._exact
        for biases, correction, ours in zip(
            (exact.b1, exact.b2, exact.b3), self._corrections, (self.b1, self.b2, self.b3), strict=True
        ):
            ours.copy_(biases + correction)
        from_low = exact.b1 + (exact.w1 * self._low[:, :, None, None]).sum(dim=2, keepdim=True)  # what is added to products
        w1, row1 = self._rounded(exact.w1, self._step[:, :, None, None], from_low, (1, 2))
        self._step1 = _hidden_step(row1[:, 0], self._top1, self._grid)  # [G, 1, P2]
        w2, row2 = self._rounded(exact.w2, self._step1.transpose(1, 2), exact.b2, (1,))
        self._step2 = _hidden_step(row2, self._top2, self._grid)  # [G, 1, P3]
        # only differences between actions matter, so their mean is kept out of the rounding
        mean, mean_bias = (
            (each * self._exists).sum(dim=2, keepdim=True) / self._exists.sum(dim=2, keepdim=True)
            for each in (exact.w3, exact.b3)
        )
        above = (exact.b3 - mean_bias) * self._exists
        w3, _ = self._rounded((exact.w3 - mean) * self._exists, self._step2.transpose(1, 2), above, (1, 2))
        for weights, ours in ((w1, self.w1), (w2, self.w2), ((mean + w3) * self._exists, self.w3)):
            ours.copy_(weights)

    def _rounded(self, weights: Tensor, unit: Tensor, biases: Tensor, over: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """(weights [..., inputs, rows] with products with `unit` that are whole steps, the steps): as small as the greatest
        along `over` allows and, if sums are narrow, all sums over inputs 0..255."""
        products = weights * unit
        step = (products.abs().amax(dim=over, keepdim=True) / self._grid.weight_limit).clamp(min=1e-12)
        if self._grid.narrow_sums:
            high, low = (
                (sign * biases + INPUT_MAX * (sign * products).clamp(min=0).sum(dim=-2, keepdim=True)).clamp(min=0)
                for sign in (1, -1)
            )
            worst = torch.maximum(high, low).amax(dim=over, keepdim=True)
            if len(over) > 1 and products.dim() > 3:  # branches, whose sums are added
                worst = torch.maximum(worst, high.sum(dim=over, keepdim=True) / 2)
            step = torch.maximum(step, BOUND_ROOM * worst / NARROW_LIMIT)
        return (products / step).round() * step / unit, step

    def hand_over(self) -> None:
        """The gradients of the rounded weights become those of the exact ones."""
        (exact,) = self._exact
        for ours, theirs in zip(self.theta(), exact.theta(), strict=True):
            theirs.grad, ours.grad = ours.grad, None

    def activations(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        inputs = self._on_grid(x)
        groups, kept = self._unit.shape
        branches = torch.relu_(torch.baddbmm(self.b1.flatten(0, 1), inputs, self.w1.flatten(0, 1)))
        h1 = _in_steps(branches.view(groups, kept, x.shape[1], -1).sum(dim=1), self._step1)
        return inputs, branches, h1, _in_steps(torch.relu_(torch.baddbmm(self.b2, h1, self.w2)), self._step2)

    def _on_grid(self, x: Tensor) -> Tensor:
        """The chip's inputs of x [G, B, K * W], in the features' units: [G * K, B, W]."""
        groups, kept = self._unit.shape
        values = x.view(groups, x.shape[1], kept, -1).transpose(1, 2)
        low, step = self._low[:, :, None, None], self._step[:, :, None, None]
        return (((values - low) / step).round().clamp(0.0, INPUT_MAX) * step + low).flatten(0, 1)


def _hidden_step(row: Tensor, top: Tensor, grid: Grid) -> Tensor:
    """The value of a hidden unit's integer 1, from the value of 1 in its sum and the range it should cover: a multiplier of
    8 bits and a shift take the one to the other, or a shift alone (`model/quantise/quantise.py`)."""
    factor = (INPUT_MAX * row / top).clamp(2.0**-MAX_HIDDEN_SHIFT, 127.0)
    power = torch.exp2((255.0 / factor).log2().floor().clamp(1, MAX_HIDDEN_SHIFT))
    multiplier = (factor * power).floor().clamp(1, 255)
    if grid.shifts_only:
        multiplier = torch.exp2(multiplier.log2().floor())
    return row * power / multiplier


def _mean_sums(inputs: Tensor, weights: Tensor) -> Tensor:
    """The mean over the states of inputs [G, T, I] times weights [G, I, O]: [G, 1, O]."""
    return torch.bmm(inputs.mean(dim=1, keepdim=True), weights)


def _in_steps(h: Tensor, step: Tensor) -> Tensor:
    """h >= 0 in up to INPUT_MAX steps."""
    stepped: Tensor = _InSteps.apply(h, step)
    return stepped


class _InSteps(torch.autograd.Function):
    """The rounding lets gradients through; the limit doesn't."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, step: Tensor) -> Tensor:
        steps = (h / step).round()
        ctx.save_for_backward(steps <= INPUT_MAX)
        return steps.clamp(max=INPUT_MAX) * step

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (within,) = ctx.saved_tensors
        return gradients[0] * within, None
