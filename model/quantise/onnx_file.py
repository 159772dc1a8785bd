"""Linear layers of an ONNX file, without a library for it: the few messages that a small network needs.

Protobuf's wire format and the numbers of ONNX's fields: onnx/onnx.proto.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streetflow.errors import InputError

FLOAT, DOUBLE = 1, 11  # data types of a tensor
PASSING = ("Identity", "Flatten", "Dropout", "Cast")  # they change no value of a float vector
Fields = dict[int, list[int | bytes]]
Float32 = npt.NDArray[np.float32]


class Linear(NamedTuple):
    """y = weights @ x + biases."""

    weights: Float32  # [outputs, inputs]
    biases: Float32  # [outputs]


def read_onnx(file: Path, content: bytes) -> list[Linear]:
    """The linear layers of a network that is nothing but these with a ReLU between two of them.

    Raises:
        InputError: it is another network, or no ONNX file.
    """
    try:
        return _layers(file, _message(_bytes(_message(content), 7)))
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(file, "", f"not an ONNX file: {error}") from None


def _layers(file: Path, graph: Fields) -> list[Linear]:
    tensors = {_text(fields, 8): fields for fields in map(_message, _all_bytes(graph, 5))}
    inputs = [_text(_message(each), 1) for each in _all_bytes(graph, 11)]
    given = [name for name in inputs if name not in tensors]
    if len(given) != 1:
        raise InputError(file, "graph.input", f"has {len(given)} inputs; must have one, the features' values")
    layers: list[Linear] = []
    needs_relu, value = False, given[0]
    for number, node in enumerate(map(_message, _all_bytes(graph, 1))):
        place, kind, names = f"graph.node[{number}]", _text(node, 4), [each.decode() for each in _all_bytes(node, 1)]
        attributes = {_text(fields, 1): fields for fields in map(_message, _all_bytes(node, 5))}
        if kind == "Constant":
            tensors[_all_bytes(node, 2)[0].decode()] = _message(_bytes(attributes["value"], 5))
            continue
        if value not in names:
            raise InputError(file, place, f"{kind} doesn't go on from the node before; the layers must be in one chain")
        constants = [_tensor(file, place, tensors[name]) for name in names if name in tensors]
        if kind in ("Gemm", "MatMul"):
            if needs_relu:
                raise InputError(file, place, "two linear layers without a ReLU between them")
            layers.append(_linear(file, place, kind, attributes, constants))
        elif kind == "Add" and layers and not layers[-1].biases.any() and len(constants) == 1:
            layers[-1] = layers[-1]._replace(biases=np.broadcast_to(constants[0].ravel(), len(layers[-1].weights)))
        elif kind not in (*PASSING, "Relu"):
            raise InputError(file, place, f"{kind}: only linear layers (Gemm, MatMul and Add) and Relu can go onto the chip")
        needs_relu = bool(layers) and (kind != "Relu" if kind not in PASSING else needs_relu)
        value = _all_bytes(node, 2)[0].decode()
    if layers and not needs_relu:
        raise InputError(file, "graph.output", "ends with a ReLU; the last layer must be linear")
    return layers


def _linear(file: Path, place: str, kind: str, attributes: dict[str, Fields], constants: list[Float32]) -> Linear:
    if not constants or constants[0].ndim != 2:
        raise InputError(file, place, f"{kind} without a constant matrix")
    weights = constants[0]
    if kind == "MatMul":
        return Linear(weights.T, np.zeros(weights.shape[1], np.float32))
    for name in ("alpha", "beta"):
        if name in attributes and _float(attributes[name]) != 1.0:
            raise InputError(file, f"{place}.{name}", "must be 1")
    if "transA" in attributes and _integer(attributes["transA"], 3):
        raise InputError(file, f"{place}.transA", "must be 0")
    if not ("transB" in attributes and _integer(attributes["transB"], 3)):
        weights = weights.T
    biases = constants[1].ravel() if len(constants) > 1 else np.zeros(1, np.float32)
    return Linear(weights, np.broadcast_to(biases, len(weights)))


def _tensor(file: Path, place: str, fields: Fields) -> Float32:
    if _integer(fields, 14) or _all_bytes(fields, 13):
        raise InputError(file, place, f"{_text(fields, 8)} lies in another file; save the weights in this one")
    kind = _integer(fields, 2)
    if kind not in (FLOAT, DOUBLE):
        raise InputError(file, place, f"{_text(fields, 8)} is of data type {kind}; weights must be float32 or float64")
    dtype, own = (np.dtype("<f4"), 4) if kind == FLOAT else (np.dtype("<f8"), 10)
    dims = [number for value in fields.get(1, []) for number in ([value] if isinstance(value, int) else _varints(value))]
    parts = fields.get(9) or fields.get(own, [])
    raw = b"".join(part if isinstance(part, bytes) else part.to_bytes(dtype.itemsize, "little") for part in parts)
    if len(raw) != math.prod(dims) * dtype.itemsize:
        raise ValueError(f"{_text(fields, 8)} has {len(raw)} bytes for {dims}")
    return np.frombuffer(raw, dtype).reshape(dims).astype(np.float32)


def _message(content: bytes) -> Fields:
    """A message's fields by number; numbers as they are (of fixed size: as unsigned), all else as bytes."""
    fields: Fields = {}
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        wire, value = tag & 7, b""
        if wire == 0:
            number, place = _varint(content, place)
            fields.setdefault(tag >> 3, []).append(number)
            continue
        if wire == 2:
            size, place = _varint(content, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of wire type {wire}")
        value = content[place : place + size]
        if len(value) != size:
            raise ValueError("it ends too early")
        place += size
        fields.setdefault(tag >> 3, []).append(value if wire == 2 else int.from_bytes(value, "little"))
    return fields


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (content[place] & 0x7F) << shift
        place += 1
        if not content[place - 1] & 0x80:
            return value, place
    raise ValueError("a number that doesn't end")


def _varints(content: bytes) -> Iterator[int]:
    place = 0
    while place < len(content):
        value, place = _varint(content, place)
        yield value


def _all_bytes(fields: Fields, number: int) -> list[bytes]:
    return [value for value in fields.get(number, []) if isinstance(value, bytes)]


def _bytes(fields: Fields, number: int) -> bytes:
    found = _all_bytes(fields, number)
    if not found:
        raise ValueError(f"no field {number}")
    return found[-1]


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields, number).decode() if number in fields else ""


def _integer(fields: Fields, number: int) -> int:
    values = [value for value in fields.get(number, []) if isinstance(value, int)]
    return values[-1] if values else 0


def _float(attribute: Fields) -> float:
    return float(np.frombuffer(_integer(attribute, 2).to_bytes(4, "little"), "<f4")[0])
