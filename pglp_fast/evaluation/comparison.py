"""Mechanisms compared: privacy beside utility."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.mechanisms.contract import Mechanism

from .exact_utility import utility
from .privacy import Privacy, privacy
from .utility_result import Utility


@dataclass(frozen=True)
class Comparison:
    """Mechanisms side by side: ``rows[name] = (utility, privacy)``."""

    rows: dict[str, tuple[Utility, Privacy]]

    def as_rows(self) -> list[dict[str, Any]]:
        """One flat dict for each mechanism, for a table, CSV or pandas."""
        return [
            {
                "mechanism": name,
                **u.as_dict(),
                "adversary_error": p.error,
                "entropy": p.entropy,
                "lift": p.lift,
                "told_error": p.told_error,
                "told_entropy": p.told_entropy,
            }
            for name, (u, p) in self.rows.items()
        ]

    def __str__(self) -> str:
        width = max([9, *map(len, self.rows)])
        utility, privacy = "utility (less is better)", "privacy (more is better, but lift)"
        lines = [f"{'':{width}} |{utility:^34}|{privacy:^36}"]
        lines.append(
            f"{'mechanism':{width}} |{'error km':>11}{'worst km':>11}{'90 % km':>11} |"
            f"{'adversary km':>13}{'left bits':>11}{'ln lift':>10}"
        )
        for name, (u, p) in self.rows.items():
            tail = u.quantiles.get(0.9, float("nan"))
            lines.append(
                f"{name:{width}} |{u.e_eu:11.3f}{u.worst.error:11.3f}{tail:11.3f} "
                f"|{p.error:13.3f}{p.entropy:11.2f}{p.lift:10.2f}"
            )
        told = [(p.told_error, p.told_entropy) for _, p in self.rows.values()]
        if np.ptp(told, axis=0).max() <= 1e-9 * np.max(told):  # of one policy
            lines.append(
                f"Who is told the component alone errs by {told[0][0]:.3f} km, with "
                f"{told[0][1]:.2f} bits left."
            )
        return "\n".join(lines)


def compare(
    mechanisms: Mapping[str, Mechanism] | Sequence[Mechanism],
    *,
    prior: ArrayLike | None = None,
    **metrics: Any,
) -> Comparison:
    """Utility and privacy of mechanisms under one prior, side by side.

    Parameters
    ----------
    mechanisms : by name, or a list (named by their class, and numbered where there are several of
        one)
    prior : how likely each location is; even if None
    metrics : region, categories, quantiles, as for ``pf.utility``

    Notes
    -----
    Read both halves. At small epsilon the mechanism of least error says nothing at all, and so
    leaves the adversary nothing; at equal error, the one that leaves the adversary less certain is
    better."""
    if not isinstance(mechanisms, Mapping):
        mechanisms = check.listed(mechanisms, "mechanisms")
        kinds = [type(m).__name__ for m in mechanisms]
        names = [
            k if kinds.count(k) == 1 else f"{k} {kinds[: i + 1].count(k)}"
            for i, k in enumerate(kinds)
        ]
        mechanisms = dict(zip(names, mechanisms, strict=True))
    if len(mechanisms) == 0:
        raise InvalidParameter("compare takes at least one mechanism")
    return Comparison(
        {
            name: (utility(m, prior=prior, **metrics), privacy(m, prior=prior))
            for name, m in mechanisms.items()
        }
    )
