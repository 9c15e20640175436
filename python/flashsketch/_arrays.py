"""Arrays of other libraries: reading them, and creating new ones like them.

An adapter knows one framework.  It is found by an array's type and kept, so that a call looks it up once.  Adapters
copy nothing, because a matrix is an address and two strides, except arrays of other than the library's four types:
their own framework converts them first (`taken`).
"""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy

from ._library import (
    BF16,
    CSC,
    CSR,
    DTYPE_NAMES,
    F16,
    F32,
    F64,
    HOST,
    INDEX,
    ITEMSIZE,
    View,
    multiply,
    multiply_rows,
    multiply_sparse,
)

# The result of `Adapter.read`: address, shape, strides in elements, dtype, device, the object that must live while it
# is used.
Reading = Tuple[int, Tuple[int, ...], Tuple[int, ...], int, int, Any]


class Product:
    """The request: S[:, row0 : row0 + rows], or its transpose, times an array; with `batch` the arrays are n x d and n
    x k, and their transposes are multiplied.  `listed`, from Adapter.listed: the rows of the array that are multiplied,
    `rows` of them; None: all."""

    __slots__ = ("sketch", "adjoint", "row0", "rows", "batch", "listed")

    def __init__(self, sketch: Any, adjoint: bool, row0: int, rows: int, batch: bool, listed: Any = None) -> None:
        self.sketch, self.adjoint, self.row0, self.rows, self.batch = sketch, adjoint, row0, rows, batch
        self.listed = listed

    def source_rows(self) -> int:
        return self.sketch.k if self.adjoint else self.rows

    def target_rows(self) -> int:
        return self.rows if self.adjoint else self.sketch.k


class Adapter:
    """One framework; subclasses read and create its arrays."""

    name = ""

    def read(self, array: Any) -> Reading:
        raise NotImplementedError

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        """An uninitialised array, C-ordered, on like's device, of like's type or of the named one."""
        raise NotImplementedError

    def floating(self, array: Any) -> Any:
        """The array, in one of the library's types: the array itself or a converted copy."""
        dtype = array.dtype
        if dtype in _DTYPES:
            return array
        wanted = working_type(dtype)
        return array if wanted is None else self.cast(array, wanted)

    def cast(self, array: Any, dtype: Any) -> Any:
        """A copy of another type, "float32" or "float64" (or a type of NumPy's)."""
        return array.astype(dtype)

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        """Some of `count` rows, given by their numbers or by a mask, as a packed vector of int32 or int64 on like's
        device."""
        return host_list(rows, count)

    def address(self, listed: Any) -> int:
        """The address of such a vector."""
        address: int = listed.__array_interface__["data"][0]
        return address

    def reshape(self, array: Any, shape: Tuple[int, ...]) -> Any:
        """The same elements in C order, copied where necessary."""
        return array.reshape(shape)

    def stream(self, device: int) -> int:
        """The handle of the framework's current stream."""
        return 0

    def brought(self, array: numpy.ndarray, like: Any) -> Any:
        """A packed NumPy array, float32, float64 or int64, as one of this framework, on like's device."""
        raise NotImplementedError

    def fetched(self, array: Any) -> Any:
        """An array, float32 or float64, as one of NumPy."""
        return numpy.asarray(array)

    def written(self, array: Any) -> None:
        """Notifies the framework that an array of the caller's was written to."""

    def product(self, what: Product, array: Any) -> Any:
        """The product in a new array."""
        reading = self.read(array)
        source = matrix(reading, what.batch, "A")
        check_rows(what, source[1])
        target = self.empty(array, target_shape(what, reading[1]))
        self.run(what, 1.0, source, 0.0, matrix(self.read(target), what.batch, "out"))
        return target

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        """target = beta target + alpha product."""
        if adapter_of(target) is not self:
            raise TypeError(
                f"a product of {_kind(array)} does not go into {_kind(target)}: both must be of one framework"
            )
        reading, place_for = self.read(array), self.read(target)
        source = matrix(reading, what.batch, "A")
        check_rows(what, source[1])
        self.run(what, alpha, source, beta, matrix(place_for, what.batch, "out"))
        self.written(target)

    def run(self, what: Product, alpha: float, source: View, beta: float, target: View) -> None:
        device = source[6]
        if target[6] != device:
            raise ValueError(f"A is {place(device)} and the result {place(target[6])}: both must be on one device")
        self.call(what, alpha, source, beta, target, 0 if device == HOST else self.stream(device))

    def call(self, what: Product, alpha: float, source: View, beta: float, target: View, stream: int) -> None:
        if what.listed is None:
            multiply(what.sketch._handle, what.adjoint, what.row0, alpha, source, beta, target, stream)
        else:
            listed = self.address(what.listed), what.rows, what.listed.dtype.itemsize
            multiply_rows(what.sketch._handle, what.row0, alpha, source, listed, beta, target, stream)


def host_list(rows: Any, count: int, checked: bool = False) -> Any:
    """Numbers of some of `count` rows, or a mask of them, as a packed NumPy vector of int32 or int64.  checked: numbers
    are compared with `count` here, for a list that goes to a GPU, where the library cannot; other lists are checked by
    the library."""
    array = numpy.asarray(rows)
    if check_list(array.shape, array.dtype, array.dtype.kind, count):
        return numpy.flatnonzero(array)
    if checked or array.dtype.itemsize == 8 and array.dtype.kind == "u":  # int64 does not hold all of uint64
        wrong = numpy.flatnonzero((array < 0) | (array >= count))
        if wrong.size:
            raise ValueError(f"number {wrong[0]} of a list of rows is {array[wrong[0]]}, and there are {count} rows")
    return numpy.ascontiguousarray(array if array.dtype in ("int32", "int64") else array.astype("int64"))


def check_list(shape: Tuple[int, ...], dtype: Any, kind: str, count: int) -> bool:
    """Whether a list of some of `count` rows is a mask.  kind: of its dtype, NumPy's letter."""
    if len(shape) != 1:
        raise ValueError(f"a list of rows has shape {tuple(shape)}, it must be a vector")
    if kind == "b":
        if shape[0] != count:
            raise ValueError(f"a mask of rows has {shape[0]} elements, and there are {count} rows: it needs as many")
        return True
    if kind not in "iu" and shape[0]:  # an empty list has some type, too
        raise TypeError(f"a list of rows has dtype {dtype}, it must be of integers, or a mask of bool")
    return False


def matrix(reading: Reading, batch: bool, name: str) -> View:
    """The matrix that an array is; a vector is a column."""
    address, shape, strides, dtype, device, _ = reading
    if len(shape) == 2:
        if batch:
            return address, shape[1], shape[0], strides[1], strides[0], dtype, device
        return address, shape[0], shape[1], strides[0], strides[1], dtype, device
    if len(shape) == 1:
        return address, shape[0], 1, strides[0], 1, dtype, device
    raise ValueError(f"{name} has shape {tuple(shape)}; a sketch takes vectors and matrices")


def source_rows(array: Any, batch: bool) -> int:
    """The rows of the matrix that an array is."""
    if len(array.shape) not in (1, 2):
        raise ValueError(f"an array has shape {tuple(array.shape)}; a sketch takes vectors and matrices")
    rows: int = array.shape[-1 if batch else 0]
    return rows


def target_shape(what: Product, shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """The shape of the product with an array of that shape."""
    rows = what.target_rows()
    return (rows,) if len(shape) == 1 else (shape[0], rows) if what.batch else (rows, shape[1])


def check_writeable(target: Any) -> None:
    if isinstance(target, numpy.ndarray) and not target.flags.writeable:
        raise ValueError("the result cannot go into an array that is not writeable")


def place(device: int) -> str:
    return "in host memory" if device == HOST else f"on GPU {device}"


def check_rows(what: Product, rows: int) -> None:
    """Whether an array has the rows that S, or the row slice, multiplies; gathered rows are checked by the library."""
    expected = what.source_rows()
    if rows == expected or what.listed is not None:
        return
    k, d = what.sketch.k, what.sketch.d
    if what.adjoint:
        raise ValueError(f"Y has {rows} {'columns' if what.batch else 'rows'}, and S is {k} x {d}: Y must have k = {k}")
    raise ValueError(
        f"A has {rows} {'columns' if what.batch else 'rows'}, and S is {k} x {d}: A must have d = {d}; "
        "for a row slice of A give row0, its first row"
    )


def _kind(array: Any) -> str:
    return f"{type(array).__module__}.{type(array).__qualname__}"


def unknown_dtype(dtype: Any, cast: str = "A.astype('float64')") -> TypeError:
    """The error for a dtype that is not converted. cast: the call of the array's framework that converts it."""
    how = "S is real, so sketch A.real and A.imag" if "complex" in str(dtype) else f"convert it first, {cast}"
    return TypeError(
        f"an array's dtype is {dtype}; a sketch takes {DTYPE_NAMES}, and converts integers and bool: {how}"
    )


_DTYPES: Dict[Any, int] = {
    numpy.dtype("float32"): F32,
    numpy.dtype("float64"): F64,
    numpy.dtype("float16"): F16,
}


def dtype_code(dtype: Any) -> int:
    """The library's constant for a NumPy dtype; bfloat16 is that of the package ml_dtypes."""
    code = _DTYPES.get(dtype)
    if code is None:
        if getattr(dtype, "name", "") != "bfloat16":
            raise unknown_dtype(dtype)
        code = _DTYPES[dtype] = BF16
    return code


def working_type(dtype: Any) -> Any:
    """The type to which arrays of a NumPy dtype are converted before they are sketched: integers to a type that is
    exact up to 24 or 53 bits, others to the machine's byte order; None where the dtype is one of the four."""
    if dtype.kind in "biu":
        return "float32" if dtype.itemsize <= 2 else "float64"
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    dtype_code(native)
    return None if dtype.isnative else native


def element_strides(strides: Tuple[int, ...], size: int) -> Tuple[int, ...]:
    for stride in strides:
        if stride % size:
            raise ValueError(
                f"an array has a stride of {stride} bytes, which is not a multiple of its {size}-byte elements"
            )
    return tuple([stride // size for stride in strides])


class NumPy(Adapter):
    name = "numpy"

    def read(self, array: Any) -> Reading:
        dtype = array.dtype
        code = _DTYPES.get(dtype) or dtype_code(dtype)
        return (
            array.__array_interface__["data"][0],
            array.shape,
            element_strides(array.strides, ITEMSIZE[code]),
            code,
            HOST,
            array,
        )

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        return numpy.empty(shape, dtype or like.dtype)

    def brought(self, array: numpy.ndarray, like: Any) -> Any:
        return array

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        check_writeable(target)
        super().into(what, alpha, array, beta, target)


class Sparse(Adapter):
    """SciPy's sparse matrices and arrays; CSR and CSC as they are, others after their tocsr(), and those of one
    dimension as a single row.  Products are dense."""

    name = "scipy.sparse"
    dense: Adapter  # the framework of its arrays, and of the product

    def __init__(self, dense: Adapter) -> None:
        self.dense = dense

    def sketches(self, sketch: Any, A: Any, B: Any) -> List[Any]:
        """S A, and S B where there is a dense B, in the type of sums: the input of a task."""
        return [sketch @ A] if B is None else [sketch @ A, sketch @ B]

    def fetched(self, array: Any) -> Any:
        return self.dense.fetched(array.toarray())

    def residuals(self, A: Any, x: Any, B: Any) -> Any:
        """|A x - B| of each column."""
        gap = A @ x.astype("float64") - B
        return numpy.atleast_1d(numpy.sqrt((gap * gap).sum(axis=0)))

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        raise TypeError(f"{_kind(like)} is sparse, and rows are gathered from dense arrays: use A[rows]")

    def product(self, what: Product, array: Any) -> Any:
        compressed = lines(array)
        target = self.dense.empty(compressed.data, target_shape(what, array.shape))
        self._multiply(what, 1.0, compressed, len(array.shape) == 1, 0.0, target)
        return target

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        if adapter_of(target) is not self.dense:
            raise TypeError(f"the product with {_kind(array)} is dense and does not go into {_kind(target)}")
        check_writeable(target)
        self._multiply(what, alpha, lines(array), len(array.shape) == 1, beta, target)

    def _multiply(self, what: Product, alpha: float, array: Any, vector: bool, beta: float, target: Any) -> None:
        """The product with the result of `lines`, for a vector or a matrix."""
        if what.adjoint:
            raise TypeError("S.T @ Y needs a dense Y; use Y.toarray()")
        turned = what.batch or vector
        rows = array.shape[1] if turned else array.shape[0]
        check_rows(what, rows)
        fields, device, _keep = self.fields(array, turned)
        view = matrix(self.dense.read(target), what.batch, "out")
        stream = 0 if device == HOST else self.dense.stream(device)
        multiply_sparse(what.sketch._handle, what.row0, alpha, fields, beta, view, stream)

    def fields(self, array: Any, turned: bool = False) -> Tuple[Tuple[int, ...], int, Any]:
        """The fields of an fs_sparse for a CSR or CSC matrix, or for its transpose; the device; the object that must
        live."""
        # The transpose of a CSR matrix is a CSC matrix of the same arrays.
        csr = (array.format == "csr") != turned
        rows, cols = reversed(array.shape) if turned else array.shape
        pointers, indices, values = _packed(array.indptr), _packed(array.indices), _packed(array.data)
        if pointers.dtype != indices.dtype:
            pointers, indices = pointers.astype("int64"), indices.astype("int64")
        count, nnz = rows if csr else cols, array.nnz
        if len(pointers) != count + 1 or nnz > min(len(indices), len(values)):
            raise ValueError(
                f"a sparse matrix of {count} lines and {nnz} nonzeros has arrays of {len(pointers)}, {len(indices)} "
                f"and {len(values)} elements"
            )
        value = self.dense.read(values)
        arrays = self.dense.address(pointers), self.dense.address(indices), value[0]
        kind, index = CSR if csr else CSC, INDEX[indices.dtype.itemsize]
        fields = (kind, index, rows, cols, nnz, *arrays, value[3], value[4] != HOST)
        return fields, value[4], (pointers, indices, values)


def lines(array: Any) -> Any:
    """A sparse array as CSR or CSC; a vector as a matrix of one row."""
    if len(array.shape) == 1:
        array = array.tocoo().reshape((1, array.shape[0]))
    return array if array.format in ("csr", "csc") else array.tocsr()


def _packed(array: Any) -> Any:
    return array if array.flags.c_contiguous else array.copy()


# DLPack: the layout of struct DLTensor, after DLPack's own header dlpack.h.
_TENSOR = struct.Struct("@P2iiBBH3P")  # data, device, ndim, dtype (code, bits, lanes), shape, strides, byte_offset
_DLPACK_DTYPES = {(2, 32): F32, (2, 64): F64, (2, 16): F16, (4, 16): BF16}
_DLPACK_HOST, _DLPACK_CUDA = (1, 3), (2, 13)  # and pinned host memory, managed memory

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def dlpack_address(capsule: Any) -> int:
    """Where the elements of a capsule of any type begin."""
    tensor = _capsule_pointer(capsule, b"dltensor")
    data, *_, offset = _TENSOR.unpack(ctypes.string_at(tensor, _TENSOR.size))
    first: int = data + offset
    return first


def read_dlpack(capsule: Any) -> Reading:
    """Reads an array from the capsule of its __dlpack__ without consuming it: the capsule, which is returned as the
    object that must live, releases the memory when it is dropped."""
    address = _capsule_pointer(capsule, b"dltensor")
    data, kind, number, ndim, code, bits, lanes, shape_at, strides_at, offset = _TENSOR.unpack(
        ctypes.string_at(address, _TENSOR.size)
    )
    dtype = _DLPACK_DTYPES.get((code, bits))
    if dtype is None or lanes != 1:
        raise unknown_dtype(f"DLPack's type {code} of {bits} bits")
    if kind not in _DLPACK_HOST + _DLPACK_CUDA:
        raise ValueError(f"an array is on a device of DLPack's kind {kind}; a sketch takes host memory and CUDA's")
    numbers = struct.Struct(f"@{ndim}q")
    shape = numbers.unpack(ctypes.string_at(shape_at, numbers.size))
    if strides_at:
        strides = numbers.unpack(ctypes.string_at(strides_at, numbers.size))
    else:
        packed = [1]
        for size in shape[:0:-1]:
            packed.append(packed[-1] * size)
        strides = tuple(reversed(packed))[:ndim]
    return data + offset, shape, strides, dtype, HOST if kind in _DLPACK_HOST else number, capsule


class ArrayAPI(Adapter):
    """Any array of the array API standard (data-apis.org) in host memory.  On a GPU the current stream of such an array
    is not known."""

    name = "array API"

    def read(self, array: Any) -> Reading:
        reading = read_dlpack(array.__dlpack__())
        if reading[4] != HOST:
            raise TypeError(f"{_kind(array)} is on a GPU; there a sketch takes arrays of PyTorch, CuPy and JAX")
        return reading

    def floating(self, array: Any) -> Any:
        space, dtype = array.__array_namespace__(), array.dtype
        if not space.isdtype(dtype, ("bool", "integral")):
            return array
        narrow = space.isdtype(dtype, "bool") or space.iinfo(dtype).bits <= 16
        return space.astype(array, space.float32 if narrow else space.float64)

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        space = like.__array_namespace__()
        return space.empty(shape, dtype=getattr(space, dtype) if dtype else like.dtype, device=like.device)

    def reshape(self, array: Any, shape: Tuple[int, ...]) -> Any:
        return array.__array_namespace__().reshape(array, shape)

    def brought(self, array: numpy.ndarray, like: Any) -> Any:
        space = like.__array_namespace__()
        copy = space.empty(array.shape, dtype=getattr(space, array.dtype.name), device=like.device)
        keep = copy.__dlpack__()
        ctypes.memmove(dlpack_address(keep), array.ctypes.data, array.nbytes)
        return copy

    def fetched(self, array: Any) -> Any:
        return numpy.from_dlpack(array)


def _scipy() -> Adapter:
    return Sparse(adapter_of(numpy.empty(0)))


def _from_module(name: str) -> Callable[[], Adapter]:
    def make() -> Adapter:
        adapter: Adapter = importlib.import_module(f"flashsketch._{name}").ADAPTER
        return adapter

    return make


# A class is recognised by the package that it, or a base of it, comes from, and by an attribute that only arrays have.
_FRAMEWORKS: Dict[str, Tuple[str, Callable[[], Adapter]]] = {
    "numpy": ("__array_interface__", NumPy),
    "scipy": ("tocsr", _scipy),
    "torch": ("data_ptr", _from_module("torch")),
    "cupy": ("__cuda_array_interface__", _from_module("cupy")),
    "cupyx": ("tocsr", _from_module("cupyx")),
    "dask": ("chunks", _from_module("dask")),
    "jax": ("aval", _from_module("jax")),
    "jaxlib": ("aval", _from_module("jax")),
}
_made: Dict[str, Adapter] = {}
_by_type: Dict[type, Adapter] = {}


def _find(array: Any) -> Optional[Adapter]:
    if isinstance(array, numpy.ma.MaskedArray):
        raise TypeError("a sketch takes no masked arrays: fill the masked elements first (A.filled(0))")
    if isinstance(array, (numpy.generic, type)):
        return None
    for base in type(array).__mro__:
        name = base.__module__.partition(".")[0]
        if name in _FRAMEWORKS:
            attribute, make = _FRAMEWORKS[name]
            if not hasattr(array, attribute):
                return None
            if name not in _made:
                _made[name] = make()
            return _made[name]
    if hasattr(array, "__array_namespace__") and hasattr(array, "__dlpack__"):
        return _made.setdefault("array API", ArrayAPI())
    return None


def load_torch() -> None:
    """Loads PyTorch's adapter, where PyTorch is in use: torch.compile cannot import while it traces a call."""
    torch = sys.modules.get("torch")
    if "torch" not in _made and hasattr(getattr(torch, "library", None), "custom_op"):
        adapter = _made["torch"] = _FRAMEWORKS["torch"][1]()
        _by_type[torch.Tensor] = _by_type[torch.nn.Parameter] = adapter  # type: ignore[union-attr]


def adapter_of(array: Any) -> Adapter:
    """The adapter of an array's framework."""
    adapter = _by_type.get(type(array))
    if adapter is None:
        adapter = _find(array)
        if adapter is None:
            raise TypeError(
                f"{_kind(array)} is not an array that a sketch takes: NumPy, PyTorch, CuPy, JAX, SciPy sparse, Dask"
            )
        _by_type[type(array)] = adapter
    return adapter


def taken(array: Any) -> Tuple[Adapter, Any]:
    """The caller's input as an array in one of the library's types, and its adapter.  Lists, and objects that only have
    __array__ (a DataFrame), become NumPy's.  Not for arrays that results are written to."""
    adapter = _by_type.get(type(array))
    if adapter is None:
        if _find(array) is None and _listlike(array):
            array = numpy.asarray(array)
        adapter = adapter_of(array)
    return adapter, adapter.floating(array)


def _listlike(array: Any) -> bool:
    """Whether NumPy should convert an object to an array; objects of known frameworks other than their arrays stay
    refused."""
    known = any(base.__module__.partition(".")[0] in _FRAMEWORKS for base in type(array).__mro__)
    return isinstance(array, (list, tuple)) or (hasattr(type(array), "__array__") and not known)
