"""Preconditioner: the preconditioner from a sketch of A, for the caller's own iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy

from ._arrays import Sparse, taken
from ._library import BF16, F16
from ._operands import Operand, real, seed_of, sketch_of
from ._sketch import Sketch

if TYPE_CHECKING:
    import scipy.sparse.linalg

MACHINE = {True: 2.0**-52, False: 2.0**-23}  # by whether A is float64


def solver_sketch(d: int, n: int, seed: int) -> Optional[Sketch]:
    """The solvers' own sketch for a d x n matrix; None where it would have as many rows as the matrix."""
    k = 4 * n + 16
    return Sketch(k, d, seed, quality="high") if k < d else None


def whitening(Y: numpy.ndarray, cut: float, least: float = 0.0) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """(N, sigma): the singular values sigma of Y that are above cut times the largest and above least, and
    N = V diag(1 / sigma)."""
    R = numpy.linalg.qr(Y, mode="r")
    if not numpy.isfinite(R).all():
        raise ValueError("A has an element that is not finite, or too large to be squared")
    _, sigma, Vt = numpy.linalg.svd(R, full_matrices=False)
    sigma = sigma[sigma > max(cut * sigma[0], least)]
    return numpy.ascontiguousarray(Vt[: len(sigma)].T / sigma), sigma


class Preconditioner:
    """N = V_r diag(1 / sigma_r) from the singular values and vectors of S A, n x rank: A N has singular values near 1,
    whatever the condition of A, so that LSQR, CG and similar methods converge in tens of iterations.

    With z that minimises |A N z - b|, x = M.solve(z) minimises |A x - b|, and is the shortest of such x up to the
    error of the sketch.  A is read once; N takes n x rank numbers, and the sketch k x n while it is computed.

    A: d x n, d >= n, as lstsq's: dense, sparse or of Dask.  sketch: a Sketch of d columns and at least n rows, instead
    of one with k = 4 n + 16 rows, which seed draws; an A of fewer rows is factored itself.  rcond: singular values up
    to rcond times the largest count as 0; None: max(8, sqrt(n)) times the machine precision of A's type.

    Attributes: matrix (N, of A's framework, where A is), rank, condition (of A, from the sketch), k (rows of S, 0
    without one), shape (n, rank).

    >>> import numpy as np, flashsketch as fs
    >>> from scipy.sparse.linalg import lsqr
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((4000, 40)) * np.logspace(0, 6, 40)
    >>> b = A @ np.ones(40) + rng.standard_normal(4000)
    >>> lsqr(A, b, atol=1e-12, btol=1e-12, iter_lim=400)[2]          # iterations
    400
    >>> M = fs.Preconditioner(A)
    >>> found = lsqr(M.operator(), b, atol=1e-12, btol=1e-12)
    >>> found[2] < 60
    True
    >>> bool(np.allclose(M.solve(found[0]), fs.lstsq(A, b).x, rtol=1e-6))
    True
    """

    def __init__(
        self, A: Any, *, sketch: Optional[Sketch] = None, rcond: Optional[float] = None, seed: int = 0
    ) -> None:
        who = "Preconditioner"
        operand = Operand(who, A)
        d, n = operand.rows, operand.n
        if len(operand.array.shape) != 2:
            raise ValueError(f"{who}: A has shape {tuple(operand.array.shape)}, it must be a matrix")
        if d < n:
            raise ValueError(f"{who}: A is {d} x {n}; it must have at least as many rows as columns")
        cut = real("rcond", rcond, who)
        if not 0 <= cut < 1:
            raise ValueError(f"{who}: rcond is {cut}, it must be at least 0 and below 1")
        sketch_of(sketch, who)
        if sketch is None:
            sketch = solver_sketch(d, n, seed_of(seed, who))
        elif sketch.k < n or sketch.d != d:
            raise ValueError(f"{who}: S is {sketch.k} x {sketch.d}; it must have {d} columns and at least n = {n} rows")
        self.k, self._operand = sketch.k if sketch else 0, operand
        cut = cut or max(8.0, n**0.5) * MACHINE[operand.wide]
        self._host, sigma = whitening(_sketched(sketch, operand), cut)
        self.rank = len(sigma)
        self.condition = float(sigma[0] / sigma[-1]) if self.rank else 0.0
        self.matrix = operand.small(self._host.astype(operand.dtype(), copy=False))
        self.shape: Tuple[int, int] = n, self.rank

    def __repr__(self) -> str:
        n, rank = self.shape
        return f"<Preconditioner {n} x {rank}, k={self.k}, condition={self.condition:.2g}>"

    def solve(self, z: Any) -> Any:
        """x = N z: back from the preconditioned unknowns; for a vector, or for the columns of a matrix."""
        return self.matrix @ z

    def rsolve(self, w: Any) -> Any:
        """N' w, of w of n rows."""
        return self.matrix.T @ w

    def operator(self) -> "scipy.sparse.linalg.LinearOperator":
        """A N, d x rank, as a linear operator of SciPy's, for its lsqr and lsmr; A is NumPy's, SciPy's or Dask's."""
        self._check_host("operator")
        A, N = self._operand.array, self._host
        return self._linear(
            (self._operand.rows, self.rank),
            lambda z: _computed(A @ (N @ z)),
            lambda u: N.T @ _computed(A.T @ u),
        )

    def normal(self) -> "scipy.sparse.linalg.LinearOperator":
        """N N', n x n, near the pseudo-inverse of A'A, as a linear operator of SciPy's: the argument M of its cg and
        minres for the normal equations.

        >>> import numpy as np, flashsketch as fs
        >>> from scipy.sparse.linalg import cg
        >>> A = np.random.default_rng(0).standard_normal((4000, 40)) * np.logspace(0, 3, 40)
        >>> b, iterations = A @ np.ones(40), []
        >>> x, failed = cg(A.T @ A, A.T @ b, M=fs.Preconditioner(A).normal(), callback=iterations.append)
        >>> failed, len(iterations) < 30
        (0, True)
        """
        self._check_host("normal")
        N, n = self._host, self.shape[0]
        return self._linear((n, n), lambda v: N @ (N.T @ v), lambda v: N @ (N.T @ v))

    def _linear(self, shape: Tuple[int, int], forth: Any, back: Any) -> "scipy.sparse.linalg.LinearOperator":
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(shape, matvec=forth, rmatvec=back, matmat=forth, rmatmat=back, dtype=numpy.float64)

    def _check_host(self, name: str) -> None:
        if self._operand.adapter.name != "numpy":
            raise TypeError(
                f"Preconditioner.{name}: SciPy's linear operators are for NumPy's arrays, and A is an array of "
                f"{self._operand.source.name}; solve and rsolve take arrays of A's framework"
            )


def _computed(product: Any) -> Any:
    return product.compute() if hasattr(product, "compute") else product


def _sketched(S: Optional[Sketch], operand: Operand) -> numpy.ndarray:
    """S A, or A itself, in host memory and float64."""
    A, adapter, source = operand.array, operand.adapter, operand.source
    if S is None:
        Y = source.fetched(A)
    elif isinstance(source, Sparse) or source.name == "dask":
        Y = source.sketches(S, A, None)[0]  # type: ignore[attr-defined]
    elif operand.code not in (F16, BF16):
        Y = S @ A
    elif adapter.name == "jax":  # whose arrays are read-only
        Y = S @ adapter.cast(A, "float32")
    else:
        Y = S.apply(A, out=adapter.empty(A, (S.k, *A.shape[1:]), "float32"))
    host = Y if isinstance(Y, numpy.ndarray) else taken(Y)[0].fetched(Y)
    return numpy.asarray(host, "float64").reshape((-1, operand.n))
