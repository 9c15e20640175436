"""Arrays on a GPU: PyTorch, CuPy and JAX, each compared with the CPU.

Plain functions that skip by unittest.SkipTest, so that pytest runs them, and so does this file where there is no
pytest: `python3 tests/python/test_gpu.py` prints a line for each property, as the device tests in C do;
tests/device/run calls it so.
"""

import contextlib
import sys
import tempfile
import threading
import time
import traceback
import unittest

import numpy as np
from solving import check_solvers, close

import flashsketch as fs


def framework(name):
    """A module that sees a GPU and a CUDA backend that does too; otherwise the test is skipped."""
    try:
        fs._library.Context(0, 0)
    except fs.BackendError as error:
        raise unittest.SkipTest(str(error)) from None
    try:
        module = __import__(name)
    except ImportError as error:
        raise unittest.SkipTest(f"there is no {name}: {error}") from None
    seen = {
        "torch": lambda: module.cuda.is_available(),
        "cupy": lambda: module.cuda.is_available(),
        "jax": lambda: any(device.platform == "gpu" for device in module.devices()),
    }[name]()
    if not seen:
        raise unittest.SkipTest(f"{name} sees no GPU here")
    return module


SPECS = [{}, {"batch_major": True}, {"kappa": 2, "s": 2}, {"family": "sjlt"}, {"family": "srht"}]


def whole(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def sketch(k=256, d=5000, **options):
    return fs.Sketch(k=k, d=d, seed=7, **options)


# PyTorch --------------------------------------------------------------------------------------------------------------


def test_torch_products_equal_the_cpus():
    torch = framework("torch")
    A = whole(5000, 48)
    for options in SPECS:
        S, X = sketch(**options), torch.from_numpy(A).cuda()
        Y = S @ X
        assert Y.is_cuda and Y.dtype == X.dtype and Y.is_contiguous()
        close(Y.cpu(), S @ A)
        close(S.project(X.T.contiguous()).cpu(), (S @ A).T)
        close((S.T @ Y).cpu(), S.T @ (S @ A))
        close((S @ X[:, 0]).cpu(), S @ A[:, 0])


def test_torch_types_and_strides():
    torch = framework("torch")
    S, A = sketch(), whole(5000, 48)
    for dtype, error in [(torch.float64, 1e-13), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)]:
        close((S @ torch.from_numpy(A).cuda().to(dtype)).double().cpu(), S @ A.astype("float64"), error)
    X = torch.from_numpy(A).cuda()
    for view in (X.T.contiguous().T, X.repeat_interleave(2, 1)[:, ::2], X.repeat_interleave(3, 0)[::3]):
        close((S @ view).cpu(), S @ A)
    out = torch.zeros(256, 96, device="cuda")[:, ::2]
    assert S.apply(X, out=out) is out
    close(out.cpu(), S @ A)


def test_torch_pieces_and_projectors():
    torch = framework("torch")
    from flashsketch.attribution import Projector

    S, A = sketch(), torch.from_numpy(whole(5000, 48)).cuda()
    Y = torch.zeros(256, 48, device="cuda")
    for row0 in range(0, 5000, 1300):
        S.update(Y, A[row0 : row0 + 1300], row0)
    close(Y.cpu(), (S @ A).cpu())
    grads = {"weight": torch.from_numpy(whole(16, 40, 100)).cuda(), "bias": torch.from_numpy(whole(16, 1000)).cuda()}
    together = torch.cat([grad.flatten(1) for grad in grads.values()], dim=1)
    projector = Projector(5000, 256, seed=1, device="cuda")
    close(projector.project(grads, 2).cpu(), projector.project(together.cpu(), 2).cpu())


def test_torch_works_on_the_current_stream():
    """A long computation, then A is written, then the product, all on one side stream: the product waits for both."""
    torch = framework("torch")
    S, A = sketch(), torch.from_numpy(whole(5000, 48))
    expected, side = S @ A.numpy(), torch.cuda.Stream()
    X, filled = torch.zeros(5000, 48, device="cuda"), A.cuda()
    with torch.cuda.stream(side):
        S @ X  # a stream's first call makes a context, which may wait
    torch.cuda.synchronize()
    for _ in range(5):
        X.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            X.copy_(filled, non_blocking=True)
            Y = S @ X
        assert not side.query(), "the product waited for the stream instead of being queued on it"
        side.synchronize()
        close(Y.cpu(), expected)


def test_torch_gradients_are_adjoints():
    torch = framework("torch")
    S, A = sketch(), torch.from_numpy(whole(5000, 8)).cuda().requires_grad_()
    G = torch.from_numpy(whole(256, 8, seed=1)).cuda()
    (S @ A).backward(G)
    close(A.grad.cpu(), S.T @ G.cpu().numpy())
    half = A.detach().bfloat16().requires_grad_()
    S.project(half.T).sum().backward()
    assert half.grad.dtype == torch.bfloat16


def test_torch_compile():
    torch = framework("torch")
    S, A = sketch(), torch.from_numpy(whole(5000, 16)).cuda()

    def step(A):
        return (S @ (2 * A)).relu()

    close(torch.compile(step, fullgraph=True)(A).cpu(), step(A).cpu())
    X = A.clone().requires_grad_()
    torch.compile(step, fullgraph=True)(X).sum().backward()
    (expected,) = torch.autograd.grad(step(B := A.clone().requires_grad_()).sum(), B)
    close(X.grad.cpu(), expected.cpu())


def test_torch_graphs_can_be_captured_and_replayed():
    torch = framework("torch")
    S, side, graph = sketch(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    X, Y = torch.zeros(5000, 48, device="cuda"), torch.empty(256, 48, device="cuda")
    with torch.cuda.graph(graph, stream=side):
        S.apply(X, out=Y)
    for seed in range(3):
        A = whole(5000, 48, seed=seed)
        X.copy_(torch.from_numpy(A))
        graph.replay()
        torch.cuda.synchronize()
        close(Y.cpu(), S @ A)


def test_torch_threads_with_their_own_streams():
    torch = framework("torch")
    S, right = sketch(), []

    def work(seed):
        A = whole(5000, 48, seed=seed)
        expected = torch.from_numpy(S @ A)
        with torch.cuda.stream(torch.cuda.Stream()):
            X = torch.from_numpy(A).cuda()
            for _ in range(50):
                right.append(float((S @ X).cpu().sub(expected).abs().max()) < 1e-3)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert right == 200 * [True], f"{sum(right)} of 200 products were right"


def test_torch_places_do_not_mix():
    torch = framework("torch")
    S, A = sketch(), torch.from_numpy(whole(5000, 4))
    try:
        S.apply(A.cuda(), out=torch.empty(256, 4))
    except ValueError as error:
        assert "A is on GPU 0 and the result in host memory" in str(error), error
    else:
        raise AssertionError("a result in host memory was accepted for A on a GPU")


def test_torch_same_call_same_bits_and_fast_precision():
    torch = framework("torch")
    S, A = sketch(k=1024), torch.randn(5000, 256, device="cuda")
    first = S @ A
    assert all(torch.equal(first, S @ A) for _ in range(10))
    with contextlib.ExitStack() as stack:
        stack.callback(fs.configure, precision="full")
        fs.configure(precision="fast")
        close((S @ A).cpu(), first.cpu(), 1e-4)


# CuPy -----------------------------------------------------------------------------------------------------------------


def test_cupy_products_equal_the_cpus():
    cupy = framework("cupy")
    A = whole(5000, 48)
    for options in SPECS:
        S, X = sketch(**options), cupy.asarray(A)
        Y = S @ X
        assert type(Y) is cupy.ndarray and Y.dtype == X.dtype
        close(cupy.asnumpy(Y), S @ A)
        close(cupy.asnumpy(S.project(cupy.ascontiguousarray(X.T))), (S @ A).T)
        close(cupy.asnumpy(S.T @ Y), S.T @ (S @ A))
        close(cupy.asnumpy(S @ X[::-1][::-1]), S @ A)
        close(cupy.asnumpy(S @ X[:, ::-2]), S @ A[:, ::-2])
    close(cupy.asnumpy(S @ X.astype("float64")), S @ A.astype("float64"), 1e-12)


def test_cupy_works_on_the_current_stream():
    cupy = framework("cupy")
    S, A = sketch(), whole(5000, 48)
    expected = S @ A
    X, filled = cupy.zeros((5000, 48), "float32"), cupy.asarray(A)
    work, side = cupy.ones(1 << 26, "float32"), cupy.cuda.Stream(non_blocking=True)
    with side:
        S @ X  # a stream's first call makes a context, which may wait
        work *= 1
        side.synchronize()
        for _ in range(100):
            work *= 1  # some 15 ms in all
        X[...] = filled
        Y = S @ X
        queued = not side.done
        side.synchronize()
        close(cupy.asnumpy(Y), expected)
    assert queued, "the product waited for the stream instead of being queued on it"


def test_cupy_sparse_products_equal_the_cpus():
    cupy = framework("cupy")
    try:
        import cupyx.scipy.sparse
        import scipy.sparse
    except ImportError as error:
        raise unittest.SkipTest(f"there is no sparse CuPy here: {error}") from None
    S, A = sketch(), whole(5000, 48) * (np.random.default_rng(1).random((5000, 48)) < 0.05)
    for kind in ("csr_matrix", "csc_matrix"):
        X = getattr(cupyx.scipy.sparse, kind)(getattr(scipy.sparse, kind)(A.astype("float32")))
        close(cupy.asnumpy(S @ X), S @ A.astype("float32"))
        close(cupy.asnumpy(S.project(X.T.tocsr())), (S @ A.astype("float32")).T)


# JAX ------------------------------------------------------------------------------------------------------------------


def test_jax_products_equal_the_cpus():
    jax = framework("jax")
    A = whole(5000, 48)
    gpu = next(device for device in jax.devices() if device.platform == "gpu")
    for options in SPECS:
        S, X = sketch(**options), jax.device_put(A, gpu)
        Y = S @ X
        assert isinstance(Y, jax.Array) and Y.devices() == {gpu}
        close(np.asarray(Y), S @ A)
        close(np.asarray(S.project(X.T)), (S @ A).T)
        close(np.asarray(S.T @ Y), S.T @ (S @ A))
    close(np.asarray((S @ X.astype("bfloat16")).astype("float32")), S @ A, 8e-3)


def test_jax_products_in_a_row_depend_on_each_other_rightly():
    jax = framework("jax")
    gpu = next(device for device in jax.devices() if device.platform == "gpu")
    S, A = sketch(), whole(5000, 48)
    X, expected = jax.device_put(A, gpu), A.astype("float64")
    D = fs.Sketch(**S.spec)
    for _ in range(5):
        X = S.T @ (S @ (X * 0.5))
        expected = D.T @ (D @ (expected * 0.5))
    close(np.asarray(X), expected, 1e-4)


# tasks ----------------------------------------------------------------------------------------------------------------


def check_tasks(to_gpu, to_host):
    """solve, ridge, gram and ose of arrays on the GPU, compared with NumPy on the sketches of the GPU."""
    rng, S = np.random.default_rng(2), sketch()
    A = (rng.standard_normal((5000, 40)) * np.logspace(0, -4, 40)).astype("float32")
    b = (A @ np.ones((40, 2), "float32") + 0.01 * rng.standard_normal((5000, 2))).astype("float32")
    on_gpu, right = to_gpu(A), to_gpu(b)
    Y, C = np.asarray(to_host(S @ on_gpu), "float64"), np.asarray(to_host(S @ right), "float64")
    fit = fs.solve(S, on_gpu, right, exact=True)
    assert type(fit.x) is type(on_gpu) and fit.method == "cholesky" and fit.sketch_seconds > 0
    x = np.asarray(to_host(fit.x), "float64")
    close(Y @ x, Y @ np.linalg.lstsq(Y, C, rcond=None)[0], 1e-6)
    truth = np.linalg.norm(A.astype("float64") @ x - b, axis=0)
    close(fit.exact, truth, 1e-6)
    assert fit.low < np.linalg.norm(truth) < fit.high
    x = np.asarray(to_host(fs.ridge(S, on_gpu, right[:, 0], 0.1).x), "float64")
    close(x, np.linalg.solve(Y.T @ Y + 0.1 * np.eye(40), Y.T @ C[:, 0]), 1e-5)
    made = fs.gram(S, on_gpu, exact=True)
    close(to_host(made.G), Y.T @ Y, 1e-6)
    assert 0 < made.frobenius < 1 and 0 < made.spectral < 2
    of, cpu = fs.ose(S, on_gpu), fs.ose(S, A.astype("float64")) if openblas() else None
    assert of.low < of.error < of.high
    if cpu:
        assert abs(of.error - cpu.error) < 1e-3


def openblas():
    try:
        fs.gram(fs.Sketch(k=2, d=3), np.ones((3, 1)))
    except fs.BackendError:
        return False
    return True


def test_torch_tasks():
    torch = framework("torch")
    check_tasks(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy())


def test_torch_tasks_on_a_side_stream():
    torch = framework("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        check_tasks(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy())


def test_cupy_tasks():
    cupy = framework("cupy")
    check_tasks(cupy.asarray, cupy.asnumpy)


# solvers --------------------------------------------------------------------------------------------------------------


def test_torch_solvers():
    torch = framework("torch")
    check_solvers(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy())
    A = torch.from_numpy(np.random.default_rng(0).standard_normal((5000, 20))).cuda()
    whole, (Q, R) = A.clone(), fs.qr(A, overwrite_a=True)
    assert Q is A
    close((Q @ R).cpu(), whole.cpu(), 1e-12)
    x = fs.lstsq(whole, whole[:, 0].cpu())  # b may be in host memory
    assert x.x.is_cuda
    close(x.x.cpu(), np.eye(20)[0], 1e-10)


def test_cupy_solvers():
    cupy = framework("cupy")
    import cupyx.scipy.sparse as sparse

    check_solvers(cupy.asarray, cupy.asnumpy, lambda array: sparse.csr_matrix(cupy.asarray(array)))


def test_jax_solvers():
    jax = framework("jax")
    check_solvers(lambda array: jax.device_put(array, jax.devices("gpu")[0]), np.asarray)


# gathered rows --------------------------------------------------------------------------------------------------------


def check_rows(to_gpu, to_host):
    """Gathered rows of arrays on the GPU, by lists on the GPU and by lists that must be copied there."""
    A = whole(9000, 48)
    lists = [np.sort(np.random.default_rng(1).choice(9000, 5000, replace=False)), np.arange(5000, dtype="int32")[::-1]]
    for options in SPECS:
        S, X, XT = sketch(**options), to_gpu(A), to_gpu(np.ascontiguousarray(A.T))
        for rows in lists:
            expected = S.apply(A, rows=rows)
            for given in (rows, to_gpu(np.ascontiguousarray(rows))):
                made = S.apply(X, rows=given)
                assert type(made) is type(X)
                close(to_host(made), expected)
                close(to_host(S.project(XT, columns=given)), expected.T)
    mask = np.isin(np.arange(9000), lists[0])
    for given in (mask, to_gpu(mask)):
        close(to_host(S.apply(X, rows=given)), S.apply(A, rows=lists[0]))
    whole_numbers = to_gpu(A[:5000].astype("int16"))
    assert str((S @ whole_numbers).dtype).endswith("float32")
    close(to_host(S @ whole_numbers), S @ A[:5000])
    for wrong in (9000, -1):
        rows = lists[0].copy()
        rows[77] = wrong
        assert np.isnan(to_host(S.apply(X, rows=to_gpu(rows)))).any()
        try:
            S.apply(X, rows=rows)
        except ValueError as error:
            assert f"number 77 of a list of rows is {wrong}, and there are 9000 rows" in str(error), error
        else:
            raise AssertionError(f"row {wrong} of 9000 was accepted")


def test_torch_listed_rows():
    torch = framework("torch")
    check_rows(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy())
    S, A, rows = sketch(), whole(9000, 4), np.arange(0, 9000, 9).repeat(5)
    given = torch.from_numpy(A).cuda().requires_grad_()
    S.apply(given, rows=rows).sum().backward()
    expected = np.zeros_like(A)
    np.add.at(expected, rows, S.T @ np.ones((256, 4), "float32"))
    close(given.grad.cpu(), expected)


def test_cupy_listed_rows():
    cupy = framework("cupy")
    check_rows(cupy.asarray, cupy.asnumpy)


def test_jax_listed_rows():
    jax = framework("jax")
    gpu = next(device for device in jax.devices() if device.platform == "gpu")
    check_rows(lambda array: jax.device_put(array, gpu), np.asarray)


# attribution ----------------------------------------------------------------------------------------------------------

SHAPES = {"conv": (16, 8, 3, 3), "bias": (16,), "head": (100, 40)}
P, N, K = sum(int(np.prod(shape)) for shape in SHAPES.values()), 200, 128


def gradients(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((n, *shape)).astype("float32") for name, shape in SHAPES.items()}


def together(grads):
    return np.concatenate([grad.reshape(len(grad), -1) for grad in grads.values()], axis=1)


def features_of(model, grads):
    """By the definition, with the CPU's products."""
    kept = together(grads).astype("float64")
    return model.sketch.project(kept if model.mask is None else kept[:, model.mask]) / np.sqrt(P)


def check_attribution(to_gpu, to_host, half=None):
    """Features, scores and caches of an attributor on the GPU, with a mask and without, compared with NumPy."""
    for mask in (0, 1024):
        grads, queries = gradients(), gradients(7, seed=1)
        on_gpu, asked = ({name: to_gpu(grad) for name, grad in some.items()} for some in (grads, queries))
        counts = {name: int(np.prod(shape)) for name, shape in SHAPES.items()}
        model = fs.attribution.Attributor(counts, N, K, mask=mask, seed=3, like=on_gpu["bias"])
        for first in range(0, N, 64):
            model.add({name: grad[first : first + 64] for name, grad in on_gpu.items()})
        assert model.added.all()
        close(model.features, features_of(model, grads), 1e-5)
        phi = model.project(asked)
        assert type(phi) is type(on_gpu["bias"])
        close(to_host(phi), features_of(model, queries), 1e-5)
        close(to_host(model.project(to_gpu(together(queries)))), to_host(phi), 1e-6)
        if half is not None:
            halves = {name: half(grad) for name, grad in asked.items()}
            close(to_host(model.project(halves)), to_host(phi), 1e-2)
        Phi, q, weights = model.features.astype("float64"), np.asarray(to_host(phi), "float64"), np.linspace(0, 1, N)
        for damping in (0.1, 1.0):
            model.finish(damping)
            expected = q @ np.linalg.solve(Phi.T @ Phi + damping * np.eye(K), Phi.T) * weights
            close(model.scores(phi, weights), expected, 1e-9)
        close(model.scores(phi, weights, alpha=0.5, add_to=expected.copy()), 1.5 * expected, 1e-9)
        check_cache(model, phi, mask, on_gpu)
        check_refusals(model, on_gpu, to_gpu)
        check_layers(mask, to_gpu, to_host)


def check_layers(mask, to_gpu, to_host):
    """Features from layers, with tokens and without, a bias that shares the output_gradients, and a tensor as it is."""
    rng, parameters = np.random.default_rng(2), {"weight": 40 * 60, "bias": 40, "rest": 500}
    for tokens in ((), (7,)):
        output_gradients, inputs = (rng.standard_normal((N, *tokens, width)).astype("float32") for width in (40, 60))
        rest = rng.standard_normal((N, 500)).astype("float32")
        there = to_gpu(output_gradients)
        model = fs.attribution.Attributor(parameters, N, K, mask=mask, seed=3, like=there)
        layers = {"weight": (there, to_gpu(inputs)), "bias": (there, None), "rest": to_gpu(rest)}
        model.add_layers(layers)
        flat, beside = output_gradients.reshape(N, -1, 40), inputs.reshape(N, -1, 60)
        grads = {"weight": np.einsum("ntu,ntv->nuv", flat, beside), "bias": flat.sum(1), "rest": rest}
        expected = model.project({name: to_gpu(grad) for name, grad in grads.items()})
        close(model.features, to_host(expected), 1e-5)
        close(to_host(model.project_layers(layers)), to_host(expected), 1e-5)


def check_cache(model, phi, mask, on_gpu):
    scores = model.scores(phi)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/features.npz")
        again = fs.attribution.Attributor(P, N, K, mask=mask, seed=3, like=on_gpu["bias"])
        again.load(folder + "/features.npz")
    again.finish(1.0)
    assert (again.features == model.features).all()
    close(again.scores(phi), scores, 1e-12)


def check_refusals(model, on_gpu, to_gpu):
    grads = gradients(10)
    grads["head"][4] = np.nan
    for batch, message in [
        ({name: to_gpu(grad) for name, grad in grads.items()}, "the gradient of example 54 is not finite"),
        (gradients(10), "gradients are in host memory and the attributor on GPU 0"),
    ]:
        try:
            model.add(batch, first=50)
        except fs.InvalidArgument as error:
            assert message in str(error) and model.added.sum() == N - 10, error
            model.add({name: grad[50:60] for name, grad in on_gpu.items()})
        except ValueError as error:
            assert message in str(error) and model.added.all(), error
        else:
            raise AssertionError(f"a batch was accepted, but {message}")


def test_torch_attribution():
    torch = framework("torch")
    check_attribution(lambda a: torch.from_numpy(a).cuda(), lambda t: t.cpu().numpy(), lambda t: t.bfloat16())


def test_cupy_attribution():
    cupy = framework("cupy")
    check_attribution(cupy.asarray, cupy.asnumpy, lambda a: a.astype("float16"))


def test_jax_attribution():
    jax = framework("jax")
    gpu = next(device for device in jax.devices() if device.platform == "gpu")
    check_attribution(lambda a: jax.device_put(a, gpu), np.asarray, lambda a: a.astype("bfloat16"))


def test_torch_attribution_waits_for_other_streams():
    """An attributor of the default stream, gradients that another stream writes after a long computation."""
    torch = framework("torch")
    grads = torch.from_numpy(together(gradients())).cuda()
    for begun_on in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(begun_on):
            model = fs.attribution.Attributor(P, N, K, like=grads)
        late = torch.zeros_like(grads)
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(20_000_000)
            late.copy_(grads, non_blocking=True)
            model.add(late)
            late.zero_()
            torch.cuda._sleep(20_000_000)
            late.copy_(grads, non_blocking=True)
            phi = model.project(late)
            close(phi.cpu(), model.features, 1e-6)
        close(model.features, features_of(model, gradients()), 1e-5)


def main():
    failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        name_of_test, begin = name[len("test_") :], time.perf_counter()
        print(f"started {name_of_test}", flush=True)
        try:
            test()
            result = "passed"
        except unittest.SkipTest as reason:
            result = "skipped"
            print(f"    {reason}")
        except Exception:
            result, failed = "failed", failed + 1
            print("    " + traceback.format_exc().replace("\n", "\n    "))
        print(f"{result:<8}{time.perf_counter() - begin:7.2f} s  {name_of_test}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
