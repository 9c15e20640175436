"""Data attribution: which training samples does a prediction owe its value to?

A gradient per sample is projected to a few hundred numbers, layer by layer, without concatenating the gradients of
layers; the scores are inner products of projections.  The projector is a drop-in replacement for TRAK's and dattri's:

    TRAKer(model, ..., projector=flashsketch.attribution.Projector(grad_dim, proj_dim, seed))
    from flashsketch.attribution import random_project        # instead of dattri.func.projection's

Needs PyTorch.  Prints how close the scores from projections are to those from whole gradients.
"""

import torch
from torch.func import functional_call, grad, vmap

from flashsketch.attribution import Projector

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
parameters = {name: p.detach() for name, p in model.named_parameters()}
inputs, labels = torch.randn(96, 64), torch.randint(10, (96,))


def loss(parameters, x, label):
    return torch.nn.functional.cross_entropy(functional_call(model, parameters, (x[None],)), label[None])


gradients = vmap(grad(loss), (None, 0, 0))(parameters, inputs, labels)  # a dict: samples x the shape of each parameter

grad_dim = sum(p.numel() for p in parameters.values())
projector = Projector(grad_dim, proj_dim=2048, seed=0)
projected = projector.project(gradients, model_id=0)  # 96 x 2048

whole = torch.cat([g.flatten(1) for g in gradients.values()], dim=1)  # 96 x grad_dim: what need not be in memory
estimated, exact = projected @ projected.T, whole @ whole.T
others = ~torch.eye(96, dtype=torch.bool)
correlation = torch.corrcoef(torch.stack([estimated[others], exact[others]]))[0, 1].item()
print(f"{grad_dim} parameters, {projected.shape[1]} numbers a sample: correlation of scores {correlation:.3f}")
assert correlation > 0.95, correlation
