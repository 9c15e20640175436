"""FlashSketch: random sketches Y = S A, the same S on every machine, on CPUs and NVIDIA GPUs.

>>> import numpy as np, flashsketch as fs
>>> S = fs.Sketch(k=400, d=10000, seed=7)
>>> A = np.ones((10000, 50), np.float32)
>>> (S @ A).shape                                  # A's rows are sketched: Y = S A
(400, 50)
>>> S.project(A.T).shape                           # a batch, a sample a row: the same S
(50, 400)
>>> (S.T @ (S @ A)).shape                          # the adjoint
(10000, 50)

`lstsq`, `qr`, `svd`, `pca` and `leverage` give the answers of LAPACK in a few reads of A, with the sketch as
preconditioner; `Preconditioner` is for the caller's own iterations.  `plan` finds the sketch for a wanted error.

`solve`, `ridge`, `gram` and `ose` are tasks on S A alone: least squares, ridge regression, Gram matrices and embedding
errors; each reports its own error.

`attribution` is data attribution: how much each training example contributed to a model's answer, and projectors for
TRAK and dattri.  `flashsketch.sklearn` has estimators for scikit-learn.
"""

from . import attribution
from ._library import (
    BackendError,
    Error,
    FileError,
    InvalidArgument,
    OutOfMemory,
    Unsupported,
    configure,
    definition_version,
    describe,
)
from ._library import version as __version__
from ._lowrank import PCA, SVD, pca, svd
from ._plan import Plan, plan
from ._preconditioner import Preconditioner
from ._sketch import Adjoint, Sketch
from ._solvers import QR, Leverage, Solution, leverage, lstsq, qr
from ._tasks import Embedding, Fit, Gram, gram, ose, ridge, solve

__all__ = [
    "Adjoint",
    "BackendError",
    "Embedding",
    "Error",
    "FileError",
    "Fit",
    "Gram",
    "InvalidArgument",
    "Leverage",
    "OutOfMemory",
    "PCA",
    "Plan",
    "Preconditioner",
    "QR",
    "SVD",
    "Sketch",
    "Solution",
    "Unsupported",
    "__version__",
    "attribution",
    "configure",
    "definition_version",
    "describe",
    "gram",
    "leverage",
    "lstsq",
    "ose",
    "pca",
    "plan",
    "qr",
    "ridge",
    "solve",
    "svd",
]
