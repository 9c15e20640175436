"""Data attribution: which training examples a model's answer comes from, by sketched gradients (flashsketch_attribution.h).

An example's feature is phi = scale S g[mask], g its gradient; the score of training example i for a query is
phi (Phi'Phi + damping I)^-1 Phi_i' times a weight of its own: TRAK's, with the mask and the sketch of GraSS.  Gradients
come from whoever has them, in batches, and are never kept.  Those of linear layers need not even be formed: add_layers
takes the two factors that they are products of, which a Recorder takes from a PyTorch model.

>>> import numpy as np, flashsketch as fs
>>> rng = np.random.default_rng(0)
>>> gradients = rng.standard_normal((300, 5000), dtype=np.float32)      # of training examples, a row each
>>> query = gradients[17:18] + 0.5 * rng.standard_normal((1, 5000), dtype=np.float32)
>>> model = fs.grass.Attributor(5000, examples=300, k=256, mask=1024)
>>> for first in range(0, 300, 64):
...     model.add(gradients[first : first + 64])
>>> model.finish(damping=0.1)
>>> scores = model.scores(model.project(query))                         # queries x examples
>>> examples, values = fs.grass.top(scores[0], 3)                       # the most helpful; with harmful=True the worst
>>> int(examples[0])
17

flashsketch.attribution has projectors for TRAK's and dattri's own programs.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import struct
import threading
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy

from . import _cuda
from ._arrays import Adapter, Reading, adapter_of, matrix, place
from ._layouts import layout
from ._library import (
    HOST,
    ITEMSIZE,
    SPEC,
    Context,
    View,
    check,
    definition_version,
    lib,
    pack_matrix,
    pack_matrix_size,
    whole,
)
from ._sketch import Sketch
from ._tasks import opened

__all__ = ["Attributor", "top"]  # and Recorder, below

_OPTIONS = layout("fs_attribution_options")
_TOKENS = struct.Struct("@q")  # fs_attribution_layer is two matrices, then this
_NO_MATRIX = bytes(pack_matrix_size)
_FORMAT = "flashsketch features 1"
# What NumPy and zipfile raise on bytes that are no file of theirs, or not all of one.
_UNREADABLE = (
    *(AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)

Path = Tuple[Union[str, int], ...]


def __getattr__(name: str) -> Any:
    if name == "Recorder":  # needs PyTorch
        from ._recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Attributor:
    """The features of a model's training examples, and the scores that are made of them.

    parameters: what a gradient consists of: the number of its elements, or the model's parameters, as a dict or a list
    (of dicts, of lists) of tensors or of their numbers of elements, or a torch.nn.Module; their order is that of the
    coordinates.  examples: N, how many training examples there are.  k: numbers of a feature.  mask: coordinates that
    are kept, drawn at random from the seed, `run` neighbours together (8 floats are a GPU's least read); 0: all.
    scale: of the features; 0: 1 / sqrt(all parameters).  The rest is the sketch's, as fs.Sketch takes it: seed, family,
    kappa, s, ...; where no shuffle is given whole lines of 32 coordinates are shuffled.

    like: an array of the framework, and in the memory, that gradients will come in; not given: parameters that are
    tensors tell, numbers mean host memory.  On a GPU work is queued on the framework's stream that was current when the
    attributor was made, which has to live on; with another one current a call waits for the GPU.

    A batch of gradients of n examples is a dict or a list like `parameters`, of arrays n x the shape of a parameter, as
    torch.func.vmap(torch.func.grad(...)) makes them, or one array n x all parameters; float32, float16 or bfloat16, of
    NumPy, PyTorch, CuPy, JAX.  Nothing is copied, except by the framework a parameter whose elements have no common
    stride.  A feature does not depend on how gradients are cut into parameters and batches.

    For several models (checkpoints) make one of each after the other with seeds of their own, and add their scores:

    >>> import numpy as np, flashsketch as fs
    >>> gradients = np.random.default_rng(0).standard_normal((2, 40, 1000), dtype=np.float32)    # of two models
    >>> scores = None
    >>> for seed in range(2):
    ...     model = fs.grass.Attributor(1000, examples=40, k=32, seed=seed)
    ...     model.add(gradients[seed])
    ...     model.finish(damping=0.1)
    ...     scores = model.scores(model.project(gradients[seed, :5]), alpha=1 / 2, add_to=scores)
    >>> scores.shape, scores.argmax(axis=1).tolist()
    ((5, 40), [0, 1, 2, 3, 4])
    """

    def __init__(
        self,
        parameters: Any,
        examples: int,
        k: int,
        *,
        mask: int = 0,
        run: int = 1,
        seed: int = 0,
        scale: float = 0.0,
        like: Any = None,
        **sketch: Any,
    ) -> None:
        if hasattr(parameters, "named_parameters"):
            parameters = dict(parameters.named_parameters())
        leaves = dict(_leaves(parameters))
        self._paths = list(leaves)
        self._counts = numpy.array([_count(path, leaf) for path, leaf in leaves.items()], numpy.int64)
        self._ends = self._counts.cumsum()
        every = int(self._counts.sum())
        self.examples, mask = whole("examples", examples, who="Attributor"), whole("mask", mask, who="Attributor")
        run = whole("run", run, who="Attributor")
        if not {"shuffle", "batch_major"} & set(sketch) and sketch.get("family", "blockperm") == "blockperm":
            sketch["shuffle"], sketch["interleave"] = "groups", sketch.get("interleave", 1)  # as fs_attribution_create chooses
        self.sketch = Sketch(k, mask if mask > 0 else every, seed, **sketch)
        self.k = self.sketch.k

        if like is None:
            tensors = (leaf for leaf in leaves.values() if hasattr(leaf, "shape"))
            like = next((leaf for leaf in tensors if not isinstance(leaf, numpy.generic)), numpy.empty(0))
        adapter = _dense(like)
        self._device = adapter.read(like)[4]
        streamed = self._device != HOST and adapter.name != "jax"
        self._stream = adapter.stream(self._device) if streamed else 0
        self._context, self._lock, out = Context(self._device, self._stream), threading.Lock(), ctypes.c_void_p()
        spec = tuple(map(int, self.sketch._key.split()))
        self._options = (self.examples, len(leaves), mask, run, float(scale))
        packed = ctypes.create_string_buffer(SPEC.pack(SPEC.size, *spec), SPEC.size)
        options = _OPTIONS.pack(
            _OPTIONS.size, *self._options[:2], self._counts.ctypes.data, *self._options[2:], ctypes.addressof(packed)
        )
        opened(lambda: lib.fs_attribution_create(ctypes.byref(out), self._context.pointer, options))
        self._pointer = out.value

    def __del__(self, destroy: Any = lib.fs_attribution_destroy) -> None:
        destroy(getattr(self, "_pointer", None))  # there is none where __init__ refused

    def __repr__(self) -> str:
        masked = f" of {self.sketch.d} coordinates" if self._options[2] else ""
        return (
            f"<Attributor: {int(self.added.sum())} of {self.examples} examples{masked}, {int(self._counts.sum())} "
            f"parameters, {self.sketch!r}>"
        )

    # gradients --------------------------------------------------------------------------------------------------------

    def add(self, gradients: Any, first: Optional[int] = None) -> None:
        """Adds a batch: the features of training examples first, first + 1, ...; not given, the first example that is
        still missing, so that batches in order need no numbers.  Examples that were there before are replaced.

        A gradient that is not finite is an error that names the example, and the examples of the batch count as not
        added.
        """
        parts = _Parts(self, gradients)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_add(self._pointer, self._first(first), parts.packed))

    def project(self, gradients: Any) -> Any:
        """The features of a batch of other examples, n x k, float32, in an array like the gradients'."""
        parts = _Parts(self, gradients)
        phi = parts.adapter.empty(parts.arrays[0], (parts.examples, self.k), "float32")
        reading = parts.adapter.read(phi)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_project(self._pointer, parts.packed, pack_matrix(matrix(reading, False, "phi"))))
            parts.after()
        return phi

    def add_layers(self, layers: Any, first: Optional[int] = None) -> None:
        """add, of a batch whose gradients are not formed: what an example's gradient of a linear layer is made of.

        layers: a dict or a list like `parameters`, and in the place of each parameter a tuple or an array.
        (slopes, inputs) is a weight, out x in: the slopes of the objective at the layer's outputs, n x out, and the
        layer's inputs, n x in, or n x tokens x out and n x tokens x in where an example meets the layer several times
        (there may be several axes of tokens).  (slopes, None) is a bias.  An array is the gradients of any other
        parameter, as add takes it.  Types and frameworks are those of gradients; a weight and its bias are best given
        the same array of slopes.  The features are those of `add` up to rounding.

        >>> import numpy as np, flashsketch as fs
        >>> rng = np.random.default_rng(0)
        >>> slopes, inputs = rng.standard_normal((40, 8), "f"), rng.standard_normal((40, 30), "f")
        >>> model = fs.grass.Attributor({"weight": 8 * 30, "bias": 8}, examples=40, k=16, mask=64)
        >>> model.add_layers({"weight": (slopes, inputs), "bias": (slopes, None)})
        >>> formed = model.project({"weight": slopes[:, :, None] * inputs[:, None, :], "bias": slopes})
        >>> np.allclose(model.features, formed, atol=1e-5)
        True
        """
        parts = _Layers(self, layers)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_add_layers(self._pointer, self._first(first), parts.packed))

    def project_layers(self, layers: Any) -> Any:
        """project, of a batch as add_layers takes it."""
        parts = _Layers(self, layers)
        phi = parts.adapter.empty(parts.arrays[0], (parts.examples, self.k), "float32")
        reading = parts.adapter.read(phi)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_project_layers(self._pointer, parts.packed, pack_matrix(matrix(reading, False, "phi"))))
            parts.after()
        return phi

    @property
    def mask(self) -> Optional[numpy.ndarray]:
        """The coordinates that are kept, ascending, counted over all parameters; None: all are.

        >>> import flashsketch as fs
        >>> fs.grass.Attributor({"weight": 90, "bias": 10}, examples=5, k=4, mask=8, seed=1).mask.shape
        (8,)
        """
        if not self._options[2]:
            return None
        coordinates = numpy.empty(self.sketch.d, numpy.int64)
        check(lib.fs_attribution_mask(self._pointer, coordinates.ctypes.data))
        return coordinates

    @property
    def added(self) -> numpy.ndarray:
        """Which examples have been added: a bool for each."""
        added = numpy.empty(self.examples, bool)
        check(lib.fs_attribution_added(self._pointer, added.ctypes.data))
        return added

    def _first(self, first: Optional[int]) -> int:
        if first is not None:
            return whole("first", first, who="Attributor")
        added = self.added
        return self.examples if added.all() else int(added.argmin())

    # features ---------------------------------------------------------------------------------------------------------

    def _features(self) -> int:
        """Where they are."""
        view = ctypes.create_string_buffer(pack_matrix_size)
        check(lib.fs_attribution_features(self._pointer, view))
        address: int = ctypes.c_void_p.from_buffer(view).value or 0
        return address

    def _view(self) -> numpy.ndarray:
        """All of them, of an attributor in host memory."""
        return numpy.asarray(_Memory(self, self._features(), (self.examples, self.k)))

    @property
    def features(self) -> numpy.ndarray:
        """The features, examples x k, float32, to be read: a view of host memory, a copy of a GPU's.  What examples
        that have not been added have there means nothing."""
        if self._device == HOST:
            view = self._view()
        else:
            view = numpy.empty((self.examples, self.k), numpy.float32)
            _cuda.to_host(self._device, self._features(), view)
        view.flags.writeable = False
        return view

    def restore(self, features: Any, first: Optional[int] = None) -> None:
        """Adds examples by their features, n x k, as `features` had them before: otherwise as add."""
        rows = numpy.ascontiguousarray(features, numpy.float32)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise ValueError(f"features have shape {rows.shape}, they must be n x k = {self.k}")
        with self._lock:
            begin = self._first(first)
            if not 0 <= begin <= self.examples - len(rows):
                raise ValueError(
                    f"examples {begin} to {begin} + {len(rows)} are not all among the {self.examples} of the attributor"
                )
            if self._device == HOST:
                self._view()[begin : begin + len(rows)] = rows
            else:
                _cuda.to_device(self._device, self._features() + 4 * self.k * begin, rows)
            check(lib.fs_attribution_restore(self._pointer, begin, len(rows)))

    def _about(self) -> Dict[str, Any]:
        _, _, mask, run, scale = self._options
        return {
            "format": _FORMAT,
            "definition": definition_version,
            "examples": self.examples,
            "parameters": int(self._counts.sum()),
            "mask": mask,
            "run": run,
            "scale": scale,
            **self.sketch.spec,
        }

    def save(self, path: Any) -> None:
        """Writes the features that are there into a file of NumPy's kind .npz, which is replaced as a whole or not at
        all: `features`, `added` and, as text, `about`, which says what they are features of."""
        path = pathlib.Path(path)
        added, features = self.added, self.features
        rows = features if added.all() else features[added]
        beside = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with open(beside, "wb") as file:
                numpy.savez(file, features=rows, added=added, about=numpy.array(json.dumps(self._about())))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)

    def load(self, path: Any) -> None:
        """Adds the examples that are in a file of `save`, if they are what this attributor would make: `added` says
        how many there are, and add goes on with the first that is missing."""
        with open(path, "rb") as opened_file:
            try:
                file = numpy.load(opened_file, allow_pickle=False)
                about, added, rows = json.loads(str(file["about"])), file["added"].astype(bool), file["features"]
                there = about["format"], (about["examples"],) == added.shape, (added.sum(), about["k"]) == rows.shape
            except _UNREADABLE as error:
                raise ValueError(f"{path} is no file of features, or not all of one: {error}") from None
        if there != (_FORMAT, True, True):
            raise ValueError(f"{path} has {rows.shape} features of {added.shape} examples, and says that it is {about}")
        here = self._about()
        for name in {**here, **about}:
            if here.get(name) != about.get(name):
                raise ValueError(
                    f"{path} has other features: {name} is {about.get(name)} there, and {here.get(name)} here"
                )
        edges = numpy.flatnonzero(numpy.diff(added.astype(numpy.int8), prepend=0, append=0))
        at = 0
        for begin, end in edges.reshape(-1, 2).tolist():
            self.restore(rows[at : at + end - begin], begin)
            at += end - begin

    # scores -----------------------------------------------------------------------------------------------------------

    def finish(self, damping: float) -> None:
        """Makes what scores need when all examples have been added: Phi'Phi + damping I, factored in float64.  Another
        damping is another call, and a quick one."""
        with self._lock:
            check(lib.fs_attribution_factor(self._pointer, float(damping)))

    def scores(self, features: Any, weights: Any = None, *, alpha: float = 1.0, add_to: Any = None) -> Any:
        """alpha phi (Phi'Phi + damping I)^-1 Phi' diag(weights), queries x examples, float64, in host memory.

        features: of the queries, as project makes them.  weights: a number for each example, TRAK's being how far it is
        from being learnt, 1 - p.  add_to: an array that scores are added to, and that is returned; None: a new one.
        """
        adapter = _dense(features)
        reading = adapter.read(features)
        self._check_place("features are", reading[4])
        if len(reading[1]) != 2:
            raise ValueError(f"features have shape {tuple(reading[1])}, they must be queries x k = {self.k}")
        beta = 0.0 if add_to is None else 1.0
        scores = numpy.empty((reading[1][0], self.examples)) if add_to is None else add_to
        to = _dense(scores)
        if to.name not in ("numpy", "torch") or not getattr(getattr(scores, "flags", None), "writeable", True):
            raise TypeError("scores are added to an array of NumPy or PyTorch that can be written to")
        given = None if weights is None else numpy.ascontiguousarray(weights, numpy.float64)
        if given is not None and given.shape != (self.examples,):
            raise ValueError(f"weights have shape {given.shape}, there must be one for each example: {self.examples}")
        place_for = to.read(scores)
        with self._lock:
            if self._elsewhere(adapter):
                _cuda.wait(self._device)
            check(
                lib.fs_attribution_scores(
                    self._pointer,
                    pack_matrix(matrix(reading, False, "features")),
                    None if given is None else given.ctypes.data,
                    float(alpha),
                    beta,
                    pack_matrix(matrix(place_for, False, "scores")),
                )
            )
        to.written(scores)
        return scores

    # places -----------------------------------------------------------------------------------------------------------

    def _check_place(self, what: str, device: int) -> None:
        if device != self._device:
            raise ValueError(
                f"{what} {place(device)} and the attributor {place(self._device)}: both must be in one place, which "
                "`like` says when the attributor is made"
            )

    def _elsewhere(self, adapter: Adapter) -> bool:
        """Whether a framework's work and the attributor's are on different streams."""
        return self._device != HOST and (adapter.name == "jax" or adapter.stream(self._device) != self._stream)


class _Memory:
    """Numbers of float32 at an address, for NumPy, which keeps this and so their owner."""

    def __init__(self, owner: Any, address: int, shape: Tuple[int, ...]) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}


class _Batch:
    """Arrays of one framework, where an attributor is, on their way to it."""

    def __init__(self, of: Attributor, arrays: List[Any]) -> None:
        self.of, self.arrays = of, arrays
        self.adapter = _dense(arrays[0])
        self.keep: List[Any] = []

    def read(self, array: Any) -> Reading:
        adapter = _dense(array)
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
        step = _stride(reading[1][1:], reading[2][1:])
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


class _Parts(_Batch):
    """A batch of gradients as fs_attribution takes it: for each part a matrix parameters x examples."""

    def __init__(self, of: Attributor, gradients: Any) -> None:
        cut = isinstance(gradients, (Mapping, list, tuple))
        super().__init__(of, _matched(of._paths, "gradients", _leaves(gradients)) if cut else [gradients])
        views = [self.view(array) for array in self.arrays]
        if not cut:
            views = self.pieces(views[0])
        self.examples = views[0][2]
        self.packed = b"".join(map(pack_matrix, views))

    def pieces(self, view: View) -> List[View]:
        """The matrices of the parts, of that of whole gradients."""
        address, elements, examples, step, across, dtype, device = view
        ends = self.of._ends.tolist()
        if elements != ends[-1]:
            raise ValueError(f"gradients have {elements} elements each, the attributor was made for {ends[-1]}")
        size = step * ITEMSIZE[dtype]
        return [
            (address + (end - count) * size, count, examples, step, across, dtype, device)
            for count, end in zip(self.of._counts.tolist(), ends)
        ]


class _Layers(_Batch):
    """A batch of layers as fs_attribution takes it: for each part slopes and inputs, values x (examples x tokens)."""

    def __init__(self, of: Attributor, layers: Any) -> None:
        leaves = _matched(of._paths, "layers", _leaves(layers, list))
        pairs = [_pair(path, leaf) for path, leaf in zip(of._paths, leaves)]
        super().__init__(of, [pair[0] for pair in pairs])
        self.views: Dict[int, Tuple[View, int]] = {}  # of an array by its id: one that is given twice is one matrix
        parts = [self.part(path, *pair) for path, pair in zip(of._paths, pairs)]
        self.examples = parts[0][0]
        self.packed = b"".join(packed for _, packed in parts)

    def part(self, path: Path, slopes: Any, inputs: Any, linear: bool) -> Tuple[int, bytes]:
        """A part's examples, and its fs_attribution_layer."""
        if not linear:
            view = self.view(slopes)
            return view[2], pack_matrix(view) + _NO_MATRIX + _TOKENS.pack(1)
        view, tokens = self.across(path, "slopes", slopes)
        packed, examples = _NO_MATRIX, view[2] // tokens if tokens else 0
        if inputs is not None:
            beside, others = self.across(path, "inputs", inputs)
            if others != tokens:
                raise ValueError(f"slopes of {_named(path)} have {tokens} tokens an example, and its inputs {others}")
            # An address that is 0, of no elements, would say that there are no inputs.
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
                f"{what} of {_named(path)} have shape {tuple(shape)}, they must be examples x values or "
                "examples x tokens x values"
            )
        step = _stride(shape[:-1], reading[2][:-1])
        if step is None:
            reading = self.adapter.read(self.adapter.reshape(array, (shape[0] * tokens, shape[-1])))
            step = reading[2][0]
        self.keep.append(reading[5])
        address, _, strides, dtype, device, _ = reading
        view = address, shape[-1], shape[0] * tokens, strides[-1], step, dtype, device
        self.views[id(array)] = view, tokens
        return view, tokens


def _pair(path: Path, leaf: Any) -> Tuple[Any, Any, bool]:
    """Slopes, inputs (None for a bias) and whether they are a linear layer's; otherwise the slopes are gradients."""
    if not isinstance(leaf, tuple):
        return leaf, None, False
    if len(leaf) != 2:
        raise ValueError(f"{_named(path)} is a tuple of {len(leaf)}, it must be (slopes, inputs) or (slopes, None)")
    return leaf[0], leaf[1], True


def _leaves(tree: Any, lists: Any = (list, tuple), path: Path = ()) -> Iterator[Tuple[Path, Any]]:
    """What a dict or a list of dicts and lists has in it, and where."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _leaves(value, lists, (*path, name))
    elif isinstance(tree, lists):
        for number, value in enumerate(tree):
            yield from _leaves(value, lists, (*path, number))
    else:
        yield path, tree


def _matched(paths: List[Path], what: str, leaves: Iterator[Tuple[Path, Any]]) -> List[Any]:
    """The leaves of a batch, in the order of the parameters."""
    found: Dict[Path, Any] = dict(leaves)
    for path in paths:
        if path not in found:
            raise ValueError(f"{what} have no {_named(path)}, which the attributor was made with")
    for path in found:
        if path not in paths:
            raise ValueError(f"{what} have {_named(path)}, which the attributor was not made with")
    return [found[path] for path in paths]


def _named(path: Path) -> str:
    return "/".join(map(repr, path)) if path else "single array"


def _count(path: Path, leaf: Any) -> int:
    """The elements of a parameter, given itself or by their number."""
    if hasattr(leaf, "shape") and not isinstance(leaf, numpy.integer):
        return int(numpy.prod(leaf.shape, dtype=numpy.int64))
    return whole(f"the number of parameters of {_named(path)}" if path else "parameters", leaf, who="Attributor")


def _dense(array: Any) -> Adapter:
    """The framework of an array that lies in memory as a whole."""
    adapter = adapter_of(array)
    if adapter.name in ("scipy.sparse", "dask"):
        raise TypeError(f"an array is {adapter.name}'s; attribution takes dense arrays of NumPy, PyTorch, CuPy and JAX")
    return adapter


def _stride(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> Optional[int]:
    """The stride of all elements in C order, if they have one."""
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


def top(scores: Any, m: int, *, harmful: bool = False) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The m training examples that helped a query most, those of the highest scores, the highest first; or (harmful)
    that harmed it most, those of the lowest, the lowest first; of equal ones the earlier example first.

    scores: of one query, or queries x examples, in host memory.  Returns the examples' numbers and their scores: m of
    each, or queries x m.

    >>> import numpy as np, flashsketch as fs
    >>> examples, values = fs.grass.top(np.array([3.0, -1.0, 7.0, 7.0, 0.0]), 3)
    >>> examples.tolist(), values.tolist()
    ([2, 3, 0], [7.0, 7.0, 3.0])
    >>> fs.grass.top(np.array([3.0, -1.0, 7.0, 7.0, 0.0]), 1, harmful=True)[0].tolist()
    [1]
    """
    address, rows, cols, down, across, dtype, device = matrix(_dense(scores).read(scores), False, "scores")
    single = len(scores.shape) == 1
    if single:  # what is a column everywhere else is a row here
        rows, cols, down, across = cols, rows, across, down
    m = whole("m", m, 0, cols, who="top")
    view = pack_matrix((address, rows, cols, down, across, dtype, device))
    examples, values = numpy.empty((rows, m), numpy.int64), numpy.empty((rows, m))
    for row in range(rows):
        check(lib.fs_attribution_top(view, row, m, bool(harmful), examples[row].ctypes.data, values[row].ctypes.data))
    return (examples[0], values[0]) if single else (examples, values)
