"""PyTorch's tensors on the CPU: products, gradients, torch.compile."""

import pytest
from properties import dense, sketch, whole

torch = pytest.importorskip("torch", "2.7")

import flashsketch as fs

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def tensor(*shape, dtype=torch.float32, seed=0):
    return torch.from_numpy(whole(*shape, seed=seed)).to(dtype)


def written_out(S):
    return torch.from_numpy(dense(S))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_equal_the_dense_s(dtype):
    S, A = sketch(), tensor(1000, 6, dtype=dtype)
    Y, expected = S @ A, (written_out(S) @ A.double()).to(dtype)
    assert type(Y) is torch.Tensor and Y.dtype == dtype and torch.equal(Y, expected)
    assert torch.equal(S.project(A.T), expected.T) and torch.equal(S.project(A.T.contiguous()), expected.T)
    assert torch.equal(S.T @ Y, (written_out(S).T @ Y.double()).to(dtype))
    assert torch.equal(S @ A[:, 0], expected[:, 0])
    assert torch.equal(torch.matmul(S, A), expected)


def test_any_strides_and_out():
    S, A = sketch(), tensor(1000, 6)
    Y = S @ A
    for view in (A.T.contiguous().T, A.repeat_interleave(3, 1)[:, ::3], A.expand(2, 1000, 6)[1]):
        assert torch.equal(S @ view, Y)
    out = torch.empty(200, 12)[:, ::2]
    assert S.apply(A, out=out) is out and torch.equal(out, Y)
    wide = S.apply(A.half(), out=torch.empty(200, 6))
    assert torch.equal(wide, Y)
    imaginary = torch.complex(torch.zeros(1000, 6), A).conj().imag  # a view that stands for -A
    assert imaginary.is_neg() and torch.equal(S @ imaginary, -Y)


def test_whole_numbers_are_converted():
    S, A = sketch(), tensor(1000, 6)
    narrow, wide = (torch.bool, torch.uint8, torch.int8, torch.int16), (torch.int32, torch.int64)
    for dtype in narrow + wide:
        given = A.to(dtype)
        Y = S @ given
        assert Y.dtype is (torch.float32 if dtype in narrow else torch.float64)
        assert torch.equal(Y, S @ given.to(Y.dtype)) and torch.equal(S.project(given.T), Y.T)
    compiled = torch.compile(lambda A: S @ A + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(A.int()), S @ A.double() + 1)
    assert torch.equal(torch.compile(lambda A: S.apply(A, row0=400), fullgraph=True, backend="aot_eager")(A[:600]),
                       S.apply(A[:600], row0=400))


def test_the_gradient_is_the_adjoint():
    def leaf(*shape):
        return torch.randn(shape, dtype=torch.float64, requires_grad=True)

    S, A = sketch(k=6, d=12), leaf(12, 2)
    (S @ A).backward(G := torch.randn(6, 2, dtype=torch.float64))
    torch.testing.assert_close(A.grad, S.T @ G)
    assert torch.autograd.gradcheck(lambda A: S @ A, leaf(12, 2))
    assert torch.autograd.gradgradcheck(lambda A: S @ A, leaf(12, 2))
    assert torch.autograd.gradcheck(S.project, leaf(2, 12))
    assert torch.autograd.gradcheck(lambda Y: S.T @ Y, leaf(6, 2))
    assert torch.autograd.gradcheck(lambda A: S.apply(A, row0=9), leaf(3, 2))
    assert torch.autograd.gradcheck(lambda x: S @ x, leaf(12))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gradients_of_half_types(dtype):
    S, A = sketch(), tensor(1000, 6, dtype=dtype).requires_grad_()
    (S @ A).backward(G := tensor(200, 6, dtype=dtype, seed=1))
    assert A.grad.dtype == dtype and torch.equal(A.grad, S.T @ G)


def test_a_product_inside_a_training_step():
    S, layer = sketch(), torch.nn.Linear(5, 1000)
    loss = S.project(layer(torch.ones(4, 5))).square().sum()
    loss.backward()
    D = written_out(S).float()
    with torch.no_grad():
        expected = 2 * (layer(torch.ones(4, 5)) @ D.T @ D).sum(0)
    torch.testing.assert_close(layer.bias.grad, expected, rtol=1e-4, atol=1e-3)


def test_what_has_no_gradient_says_so():
    S, A = sketch(), tensor(1000, 6).requires_grad_()
    with pytest.raises(RuntimeError, match="written into a tensor has no gradient"):
        S.update(torch.zeros(200, 6), A)
    with torch.no_grad():
        S.update(torch.zeros(200, 6), A)
    Y = torch.zeros(200, 6, requires_grad=True)
    saved = Y.clone()
    squared = saved.square()
    S.update(saved.detach(), A.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()


def test_the_operator_keeps_pytorchs_rules():
    S, A = sketch(k=20, d=50, seed=2**64 - 1), torch.randn(50, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.flashsketch.product.default, (A, S._key, False, 0, 50, False))
    torch.library.opcheck(torch.ops.flashsketch.product.default, (A.T, S._key, False, 0, 50, True))


def test_torch_compile_makes_one_graph():
    S, A = sketch(), torch.randn(1000, 6, requires_grad=True)

    def step(A):
        return (S.T @ (S @ (2 * A)) + S.project(A.T).sum()).sin().sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(A), step(A))
    (expected,) = torch.autograd.grad(step(A), A)
    (made,) = torch.autograd.grad(compiled(A), A)
    torch.testing.assert_close(made, expected)
    with torch.no_grad():
        torch.testing.assert_close(compiled(A), step(A))
    weights = torch.nn.Parameter(A.detach().clone())
    torch.testing.assert_close(compiled(weights), step(weights))


def test_torch_compile_with_sizes_left_open():
    S = sketch()
    compiled = torch.compile(lambda A: S @ A + 1, fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (3, 4, 9):
        A = tensor(1000, n)
        assert torch.equal(compiled(A), S @ A + 1)


def test_what_is_wrong_gets_a_message():
    S, A = sketch(), tensor(1000, 6)
    for call, kind, message in [
        (lambda: S @ A[:5], ValueError, "A has 5 rows, and S is 200 x 1000"),
        (lambda: S @ A[:5].requires_grad_(), ValueError, "A has 5 rows, and S is 200 x 1000"),
        (lambda: S @ A.to(torch.complex64), TypeError, "dtype is torch.complex64; .* A.real and A.imag"),
        (lambda: S @ A.to(torch.float8_e5m2), TypeError, r"float8_e5m2; .* A.to\(torch.float64\)"),
        (lambda: S @ A.to_sparse(), TypeError, "no tensors of layout torch.sparse_coo"),
        (lambda: S @ A.to("meta"), TypeError, "a tensor is on meta"),
        (lambda: S.apply(A, out=(S @ A).numpy()), TypeError, "both must be of one framework"),
        (lambda: S @ torch.nn.Linear(3, 4), TypeError, "torch.nn.modules.linear.Linear is not an array"),
        (lambda: A.T @ S.T, TypeError, "unsupported operand"),
        (lambda: torch.matmul(A.T, S.T), TypeError, "NotImplemented"),
    ]:
        with pytest.raises(kind, match=message):
            call()
    assert fs.Sketch(**S.spec) == S
