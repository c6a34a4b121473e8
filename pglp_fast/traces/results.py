"""What a release of traces gives back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.records import Outputs
from pglp_fast._util import validate as check
from pglp_fast.adversary.evidence import Evidence

from .certificate import TraceCertificate

COUNTS = ("domain_size", "disconnected", "isolated", "added")


@dataclass(frozen=True)
class TraceResult:
    """What was released: arrays (users, T) of a whole run, (users,) of one step.

    Attributes
    ----------
    released : int32 array
        Released cells, -1 where the input was missing; counts are 0 there.
    domain_size : int64 array
        |C_t|.
    disconnected, isolated : int64 array
        Locations of C_t without neighbours in it, and those of them that needed repair.
    added : int64 array
        Edges that the repair added.
    surrogate : bool array
        The true location was not in C_t; the nearest location of C_t was released from. It depends
        on the truth: publish ``released``, and what follows from it, but not this.
    exposed : bool array
        C_t was a single location that the policy wants hidden: nothing could be done. With
        repair="none": some location of C_t would have been released as it is.
    evidence : Evidence or None
        What the releases say about where users were, for ``pf.attack``; kept where it was asked
        for.
    certificate : TraceCertificate or None
        Of the whole run: what is proved, what was exposed, what composition leaves. Of a step, ask
        the stream.
    """

    released: check.Cells
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]
    isolated: NDArray[np.int64]
    added: NDArray[np.int64]
    surrogate: NDArray[np.bool_]
    exposed: NDArray[np.bool_]
    evidence: Evidence | None = None
    certificate: TraceCertificate | None = None


def empty_results(*shape: int) -> dict[str, Any]:
    """The fields of a TraceResult, to be filled."""
    out: dict[str, Any] = {"released": np.full(shape, -1, check.CELL)}
    out |= {name: np.zeros(shape, np.int64) for name in COUNTS}
    return out | {name: np.zeros(shape, np.bool_) for name in ("surrogate", "exposed")}


def spread(out: Outputs, shape: tuple[int, ...], where: Any) -> dict[str, Any]:
    """The fields of a TraceResult: what events gave, where they are; -1 and 0 elsewhere."""
    found = empty_results(*shape)
    found["released"][where] = out.released
    found["surrogate"][where], found["exposed"][where] = out.surrogate, out.exposed
    for name, values in zip(COUNTS, out.counts.T, strict=True):
        found[name][where] = values
    return found


def by_user(out: Outputs, seen: NDArray[np.bool_]) -> TraceResult:
    """The result of one step of users of whom those who were seen had an event."""
    return TraceResult(**spread(out, seen.shape, seen))
