"""Parameters and floating-point operations of every model, counted as the paper's Appendix C counts them.

The atoms (its table of structures and operations), for one input at a time:

    Linear(i, o)      (i + 1) o parameters      (2 i + 1) o FLOPs
    Conv2d 1x1        (i + 1) o                 (2 i + 1) o height width
    relu(f)           -                         2 f
    matmul(XxY, YxZ)  -                         2 X Y Z
    softmax(f)        -                         3 f
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model.baselines.widths import COLIGHT_HEADS, COLIGHT_WIDTH, ECOLIGHT_WIDTHS, FRAP_CONV, FRAP_EMBEDDING, FRAP_HIDDEN
from streetflow.control.intersection import Intersection, neighbours

PAPER_FEATURE_EXCESS = 1  # "(10 + 1) x 18" stands in the paper for a 9-wide feature


@dataclass(frozen=True)
class Geometry:
    """The numbers of one intersection that the counts depend on."""

    in_lanes: int
    out_lanes: int
    phases: int
    lane_links: int
    relevant_intersections: int  # N: itself and those next to it


@dataclass(frozen=True)
class TinyLightShape:
    """Widths of the two features and of the two hidden layers."""

    features: tuple[int, ...]
    layer2: int
    layer3: int


@dataclass(frozen=True)
class CostRow:
    description: str
    parameters: int
    flops: int


@dataclass(frozen=True)
class Cost:
    """Counted cost of one model at one intersection. actual_parameters differs where the paper counts what isn't there."""

    model: str
    rows: tuple[CostRow, ...]
    actual_parameters: int
    note: str = ""

    @property
    def parameters(self) -> int:
        return sum(row.parameters for row in self.rows)

    @property
    def flops(self) -> int:
        return sum(row.flops for row in self.rows)


PAPER_GEOMETRY = Geometry(in_lanes=12, out_lanes=12, phases=9, lane_links=36, relevant_intersections=5)
PAPER_SHAPE = TinyLightShape(features=(12, 9), layer2=18, layer3=20)  # the instance that the paper counts


def geometry_of(intersections: Sequence[Intersection], index: int) -> Geometry:
    """Geometry of one intersection of a network; N from the roads that join it to other signalled ones."""
    own = intersections[index]
    return Geometry(
        in_lanes=len(own.in_lanes),
        out_lanes=len(own.out_lanes),
        phases=own.action_count,
        lane_links=len(own.lane_links),
        relevant_intersections=1 + len(neighbours(intersections, index)),
    )


def costs(geometry: Geometry) -> list[Cost]:
    """Every model of the paper at an intersection, in the paper's order. TinyLight's sub-graph is the paper's instance: one
    feature with a value per in-lane and one with a value per phase, hidden layers of 18 and 20."""
    shape = TinyLightShape((geometry.in_lanes, geometry.phases), PAPER_SHAPE.layer2, PAPER_SHAPE.layer3)
    tinylight = printed_tinylight_cost(shape, geometry.phases)
    frap = frap_rows(geometry)
    sums = geometry.in_lanes + geometry.out_lanes
    counted: list[tuple[str, tuple[CostRow, ...], str]] = [
        ("EcoLight", ecolight_rows(), ""),
        ("FixedTime", (), "a timer: the paper counts nothing"),
        ("MaxPressure", (CostRow("sums over lanes, comparisons of phases", 0, sums + geometry.phases),), ""),
        ("SOTL", (CostRow("sums over in-lanes, two thresholds", 2, geometry.in_lanes + 2),), ""),
        (
            "CoLight",
            colight_rows(geometry),
            "the paper counts the values of an attention head once, though each neighbour has its own",
        ),
        ("FRAP", frap, "the paper counts the embeddings of one lane link; each lane link has its own"),
        ("MPLight", frap, "as FRAP"),
    ]
    listed = [Cost(model, rows, sum(row.parameters for row in rows), note) for model, rows, note in counted]
    return [*listed, Cost("TLRP", tinylight.rows, tinylight.actual_parameters, "as TinyLight"), tinylight]


def ecolight_rows() -> tuple[CostRow, ...]:
    first, second, third, out = ECOLIGHT_WIDTHS
    return (
        _dense("layer 1 to layer 2", first, second),
        _dense("layer 2 to layer 3", second, third),
        _linear("layer 3 to output layer", third, out),
    )


def colight_rows(geometry: Geometry) -> tuple[CostRow, ...]:
    d, h, n = COLIGHT_WIDTH, COLIGHT_HEADS, geometry.relevant_intersections
    first = _dense("observation embedding, layer 1 to 2", geometry.in_lanes + geometry.out_lanes + geometry.phases, d)
    second = _dense("observation embedding, layer 2 to 3", d, d)
    head = _dense("", d, d)
    return (
        first,
        second,
        CostRow("the same for the neighbours", 0, (first.flops + second.flops) * (n - 1)),
        CostRow("embedding to attention heads", head.parameters * h, head.flops * h),
        CostRow("neighbour embeddings to attention heads", head.parameters * h, head.flops * n * h),
        CostRow("logits", 0, matmul_flops(n, d, 1) * h),
        CostRow("softmax", 0, softmax_flops(n) * h),
        CostRow("embedding to hidden representation", head.parameters * h, head.flops * h),
        CostRow("weighting by attention", 0, matmul_flops(1, n, d) * h),
        CostRow("average over heads", 0, (h + 1) * d),
        _dense("Q-values, layer 1 to 2", d, d),
        _linear("Q-values, layer 2 to 3", d, geometry.phases),
    )


def frap_rows(geometry: Geometry) -> tuple[CostRow, ...]:
    embedding, hidden, conv, phases = FRAP_EMBEDDING, FRAP_HIDDEN, FRAP_CONV, geometry.phases
    pairs = phases * (phases - 1)
    relation = linear_parameters(conv, conv), conv_flops(conv, conv, pairs) + relu_flops(conv) * pairs
    return (
        _dense("phase embedding", 1, embedding),
        _dense("vehicle embedding", 1, embedding),
        _dense("lane-link embedding", 2 * embedding, hidden),
        _dense("relationship embedding", 1, embedding),
        CostRow("pair of phases", linear_parameters(2 * hidden, conv), conv_flops(2 * hidden, conv, pairs)),
        CostRow("competition mask", linear_parameters(embedding, conv), conv_flops(embedding, conv, pairs)),
        CostRow("Q-values, layer 1 to 2", *relation),
        CostRow("Q-values, layer 2 to 3", linear_parameters(conv, 1), conv_flops(conv, 1, pairs)),
        CostRow("aggregation by phase", 0, matmul_flops(hidden, geometry.lane_links, phases)),
        CostRow("mask over cube", 0, conv * pairs),
        CostRow("summation over phases", 0, pairs),
    )


def tinylight_rows(shape: TinyLightShape, phases: int) -> tuple[CostRow, ...]:
    layer2, layer3 = shape.layer2, shape.layer3
    return (
        *(_dense(f"feature {k} to layer 2", width, layer2) for k, width in enumerate(shape.features, start=1)),
        CostRow("element-wise sum on layer 2", 0, layer2 * (len(shape.features) - 1)),
        _dense("layer 2 to layer 3", layer2, layer3),
        _linear("layer 3 to output layer", layer3, phases),
    )


def tinylight_cost(shape: TinyLightShape, phases: int) -> Cost:
    """The actual counts of a sub-graph."""
    rows = tinylight_rows(shape, phases)
    return Cost("TinyLight", rows, sum(row.parameters for row in rows))


def printed_tinylight_cost(shape: TinyLightShape, phases: int) -> Cost:
    """As the paper prints it: the parameters of its last feature are those of a feature one value wider (10 for 9, in
    "(10 + 1) x 18"); the FLOPs of that row are right."""
    actual = tinylight_cost(shape, phases)
    last = len(shape.features) - 1
    printed_width = shape.features[last] + PAPER_FEATURE_EXCESS
    rows = list(actual.rows)
    rows[last] = CostRow(rows[last].description, linear_parameters(printed_width, shape.layer2), rows[last].flops)
    note = f"the paper counts the parameters of its {shape.features[last]}-wide feature as of one {printed_width} wide"
    return Cost("TinyLight", tuple(rows), actual.parameters, f"{note}; there are {actual.parameters}")


def linear_parameters(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def linear_flops(inputs: int, outputs: int) -> int:
    return (2 * inputs + 1) * outputs


def conv_flops(inputs: int, outputs: int, places: int) -> int:
    """A 1 x 1 kernel at height x width places; its parameters are a Linear's."""
    return linear_flops(inputs, outputs) * places


def relu_flops(features: int) -> int:
    return 2 * features


def matmul_flops(x: int, y: int, z: int) -> int:
    return 2 * x * y * z


def softmax_flops(features: int) -> int:
    return 3 * features


def _linear(description: str, inputs: int, outputs: int) -> CostRow:
    return CostRow(description, linear_parameters(inputs, outputs), linear_flops(inputs, outputs))


def _dense(description: str, inputs: int, outputs: int) -> CostRow:
    """relu(Linear)."""
    return CostRow(description, linear_parameters(inputs, outputs), linear_flops(inputs, outputs) + relu_flops(outputs))
