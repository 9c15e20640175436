"""JAX's arrays.

They cannot be written to, and JAX exposes no stream.  So a product goes through DLPack: JAX requests an object's data
on a stream of its choice, and the object queues the product on that stream before it returns them.  The call returns
when the result is ready: until then A's memory must not be reused.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import jax
import jax.numpy
import numpy

from ._arrays import (
    Adapter,
    Product,
    Reading,
    check_list,
    check_rows,
    dtype_code,
    host_list,
    matrix,
    read_dlpack,
    source_rows,
    target_shape,
)


class _Result:
    """The object for jax.dlpack.from_dlpack: memory of JAX's that the product is written to when it is requested."""

    def __init__(self, what: Product, source: Any) -> None:
        self.what, self.source = what, source
        self.target: Any = jax.numpy.empty(target_shape(what, source.shape), source.dtype, device=source.device)

    def __dlpack_device__(self) -> Any:
        return self.target.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        what, on = self.what, {} if stream is None else {"stream": stream}
        if stream is None:
            self.source.block_until_ready(), self.target.block_until_ready()
        capsule = self.target.__dlpack__(**on)
        reading = read_dlpack(self.source.__dlpack__(**on))
        source, target = matrix(reading, what.batch, "A"), matrix(read_dlpack(capsule), what.batch, "out")
        ADAPTER.call(what, 1.0, source, 0.0, target, stream or 0)
        return capsule


class Jax(Adapter):
    name = "jax"

    def read(self, array: Any) -> Reading:
        """For an array with a value: the call waits for it, so that every stream may read it."""
        _check(array)
        return read_dlpack(array.block_until_ready().__dlpack__())

    def floating(self, array: Any) -> Any:
        return array if isinstance(array, jax.core.Tracer) else super().floating(array)

    def cast(self, array: Any, dtype: Any) -> Any:
        return array.astype(jax.dtypes.canonicalize_dtype(dtype))

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        return jax.numpy.empty(shape, dtype or like.dtype, device=like.device)

    def brought(self, array: Any, like: Any) -> Any:
        return jax.device_put(array.astype(jax.dtypes.canonicalize_dtype(array.dtype)), like.device)

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        _check(like)
        if like.device.platform == "cpu":
            return host_list(rows, count)
        if isinstance(rows, jax.Array):
            if check_list(rows.shape, rows.dtype, numpy.dtype(rows.dtype).kind, count):
                rows = jax.numpy.flatnonzero(rows)
        else:
            rows = host_list(rows, count, checked=True)
            if (rows >= 2**31).any() and jax.dtypes.canonicalize_dtype("int64") != "int64":
                raise ValueError("JAX converts a list of rows to int32, which some rows exceed; set jax_enable_x64")
        listed = jax.device_put(rows, like.device)
        listed = listed if listed.dtype in ("int32", "int64") else listed.astype("int32")
        return listed.block_until_ready()

    def address(self, listed: Any) -> int:
        address: int = listed.unsafe_buffer_pointer() if isinstance(listed, jax.Array) else super().address(listed)
        return address

    def product(self, what: Product, array: Any) -> Any:
        _check(array)
        check_rows(what, source_rows(array, what.batch))
        result = jax.dlpack.from_dlpack(_Result(what, array))
        result.block_until_ready()
        return result

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        raise TypeError("JAX arrays cannot be written to; use Y += S.apply(A, row0=row0)")


def _check(array: Any) -> None:
    if isinstance(array, jax.core.Tracer):
        raise TypeError("a sketch takes JAX arrays with values: inside jax.jit or jax.grad there are none")
    if len(array.devices()) != 1:
        raise ValueError(f"a JAX array is spread over {len(array.devices())} devices; a sketch takes one device's")
    dtype_code(array.dtype)


ADAPTER = Jax()
