"""A sketch for a wanted error (flashsketch_solvers.h)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Optional

from ._layouts import layout
from ._library import check, lib, whole
from ._operands import note_of, real
from ._sketch import Sketch

_OPTIONS, _REPORT = layout("fs_plan_options"), layout("fs_plan_report")


@dataclass(frozen=True)
class Plan:
    """The result of plan: k, kappa and s of a sketch, and the reason.

    n, error, probability, d (None: not known), coherent: the arguments of plan.  typical: the error to expect, the mean
    of draws.  exceeded: the error that is exceeded with that probability, at most the wanted one.  reason: the rule
    that gave k, kappa and s, with its numbers.  solve, ridge, gram and ose accept a plan in place of a Sketch, and
    create the sketch for the rows of their A.
    """

    n: int
    error: float
    probability: float
    d: Optional[int]
    coherent: bool
    k: int
    kappa: int
    s: int
    typical: float
    exceeded: float
    reason: str

    def sketch(self, d: Optional[int] = None, seed: int = 0) -> Sketch:
        """The Sketch, for d rows: those of the plan if d is not given.

        >>> import flashsketch as fs
        >>> fs.plan(20, 0.5).sketch(10000).shape == (fs.plan(20, 0.5).k, 10000)
        True
        """
        if d is None and self.d is None:
            raise ValueError("Plan.sketch: d is not given, and the plan has none; give the rows of A")
        rows = whole("d", self.d if d is None else d, who="Plan.sketch")
        return Sketch(self.k, rows, seed, kappa=self.kappa, s=self.s, shuffle="rows")


def plan(
    n: int,
    error: float,
    probability: float = 0.05,
    *,
    d: Optional[int] = None,
    coherent: bool = False,
) -> Plan:
    """A sketch for a wanted error: k, kappa and s with which all squared lengths in the range of an A of n columns are
    kept within `error` (Embedding.error), except with this probability.

    n: columns of A, or the rank that counts.  error: above 0, below 1.  d: rows of A, which k cannot exceed.  coherent:
    whether a few rows of A may outweigh all others.

    >>> import numpy as np, flashsketch as fs
    >>> p = fs.plan(20, 0.5, d=100000)
    >>> S = p.sketch()
    >>> S.k == p.k and p.typical < p.exceeded <= 0.5
    True
    >>> A = np.random.default_rng(0).standard_normal((100000, 20))
    >>> fs.ose(S, A).error < 0.5
    True
    """
    n = whole("n", n, 1, who="plan")
    rows = 0 if d is None else whole("d", d, 1, who="plan")
    chance = real("probability", probability, "plan")
    options = _OPTIONS.pack(_OPTIONS.size, rows, n, real("error", error, "plan"), chance, bool(coherent))
    report = ctypes.create_string_buffer(_REPORT.pack(_REPORT.size, 0, 0, 0, 0.0, 0.0, b""))
    check(lib.fs_plan(options, report))
    _, k, kappa, s, typical, exceeded, reason = _REPORT.unpack_from(report)
    return Plan(n, float(error), chance, d, bool(coherent), k, kappa, s, typical, exceeded, note_of(reason))
