"""Batches of gradients for the library (fs_attribution_add, fs_attribution_layer): arrays of any framework, in dicts
and lists like the parameters of an Attributor, as packed matrices.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy

from . import _cuda
from ._arrays import Adapter, Reading, adapter_of
from ._library import ITEMSIZE, View, pack_matrix, pack_matrix_size, whole

_TOKENS = struct.Struct("@q")  # fs_attribution_layer is two matrices, then this
_NO_MATRIX = bytes(pack_matrix_size)

Path = Tuple[Union[str, int], ...]


class Batch:
    """Arrays of one framework, in the memory space of an attributor."""

    def __init__(self, of: Any, arrays: List[Any]) -> None:
        self.of, self.arrays = of, arrays
        self.adapter = dense(arrays[0])
        self.keep: List[Any] = []

    def read(self, array: Any) -> Reading:
        adapter = dense(array)
        if adapter is not self.adapter:
            raise TypeError(f"gradients are {self.adapter.name}'s and {adapter.name}'s: all must be of one framework")
        reading = adapter.read(array)
        self.of._check_place("gradients are", reading[4])
        return reading

    def view(self, array: Any) -> View:
        """An array n x any shape as a matrix elements x n."""
        adapter, reading = self.adapter, self.read(array)
        if not reading[1]:
            raise ValueError("an array of gradients has shape (): its first axis must be that of the examples")
        step = common_stride(reading[1][1:], reading[2][1:])
        if step is None:
            flat = adapter.reshape(array, (reading[1][0], -1))
            reading = adapter.read(flat)
            step = reading[2][1]
        self.keep.append(reading[5])
        address, shape, strides, dtype, device, _ = reading
        elements = int(numpy.prod(shape[1:], dtype=numpy.int64))
        return address, elements, shape[0], step, strides[0], dtype, device

    def before(self) -> None:
        if self.of._elsewhere(self.adapter):
            _cuda.wait(self.of._device)

    after = before


class GradientBatch(Batch):
    """A batch of gradients for fs_attribution: for each part a matrix parameters x examples."""

    def __init__(self, of: Any, gradients: Any) -> None:
        cut = isinstance(gradients, (Mapping, list, tuple))
        super().__init__(of, matched(of._paths, "gradients", leaves_of(gradients)) if cut else [gradients])
        views = [self.view(array) for array in self.arrays]
        if not cut:
            views = self.pieces(views[0])
        self.examples = views[0][2]
        self.packed = b"".join(map(pack_matrix, views))

    def pieces(self, view: View) -> List[View]:
        """The matrices of the parts, cut from that of whole gradients."""
        address, elements, examples, step, across, dtype, device = view
        ends = self.of._ends.tolist()
        if elements != ends[-1]:
            raise ValueError(f"gradients have {elements} elements each, the attributor was created for {ends[-1]}")
        size = step * ITEMSIZE[dtype]
        return [
            (address + (end - count) * size, count, examples, step, across, dtype, device)
            for count, end in zip(self.of._counts.tolist(), ends)
        ]


class LayerBatch(Batch):
    """A batch of layers for fs_attribution: for each part output gradients and inputs, values x (examples x tokens)."""

    def __init__(self, of: Any, layers: Any) -> None:
        leaves = matched(of._paths, "layers", leaves_of(layers, list))
        pairs = [layer_of(path, leaf) for path, leaf in zip(of._paths, leaves)]
        super().__init__(of, [pair[0] for pair in pairs])
        self.views: Dict[int, Tuple[View, int]] = {}  # by an array's id: one that is given twice is one matrix
        parts = [self.part(path, *pair) for path, pair in zip(of._paths, pairs)]
        self.examples = parts[0][0]
        self.packed = b"".join(packed for _, packed in parts)

    def part(self, path: Path, output_gradients: Any, inputs: Any, linear: bool) -> Tuple[int, bytes]:
        """A part's examples, and its fs_attribution_layer."""
        if not linear:
            view = self.view(output_gradients)
            return view[2], pack_matrix(view) + _NO_MATRIX + _TOKENS.pack(1)
        view, tokens = self.across(path, "output gradients", output_gradients)
        packed, examples = _NO_MATRIX, view[2] // tokens if tokens else 0
        if inputs is not None:
            beside, others = self.across(path, "inputs", inputs)
            if others != tokens:
                raise ValueError(
                    f"output gradients of {named(path)} have {tokens} tokens an example, and its inputs {others}"
                )
            # An address of 0, for no elements, would mean that there are no inputs.
            packed = pack_matrix((beside[0] or ITEMSIZE[beside[5]], *beside[1:]))
        return examples, pack_matrix(view) + packed + _TOKENS.pack(tokens)

    def across(self, path: Path, what: str, array: Any) -> Tuple[View, int]:
        """An array n x tokens (of any number of axes) x values as a matrix values x (n tokens), and the tokens."""
        if id(array) in self.views:
            return self.views[id(array)]
        reading = self.read(array)
        shape, tokens = reading[1], int(numpy.prod(reading[1][1:-1], dtype=numpy.int64))
        if len(shape) < 2:
            raise ValueError(
                f"{what} of {named(path)} have shape {tuple(shape)}, they must be examples x values or "
                "examples x tokens x values"
            )
        step = common_stride(shape[:-1], reading[2][:-1])
        if step is None:
            reading = self.adapter.read(self.adapter.reshape(array, (shape[0] * tokens, shape[-1])))
            step = reading[2][0]
        self.keep.append(reading[5])
        address, _, strides, dtype, device, _ = reading
        view = address, shape[-1], shape[0] * tokens, strides[-1], step, dtype, device
        self.views[id(array)] = view, tokens
        return view, tokens


def layer_of(path: Path, leaf: Any) -> Tuple[Any, Any, bool]:
    """Output gradients, inputs (None for a bias) and whether they are a linear layer's; otherwise the first are
    gradients."""
    if not isinstance(leaf, tuple):
        return leaf, None, False
    if len(leaf) != 2:
        raise ValueError(
            f"{named(path)} is a tuple of {len(leaf)}, it must be (output gradients, inputs) or (output gradients, "
            "None)"
        )
    return leaf[0], leaf[1], True


def leaves_of(tree: Any, lists: Any = (list, tuple), path: Path = ()) -> Iterator[Tuple[Path, Any]]:
    """The leaves of a dict or a list of dicts and lists, with their paths."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from leaves_of(value, lists, (*path, name))
    elif isinstance(tree, lists):
        for number, value in enumerate(tree):
            yield from leaves_of(value, lists, (*path, number))
    else:
        yield path, tree


def matched(paths: List[Path], what: str, leaves: Iterator[Tuple[Path, Any]]) -> List[Any]:
    """The leaves of a batch, in the order of the parameters."""
    found: Dict[Path, Any] = dict(leaves)
    for path in paths:
        if path not in found:
            raise ValueError(f"{what} have no {named(path)}, which the attributor was created with")
    for path in found:
        if path not in paths:
            raise ValueError(f"{what} have {named(path)}, which the attributor was not created with")
    return [found[path] for path in paths]


def named(path: Path) -> str:
    return "/".join(map(repr, path)) if path else "single array"


def count_of(path: Path, leaf: Any) -> int:
    """The number of elements of a parameter, given as the parameter or as the number."""
    if hasattr(leaf, "shape") and not isinstance(leaf, numpy.integer):
        return int(numpy.prod(leaf.shape, dtype=numpy.int64))
    return whole(f"the number of parameters of {named(path)}" if path else "parameters", leaf, who="Attributor")


def dense(array: Any) -> Adapter:
    """The framework of an array that is in memory as a whole."""
    adapter = adapter_of(array)
    if adapter.name in ("scipy.sparse", "dask"):
        raise TypeError(f"an array is {adapter.name}'s; attribution takes dense arrays of NumPy, PyTorch, CuPy and JAX")
    return adapter


def common_stride(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> Optional[int]:
    """The stride of all elements in C order, if there is one."""
    stride = following = None
    for size, step in zip(reversed(shape), reversed(strides)):
        if size == 1:
            continue
        if stride is None:
            stride = step
        elif step != following:
            return None
        following = step * size
    return 1 if stride is None else stride
