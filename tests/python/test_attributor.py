"""Attribution: features and scores by their definition, gradients of every form, and wrong arguments, which are
refused.

The reference is computed in double: phi = scale S g[mask] with S of to_scipy and the mask of the attributor itself, and
scores = phi (Phi'Phi + damping I)^-1 Phi' diag(weights).
"""

import threading

import numpy as np
import pytest
from properties import FAMILIES, dense

import flashsketch as fs
from flashsketch.attribution import Attributor, top

try:
    Attributor(3, examples=1, k=2)
except fs.BackendError as error:
    pytest.skip(f"attribution cannot run here: {error}", allow_module_level=True)

SHAPES = {"conv.weight": (8, 3, 3, 3), "conv.bias": (8,), "scale": (), "head.weight": (10, 33), "none": (0, 4)}
COUNTS = {name: int(np.prod(shape)) for name, shape in SHAPES.items()}
P, N, Q, K = sum(COUNTS.values()), 30, 4, 24


def gradients(n=N, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((n, *shape)).astype(dtype) for name, shape in SHAPES.items()}


def together(grads):
    return np.concatenate([np.asarray(g).reshape(len(g), -1) for g in grads.values()], axis=1)


def features_of(model, grads, scale=P**-0.5):
    kept = together(grads).astype("float64")
    return scale * (kept if model.mask is None else kept[:, model.mask]) @ dense(model.sketch).T


def scores_of(Phi, phi, damping, weights=1.0):
    return phi @ np.linalg.solve(Phi.T @ Phi + damping * np.eye(Phi.shape[1]), Phi.T) * weights


def made(grads=None, *, mask=0, k=K, damping=0.1, **options):
    model = Attributor(COUNTS, N, k, mask=mask, **options)
    model.add(gradients() if grads is None else grads)
    model.finish(damping)
    return model


# the definition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0, 300])
@pytest.mark.parametrize("options", FAMILIES, ids=str)
def test_features_and_scores_are_the_definitions(options, mask):
    model, queries, k = made(mask=mask, k=256, seed=5, **options), gradients(Q, seed=1), 256
    Phi, phi = features_of(model, gradients()), features_of(model, queries)
    np.testing.assert_allclose(model.features, Phi, atol=1e-5)
    projected = model.project(queries)
    assert projected.shape == (Q, k) and projected.dtype == np.float32
    np.testing.assert_allclose(projected, phi, atol=1e-5)
    # Scores are f64's of the f32 features, which are what the attributor has.
    Phi, phi, weights = model.features.astype("float64"), projected.astype("float64"), np.linspace(-1, 2, N)
    for damping in (0.01, 1.0):
        model.finish(damping)
        assert model.scores(projected).shape == (Q, N)
        np.testing.assert_allclose(model.scores(projected), scores_of(Phi, phi, damping), atol=1e-9)
        np.testing.assert_allclose(model.scores(projected, weights), scores_of(Phi, phi, damping, weights), atol=1e-9)


def test_the_mask_is_drawn_from_the_seed_over_all_coordinates():
    masks = [made(mask=96, seed=seed).mask for seed in (1, 1, 2)]
    assert (masks[0] == masks[1]).all() and (masks[0] != masks[2]).any()
    assert len(masks[0]) == 96 and (np.diff(masks[0]) > 0).all() and 0 <= masks[0][0] and masks[0][-1] < P
    assert (Attributor(P, N, K, mask=96, seed=1).mask == masks[0]).all() and made().mask is None


def test_a_mask_in_runs_keeps_neighbours_together():
    mask = Attributor(1003, N, K, mask=96, run=8).mask
    assert (mask.reshape(-1, 8) - mask[::8, None] == np.arange(8)).all() and (mask[::8] % 8 == 0).all()
    assert (np.diff(mask) > 0).all() and mask[-1] < 1000


def test_the_scale_is_what_it_is_told_to_be():
    model = made(scale=2.0)
    np.testing.assert_allclose(model.features, features_of(model, gradients(), 2.0), rtol=1e-4, atol=1e-4)


# what gradients come in -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0, 96])
def test_a_dict_is_a_list_is_one_array(mask):
    grads, nested = gradients(), gradients()
    rest = {name: nested.pop(name) for name in ("head.weight", "none")}
    models = [
        (Attributor(COUNTS, N, K, mask=mask), grads),
        (Attributor(COUNTS, N, K, mask=mask), dict(reversed(grads.items()))),  # names count, not their order
        (Attributor(COUNTS, N, K, mask=mask), together(grads)),
        (Attributor(list(COUNTS.values()), N, K, mask=mask), list(grads.values())),
        (Attributor({"net": [COUNTS[n] for n in nested], "head": {n: COUNTS[n] for n in rest}}, N, K, mask=mask),
         {"head": rest, "net": tuple(nested.values())}),
        (Attributor({n: g[0] for n, g in grads.items()}, N, K, mask=mask), grads),  # of arrays, not of numbers
    ]
    for model, batch in models:
        model.add(batch)
        assert (model.features == models[0][0].features).all()
        assert (model.project(batch) == models[0][0].features).all()
    whole = Attributor(P, N, K, mask=mask)
    whole.add(together(grads))
    np.testing.assert_allclose(whole.features, models[0][0].features, atol=1e-6)  # sums of other slices
    for shape in ((P, 1), (1, P)):
        assert (whole.project(together(grads).reshape(N, *shape)) == whole.features).all()


@pytest.mark.parametrize("mask", [0, 96])
def test_any_strides(mask):
    grads, model = gradients(), Attributor(COUNTS, N, K, mask=mask)
    want = model.project(grads)

    def stretched(array, axis):
        wide = np.zeros([size * (1 + (i == axis)) for i, size in enumerate(array.shape)], array.dtype)
        view = wide[tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(array.ndim))]
        view[...] = array
        return view

    for remake in (
        np.asfortranarray,
        lambda a: a[::-1].copy()[::-1],
        lambda a: a[..., ::-1].copy()[..., ::-1],
        lambda a: stretched(a, 0),
        lambda a: stretched(a, a.ndim - 1),
        lambda a: np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1) if a.ndim > 2 else a,  # channels last: is copied
    ):
        batch = {name: remake(grad) for name, grad in grads.items()}
        np.testing.assert_allclose(model.project(batch), want, atol=1e-6)
    whole = together(grads)
    np.testing.assert_allclose(model.project(np.asfortranarray(whole)), want, atol=1e-6)
    np.testing.assert_allclose(model.project(np.broadcast_to(whole[:1], (3, P))), want[[0, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("mask", [0, 96])
def test_half_types(mask):
    half, model = gradients(dtype="float16"), Attributor(COUNTS, N, K, mask=mask)
    phi = model.project(half)
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi, features_of(model, half), atol=1e-5)


def test_batches_in_any_order_and_size():
    grads, want = together(gradients()), made().features
    for size in (1, 7, N):
        model = Attributor(COUNTS, N, K)
        for first in range(0, N, size):
            assert model.added.tolist() == [i < first for i in range(N)]
            model.add(grads[first : first + size])
        assert (model.features == want).all() and model.added.all()
    model = Attributor(COUNTS, N, K)
    for first, end in ((20, 30), (0, 5), (12, 22)):
        model.add(grads[first:end], first)
    model.add(grads[5:12])  # the first that is missing is 5
    assert (model.features == want).all() and model.added.all()
    model.add(grads[:0])
    model.add(grads[:3] + 1, first=0)  # replaces
    assert (model.features[:3] != want[:3]).any() and (model.features[3:] == want[3:]).all()
    with pytest.raises(fs.InvalidArgument, match="fs_attribution_factor comes first"):
        model.scores(want)


def test_an_ensemble_is_the_mean():
    total, each = None, []
    for seed in range(3):
        model = made(gradients(seed=seed), seed=seed)
        phi, weights = model.project(gradients(Q, seed=10 + seed)), np.linspace(0, seed, N)
        each.append(model.scores(phi, weights))
        total = model.scores(phi, weights, alpha=1 / 3, add_to=total)
    np.testing.assert_allclose(total, np.mean(each, axis=0), atol=1e-12)
    narrow = np.ones((Q, 2 * N), "float32")
    assert model.scores(phi, weights, add_to=narrow[:, ::2]).base is narrow
    np.testing.assert_allclose(narrow[:, ::2], 1 + each[-1], rtol=1e-6)
    assert (narrow[:, 1::2] == 1).all()


# caches ---------------------------------------------------------------------------------------------------------------


def test_features_put_back_are_features_added(tmp_path):
    model, phi = made(mask=96), made(mask=96).project(gradients(Q, seed=1))
    other, third = Attributor(COUNTS, N, K, mask=96), Attributor(P, N, K, mask=96)  # the cut does not matter
    other.restore(model.features[:10])
    other.restore(model.features[10:])
    model.save(tmp_path / "features.npz")
    third.load(tmp_path / "features.npz")
    for one in (other, third):
        one.finish(0.1)
        assert (one.scores(phi) == model.scores(phi)).all()
    with np.load(tmp_path / "features.npz") as file:
        assert (file["features"] == model.features).all()
    assert [path.name for path in tmp_path.iterdir()] == ["features.npz"]


def test_a_run_goes_on_where_its_file_ends(tmp_path):
    grads, model, other = together(gradients()), Attributor(COUNTS, N, K), Attributor(COUNTS, N, K)
    model.add(grads[:8])
    model.add(grads[20:25], first=20)
    model.save(tmp_path / "some")
    other.load(tmp_path / "some")
    assert (other.added == model.added).all() and other.added.sum() == 13
    other.add(grads[8:20])
    other.add(grads[25:])
    assert (other.features == made().features).all()
    Attributor(COUNTS, N, K).save(tmp_path / "some")  # none
    other.load(tmp_path / "some")
    assert other.added.all()


def test_a_file_of_other_features_or_half_a_file_is_refused(tmp_path):
    path = tmp_path / "features.npz"
    made(mask=96, seed=3).save(path)
    for options, message in [
        ({"mask": 96, "seed": 4}, "seed is 3 there, and 4 here"),
        ({"mask": 97, "seed": 3}, "mask is 96 there, and 97 here"),
        ({"mask": 96, "seed": 3, "scale": 1.0}, "scale is 0.0 there, and 1.0 here"),
        ({"mask": 96, "seed": 3, "family": "srht"}, "family is blockperm there, and srht here"),
    ]:
        model = Attributor(COUNTS, N, K, **options)
        with pytest.raises(ValueError, match=message):
            model.load(path)
        assert not model.added.any()
    with pytest.raises(ValueError, match="examples is 30 there, and 31 here"):
        Attributor(COUNTS, N + 1, K, mask=96, seed=3).load(path)
    with pytest.raises(FileNotFoundError):
        model.load(tmp_path / "nothing")
    content = path.read_bytes()
    model = Attributor(COUNTS, N, K, mask=96, seed=3)
    spoilt = bytearray(content)
    spoilt[len(content) // 2] ^= 1
    for wrong in (b"", content[:100], content[: len(content) // 2], bytes(spoilt)):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="features.npz is not a file of features, or an incomplete one"):
            model.load(path)
    np.save(tmp_path / "array.npy", np.ones(3))
    np.savez(tmp_path / "arrays.npz", features=np.ones(3))
    for name in ("array.npy", "arrays.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a file of features"):
            model.load(tmp_path / name)
    assert not model.added.any()


def test_a_file_that_cannot_be_written_leaves_the_last_one(tmp_path, monkeypatch):
    path, model = tmp_path / "features.npz", made()
    model.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_the_view_of_features_is_read_only_and_keeps_them_alive():
    model = made()
    view, copy = model.features, model.features.copy()
    assert not view.flags.writeable and view.base is not None
    model.add(together(gradients()) * 2, first=0)
    assert (view == 2 * copy).all()
    del model
    assert (view == 2 * copy).all()


# the best and the worst -----------------------------------------------------------------------------------------------


def test_the_top_in_order_equal_ones_by_their_number():
    x = np.array([3.0, -1, 7, 7, 0, -1, 2])
    examples, values = top(x, 4)
    assert examples.tolist() == [2, 3, 0, 6] and values.tolist() == [7, 7, 3, 2]
    assert top(x, 3, harmful=True)[0].tolist() == [1, 5, 4]
    both = np.stack([x, -x], axis=1).astype("float32").T
    examples, values = top(both, 2)
    assert examples.tolist() == [[2, 3], [1, 5]] and values.tolist() == [[7, 7], [1, 1]]
    assert top(x[::-1], 7)[0].tolist() == np.argsort(-x[::-1], kind="stable").tolist()
    assert top(x, 0)[0].shape == (0,)
    for m, message in ((8, "m is 8, it must be from 0 to 7"), (-1, "m is -1"), (2**62, "m is 4611686018427387904")):
        with pytest.raises(ValueError, match=message):
            top(x, m)


def test_an_example_that_is_the_query_comes_first_and_its_opposite_last():
    grads = together(gradients())
    grads[7] = -grads[3]
    scores = (model := made(grads, mask=96)).scores(model.project(grads[3:4]))
    assert top(scores[0], 1)[0].tolist() == [3] and top(scores[0], 1, harmful=True)[0].tolist() == [7]


# refusals -------------------------------------------------------------------------------------------------------------


def test_a_gradient_that_is_not_finite_is_named_and_its_batch_not_counted():
    for bad in (np.nan, np.inf):
        model, grads = Attributor(COUNTS, N, K), gradients()
        model.add(together(grads)[:10])
        grads["conv.weight"][14, 1, 2, 0, 0] = bad
        batch = {name: grad[10:20] for name, grad in grads.items()}
        with pytest.raises(fs.InvalidArgument, match="the gradient of example 14 is not finite"):
            model.add(batch)
        assert model.added.sum() == 10
        with pytest.raises(fs.InvalidArgument, match="20 of 30 examples have not been added, the first is number 10"):
            model.finish(0.1)
        model.add(together(gradients())[10:])  # still from 10 on
        model.finish(0.1)
        assert (model.features == made().features).all()
        broken = model.features.copy()
        broken[5, 3] = bad
        with pytest.raises(fs.InvalidArgument, match="example 5 is not finite"):
            model.restore(broken[4:8], 4)
        assert model.added.sum() == N - 4


def changed(name, *shape):
    return {**gradients(), name: np.ones(shape, "float32")}


MODEL = made()
without = {name: grad for name, grad in gradients().items() if name != "scale"}
WRONG = [
    (lambda: Attributor(0, N, K), ValueError, "d = 0"),
    (lambda: Attributor({}, N, K), ValueError, "d = 0"),
    (lambda: Attributor({"a": 10, "b": -1}, N, 4), ValueError, r"parameters\[1\] = -1 cannot be negative"),
    (lambda: Attributor({"a": "10"}, N, K), TypeError, "number of parameters of 'a' is '10', it must be"),
    (lambda: Attributor(10.5, N, K), TypeError, "parameters is 10.5, it must be an integer"),
    (lambda: Attributor(P, 0, K), ValueError, "examples = 0, there must be at least 1"),
    (lambda: Attributor(P, 2.5, K), TypeError, "examples is 2.5, it must be an integer"),
    (lambda: Attributor(P, N, 0), ValueError, "k = 0"),
    (lambda: Attributor(P, N, K, mask=P + 1), ValueError, f"mask = {P + 1}, gradients have {P} coordinates"),
    (lambda: Attributor(P, N, K, mask=-1), ValueError, "mask = -1"),
    (lambda: Attributor(P, N, K, mask=90, run=8), ValueError, f"mask of 90 coordinates is not .* runs of 8 of {P} "),
    (lambda: Attributor(P, N, K, scale=-1), ValueError, "scale = -1, it must be positive"),
    (lambda: Attributor(P, N, K, family="fast"), ValueError, "family is 'fast'"),
    (lambda: Attributor(P, N, K, kapa=2), TypeError, "kapa"),
    (lambda: Attributor(P, N, K, like=[1.0]), TypeError, "builtins.list is not an array"),
    (lambda: MODEL.add(without), ValueError, "gradients have no 'scale', which the attributor was created with"),
    (lambda: MODEL.add({**gradients(), "b": np.ones((N, 1))}), ValueError, "gradients have 'b', which the attributor"),
    (lambda: MODEL.add(together(gradients())[:, 1:]), ValueError, f"have {P - 1} elements each, .* created for {P}"),
    (lambda: MODEL.add(changed("scale", N - 1)), ValueError, r"gradients\[2\] is 1 x 29, it must be 1 x 30"),
    (lambda: MODEL.add(changed("conv.bias", N, 7)), ValueError, r"gradients\[1\] is 7 x 30, it must be 8 x 30"),
    (lambda: MODEL.add(gradients(dtype="float64")), ValueError, "is f64; features are f32, of f32, f16 or bf16"),
    (lambda: MODEL.add(together(gradients()).astype(int)), TypeError, "dtype is int64"),
    (lambda: MODEL.add(np.array(1.0)), ValueError, "its first axis must be that of the examples"),
    (lambda: MODEL.add(None), TypeError, "builtins.NoneType is not an array"),
    (lambda: MODEL.add(gradients(), first=1), ValueError, r"examples 1 to 1 \+ 30 are not all among the 30"),
    (lambda: MODEL.add(gradients(2), first=-1), ValueError, r"examples -1 to -1 \+ 2"),
    (lambda: MODEL.add(gradients(1)), ValueError, r"examples 30 to 30 \+ 1"),
    (lambda: MODEL.add(gradients(2), first="1"), TypeError, "first is '1', it must be an integer"),
    (lambda: MODEL.restore(np.ones((3, K + 1))), ValueError, r"shape \(3, 25\), they must be n x k = 24"),
    (lambda: MODEL.restore(np.ones((3, K)), 28), ValueError, r"examples 28 to 28 \+ 3 are not all among the 30"),
    (lambda: MODEL.finish(0), ValueError, "damping = 0, it must be positive"),
    (lambda: MODEL.scores(np.ones(K, "float32")), ValueError, r"shape \(24,\), they must be queries x k = 24"),
    (lambda: MODEL.scores(np.ones((1, K + 1), "float32")), ValueError, "phi is 1 x 25"),
    (lambda: MODEL.scores(MODEL.features, np.ones(3)), ValueError, "there must be one for each example: 30"),
    (lambda: MODEL.scores(MODEL.features, add_to=np.ones((2, N))), ValueError, "scores 2 x 30"),
    (lambda: MODEL.scores(MODEL.features, add_to=MODEL.features), TypeError, "that can be written to"),
    (lambda: top(np.ones((2, 3, 4)), 1), ValueError, r"scores has shape \(2, 3, 4\)"),
]


@pytest.mark.parametrize("call, kind, message", WRONG, ids=[case[2] for case in WRONG])
def test_what_is_wrong_has_a_message(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
    assert MODEL.added.all() and (MODEL.features == made().features).all()


def test_sparse_gradients_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="scipy.sparse's; attribution takes dense arrays"):
        MODEL.add(sparse.csr_array(together(gradients())))


def test_it_says_what_it_is():
    model = Attributor(COUNTS, N, K, mask=96)
    model.add(together(gradients())[:7])
    assert repr(model).startswith(f"<Attributor: 7 of 30 examples of 96 coordinates, {P} parameters, Sketch(k=24, d=96")


def test_threads_take_turns():
    model, grads = Attributor(COUNTS, N, K), together(gradients())
    workers = [threading.Thread(target=model.add, args=(grads[i : i + 1], i)) for i in range(N)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert model.added.all() and (model.features == made().features).all()


# frameworks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0, 96])
def test_torch(mask):
    torch = pytest.importorskip("torch", "2.7")
    grads = {name: torch.from_numpy(grad) for name, grad in gradients().items()}
    model, same = Attributor({n: g[0] for n, g in grads.items()}, N, K, mask=mask), made(mask=mask)
    model.add(grads)
    model.finish(0.1)
    assert (model.features == same.features).all()
    phi = model.project({name: grad[:Q].requires_grad_() for name, grad in grads.items()})
    assert isinstance(phi, torch.Tensor) and not phi.requires_grad and phi.dtype == torch.float32
    assert (model.scores(phi) == same.scores(phi.numpy())).all()
    total = model.scores(phi, torch.ones(N), add_to=torch.zeros(Q, N))
    np.testing.assert_allclose(total.numpy(), same.scores(phi.numpy()), rtol=1e-6, atol=1e-7)
    half = {name: grad.detach().bfloat16() for name, grad in grads.items()}
    wide = {name: grad.float() for name, grad in half.items()}
    np.testing.assert_allclose(model.project(half), model.project(wide), atol=1e-6)
    last = {**grads, "conv.weight": grads["conv.weight"].detach().to(memory_format=torch.channels_last_3d)}
    np.testing.assert_allclose(model.project(last), same.features, atol=1e-6)
    with pytest.raises(TypeError, match="gradients are torch's and numpy's: all must be of one framework"):
        model.add({**grads, "scale": gradients()["scale"]})


def test_a_models_own_parameters_and_per_example_gradients():
    torch = pytest.importorskip("torch", "2.7")
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, x, label):
        out = torch.func.functional_call(net, parameters, (x[None],))
        return torch.nn.functional.cross_entropy(out, label[None])

    inputs, labels = torch.randn(9, 6), torch.randint(3, (9,))
    grads = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, inputs, labels)
    model = Attributor(net, 9, 4)
    model.add(grads)
    for i in range(9):  # one after the other, by autograd
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs[i : i + 1]), labels[i : i + 1]).backward()
        one = model.project({name: p.grad[None] for name, p in net.named_parameters()})
        np.testing.assert_allclose(one.numpy()[0], model.features[i], atol=1e-6)


@pytest.mark.parametrize("mask", [0, 96])
def test_jax(mask):
    jax = pytest.importorskip("jax")
    grads = jax.device_put(gradients(), jax.devices("cpu")[0])
    assert list(grads) != list(COUNTS)  # JAX sorts: the order of the parameters is that of the attributor
    model, same = Attributor(COUNTS, N, K, mask=mask, like=grads["scale"]), made(mask=mask)
    model.add(grads)
    model.finish(0.1)
    assert (model.features == same.features).all()
    phi = model.project({name: grad[:Q] for name, grad in grads.items()})
    assert isinstance(phi, jax.Array) and (np.asarray(phi) == same.features[:Q]).all()
    assert (model.scores(phi) == same.scores(same.features[:Q])).all()
    with pytest.raises(TypeError, match="that can be written to"):
        model.scores(phi, add_to=jax.numpy.zeros((Q, N)))
    with pytest.raises(TypeError, match="inside jax.jit"):
        jax.jit(model.add)(grads)


def test_array_api():
    xp = pytest.importorskip("array_api_strict")
    grads = {name: xp.asarray(grad) for name, grad in gradients().items()}
    assert (np.asarray(made().project(grads)) == made().features).all()
    turned = {**grads, "conv.weight": xp.permute_dims(xp.asarray(np.moveaxis(gradients()["conv.weight"], 1, -1).copy()),
                                                      (0, 4, 1, 2, 3))}
    np.testing.assert_allclose(np.asarray(made().project(turned)), made().features, atol=1e-6)
