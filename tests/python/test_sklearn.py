"""FlashSketchProjection is a scikit-learn transformer and does what SparseRandomProjection does."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", "1.6")
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import SparseRandomProjection
from sklearn.utils.estimator_checks import parametrize_with_checks

import flashsketch as fs
from flashsketch.sklearn import FlashSketchProjection

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataDimensionalityWarning")


@parametrize_with_checks([FlashSketchProjection(n_components=3), FlashSketchProjection(n_components=3, density=0.5)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def data(n=30, d=3000, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_it_has_the_parameters_and_attributes_of_sparse_random_projection():
    assert FlashSketchProjection().get_params() == {**SparseRandomProjection().get_params(), "quality": "default"}
    options = {"n_components": 50, "random_state": 3, "compute_inverse_components": True}
    ours, theirs = FlashSketchProjection(**options).fit(data()), SparseRandomProjection(**options).fit(data())
    for name in ("n_components_", "n_features_in_"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.components_.shape == theirs.components_.shape
    assert ours.inverse_components_.shape == theirs.inverse_components_.shape
    assert 0 < ours.density_ <= 1


def test_n_components_auto_is_what_the_lemma_asks_for():
    X = data(n=10, d=5000)
    ours, theirs = FlashSketchProjection(eps=0.5).fit(X), SparseRandomProjection(eps=0.5).fit(X)
    assert ours.n_components_ == theirs.n_components_ == ours.transform(X).shape[1]
    with pytest.raises(ValueError, match="lead to a dimension of .* which is more than the 100 features"):
        FlashSketchProjection(eps=0.5).fit(X[:, :100])


def test_the_projection_is_that_of_the_sketch_and_keeps_distances():
    X = data()
    projection = FlashSketchProjection(n_components=1000, random_state=7).fit(X)
    assert projection.sketch_ == fs.Sketch(k=1000, d=3000, seed=7, batch_major=True)
    Z = projection.transform(X)
    np.testing.assert_allclose(Z, X @ projection.components_.T.toarray(), atol=1e-10)
    near, far = np.linalg.norm(X[1:] - X[:-1], axis=1), np.linalg.norm(Z[1:] - Z[:-1], axis=1)
    assert np.abs(far / near - 1).max() < 0.15


def test_density_is_the_part_of_a_column_that_is_not_zero():
    projection = FlashSketchProjection(n_components=200, density=0.1, random_state=0).fit(data())
    assert projection.density_ == 0.1 and projection.components_.nnz == 20 * 3000
    for quality, nonzeros in (("fast", 4), ("default", 8), ("high", 16), ("gaussian", 32)):
        projection = FlashSketchProjection(n_components=512, random_state=0, quality=quality).fit(data())
        assert projection.density_ == nonzeros / 512 and projection.components_.nnz == nonzeros * 3000
    with pytest.raises(ValueError, match="density is 1.5"):
        FlashSketchProjection(n_components=5, density=1.5).fit(data())


def test_sparse_input_gives_sparse_output_unless_dense_is_asked_for():
    X = scipy.sparse.random(20, 3000, 0.01, format="csr", random_state=0)
    projection = FlashSketchProjection(n_components=100, random_state=0).fit(X)
    Z = projection.transform(X)
    assert scipy.sparse.issparse(Z)
    dense = projection.set_params(dense_output=True).transform(X)
    np.testing.assert_allclose(dense, projection.transform(X.toarray()), atol=1e-12)
    np.testing.assert_allclose(dense, Z.toarray(), atol=1e-12)


def test_inverse_transform_is_a_right_inverse():
    projection = FlashSketchProjection(n_components=50, random_state=0, compute_inverse_components=True)
    Z = projection.fit_transform(data())
    np.testing.assert_allclose(projection.transform(projection.inverse_transform(Z)), Z, atol=1e-9)


def test_seeds_pickles_clones_pipelines_and_names():
    X = data()
    first, second = (FlashSketchProjection(40, random_state=seed).fit_transform(X) for seed in (1, 2))
    assert (first == FlashSketchProjection(40, random_state=1).fit_transform(X)).all() and (first != second).any()
    fitted = clone(FlashSketchProjection(40, random_state=1)).fit(X)
    assert (pickle.loads(pickle.dumps(fitted)).transform(X) == first).all()
    assert list(fitted.get_feature_names_out()[:2]) == ["flashsketchprojection0", "flashsketchprojection1"]
    with pytest.warns(DataDimensionalityWarning, match="n_components = 40 is more than the 10 features"):
        FlashSketchProjection(40).fit(X[:, :10])
    labels = np.arange(30) % 2
    X[labels == 1] += 0.5
    pipeline = make_pipeline(FlashSketchProjection(200, random_state=1), KNeighborsClassifier(3))
    assert pipeline.fit(X, labels).score(X, labels) > 0.9


def test_float32_stays_float32():
    X = data().astype("float32")
    assert FlashSketchProjection(40, random_state=0).fit_transform(X).dtype == np.float32
