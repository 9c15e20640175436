"""Least squares, QR and leverage scores to full accuracy, by a sketch as preconditioner (flashsketch_solvers.h)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Iterator, Optional

import numpy

from ._layouts import layout
from ._library import lib, pack_matrix, whole
from ._operands import Operand, Progress, address_of, host_matrix, note_of, real, seed_of, sketch_of
from ._sketch import Sketch

_LSTSQ_OPTIONS, _LSTSQ = layout("fs_lstsq_options"), layout("fs_lstsq_report")
_QR_OPTIONS, _QR = layout("fs_qr_options"), layout("fs_qr_report")
_LEVERAGE_OPTIONS, _LEVERAGE = layout("fs_leverage_options"), layout("fs_leverage_report")
_METHODS = {"auto": 0, "iterate": 1, "normal": 2, "direct": 3}
_METHOD_NAMES = {number: name for name, number in _METHODS.items()}


@dataclass(frozen=True)
class Solution:
    """The result of lstsq.  Norms are Frobenius norms over all right-hand sides.

    x: the solution, n or n x rhs.  rank: of A, by rcond.  condition: of A, from the singular values of its sketch that
    count.  residual: |A x - b|.  norm: |x|.  method: "iterate", "normal" or "direct".  k: rows of the sketch, 0 where
    there was none.  iterations: of the slowest right-hand side.  reads: of A, with that of the sketch.  converged:
    whether the tolerance was reached.  backward_error: the largest of all right-hand sides, an estimate (Karlson and
    Walden), relative to |A|.  true_backward_error: the same, measured, with measure_error, otherwise NaN. note: a
    warning about this solution, such as a rank below n; "" where there is none.
    """

    x: Any
    rank: int
    condition: float
    residual: float
    norm: float
    method: str
    k: int
    iterations: int
    reads: int
    converged: bool
    backward_error: float
    true_backward_error: float
    seconds: float
    sketch_seconds: float
    note: str


@dataclass(frozen=True)
class QR:
    """The result of qr: A = Q R, or A[:, pivots] = Q R. It unpacks as `Q, R = fs.qr(A)` and `Q, R, pivots = fs.qr(A,
    pivoting=True)`, without Q where mode is "r".

    Q: d x n, None where mode is "r".  R: n x n.  pivots: a permutation of the columns, or None.  rank: of A, by rcond.
    condition: of A, estimated from R.  orthogonality: |Q'Q - I|, measured before Q is rounded (NaN without Q).  k: rows
    of the sketch.  reads: of A, and of Q.
    """

    Q: Any
    R: Any
    pivots: Any
    rank: int
    condition: float
    orthogonality: float
    k: int
    reads: int
    seconds: float

    def __iter__(self) -> Iterator[Any]:
        return iter([part for part in (self.Q, self.R, self.pivots) if part is not None])


@dataclass(frozen=True)
class Leverage:
    """The result of leverage.

    scores: d of them, float64.  rank: of A, the sum of exact scores.  sum: of the scores.  largest: the largest score,
    the coherence of A, from rank / d to 1.  row: the row with that score.  error: the relative standard deviation of a
    score,
    0 where they are exact.  reads: of A.
    """

    scores: Any
    rank: int
    sum: float
    largest: float
    row: int
    error: float
    reads: int
    seconds: float


def lstsq(
    A: Any,
    b: Any,
    *,
    lam: float = 0.0,
    rcond: Optional[float] = None,
    tolerance: Optional[float] = None,
    max_iterations: Optional[int] = None,
    method: str = "auto",
    sketch: Optional[Sketch] = None,
    seed: int = 0,
    measure_error: bool = False,
    progress: Progress = None,
) -> Solution:
    """Least squares to the accuracy of LAPACK: x minimises |A x - b|^2 + lam |x|^2, the shortest one where there are
    many.

    A is d x n, b a vector of d or d x rhs: NumPy, PyTorch, CuPy, JAX or another library of the array API, or anything
    that a sketch converts to NumPy's.  A may be a sparse matrix (SciPy, CuPy), or a Dask array, whose chunks are
    computed in each read, some rows at a time; b is then a dense array of NumPy (CuPy), or of Dask, and x one of NumPy
    (CuPy).
    x is float64 where A or b is, otherwise float32; its accuracy is that of A's type.

    rcond: singular values up to rcond times the largest count as 0; None: max(8, sqrt(n)) times the machine precision
    of A's type.  tolerance: stop at this backward error, relative to |A|; None: the rounding unit of A's type.
    max_iterations: None: 200.  method: "iterate", "normal" or "direct"; None: chosen by shape and condition.  sketch: a
    Sketch of d columns and at least n rows, better 4 n, instead of the solver's own, which seed draws.  measure_error:
    also compute the backward error itself, which reads A once more.  progress: called with the share that is done and
    the name of the present step; its exceptions are passed on.

    >>> import numpy as np, flashsketch as fs
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20000, 50)) * np.logspace(0, 6, 50)
    >>> b = A @ np.ones(50) + rng.standard_normal(20000)
    >>> found = fs.lstsq(A, b)
    >>> bool(np.allclose(found.x, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-9))
    True
    >>> found.rank, found.converged, found.reads < 30
    (50, True, True)
    """
    who = "lstsq"
    if method not in _METHODS:
        raise ValueError(f"lstsq: method is {method!r}, it must be one of {', '.join(_METHODS)}")
    operand = Operand(who, A, progress)
    right, keep, vector, wide = operand.right(b)
    x = numpy.empty((operand.n, right[2]), operand.dtype(wide))
    most = 0 if max_iterations is None else whole("max_iterations", max_iterations, 1, who=who)
    options = _LSTSQ_OPTIONS.pack(
        _LSTSQ_OPTIONS.size, real("lam", lam, who), real("rcond", rcond, who), real("tolerance", tolerance, who), most,
        _METHODS[method], sketch_of(sketch, who) or 0, seed_of(seed, who), bool(measure_error), 0, operand.progress()
    )
    report = ctypes.create_string_buffer(_LSTSQ.pack(_LSTSQ.size, *[0] * 3, 0.0, *[0] * 3, *[0.0] * 6, b""))
    B, X = pack_matrix(right), host_matrix(x)
    operand.call(lambda context: lib.fs_lstsq(context, operand.packed, B, options, X, report))
    del keep
    _, number, k, rank, condition, iterations, reads, converged, *numbers, note = _LSTSQ.unpack_from(report)
    backward, true_backward, residual, norm, seconds, sketch_seconds = numbers
    return Solution(
        operand.small(x[:, 0] if vector else x), rank, condition, residual, norm, _METHOD_NAMES[number], k, iterations,
        reads, bool(converged), backward, true_backward, seconds, sketch_seconds, note_of(note)
    )


def qr(
    A: Any,
    *,
    mode: str = "reduced",
    pivoting: bool = False,
    rcond: Optional[float] = None,
    overwrite_a: bool = False,
    sketch: Optional[Sketch] = None,
    seed: int = 0,
    progress: Progress = None,
) -> QR:
    """A = Q R of a tall A: Q is d x n with orthonormal columns, R n x n, upper triangular, its diagonal not negative.

    A: as lstsq's, d >= n; of a sparse or Dask A, Q and R are arrays of NumPy (CuPy), and Q is as large as A.  They are
    float64 where A is, otherwise float32.  Q is orthogonal to rounding, whatever the condition of A; where its columns
    are dependent to rounding, InvalidArgument is raised, unless pivoting is True.

    mode: "reduced", or "r" for R alone.  pivoting: A[:, pivots] = Q R, with a numerical rank r: the first r columns of
    Q are the basis, the others 0, and so are the rows of R from r on.  rcond: diagonal elements of R up to rcond times
    the first count as 0; None: as lstsq's.  overwrite_a: Q replaces A, which must be a writeable dense float32 or
    float64 array.  sketch, seed, progress: as lstsq's.

    >>> import numpy as np, flashsketch as fs
    >>> A = np.random.default_rng(0).standard_normal((20000, 50))
    >>> Q, R = fs.qr(A)
    >>> bool(np.allclose(Q @ R, A)), bool(np.linalg.norm(Q.T @ Q - np.eye(50)) < 1e-13)
    (True, True)
    >>> A[:, 3] = A[:, 7]
    >>> factors = fs.qr(A, mode="r", pivoting=True)
    >>> factors.rank
    49
    """
    who = "qr"
    if mode not in ("reduced", "r"):
        raise ValueError(f"qr: mode is {mode!r}, it must be 'reduced' or 'r'")
    if overwrite_a and mode == "r":
        raise ValueError("qr: overwrite_a is for Q, which mode 'r' does not compute")
    operand = Operand(who, A, progress)
    n = operand.n
    R = numpy.empty((n, n), operand.dtype())
    pivots = numpy.empty(n, "int64") if pivoting else None
    options = _QR_OPTIONS.pack(
        _QR_OPTIONS.size, bool(pivoting), real("rcond", rcond, who), sketch_of(sketch, who) or 0, seed_of(seed, who), 0,
        operand.progress()
    )
    report = ctypes.create_string_buffer(_QR.pack(_QR.size, 0, 0, 0.0, 0.0, 0, 0.0))
    packed_q, result = None, None
    if overwrite_a:
        packed_q = pack_matrix(operand.replaced(A))
    elif mode == "reduced":
        result = operand.large((operand.rows, n))
        packed_q = pack_matrix(result.view)
    packed_r, at = host_matrix(R), address_of(pivots)
    operand.call(lambda context: lib.fs_qr(context, operand.packed, options, packed_q, packed_r, at, report))
    if overwrite_a:
        operand.adapter.written(A)
    Q = A if overwrite_a else result.finished() if result else None
    _, k, rank, condition, orthogonality, reads, seconds = _QR.unpack_from(report)
    return QR(Q, operand.small(R), operand.small(pivots), rank, condition, orthogonality, k, reads, seconds)


def leverage(
    A: Any,
    *,
    exact: bool = False,
    error: Optional[float] = None,
    rcond: Optional[float] = None,
    sketch: Optional[Sketch] = None,
    seed: int = 0,
    progress: Progress = None,
) -> Leverage:
    """The leverage scores of the rows of a tall A: |Q_i|^2, Q an orthonormal basis of A's columns, dependent ones too.

    A: as lstsq's, d >= n.  exact: compute them from the basis; otherwise they are estimated by two reads of A, without
    bias up to the error of the sketch, by which they can exceed 1.  error: the wanted relative standard deviation of
    estimates; None: 0.1.  rcond, sketch, seed, progress: as qr's.

    >>> import numpy as np, flashsketch as fs
    >>> A = np.random.default_rng(0).standard_normal((20000, 20))
    >>> A[123] *= 1000
    >>> found = fs.leverage(A, exact=True)
    >>> found.row, round(found.largest, 2), round(found.sum, 6)
    (123, 1.0, 20.0)
    >>> estimated = fs.leverage(A)
    >>> bool(np.std(estimated.scores / found.scores - 1) < 1.5 * estimated.error)
    True
    """
    who = "leverage"
    operand = Operand(who, A, progress)
    scores = numpy.empty(operand.rows)
    options = _LEVERAGE_OPTIONS.pack(
        _LEVERAGE_OPTIONS.size, bool(exact), real("error", error, who), real("rcond", rcond, who),
        sketch_of(sketch, who) or 0, seed_of(seed, who), 0, operand.progress()
    )
    report = ctypes.create_string_buffer(_LEVERAGE.pack(_LEVERAGE.size, 0, 0.0, 0.0, 0, 0.0, 0, 0.0))
    operand.call(lambda context: lib.fs_leverage(context, operand.packed, options, address_of(scores), report))
    _, rank, total, largest, row, deviation, reads, seconds = _LEVERAGE.unpack_from(report)
    return Leverage(operand.small(scores), rank, total, largest, row, deviation, reads, seconds)
