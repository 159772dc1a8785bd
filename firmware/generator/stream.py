"""Data of the kernel `table` (firmware/src/avr/table.S): per network one run of bytes that it reads from front to back.

    features   each: width, offset (2 bytes), span (2), multiplier (2), factor, window; a 0 behind the last
    layers     each: matrices; a stage bit marks the last

A layer's rows are cut into blocks of at most ROWS_MAX, so that their sums fit the registers. A block is one matrix (layer 1:
one per feature): number of rows, stage bits, number of columns, the rows' biases, the weights column by column; after the
block's last matrix, except in layer 3, the rows' scales. A weight w is stored as w + 128; a bias in two bytes as bias + 32768
if all biases of the firmware fit, else unchanged in three bytes.

A shift is stored as a window and a factor: of the product's bytes p, `window` and `window` + 1 hold the result once they are
multiplied by the power of two `factor` (0: there is no shift). `span` is the greatest value (less offset) that isn't clipped;
range.S reads it too, and skips what is behind it. A row's scale is multiplier and factor where the window is 1, as it nearly
always is; else 0, window, multiplier, factor.

Inputs and activations lie in RAM. Before those of each feature and each layer are EXCESS_BYTES bytes: the excess of the sums
over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from firmware.generator.policy import INPUT_MAX, JsonObject, is_joined, n_inputs, span

ROWS_MAX = 6
FROM_EVEN, FROM_ODD, PLAIN, TOTALS, ADD, STORE, LAST, JOINED = (1 << bit for bit in range(8))  # stage bits, as in table.S
WEIGHT_EXCESS = 128
BIAS_EXCESS = {2: 1 << 15, 3: 0}  # by the bytes that a bias has
EXCESS_BYTES = 3
USUAL_WINDOW = 1


def text(parts: Mapping[int, JsonObject]) -> str:
    """The assembly source of all networks' bytes, by the number of the first intersection that each is for."""
    lines = []
    bias_bytes = _bias_bytes(list(parts.values()))
    for number, part in parts.items():
        data = bytes(stream(part, bias_bytes))
        lines.append(f"KERNEL_DATA {number}")
        lines += ["    .byte " + ", ".join(str(value) for value in data[i : i + 24]) for i in range(0, len(data), 24)]
    return "\n".join(lines) + "\n"


def constants(parts: Sequence[JsonObject]) -> dict[str, int]:
    """Sizes of the kernel's buffers, and what it must have code for: which block sizes, a layer 1 of several features, joined
    branches, features without a shift, rows with another window than the usual one."""
    bias_bytes = _bias_bytes(parts)
    rows = {size for part in parts for height in (*part["hidden"], len(part["phases"])) for size in block_sizes(height)}
    return {
        "KERNEL_EVEN_BYTES": max(
            max(n_inputs(part) + EXCESS_BYTES * len(part["features"]), part["hidden"][1] + EXCESS_BYTES) for part in parts
        ),
        "KERNEL_ODD_BYTES": max(part["hidden"][0] + EXCESS_BYTES for part in parts),
        "TABLE_ROWS_MAX": max(rows),
        "TABLE_ROWS_LEAST": min(rows),
        "TABLE_BIAS_BYTES": bias_bytes,
        "TABLE_BIAS_EXCESS": BIAS_EXCESS[bias_bytes] // WEIGHT_EXCESS,  # beside the inputs' sum, which has the same weight
        "TABLE_WITHOUT_SHIFT": int(any(feature["shift"] == 0 for part in parts for feature in part["features"])),
        "TABLE_FEATURES_MAX": max(len(part["features"]) for part in parts),
        "TABLE_JOINED": int(any(map(is_joined, parts))),
        "TABLE_WINDOWS": int(any(_scale(*scale)[1] != USUAL_WINDOW for part in parts for scale in _scales(part))),
    } | {f"TABLE_ROWS_{size}": int(size in rows) for size in range(1, ROWS_MAX + 1)}


def block_sizes(rows: int) -> list[int]:
    """As few blocks as possible, all but the last of full size, so that few sizes need code."""
    full, rest = divmod(rows, ROWS_MAX)
    return [ROWS_MAX] * full + [rest] * (rest > 0)


def stream(part: JsonObject, bias_bytes: int) -> Iterator[int]:
    """All bytes of one intersection."""
    for feature in part["features"]:
        multiplier, shift = feature["multiplier"], feature["shift"]
        window, factor = _window(shift) if shift else (0, 0)
        yield from (*range_bytes(feature), *_bytes(multiplier, 2), factor, window)
    yield 0
    layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
    last = len(part["features"]) - 1
    stages = [_branch_stage(number, last, JOINED if is_joined(part) else TOTALS) for number in range(last + 1)]
    yield from _layer(layer1["weights"], layer1["biases"], stages, layer1, bias_bytes)
    yield from _layer([layer2["weights"]], [layer2["biases"]], [FROM_ODD], layer2, bias_bytes)
    yield from _layer([layer3["weights"]], [layer3["biases"]], [FROM_EVEN | PLAIN | STORE], None, bias_bytes)


def range_bytes(feature: JsonObject) -> tuple[int, ...]:
    """Width, offset and span, as range.S reads them."""
    return feature["width"], *_bytes(feature["offset"], 2), *_bytes(span(feature), 2)


def _branch_stage(number: int, last: int, kind: int) -> int:
    """The sums of all branches but the last are stored; those of all but the first are added to what is there. kind: TOTALS,
    of their ReLUs, or JOINED, of themselves."""
    stage = 0 if last == 0 else kind
    return stage | (0 if number else FROM_EVEN) | (ADD if number else 0) | (STORE if number < last else 0)


def _layer(
    matrices: Sequence[Sequence[Sequence[int]]],
    biases: Sequence[Sequence[int]],
    stages: Sequence[int],
    scales: JsonObject | None,
    bias_bytes: int,
) -> Iterator[int]:
    height = len(biases[0])
    begin = 0
    for size in block_sizes(height):
        rows = slice(begin, begin + size)
        begin += size
        for number, (weights, bias, stage) in enumerate(zip(matrices, biases, stages, strict=True), 1):
            is_last = begin == height and number == len(matrices)
            yield from (size, stage | LAST * is_last, len(weights[0]))
            for value in bias[rows]:
                yield from _bytes(value + BIAS_EXCESS[bias_bytes], bias_bytes)
            for column in zip(*weights[rows], strict=True):
                yield from (weight + WEIGHT_EXCESS for weight in column)
        if scales is not None:
            for scale in zip(scales["multipliers"][rows], scales["shifts"][rows], strict=True):
                multiplier, window, factor = _scale(*scale)
                yield from (multiplier, factor) if window == USUAL_WINDOW else (0, window, multiplier, factor)


def _scales(part: JsonObject) -> Iterator[tuple[int, int]]:
    for layer in (part["layer1"], part["layer2"]):
        yield from zip(layer["multipliers"], layer["shifts"], strict=True)


def _scale(multiplier: int, shift: int) -> tuple[int, int, int]:
    """Multiplier, window and factor: the same scale, with the usual window if possible."""
    while shift <= 8 and multiplier <= INPUT_MAX // 2:
        multiplier, shift = 2 * multiplier, shift + 1
    while shift > 16 and multiplier % 2 == 0:
        multiplier, shift = multiplier // 2, shift - 1
    return multiplier, *_window(shift)


def _window(shift: int) -> tuple[int, int]:
    window = (shift - 1) // 8
    return window, 1 << 8 * (window + 1) - shift


def _bytes(value: int, count: int) -> tuple[int, ...]:
    return tuple((value & (1 << 8 * count) - 1).to_bytes(count, "little"))


def _bias_bytes(parts: Sequence[JsonObject]) -> int:
    """2 where that is enough for every bias of the firmware, else 3."""
    layers = (part[layer]["biases"] for part in parts for layer in ("layer2", "layer3"))
    biases = [bias for row in (*layers, *(row for part in parts for row in part["layer1"]["biases"])) for bias in row]
    return 2 if -BIAS_EXCESS[2] <= min(biases) and max(biases) < BIAS_EXCESS[2] else 3
