"""The policy file: the one artefact between training and chip.

A JSON document holding, per intersection, what the chip computes (`IntegerPolicy` in `model/policy/integer.py`
spells the arithmetic out) and, for the whole, where it came from and what it achieved. `load_policy` refuses
anything that the chip could not compute exactly: wrong dimensions, numbers out of their types, a sum that
could leave its accumulator, content that does not match its SHA-256.

The hash is over the canonical JSON (keys sorted, no spaces, ASCII) of the document without its own `sha256`
entry.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from streetflow.errors import InputError
from streetflow.files import require_writable, write_whole
from streetflow.roadnet.json_reader import read_json

FORMAT = "tinylight-policy"
VERSION = 1

INPUT_MAX = 255  # uint8 activations
INT16_MAX = (1 << 15) - 1  # the greatest feature value
ACCUMULATOR_LIMIT = 1 << 23  # any sum of products, bias included, stays inside 24-bit two's complement
PHASES = 256  # numbers of phases are bytes
CHIP_INPUTS = 98  # of one intersection: 2 bytes each in a request's frame of at most 200 bytes
CHIP_PHASES = 66  # of one intersection: their logits, 3 bytes each, go in one frame of at most 200 bytes (docs/protocol.md)
PRODUCT_LIMIT = 1 << 32  # requantisation: s * multiplier + round is unsigned 32 bit

Int8 = Annotated[int, Field(ge=-127, le=127, strict=True)]
Int32 = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1, strict=True)]
Multiplier = Annotated[int, Field(ge=1, le=255, strict=True)]
Shift = Annotated[int, Field(ge=1, le=31, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FeatureInput(_Part):
    """One kept feature and how its integers become uint8: min(255, (max(0, x - offset) * multiplier + round)
    >> shift)."""

    name: str
    width: Annotated[int, Field(ge=1, strict=True)]  # numbers in this feature
    lsb_per_unit: Annotated[int, Field(ge=1, strict=True)]  # feature value = integer / lsb_per_unit
    offset: Annotated[int, Field(ge=-(1 << 15), le=(1 << 15) - 1, strict=True)]
    multiplier: Annotated[int, Field(ge=1, le=(1 << 15) - 1, strict=True)]
    shift: Annotated[int, Field(ge=0, le=16, strict=True)]

    @property
    def covered(self) -> tuple[int, int]:
        """The least and the greatest int16 value that isn't clipped; what lies outside is beyond its range."""
        half = (1 << self.shift) >> 1
        greatest = self.offset + (((INPUT_MAX + 1) << self.shift) - 1 - half) // self.multiplier
        return self.offset, min(greatest, INT16_MAX)


class BranchLayer(_Part):
    """Layer 1: one branch per kept feature f; rows o, inputs j. Requantised per row after the branches'
    ReLUs are summed; where they are joined, after the ReLU of their sum, as in an ordinary network."""

    weights: list[list[list[Int8]]]  # [f][o][j]
    biases: list[list[Int32]]  # [f][o]
    multipliers: list[Multiplier]  # [o]
    shifts: list[Shift]  # [o]
    joined: Annotated[bool, Field(strict=True)] = False

    @model_serializer(mode="wrap")
    def _without_default(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """`joined` only where it is true: files of before, and their hashes, stay as they were."""
        fields: dict[str, Any] = write(self)
        return {name: value for name, value in fields.items() if name != "joined" or value}


class Branch(NamedTuple):
    """Some inputs of layer 1 and their rows o."""

    columns: slice
    weights: list[list[int]]  # [o][j]
    biases: list[int]  # [o]


class HiddenLayer(_Part):
    """Layer 2: ReLU(linear), requantised per row."""

    weights: list[list[Int8]]  # [o][j]
    biases: list[Int32]  # [o]
    multipliers: list[Multiplier]  # [o]
    shifts: list[Shift]  # [o]


class OutputLayer(_Part):
    """Layer 3: linear; its 32-bit sums are the logits, all on one common scale."""

    weights: list[list[Int8]]  # [a][j]
    biases: list[Int32]  # [a]


class FloatWeights(_Part):
    """The sub-graph as trained (float32), acting on feature values, i.e. integer / lsb_per_unit."""

    layer1_weights: list[list[list[Finite]]]  # [f][o][j]
    layer1_biases: list[list[Finite]]  # [f][o]
    layer2_weights: list[list[Finite]]  # [o][j]
    layer2_biases: list[Finite]  # [o]
    layer3_weights: list[list[Finite]]  # [a][j]
    layer3_biases: list[Finite]  # [a]


class IntersectionPolicy(_Part):
    """The complete policy of one intersection. Action a is phase number `phases[a]` of the engine."""

    id: str
    phases: Annotated[list[Annotated[int, Field(ge=0, lt=PHASES, strict=True)]], Field(min_length=1)]
    features: Annotated[list[FeatureInput], Field(min_length=1)]
    hidden: Annotated[list[Annotated[int, Field(ge=1, strict=True)]], Field(min_length=2, max_length=2)]
    layer1: BranchLayer
    layer2: HiddenLayer
    layer3: OutputLayer
    float_weights: FloatWeights | None = None

    @property
    def n_inputs(self) -> int:
        return sum(feature.width for feature in self.features)

    @property
    def n_parameters(self) -> int:
        """Weights and biases, counted as in the paper's Appendix C: (12+1)*18 + (9+1)*18 + (18+1)*20 +
        (20+1)*9."""
        h1, h2 = self.hidden
        return sum((f.width + 1) * h1 for f in self.features) + (h1 + 1) * h2 + (h2 + 1) * len(self.phases)

    @property
    def branches(self) -> list[Branch]:
        """The sums of layer 1 that have a ReLU each: one a feature, or one of all where they are joined."""
        layer, begin, found = self.layer1, 0, []
        for feature, weights, biases in zip(self.features, layer.weights, layer.biases, strict=True):
            found.append(Branch(slice(begin, begin + feature.width), weights, biases))
            begin += feature.width
        if not layer.joined:
            return found
        rows = [[weight for part in parts for weight in part] for parts in zip(*layer.weights, strict=True)]
        return [Branch(slice(0, begin), rows, [sum(parts) for parts in zip(*layer.biases, strict=True)])]

    @model_validator(mode="after")
    def _check(self) -> IntersectionPolicy:
        _check_dimensions(self)
        _check_bounds(self)
        return self


class Measured(_Part):
    """What the policy achieved on one flow of its network, decided in float and in integers."""

    flow: Annotated[int, Field(ge=0, strict=True)]
    seed: int
    float_average_travel_time_s: Finite
    integer_average_travel_time_s: Finite
    float_throughput_veh_per_min: Finite
    integer_throughput_veh_per_min: Finite


class Provenance(_Part):
    """Where a policy came from: enough to make it again."""

    command: str
    tool_version: str
    torch_version: str
    numpy_version: str
    network: str
    flow: int
    engine: str
    engine_seed: int
    train_seed: int
    search_episodes: int
    refine_episodes: int
    roadnet_sha256: Sha256
    flow_sha256: Sha256
    feature_preset: str
    settings: dict[str, JsonValue]  # every other number that training and quantisation used
    notes: list[str]


class Policy(_Part):
    """A whole policy file. Make one with `Policy.sealed(...)`, which fills in the hash."""

    format: Literal["tinylight-policy"]
    version: Literal[1]
    sha256: Sha256
    network: str
    decision_interval_s: Annotated[int, Field(ge=1, strict=True)]
    clearance: Literal["hold", "yellow", "all_red", "computed", "shell"]
    provenance: Provenance
    measured: list[Measured]
    intersections: Annotated[list[IntersectionPolicy], Field(min_length=1)]

    @classmethod
    def sealed(cls, **fields: Any) -> Policy:
        """A policy from its content.

        Args:
            **fields: all but format, version and sha256, which are filled in here.

        Raises:
            ValidationError: a field is missing, unknown or impossible (pydantic).
        """
        draft = cls(format="tinylight-policy", version=1, sha256="0" * 64, **fields)
        return draft.model_copy(update={"sha256": draft.compute_sha256()})

    def compute_sha256(self) -> str:
        """Hex SHA-256 over the canonical JSON of everything but `sha256`."""
        content = self.model_dump(mode="json", exclude={"sha256"})
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def alone(self, number: int) -> Policy:
        """The policy of one intersection by itself, sealed anew."""
        part = self.model_copy(update={"intersections": [self.intersections[number]]})
        return part.model_copy(update={"sha256": part.compute_sha256()})

    def intersection(self, intersection_id: str) -> IntersectionPolicy:
        """The part of one intersection. KeyError where there is none of that id."""
        for part in self.intersections:
            if part.id == intersection_id:
                return part
        raise KeyError(intersection_id)


def row_bounds(biases: list[int], weights: list[list[int]]) -> list[tuple[int, int, int]]:
    """Per row, over every input in 0..255: (least sum, greatest sum, bound on the size of every partial sum
    in any order)."""
    bounds = []
    for bias, row in zip(biases, weights, strict=True):
        low = bias + INPUT_MAX * sum(w for w in row if w < 0)
        high = bias + INPUT_MAX * sum(w for w in row if w > 0)
        bounds.append((low, high, abs(bias) + INPUT_MAX * sum(abs(w) for w in row)))
    return bounds


def _check_bounds(part: IntersectionPolicy) -> None:
    """ValueError unless no input whatsoever can leave an accumulator or overflow a requantisation."""
    h1 = part.hidden[0]
    branch_sums = [0] * h1
    for f, (_, weights, biases) in enumerate(part.branches):
        for o, (_, high, reach) in enumerate(row_bounds(biases, weights)):
            _require_accumulator(f"layer1.weights[{f}][{o}]", reach + _spread(part.layer1, o))
            branch_sums[o] += max(0, high)
    for o in range(h1):
        _require_requantisable("layer1", o, branch_sums[o], part.layer1.multipliers[o], part.layer1.shifts[o])
    for o, (_, high, reach) in enumerate(row_bounds(part.layer2.biases, part.layer2.weights)):
        _require_accumulator(f"layer2.weights[{o}]", reach)
        _require_requantisable("layer2", o, max(0, high), part.layer2.multipliers[o], part.layer2.shifts[o])
    for a, (_, _, reach) in enumerate(row_bounds(part.layer3.biases, part.layer3.weights)):
        _require_accumulator(f"layer3.weights[{a}]", reach)


def _spread(layer: BranchLayer, row: int) -> int:
    """How much further partial sums can reach where biases of joined branches cancel each other out."""
    own = [biases[row] for biases in layer.biases]
    return sum(map(abs, own)) - abs(sum(own)) if layer.joined else 0


def _require_accumulator(place: str, reach: int) -> None:
    if reach >= ACCUMULATOR_LIMIT:
        raise ValueError(f"{place}: sums can reach {reach}, the 24-bit accumulator ends at {ACCUMULATOR_LIMIT - 1}")


def _require_requantisable(layer: str, row: int, high: int, multiplier: int, shift: int) -> None:
    if high >= ACCUMULATOR_LIMIT:
        raise ValueError(f"{layer}: row {row} can reach {high}, the 24-bit accumulator ends at {ACCUMULATOR_LIMIT - 1}")
    product = high * multiplier + (1 << (shift - 1))
    if product >= PRODUCT_LIMIT:
        raise ValueError(f"{layer}.multipliers[{row}]: {high} * {multiplier} + {1 << (shift - 1)} does not fit 32 bits")


def _check_dimensions(part: IntersectionPolicy) -> None:
    """ValueError naming the first list with a length that does not match features, hidden and phases."""
    h1, h2 = part.hidden
    n_features, n_phases = len(part.features), len(part.phases)
    layer1, layer2, layer3 = part.layer1, part.layer2, part.layer3
    _require_length("layer1.weights", layer1.weights, n_features)
    _require_length("layer1.biases", layer1.biases, n_features)
    for f, feature in enumerate(part.features):
        _require_matrix(f"layer1.weights[{f}]", layer1.weights[f], h1, feature.width)
        _require_length(f"layer1.biases[{f}]", layer1.biases[f], h1)
    _require_length("layer1.multipliers", layer1.multipliers, h1)
    _require_length("layer1.shifts", layer1.shifts, h1)
    _require_matrix("layer2.weights", layer2.weights, h2, h1)
    for name in ("biases", "multipliers", "shifts"):
        _require_length(f"layer2.{name}", getattr(layer2, name), h2)
    _require_matrix("layer3.weights", layer3.weights, n_phases, h2)
    _require_length("layer3.biases", layer3.biases, n_phases)
    if part.float_weights is not None:
        floats = part.float_weights
        _require_length("float_weights.layer1_weights", floats.layer1_weights, n_features)
        _require_length("float_weights.layer1_biases", floats.layer1_biases, n_features)
        for f, feature in enumerate(part.features):
            _require_matrix(f"float_weights.layer1_weights[{f}]", floats.layer1_weights[f], h1, feature.width)
            _require_length(f"float_weights.layer1_biases[{f}]", floats.layer1_biases[f], h1)
        _require_matrix("float_weights.layer2_weights", floats.layer2_weights, h2, h1)
        _require_length("float_weights.layer2_biases", floats.layer2_biases, h2)
        _require_matrix("float_weights.layer3_weights", floats.layer3_weights, n_phases, h2)
        _require_length("float_weights.layer3_biases", floats.layer3_biases, n_phases)


def _require_length(place: str, values: list[Any], length: int) -> None:
    if len(values) != length:
        raise ValueError(f"{place}: {len(values)} entries, expected {length}")


def _require_matrix(place: str, rows: list[list[Any]], height: int, width: int) -> None:
    _require_length(place, rows, height)
    for o, row in enumerate(rows):
        _require_length(f"{place}[{o}]", row, width)


def load_policy(path: str | Path) -> Policy:
    """Reads and checks a policy file; nothing is silently repaired.

    Args:
        path: of the file.

    Returns:
        The policy, its bounds proved and its hash compared.

    Raises:
        InputError: the file can't be read, isn't a policy file of this version, or breaks the format; names the place.
    """
    path = Path(path)
    content = read_json(path, exact=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(path, "format", f'not a policy file (no "format": "{FORMAT}")')
    if content.get("version") != VERSION:
        raise InputError(path, "version", f"version {content.get('version')!r}; this tool reads version {VERSION}")
    try:
        policy = Policy.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        fault = first["msg"].removeprefix("Value error, ")
        raise InputError(path, _json_path(first["loc"]), fault) from None
    actual = policy.compute_sha256()
    if actual != policy.sha256:
        raise InputError(path, "sha256", f"content has hash {actual}, the file says {policy.sha256}")
    return policy


def save_policy(policy: Policy, path: str | Path) -> None:
    """Writes the file atomically; same policy, same bytes.

    Args:
        policy: made with `Policy.sealed`.
        path: of the file; its folder is made where it isn't there.

    Raises:
        InputError: it can't be written there, such as over a device.
        ValueError: the policy's hash is not that of its content.
    """
    if policy.sha256 != policy.compute_sha256():
        raise ValueError("the policy's sha256 is not that of its content; make policies with Policy.sealed")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    require_writable(path)
    write_whole(path, _layout(policy.model_dump(mode="json")) + "\n")


def _layout(value: Any, indent: str = "") -> str:
    """JSON with one line per object entry and per list of lists, but lists of plain values on one line."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = (f"{json.dumps(key)}: {_layout(entry, inner)}" for key, entry in value.items())
        return "{\n" + ",\n".join(inner + entry for entry in entries) + "\n" + indent + "}"
    if isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        return "[\n" + ",\n".join(inner + _layout(entry, inner) for entry in value) + "\n" + indent + "]"
    return json.dumps(value, allow_nan=False)


def _json_path(location: tuple[int | str, ...]) -> str:
    """('intersections', 0, 'hidden') -> 'intersections[0].hidden'."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
