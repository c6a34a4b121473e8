"""P-LM against P-PIM under the paper's policies, with the other mechanisms and the adversary's
error beside them."""

from pglp_fast.errors import PGLPError

from .claims import Claim, exact, judge
from .data import load_town
from .figures import Panel, draw, lines_of
from .result import Result
from .rows import Row, select
from .setup import Setup
from .single import EPSILONS, MECHANISMS, POLICIES, measure_all, what_is_measured

TITLE = "Mechanisms: P-LM against P-PIM, and others, on single releases"


def run(setup: Setup) -> Result:
    """Errors of every mechanism under every policy at every epsilon."""
    town = load_town(setup.folder, quick=setup.quick, seed=setup.seed)
    rows = measure_all("mechanisms", town, MECHANISMS, setup)
    notes = [what_is_measured(town), _table(rows)]
    figures = {"mechanisms": lambda: _figure(rows), "paper": lambda: _paper(rows)}
    return Result(
        "mechanisms",
        TITLE,
        town.source,
        rows,
        [ppim_no_worse(rows)],
        figures,
        notes,
        credit=town.credit,
    )


def ppim_no_worse(rows: list[Row]) -> Claim:
    """The paper: "P-PIM outperforms P-LM for different policy graphs and different epsilon"."""
    differences = []
    for policy in POLICIES:
        for epsilon in EPSILONS:
            plm, ppim = (_exact(rows, policy, name, epsilon) for name in ("P-LM", "P-PIM"))
            differences.append(exact(f"{policy}, eps {epsilon:g}", ppim - plm))
    return judge(
        "P-PIM errs no more than P-LM for every policy and epsilon",
        "exact E_eu of P-PIM less that of P-LM is at most 0 for all 4 policies and 4 values of "
        "epsilon.",
        differences,
        why=(
            "What counts is the noise after the move to the nearest location of the component. At "
            "a small epsilon noise is many times as long as a block, and its direction decides "
            "what is nearest. In a long and narrow component P-LM's noise often points sideways, "
            "where the move undoes it; P-PIM's follows the long side."
        ),
    )


def _exact(
    rows: list[Row], policy: str, mechanism: str, epsilon: float, metric: str = "e_eu"
) -> float:
    (row,) = select(rows, policy=policy, mechanism=mechanism, x=epsilon, metric=metric)
    if row.exact is None:
        raise PGLPError(f"{metric} of {mechanism} under {policy} has no exact value")
    return row.exact


def _table(rows: list[Row]) -> str:
    """Utility and privacy side by side at epsilon 1."""
    lines = [
        "At epsilon 1, exact: E_eu in km / expected error of the adversary's best guess in km.",
        "",
    ]
    lines += ["| mechanism | " + " | ".join(POLICIES) + " |", "|---" * (len(POLICIES) + 1) + "|"]
    for name in MECHANISMS:
        cells = (
            f"{_exact(rows, p, name, 1.0):.3f} / {_exact(rows, p, name, 1.0, 'adversary'):.3f}"
            for p in POLICIES
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _paper(rows: list[Row]) -> object:
    """The paper's figure: P-LM and P-PIM alone."""
    panels = []
    for policy in POLICIES:
        lines = lines_of(rows, "mechanism", ("P-LM", "P-PIM"), policy=policy, metric="e_eu")
        panels.append(Panel(policy, lines, "epsilon", "E_eu (km)"))
    return draw(panels, columns=4)


def _figure(rows: list[Row]) -> object:
    panels = []
    for metric, label, use in (
        ("e_eu", "E_eu (km)", "mean"),
        ("adversary", "adversary's error (km)", "exact"),
    ):
        for policy in POLICIES:
            lines = lines_of(rows, "mechanism", MECHANISMS, use=use, policy=policy, metric=metric)
            panels.append(Panel(policy, lines, "epsilon", label, logx=True))
    return draw(panels, columns=4, same_y=True)
