"""The C library through ctypes: its path, its functions, its errors, and contexts for its calls.

Contracts are in flashsketch.h.  Structs are packed by `struct` into memory of a context, because a ctypes.Structure for
each call costs several microseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import pathlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._layouts import layout

HOST = -1  # the device number of host memory, beside CUDA's 0, 1, ...
CSR, CSC = 1, 2
INDEX = {4: 1, 8: 2}  # fs_index_type by bytes
DTYPE_NAMES = "float32, float64, float16 and bfloat16"

PRECISIONS = {"full": 0, "fast": 1}
MOST_THREADS = 1024  # of a context, the limit of the library
_CPU, _CUDA = 1, 2

SPEC = layout("fs_spec")
SPARSE = layout("fs_sparse")
_OPTIONS = layout("fs_context_options")
_ROWS = layout("fs_rows")
_ONE_MATRIX, _MATRICES = layout("fs_matrix"), layout("fs_matrix", "fs_matrix")
_SPARSE_AND_MATRIX = layout("fs_sparse", "fs_matrix")
pack_matrix_size = _ONE_MATRIX.size


class Error(Exception):
    """An error of the library; the text is its message.

    The exceptions raised are the five below, which are also ValueError, MemoryError, NotImplementedError, RuntimeError
    and OSError.
    """


class InvalidArgument(Error, ValueError):
    """An argument is wrong (FS_EINVAL)."""


class OutOfMemory(Error, MemoryError):
    """Out of memory (FS_ENOMEM)."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not supported by this backend (FS_EUNSUPPORTED)."""


class BackendError(Error, RuntimeError):
    """The backend could not be loaded, or its device failed (FS_EBACKEND)."""


class FileError(Error, OSError):
    """A file cannot be read or written, or is malformed (FS_EFILE)."""


_ERRORS = {1: InvalidArgument, 2: OutOfMemory, 3: Unsupported, 4: BackendError, 5: FileError}


def _open() -> ctypes.CDLL:
    said = os.environ.get("FLASHSKETCH_LIBRARY")
    if said:
        return ctypes.CDLL(said)
    # An editable install has two folders: the sources and the build.
    for folder in sys.modules[__package__].__path__:
        path = pathlib.Path(folder, "libflashsketch.so")
        if path.exists():
            return ctypes.CDLL(str(path))
    raise ImportError(
        "libflashsketch.so is not beside the Python package: install it with `pip install .`, or set "
        "FLASHSKETCH_LIBRARY to the library of a build"
    )


def _functions(lib: ctypes.CDLL) -> None:
    address, integer, count, real, text = (
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int64,
        ctypes.c_double,
        ctypes.c_char_p,
    )
    multiply = [address, address, count, real, address, real, address]
    for name, result, arguments in [
        ("fs_error_message", text, []),
        ("fs_result_name", text, [integer]),
        ("fs_version", text, []),
        ("fs_definition_version", integer, []),
        ("fs_family_name", text, [integer]),
        ("fs_shuffle_name", text, [integer]),
        ("fs_quality_name", text, [integer]),
        ("fs_dtype_from_name", integer, [text, address]),
        ("fs_dtype_size", ctypes.c_size_t, [integer]),
        ("fs_sketch_create", integer, [address, address]),
        ("fs_sketch_destroy", None, [address]),
        ("fs_sketch_spec", integer, [address, address]),
        ("fs_sketch_digest", integer, [address, address, count, count, address]),
        ("fs_sketch_nnz", integer, [address, count, count, address]),
        ("fs_sketch_to_csr", integer, [address, address, count, address]),
        ("fs_context_create", integer, [address, address]),
        ("fs_context_destroy", None, [address]),
        ("fs_context_describe", integer, [address, address, ctypes.c_size_t]),
        ("fs_apply", integer, multiply),
        ("fs_apply_adjoint", integer, multiply),
        ("fs_apply_sparse", integer, multiply),
        ("fs_apply_rows", integer, [address, address, count, real, address, address, real, address]),
        ("fs_workspace_create", integer, [address, address, address]),
        ("fs_workspace_destroy", None, [address]),
        ("fs_workspace_views", integer, [address, address, address]),
        ("fs_workspace_set_sketch", integer, [address, address]),
        ("fs_task_sketch", integer, [address, address, address, address]),
        ("fs_gram", integer, [address, address, address, address]),
        ("fs_gram_error", integer, [address, address, address, address]),
        ("fs_ose", integer, [address, address, address, ctypes.c_uint64, address]),
        ("fs_solve", integer, [address, real, address, address]),
        ("fs_ridge", integer, [address, real, address, address]),
        ("fs_residual", integer, [address, address, address, address, address]),
        ("fs_lstsq", integer, [address, address, address, address, address, address]),
        ("fs_qr", integer, [address, address, address, address, address, address, address]),
        ("fs_svd", integer, [address, address, address, address, address, address, address]),
        ("fs_pca", integer, [address, address, address, address, address, address, address, address]),
        ("fs_leverage", integer, [address, address, address, address, address]),
        ("fs_plan", integer, [address, address]),
        ("fs_attribution_create", integer, [address, address, address]),
        ("fs_attribution_destroy", None, [address]),
        ("fs_attribution_mask", integer, [address, address]),
        ("fs_attribution_project", integer, [address, address, address]),
        ("fs_attribution_add", integer, [address, count, address]),
        ("fs_attribution_project_layers", integer, [address, address, address]),
        ("fs_attribution_add_layers", integer, [address, count, address]),
        ("fs_attribution_added", integer, [address, address]),
        ("fs_attribution_features", integer, [address, address]),
        ("fs_attribution_restore", integer, [address, count, count]),
        ("fs_attribution_factor", integer, [address, real]),
        ("fs_attribution_scores", integer, [address, address, address, real, real, address]),
        ("fs_attribution_top", integer, [address, count, count, integer, address, address]),
    ]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


lib = _open()
_functions(lib)
version: str = lib.fs_version().decode()
definition_version: int = lib.fs_definition_version()


def _dtype(name: bytes) -> int:
    number = ctypes.c_int()
    if lib.fs_dtype_from_name(name, ctypes.byref(number)):
        raise ImportError(lib.fs_error_message().decode())
    return number.value


F32, F64, F16, BF16 = map(_dtype, (b"float32", b"float64", b"float16", b"bfloat16"))
ITEMSIZE = {dtype: lib.fs_dtype_size(dtype) for dtype in (F32, F64, F16, BF16)}


def numbers_by_name(name_of: Callable[[int], bytes]) -> Dict[str, int]:
    """The values of an enumeration of the library, which count from 1, by their names."""
    found: Dict[str, int] = {}
    while True:
        name = name_of(len(found) + 1).decode()
        if name == "unknown":
            return found
        found[name] = len(found) + 1


_apply, _adjoint, _csr = lib.fs_apply, lib.fs_apply_adjoint, lib.fs_apply_sparse


def failure(result: int) -> Error:
    """The exception for a result that is not FS_OK, with the library's message."""
    return _ERRORS.get(result, Error)(lib.fs_error_message().decode())


def check(result: int) -> None:
    if result:
        raise failure(result)


def whole(name: str, value: Any, low: int = -(2**63), high: int = 2**63 - 1, *, who: str = "Sketch") -> int:
    """An argument as an int from low to high.  ctypes silently keeps the last 64 bits of a larger number, so every
    number for the library is checked here."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} is {value!r}, it must be an integer") from None
    if not low <= number <= high:
        raise ValueError(f"{who}: {name} is {number}, it must be from {low} to {high}")
    return number


# A view of a matrix from the frameworks' adapters: address of element (0, 0), rows, columns, row stride, column stride
# (in elements, any sign), dtype, device.
View = Tuple[int, int, int, int, int, int, int]


class Context:
    """An fs_context and the memory that its arguments are written to.  For one call at a time."""

    __slots__ = ("pointer", "memory", "first", "second", "sparse_second", "workspace")

    def __init__(self, device: int, stream: int) -> None:
        self.pointer: Optional[int] = None
        self.workspace: Optional[Tuple[Tuple[int, ...], int]] = None  # of the last task, by its shape
        options = ctypes.create_string_buffer(_OPTIONS.size)
        backend, number = (_CPU, 0) if device == HOST else (_CUDA, device)
        threads = 1 if _forked else _threads
        _OPTIONS.pack_into(
            options, 0, _OPTIONS.size, backend, threads, number, stream, 0, 0, 0, PRECISIONS[_precision], 0
        )
        out = ctypes.c_void_p()
        check(lib.fs_context_create(ctypes.byref(out), options))
        self.pointer = out.value
        self.memory = ctypes.create_string_buffer(max(_MATRICES.size, _SPARSE_AND_MATRIX.size))
        self.first = ctypes.addressof(self.memory)
        self.second = self.first + _MATRICES.size // 2
        self.sparse_second = self.first + SPARSE.size

    def drop_workspace(self, destroy: Any = lib.fs_workspace_destroy) -> None:
        if self.workspace is not None:
            destroy(self.workspace[1])
            self.workspace = None

    def __del__(self, destroy: Any = lib.fs_context_destroy) -> None:
        self.drop_workspace()
        destroy(self.pointer)

    def describe(self) -> str:
        text = ctypes.create_string_buffer(512)
        lib.fs_context_describe(self.pointer, text, 512)
        return text.value.decode()


# Contexts that no call is using, by device and stream.  A call takes one out and puts it back, so that there are as
# many as simultaneous calls, from any threads.  list.pop and list.append are atomic.  Contexts are kept: a captured
# CUDA graph keeps using the scratch memory of the one it was captured with.
_idle: Dict[Tuple[int, int], List[Context]] = {}
_inherited: List[Any] = []
_threads = 0
_forked = False  # whether this process was created by fork
_precision = "full"


def configure(*, threads: Optional[int] = None, precision: Optional[str] = None) -> None:
    """Sets how products are computed from now on, in the whole process.

    threads: on a CPU, at most 1024; 0, the default, is OpenMP's own number (the variable OMP_NUM_THREADS).  The result
    does not depend on it.  A process created by fork always uses one thread, because GNU's OpenMP cannot start more
    there; a spawned one has no such limit.  precision: of float32 sums on a GPU; "full", the default, or "fast", which
    may drop the last 8 of an element's 24 bits.

    >>> import flashsketch as fs
    >>> fs.configure(threads=1)
    >>> fs.configure(threads=0, precision="full")
    """
    global _idle, _threads, _precision
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(f"configure: precision is {precision!r}, it must be 'full' or 'fast'")
    _threads = _threads if threads is None else whole("threads", threads, 0, MOST_THREADS, who="configure")
    _precision = precision or _precision
    _idle = {}


def describe() -> str:
    """Two lines of text: the CPU backend of this machine, and the first GPU or the reason why there is none.

    >>> import flashsketch as fs
    >>> print(fs.describe())                                    # doctest: +ELLIPSIS
    cpu, variant ...
    """
    lines = []
    for device in (HOST, 0):
        try:
            lines.append(Context(device, 0).describe())
        except Error as error:
            lines.append(str(error))
    return "\n".join(lines)


def _after_fork() -> None:
    # GNU's OpenMP hangs in the child of a process that has used it, unless the child stays with one thread.  The child
    # must not free the parent's contexts.
    global _idle, _forked
    _inherited.append(_idle)
    _idle, _forked = {}, True


os.register_at_fork(after_in_child=_after_fork)


def _borrow(device: int, stream: int) -> Tuple[List[Context], Context]:
    pool = _idle.get((device, stream))
    if pool is None:
        pool = _idle.setdefault((device, stream), [])
    try:
        return pool, pool.pop()
    except IndexError:
        return pool, Context(device, stream)


def _parts(view: View) -> Tuple[int, ...]:
    """The fields of an fs_matrix.  Its data is the start of the buffer, which with negative strides differs from the
    address of element (0, 0)."""
    address, rows, cols, row_stride, col_stride, dtype, device = view
    offset = 0
    if row_stride < 0 < rows:
        offset -= (rows - 1) * row_stride
    if col_stride < 0 < cols:
        offset -= (cols - 1) * col_stride
    if offset:
        address -= offset * ITEMSIZE[dtype]
    return address, rows, cols, row_stride, col_stride, offset, 0, dtype, device != HOST


@contextlib.contextmanager
def borrowed(device: int, stream: int) -> Iterator[Context]:
    """A context for the calls of one task."""
    pool, context = _borrow(device, stream)
    try:
        yield context
    finally:
        pool.append(context)


def pack_matrix(view: View) -> bytes:
    """The address of an fs_matrix."""
    return _ONE_MATRIX.pack(*_parts(view))


def multiply(
    handle: int, adjoint: bool, row0: int, alpha: float, source: View, beta: float, target: View, stream: int
) -> None:
    """target = beta target + alpha S source, or S' source."""
    pool, context = _borrow(source[6], stream)
    try:
        _MATRICES.pack_into(context.memory, 0, *_parts(source), *_parts(target))
        result = (_adjoint if adjoint else _apply)(
            context.pointer, handle, row0, alpha, context.first, beta, context.second
        )
        if result:
            raise failure(result)
    finally:
        pool.append(context)


def multiply_rows(
    handle: int, row0: int, alpha: float, source: View, listed: Tuple[int, int, int], beta: float, target: View,
    stream: int
) -> None:
    """target = beta target + alpha S source[rows], rows given by the address, the number and the bytes of indices in
    source's memory space."""
    address, count, size = listed
    rows = _ROWS.pack(count, INDEX[size], address, source[6] != HOST)
    with borrowed(source[6], stream) as context:
        _MATRICES.pack_into(context.memory, 0, *_parts(source), *_parts(target))
        check(lib.fs_apply_rows(context.pointer, handle, row0, alpha, context.first, rows, beta, context.second))


def multiply_sparse(
    handle: int,
    row0: int,
    alpha: float,
    fields: Tuple[int, ...],
    beta: float,
    target: View,
    stream: int,
) -> None:
    """target = beta target + alpha S source for a sparse source, given by the fields of an fs_sparse."""
    pool, context = _borrow(target[6], stream)
    try:
        _SPARSE_AND_MATRIX.pack_into(context.memory, 0, *fields, *_parts(target))
        check(_csr(context.pointer, handle, row0, alpha, context.first, beta, context.sparse_second))
    finally:
        pool.append(context)
