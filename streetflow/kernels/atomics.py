"""Reads and writes of memory that several threads share: whole, and in the order in which they are written here."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from streetflow.kernels.column import Column, element


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A pointer to an element of a contiguous array or a column: the first two arguments."""
    if isinstance(signature.args[0], Column):
        return element(context, builder, signature.args[0], arguments[0], arguments[1])
    array = make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def _load(_context: Any, array: Any, at: Any) -> Any:
    """array[at]. What another thread wrote before it stored this value can be read after it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _store(_context: Any, array: Any, at: Any, value: Any) -> Any:
    """array[at] = value. Whoever loads the value can read what was written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _element(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic
def _fetch_add(_context: Any, array: Any, at: Any) -> Any:
    """Add 1 to array[at]; the value before. Orders memory as `load` and `store` together."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _element(context, builder, signature, arguments), one, "acq_rel")

    return types.int64(array, types.intp), generate


@intrinsic
def _set_bits(_context: Any, array: Any, at: Any, bits: Any) -> Any:
    """array[at] |= bits, of int32; no bit that another thread sets is lost."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.atomic_rmw("or", _element(context, builder, signature, arguments), arguments[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int32), generate


@intrinsic
def _let_others_run(_context: Any) -> Any:
    """Give the processor to a thread that waits for it, if there is one."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


load: Any = _load
store: Any = _store
fetch_add: Any = _fetch_add
set_bits: Any = _set_bits
let_others_run: Any = _let_others_run
