"""Attribution from layers: the features of gradients that are never formed, and a recorder that takes layers from
PyTorch models.

The reference forms the gradients: output gradients times inputs, summed over tokens, or torch.func's of examples.
"""

import numpy as np
import pytest
from properties import FAMILIES

import flashsketch as fs
from flashsketch.attribution import Attributor

try:
    Attributor(3, examples=1, k=2)
except fs.BackendError as error:
    pytest.skip(f"attribution cannot run here: {error}", allow_module_level=True)

COUNTS = {"up.weight": 9 * 6, "up.bias": 9, "norm": 11, "down.weight": 5 * 9, "down.bias": 5, "conv": 700, "none": 0}
N, K = 13, 16


def layers_of(n=N, tokens=(), seed=0, dtype="float32"):
    """Integers, so that products and their sums are exact."""
    rng = np.random.default_rng(seed)

    def some(*shape):
        return rng.integers(-4, 5, (n, *shape)).astype(dtype)

    up, down = some(*tokens, 9), some(*tokens, 5)
    return {
        "up.weight": (up, some(*tokens, 6)),
        "up.bias": (up, None),
        "norm": some(11),
        "down.weight": (down, some(*tokens, 9)),
        "down.bias": (down.copy(), None),
        "conv": some(7, 5, 20),
        "none": some(0, 3),
    }


def formed(layers):
    def one(leaf):
        if not isinstance(leaf, tuple):
            return leaf.astype("float32")
        flat = [x if x is None else x.reshape(len(x), int(np.prod(x.shape[1:-1])), x.shape[-1]) for x in leaf]
        output_gradients, inputs = (x if x is None else x.astype("float32") for x in flat)
        return output_gradients.sum(1) if inputs is None else np.einsum("ntu,ntv->nuv", output_gradients, inputs)

    return {name: one(leaf) for name, leaf in layers.items()}


# the definition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [(), (1,), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("options", FAMILIES, ids=str)
def test_features_are_those_of_formed_gradients(options, tokens):
    for mask, run in ((0, 1), (256, 1), (256, 8)):
        model = Attributor(COUNTS, N, 256, mask=mask, run=run, seed=5, **options)
        layers = layers_of(tokens=tokens)
        model.add_layers(layers)
        assert model.added.all()
        np.testing.assert_allclose(model.features, model.project(formed(layers)), rtol=0, atol=2e-5)
        assert (model.project_layers(layers) == model.features).all()


def test_whole_numbers_are_exact():
    for mask, tokens in ((0, ()), (96, ()), (0, (5,)), (96, (5,))):
        model = Attributor(COUNTS, N, K, mask=mask, scale=1.0, quality="fast")
        layers = layers_of(tokens=tokens)
        phi = model.project_layers(layers)
        assert phi.dtype == np.float32 and (phi == model.project(formed(layers))).all() and (phi != 0).any()


def test_batches_widths_and_tokens_may_change():
    model, first = Attributor({"weight": 54}, 20, K, mask=32, scale=1.0), 0
    for n, tokens, out in ((7, (), 9), (5, (4,), 6), (0, (), 6), (8, (), 9)):
        rng = np.random.default_rng(n)
        pair = [rng.integers(-4, 5, (n, *tokens, width)).astype("float32") for width in (out, 54 // out)]
        model.add_layers({"weight": tuple(pair)})
        want = model.project(formed({"weight": tuple(pair)}))
        assert (model.features[first : first + n] == want).all()
        first += n
    assert model.added.all()


def test_lists_and_nested_parameters():
    layers = layers_of(tokens=(3,))
    want = Attributor(COUNTS, N, K, mask=96).project_layers(layers)
    flat = Attributor(list(COUNTS.values()), N, K, mask=96)
    assert (flat.project_layers(list(layers.values())) == want).all()
    names = list(COUNTS)
    deep = Attributor({"mlp": [COUNTS[n] for n in names[:5]], "rest": {n: COUNTS[n] for n in names[5:]}}, N, K, mask=96)
    batch = {"rest": {n: layers[n] for n in names[5:]}, "mlp": [layers[n] for n in names[:5]]}
    assert (deep.project_layers(batch) == want).all()


def test_any_strides_and_half_types():
    layers, model = layers_of(tokens=(4,)), Attributor(COUNTS, N, K, mask=96)
    want = model.project_layers(layers)
    for remake in (
        np.asfortranarray,  # examples and tokens have no common stride: copied
        lambda a: np.swapaxes(np.swapaxes(a, 0, 1).copy(), 0, 1) if a.ndim > 2 else a,
        lambda a: a[::-1].copy()[::-1],
        lambda a: a[..., ::-1].copy()[..., ::-1],
        lambda a: a.astype("float16"),
    ):
        made = {}  # an array that is given twice stays one

        def remade(array):
            return None if array is None else made.setdefault(id(array), remake(array))

        batch = {n: tuple(map(remade, leaf)) if isinstance(leaf, tuple) else remade(leaf) for n, leaf in layers.items()}
        np.testing.assert_allclose(model.project_layers(batch), want, rtol=0, atol=1e-6)


# refusals -------------------------------------------------------------------------------------------------------------


def test_a_slope_that_is_not_finite_is_named():
    model, layers = Attributor(COUNTS, 2 * N, K), layers_of(tokens=(5,))
    model.add_layers(layers)
    layers["up.weight"][0][4, 2, 3] = np.nan
    with pytest.raises(fs.InvalidArgument, match="the gradient of example 17 is not finite"):
        model.add_layers(layers)
    assert model.added.sum() == N


def wrong(name, leaf, **options):
    return {**layers_of(**options), name: leaf}


def ones(*shape):
    return np.ones(shape, "float32")


MODEL = Attributor(COUNTS, N, K)
WRONG = [
    (wrong("up.weight", (ones(N, 9), ones(N, 7))), ValueError, r"layers\[0\] is a weight of 9 x 7, but .*= 54"),
    (wrong("up.bias", (ones(N, 8), None)), ValueError, r"layers\[1\] is a bias of 8 x 1, but parameters\[1\] = 9"),
    (wrong("norm", ones(N, 12)), ValueError, r"layers\[2\] is a bias of 12 x 1, but parameters\[2\] = 11"),
    (
        wrong("norm", ones(N - 1, 11)),
        ValueError,
        r"layers\[2\].output_gradients has 12 columns, it must have 13 examples of 1",
    ),
    (wrong("up.weight", (ones(N, 2, 9), ones(N, 3, 6))), ValueError, "'up.weight' have 2 tokens .* inputs 3"),
    (wrong("up.weight", (ones(N, 0, 9), ones(N, 0, 6))), ValueError, r"layers\[0\].tokens = 0"),
    (wrong("up.weight", (ones(9), ones(6))), ValueError, r"output gradients of 'up.weight' have shape \(9,\)"),
    (wrong("up.weight", (ones(N, 9),)), ValueError, "'up.weight' is a tuple of 1"),
    (wrong("up.weight", (ones(N, 9), ones(N, 6).astype("float64"))), ValueError, r"layers\[0\].inputs is f64"),
    (wrong("more", ones(N, 3)), ValueError, "layers have 'more', which the attributor was not created with"),
    ({"up.weight": (ones(N, 9), ones(N, 6))}, ValueError, "layers have no 'up.bias'"),
    (wrong("up.weight", (ones(N, 9), [1.0])), TypeError, "builtins.list is not an array"),
    (wrong("up.weight", (ones(N, 9).astype(int), ones(N, 6))), TypeError, "dtype is int64"),
]


@pytest.mark.parametrize("layers, kind, message", WRONG, ids=[case[2] for case in WRONG])
def test_what_is_wrong_gets_a_message(layers, kind, message):
    for call in (MODEL.add_layers, MODEL.project_layers):
        with pytest.raises(kind, match=message):
            call(layers)
    assert not MODEL.added.any()


# PyTorch --------------------------------------------------------------------------------------------------------------


def per_example(net, x, objective):
    """torch.func's gradients of single examples."""
    from torch.func import functional_call, grad, vmap

    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def one(parameters, x):
        return objective(functional_call(net, parameters, (x[None],)))[0]

    return vmap(grad(one), (None, 0))(parameters, x)


def logsumexp(out):
    return out.logsumexp(-1)


def models():
    torch = pytest.importorskip("torch", "2.7")
    nn = torch.nn

    class Attention(nn.Module):
        """Tokens, a layer that is called twice, one that is called by name, and two that share a weight."""

        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.up, self.down = (nn.Linear(a, b) for a, b in [(8, 8)] * 3 + [(8, 20), (20, 8)])
            self.tied, self.head = nn.Linear(8, 8, bias=False), nn.Linear(8, 5)
            self.tied.weight = self.q.weight

        def forward(self, x):
            x = x + (self.q(x) @ self.k(x).transpose(-1, -2)).softmax(-1) @ self.v(input=x)
            x = x + self.down(self.up(x).relu())
            x = x + self.down(self.up(self.tied(x)).relu())
            return self.head(x.mean(1))

    torch.manual_seed(0)
    first, second, third = nn.Linear(8, 12), nn.Linear(12, 7, bias=False), nn.Linear(7, 5)
    mlp = nn.Sequential(first, nn.ReLU(inplace=True), second, nn.GELU(), third)
    return [(mlp, torch.randn(9, 8)), (Attention(), torch.randn(9, 6, 8)), (nn.Linear(8, 5), torch.randn(9, 8))]


@pytest.mark.parametrize("mask", [0, 40])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_recorded_layers_are_torch_funcs_gradients(which, mask):
    net, x = models()[which]
    recorder = fs.attribution.Recorder(net)
    model = Attributor(recorder.parameters, len(x), K, mask=mask)
    for _ in range(2):  # the second time starts a new recording
        with recorder:
            values = logsumexp(net(x))
        layers = recorder.layers(values)
        assert list(layers) == list(dict(net.named_parameters()))
        phi, want = model.project_layers(layers), model.project(per_example(net, x, logsumexp))
        np.testing.assert_allclose(phi.numpy(), want.numpy(), rtol=0, atol=2e-6 * want.abs().max().item())
    assert all(p.grad is None for p in net.parameters())
    logsumexp(net(x)).sum().backward()  # hooks are removed, and the model is unchanged
    assert not recorder._calls or not any(recorder._calls.values())


def test_other_parameters_are_refused_unless_they_are_named_or_frozen():
    torch = pytest.importorskip("torch", "2.7")
    net = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.LayerNorm(12), torch.nn.Linear(12, 5))
    x = torch.randn(9, 8)
    with pytest.raises(ValueError, match="'1.weight' is a parameter of a LayerNorm, and only gradients of"):
        fs.attribution.Recorder(net)
    with pytest.raises(ValueError, match="'nothing' is not a parameter"):
        fs.attribution.Recorder(net, others=["nothing"])
    grads = per_example(net, x, logsumexp)
    recorder = fs.attribution.Recorder(net, others=["1.weight", "1.bias"])
    model = Attributor(net, len(x), K)
    with recorder:
        layers = recorder.layers(logsumexp(net(x)), {name: grads[name] for name in recorder.others})
    want = model.project(grads)
    np.testing.assert_allclose(model.project_layers(layers).numpy(), want.numpy(), rtol=0, atol=1e-5)
    net[1].requires_grad_(False)
    recorder = fs.attribution.Recorder(net)
    assert list(recorder.parameters) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with recorder:
        layers = recorder.layers(logsumexp(net(x)))
    model = Attributor(recorder.parameters, len(x), K)
    want = model.project({name: grads[name] for name in recorder.parameters})
    np.testing.assert_allclose(model.project_layers(layers).numpy(), want.numpy(), rtol=0, atol=1e-5)


def test_what_cannot_be_recorded_gets_a_message():
    torch = pytest.importorskip("torch", "2.7")
    net, x = models()[0]
    recorder = fs.attribution.Recorder(net)

    def refused(message, values, before=None, others=None, again=net):
        with recorder:
            out = again(x)
            if before:
                before(out)
            with pytest.raises(ValueError, match=message):
                recorder.layers(values(out), others)

    refused(r"values have shape \(\), there must be one for each example", lambda out: logsumexp(out).mean())
    refused(r"outputs of layer '0' have shape \(9, 12\): .* the 8 examples", lambda out: logsumexp(out)[:8])
    refused("`others` are \\['a'\\], the recorder was created for \\[\\]", logsumexp, others={"a": x})
    refused("values do not depend on a call of layer '0'", logsumexp, again=lambda x: net(x) + net(x).detach())
    refused("the inputs of layer '0' were changed in place", logsumexp, before=lambda _: x.add_(1))
    with recorder, torch.no_grad():
        net(x)
    message = "layer '0' was not called since the recorder was entered, or with gradients disabled"
    with pytest.raises(ValueError, match=message):
        recorder.layers(logsumexp(net(x)))
    attention = torch.nn.MultiheadAttention(8, 2)
    with pytest.raises(ValueError, match="'in_proj_weight' is a parameter of a MultiheadAttention"):
        fs.attribution.Recorder(attention)
