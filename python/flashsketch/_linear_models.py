"""FlashLinearRegression and FlashRidge: scikit-learn's linear models by lstsq.

An intercept is fitted by centring, as scikit-learn does: a dense X is copied for it, of a sparse one the mean is
subtracted from the products with it (_sparse_regression.py).
"""

from __future__ import annotations

import numbers
from typing import Any, Optional, Tuple, Union

import numpy
import scipy.sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._lowrank import svd
from ._solvers import lstsq
from ._sparse_regression import solve_sparse

DTYPES = (numpy.float64, numpy.float32)


def seed_of(random_state: Any) -> int:
    """A sketch's seed: an integer unchanged, otherwise a draw."""
    if isinstance(random_state, (int, numpy.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(0, 2**32, dtype=numpy.uint64))


def _weights(sample_weight: Any, X: Any) -> Optional[numpy.ndarray]:
    """The square roots of sample weights, or None."""
    if sample_weight is None:
        return None
    count = X.shape[0]
    if isinstance(sample_weight, numbers.Number):
        sample_weight = numpy.full(count, sample_weight)
    weights: numpy.ndarray = check_array(sample_weight, ensure_2d=False, dtype="float64", input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.shape[0] != count:
        raise ValueError(f"sample_weight has {weights.shape[0]} elements, and X {count} rows: it needs as many")
    if (weights < 0).any():
        raise ValueError(f"Negative values in data passed to `sample_weight`: {weights.min()}")
    if not weights.any():
        raise ValueError("all sample weights are zero: there is no sample to fit")
    roots: numpy.ndarray = numpy.sqrt(weights)
    return roots


def _centred(X: Any, weights: Any, out: Any) -> Tuple[Any, Any]:
    """X without its mean, and the mean.  The remainder of the mean after rounding is subtracted too: otherwise a
    constant column would become a small one, and count in the rank."""
    share = (weights / weights.sum()).astype(X.dtype)
    first = X.T @ share
    X = numpy.subtract(X, first, out=out)
    second = X.T @ share
    X -= second
    return X, first.astype("float64") + second


class _LinearModel(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The base of both models."""

    fit_intercept: bool
    copy_X: bool
    coef_: Any
    intercept_: Any

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> Tuple[Any, Any, Any, Any, Any]:
        """X and y centred and weighted, where X is sparse only weighted; their means; the roots of the weights."""
        X, y = validate_data(
            self, X, y, accept_sparse=["csr", "csc"], dtype=DTYPES, y_numeric=True, multi_output=True
        )
        y = numpy.asarray(y, X.dtype)
        roots = _weights(sample_weight, X)
        sparse = scipy.sparse.issparse(X)
        x_mean, y_mean = numpy.zeros(X.shape[1]), numpy.zeros(y.shape[1:])
        if self.fit_intercept:
            weights = numpy.ones(X.shape[0]) if roots is None else numpy.square(roots)
            y_mean = y.T @ weights / weights.sum()
            y = y - y_mean.astype(y.dtype)
            if sparse:
                x_mean = X.T @ weights / weights.sum()
            else:
                X, x_mean = _centred(X, weights, None if self.copy_X else X)
        if roots is not None:
            narrow = roots.astype(X.dtype)
            y = y * (narrow if y.ndim == 1 else narrow[:, None])
            if sparse:
                X = scipy.sparse.diags(narrow, dtype=X.dtype).dot(X).asformat(X.format)
            elif self.fit_intercept:  # X is a copy, or may be overwritten
                X *= narrow[:, None]
            else:
                X = numpy.multiply(X, narrow[:, None], out=None if self.copy_X else X)
        return X, y, x_mean, y_mean, roots

    def _finish(self, coef: Any, x_mean: Any, y_mean: Any) -> None:
        """coef: features x targets, or a vector."""
        self.coef_ = numpy.ascontiguousarray(coef.T)
        intercept = y_mean - x_mean @ coef
        self.intercept_ = numpy.asarray(intercept, coef.dtype)[()] if self.fit_intercept else 0.0

    def predict(self, X: Any) -> Any:
        """X coef_' + intercept_."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], dtype=DTYPES, reset=False)
        return X @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FlashLinearRegression(_LinearModel):
    """Ordinary least squares: a drop-in for sklearn.linear_model.LinearRegression, by a sketch as preconditioner.

    fit_intercept, copy_X: as scikit-learn's.  tol: the backward error to stop at; None: the accuracy of LAPACK in X's
    type.  compute_singular: also compute singular_ of a dense X, which takes longer than the fit.

    Attributes after fit: coef_, intercept_, n_features_in_, feature_names_in_; of a dense X also rank_ (of the centred
    X) and, if requested, singular_.  Where columns are dependent or samples few, coef_ is the shortest.

    >>> import numpy as np
    >>> from flashsketch.sklearn import FlashLinearRegression
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> model = FlashLinearRegression().fit(X, X @ [1, 2, 3] + 4)
    >>> model.coef_.round(6).tolist(), round(float(model.intercept_), 6)
    ([1.0, 2.0, 3.0], 4.0)
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: Optional[float] = None,
        compute_singular: bool = False,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.compute_singular = compute_singular

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FlashLinearRegression":
        """Fits coef_ and intercept_.  sample_weight: a number for each sample, or one for all."""
        X, y, x_mean, y_mean, roots = self._prepared(X, y, sample_weight)
        if scipy.sparse.issparse(X):
            coef, _ = solve_sparse(X, y, x_mean, roots, 0.0, self.tol, None, 0)
        else:
            found = lstsq(X, y, tolerance=self.tol)
            coef, self.rank_ = found.x, found.rank
            if self.compute_singular:
                self.singular_ = svd(X, compute_uv=False).s
        self._finish(coef, x_mean, y_mean)
        return self


class FlashRidge(_LinearModel):
    """Ridge regression: a drop-in for sklearn.linear_model.Ridge, by a sketch as preconditioner.

    alpha: at least 0; an array has one for each target.  fit_intercept, copy_X, max_iter: as scikit-learn's.  tol: the
    backward error to stop at; None: the accuracy of LAPACK in X's type.  random_state: the seed of the sketch, on which
    the last digits of coef_ depend; None: 0.

    Attributes after fit: coef_, intercept_, n_iter_ (of each target), n_features_in_, feature_names_in_.

    >>> import numpy as np
    >>> from flashsketch.sklearn import FlashRidge
    >>> X = np.eye(4)
    >>> FlashRidge(alpha=1.0, fit_intercept=False).fit(X, [2, 4, 6, 8]).coef_.round(6).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        alpha: Union[float, Any] = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: Optional[int] = None,
        tol: Optional[float] = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FlashRidge":
        """Fits coef_ and intercept_.  sample_weight: a number for each sample, or one for all."""
        X, y, x_mean, y_mean, roots = self._prepared(X, y, sample_weight)
        targets = 1 if y.ndim == 1 else y.shape[1]
        alphas = self._alphas(targets)
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        coef = numpy.empty((X.shape[1], *y.shape[1:]), X.dtype)
        self.n_iter_ = numpy.empty(targets, "int32")
        for alpha in numpy.unique(alphas):
            which = numpy.flatnonzero(alphas == alpha)
            some = y if y.ndim == 1 else y[:, which]
            if scipy.sparse.issparse(X):
                part, iterations = solve_sparse(X, some, x_mean, roots, alpha, self.tol, self.max_iter, seed)
            else:
                found = lstsq(X, some, lam=alpha, tolerance=self.tol, max_iterations=self.max_iter, seed=seed)
                part, iterations = found.x, found.iterations
            coef[(slice(None), which) if y.ndim == 2 else slice(None)] = part
            self.n_iter_[which] = max(1, iterations)
        self._finish(coef, x_mean, y_mean)
        return self

    def _alphas(self, targets: int) -> numpy.ndarray:
        alphas = numpy.atleast_1d(numpy.asarray(self.alpha, "float64"))
        if alphas.ndim != 1 or alphas.shape[0] not in (1, targets):
            raise ValueError(
                f"alpha has shape {alphas.shape}, and y {targets} targets: it must be a number, or have one for each"
            )
        if not (alphas >= 0).all() or not numpy.isfinite(alphas).all():
            raise ValueError(f"alpha is {self.alpha!r}, it must be at least 0 and finite")
        return numpy.broadcast_to(alphas, targets)
