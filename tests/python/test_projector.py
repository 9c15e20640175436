"""Projectors: the interfaces of TRAK and dattri."""

import pytest
from properties import whole

torch = pytest.importorskip("torch", "2.7")

from flashsketch.attribution import Projector, random_project


def gradients(n=5, dtype=torch.float32):
    shapes = {"conv.weight": (8, 3, 3, 3), "conv.bias": (8,), "scale": (), "head.weight": (10, 33), "head.bias": (10,)}
    return {name: torch.from_numpy(whole(n, *shape)).to(dtype) for name, shape in shapes.items()}


def together(grads):
    return torch.cat([g.reshape(len(g), -1) for g in grads.values()], dim=1)


D = together(gradients()).shape[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_a_dict_is_projected_as_if_it_were_one_tensor(dtype):
    grads, projector = gradients(dtype=dtype), Projector(D, 128, seed=3)
    result = projector.project(grads, 0)
    assert result.shape == (5, 128) and result.dtype == dtype
    want = projector.project(together(grads), 0)
    # Five parts, each rounded once: their scale 1 / sqrt 8 is not exact.
    assert (result - want).abs().max() <= 5 * torch.finfo(dtype).eps * want.abs().max()
    assert torch.equal(want, projector.sketch(0).project(together(grads)))


def test_models_have_their_own_sketch_and_seeds_do_not_meet():
    a, b = Projector(D, 128, seed=3), Projector(D, 128, seed=4)
    sketches = {a.sketch(0), a.sketch(1), a.sketch(2), b.sketch(0), b.sketch(1)}
    assert len(sketches) == 5 and a.sketch(1) == Projector(D, 128, seed=3).sketch(1)
    a.free_memory()


def test_a_result_does_not_depend_on_the_batch():
    grads, projector = together(gradients()), Projector(D, 128)
    halves = torch.cat([projector.project(grads[:2], 1), projector.project(grads[2:], 1)])
    assert torch.equal(halves, projector.project(grads, 1))


def test_gradients_that_need_gradients_are_projected_without():
    grads = {name: g.requires_grad_() for name, g in gradients().items()}
    assert not Projector(D, 128).project(grads, 0).requires_grad


def test_random_project_is_dattris():
    grads = gradients()
    project = random_project(grads, 5, proj_dim=128, proj_max_batch_size=32, device="cpu", proj_seed=3)
    assert project(grads).dtype == torch.bfloat16
    exact = random_project(grads, 5, 128, 32, "cpu", 3, use_half_precision=False)
    assert torch.equal(exact(grads, ensemble_id=2), Projector(D, 128, 3).project(grads, 2))


def test_what_is_wrong_gets_a_message():
    with pytest.raises(ValueError, match=f"the gradients have {D - 10} elements each, the projector takes {D}"):
        Projector(D, 128).project({k: v for k, v in gradients().items() if k != "head.bias"}, 0)
    with pytest.raises(ValueError, match="proj_type is 'rademacher', it must be None, 'sjlt' or 'normal'"):
        Projector(D, 128, proj_type="rademacher")
    with pytest.raises(ValueError, match="model_id is 4294967296, it must be from 0 to 4294967295"):
        Projector(D, 128).sketch(2**32)  # its seed would equal that of model 0
    with pytest.raises(ValueError, match="seed is -1, it must be from 0 to 18446744073709551615"):
        Projector(D, 128, seed=-1)
    assert Projector(D, 128, proj_type="normal").sketch(0).spec["family"] == "gaussian"
