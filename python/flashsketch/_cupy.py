"""CuPy's arrays, on CuPy's current stream."""

from __future__ import annotations

from typing import Any, Tuple

import cupy

from ._arrays import Adapter, Reading, dtype_code, element_strides
from ._library import ITEMSIZE


class CuPy(Adapter):
    name = "cupy"

    def read(self, array: Any) -> Reading:
        code = dtype_code(array.dtype)
        strides = element_strides(array.strides, ITEMSIZE[code])
        return array.data.ptr, array.shape, strides, code, array.data.device_id, array

    def empty(self, like: Any, shape: Tuple[int, ...]) -> Any:
        with cupy.cuda.Device(like.data.device_id):
            return cupy.empty(shape, like.dtype)

    def stream(self, device: int) -> int:
        with cupy.cuda.Device(device):
            handle: int = cupy.cuda.get_current_stream().ptr
            return handle


ADAPTER = CuPy()
