"""Inputs that show whatever is wrong with a chip's policy, whether or not any traffic leads there.

They are made from the policy by coverage. Of a pool of inputs, drawn and bred, those are taken that between them show

* every weight: one more and one less both change a logit (a flipped bit changes it by more, one way or the other);
* every border of every input's scaling: the greatest value that isn't clipped and the one beyond it, the least one and the one
  below it, and the ends of int16. Shown means that a logit changes with the scaled value that is there if a clip is missing,
  wraps around or is one off;
* every hidden unit at its largest, and with as few others as possible.

Each but the last by several inputs, where there are as many.

What no input of the pool shows is left out: most of it nothing can show, such as a weight of a unit that is always silent.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from model.policy.file import INPUT_MAX, INT16_MAX, IntersectionPolicy
from model.policy.integer import quantise_inputs, requantise

POOL = 2016  # inputs that are drawn
GENERATIONS, PARENTS = 30, 5  # of inputs that are bred, for each hidden unit, to wake it
TIMES = 4  # that each item is shown, by as many inputs
AIMED = 64  # at each weight that no other shows
CHUNK = 96  # of them at a time, for the memory's sake
BORDER_CHANCE, VALUE_CHANCE = 0.12, 0.3  # of each number: at a border, or within its range; else at its least
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Sweep(NamedTuple):
    """``inputs`` int64[n, inputs] of int16 values; ``shown`` of ``total`` items of the coverage."""

    inputs: Int64
    shown: int
    total: int


def sweep_of(part: IntersectionPolicy) -> Sweep:
    """The inputs for one intersection's network. The same network, the same inputs; lights that share one share the work."""
    return _sweep(part.model_copy(update={"id": "", "float_weights": None}).model_dump_json())


@cache
def _sweep(network: str) -> Sweep:
    coverage = _Coverage(IntersectionPolicy.model_validate_json(network))
    rng = np.random.default_rng(0)
    drawn = [coverage.draw(rng, CHUNK) for _ in range(POOL // CHUNK)]
    drawn += coverage.climbed(rng, np.concatenate([each.x for each in drawn]))
    pool, shown = np.concatenate([each.x for each in drawn]), np.concatenate([coverage.shown(each) for each in drawn])
    aimed = coverage.aimed(rng, pool, np.flatnonzero(~shown.any(axis=0)))
    pool, shown = np.concatenate([pool, aimed.x]), np.concatenate([shown, coverage.shown(aimed)])
    extremes = coverage.unit_extremes(pool)
    chosen = pool[[*extremes, *_cover(shown, extremes)] or [0]]  # nothing shows anything in a network that is always the same
    _, first = np.unique(chosen, axis=0, return_index=True)
    return Sweep(chosen[np.sort(first)], int(shown.any(axis=0).sum()), shown.shape[1])


def _cover(shown: Bools, taken: list[int]) -> list[int]:
    """Rows that, beside those that are taken already, show every item `TIMES` times, or as often as the rows do (greedy)."""
    matrix, rows = shown[:, shown.any(axis=0)].astype(np.float32), []
    left = np.minimum(matrix.sum(axis=0), TIMES) - matrix[taken].sum(axis=0)
    matrix[taken] = 0
    while (left > 0).any():
        row = int((matrix @ (left > 0).astype(np.float32)).argmax())
        rows.append(row)
        left -= matrix[row]
        matrix[row] = 0
    return rows


class _Drawn(NamedTuple):
    """x int64[n, inputs]; ``wrong`` int64[n, inputs]: the scaled value in a chip that has that border wrong, -1 elsewhere;
    ``border`` int64[n, inputs]: number of the border, -1 for none."""

    x: Int64
    wrong: Int64
    border: Int64


class _Coverage:
    """Draws inputs for a network, and tells what each of them shows."""

    def __init__(self, part: IntersectionPolicy) -> None:
        widths = [feature.width for feature in part.features]
        self._offset, self._multiplier, self._shift = (
            np.repeat(np.array([getattr(feature, name) for feature in part.features], np.int64), widths)
            for name in ("offset", "multiplier", "shift")
        )
        self._slices = [branch.columns for branch in part.branches]
        self._w1 = [np.array(branch.weights, np.int64) for branch in part.branches]
        self._b1 = [np.array(branch.biases, np.int64) for branch in part.branches]
        self._m1, self._sh1 = (np.array(each, np.int64) for each in (part.layer1.multipliers, part.layer1.shifts))
        self._w2, self._b2 = np.array(part.layer2.weights, np.int64), np.array(part.layer2.biases, np.int64)
        self._m2, self._sh2 = (np.array(each, np.int64) for each in (part.layer2.multipliers, part.layer2.shifts))
        self._w3, self._b3 = np.array(part.layer3.weights, np.int64), np.array(part.layer3.biases, np.int64)
        self._seen2 = (self._w3 != 0).any(axis=0)  # units of layer 2 that any logit looks at
        covered = np.array([feature.covered for feature in part.features], np.int64)
        least, greatest = (np.repeat(column, widths) for column in covered.T)
        beyond = np.minimum(greatest + 1, INT16_MAX)
        below = np.maximum(least - 1, -INT16_MAX - 1)
        tops, ends16 = np.full_like(least, INT16_MAX), np.full_like(least, -INT16_MAX - 1)
        self._borders = np.stack([greatest, beyond, least + 1, below, tops, ends16])  # [borders, inputs]
        self._span = greatest - least

    def draw(self, rng: np.random.Generator, n: int) -> _Drawn:
        """n inputs: most numbers at their least, some within their range, some at a border."""
        inputs = self._offset.size
        # A few numbers at a time in some rows, many in others: so units are neither all silent nor all at their limit.
        density = rng.uniform(0.2, 3.0, (n, 1)) ** 2
        kind = rng.random((n, inputs))
        within = self._offset + (rng.random((n, inputs)) * (self._span + 1)).astype(np.int64)
        border = rng.integers(len(self._borders), size=(n, inputs))
        border[kind >= BORDER_CHANCE * density] = -1
        x = np.where(kind < (BORDER_CHANCE + VALUE_CHANCE) * density, within, self._offset)
        x = np.where(border >= 0, np.take_along_axis(self._borders, border.clip(0), axis=0), x)
        return _Drawn(x, np.where(border >= 0, self._wrong(x, border), -1), border)

    def climbed(self, rng: np.random.Generator, x: Int64) -> list[_Drawn]:
        """Inputs that wake each branch of layer 1's units and each unit of layer 2 more and more, and last such with other
        numbers in some places."""
        best = np.argpartition(-self._wishes(x), PARENTS, axis=0)[:PARENTS].T  # [units, PARENTS]
        parents, units = x[best], np.arange(len(best))[:, None]
        for _ in range(GENERATIONS):
            children = self.redraw(rng, parents.reshape(-1, x.shape[1])).x.reshape(len(best), -1, x.shape[1])
            both = np.concatenate([parents, children], axis=1)
            wishes = self._wishes(both.reshape(-1, x.shape[1])).reshape(*both.shape[:2], -1)
            own = np.take_along_axis(wishes, units[:, None], axis=2)[:, :, 0]
            parents = both[units, np.argsort(-own, axis=1, kind="stable")[:, :PARENTS]]
        rows = parents.reshape(-1, x.shape[1])
        kept = np.full(rows.shape, -1)
        return [_Drawn(rows, kept, kept), self.redraw(rng, rows)]

    def aimed(self, rng: np.random.Generator, x: Int64, unshown: Int64) -> _Drawn:
        """For each weight of layer 1 that no input shows yet: inputs that wake its branch, with its number drawn large."""
        wishes, width = self._wishes(x), len(self._w1[0])
        rows = [x[:1]]
        weights = self._offset.size * width
        for item in unshown[unshown < 2 * weights].tolist():
            number, unit = divmod(item % weights, width)
            branch = next(k for k, columns in enumerate(self._slices) if number < columns.stop)
            awake = np.flatnonzero(wishes[:, branch * width + unit] > 0)
            chosen = x[rng.choice(awake, AIMED)] if awake.size else x[:0]
            large = 1 - rng.random(len(chosen)) ** 3
            chosen[:, number] = self._offset[number] + (large * self._span[number]).round().astype(np.int64)
            rows.append(chosen)
        found = np.concatenate(rows)
        return _Drawn(found, np.full(found.shape, -1), np.full(found.shape, -1))

    def _wishes(self, x: Int64) -> Int64:
        """[n, units]: the sums before the ReLU, of layer 1's branches and of layer 2."""
        _, branches, _, _, sums2, *_ = self._forward(x)
        return np.concatenate([branches.reshape(len(x), -1), sums2], axis=1)

    def redraw(self, rng: np.random.Generator, parents: Int64) -> _Drawn:
        """Each with other numbers in some places."""
        fresh = self.draw(rng, len(parents))
        kept = rng.random(parents.shape) < rng.choice((0.7, 0.9, 0.97), (len(parents), 1))
        x = np.where(kept, parents, fresh.x)
        return _Drawn(x, np.where(kept, -1, fresh.wrong), np.where(kept, -1, fresh.border))

    def _wrong(self, x: Int64, border: Int64) -> Int64:
        """The scaled value of a chip without that border's clip, whose bytes wrap around. At the greatest value: with a clip
        that comes one too early; above the least: with a start one too late."""
        raw = ((x - self._offset) * self._multiplier + ((1 << self._shift) >> 1)) >> self._shift
        right = quantise_inputs(x, self._offset, self._multiplier, self._shift)
        late = quantise_inputs(x - 1, self._offset, self._multiplier, self._shift)
        return np.select([border == 0, border == 2], [right - 1, late], raw & INPUT_MAX).clip(0)

    def shown(self, drawn: _Drawn) -> Bools:
        """bool[n, items]: the weights of layers 1, 2 and 3, then the borders of each input."""
        q, _, sums1, h1, sums2, h2, logits = self._forward(drawn.x)
        parts = [self._layer1_weights(q, sums1, h1, sums2, h2, change) for change in (1, -1)]
        parts += [self._layer2_weights(h1, sums2, h2, change) for change in (1, -1)]
        return np.concatenate([*parts, self._layer3_weights(h2), self._border_items(drawn, q, logits)], axis=1)

    def unit_extremes(self, x: Int64) -> list[int]:
        """For every hidden unit that any row wakes: the row where it is largest, and the one with the fewest others awake."""
        _, _, _, h1, _, h2, _ = self._forward(x)
        rows = []
        for h in (h1, h2):
            awake = h > 0
            for unit in np.flatnonzero(awake.any(axis=0)):
                rows.append(int(h[:, unit].argmax()))
                rows.append(int(np.where(awake[:, unit], awake.sum(axis=1), h.shape[1] + 1).argmin()))
        return list(dict.fromkeys(rows))

    def _forward(self, x: Int64) -> tuple[Int64, ...]:
        q = quantise_inputs(x, self._offset, self._multiplier, self._shift)
        return q, *self._after_scaling(q)

    def _after_scaling(self, q: Int64) -> tuple[Int64, ...]:
        """Branches' sums before the ReLU [n, F, H1], s [n, H1], h1, layer 2's sums [n, H2], h2, logits [n, A]."""
        branches = np.stack([q[:, s] @ w.T + b for s, w, b in zip(self._slices, self._w1, self._b1, strict=True)], axis=1)
        sums1 = np.maximum(branches, 0).sum(axis=1)
        h1 = requantise(sums1, self._m1, self._sh1)
        sums2 = h1 @ self._w2.T + self._b2
        h2 = requantise(np.maximum(sums2, 0), self._m2, self._sh2)
        return branches, sums1, h1, sums2, h2, h2 @ self._w3.T + self._b3

    def _layer1_weights(self, q: Int64, sums1: Int64, h1: Int64, sums2: Int64, h2: Int64, more: int) -> Bools:
        """A weight larger by `more`: [n, inputs * H1]."""
        n, found = len(q), []
        for columns, w, b in zip(self._slices, self._w1, self._b1, strict=True):
            branch = (q[:, columns] @ w.T + b)[:, None, :]  # [n, 1, H1]
            step = more * q[:, columns, None]  # [n, width, 1]
            sums = sums1[:, None, :] - np.maximum(branch, 0) + np.maximum(branch + step, 0)
            change = requantise(sums, self._m1, self._sh1) - h1[:, None, :]
            visible = np.zeros(change.shape, np.bool_)
            row, column, unit = np.nonzero(change)
            moved = sums2[row] + self._w2[:, unit].T * change[row, column, unit, None]
            after = requantise(np.maximum(moved, 0), self._m2, self._sh2)
            visible[row, column, unit] = ((after != h2[row]) & self._seen2).any(axis=1)
            found.append(visible.reshape(n, -1))
        return np.concatenate(found, axis=1)

    def _layer2_weights(self, h1: Int64, sums2: Int64, h2: Int64, more: int) -> Bools:
        step = more * h1[:, None, :]  # [n, 1, H1]
        sums = np.maximum(sums2[:, :, None] + step, 0).transpose(0, 2, 1)
        changed = (requantise(sums, self._m2, self._sh2) != h2[:, None, :]) & self._seen2
        return changed.reshape(len(h1), -1)

    def _layer3_weights(self, h2: Int64) -> Bools:
        return np.repeat(h2 > 0, len(self._w3), axis=1)

    def _border_items(self, drawn: _Drawn, q: Int64, logits: Int64) -> Bools:
        """[n, borders * inputs]: whether the wrong value in that place changes a logit."""
        visible = np.zeros((len(q), *self._borders.shape), np.bool_)
        row, column = np.nonzero((drawn.wrong >= 0) & (drawn.wrong != q))
        changed = q[row]
        changed[np.arange(len(row)), column] = drawn.wrong[row, column]
        visible[row, drawn.border[row, column], column] = (self._after_scaling(changed)[-1] != logits[row]).any(axis=1)
        return visible.reshape(len(q), -1)
