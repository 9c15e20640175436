"""The Attributor: features of gradients, and scores (flashsketch_attribution.h); flashsketch.attribution has it."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import struct
import threading
import zipfile
import zlib
from typing import Any, Dict, Optional, Tuple

import numpy

from . import _cuda
from ._arrays import Adapter, matrix, place
from ._batches import GradientBatch, LayerBatch, count_of, dense, leaves_of
from ._layouts import layout
from ._library import (
    HOST,
    SPEC,
    Context,
    check,
    definition_version,
    lib,
    pack_matrix,
    pack_matrix_size,
    whole,
)
from ._sketch import Sketch
from ._tasks import opened

_OPTIONS = layout("fs_attribution_options")
_FORMAT = "flashsketch features 1"
# The exceptions of NumPy and zipfile for files that are not theirs, or incomplete.
_UNREADABLE = (
    *(AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)


class Attributor:
    """The features of a model's training examples, and scores computed from them.

    parameters: the parts of a gradient: the number of its elements, or the model's parameters, as a dict or a list (of
    dicts, of lists) of tensors or of their numbers of elements, or a torch.nn.Module; their order is that of the
    coordinates. examples: N, the number of training examples. k: numbers of a feature. mask: coordinates that are kept,
    drawn at random from the seed in runs of `run` neighbours (a GPU reads at least 8 floats); 0: all. scale: of the
    features; 0: 1 / sqrt(all parameters).  The rest is the sketch's, as fs.Sketch takes it: seed, family, quality,
    kappa, s, ...; where no shuffle is given row groups of 32 coordinates are shuffled.

    like: an array with the framework and device of the gradients; not given: a parameter that is a tensor, otherwise
    host memory.  On a GPU, work is queued on the stream that was the framework's current one when the attributor was
    created, which must outlive it; while another stream is current, a call waits for the GPU.

    A batch of gradients of n examples is a dict or a list like `parameters`, of arrays n x the shape of a parameter, as
    torch.func.vmap(torch.func.grad(...)) returns them, or one array n x all parameters; float32, float16 or bfloat16,
    of NumPy, PyTorch, CuPy, JAX.  Nothing is copied, except a parameter whose elements have no common stride.  A
    feature does not depend on how gradients are cut into parameters and batches.

    For several models (checkpoints) create one after the other, with different seeds, and add their scores:

    >>> import numpy as np, flashsketch as fs
    >>> gradients = np.random.default_rng(0).standard_normal((2, 40, 1000), dtype=np.float32)    # of two models
    >>> scores = None
    >>> for seed in range(2):
    ...     model = fs.attribution.Attributor(1000, examples=40, k=32, seed=seed)
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
        leaves = dict(leaves_of(parameters))
        self._paths = list(leaves)
        self._counts = numpy.array([count_of(path, leaf) for path, leaf in leaves.items()], numpy.int64)
        self._ends = self._counts.cumsum()
        every = int(self._counts.sum())
        self.examples, mask = whole("examples", examples, who="Attributor"), whole("mask", mask, who="Attributor")
        run = whole("run", run, who="Attributor")
        if not {"shuffle", "batch_major"} & set(sketch) and sketch.get("family", "blockperm") == "blockperm":
            # The same choice as in fs_attribution_create.
            sketch["shuffle"], sketch["interleave"] = "groups", sketch.get("interleave", 1)
        self.sketch = Sketch(k, mask if mask > 0 else every, seed, **sketch)
        self.k = self.sketch.k

        if like is None:
            tensors = (leaf for leaf in leaves.values() if hasattr(leaf, "shape"))
            like = next((leaf for leaf in tensors if not isinstance(leaf, numpy.generic)), numpy.empty(0))
        adapter = dense(like)
        self._device = adapter.read(like)[4]
        streamed = self._device != HOST and adapter.name != "jax"
        self._stream = adapter.stream(self._device) if streamed else 0
        self._context, self._lock, out = Context(self._device, self._stream), threading.Lock(), ctypes.c_void_p()
        spec = (*map(int, self.sketch._key.split()), self.sketch._quality)
        self._options = (self.examples, len(leaves), mask, run, float(scale))
        packed = ctypes.create_string_buffer(SPEC.pack(SPEC.size, *spec), SPEC.size)
        options = _OPTIONS.pack(
            _OPTIONS.size, *self._options[:2], self._counts.ctypes.data, *self._options[2:], ctypes.addressof(packed)
        )
        opened(lambda: lib.fs_attribution_create(ctypes.byref(out), self._context.pointer, options))
        self._pointer = out.value

    def __del__(self, destroy: Any = lib.fs_attribution_destroy) -> None:
        destroy(getattr(self, "_pointer", None))  # missing where __init__ raised

    def __repr__(self) -> str:
        masked = f" of {self.sketch.d} coordinates" if self._options[2] else ""
        return (
            f"<Attributor: {int(self.added.sum())} of {self.examples} examples{masked}, {int(self._counts.sum())} "
            f"parameters, {self.sketch!r}>"
        )

    # gradients --------------------------------------------------------------------------------------------------------

    def add(self, gradients: Any, first: Optional[int] = None) -> None:
        """Adds a batch: the features of training examples first, first + 1, ...; not given, the first example that is
        still missing, so that batches in order need no numbers.  Examples that were added before are replaced.

        A gradient that is not finite is an error that names the example, and the examples of the batch count as not
        added.
        """
        parts = GradientBatch(self, gradients)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_add(self._pointer, self._first(first), parts.packed))

    def project(self, gradients: Any) -> Any:
        """The features of a batch of other examples, n x k, float32, in an array like the gradients'."""
        parts = GradientBatch(self, gradients)
        phi = parts.adapter.empty(parts.arrays[0], (parts.examples, self.k), "float32")
        reading = parts.adapter.read(phi)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_project(self._pointer, parts.packed, pack_matrix(matrix(reading, False, "phi"))))
            parts.after()
        return phi

    def add_layers(self, layers: Any, first: Optional[int] = None) -> None:
        """add, for a batch whose gradients are not formed: the factors of each example's gradient of a linear layer.

        layers: a dict or a list like `parameters`, with a tuple or an array for each parameter.  (dy, inputs) is a
        weight, out x in: the output gradients dy, the gradient of the objective with respect to the layer's outputs, n
        x out, and the layer's inputs, n x in; or n x tokens x out and n x tokens x in where an example passes the layer
        several times (there may be several axes of tokens).  (dy, None) is a bias.  An array is the gradients of any
        other parameter, as add takes it.  Types and frameworks are those of gradients; pass the same array dy for a
        weight and its bias.  The features are those of `add` up to rounding.

        >>> import numpy as np, flashsketch as fs
        >>> rng = np.random.default_rng(0)
        >>> dy, inputs = rng.standard_normal((40, 8), "f"), rng.standard_normal((40, 30), "f")
        >>> model = fs.attribution.Attributor({"weight": 8 * 30, "bias": 8}, examples=40, k=16, mask=64)
        >>> model.add_layers({"weight": (dy, inputs), "bias": (dy, None)})
        >>> formed = model.project({"weight": dy[:, :, None] * inputs[:, None, :], "bias": dy})
        >>> np.allclose(model.features, formed, atol=1e-5)
        True
        """
        parts = LayerBatch(self, layers)
        with self._lock:
            parts.before()
            check(lib.fs_attribution_add_layers(self._pointer, self._first(first), parts.packed))

    def project_layers(self, layers: Any) -> Any:
        """project, for a batch as add_layers takes it."""
        parts = LayerBatch(self, layers)
        phi = parts.adapter.empty(parts.arrays[0], (parts.examples, self.k), "float32")
        reading = parts.adapter.read(phi)
        with self._lock:
            parts.before()
            to = pack_matrix(matrix(reading, False, "phi"))
            check(lib.fs_attribution_project_layers(self._pointer, parts.packed, to))
            parts.after()
        return phi

    @property
    def mask(self) -> Optional[numpy.ndarray]:
        """The coordinates that are kept, ascending, counted over all parameters; None: all are.

        >>> import flashsketch as fs
        >>> fs.attribution.Attributor({"weight": 90, "bias": 10}, examples=5, k=4, mask=8, seed=1).mask.shape
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
        """Their device."""
        view = ctypes.create_string_buffer(pack_matrix_size)
        check(lib.fs_attribution_features(self._pointer, view))
        address: int = ctypes.c_void_p.from_buffer(view).value or 0
        return address

    def _view(self) -> numpy.ndarray:
        """All features, of an attributor in host memory."""
        return numpy.asarray(_Memory(self, self._features(), (self.examples, self.k)))

    @property
    def features(self) -> numpy.ndarray:
        """The features, examples x k, float32, read-only: a view of host memory, a copy of a GPU's.  Rows of examples
        that have not been added are undefined."""
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
        """Writes the features so far to an .npz file of NumPy, atomically: `features`, `added` and, as text, `about`,
        the description of the attributor."""
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
        """Adds the examples of a file of `save`, if this attributor would compute the same features: `added` shows
        them, and add continues with the first that is missing."""
        with open(path, "rb") as opened_file:
            try:
                file = numpy.load(opened_file, allow_pickle=False)
                about, added, rows = json.loads(str(file["about"])), file["added"].astype(bool), file["features"]
                there = about["format"], (about["examples"],) == added.shape, (added.sum(), about["k"]) == rows.shape
            except _UNREADABLE as error:
                raise ValueError(f"{path} is not a file of features, or an incomplete one: {error}") from None
        if there != (_FORMAT, True, True):
            raise ValueError(f"{path} has {rows.shape} features of {added.shape} examples, and describes {about}")
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
        """Factors Phi'Phi + damping I in float64, for scores, after all examples have been added.  Another damping is
        another call, and a fast one."""
        with self._lock:
            check(lib.fs_attribution_factor(self._pointer, float(damping)))

    def scores(self, features: Any, weights: Any = None, *, alpha: float = 1.0, add_to: Any = None) -> Any:
        """alpha phi (Phi'Phi + damping I)^-1 Phi' diag(weights), queries x examples, float64, in host memory.

        features: of the queries, from project. weights: a number for each example; TRAK's is 1 - p, p the probability
        of the right class. add_to: an array that scores are added to, and that is returned; None: a new one.
        """
        adapter = dense(features)
        reading = adapter.read(features)
        self._check_place("features are", reading[4])
        if len(reading[1]) != 2:
            raise ValueError(f"features have shape {tuple(reading[1])}, they must be queries x k = {self.k}")
        beta = 0.0 if add_to is None else 1.0
        scores = numpy.empty((reading[1][0], self.examples)) if add_to is None else add_to
        to = dense(scores)
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

    # devices
    # -----------------------------------------------------------------------------------------------------------

    def _check_place(self, what: str, device: int) -> None:
        if device != self._device:
            raise ValueError(
                f"{what} {place(device)} and the attributor {place(self._device)}: both must be on one "
                "device, which `like` sets when the attributor is created"
            )

    def _elsewhere(self, adapter: Adapter) -> bool:
        """Whether a framework's work and the attributor's are on different streams."""
        return self._device != HOST and (adapter.name == "jax" or adapter.stream(self._device) != self._stream)


class _Memory:
    """Numbers of float32 at an address, for NumPy, which keeps this and so their owner."""

    def __init__(self, owner: Any, address: int, shape: Tuple[int, ...]) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}


def top(scores: Any, m: int, *, harmful: bool = False) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The m training examples of the highest scores, which helped a query most, in descending order; or (harmful) of
    the lowest, which harmed it most, in ascending order; of equal ones the earlier example first.

    scores: of one query, or queries x examples, in host memory.  Returns the examples' numbers and their scores: m of
    each, or queries x m.

    >>> import numpy as np, flashsketch as fs
    >>> examples, values = fs.attribution.top(np.array([3.0, -1.0, 7.0, 7.0, 0.0]), 3)
    >>> examples.tolist(), values.tolist()
    ([2, 3, 0], [7.0, 7.0, 3.0])
    >>> fs.attribution.top(np.array([3.0, -1.0, 7.0, 7.0, 0.0]), 1, harmful=True)[0].tolist()
    [1]
    """
    address, rows, cols, down, across, dtype, device = matrix(dense(scores).read(scores), False, "scores")
    single = len(scores.shape) == 1
    if single:  # a vector is a row here, elsewhere a column
        rows, cols, down, across = cols, rows, across, down
    m = whole("m", m, 0, cols, who="top")
    view = pack_matrix((address, rows, cols, down, across, dtype, device))
    examples, values = numpy.empty((rows, m), numpy.int64), numpy.empty((rows, m))
    for row in range(rows):
        check(lib.fs_attribution_top(view, row, m, bool(harmful), examples[row].ctypes.data, values[row].ctypes.data))
    return (examples[0], values[0]) if single else (examples, values)
