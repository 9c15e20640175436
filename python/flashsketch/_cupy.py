"""CuPy's arrays, on CuPy's current stream."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import cupy

from ._arrays import Adapter, Reading, check_list, dtype_code, element_strides, host_list
from ._library import ITEMSIZE


class CuPy(Adapter):
    name = "cupy"

    def read(self, array: Any) -> Reading:
        code = dtype_code(array.dtype)
        strides = element_strides(array.strides, ITEMSIZE[code])
        return array.data.ptr, array.shape, strides, code, array.data.device_id, array

    def cast(self, array: Any, dtype: Any) -> Any:
        with cupy.cuda.Device(array.data.device_id):
            return array.astype(dtype)

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        with cupy.cuda.Device(like.data.device_id):
            return cupy.empty(shape, dtype or like.dtype)

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        with cupy.cuda.Device(like.data.device_id):
            array = rows if isinstance(rows, cupy.ndarray) else cupy.asarray(host_list(rows, count, checked=True))
            if check_list(array.shape, array.dtype, array.dtype.kind, count):
                return cupy.flatnonzero(array)
            return cupy.ascontiguousarray(array if array.dtype in ("int32", "int64") else array.astype("int64"))

    def address(self, listed: Any) -> int:
        address: int = listed.data.ptr
        return address

    def stream(self, device: int) -> int:
        with cupy.cuda.Device(device):
            handle: int = cupy.cuda.get_current_stream().ptr
            return handle

    def fetched(self, array: Any) -> Any:
        return cupy.asnumpy(array)

    def brought(self, array: Any, like: Any) -> Any:
        with cupy.cuda.Device(like.data.device_id):
            return cupy.asarray(array)


ADAPTER = CuPy()
