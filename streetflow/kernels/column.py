"""A field of the state as compiled code sees it: where its elements are, and how many.

An array of numba's is seven values, so a record of some hundred arrays is a thousand values at each call between kernels, which
LLVM takes away again: that was most of the time that compiling took. A column is two. It is read and written as an array is, an
index below 0 counted from the end, and its size can be asked for; no more. Without a compiler it is a numpy array.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.typing.builtins import normalize_1d_index
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, make_attribute_wrapper, models, register_model
from numba.np.arrayobj import make_array


class Column(types.Type):
    """The compiled type. dtype: numba's type of its elements."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"Column({dtype})")


@register_model(Column)
class _Model(models.StructModel):
    def __init__(self, manager: Any, column: Any) -> None:
        super().__init__(manager, column, [("data", types.CPointer(column.dtype)), ("size", types.intp)])


make_attribute_wrapper(Column, "size", "size")


@intrinsic
def _column(_context: Any, array: Any, start: Any, end: Any) -> Any:
    kind = Column(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = make_array(signature.args[0])(context, builder, arguments[0])
        parts = builder.gep(block.data, [arguments[1]]), builder.sub(arguments[2], arguments[1])
        made = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for place, part in enumerate(parts):
            made = builder.insert_value(made, part, place)
        return made

    return kind(array, types.intp, types.intp), generate


def _column_uncompiled(array: Any, start: int, end: int) -> Any:
    return array[start:end]


column: Any = _column_uncompiled if getattr(config, "DISABLE_JIT", 0) else _column
"""``column(array, start, end)``: the elements of a contiguous array from start on, as far as end."""


def element(context: Any, builder: Any, kind: Any, value: Any, at: Any) -> Any:
    """A pointer to an element. kind, value: a column's; at: an intp, below 0 from the end."""
    made = cgutils.create_struct_proxy(kind)(context, builder, value)
    from_end = builder.add(at, made.size)
    is_negative = builder.icmp_signed("<", at, ir.Constant(at.type, 0))
    return builder.gep(made.data, [builder.select(is_negative, from_end, at)])


@infer_global(operator.getitem)
class _Read(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        kind, at = args
        if isinstance(kind, Column) and isinstance(at, types.Integer):
            return signature(kind.dtype, kind, normalize_1d_index(at))
        return None


@infer_global(operator.setitem)
class _Write(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        kind, at, _ = args
        if isinstance(kind, Column) and isinstance(at, types.Integer):
            return signature(types.none, kind, normalize_1d_index(at), kind.dtype)
        return None


@lower_builtin(operator.getitem, Column, types.Integer)
def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, _ = signature.args
    return builder.load(element(context, builder, kind, *arguments))


@lower_builtin(operator.setitem, Column, types.Integer, types.Any)
def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    value, at, new = arguments
    builder.store(new, element(context, builder, signature.args[0], value, at))
    return context.get_dummy_value()
