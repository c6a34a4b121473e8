"""What was released about persons before: a ledger at hand, or a file that processes share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.locations import require_same_map

from .composition import compose
from .engine import Trace
from .ledger import Ledger
from .ledger_file import LedgerFile, empty_ledger
from .policies import PolicySet
from .spending import Limits, Spending


class Past(NamedTuple):
    """Either, or neither.

    Attributes
    ----------
    known : a ledger at hand
    file : a file in which releases are written down before they are made
    """

    known: Ledger | None = None
    file: LedgerFile | None = None

    @contextmanager
    def releasing(
        self,
        limits: Limits,
        ids: NDArray[np.int64],
        trace: Trace,
        epsilons: NDArray[np.float64],
        own: Spending,
    ) -> Iterator[None]:
        """Refuse events that exceed a budget, and write the others down; within, release them.

        ``own``: what was spent since, which a file has written down already. After an error nothing
        was released: that counts as spent all the same, but takes no edge away."""
        if self.file is None:
            if limits:
                spent = own
                if self.known is not None:
                    spent = self.known.past_of(ids, limits) + own
                limits.check(ids, spent, trace.start, trace.steps, epsilons)
            yield
            return
        self.file.reserve(limits, ids, trace.start, trace.steps, epsilons, own)
        try:
            yield
        except BaseException:
            nothing = empty_ledger(ids, self.file.policies)
            self.file.settle(nothing, np.diff(trace.start) > 0, nothing.spending.shares)
            raise

    def settle(self, own: Ledger, busy: NDArray[np.bool_]) -> Ledger:
        """Write down what was kept by those who released all that a ledger holds. Returns the
        ledger of everything."""
        if self.file is not None:
            self.file.settle(own, busy, own.spending.shares)
        return self.whole(own)

    def whole(self, own: Ledger) -> Ledger:
        """Everything that is known of the persons of a ledger."""
        if self.file is not None:
            return self.file.read_after(own.ids, own.epsilons()).select(own.ids)
        if self.known is not None:
            return compose(self.known.select(own.ids), own)
        return own


def past_of(ledger: Any, policies: PolicySet) -> Past:
    """What ``ledger=`` says."""
    if ledger is None:
        return Past()
    if isinstance(ledger, str | os.PathLike):
        return Past(file=LedgerFile(ledger, policies))
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            f"ledger must be a Ledger or the path of a ledger file, got {check.brief(ledger)}"
        )
    require_same_map(
        ledger.policies.locations, policies.locations, "the ledger and the policy", InvalidParameter
    )
    return Past(known=ledger)
