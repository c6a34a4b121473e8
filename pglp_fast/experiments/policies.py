"""Which policy serves which use: E_eu, E_r and E_poi of P-PIM and P-LM under the paper's
policies."""

from .claims import Claim, exact, judge
from .data import Town, load_town
from .figures import Panel, draw, lines_of
from .result import Result
from .rows import Row, select
from .setup import Setup
from .single import (
    EPSILONS,
    METRICS,
    POLICIES,
    USERS,
    measure_all,
    what_is_measured,
)

TITLE = "Policies: which of them serves which use"
LABELS = {
    "e_eu": "E_eu (km)",
    "e_r": "E_r (share in another region)",
    "e_poi": "E_poi (share of another category)",
}
_MECHANISMS = ("P-PIM", "P-LM")


def run(setup: Setup) -> Result:
    """Three errors of each policy at every epsilon."""
    town = load_town(setup.folder, quick=setup.quick, seed=setup.seed)
    rows = _measured(town, setup)
    claims = [
        lowest(rows, "e_eu", "G_k9"),
        zero(rows, "e_r", "G_k25"),
        zero(rows, "e_poi", "G_poi"),
        falls_most(rows),
    ]
    visits = rows  # those of users come to the table, not to this picture
    figures = {"policies": lambda: _figure(visits)}
    notes = [what_is_measured(town)]
    if town.users is not None:
        others = _measured(town, setup, USERS)
        claims += [
            lowest(others, "e_eu", "G_k9", USERS),
            zero(others, "e_r", "G_k25", USERS),
            zero(others, "e_poi", "G_poi", USERS),
        ]
        figures["users"] = lambda: _figure(others)
        rows = rows + others
        notes.append(
            f"{USERS.capitalize()}: the {town.users.sum():,} places of users on the map are true "
            "locations too. Where there is no restaurant, G_poi lets a location be released as it "
            "is: its E_eu is that of some, and 0 for the others."
        )
    return Result(
        "policies",
        TITLE,
        town.source,
        rows,
        claims,
        figures,
        notes,
        credit=town.credit,
    )


def _points(rows: list[Row], metric: str, policy: str) -> dict[tuple[str, float], Row]:
    return {(row.mechanism, row.x): row for row in select(rows, metric=metric, policy=policy)}


def _measured(town: Town, setup: Setup, who: str = "") -> list[Row]:
    """The three errors of visitors, or of users wherever they are."""
    found = measure_all("policies", town, _MECHANISMS, setup, who)
    return [row for row in found if row.metric in METRICS]


def lowest(rows: list[Row], metric: str, policy: str, who: str = "") -> Claim:
    """The paper: G_k9 has the smallest E_eu because of the least sensitivity."""
    best = _points(rows, metric, policy)
    differences = []
    for other in POLICIES:
        for (mechanism, epsilon), row in (
            _points(rows, metric, other).items() if other != policy else ()
        ):
            gap = (best[mechanism, epsilon].exact or 0.0) - (row.exact or 0.0)
            differences.append(exact(f"against {other}, {mechanism}, eps {epsilon:g}", gap))
    return judge(
        f"{LABELS[metric].split()[0]} is lowest for {policy}{f' ({who})' if who else ''}",
        f"exact error of {policy} less that of every other policy is at most 0, for both "
        "mechanisms at every epsilon.",
        differences,
    )


def zero(rows: list[Row], metric: str, policy: str, who: str = "") -> Claim:
    """The paper: G_k25 answers region queries, and G_poi category queries, without error."""
    differences = []
    for (mechanism, epsilon), row in _points(rows, metric, policy).items():
        worst = max(row.exact or 0.0, row.mean)
        differences.append(exact(f"{mechanism}, eps {epsilon:g}", worst))
    return judge(
        f"{LABELS[metric].split()[0]} = 0 for {policy}{f' ({who})' if who else ''}",
        "neither the exact probability nor the share among the releases is above 0, for both "
        "mechanisms at every epsilon.",
        differences,
        unit="",
    )


def falls_most(rows: list[Row]) -> Claim:
    """The paper: E_poi falls with epsilon under G_k9, and this effect is diminished in larger
    policies."""
    differences = []
    for mechanism in _MECHANISMS:
        fall = {}
        for policy in POLICIES[:3]:
            points = _points(rows, "e_poi", policy)
            fall[policy] = (points[mechanism, EPSILONS[0]].exact or 0.0) - (
                points[mechanism, EPSILONS[-1]].exact or 0.0
            )
        differences.append(exact(f"G_k9 does not fall, {mechanism}", -fall["G_k9"]))
        for policy in POLICIES[1:3]:
            where = f"{policy} against G_k9, {mechanism}"
            differences.append(exact(where, fall[policy] - fall["G_k9"]))
    return judge(
        "E_poi falls as epsilon grows under G_k9, and less so under G_k16 and G_k25",
        f"the exact fall of E_poi from epsilon {EPSILONS[0]:g} to {EPSILONS[-1]:g} is above 0 "
        "under G_k9 and not larger under G_k16 and G_k25, for both mechanisms.",
        differences,
        unit="",
    )


def _figure(rows: list[Row]) -> object:
    panels = []
    for mechanism in _MECHANISMS:
        for metric in METRICS:
            lines = lines_of(rows, "policy", POLICIES, metric=metric, mechanism=mechanism)
            panels.append(Panel(f"{mechanism}", lines, "epsilon", LABELS[metric], logx=True))
    return draw(panels, columns=3)
