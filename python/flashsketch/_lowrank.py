"""Singular values and principal components (flashsketch_solvers.h)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple

import numpy

from ._layouts import layout
from ._library import lib, pack_matrix, whole
from ._operands import Operand, Progress, address_of, host_matrix, seed_of

_OPTIONS, _REPORT = layout("fs_svd_options"), layout("fs_svd_report")


@dataclass(frozen=True)
class SVD:
    """The result of svd: A ~ U diag(s) Vt.  It unpacks as `U, s, Vt = fs.svd(A, rank=10)`, and where compute_uv is
    False as `(s,) = fs.svd(A, compute_uv=False)`.

    U: d x rank, Vt: rank x n, None where compute_uv is False.  s: the singular values, descending.  norm: |A|
    (Frobenius).  error: |A - U diag(s) Vt|, exact where all singular values were requested, otherwise an estimate; it
    lies from low to high in `confidence`, 0.99, of all draws.  sketch: columns of the range, rank + oversampling; 0
    where all singular values were computed, by QR.  reads: of A.
    """

    U: Any
    s: Any
    Vt: Any
    rank: int
    norm: float
    error: float
    low: float
    high: float
    confidence: float
    sketch: int
    reads: int
    seconds: float

    def __iter__(self) -> Iterator[Any]:
        return iter([part for part in (self.U, self.s, self.Vt) if part is not None])


@dataclass(frozen=True)
class PCA:
    """The result of pca, with the names of scikit-learn's PCA.

    mean: of each column.  components: the principal axes, one a row, n_components x n.  s: the singular values of the
    centred A.  explained_variance: s^2 / (d - 1).  explained_variance_ratio: its share of all variance.  U: U diag(s)
    are the scores of A's rows; None where compute_u is False.  norm, error ...: as svd's, of the centred A.
    """

    mean: Any
    components: Any
    s: Any
    explained_variance: Any
    explained_variance_ratio: Any
    U: Any
    rank: int
    norm: float
    error: float
    low: float
    high: float
    confidence: float
    sketch: int
    reads: int
    seconds: float


class _Decomposition:
    """One call of fs_svd or fs_pca."""

    def __init__(
        self, who: str, A: Any, rank: Optional[int], oversampling: Optional[int], power_steps: Optional[int],
        one_read: bool, seed: int, progress: Progress, vectors: Tuple[bool, bool]
    ) -> None:
        self.A = operand = Operand(who, A, progress)
        most = min(operand.rows, operand.n)
        name = "n_components" if who == "pca" else "rank"
        self.rank = most if rank is None else whole(name, rank, 1, most, who=who)
        beyond = 0 if oversampling is None else whole("oversampling", oversampling, 1, who=who)
        steps = -1 if power_steps is None else whole("power_steps", power_steps, 0, 1000, who=who)
        self.options = _OPTIONS.pack(
            _OPTIONS.size, 0 if rank is None else self.rank, beyond, steps, bool(one_read), seed_of(seed, who), 0,
            operand.progress()
        )
        self.report = ctypes.create_string_buffer(_REPORT.pack(_REPORT.size, 0, 0, 0, *[0.0] * 6))
        self.s = numpy.empty(self.rank)
        self.mean = numpy.empty(operand.n) if who == "pca" else None
        self.U = operand.large((operand.rows, self.rank)) if vectors[0] else None
        self.Vt = numpy.empty((self.rank, operand.n), operand.dtype()) if vectors[1] else None
        U = pack_matrix(self.U.view) if self.U else None
        V = host_matrix(None if self.Vt is None else self.Vt.T)
        mean, s = address_of(self.mean), address_of(self.s)
        if who == "pca":
            operand.call(lambda context: lib.fs_pca(context, operand.packed, self.options, mean, U, s, V, self.report))
        else:
            operand.call(lambda context: lib.fs_svd(context, operand.packed, self.options, U, s, V, self.report))

    def array(self, of: numpy.ndarray) -> Any:
        """A small result in the type of the vectors."""
        return self.A.small(of.astype(self.A.dtype(), copy=False))


def svd(
    A: Any,
    rank: Optional[int] = None,
    *,
    compute_uv: bool = True,
    oversampling: Optional[int] = None,
    power_steps: Optional[int] = None,
    one_read: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> SVD:
    """The `rank` largest singular values and their vectors, A ~ U diag(s) Vt; all min(d, n) where rank is None.

    A: any shape, as lstsq's; of a sparse or Dask A, results are arrays of NumPy (CuPy).  They are float64 where A is,
    otherwise float32.  The component of each row of Vt with the largest magnitude is positive.  A singular value that
    is 0 to rounding is 0, and so is its column of U.

    With rank None they are computed by QR, to rounding; otherwise by the range of a sketch of A, whose error, larger
    than that of the best approximation, is estimated.  oversampling: columns of the range beyond rank; None: max(10,
    rank // 2), with one_read max(10, 2 * rank).  power_steps: each reads A once more and improves the result for slowly
    falling spectra; None: 2.  one_read: a single read of A (generalised Nystrom), without power steps.  seed: of the
    sketches. progress: as lstsq's.

    >>> import numpy as np, flashsketch as fs
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((5000, 60)) * np.logspace(0, -9, 60)
    >>> U, s, Vt = fs.svd(A, rank=10)
    >>> U.shape, s.shape, Vt.shape
    ((5000, 10), (10,), (10, 60))
    >>> bool(np.allclose(s, np.linalg.svd(A, compute_uv=False)[:10], rtol=1e-6))
    True
    """
    made = _Decomposition(
        "svd", A, rank, oversampling, power_steps, one_read, seed, progress, (compute_uv, compute_uv)
    )
    _, count, sketch, reads, norm, error, low, high, confidence, seconds = _REPORT.unpack_from(made.report)
    U = made.U.finished() if made.U else None
    return SVD(U, made.array(made.s), made.A.small(made.Vt), count, norm, error, low, high, confidence, sketch, reads,
               seconds)


def pca(
    A: Any,
    n_components: Optional[int] = None,
    *,
    compute_u: bool = True,
    oversampling: Optional[int] = None,
    power_steps: Optional[int] = None,
    one_read: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> PCA:
    """Principal components: the svd of A with the mean of each column subtracted, without a copy of A.

    n_components: None: all min(d, n).  compute_u: also U, d x n_components.  Other arguments: as svd's.

    >>> import numpy as np, flashsketch as fs
    >>> rng = np.random.default_rng(0)
    >>> A = 5 + rng.standard_normal((5000, 60)) * np.logspace(0, -9, 60)
    >>> found = fs.pca(A, 10)
    >>> bool(np.allclose(found.mean, A.mean(axis=0)))
    True
    >>> scores = found.U * found.s
    >>> bool(np.allclose(scores, (A - found.mean) @ found.components.T, atol=1e-6))
    True
    >>> bool(np.allclose(found.explained_variance, scores.var(axis=0, ddof=1)))
    True
    """
    made = _Decomposition("pca", A, n_components, oversampling, power_steps, one_read, seed, progress,
                          (compute_u, True))
    _, count, sketch, reads, norm, error, low, high, confidence, seconds = _REPORT.unpack_from(made.report)
    U = made.U.finished() if made.U else None
    variance = numpy.square(made.s) / max(made.A.rows - 1, 1)
    ratio = numpy.square(made.s / norm) if norm > 0 else numpy.zeros(count)
    assert made.mean is not None
    return PCA(made.array(made.mean), made.A.small(made.Vt), made.array(made.s), made.array(variance),
               made.array(ratio), U, count, norm, error, low, high, confidence, sketch, reads, seconds)
