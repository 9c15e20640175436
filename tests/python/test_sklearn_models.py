"""FlashLinearRegression, FlashRidge, FlashPCA and FlashTruncatedSVD are scikit-learn estimators, and find what
scikit-learn's own find."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", "1.6")
import scipy.sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import flashsketch as fs
from flashsketch.sklearn import FlashLinearRegression, FlashPCA, FlashRidge, FlashTruncatedSVD

try:
    fs.lstsq(np.ones((3, 1)), np.ones(3))
except fs.BackendError as error:
    pytest.skip(f"solvers cannot run here: {error}", allow_module_level=True)

ESTIMATORS = [
    FlashLinearRegression(),
    FlashLinearRegression(fit_intercept=False, compute_singular=True),
    FlashRidge(),
    FlashRidge(alpha=0.1, fit_intercept=False),
    FlashPCA(n_components=1),
    FlashPCA(n_components=1, svd_solver="randomized", whiten=True),
    FlashTruncatedSVD(n_components=1),
]
SPARSE = [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# linear models --------------------------------------------------------------------------------------------------------


def diabetes(targets=1):
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    return X, y if targets == 1 else np.c_[y, y[::-1], X[:, 2] - X[:, 3]]


def same(ours, theirs, X, rtol=1e-9):
    """The same model, and the same shapes, types and predictions."""
    assert np.shape(ours.coef_) == np.shape(theirs.coef_) and ours.coef_.dtype == theirs.coef_.dtype
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=rtol * abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=rtol * abs(theirs.predict(X)).max())
    made, wanted = ours.predict(X), theirs.predict(X)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, rtol=rtol, atol=rtol * abs(wanted).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_regression_is_scikit_learns_on_real_data(fit_intercept, targets, weighted):
    X, y = diabetes(targets)
    weights = np.random.default_rng(0).integers(0, 4, len(X)) if weighted else None
    options = {"fit_intercept": fit_intercept}
    ours = FlashLinearRegression(**options, compute_singular=True).fit(X, y, weights)
    theirs = LinearRegression(**options).fit(X, y, weights)
    same(ours, theirs, X)
    assert ours.rank_ == theirs.rank_
    np.testing.assert_allclose(ours.singular_, theirs.singular_, rtol=1e-9)
    np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=1e-9)
    for kind in SPARSE:
        same(FlashLinearRegression(**options).fit(kind(X), y, weights), theirs, X, 1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_is_scikit_learns_on_real_data(fit_intercept, alpha, weighted):
    weights = np.random.default_rng(0).random(442) if weighted else None
    options = {"fit_intercept": fit_intercept}
    for targets in (1, 3):
        X, y = diabetes(targets)
        theirs = Ridge(alpha, **options, solver="svd").fit(X, y, weights)
        same(FlashRidge(alpha, **options).fit(X, y, weights), theirs, X)
        for kind in SPARSE:
            same(FlashRidge(alpha, **options).fit(kind(X), y, weights), theirs, X, 1e-8)


def test_an_alpha_for_each_target():
    X, y = diabetes(3)
    ours = FlashRidge([0.1, 10, 0.1]).fit(X, y)
    same(ours, Ridge(np.array([0.1, 10, 0.1]), solver="svd").fit(X, y), X)
    assert ours.n_iter_.shape == (3,) and (ours.n_iter_ >= 1).all()
    with pytest.raises(ValueError, match=r"alpha has shape \(2,\), and y 3 targets"):
        FlashRidge([1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="alpha is -1"):
        FlashRidge(-1).fit(X, y)
    with pytest.raises(ValueError, match="alpha is nan"):
        FlashRidge(np.nan).fit(X, y)


def wide():
    """More features than samples, and dependent ones."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 80))
    X[rng.random(X.shape) < 0.7] = 0
    X[:, 40] = X[:, 41] + X[:, 42]
    return X, rng.standard_normal((30, 2))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_more_features_than_samples_have_the_shortest_coefficients(fit_intercept):
    X, y = wide()
    options = {"fit_intercept": fit_intercept}
    theirs = LinearRegression(**options).fit(X, y)
    same(FlashLinearRegression(**options).fit(X, y), theirs, X, 1e-8)
    same(FlashLinearRegression(**options).fit(scipy.sparse.csr_array(X), y), theirs, X, 1e-8)
    for alpha in (1e-3, 10):
        theirs = Ridge(alpha, **options, solver="svd").fit(X, y)
        same(FlashRidge(alpha, **options).fit(X, y), theirs, X, 1e-8)
        same(FlashRidge(alpha, **options).fit(scipy.sparse.csr_array(X), y), theirs, X, 1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dependent_features_have_the_shortest_coefficients(fit_intercept):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12))
    X[:, 5], X[:, 6] = X[:, 4], 3.0
    y = rng.standard_normal(400)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    ours = FlashLinearRegression(fit_intercept=fit_intercept).fit(X, y)
    same(ours, theirs, X, 1e-9)
    assert ours.rank_ == theirs.rank_ == (10 if fit_intercept else 11)
    same(FlashLinearRegression(fit_intercept=fit_intercept).fit(scipy.sparse.csc_matrix(X), y), theirs, X, 1e-8)


@pytest.mark.parametrize("d", [300, 5000])
def test_a_large_sparse_x_is_not_made_dense_and_badly_scaled_columns_converge(d):
    """Condition 1e6, at which LSQR without a preconditioner would need thousands of iterations."""
    rng = np.random.default_rng(4)
    X = scipy.sparse.random(d, 40, 0.3, random_state=0, format="csr") @ scipy.sparse.diags(np.logspace(0, 6, 40))
    y = X @ np.logspace(0, -6, 40) + rng.standard_normal(d) + 7
    wanted = np.linalg.lstsq(np.c_[X.toarray(), np.ones(d)], y, rcond=None)[0]
    ours = FlashLinearRegression()
    with pytest.MonkeyPatch.context() as patch:
        if d == 5000:
            patch.setattr(scipy.sparse.csr_matrix, "toarray", None)
        ours.fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(ours.coef_, wanted[:-1], rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, wanted[-1], rtol=1e-7)


def test_without_the_preconditioner_the_answer_is_the_same(monkeypatch):
    import flashsketch._sparse_regression as regression

    monkeypatch.setattr(regression, "MOST", 0)
    for X, y in (diabetes(), wide()):
        X = StandardScaler().fit_transform(X)
        for ours, theirs in ((FlashLinearRegression(), LinearRegression()), (FlashRidge(2.0), Ridge(2.0))):
            same(ours.fit(scipy.sparse.csr_matrix(X), y), theirs.fit(X, y), X, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_types_are_kept_and_x_is_not_changed(dtype):
    X, y = (array.astype(dtype) for array in diabetes())
    before = X.copy()
    for ours, theirs in [(FlashLinearRegression(), LinearRegression()), (FlashRidge(2.0), Ridge(2.0))]:
        ours.fit(X, y, np.arange(442) % 5)
        assert ours.coef_.dtype == dtype and ours.predict(X).dtype == dtype and (X == before).all()
        same(ours, theirs.fit(X, y, np.arange(442) % 5), X, 1e-9 if dtype == "float64" else 1e-3)
    FlashLinearRegression(copy_X=False).fit(X, y)
    assert abs(X.mean(0)).max() < 1e-3  # it was centred where it is


def test_weights_that_are_wrong():
    X, y = diabetes()
    for weights, message in [
        (np.ones(5), "sample_weight has 5 elements, and X 442 rows"),
        (-np.ones(442), "Negative values"),
        (np.full(442, np.nan), "NaN"),
        (0, "all sample weights are zero"),
    ]:
        with pytest.raises(ValueError, match=message):
            FlashRidge().fit(X, y, weights)
    same(FlashRidge().fit(X, y, 2.0), Ridge(solver="svd").fit(X, y, 2.0), X)


def test_pipelines_searches_clones_and_pickles():
    X, y = diabetes()
    search = GridSearchCV(make_pipeline(StandardScaler(), FlashRidge()), {"flashridge__alpha": [0.1, 10, 1000]})
    theirs = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 10, 1000]})
    search.fit(X, y), theirs.fit(X, y)
    assert search.best_params_["flashridge__alpha"] == theirs.best_params_["ridge__alpha"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-9)
    model = clone(FlashRidge(3.0, random_state=1)).fit(X, y)
    assert model.get_params()["alpha"] == 3.0 and model.get_params()["random_state"] == 1
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    again = FlashRidge(3.0, random_state=1).fit(X, y)
    assert (again.coef_ == model.coef_).all()


def test_feature_names_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True)
    model = FlashLinearRegression().fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame(X.to_numpy(), columns=list("abcdefghij")))


# decompositions -------------------------------------------------------------------------------------------------------


def digits():
    return datasets.load_digits(return_X_y=True)


def same_components(ours, theirs, rtol=1e-9):
    for name in ("n_components_", "n_samples_", "n_features_in_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None), name
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_", "noise_variance_", "mean_"):
        if hasattr(theirs, name):
            made, wanted = getattr(ours, name), getattr(theirs, name)
            assert np.shape(made) == np.shape(wanted), name
            least = 1e-3 if name == "mean_" else np.max(np.abs(wanted))
            np.testing.assert_allclose(made, wanted, rtol=rtol, atol=rtol * least, err_msg=name)
    # A component whose neighbours have nearly its singular value is less certain.
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e3 * rtol)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "diabetes"])
@pytest.mark.parametrize("whiten", [False, True])
def test_pca_is_scikit_learns_on_real_data(name, whiten):
    X = getattr(datasets, f"load_{name}")(return_X_y=True)[0]
    for count in (1, 3):
        ours = FlashPCA(count, whiten=whiten, random_state=0)
        theirs = PCA(count, whiten=whiten, svd_solver="full").fit(X)
        Z = ours.fit_transform(X)
        same_components(ours, theirs)
        np.testing.assert_allclose(Z, theirs.transform(X), atol=1e-8 * abs(Z).max())
        np.testing.assert_allclose(ours.transform(X), Z, atol=1e-9 * abs(Z).max())
        np.testing.assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(Z), atol=1e-8 * abs(X).max())


@pytest.mark.parametrize("count", [None, 0.5, 0.95, 0.999999, "mle"])
def test_pca_chooses_as_many_components_as_scikit_learn(count):
    for X in (datasets.load_wine(return_X_y=True)[0], digits()[0][:, 10:30], diabetes()[0]):
        ours, theirs = FlashPCA(count).fit(X), PCA(count, svd_solver="full").fit(X)
        same_components(ours, theirs, 1e-8)
        assert FlashPCA(count).fit_transform(X).shape == (len(X), theirs.n_components_)


def test_minkas_estimate_is_scikit_learns_where_it_is_close():
    rng, counts = np.random.default_rng(7), set()
    for _ in range(12):
        X = rng.standard_normal((40, 10)) * np.linspace(2.5, 0.8, 10)
        counts.add(FlashPCA("mle").fit(X).n_components_)
        assert FlashPCA("mle").fit(X).n_components_ == PCA("mle", svd_solver="full").fit(X).n_components_
    assert len(counts) > 1


def test_a_constant_column_of_a_sparse_x_does_not_count():
    rng = np.random.default_rng(8)
    for constant in (3.1, 0.7, 100 / 3):
        X = np.c_[rng.standard_normal((3000, 5)), np.full(3000, constant)]
        y = rng.standard_normal(3000)
        ours = FlashLinearRegression().fit(scipy.sparse.csr_array(X), y)
        exact = LinearRegression().fit(X[:, :5], y)
        np.testing.assert_allclose(ours.coef_[:5], exact.coef_, rtol=1e-8)
        assert abs(ours.coef_[5]) < 1e-8


def test_pca_of_few_samples_and_of_sparse_ones():
    X = digits()[0][:20]
    same_components(FlashPCA(5).fit(X), PCA(5, svd_solver="full").fit(X))
    X = digits()[0] * (digits()[0] > 9)
    theirs = PCA(4, svd_solver="full").fit(X)
    for kind in SPARSE[:2]:
        ours = FlashPCA(4).fit(kind(X))
        same_components(ours, theirs)
        np.testing.assert_allclose(ours.transform(kind(X)), theirs.transform(X), atol=1e-7)
        np.testing.assert_allclose(FlashPCA(4).fit_transform(kind(X)), theirs.transform(X), atol=1e-7)


def test_randomized_pca_is_near_and_knows_its_error():
    X = digits()[0]
    theirs = PCA(10, svd_solver="full").fit(X)
    ours = FlashPCA(10, svd_solver="randomized", iterated_power=6, n_oversamples=20, random_state=3).fit(X)
    same_components(ours, theirs, 1e-5)
    centred = X - X.mean(0)
    error = np.linalg.norm(centred - centred @ ours.components_.T @ ours.components_)
    assert ours.error_low_ <= error * (1 + 1e-9) and error <= ours.error_high_ * (1 + 1e-9)
    exact = FlashPCA(10, svd_solver="full").fit(X)
    np.testing.assert_allclose(exact.error_, np.linalg.norm(centred - exact.inverse_transform(exact.transform(X))
                                                            + X.mean(0)), rtol=1e-9)
    again = FlashPCA(10, svd_solver="randomized", iterated_power=6, n_oversamples=20, random_state=3).fit(X)
    assert (again.components_ == ours.components_).all()
    other = FlashPCA(10, svd_solver="randomized", iterated_power=0, random_state=4).fit(X)
    assert (other.components_ != ours.components_).any()


def test_the_likelihood_of_pca_is_scikit_learns():
    X = datasets.load_breast_cancer(return_X_y=True)[0][:, :8]
    X = StandardScaler().fit_transform(X)
    for count in (1, 3, 8):
        ours, theirs = FlashPCA(count).fit(X), PCA(count, svd_solver="full").fit(X)
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-9)
        np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
        np.testing.assert_allclose(ours.score(X), theirs.score(X), rtol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, *SPARSE[:2]])
def test_truncated_svd_is_scikit_learns_on_real_data(kind):
    X = digits()[0]
    ours, theirs = FlashTruncatedSVD(6, n_iter=10, random_state=0), TruncatedSVD(6, algorithm="arpack")
    Z = ours.fit_transform(kind(X))
    wanted = theirs.fit_transform(X)
    assert np.array_equal(np.sign(ours.components_[:, 30]), np.sign(theirs.components_[:, 30]))
    same_components(ours, theirs, 1e-7)
    np.testing.assert_allclose(Z, wanted, atol=1e-4)
    np.testing.assert_allclose(ours.transform(kind(X)), Z, atol=1e-8)
    np.testing.assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(wanted), atol=1e-4)
    error = np.linalg.norm(X - ours.inverse_transform(Z))
    assert ours.error_low_ <= error * (1 + 1e-9) and error <= ours.error_high_ * (1 + 1e-9)


def test_decompositions_in_a_pipeline():
    X, y = digits()
    pipeline = make_pipeline(FlashPCA(random_state=0), LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"flashpca__n_components": [2, 20]}, cv=2)
    search.fit(X / 16, y)
    assert search.best_params_ == {"flashpca__n_components": 20} and search.best_score_ > 0.85
    names = FlashTruncatedSVD(2).fit(X).get_feature_names_out()
    assert list(names) == ["flashtruncatedsvd0", "flashtruncatedsvd1"]
    assert list(FlashPCA(1).fit(X).get_feature_names_out()) == ["flashpca0"]


def test_decompositions_keep_float32():
    X = digits()[0].astype("float32")
    for model in (FlashPCA(3), FlashPCA(3, svd_solver="randomized"), FlashTruncatedSVD(3), FlashPCA(3, whiten=True)):
        Z = model.fit_transform(X)
        assert Z.dtype == model.components_.dtype == model.transform(X).dtype == np.float32
        np.testing.assert_allclose(Z, model.transform(X), atol=1e-3 * abs(Z).max())


def test_wrong_numbers_of_components():
    X = digits()[0][:40]
    for count, message in [(0, "n_components=0 must be between 1 and"), (41, "=41 must be between 1 and .*=40"),
                           (1.5, "n_components=1.5"), ("all", "n_components is 'all'"), (-1, "n_components=-1")]:
        with pytest.raises(ValueError, match=message):
            FlashPCA(count).fit(X)
    with pytest.raises(ValueError, match="mle.*n_samples >= n_features"):
        FlashPCA("mle").fit(X)
    with pytest.raises(ValueError, match="svd_solver is 'arpack'"):
        FlashPCA(2, svd_solver="arpack").fit(X)
    for count in (0, 41, 2.0, None):
        with pytest.raises(ValueError, match="n_components"):
            FlashTruncatedSVD(count).fit(X)
