"""Arrays that many calls of a kernel share, handed over as one argument.

Numba takes a named tuple apart at every call, array by array: a hundred of them take as long as
thirty steps of a user. ``bind`` does that once. It writes down where each array lies, and a kernel
reads ``bound.value``, which is the tuple again. Compiled code holds no reference to these arrays:
the caller keeps ``bound``, and a kernel returns no view of them.
"""

import struct
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload_attribute,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array


class Bound:
    """A named tuple of arrays, numbers and such tuples, for kernels.

    Attributes
    ----------
    value : the tuple
    address : where its arrays lie is written down
    """

    __slots__ = ("__weakref__", "_frame", "_numba_type_", "address", "value")

    def __init__(self, value: Any):
        self.value = value
        self._frame = np.array(_written(value), np.int64)
        self.address = self._frame.ctypes.data
        self._numba_type_ = BoundType(numba.typeof(value))

    def __reduce__(self) -> tuple[type["Bound"], tuple[Any]]:
        """A copy has arrays of its own, which lie elsewhere."""
        return Bound, (self.value,)


def _written(value: Any) -> list[int]:
    """Address and shape of each array, the bits of each number."""
    if isinstance(value, tuple):
        return [number for part in value for number in _written(part)]
    if isinstance(value, np.ndarray):
        if not (value.flags.c_contiguous and value.flags.aligned):
            raise ValueError("an array to bind must be contiguous")
        return [value.ctypes.data, *value.shape]
    if isinstance(value, float):
        return [struct.unpack("q", struct.pack("d", value))[0]]
    return [int(value)]


class BoundType(types.Type):  # type: ignore[misc]
    """Of a bound tuple, by the type of the tuple."""

    def __init__(self, value: Any):
        self.value, self.types = value, (value,)
        super().__init__(f"Bound({value})")


register_model(BoundType)(models.OpaqueModel)


@typeof_impl.register(Bound)
def _typeof(bound: Bound, _: Any) -> BoundType:
    return bound._numba_type_


@unbox(BoundType)
def _unbox(kind: Any, bound: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(bound, "address")
    pointer = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


def _read(context: Any, builder: Any, kind: Any, slots: Any) -> Any:
    """A value as ``_written`` wrote it; ``slots``: the numbers, one after the other."""
    if isinstance(kind, types.BaseTuple):
        parts = [_read(context, builder, part, slots) for part in kind.types]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        number = next(slots)
        if isinstance(kind, types.Float):
            return builder.bitcast(number, ir.DoubleType())
        return context.cast(builder, number, types.int64, kind)
    array = context.make_array(kind)(context, builder)
    data, shape = next(slots), [next(slots) for _ in range(kind.ndim)]
    itemsize = context.get_constant(
        types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype))
    )
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array, builder.inttoptr(data, array.data.type), shape, strides, itemsize, meminfo=None
    )
    return array._getvalue()


@intrinsic
def _value(typing: Any, bound: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = builder.bitcast(arguments[0], ir.IntType(64).as_pointer())

        def slots() -> Any:
            at = 0
            while True:
                yield builder.load(builder.gep(words, [ir.IntType(64)(at)]))
                at += 1

        return _read(context, builder, signature.return_type, slots())

    return bound.value(bound), code


@overload_attribute(BoundType, "value", strict=False)  # its names, not its annotations
def _get_value(bound: Any) -> Any:
    return lambda bound: _value(bound)


def bind(value: Any) -> Bound:
    """A tuple bound for kernels, which read it as ``bound.value``."""
    return Bound(value)
