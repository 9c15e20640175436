"""Least squares and ridge regression with a sparse X whose mean is subtracted from products, never from X.

A = X - u m', X d x n with its rows weighted already, m the mean of its columns and u the roots of the weights (ones
without).  With d >= n, LSQR solves min |B N z - c|, B = [A; sqrt(lam) I] and c = [y; 0]: N = V diag(1 / sigma) from the
singular values of [S A; sqrt(lam) I], and x = N z.  With d < n, x is the first part of the shortest solution of
N' [A, sqrt(lam) I] [x; t] = N' y, N from the sketch of A'.  Either is solved once more for the residual, which removes
the error of LSQR on ill-conditioned problems.

N has min(d, n)^2 numbers; where they would be more than MOST^2, LSQR works without it, as scikit-learn's does.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy
from scipy.sparse.linalg import LinearOperator, lsqr

from ._preconditioner import MACHINE, solver_sketch, whitening

MOST = 4096
_ITERATIONS = 200


class _Centred:
    """A, and A': products with vectors."""

    def __init__(self, X: Any, mean: numpy.ndarray, roots: Optional[numpy.ndarray]) -> None:
        self.X, self.mean = X, mean
        self.u = numpy.ones(X.shape[0]) if roots is None else roots
        self.shape: Tuple[int, int] = X.shape

    def forth(self, x: numpy.ndarray) -> numpy.ndarray:
        product: numpy.ndarray = self.X @ x - self.u * (self.mean @ x)
        return product

    def back(self, y: numpy.ndarray) -> numpy.ndarray:
        product: numpy.ndarray = self.X.T @ y - self.mean * (self.u @ y)
        return product

    def sketched(self, seed: int) -> numpy.ndarray:
        """S A where A is tall, S A' where it is wide; A or A' itself where S would have as many rows."""
        tall = self.shape[0] >= self.shape[1]
        X, left, right = (self.X, self.u, self.mean) if tall else (self.X.T, self.mean, self.u)
        S = solver_sketch(X.shape[0], X.shape[1], seed)
        if S is None:
            return numpy.asarray(X.toarray() - numpy.outer(left, right))
        return numpy.asarray(S @ X - numpy.outer(S @ left, right))


def solve_sparse(
    X: Any, Y: numpy.ndarray, mean: numpy.ndarray, roots: Optional[numpy.ndarray], lam: float, tol: Optional[float],
    most: Optional[int], seed: int
) -> Tuple[numpy.ndarray, int]:
    """The solution in X's type, n or n x targets, and the iterations of the slowest target."""
    dtype, wide = X.dtype, X.dtype == numpy.float64
    A = _Centred(X.astype("float64"), mean, roots)
    d, n = A.shape
    edge, root = min(d, n), lam**0.5
    N: Optional[numpy.ndarray] = None
    if edge <= MOST:
        sketch = A.sketched(seed)
        if lam:
            sketch = numpy.vstack([sketch, root * numpy.eye(edge)])
        cut = max(8.0, edge**0.5) * MACHINE[bool(wide)]
        # The rounding error where X and u m' cancel, as in a constant column: m is a sum of d numbers, one after
        # another.
        noise = max(8, d) * MACHINE[True] * float(numpy.linalg.norm(mean)) * float(numpy.linalg.norm(A.u))
        N, _ = whitening(sketch, cut, noise)
    solve = _tall(A, N, root) if d >= n else _wide(A, N, root)
    error = tol or MACHINE[bool(wide)] / 16
    limit = most or (10 * n if N is None else _ITERATIONS)
    options = {"atol": error, "btol": error, "conlim": 0, "iter_lim": limit}
    columns = Y.reshape(d, -1).astype("float64")
    found = numpy.zeros((n, columns.shape[1]))
    slowest = 0
    for number, column in enumerate(columns.T):
        state, iterations = solve(column, None, options)
        if N is not None:
            state, more = solve(column, state, options)
            iterations += more
        found[:, number], slowest = state[:n], max(slowest, iterations)
    return found.reshape((n, *Y.shape[1:])).astype(dtype), slowest


_Solve = Callable[[numpy.ndarray, Optional[numpy.ndarray], Any], Tuple[numpy.ndarray, int]]


def _tall(A: _Centred, N: Optional[numpy.ndarray], root: float) -> _Solve:
    d, n = A.shape
    extra = n if root else 0

    def forth(x: numpy.ndarray) -> numpy.ndarray:
        return numpy.concatenate([A.forth(x), root * x]) if extra else A.forth(x)

    def back(y: numpy.ndarray) -> numpy.ndarray:
        return A.back(y[:d]) + root * y[d:] if extra else A.back(y)

    # `ravel`: SciPy may pass a column.
    if N is None:
        operator = LinearOperator((d + extra, n), lambda x: forth(x.ravel()), lambda y: back(y.ravel()))
    else:
        operator = LinearOperator(
            (d + extra, N.shape[1]), lambda z: forth(N @ z.ravel()), lambda y: N.T @ back(y.ravel())
        )

    def solve(y: numpy.ndarray, x: Optional[numpy.ndarray], options: Any) -> Tuple[numpy.ndarray, int]:
        rest = numpy.concatenate([y, numpy.zeros(extra)])
        if x is not None:
            rest = rest - forth(x)
        z, _, iterations = _lsqr(operator, rest, options)
        step = z if N is None else N @ z
        return step if x is None else x + step, iterations

    return solve


def _wide(A: _Centred, N: Optional[numpy.ndarray], root: float) -> _Solve:
    d, n = A.shape
    extra = d if root else 0

    def forth(x: numpy.ndarray) -> numpy.ndarray:
        product = A.forth(x[:n]) + root * x[n:] if extra else A.forth(x)
        return product if N is None else N.T @ product

    def back(y: numpy.ndarray) -> numpy.ndarray:
        y = y if N is None else N @ y
        return numpy.concatenate([A.back(y), root * y]) if extra else A.back(y)

    rows = d if N is None else N.shape[1]
    operator = LinearOperator((rows, n + extra), lambda x: forth(x.ravel()), lambda y: back(y.ravel()))

    def solve(y: numpy.ndarray, x: Optional[numpy.ndarray], options: Any) -> Tuple[numpy.ndarray, int]:
        rest = y if N is None else N.T @ y
        if x is not None:
            rest = rest - forth(x)
        step, _, iterations = _lsqr(operator, rest, options)
        return step if x is None else x + step, iterations

    return solve


def _lsqr(operator: Any, rest: numpy.ndarray, options: Any) -> Tuple[numpy.ndarray, int, int]:
    if not operator.shape[0] or not operator.shape[1]:  # rank 0
        return numpy.zeros(operator.shape[1]), 0, 0
    x, reason, iterations = lsqr(operator, rest, **options)[:3]
    return x, reason, iterations
