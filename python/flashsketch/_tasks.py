"""Tasks on sketches: least squares, ridge regression, Gram matrices, embedding errors.

The library runs them (flashsketch_tasks.h), in the memory of the arrays.  A context keeps the workspace of its last
task, so that the next one of the same shape allocates nothing.
"""

from __future__ import annotations

import ctypes
import glob
import math
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Tuple, Union

import numpy

from ._arrays import Adapter, Sparse, adapter_of, check_writeable, dtype_code, matrix, place, taken
from ._layouts import layout
from ._library import (
    F32,
    F64,
    HOST,
    BackendError,
    Context,
    View,
    borrowed,
    check,
    lib,
    pack_matrix,
    pack_matrix_size,
    whole,
)
from ._sketch import Sketch

if TYPE_CHECKING:
    from ._plan import Plan

_SHAPE = layout("fs_task_shape")
_GRAM, _OSE, _FIT = layout("fs_gram_report"), layout("fs_ose_report"), layout("fs_fit_report")
_METHODS = {1: "cholesky", 2: "svd"}


@dataclass(frozen=True)
class Fit:
    """The result of solve and ridge.  Norms are Frobenius norms over all right-hand sides; fs_fit_report and fs_solve
    in the C header define the estimates and when they hold.

    x: the solution, n or n x rhs.  residual: the estimate of |A x - b|.  confidence: 0.99 where |A x - b| is known to
    lie from low to high in 99 of 100 draws of S (gaussian; sjlt and the default with at least 4 nonzeros in a column
    and k >= 2 rank, 4 rank where few rows of A dominate), otherwise 0, low 0 and high infinite.  note: why it is not
    known, and the meaning of a rank of S A below n; "" where there is neither.
    smallest: the estimate of the smallest possible |A x - b| (solve; NaN for ridge). exact: |A x - b| of each
    right-hand side, with exact=True.  method: "cholesky", or "svd" where the rank is below n or nearly so. rank,
    condition: of S A.  sketched: |S A x - S b|.  rhs: |S b|, nearly |b|.  Times are in seconds, on the device's clock.
    """

    x: Any
    residual: float
    low: float
    high: float
    smallest: float
    exact: Optional[numpy.ndarray]
    method: str
    rank: int
    condition: float
    sketched: float
    rhs: float
    sketch_seconds: float
    solve_seconds: float
    total_seconds: float
    confidence: float
    note: str


@dataclass(frozen=True)
class Gram:
    """The result of gram.

    G: (SA)'SA.  error: the expected |G - A'A|_F / |A'A|_F, estimated from S A alone.  confidence: 0.99 where the error
    is known to lie from low to high in 99 of 100 draws of S (every family but blockrow and srht; low is 0 except for
    gaussian), otherwise 0, low 0 and high infinite; note has the reason.  effective_k: k, or less where few blocks of S
    carry most of A.  frobenius, spectral: |G - A'A| / |A'A| itself, in both norms, with exact=True; otherwise NaN.
    """

    G: Any
    error: float
    low: float
    high: float
    effective_k: float
    frobenius: float
    spectral: float
    sketch_seconds: float
    solve_seconds: float
    total_seconds: float
    confidence: float
    note: str


@dataclass(frozen=True)
class Embedding:
    """The result of ose: error = |(SQ)'SQ - I|_2 and frobenius, the same in that norm, for an orthonormal basis Q;
    sigma_min and sigma_max, the extreme singular values of S Q; and the error of a Gaussian sketch: expected, and from
    low to high in 99 of 100 cases.
    """

    error: float
    frobenius: float
    sigma_min: float
    sigma_max: float
    expected: float
    low: float
    high: float
    sketch_seconds: float
    solve_seconds: float
    total_seconds: float


# arguments ------------------------------------------------------------------------------------------------------------


def _view(name: str, adapter: Adapter, array: Any) -> Tuple[View, Any]:
    """The view of an array that is in memory as a whole, and the object that must live while it is used."""
    if adapter.name in _ELSEWHERE:
        raise TypeError(f"{name} is an array of {adapter.name}: {_ELSEWHERE[adapter.name].format(name=name)}")
    return dense_view(name, adapter, array)


def dense_view(name: str, adapter: Adapter, array: Any) -> Tuple[View, Any]:
    """The same, also for the frameworks that `_view` refuses."""
    if getattr(array, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise RuntimeError(f"{name} needs a gradient, and tasks have none: use torch.no_grad(), or {name}.detach()")
    reading = adapter.read(array)
    return matrix(reading, False, name), reading[5]


# The advice for arrays that a task does not take here, by the adapter's name.
_ELSEWHERE = {
    "scipy.sparse": "give {name}.toarray()",
    "dask": "give {name}.compute()",
    "jax": "a task takes arrays of NumPy, PyTorch and CuPy; use numpy.asarray({name})",
    "array API": "a task takes arrays of NumPy, PyTorch and CuPy; use numpy.from_dlpack({name})",
}


def _for_rows(S: Any, name: str, rows: int) -> Sketch:
    """The sketch for an array of so many rows: S itself, or that of a Plan."""
    from ._plan import Plan

    if isinstance(S, Plan):
        return S.sketch(rows or None)
    if not isinstance(S, Sketch):
        raise TypeError(f"the first argument is a {type(S).__name__}, it must be a Sketch, or a Plan")
    if rows != S.d:
        raise ValueError(f"{name} has {rows} rows, and S is {S.k} x {S.d}: {name} must have d = {S.d}")
    return S


def _sum(dtype: int) -> int:
    return F64 if dtype == F64 else F32


_SUM_NAMES = {F32: "float32", F64: "float64"}


# workspaces -----------------------------------------------------------------------------------------------------------


def opened(create: Callable[[], int]) -> None:
    """Calls a function that needs cuBLAS and cuSOLVER. Where the loader does not find them, those of PyTorch's and
    CuPy's packages are loaded, which are then found by name."""
    try:
        check(create())
    except BackendError:
        load_wheels()
        check(create())


def load_wheels() -> None:
    """Loads cuBLAS and cuSOLVER from the packages that PyTorch and CuPy depend on."""
    for name in ("nvJitLink", "cublasLt", "cublas", "cusparse", "cusolver"):
        for folder in sys.path:
            found = glob.glob(os.path.join(folder, "nvidia", "*", "lib", f"lib{name}.so.*"))
            if found:
                try:
                    ctypes.CDLL(found[0])
                except OSError:
                    pass
                break


def _workspace(context: Context, k: int, n: int, rhs: int, dtype: int, basis: int, filled: bool = False) -> int:
    """A workspace of this shape. filled: its sketches are computed elsewhere; one that fs_task_sketch has filled before
    would report the seconds of that sketch."""
    key = (k, n, rhs, dtype, basis, filled)
    if context.workspace is not None and context.workspace[0] == key:
        return context.workspace[1]
    context.drop_workspace()
    shape, out = _SHAPE.pack(_SHAPE.size, *key[:-1]), ctypes.c_void_p()
    opened(lambda: lib.fs_workspace_create(ctypes.byref(out), context.pointer, shape))
    assert out.value is not None
    context.workspace = (key, out.value)
    return out.value


def _put(workspace: int, products: List[Any]) -> None:
    """Copies sketches that were computed elsewhere into a workspace in host memory."""
    views = ctypes.create_string_buffer(2 * pack_matrix_size)
    check(lib.fs_workspace_views(workspace, views, ctypes.addressof(views) + pack_matrix_size))
    for number, product in enumerate(products):
        packed = numpy.ascontiguousarray(product)
        address = ctypes.c_void_p.from_buffer(views, number * pack_matrix_size).value
        if address is not None:
            ctypes.memmove(address, packed.ctypes.data, packed.nbytes)


class _Problem:
    """A, and B where there is one, sketched in a workspace of a borrowed context."""

    def __init__(self, S: Any, A: Any, B: Any) -> None:
        self.S: Any = S  # a Sketch, once the rows of A are known
        self.source, self.A = taken(A)
        # Whether A is sketched by its own adapter, chunk by chunk or from its nonzeros, and copied into the workspace.
        self.apart = isinstance(self.source, Sparse) or self.source.name == "dask"
        if self.apart:
            self._read_apart()
        else:
            self.adapter = self.source
            self.view, self.keep = _view("A", self.adapter, self.A)
            _, rows, self.n, _, _, dtype, self.device = self.view
            self.dtype = _sum(dtype)
            self.S = _for_rows(S, "A", rows)
        self.B: Any = None
        self.rhs, self.vector = 0, False
        if B is not None:
            self._read_right(B)
        self.stream = 0 if self.device == HOST else self.adapter.stream(self.device)

    def _read_apart(self) -> None:
        self.adapter = self.source.dense  # type: ignore[attr-defined]
        if self.adapter.name != "numpy":
            raise TypeError("A is sparse and on a GPU; tasks take SciPy's sparse matrices, and dense ones on GPUs")
        shape = self.A.shape
        if len(shape) not in (1, 2):
            raise ValueError(f"A has shape {tuple(shape)}; a sketch takes vectors and matrices")
        if len(shape) == 1:
            self.A = self.A.reshape((shape[0], 1))
        self.n, self.device = self.A.shape[1], HOST
        self.dtype = _sum(dtype_code(self.A.dtype))
        self.S = _for_rows(self.S, "A", shape[0])

    def _read_right(self, B: Any) -> None:
        """b, in the type of A's sums, or in a half type where that is float32."""
        adapter, B = taken(B)
        lazy = adapter is self.source and adapter.name == "dask"
        if not lazy:
            right, _ = _view("b", adapter, B)
            if adapter is not self.adapter or right[6] != self.device:
                where = f"A is {place(self.device)} and b {place(right[6])}"
                raise TypeError(f"{where}: both must be of one framework and in one place")
            code = right[5]
        else:
            code = dtype_code(B.dtype)
        if _sum(code) != self.dtype:
            B = adapter.cast(B, _SUM_NAMES[self.dtype])
        if not lazy:
            self.right, self.keep_right = _view("b", adapter, B)
        elif len(B.shape) not in (1, 2):
            raise ValueError(f"b has shape {tuple(B.shape)}; a sketch takes vectors and matrices")
        _for_rows(self.S, "b", B.shape[0])
        self.B, self.vector = B, len(B.shape) == 1
        self.rhs = 1 if self.vector else B.shape[1]

    def like_right(self) -> Any:
        """An array of the solution's framework, type and device."""
        return numpy.empty(0, self.B.dtype) if self.apart else self.B

    def fill(self, context: Context) -> int:
        workspace = _workspace(context, self.S.k, self.n, self.rhs, self.dtype, 0, self.apart)
        if self.apart:
            sketched: List[Any] = self.source.sketches(self.S, self.A, self.B)  # type: ignore[attr-defined]
            _put(workspace, [product.astype(_SUM_NAMES[self.dtype], copy=False) for product in sketched])
            check(lib.fs_workspace_set_sketch(workspace, self.S._handle))
            return workspace
        A = pack_matrix(self.view)
        B = pack_matrix(self.right) if self.rhs else None
        check(lib.fs_task_sketch(workspace, self.S._handle, A, B))
        return workspace

    def exact(self, workspace: int, x: Any) -> numpy.ndarray:
        if self.apart:
            found: numpy.ndarray = self.source.residuals(self.A, x, self.B)  # type: ignore[attr-defined]
            return found
        norms = numpy.empty(self.rhs)
        solution, _ = _view("x", self.adapter, x)
        arguments = [pack_matrix(self.view), pack_matrix(self.right), pack_matrix(solution)]
        check(lib.fs_residual(workspace, *arguments, norms.ctypes.data))
        return norms


# tasks ----------------------------------------------------------------------------------------------------------------


def _text(note: bytes) -> str:
    return note.split(b"\0", 1)[0].decode()


def _fit(S: Union[Sketch, Plan], A: Any, b: Any, ridge: bool, number: float, exact: bool) -> Fit:
    if b is None:
        raise TypeError(f"{'ridge' if ridge else 'solve'}: b is None, it must be an array with the rows of A")
    problem = _Problem(S, A, b)
    x = problem.adapter.empty(problem.like_right(), (problem.n,) if problem.vector else (problem.n, problem.rhs))
    report = ctypes.create_string_buffer(_FIT.size)
    _FIT.pack_into(report, 0, _FIT.size, *[0.0] * 3, 0, 0, *[0.0] * 8, b"")
    with borrowed(problem.device, problem.stream) as context:
        workspace = problem.fill(context)
        function = lib.fs_ridge if ridge else lib.fs_solve
        check(function(workspace, number, pack_matrix(_view("x", problem.adapter, x)[0]), report))
        norms = problem.exact(workspace, x) if exact else None
    _, sketch, solve, total, method, rank, *numbers, note = _FIT.unpack(report)
    condition, sketched, rhs, residual, low, high, smallest, confidence = numbers
    return Fit(
        x, residual, low, high, smallest, norms, _METHODS[method], rank, condition, sketched, rhs, sketch, solve, total,
        confidence, _text(note)
    )


def solve(S: Union[Sketch, Plan], A: Any, b: Any, *, rcond: float = 0.0, exact: bool = False) -> Fit:
    """Least squares by a sketch: x minimises |S A x - S b| in place of |A x - b|, the shortest one where there are
    many.  lstsq finds the x that minimises |A x - b| itself.

    S: a Sketch, or a Plan (fs.plan), which creates one for the rows of A.

    A is d x n, b a vector of d or d x rhs: NumPy, PyTorch or CuPy, or what a sketch converts to NumPy's.  A may be a
    sparse matrix of SciPy, or a Dask array, whose chunks are sketched in place and of which only S A is transferred; b
    is then an array of NumPy or Dask, x one of NumPy, and sketch_seconds is 0, as it is not measured.

    Sums are float64 where A is, otherwise float32.  A b of another type is converted to that of sums (a half type only
    where that is float64), and x has b's type after that: float32 for a float32 A and a float64 b.  rcond: singular
    values of S A below rcond times the largest count as 0.  exact: read A once more for |A x - b| itself.

    >>> import numpy as np, flashsketch as fs
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20000, 50))
    >>> b = A @ np.ones(50) + rng.standard_normal(20000)
    >>> fit = fs.solve(fs.Sketch(k=1000, d=20000), A, b, exact=True)
    >>> fit.x.shape, fit.rank, fit.method
    ((50,), 50, 'cholesky')
    >>> bool(fit.low < fit.exact[0] < fit.high)
    True
    """
    return _fit(S, A, b, False, float(rcond), exact)


def ridge(S: Union[Sketch, Plan], A: Any, b: Any, lam: float, *, exact: bool = False) -> Fit:
    """Ridge regression by a sketch: x minimises |S A x - S b|^2 + lam |x|^2, lam > 0.  Arguments as for solve.

    >>> import numpy as np, flashsketch as fs
    >>> A, b = np.eye(300, 2), np.ones((300, 1))
    >>> S = fs.Sketch(k=100, d=300)
    >>> fit = fs.ridge(S, A, b, 1.0)
    >>> Y, C = S @ A, S @ b
    >>> bool(np.allclose(fit.x, np.linalg.solve(Y.T @ Y + np.eye(2), Y.T @ C)))
    True
    """
    return _fit(S, A, b, True, float(lam), exact)


def gram(S: Union[Sketch, Plan], A: Any, *, out: Any = None, exact: bool = False) -> Gram:
    """(SA)'SA, an estimate of A'A, n x n, and its error.  A: as solve's; of Dask's and of sparse ones G is NumPy's.
    out: an array for it, of any of the four types.  exact: read A once more for the error itself.

    >>> import numpy as np, flashsketch as fs
    >>> A = np.random.default_rng(0).standard_normal((20000, 10))
    >>> made = fs.gram(fs.Sketch(k=1000, d=20000), A, exact=True)
    >>> made.G.shape, bool(made.low < made.frobenius < made.high)
    ((10, 10), True)
    """
    problem = _Problem(S, A, None)
    if exact and problem.apart:
        way = _ELSEWHERE[problem.source.name].format(name="A")
        raise TypeError(f"gram: exact needs A in memory as a whole, and A is an array of {problem.source.name}: {way}")
    if out is None:
        like = numpy.empty(0, problem.A.dtype) if problem.apart else problem.A
        out = problem.adapter.empty(like, (problem.n, problem.n))
    adapter = adapter_of(out)
    if adapter is not problem.adapter:
        raise TypeError("gram: out must be an array of A's framework")
    check_writeable(out)
    target, _ = _view("out", adapter, out)
    report, errors = ctypes.create_string_buffer(_GRAM.size), (ctypes.c_double * 2)(math.nan, math.nan)
    _GRAM.pack_into(report, 0, _GRAM.size, *[0.0] * 8, b"")
    with borrowed(problem.device, problem.stream) as context:
        workspace = problem.fill(context)
        check(lib.fs_gram(workspace, problem.S._handle, pack_matrix(target), report))
        if exact:
            at = ctypes.addressof(errors)
            check(lib.fs_gram_error(workspace, pack_matrix(problem.view), at, at + 8))
    adapter.written(out)
    _, sketch, task, total, error, low, high, effective, confidence, note = _GRAM.unpack(report)
    return Gram(
        out, error, low, high, effective, errors[0], errors[1], sketch, task, total, confidence, _text(note)
    )


def ose(S: Union[Sketch, Plan], A: Any = None, *, r: Optional[int] = None, seed: int = 0) -> Embedding:
    """How well S keeps lengths in the range of the first r columns of A (all of them if r is not given): the largest
    relative error of |S x|^2, exactly.  A is dense and in memory as a whole, because it is factored.  A None: in a
    random subspace of r dimensions that a seed draws, on the CPU.

    >>> import numpy as np, flashsketch as fs
    >>> S = fs.Sketch(k=1000, d=20000)
    >>> A = np.random.default_rng(0).standard_normal((20000, 50))
    >>> of = fs.ose(S, A)
    >>> bool(of.low < of.error < of.high), bool(abs(max(of.sigma_max**2 - 1, 1 - of.sigma_min**2) - of.error) < 1e-9)
    (True, True)
    """
    seed = whole("seed", seed, 0, 2**64 - 1, who="ose")
    if A is None:
        if r is None:
            raise ValueError("ose: give the dimensions of a random subspace, with r")
        S = _for_rows(S, "S", getattr(S, "d", None) or 0)
        view, device, stream, dtype, keep = None, HOST, 0, F64, None
    else:
        adapter, A = taken(A)
        view, keep = _view("A", adapter, A)
        S = _for_rows(S, "A", view[1])
        device, dtype, r = view[6], _sum(view[5]), view[2] if r is None else r
        stream = 0 if device == HOST else adapter.stream(device)
    r = whole("r", r, 1, S.d, who="ose")
    report = ctypes.create_string_buffer(_OSE.size)
    _OSE.pack_into(report, 0, _OSE.size, *[0.0] * 10)
    with borrowed(device, stream) as context:
        workspace = _workspace(context, S.k, r, 0, dtype, S.d)
        check(lib.fs_ose(workspace, S._handle, None if view is None else pack_matrix(view), seed, report))
    del keep
    _, sketch, task, total, error, frobenius, smallest, largest, expected, low, high = _OSE.unpack(report)
    return Embedding(error, frobenius, smallest, largest, expected, low, high, sketch, task, total)
