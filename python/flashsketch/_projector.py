"""Projectors of gradients with the interfaces of TRAK and dattri (PyTorch); flashsketch.attribution has them.

These keep lengths, where TRAK's own projectors do not divide by sqrt(proj_dim); scores do not depend on the scale of S.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Union

import torch

from ._library import whole
from ._sketch import Sketch

Gradients = Union[torch.Tensor, Mapping[str, torch.Tensor]]

_FAMILIES: Dict[Optional[str], Dict[str, Any]] = {
    None: {"batch_major": True},
    "sjlt": {"family": "sjlt"},
    "normal": {"family": "gaussian"},
}


class Projector:
    """Projects batches of gradients, n x grad_dim, to n x proj_dim, with a different S for each model_id.

    grads may be a dict of tensors, n x the shape of a parameter each: they are projected one after the other, by their
    position in the whole gradient, and are never concatenated.  The result does not depend on how a gradient is cut, on
    the batch, or on the machine.

    proj_type: None is the library's sketch for batches; "sjlt" and "normal" are those families.  dtype: of the result;
    sums are float32 (float64 for float64) and rounded to it once.  None: the gradients' own.

    >>> import torch
    >>> from flashsketch.attribution import Projector
    >>> projector = Projector(grad_dim=1000, proj_dim=128, seed=0)
    >>> grads = {"weight": torch.randn(8, 30, 33), "bias": torch.randn(8, 10)}
    >>> whole = torch.cat([grad.flatten(1) for grad in grads.values()], dim=1)
    >>> torch.allclose(projector.project(grads, model_id=0), projector.project(whole, model_id=0), atol=1e-5)
    True
    """

    def __init__(
        self,
        grad_dim: int,
        proj_dim: int,
        seed: int = 0,
        proj_type: Optional[str] = None,
        device: Union[str, torch.device, None] = None,
        *,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        kind = getattr(proj_type, "value", proj_type)
        if kind not in _FAMILIES:
            raise ValueError(f"Projector: proj_type is {kind!r}, it must be None, 'sjlt' or 'normal'")
        self.grad_dim, self.proj_dim, self.proj_type = grad_dim, proj_dim, proj_type
        self.seed = whole("seed", seed, 0, 2**64 - 1, who="Projector")
        self.device = None if device is None else torch.device(device)
        self.dtype = dtype
        self._options = _FAMILIES[kind]
        self._sketches: Dict[int, Sketch] = {}
        self.sketch(0)

    def sketch(self, model_id: int) -> Sketch:
        """The S of a model, from 0 to 2^32 - 1: its seed is seed + 2^32 model_id, modulo 2^64."""
        model_id = whole("model_id", model_id, 0, 2**32 - 1, who="Projector")
        if model_id not in self._sketches:
            seed = (self.seed + (model_id << 32)) % 2**64
            self._sketches[model_id] = Sketch(self.proj_dim, self.grad_dim, seed, **self._options)
        return self._sketches[model_id]

    @torch.no_grad()
    def project(self, grads: Gradients, model_id: int = 0) -> torch.Tensor:
        """The projected gradients, n x proj_dim, where the gradients are (or on `device`, if that was given)."""
        S = self.sketch(model_id)
        parts = [self._part(grad) for grad in (grads.values() if isinstance(grads, Mapping) else [grads])]
        columns = sum(part.shape[1] for part in parts)
        if columns != self.grad_dim:
            raise ValueError(f"the gradients have {columns} elements each, the projector takes {self.grad_dim}")
        first = parts[0]
        wide = torch.promote_types(first.dtype, torch.float32)
        sums = first.new_empty((first.shape[0], self.proj_dim), dtype=wide)
        row0 = 0
        for part in parts:
            if row0 == 0:
                S.project(part, out=sums, row0=0)
            else:
                S.update(sums.T, part.T, row0)
            row0 += part.shape[1]
        return sums.to(self.dtype or first.dtype)

    def _part(self, grad: torch.Tensor) -> torch.Tensor:
        matrix = grad.flatten(1) if grad.dim() > 1 else grad.unsqueeze(1)
        return matrix if self.device is None else matrix.to(self.device)

    def free_memory(self) -> None:
        """Does nothing: S is never in memory."""


def random_project(
    feature: Gradients,
    feature_batch_size: int,
    proj_dim: int,
    proj_max_batch_size: int = 0,
    device: Union[str, torch.device, None] = None,
    proj_seed: int = 0,
    proj_type: Optional[str] = None,
    *,
    use_half_precision: bool = True,
) -> Callable[..., torch.Tensor]:
    """dattri's function: a callable (feature, ensemble_id=0) that projects batches like `feature`.

    proj_max_batch_size is not needed and not used.  use_half_precision: the result is bfloat16, else float32.

    >>> import torch
    >>> from flashsketch.attribution import random_project
    >>> grads = torch.randn(8, 1000)
    >>> project = random_project(grads, 8, proj_dim=128, use_half_precision=False)
    >>> project(grads, ensemble_id=3).shape
    torch.Size([8, 128])
    """
    tensors = feature.values() if isinstance(feature, Mapping) else [feature]
    grad_dim = sum(tensor.numel() // feature_batch_size for tensor in tensors)
    dtype = torch.bfloat16 if use_half_precision else torch.float32
    projector = Projector(grad_dim, proj_dim, proj_seed, proj_type, device, dtype=dtype)

    def project(feature: Gradients, ensemble_id: int = 0) -> torch.Tensor:
        return projector.project(feature, ensemble_id)

    return project
