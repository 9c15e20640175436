"""Sketch: the random matrix S, and its products with arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy

from ._arrays import Adapter, Product, adapter_of, load_torch, source_rows, taken
from ._layouts import members
from ._library import CSR, F32, F64, INDEX, SPARSE, SPEC, check, definition_version, lib, numbers_by_name, whole

if TYPE_CHECKING:
    import scipy.sparse

FAMILIES = numbers_by_name(lib.fs_family_name)
SHUFFLES = numbers_by_name(lib.fs_shuffle_name)
QUALITIES = numbers_by_name(lib.fs_quality_name)
_FAMILY_NAMES = {number: name for name, number in FAMILIES.items()}
_SHUFFLE_NAMES = {number: name for name, number in SHUFFLES.items()}
_QUALITY_NAMES = {number: name for name, number in QUALITIES.items()}

_FIELDS = tuple(member for member, _ in members("fs_spec")[1:-1])  # after its size, and before its quality
_FLOAT64 = numpy.dtype("float64")
_OWN = {"blockperm": ("M", "kappa", "s", "shuffle"), "sjlt": ("s",), "blockrow": ("M", "kappa", "s")}


def _named(name: str, value: Any, numbers: Dict[str, int]) -> int:
    if value not in numbers:
        raise ValueError(f"Sketch: {name} is {value!r}, it must be one of {', '.join(numbers)}")
    return numbers[value]


class _Operator:
    """The interface that scipy.sparse.linalg.aslinearoperator requires of an object with a shape, `@` and T."""

    __slots__ = ()

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """float64, for SciPy.  A product has the type of the multiplied array."""
        return _FLOAT64

    def matvec(self, x: Any) -> Any:
        """The product with a vector, as with `@`: for SciPy's linear operators."""
        return self.__matmul__(x)

    def rmatvec(self, x: Any) -> Any:
        """The product of the transpose with a vector."""
        return self.T.__matmul__(x)

    def matmat(self, X: Any) -> Any:
        """The product with a matrix."""
        return self.__matmul__(X)

    def rmatmat(self, X: Any) -> Any:
        """The product of the transpose with a matrix."""
        return self.T.__matmul__(X)

    @property
    def T(self) -> Any:
        raise NotImplementedError

    def __matmul__(self, A: Any) -> Any:
        raise NotImplementedError


class Sketch(_Operator):
    """The k x d random matrix S, defined by a few numbers and a seed: the same on every machine, CPU or GPU.

    S is never in memory.  `S @ A`, `S.project(X)` and `S.T @ Y` take arrays of NumPy, PyTorch, CuPy and JAX with any
    strides, in float32, float64, float16 and bfloat16, and `S @ A` and `S.project(X)` SciPy's sparse matrices too.  A
    product is an array of the same framework, on the same device, queued on its current stream.  Arrays of whole
    numbers and of bool are converted first, those of at most 16 bits to float32, wider ones to float64 (by JAX to its
    widest type), and so are arrays in the other byte order.  Lists, DataFrames and other objects with __array__ are
    converted to NumPy arrays.  A sketch never changes; threads may share it.

    `scipy.sparse.linalg.aslinearoperator(S)` is S among SciPy's linear operators.

    k: rows of S.  d: columns of S, rows of A.  seed: from 0 to 2^64 - 1.  The library chooses parameters that are not
    given; docs/definition.md explains them: family ("blockperm", "sjlt", "blockrow", "srht", "gaussian"), quality
    ("fast", "default", "high", "gaussian"), which chooses kappa and s where they are 0, M (blocks), kappa, s (nonzeros
    of a column, in each of kappa blocks), shuffle ("rows", "groups", "none"), interleave.  k is at least twice the rank
    of A, and four times that where few rows of A dominate.

    batch_major: choose the sketch that is fast for batches, n x d with contiguous samples, as `project` takes them:
    shuffle "groups". It is a different S; `@` and `project` work with either.

    >>> import numpy as np, flashsketch as fs
    >>> S = fs.Sketch(k=400, d=10000, seed=7)
    >>> S
    Sketch(k=400, d=10000, seed=7, family='blockperm', M=4, kappa=1, s=8, shuffle='rows')
    >>> A = np.random.default_rng(0).standard_normal((10000, 50), dtype=np.float32)
    >>> Y = S @ A
    >>> Y.shape, Y.dtype
    ((400, 50), dtype('float32'))
    >>> bool(abs(np.linalg.norm(Y) / np.linalg.norm(A) - 1) < 0.05)
    True
    """

    __slots__ = ("_handle", "_key", "_quality", "_k", "_d", "__weakref__")
    __array_ufunc__ = None  # `array @ sketch` is a TypeError, not a conversion of S to an array

    _handle: int
    _key: str  # the numbers of _FIELDS, which define S
    _quality: int  # the requested rung
    _k: int
    _d: int

    def __init__(
        self,
        k: int,
        d: int,
        seed: int = 0,
        *,
        family: str = "blockperm",
        quality: str = "default",
        M: int = 0,
        kappa: int = 0,
        s: int = 0,
        shuffle: Optional[str] = None,
        interleave: int = 0,
        batch_major: bool = False,
    ) -> None:
        number = _named("family", family, FAMILIES)
        if shuffle is None and batch_major and family == "blockperm":
            shuffle = "groups"
        dealt = 0 if shuffle is None else _named("shuffle", shuffle, SHUFFLES)
        size, bits = (whole("d", d), whole("k", k)), whole("seed", seed, 0, 2**64 - 1)
        blocks = (whole("M", M), whole("kappa", kappa), whole("s", s))
        rung = _named("quality", quality, QUALITIES)
        self._create((number, *size, bits, *blocks, dealt, whole("interleave", interleave), rung))

    def _create(self, spec: Tuple[int, ...]) -> None:
        load_torch()
        memory, out = ctypes.create_string_buffer(SPEC.pack(SPEC.size, *spec), SPEC.size), ctypes.c_void_p()
        check(lib.fs_sketch_create(ctypes.byref(out), memory))
        assert out.value is not None
        self._handle = out.value
        check(lib.fs_sketch_spec(self._handle, memory))
        *full, self._quality = SPEC.unpack(memory)[1:]
        self._d, self._k = full[1], full[2]
        self._key = " ".join(map(str, full))

    @classmethod
    def _from_key(cls, key: str) -> "Sketch":
        """A sketch with this _key; the last few are kept, for PyTorch's operator, which gets keys."""
        sketch = _recent.get(key)
        if sketch is None:
            sketch = cls._from_numbers(key, 0)
            if len(_recent) >= 64:
                _recent.clear()
            _recent[key] = sketch
        return sketch

    @classmethod
    def _from_numbers(cls, key: str, quality: int) -> "Sketch":
        sketch = cls.__new__(cls)
        sketch._create((*map(int, key.split()), quality))
        return sketch

    def __del__(self, destroy: Any = lib.fs_sketch_destroy) -> None:
        destroy(getattr(self, "_handle", None))  # there is none where __init__ refused

    # properties ---------------------------------------------------------------------------------------------------

    @property
    def k(self) -> int:
        """The rows of S."""
        return self._k

    @property
    def d(self) -> int:
        """The columns of S."""
        return self._d

    @property
    def shape(self) -> Tuple[int, int]:
        """(k, d)."""
        return self._k, self._d

    @property
    def quality(self) -> str:
        """The requested rung: "fast", "default", "high" or "gaussian". It chooses kappa and s where they are not given,
        and does not otherwise define S: sketches of the same kappa and s are equal.

        >>> import flashsketch as fs
        >>> S = fs.Sketch(k=400, d=10000, quality="high")
        >>> S.quality, S.spec["kappa"], S.spec["s"]
        ('high', 2, 8)
        >>> S == fs.Sketch(k=400, d=10000, kappa=2, s=8)
        True
        """
        return _QUALITY_NAMES[self._quality]

    @property
    def spec(self) -> Dict[str, Any]:
        """The parameters of S, with every value that the library chose: `fs.Sketch(**S.spec) == S`.

        >>> import flashsketch as fs
        >>> fs.Sketch(k=128, d=1000, family="sjlt").spec
        {'k': 128, 'd': 1000, 'seed': 0, 'family': 'sjlt', 's': 8}
        """
        numbers = dict(zip(_FIELDS, map(int, self._key.split())))
        family = _FAMILY_NAMES[numbers["family"]]
        spec: Dict[str, Any] = {"k": self.k, "d": self.d, "seed": numbers["seed"], "family": family}
        for name in _OWN.get(family, ()):
            spec[name] = _SHUFFLE_NAMES[numbers[name]] if name == "shuffle" else numbers[name]
        if spec.get("shuffle") == "groups":
            spec["interleave"] = numbers["interleave"]
        return spec

    def __repr__(self) -> str:
        shown = list(self.spec.items())
        if self.quality != "default" and self.spec["family"] in ("blockperm", "sjlt"):
            shown.insert(4, ("quality", self.quality))  # after the family
        return f"Sketch({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Sketch) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> Any:
        return _unpickle, (self._key, definition_version, self._quality)

    def digest(self) -> int:
        """64 bits that distinguish sketches: equal on every machine for equal sketches.  Costs a pass over S.

        >>> import flashsketch as fs
        >>> fs.Sketch(k=128, d=1000, seed=1).digest() == fs.Sketch(k=128, d=1000, seed=1).digest()
        True
        """
        out = ctypes.c_uint64()
        check(lib.fs_sketch_digest(None, self._handle, 0, self.d, ctypes.byref(out)))
        return out.value

    def to_scipy(self, dtype: Any = "float64") -> "scipy.sparse.csr_array":
        """S as a scipy.sparse.csr_array, in float32 or float64.

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000)
        >>> S.to_scipy().shape, S.to_scipy().nnz
        ((128, 1000), 8000)
        >>> A = np.ones((1000, 2))
        >>> bool(np.allclose(S @ A, S.to_scipy() @ A))
        True
        """
        import scipy.sparse

        kind = numpy.dtype(dtype)
        if kind not in ("float32", "float64"):
            raise ValueError(f"to_scipy: dtype is {kind}, it must be float32 or float64")
        count = ctypes.c_int64()
        check(lib.fs_sketch_nnz(self._handle, 0, self.d, ctypes.byref(count)))
        nnz = count.value
        index = numpy.dtype("int32" if max(nnz, self.d) < 2**31 else "int64")
        pointers, indices = numpy.empty(self.k + 1, index), numpy.empty(nnz, index)
        values = numpy.empty(nnz, kind)
        arrays = [array.__array_interface__["data"][0] for array in (pointers, indices, values)]
        memory = SPARSE.pack(
            CSR, INDEX[index.itemsize], self.k, self.d, nnz, *arrays, F32 if kind.itemsize == 4 else F64, 0
        )
        check(lib.fs_sketch_to_csr(None, self._handle, 0, memory))
        return scipy.sparse.csr_array((values, indices, pointers), shape=self.shape)

    # products -----------------------------------------------------------------------------------------------------

    def apply(self, A: Any, *, out: Any = None, row0: Optional[int] = None, rows: Any = None) -> Any:
        """S A, as `S @ A`.

        A is d x n, or a vector.  out: an array for the result, k x n, in A's type, or float32 where A's is a half type.
        row0: A is only rows row0 ... of the whole, and the product is S[:, row0 : row0 + rows] A.  rows: the product is
        S A[rows], without a copy of these rows: numbers from 0, in any order, d of them, or from row0 on; ascending is
        best.  Negative numbers are refused; they do not count from the end.  A mask, a bool for each row of A, selects
        its True elements.  For A on a GPU, rows is an array there, in which numbers that are not rows of A give NaN;
        other arrays are copied to it.

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000)
        >>> A = np.ones((1000, 3), np.float32)
        >>> Y = np.empty((128, 3), np.float32)
        >>> S.apply(A, out=Y) is Y
        True
        >>> parts = S.apply(A[:600], row0=0) + S.apply(A[600:], row0=600)
        >>> bool(np.allclose(parts, Y))
        True
        >>> odd = np.arange(1, 2000, 2)
        >>> B = np.random.default_rng(0).standard_normal((2000, 3))
        >>> bool((S.apply(B, rows=odd) == S @ B[odd]).all())
        True
        """
        return _multiply(self, A, out, row0, False, rows)

    def project(self, X: Any, *, out: Any = None, row0: Optional[int] = None, columns: Any = None) -> Any:
        """X S', for a batch: X is n x d, a sample a row, and the result n x k.  The same S as `S @ A`.

        row0: X is only columns row0 ... of the whole.  columns: the product is X[:, columns] S', numbers or a mask as
        apply's rows: a selection of coordinates and the sketch in one pass.

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000, batch_major=True)
        >>> X = np.random.default_rng(0).standard_normal((8, 1000))
        >>> S.project(X).shape
        (8, 128)
        >>> bool(np.allclose(S.project(X), (S @ X.T).T))
        True
        """
        return _multiply(self, X, out, row0, True, columns)

    def update(self, Y: Any, piece: Any, row0: int = 0, *, alpha: float = 1.0, rows: Any = None) -> Any:
        """Y += alpha S[:, row0 : row0 + rows] piece, for a matrix that arrives in row slices.  Returns Y.

        rows: of the slice, as apply's.  For batches pass transposes, which are not copied: S.update(Y.T, X.T, row0).

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000)
        >>> A = np.random.default_rng(0).standard_normal((1000, 3))
        >>> Y = np.zeros((128, 3))
        >>> for row0 in range(0, 1000, 300):
        ...     _ = S.update(Y, A[row0 : row0 + 300], row0)
        >>> bool(np.allclose(Y, S @ A))
        True
        """
        adapter, piece = taken(piece)
        what = _asked(self, adapter, piece, row0, False, rows)
        adapter.into(what, float(alpha), piece, 1.0, Y)
        return Y

    def __matmul__(self, A: Any) -> Any:
        return _multiply(self, A, None, None, False)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _torch_matmul(func, args)

    @property
    def T(self) -> "Adjoint":
        """The transpose of S, d x k.

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000)
        >>> (S.T @ np.ones((128, 3))).shape
        (1000, 3)
        """
        return Adjoint(self)


class Adjoint(_Operator):
    """The transpose of a sketch, `S.T`."""

    __slots__ = ("_sketch",)
    __array_ufunc__ = None

    _sketch: Sketch

    def __init__(self, sketch: Sketch) -> None:
        self._sketch = sketch

    @property
    def T(self) -> Sketch:
        """The sketch."""
        return self._sketch

    @property
    def shape(self) -> Tuple[int, int]:
        """(d, k)."""
        return self.T.d, self.T.k

    def __repr__(self) -> str:
        return f"{self.T!r}.T"

    def apply(self, Y: Any, *, out: Any = None, row0: int = 0, rows: Optional[int] = None) -> Any:
        """S' Y, as `S.T @ Y`.

        Y is k x n, or a vector.  out: an array for the result.  row0, rows: only these rows of the result, of d; all
        from row0 on if rows is not given.

        >>> import numpy as np, flashsketch as fs
        >>> S = fs.Sketch(k=128, d=1000)
        >>> Y = np.ones((128, 3))
        >>> bool((S.T.apply(Y, row0=600, rows=100) == (S.T @ Y)[600:700]).all())
        True
        """
        row0 = whole("row0", row0, 0, self.T.d)
        if rows is None:
            rows = self.T.d - row0
            if out is not None:
                adapter_of(out)
                rows = source_rows(out, False)
        return self._multiply(Y, out, row0, whole("rows", rows))

    def _multiply(self, Y: Any, out: Any, row0: int, rows: int) -> Any:
        if not 0 <= rows <= self.T.d - row0:
            raise ValueError(f"rows {row0} to {row0} + {rows} are not all in S.T, which has d = {self.T.d}")
        what = Product(self.T, True, row0, rows, False)
        adapter, Y = taken(Y)
        if out is None:
            return adapter.product(what, Y)
        adapter.into(what, 1.0, Y, 0.0, out)
        return out

    def __matmul__(self, Y: Any) -> Any:
        return self._multiply(Y, None, 0, self.T.d)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _torch_matmul(func, args)


def _torch_matmul(func: Any, args: Any) -> Any:
    """torch.matmul(S, A). torch.compile also calls it for `S @ A`, with the operands exchanged, which is unambiguous,
    because there is no `A @ S`."""
    import torch

    if func.__name__ in ("matmul", "__matmul__", "__rmatmul__") and len(args) == 2:
        left, right = args
        if isinstance(left, (Sketch, Adjoint)):
            return left.__matmul__(right)
        if torch.compiler.is_compiling():
            return right.__matmul__(left)
    return NotImplemented


def _asked(sketch: Sketch, adapter: Adapter, A: Any, row0: Optional[int], batch: bool, listed: Any) -> Product:
    if listed is None:
        if row0 is None:
            return Product(sketch, False, 0, sketch.d, batch)
        return Product(sketch, False, whole("row0", row0, 0, sketch.d), source_rows(A, batch), batch)
    listed = adapter.listed(listed, A, source_rows(A, batch))
    count = len(listed)
    if row0 is None and count != sketch.d:
        raise ValueError(
            f"{count} {'columns' if batch else 'rows'} are given, and S is {sketch.k} x {sketch.d}: there must be "
            f"d = {sketch.d}; for a slice of the list give row0, its first row"
        )
    return Product(sketch, False, 0 if row0 is None else whole("row0", row0, 0, sketch.d), count, batch, listed)


def _multiply(sketch: Sketch, A: Any, out: Any, row0: Optional[int], batch: bool, listed: Any = None) -> Any:
    adapter, A = taken(A)
    what = _asked(sketch, adapter, A, row0, batch, listed)
    if out is None:
        return adapter.product(what, A)
    adapter.into(what, 1.0, A, 0.0, out)
    return out


_recent: Dict[str, Sketch] = {}


def _unpickle(key: str, version: int, quality: int = 0) -> Sketch:
    if version != definition_version:
        raise ValueError(
            f"a pickled sketch is of version {version} of the definition of S, this library of {definition_version}: "
            "it would be a different matrix"
        )
    return Sketch._from_numbers(key, quality)
