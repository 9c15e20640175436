"""Copies and waits on a GPU without a framework: by the driver, libcuda.so.1.

Each function first waits for all work queued on the device, on all streams of the primary context, which every
framework uses.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Iterator

import numpy

from ._library import BackendError


def _call(name: str, *arguments: Any) -> None:
    code = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if code:
        raise BackendError(f"{name} of the CUDA driver failed with its error {code}")


@contextlib.contextmanager
def _current(device: int) -> Iterator[None]:
    number, context = ctypes.c_int(), ctypes.c_void_p()
    _call("cuDeviceGet", ctypes.byref(number), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    try:
        _call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            _call("cuCtxPopCurrent_v2", ctypes.byref(context))
    finally:
        _call("cuDevicePrimaryCtxRelease_v2", number)


def wait(device: int) -> None:
    """Waits until all queued work is done."""
    with _current(device):
        _call("cuCtxSynchronize")


def to_host(device: int, address: int, array: numpy.ndarray) -> None:
    """Fills a packed array from an address."""
    with _current(device):
        _call("cuCtxSynchronize")
        _call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address), _size(array))


def to_device(device: int, address: int, array: numpy.ndarray) -> None:
    """Writes a packed array to an address."""
    with _current(device):
        _call("cuCtxSynchronize")
        _call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), _size(array))
        _call("cuCtxSynchronize")


def _size(array: numpy.ndarray) -> ctypes.c_size_t:
    return ctypes.c_size_t(array.nbytes)
