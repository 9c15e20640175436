"""Estimators for scikit-learn (1.6 or later), drop-in replacements of its own.

FlashSketchProjection replaces SparseRandomProjection, FlashLinearRegression and FlashRidge LinearRegression and Ridge,
FlashPCA and FlashTruncatedSVD PCA and TruncatedSVD.
"""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Optional, Union

import numpy
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.random_projection import johnson_lindenstrauss_min_dim
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._components import FlashPCA, FlashTruncatedSVD
from ._linear_models import DTYPES, FlashLinearRegression, FlashRidge, seed_of
from ._sketch import Sketch

__all__ = ["FlashLinearRegression", "FlashPCA", "FlashRidge", "FlashSketchProjection", "FlashTruncatedSVD"]


class FlashSketchProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Reduces the dimension by a random sketch: X (n x d) becomes X S' (n x k).

    A drop-in for sklearn.random_projection.SparseRandomProjection, with its parameters and attributes.

    n_components: k; "auto": the bound of the Johnson-Lindenstrauss lemma for eps.  density: "auto" is the library's own
    sketch for batches; a number above 0 and up to 1 is an SJLT with that share of each column nonzero.  eps: the
    distortion that "auto" allows.  dense_output: False gives a sparse result for sparse X.  quality, of density "auto":
    "fast" (4 nonzeros a column), "default" (8), "high" (16) or "gaussian" (32).
    compute_inverse_components: also compute the pseudo-inverse in `fit` (k x d numbers) for `inverse_transform`.
    random_state: an integer is the seed of the sketch.

    Attributes after fit: sketch_ (a flashsketch.Sketch), n_components_, density_, n_features_in_, components_ (S
    written out, on first use), inverse_components_.

    >>> import numpy as np
    >>> from flashsketch.sklearn import FlashSketchProjection
    >>> X = np.random.default_rng(0).standard_normal((25, 3000))
    >>> FlashSketchProjection(n_components=200, random_state=0).fit_transform(X).shape
    (25, 200)
    """

    def __init__(
        self,
        n_components: Union[int, str] = "auto",
        *,
        density: Union[float, str] = "auto",
        eps: float = 0.1,
        dense_output: bool = False,
        compute_inverse_components: bool = False,
        random_state: Any = None,
        quality: str = "default",
    ) -> None:
        self.n_components = n_components
        self.density = density
        self.eps = eps
        self.dense_output = dense_output
        self.compute_inverse_components = compute_inverse_components
        self.random_state = random_state
        self.quality = quality

    def fit(self, X: Any, y: Any = None) -> "FlashSketchProjection":
        """Creates the sketch; only the shape and type of X are used."""
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES)
        samples, features = X.shape
        self.n_components_ = self._components(samples, features)
        options: Any = {"batch_major": True, "quality": self.quality}
        density = self.density
        if density != "auto":
            if not isinstance(density, numbers.Real) or not 0 < density <= 1:
                raise ValueError(f"density is {density!r}, it must be 'auto' or above 0 and at most 1")
            options = {"family": "sjlt", "s": max(1, round(float(density) * self.n_components_))}
        self.sketch_ = Sketch(self.n_components_, features, seed_of(self.random_state), **options)
        spec = self.sketch_.spec
        self.density_ = spec.get("kappa", 1) * spec["s"] / self.n_components_
        self._dtype = X.dtype
        if self.compute_inverse_components:
            self.inverse_components_ = numpy.linalg.pinv(self.components_.toarray()).astype(X.dtype, copy=False)
        return self

    def _components(self, samples: int, features: int) -> int:
        if self.n_components == "auto":
            count = int(johnson_lindenstrauss_min_dim(n_samples=samples, eps=self.eps))
            if count <= 0:
                raise ValueError(f"eps = {self.eps} and n_samples = {samples} lead to a dimension of {count}")
            if count > features:
                raise ValueError(
                    f"eps = {self.eps} and n_samples = {samples} lead to a dimension of {count}, which is more than "
                    f"the {features} features: set n_components"
                )
            return count
        if not isinstance(self.n_components, (int, numpy.integer)) or self.n_components < 1:
            raise ValueError(f"n_components is {self.n_components!r}, it must be 'auto' or an integer from 1 on")
        if self.n_components > features:
            warnings.warn(
                f"n_components = {self.n_components} is more than the {features} features: the dimension grows",
                DataDimensionalityWarning,
                stacklevel=3,
            )
        return int(self.n_components)

    def transform(self, X: Any) -> Any:
        """X S', n x k."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=DTYPES, reset=False)
        projected = self.sketch_.project(X)
        return scipy.sparse.csr_matrix(projected) if scipy.sparse.issparse(X) and not self.dense_output else projected

    @property
    def components_(self) -> Any:
        """S written out, a sparse k x d matrix."""
        check_is_fitted(self, "sketch_")
        return self.sketch_.to_scipy(self._dtype)

    def inverse_transform(self, X: Any) -> Any:
        """The samples of least norm that are projected to X: n x d, by the pseudo-inverse of S."""
        check_is_fitted(self)
        X = check_array(X, dtype=DTYPES, accept_sparse=("csr", "csc"))
        inverse: Optional[Any] = getattr(self, "inverse_components_", None)
        if inverse is None:
            inverse = numpy.linalg.pinv(self.components_.toarray())
        return X @ inverse.T

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
