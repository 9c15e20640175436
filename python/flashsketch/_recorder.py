"""The factors of the gradients of a PyTorch model's linear layers, recorded while the model runs.

Hooks on the layers record their inputs and the nodes of their outputs in autograd's graph; one backward pass over the
batch then gives the gradients of all these outputs.  It computes no gradient of a parameter and writes no .grad.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import Linear, Module

__all__ = ["Recorder"]


class Recorder:
    """Records a model's linear layers for Attributor.add_layers and project_layers.

    Of a model's parameters, those that need no gradient are left out.  All others must be weights and biases of
    torch.nn.Linear modules, or be named in `others`: their gradients are then given to `layers` as tensors, examples x
    the shape of the parameter.  `parameters` are the parameters of the gradients, in the model's order, for an
    Attributor.

    Examples must not interact in the model, as they do in a batch norm in training mode.  The first axis of a layer's
    inputs and outputs is that of the examples, the last that of the values, others are tokens.  A layer that is called
    several times, and layers that share a weight, are summed.

    >>> import torch, flashsketch as fs
    >>> net = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> recorder = fs.attribution.Recorder(net)
    >>> model = fs.attribution.Attributor(recorder.parameters, examples=40, k=16, mask=64)
    >>> images = torch.randn(40, 20)
    >>> with recorder:
    ...     values = net(images).logsumexp(1)            # an objective for each example
    >>> model.add_layers(recorder.layers(values))
    >>> model.added.all().item()
    True
    """

    def __init__(self, model: Module, others: Iterable[str] = ()) -> None:
        self.parameters: Dict[str, Any] = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.others = list(others)
        self._names: Dict[Module, str] = {}
        self._holders: Dict[str, List[Module]] = {}  # the layers of each weight and bias
        self._roles: Dict[str, str] = {}
        for name in self.others:
            if name not in self.parameters:
                raise ValueError(f"{name!r} is not a parameter of the model that needs a gradient")
        for name, parameter in self.parameters.items():
            if name not in self.others:
                self._find(model, name, parameter)
        self._calls: Dict[Module, List[Tuple[Tensor, int, Any]]] = {}
        self._handles: List[Any] = []

    def _find(self, model: Module, name: str, parameter: Any) -> None:
        """The layers that a parameter is the weight or the bias of."""
        held = [
            (where, module, role)
            for where, module in model.named_modules()
            for role, p in module.named_parameters(recurse=False)
            if p is parameter
        ]
        for where, module, role in held:
            if not isinstance(module, Linear) or role not in ("weight", "bias"):
                raise ValueError(
                    f"{name!r} is a parameter of a {type(module).__name__}, and only gradients of torch.nn.Linear are "
                    "recorded: name it in `others` and give its gradients to `layers`, or leave it out, "
                    "requires_grad_(False)"
                )
            self._names[module] = f"layer {where!r}" if where else "the model"
        self._holders[name] = [module for _, module, _ in held]
        self._roles[name] = held[0][2]

    def __enter__(self) -> Recorder:
        self.__exit__()
        self._calls = {module: [] for module in self._names}
        self._handles = [module.register_forward_hook(self._record, with_kwargs=True) for module in self._names]
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _record(self, module: Module, given: Tuple[Any, ...], named: Dict[str, Any], output: Tensor) -> None:
        if output.requires_grad:  # it does not where gradients are disabled
            inputs = (given[0] if given else named["input"]).detach()
            # An edge stays where it is when the output is changed in place later, as ReLU(inplace=True) does.
            self._calls[module].append((inputs, inputs._version, torch.autograd.graph.get_gradient_edge(output)))

    def layers(self, values: Tensor, others: Optional[Mapping[str, Tensor]] = None) -> Dict[str, Any]:
        """What add_layers takes: the parts of the gradients of `values`, the objective of each example, a vector
        computed from the model's outputs since the recorder was entered.

        others: the gradients of the parameters that were named when the recorder was created.  The recorded calls and
        their graph are released.
        """
        if values.dim() != 1:
            raise ValueError(
                f"values have shape {tuple(values.shape)}, there must be one for each example: not their sum or mean"
            )
        if set(others or {}) != set(self.others):
            raise ValueError(f"`others` are {sorted(others or {})}, the recorder was created for {sorted(self.others)}")
        calls, self._calls = self._calls, {module: [] for module in self._names}
        for module, name in self._names.items():
            if not calls.get(module):
                raise ValueError(f"{name} was not called since the recorder was entered, or with gradients disabled")
        edges = [edge for of in calls.values() for _, _, edge in of]
        found = iter(torch.autograd.grad(values.sum(), edges, allow_unused=True) if edges else ())
        made = {
            module: [self._pair(module, *call[:2], next(found), len(values)) for call in of]
            for module, of in calls.items()
        }
        together: Dict[Tuple[Module, ...], Tuple[Tensor, Tensor]] = {}  # so that weight and bias share them
        parts: Dict[str, Any] = {}
        for name in self.parameters:
            if name in self.others:
                parts[name] = (others or {})[name]
                continue
            key = tuple(self._holders[name])
            if key not in together:
                together[key] = _joined([pair for module in key for pair in made[module]])
            output_gradients, inputs = together[key]
            parts[name] = (output_gradients, inputs if self._roles[name] == "weight" else None)
        return parts

    def _pair(
        self, module: Module, inputs: Tensor, version: int, output_gradients: Optional[Tensor], examples: int
    ) -> Tuple[Tensor, Tensor]:
        """Output gradients and inputs of one call, checked."""
        name = self._names[module]
        if output_gradients is None:
            raise ValueError(
                f"values do not depend on a call of {name}; layers that are recomputed in a backward pass "
                "(checkpointing) cannot be recorded"
            )
        if inputs._version != version:
            raise ValueError(f"the inputs of {name} were changed in place after it was called")
        if output_gradients.dim() < 2 or len(output_gradients) != examples:
            raise ValueError(
                f"the outputs of {name} have shape {tuple(output_gradients.shape)}: their first axis must be that of "
                f"the {examples} examples, their last that of the layer"
            )
        return output_gradients, inputs


def _joined(pairs: List[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tensor]:
    """Several calls as one with the tokens of all of them."""
    if len(pairs) == 1:
        return pairs[0]
    output_gradients, inputs = (torch.cat([x[:, None].flatten(1, -2) for x in of], 1) for of in zip(*pairs))
    return output_gradients, inputs
