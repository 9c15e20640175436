"""Data attribution: how much each training example contributed to a model's answer, by sketched gradients.

An example's feature is phi = scale S g[mask], g its gradient; the score of training example i for a query is
phi (Phi'Phi + damping I)^-1 Phi_i' times a weight of its own: TRAK's, with the mask and the sketch of GraSS.  Gradients
come from any framework, in batches, and are never kept.  Gradients of linear layers need not be formed: add_layers
takes their two factors, which a Recorder reads from a PyTorch model.

>>> import numpy as np, flashsketch as fs
>>> rng = np.random.default_rng(0)
>>> gradients = rng.standard_normal((300, 5000), dtype=np.float32)      # of training examples, a row each
>>> query = gradients[17:18] + 0.5 * rng.standard_normal((1, 5000), dtype=np.float32)
>>> model = fs.attribution.Attributor(5000, examples=300, k=256, mask=1024)
>>> for first in range(0, 300, 64):
...     model.add(gradients[first : first + 64])
>>> model.finish(damping=0.1)
>>> scores = model.scores(model.project(query))                         # queries x examples
>>> examples, values = fs.attribution.top(scores[0], 3)                 # the most helpful; harmful=True: the worst
>>> int(examples[0])
17

For TRAK's and dattri's own programs there are projectors of gradients (PyTorch):

TRAK: TRAKer(..., projector=flashsketch.attribution.Projector(grad_dim, proj_dim, seed)).
dattri: `from flashsketch.attribution import random_project` instead of dattri.func.projection's; for its attributors,
dattri.algorithm.trak.random_project = flashsketch.attribution.random_project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._attributor import Attributor, top

if TYPE_CHECKING:
    from ._projector import Projector, random_project
    from ._recorder import Recorder

__all__ = ["Attributor", "Projector", "Recorder", "random_project", "top"]


def __getattr__(name: str) -> Any:
    """The names that need PyTorch, which is imported with the first of them."""
    if name == "Recorder":
        from ._recorder import Recorder

        return Recorder
    if name in ("Projector", "random_project"):
        from . import _projector

        return getattr(_projector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
