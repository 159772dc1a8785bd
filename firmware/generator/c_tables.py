"""Data of the portable kernel (firmware/src/infer.c): C tables in flash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firmware.generator.policy import JsonObject, is_joined, span

WEIGHT_EXCESS = 128  # the kernel reads weight + 128 as unsigned


def tables(part: JsonObject, prefix: str) -> list[str]:
    """The definitions, as policy.h describes them."""
    layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
    scales = (f"{{{f['offset']}, {span(f)}, {f['multiplier']}, {f['shift']}, {f['width']}}}" for f in part["features"])
    return [
        array("struct feature_scale", f"{prefix}_scales", scales),
        _weights(f"{prefix}_layer1_weights", layer1["weights"]),
        _biases(f"{prefix}_layer1_biases", layer1["biases"]),
        _requantisation(f"{prefix}_layer1_requantise", layer1),
        _weights(f"{prefix}_layer2_weights", [layer2["weights"]]),
        _biases(f"{prefix}_layer2_biases", [layer2["biases"]]),
        _requantisation(f"{prefix}_layer2_requantise", layer2),
        _weights(f"{prefix}_layer3_weights", [layer3["weights"]]),
        _biases(f"{prefix}_layer3_biases", [layer3["biases"]]),
    ]


def fields(part: JsonObject, prefix: str) -> dict[str, object]:
    """The descriptor's fields of this kernel."""
    sizes = {"features": len(part["features"]), "joined": int(is_joined(part))}
    names = ["scales", *(f"layer{n}_{kind}" for n in (1, 2) for kind in ("weights", "biases", "requantise"))]
    return sizes | {name: f"{prefix}_{name}" for name in (*names, "layer3_weights", "layer3_biases")}


def array(c_type: str, name: str, values: Iterable[object], *, storage: str = "static ") -> str:
    """A C array in flash."""
    texts = [str(value) for value in values]
    lines = ["    " + ", ".join(texts[i : i + 16]) + "," for i in range(0, len(texts), 16)]
    return f"{storage}const FLASH {c_type} {name}[{len(texts)}] = {{\n" + "\n".join(lines) + "\n};"


def _weights(name: str, matrices: Iterable[Sequence[Sequence[int]]]) -> str:
    """The rows of each matrix two by two, their weights in turn; a row of zeros makes an odd number even."""
    table: list[int] = []
    for rows in matrices:
        evened = [*rows, [0] * len(rows[0])] if len(rows) % 2 else rows
        for first, second in zip(evened[::2], evened[1::2], strict=True):
            table += (weight + WEIGHT_EXCESS for pair in zip(first, second, strict=True) for weight in pair)
    return array("uint8_t", name, table)


def _biases(name: str, vectors: Iterable[Sequence[int]]) -> str:
    return array("int24", name, (bias for biases in vectors for bias in (*biases, *[0] * (len(biases) % 2))))


def _requantisation(name: str, layer: JsonObject) -> str:
    pairs = zip(layer["multipliers"], layer["shifts"], strict=True)
    return array("struct requantisation", name, (f"{{{multiplier}, {shift}}}" for multiplier, shift in pairs))
