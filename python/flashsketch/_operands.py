"""The matrix A of a solver, its other arguments and its results (flashsketch_solvers.h).

A dense A is read in place.  A sparse one stays sparse.  A Dask array arrives in slices of rows: each read of A computes
its chunks one after the other and keeps those of one slice.  Small results are computed in host memory and become
arrays of A's framework; large ones are written to memory of the framework.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Tuple

import numpy

from ._arrays import Adapter, Sparse, check_writeable, dtype_code, lines, matrix, place, taken
from ._layouts import layout
from ._library import (
    F32,
    F64,
    HOST,
    SPARSE,
    BackendError,
    View,
    borrowed,
    failure,
    pack_matrix,
    whole,
)
from ._sketch import Sketch
from ._tasks import dense_view, load_wheels

_PROGRESS, _SLICES, _OPERAND = layout("fs_progress"), layout("fs_slices"), layout("fs_operand")
_EFILE = 5  # the result of a callback after an exception, which is then raised in place of the library's error

_AT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_double, ctypes.c_char_p)
_REWIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

# The bytes of rows of a Dask array that are computed together, in whole chunks.
_SLICE_BYTES = 64 << 20

Progress = Optional[Callable[[float, str], Any]]


def real(name: str, value: Any, who: str) -> float:
    """A caller's number as a float; None is 0, the library's default."""
    if value is None:
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{who}: {name} is {value!r}, it must be a number") from None


def seed_of(value: Any, who: str) -> int:
    return whole("seed", value, 0, 2**64 - 1, who=who)


def sketch_of(sketch: Any, who: str) -> Optional[int]:
    """The handle of a solver's `sketch`."""
    if sketch is not None and not isinstance(sketch, Sketch):
        raise TypeError(f"{who}: sketch is a {type(sketch).__name__}, it must be a Sketch")
    return None if sketch is None else sketch._handle


def note_of(text: bytes) -> str:
    return text.split(b"\0", 1)[0].decode()


class _Calls:
    """Python functions that the library calls.  The first exception in one ends the library's call, from which it is
    raised."""

    def __init__(self, progress: Progress) -> None:
        self.error: Optional[BaseException] = None
        self.progress = progress
        self.packed: Optional[bytes] = None
        if progress is not None:
            self.at = _AT(self._at)
            self.packed = _PROGRESS.pack(self._address(self.at), 0)

    @staticmethod
    def _address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def finish(self) -> None:
        """After the call: releases memory, and raises the exception of a function."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def guarded(self, function: Callable[[], None]) -> int:
        """Its result for the library."""
        if self.error is None:
            try:
                function()
            except BaseException as error:  # KeyboardInterrupt, too: ctypes would print and ignore it
                self.error = error
        return 0 if self.error is None else _EFILE

    def _at(self, user: Any, share: float, doing: Any) -> None:
        progress = self.progress
        if progress is not None:
            self.guarded(lambda: progress(share, doing.decode() if doing else ""))


class _Slices(_Calls):
    """A Dask array as fs_slices."""

    def __init__(self, array: Any, code: int, sparse: Sparse, progress: Progress) -> None:
        super().__init__(progress)
        self.array, self.code, self.sparse = array, code, sparse
        self.ranges = list(_row_ranges(array))
        self.number = 0
        self.kept: Any = None
        self.rewind, self.next = _REWIND(self._rewind), _NEXT(self._next)
        rows, cols = array.shape
        calls = self._address(self.rewind), self._address(self.next)
        self.slices = ctypes.create_string_buffer(_SLICES.pack(_SLICES.size, rows, cols, code, *calls, 0))

    def finish(self) -> None:
        self.kept = None
        super().finish()

    def _rewind(self, user: Any) -> int:
        def begin() -> None:
            self.number = 0

        return self.guarded(begin)

    def _next(self, user: Any, dense: int, sparse: int) -> int:
        return self.guarded(lambda: self._compute(dense, sparse))

    def _compute(self, dense: int, sparse: int) -> None:
        self.kept = None  # frees the slice before: two of them are never in memory together
        first, end = self.ranges[self.number]
        self.number += 1
        chunk = self.array[first:end].compute()
        wanted = end - first, self.array.shape[1]
        if tuple(chunk.shape) != wanted:
            raise ValueError(
                f"rows {first} to {end} of a Dask array have shape {tuple(chunk.shape)} when they are computed, and "
                f"its chunks promise {wanted}"
            )
        if hasattr(chunk, "tocsr"):
            chunk = lines(self.sparse.floating(chunk).astype(self.array.dtype, copy=False))
            fields, _, arrays = self.sparse.fields(chunk)
            packed = ctypes.create_string_buffer(SPARSE.pack(*fields), SPARSE.size)
            self.kept = chunk, arrays, packed
            ctypes.c_void_p.from_address(sparse).value = ctypes.addressof(packed)
            return
        adapter, chunk = taken(chunk)
        if adapter.name != "numpy":
            raise TypeError(f"a chunk of a Dask array is an array of {adapter.name}; it must be one of NumPy or SciPy")
        self.kept = chunk = chunk.astype(self.array.dtype, copy=False)
        packed_view = pack_matrix(matrix(adapter.read(chunk), False, "a chunk"))
        ctypes.memmove(dense, packed_view, len(packed_view))


def _row_ranges(array: Any) -> Iterator[Tuple[int, int]]:
    """(first row, end) of each slice: as many whole chunks as fit _SLICE_BYTES, one at least."""
    row_bytes = max(1, array.shape[1] * array.dtype.itemsize)
    first = end = 0
    for rows in array.chunks[0]:
        if end > first and (end + rows - first) * row_bytes > _SLICE_BYTES:
            yield first, end
            first = end
        end += rows
    if end > first:
        yield first, end


class Operand:
    """A as fs_operand, with its device and the framework of results."""

    def __init__(self, who: str, A: Any, progress: Progress = None) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"{who}: progress is a {type(progress).__name__}, it must be a function")
        self.who = who
        source, A = taken(A)
        if len(A.shape) not in (1, 2):
            raise ValueError(f"A has shape {tuple(A.shape)}; {who} takes vectors and matrices")
        self.source, self.calls = source, _Calls(progress)
        self.view: Optional[View] = None
        if source.name == "dask":
            self._take_dask(A, progress)
        elif isinstance(source, Sparse):
            self._take_sparse(source, A)
        else:
            self._take_dense(source, A)
        self.stream = 0 if self.device == HOST else self.adapter.stream(self.device)

    def _take_dense(self, source: Adapter, A: Any) -> None:
        self.adapter: Adapter = source
        self.array = self.like = A
        self.view, self._keep = dense_view("A", source, A)
        _, self.rows, self.n, _, _, self.code, self.device = self.view
        self._dense = ctypes.create_string_buffer(pack_matrix(self.view))
        self.packed = _OPERAND.pack(_OPERAND.size, ctypes.addressof(self._dense), 0, 0)

    def _take_sparse(self, source: Sparse, A: Any) -> None:
        if len(A.shape) == 1:
            A = A.tocoo().reshape((A.shape[0], 1))
        self.array = A = lines(A)
        self.adapter, self.like = source.dense, A.data
        fields, self.device, self._keep = source.fields(A)
        self.rows, self.n = A.shape
        self.code = dtype_code(A.dtype)
        self._sparse = ctypes.create_string_buffer(SPARSE.pack(*fields), SPARSE.size)
        self.packed = _OPERAND.pack(_OPERAND.size, 0, ctypes.addressof(self._sparse), 0)

    def _take_dask(self, A: Any, progress: Progress) -> None:
        from ._dask import check_in_host_memory, check_known

        check_known(A)
        check_in_host_memory(A)
        if len(A.shape) == 1:
            A = A.reshape((A.shape[0], 1))
        self.array, self.device, self.like = A, HOST, numpy.empty(0)
        self.rows, self.n = A.shape
        self.adapter, _ = taken(self.like)
        self.code = dtype_code(A.dtype)
        self.calls = slices = _Slices(A, self.code, Sparse(self.adapter), progress)
        self.packed = _OPERAND.pack(_OPERAND.size, 0, 0, ctypes.addressof(slices.slices))

    @property
    def wide(self) -> bool:
        """Whether A is float64."""
        return self.code == F64

    def progress(self) -> Any:
        """The address of an fs_progress, for options: memory that must live until the call."""
        if self.calls.packed is None:
            return 0
        self._progress = ctypes.create_string_buffer(self.calls.packed)
        return ctypes.addressof(self._progress)

    def right(self, b: Any) -> Tuple[View, Any, bool, bool]:
        """The view of b; the object that must live; whether it is a vector; whether it is float64."""
        if b is None:
            raise TypeError(f"{self.who}: b is None, it must be an array with the rows of A")
        adapter, b = taken(b)
        if adapter.name == "dask":
            if self.source.name != "dask":
                raise TypeError("b is an array of dask, and A is not: give b.compute()")
            adapter, b = taken(b.compute())
        if isinstance(adapter, Sparse):
            raise TypeError("b is sparse: give b.toarray()")
        if len(b.shape) not in (1, 2):
            raise ValueError(f"b has shape {tuple(b.shape)}; {self.who} takes vectors and matrices")
        view, keep = dense_view("b", adapter, b)
        if adapter is not self.adapter or view[6] not in (HOST, self.device):
            where = f"A is {place(self.device)} and b {place(view[6])}"
            raise TypeError(f"{where}: both must be of one framework and on one device")
        if view[1] != self.rows:
            raise ValueError(f"b has {view[1]} rows, and A is {self.rows} x {self.n}: b must have {self.rows}")
        return view, keep, len(b.shape) == 1, view[5] == F64

    def dtype(self, wide: bool = False) -> str:
        """The type of results: float64 where A, or another argument, is, otherwise float32."""
        return "float64" if wide or self.wide else "float32"

    def small(self, array: Optional[numpy.ndarray]) -> Any:
        """A result in host memory as an array of A's framework, on A's device."""
        return None if array is None else self.adapter.brought(array, self.like)

    def large(self, shape: Tuple[int, int]) -> "_Large":
        return _Large(self, shape)

    def replaced(self, given: Any) -> View:
        """The view of a dense A that a result replaces: the caller's own array."""
        writeable = self.view is not None and self.array is given and self.adapter.name in ("numpy", "torch", "cupy")
        if not writeable:
            raise TypeError(f"{self.who}: overwrite_a needs a dense float32 or float64 array of NumPy, PyTorch or CuPy")
        assert self.view is not None
        if self.view[5] not in (F32, F64):
            raise TypeError(f"{self.who}: overwrite_a needs a float32 or float64 A, and A is {given.dtype}")
        check_writeable(given)
        return self.view

    def call(self, function: Callable[[int], int]) -> None:
        """function(context) is a call of the library, which uses `packed`."""
        with borrowed(self.device, self.stream) as context:
            assert context.pointer is not None
            result = function(context.pointer)
            if self.calls.error is None and result and isinstance(failure(result), BackendError):
                load_wheels()  # cuBLAS and cuSOLVER, where the loader finds none
                result = function(context.pointer)
            self.calls.finish()
            if result:
                raise failure(result)


class _Large:
    """A result of d rows: in the framework's memory where that can be written to, otherwise in host memory first.
    """

    def __init__(self, A: Operand, shape: Tuple[int, int]) -> None:
        self.A = A
        self.direct = A.adapter.name != "jax"
        made = A.adapter.empty(A.like, shape, A.dtype()) if self.direct else numpy.empty(shape, A.dtype())
        self.array = made
        reading = A.adapter.read(made) if self.direct else taken(made)[0].read(made)
        self.view, self._keep = matrix(reading, False, "a result"), reading[5]

    def finished(self) -> Any:
        if self.direct:
            self.A.adapter.written(self.array)
            return self.array
        return self.A.small(self.array)


def host_matrix(array: Optional[numpy.ndarray]) -> Optional[bytes]:
    """An fs_matrix of a NumPy array."""
    if array is None:
        return None
    return pack_matrix(matrix(taken(array)[0].read(array), False, "a result"))


def address_of(array: Optional[numpy.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data

