"""FlashPCA and FlashTruncatedSVD: scikit-learn's decompositions by svd and pca."""

from __future__ import annotations

import numbers
from typing import Any, Optional, Union

import numpy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._linear_models import DTYPES, seed_of
from ._lowrank import PCA, pca, svd

_SOLVERS = ("auto", "full", "randomized")
# Up to so many rows or columns, all singular values are computed where n_components leaves the choice.
_SMALL = 500


class FlashPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal component analysis: a drop-in for sklearn.decomposition.PCA that never copies X, sparse or dense.

    n_components: the number of components; None: all; a number above 0 and below 1: as many as explain more than this
    share of the variance; "mle": as many as Minka's estimate gives.  whiten: components of unit variance.  svd_solver:
    "full" computes all singular values, "randomized" only those requested, by the range of a sketch; "auto" takes the
    second for an integer number of components below 80 % of the smaller side, where that is above 500.  n_oversamples:
    columns of the range beyond n_components; None: max(10, n_components // 2).  iterated_power: power steps, "auto": 2.
    random_state: an integer is the seed.

    Attributes after fit: components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_,
    n_components_, n_samples_, noise_variance_, n_features_in_, feature_names_in_; error_ (|X - mean - its
    approximation|, Frobenius) with error_low_ and error_high_, between which it lies in 99 of 100 draws.

    >>> import numpy as np
    >>> from flashsketch.sklearn import FlashPCA
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) * [9, 3, 1]
    >>> FlashPCA(n_components=2).fit(X).explained_variance_ratio_.round(1).tolist()
    [0.9, 0.1]
    """

    def __init__(
        self,
        n_components: Union[int, float, str, None] = None,
        *,
        whiten: bool = False,
        svd_solver: str = "auto",
        iterated_power: Union[int, str] = "auto",
        n_oversamples: Optional[int] = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "FlashPCA":
        """Computes the components."""
        self._fit(X, False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Computes the components, and returns transform(X)."""
        found = self._fit(X, True)
        count = self.n_components_
        scale = (self.n_samples_ - 1) ** 0.5 if self.whiten else found.s[:count]
        return found.U[:, :count] * numpy.asarray(scale, found.U.dtype)

    def _fit(self, X: Any, scores: bool) -> PCA:
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES, ensure_min_samples=2)
        if self.svd_solver not in _SOLVERS:
            raise ValueError(f"svd_solver is {self.svd_solver!r}, it must be one of {', '.join(_SOLVERS)}")
        wanted = self._wanted(*X.shape)
        power: Any = None if self.iterated_power == "auto" else self.iterated_power
        found = pca(
            X, wanted, compute_u=scores, oversampling=self.n_oversamples if wanted else None, power_steps=power,
            seed=seed_of(self.random_state)
        )
        self.n_samples_ = X.shape[0]
        self.mean_ = found.mean
        self._choose(found, min(X.shape))
        self.error_, self.error_low_, self.error_high_ = found.error, found.low, found.high
        if self.n_components_ < found.rank:  # of the exact values, the rest is left out
            rest = float(numpy.linalg.norm(found.s[self.n_components_ :].astype("float64")))
            self.error_ = self.error_low_ = self.error_high_ = rest
        return found

    def _wanted(self, samples: int, features: int) -> Optional[int]:
        """The components to compute; None: all, by QR."""
        count, most = self.n_components, min(samples, features)
        if count is None or count == "mle":
            if count == "mle" and samples < features:
                raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
            return None
        if not isinstance(count, numbers.Real) or isinstance(count, bool):
            raise ValueError(f"n_components is {count!r}, it must be a number, None or 'mle'")
        if 0 < count < 1:
            return None
        if count != int(count) or not 1 <= count <= most:
            raise ValueError(
                f"n_components={count!r} must be between 1 and min(n_samples, n_features)={most}, or above 0 and below "
                f"1, with svd_solver={self.svd_solver!r}"
            )
        small = max(samples, features) <= _SMALL or most <= _SMALL or count >= 0.8 * most
        full = self.svd_solver == "full" or self.svd_solver == "auto" and small
        return None if full else int(count)

    def _choose(self, found: PCA, most: int) -> None:
        """Sets what follows from the singular values."""
        variance, ratio = found.explained_variance, found.explained_variance_ratio
        count: Any = self.n_components
        if count is None:
            count = found.rank
        elif count == "mle":
            count = _minka(variance.astype("float64"), self.n_samples_)
        elif count < 1:
            count = int(numpy.searchsorted(numpy.cumsum(ratio.astype("float64")), count, side="right")) + 1
        self.n_components_ = count = min(int(count), found.rank)
        self.components_ = found.components[:count].copy()
        self.explained_variance_ = variance[:count].copy()
        self.explained_variance_ratio_ = ratio[:count].copy()
        self.singular_values_ = found.s[:count].copy()
        total = found.norm**2 / (self.n_samples_ - 1)
        left = max(0.0, total - float(self.explained_variance_.astype("float64").sum()))
        if found.rank == most:  # by QR: no cancellation
            left = float(variance[count:].astype("float64").sum())
        self.noise_variance_ = left / (most - count) if count < most else 0.0

    def transform(self, X: Any) -> Any:
        """The scores of X's rows: (X - mean_) components_', of unit variance where whiten is set."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES, reset=False)
        scores = X @ self.components_.T - self.mean_ @ self.components_.T
        return scores / self._deviation(scores.dtype) if self.whiten else scores

    def inverse_transform(self, X: Any) -> Any:
        """The rows whose transform is X, in the span of the components."""
        check_is_fitted(self)
        X = check_array(X, dtype=DTYPES)
        if self.whiten:
            X = X * self._deviation(X.dtype)
        return X @ self.components_ + self.mean_

    def _deviation(self, dtype: Any) -> Any:
        """The standard deviations of the components; where one is 0, a divisor that leaves 0 unchanged."""
        deviation = numpy.sqrt(self.explained_variance_)
        return numpy.maximum(deviation, numpy.finfo(deviation.dtype).eps).astype(dtype)

    def _loadings(self) -> Any:
        """W' of the model of Tipping and Bishop: X has the covariance W W' + noise_variance_ I."""
        spare = numpy.maximum(self.explained_variance_ - self.noise_variance_, 0)
        return self.components_ * numpy.sqrt(spare)[:, None]

    def get_covariance(self) -> Any:
        """The covariance of the model, features x features."""
        check_is_fitted(self)
        loadings = self._loadings()
        return loadings.T @ loadings + self.noise_variance_ * numpy.eye(self.n_features_in_, dtype=loadings.dtype)

    def get_precision(self) -> Any:
        """The inverse of the covariance of the model."""
        check_is_fitted(self)
        noise = self.noise_variance_
        if noise == 0:
            return numpy.linalg.inv(self.get_covariance())
        loadings = self._loadings()  # and then (W W' + noise I)^-1 by Woodbury's identity
        inner = noise * numpy.eye(len(loadings), dtype=loadings.dtype) + loadings @ loadings.T
        return (numpy.eye(self.n_features_in_) - loadings.T @ numpy.linalg.solve(inner, loadings)) / noise

    def score_samples(self, X: Any) -> Any:
        """The log-likelihood of each row of X under the model."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=DTYPES, reset=False) - self.mean_
        precision = self.get_precision()
        constant = self.n_features_in_ * numpy.log(2 * numpy.pi) - numpy.linalg.slogdet(precision)[1]
        return -0.5 * (numpy.einsum("ij,ij->i", X @ precision, X) + constant)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of X's rows under the model."""
        return float(numpy.mean(self.score_samples(X)))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _minka(variance: numpy.ndarray, samples: int) -> int:
    """The dimension with the largest evidence: T. Minka, Automatic choice of dimensionality for PCA, NIPS 2000, eq. 77;
    variance: of all components, descending."""
    from scipy.special import gammaln

    features = len(variance)
    best, largest = 1, -numpy.inf
    for count in range(1, features):
        noise = variance[count:].mean()
        kept = variance[:count]
        if noise <= numpy.finfo(float).eps * variance[0] or kept[-1] <= 0:
            continue
        sides = (features - numpy.arange(count)) / 2
        prior = (gammaln(sides) - sides * numpy.log(numpy.pi)).sum() - count * numpy.log(2)
        likelihood = -samples / 2 * (numpy.log(kept).sum() + (features - count) * numpy.log(noise))
        free = features * count - count * (count + 1) / 2
        smooth = numpy.append(kept, numpy.full(features - count, noise))
        row, column = numpy.triu_indices(count, 1, features)
        gaps = (1 / smooth[column] - 1 / smooth[row]) * (variance[row] - variance[column]) * samples
        if (gaps <= 0).any():
            continue
        evidence = prior + likelihood + (free + count) / 2 * numpy.log(2 * numpy.pi)
        evidence -= numpy.log(gaps).sum() / 2 + count / 2 * numpy.log(samples)
        if evidence > largest:
            best, largest = count, evidence
    return best


class FlashTruncatedSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The largest singular values without centring: a drop-in for sklearn.decomposition.TruncatedSVD.

    n_components: the number of singular values, at most min(n_samples, n_features).  n_iter: power steps, each of which
    reads X once more. n_oversamples: columns of the range beyond n_components.  random_state: an integer is the seed.

    Attributes after fit: components_, explained_variance_, explained_variance_ratio_, singular_values_, n_features_in_,
    feature_names_in_; error_ (|X - its approximation|, Frobenius) with error_low_ and error_high_, between which it
    lies in 99 of 100 draws.

    >>> import scipy.sparse
    >>> from flashsketch.sklearn import FlashTruncatedSVD
    >>> X = scipy.sparse.random(1000, 300, 0.01, random_state=0, format="csr")
    >>> FlashTruncatedSVD(n_components=5, random_state=0).fit_transform(X).shape
    (1000, 5)
    """

    components_: Any

    def __init__(
        self, n_components: int = 2, *, n_iter: int = 5, n_oversamples: int = 10, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "FlashTruncatedSVD":
        """Computes the singular values and vectors."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Computes the singular values and vectors, and returns transform(X)."""
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES, ensure_min_features=2)
        count, most = self.n_components, min(X.shape)
        if not isinstance(count, numbers.Integral) or not 1 <= count <= most:
            raise ValueError(
                f"n_components({count!r}) must be an integer from 1 on and <= n_features and n_samples({most})."
            )
        found = svd(
            X, int(count), oversampling=self.n_oversamples, power_steps=self.n_iter, seed=seed_of(self.random_state)
        )
        self.components_, self.singular_values_ = found.Vt, found.s
        self.error_, self.error_low_, self.error_high_ = found.error, found.low, found.high
        scores = found.U * found.s
        self.explained_variance_ = scores.var(axis=0)
        mean = numpy.asarray(X.mean(axis=0)).ravel().astype("float64")
        total = found.norm**2 / X.shape[0] - mean @ mean
        share = self.explained_variance_ / total if total > 0 else numpy.zeros(count)
        self.explained_variance_ratio_ = share.astype(scores.dtype)
        return scores

    def transform(self, X: Any) -> Any:
        """X components_'."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES, reset=False)
        return X @ self.components_.T

    def inverse_transform(self, X: Any) -> Any:
        """X components_: rows in the span of the components."""
        check_is_fitted(self)
        return check_array(X, dtype=DTYPES) @ self.components_

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
