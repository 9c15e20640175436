"""CuPy's sparse matrices (cupyx.scipy.sparse)."""

from ._arrays import Sparse
from ._cupy import ADAPTER as _dense

ADAPTER = Sparse(_dense)
