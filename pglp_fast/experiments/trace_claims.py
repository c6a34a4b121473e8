"""What the paper says about releases over time, decided; users are the independent units."""

from dataclasses import replace

import numpy as np

from .claims import Claim, Difference, judge, paired, unpaired
from .trace_series import EVERYONE, LETTER, OTHERS, SIDES, Floats, Series


def pick(
    series: list[Series], data: str, setting: str, policy: str, mechanism: str = "P-PIM"
) -> Series:
    wanted = (data, setting, policy, mechanism)
    return next(s for s in series if (s.data, s.setting, s.policy, s.mechanism) == wanted)


def ppim_better(series: list[Series], data: str) -> Claim:
    """The paper: P-PIM has higher utility than P-LM over traces."""
    differences = []
    for policy in SIDES:
        plm, ppim = (pick(series, data, OTHERS, policy, name).by_user for name in ("P-LM", "P-PIM"))
        differences.append(paired(policy, ppim - plm, len(SIDES)))
    return judge(
        f"P-PIM errs less than P-LM over traces ({data})",
        "mean over users of (E_eu of P-PIM less that of P-LM, over all timestamps) is at most 0 "
        "for each policy; intervals over users hold together at 95 %.",
        differences,
    )


def slopes(error: Floats) -> Floats:
    """How much the error of each user rises from one timestamp to the next: least squares over
    the timestamps there are."""
    t = np.where(np.isnan(error), np.nan, np.arange(error.shape[1], dtype=np.float64))
    t = t - np.nanmean(t, axis=1, keepdims=True)
    return np.asarray(np.nansum(t * error, axis=1) / np.nansum(t * t, axis=1))


def grows(series: list[Series], data: str, setting: str) -> Claim:
    """The paper: "the error E_eu is increasing along with timestamps due to the enlarged
    constrained domain"."""
    policies = [
        p for p in SIDES if any((s.data, s.setting, s.policy) == (data, setting, p) for s in series)
    ]
    differences, domains = [], []
    for policy in policies:
        s = pick(series, data, setting, policy)
        steps = s.error.shape[1] - 1
        differences.append(paired(policy, -slopes(s.error) * steps, len(policies)))
        size = np.nanmean(s.domain, axis=0)
        domains.append(
            f"{policy} {size[1]:.0f} at timestamp 2, {np.median(size[len(size) // 2 :]):.0f} in "
            "the second half"
        )
    return judge(
        f"The error grows along the timestamps ({data}, {setting})",
        "mean over users of the fall of E_eu from the first timestamp to the last, along the "
        "least-squares line, is at most 0 for each policy; intervals over users hold together at "
        "95 %.",
        differences,
        why=f"Domains on average: {'; '.join(domains)}. {_WHY_NOT[setting]}",
    )


_A_COMPONENT = (
    "A release tells the component of the true location, so that the next domain is what can be "
    "reached from one component, however long the trace is: it has no reason to grow. (What does "
    "raise the error late in a trace is a user whom the model has lost, if there are any.)"
)
_WHY_NOT = {
    OTHERS: _A_COMPONENT,
    EVERYONE: _A_COMPONENT,
    LETTER: (
        "From a known start the domain grows, and for some steps the error with it; once nearly "
        "the whole map is possible, hardly anybody is isolated, no long edges are added, and the "
        "error falls back to that of a single release."
    ),
}


def smallest_best(series: list[Series], data: str, setting: str) -> Claim:
    """The paper: "The utility of G_k9 is always the best over different timestamps for both
    datasets"."""
    best = pick(series, data, setting, "G_k9")
    differences, shares = [], []
    for policy in list(SIDES)[1:]:
        other = pick(series, data, setting, policy)
        differences.append(paired(f"against {policy}", best.by_user - other.by_user, 2))
        lower = np.nanmean(best.error, axis=0) < np.nanmean(other.error, axis=0)
        shares.append(f"below {policy} at {int(lower.sum())} of {lower.size}")
    claim = judge(
        f"G_k9 errs least over traces ({data}, {setting})",
        "mean over users of (E_eu of G_k9 less that of G_k16 and of G_k25, over all timestamps) is "
        "at most 0; intervals over users hold together at 95 %.",
        differences,
    )
    evidence = (
        f"{claim.evidence} Timestamp by timestamp the mean of G_k9 is {' and '.join(shares)}."
    )
    return replace(claim, evidence=evidence)


def _between(series: list[Series], gps: str, checkins: str, value: str) -> list[Difference]:
    differences = []
    for policy in SIDES:
        a, b = (
            np.nanmean(getattr(pick(series, name, EVERYONE, policy), value), axis=1)
            for name in (checkins, gps)
        )
        differences.append(unpaired(policy, a, b, len(SIDES)))
    return differences


def checkins_lower(series: list[Series], gps: str, checkins: str) -> Claim:
    """The paper: "In general, the Gowalla dataset has better utility than the Geolife dataset"."""
    return judge(
        f"{checkins} errs less than {gps}",
        f"mean E_eu over users of {checkins} less that of {gps}, P-PIM, models {EVERYONE}, is at "
        "most 0 for each policy; intervals over users hold together at 95 %.",
        _between(series, gps, checkins, "error"),
        why=(
            "Check-ins jump: the locations that can be reached lie far apart, so that many blocks "
            "hold a single possible location, which the repair joins to one elsewhere. Isolated "
            f"before the repair under G_k9: {_isolated(series, checkins):.0%} of a domain of "
            f"{checkins}, {_isolated(series, gps):.0%} of one of {gps}."
        ),
    )


def _isolated(series: list[Series], data: str) -> float:
    return float(np.nanmean(pick(series, data, EVERYONE, "G_k9").isolated))


def smaller_domain(series: list[Series], gps: str, checkins: str) -> Claim:
    """The paper's reason: "because the constraint domain of the Gowalla dataset is smaller"."""
    return judge(
        f"The domains of {checkins} are smaller than those of {gps}",
        f"mean |C_t| over users of {checkins} less that of {gps}, P-PIM, models {EVERYONE}, is at "
        "most 0 for each policy; intervals over users hold together at 95 %.",
        _between(series, gps, checkins, "domain"),
        unit="locations",
    )
