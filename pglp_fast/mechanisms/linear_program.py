"""The linear program of the mechanism with the least expected loss, for one component.

    min sum_s pi(s) sum_z x(s, z) loss(s, z)
    with x >= 0, rows summing to 1, and x(s, z) <= e^(w eps) x(s', z) on every edge of weight w

(Bordenabe, Chatzikokolakis and Palamidessi, CCS 2014; Shokri et al., CCS 2012). In a clique the
last is said with one number m(z) for all its members, m(z) <= x(s, z) <= e^eps m(z): O(k^2)
constraints, not O(k^3). Where the component looks the same turned or mirrored, an optimum does too,
and one variable of each orbit is enough."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast.policy.components import Component

from .symmetries import orbits, symmetries

# ln of the largest factor between variables that the solver is asked to tell from none; above it
# the second is tried too: mostly worse, but not for every prior
_RESOLVED, _AT_MOST = 20.0, 24.0
RESOLUTION = 1e-9  # of the largest loss in a component: less is not told from none in ``gap``
MAX_GAP = 1e-3  # a component whose loss may be further above the least is warned of
# The solver takes coefficients below 1e-9 for none, so that above epsilon = 20.7 it does not see
# e^-epsilon. Programs that would be warned of are said once more, in rows lifted above that, and
# with rows of their own units where the truth is in doubt: where it gains less than _DOUBT times
# what it makes others say.
_LIFTED, _SEEN, _DOUBT = 30.0, 2e-9, 1e3
_SCALED = 6.0  # epsilon from which variables have units of their own
# an output that nobody is released as with more than this probability is the solver's rounding
_DUST = 1e-9
# how the solver is asked, until its answer is within _NEAR of the bound: the best one is taken
_NEAR = 1e-5
_ATTEMPTS = [(how, off) for off in (1e-10, 1e-8) for how in ("highs", "highs-ipm")]
# Without a limit the interior point method goes round for ever where a loss is below what float64
# resolves. It needs 20 to 100 iterations, simplex one for every two rows and columns. A limit of
# iterations, not of time: the same tables on every machine.
_ITERATIONS = {"highs": (1000, 10), "highs-ipm": (1000, 0)}  # and for each row and column

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """What the solver found.

    Attributes
    ----------
    P : x (k, k), as good as the solver is exact
    prices : for each of ``constraints``, a multiplier >= 0: what the optimum would gain without it
    """

    P: Floats
    prices: Floats


class Constraints(NamedTuple):
    """x[plus] <= e^(eps step) x[minus], of variables x[s, z] at s * k + z, and m[c, z] at
    k * k + c * k + z for the clique of head c."""

    plus: NDArray[np.int64]
    minus: NDArray[np.int64]
    step: Floats

    def factors(self, epsilon: float) -> Floats:
        """e^(eps step), as large as float64 has it."""
        return np.asarray(np.exp(np.minimum(epsilon * self.step, 700.0)))


class Variables(NamedTuple):
    """The program's variables, one for each orbit.

    Attributes
    ----------
    orbit : the variable of each of those that ``Constraints`` names
    unit : ln of the unit of each variable, in epsilon
    """

    orbit: NDArray[np.int64]
    unit: Floats


def constraints(component: Component) -> Constraints:
    """m <= x and x <= e^eps m in cliques; across further edges x <= e^(w eps) x', both ways."""
    k, heads = len(component.sites), component.heads
    together = np.flatnonzero(np.bincount(heads, minlength=k)[heads] > 1)
    i, j = np.concatenate([component.pairs, component.pairs[:, ::-1]]).T
    x, m = _entries(together, k), _entries(k + heads[together], k)
    plus = np.concatenate([m, x, _entries(i, k)])
    minus = np.concatenate([x, m, _entries(j, k)])
    weight = np.repeat(np.tile(component.pair_weights(), 2), k)
    return Constraints(plus, minus, np.concatenate([np.zeros(len(m)), np.ones(len(m)), weight]))


def _entries(rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    return np.asarray((rows[:, None] * k + np.arange(k)).ravel())


def solve(cost: Floats, component: Component, epsilon: float) -> Solution:
    """The linear program's optimum x (k, k) for cost[s, z] = pi(s) loss(s, z).

    At large epsilon x spans many orders of magnitude: about e^(-eps d_G(s, z)). There it is solved
    for in those units, as far as float64 resolves them; what binds beyond that is left to
    ``feasible``. Nor is epsilon taken above what can be resolved: an answer for a smaller one keeps
    the bound of a larger one, and what an edge costs then falls as e^-eps.

    Where the solver gives up, the answer is ``committed``, and no edge has a price."""
    programs = [(_RESOLVED, False), (_AT_MOST, False), (_LIFTED, True)]
    found: list[Solution] = []
    losses = [float((committed(cost, component, epsilon) * cost).sum())]
    bounds = [max(float(cost.min(axis=1).sum()), truthful_bound(cost, component, epsilon))]
    for limit, lifted in programs[: 1 if epsilon <= _RESOLVED else None]:
        felt = max(abs(min(losses)), RESOLUTION * float(np.abs(cost).max()))
        if lifted and min(losses) - max(bounds) <= MAX_GAP / 2 * felt:
            break
        one = _solve(cost, component, epsilon, limit, lifted=lifted)
        if one is not None:
            found.append(one)
            losses.append(float((feasible(one.P, component, epsilon) * cost).sum()))
            bounds.append(lower_bound(cost, component, epsilon, one.prices))
    if not found:
        none = np.zeros(len(constraints(component).plus))
        return Solution(committed(cost, component, epsilon), none)
    return Solution(found[int(np.argmin(losses[1:]))].P, found[int(np.argmax(bounds[1:]))].prices)


def _solve(
    cost: Floats, component: Component, epsilon: float, limit: float, *, lifted: bool
) -> Solution | None:
    """The best of the solver's attempts, for an epsilon of at most ``limit``; None if there is
    none within ``_ITERATIONS``."""
    from scipy.optimize import linprog

    k, beyond = len(cost), max(0.0, epsilon - limit)
    epsilon = min(epsilon, limit)
    variables = _variables(cost, component, epsilon, limit, lifted)
    own = variables.orbit[: k * k].reshape(k, k)
    scale = np.exp(epsilon * variables.unit)
    c = scale * np.bincount(own.ravel(), cost.ravel(), minlength=len(scale)).astype(np.float64)
    most = max(float(np.abs(c).max()), 1e-300)
    every = constraints(component)
    edges = _Edges(every, variables, epsilon, limit, lifted)
    program = {
        "c": c / most,
        "bounds": np.stack([np.zeros(len(scale)), 1 / scale], axis=1),
        "A_ub": edges.matrix(),
        "b_ub": np.zeros(len(edges.rows)),
        **_rows_that_sum_to_one(own, scale, lifted),
    }
    best, loss, bound = None, np.inf, -np.inf
    for how, off in _ATTEMPTS:
        least, each = _ITERATIONS[how]
        exact = {
            "primal_feasibility_tolerance": off,
            "dual_feasibility_tolerance": off,
            "maxiter": least + each * (len(scale) + len(edges.rows)),
        }
        found = linprog(method=how, options=exact, **program)
        if found.status != 0:
            continue
        P = np.asarray((found.x * scale)[own])
        prices = edges.prices(-most * np.asarray(found.ineqlin.marginals), scale)
        now = float((feasible(P, component, epsilon) * cost).sum())
        below = lower_bound(cost, component, epsilon, prices)
        best = Solution(
            P if best is None or now < loss else best.P,
            prices if best is None or below > bound else best.prices,
        )
        loss, bound = min(loss, now), max(bound, below)
        if loss - bound <= _NEAR * abs(loss):
            break
    if best is None:
        return None
    return Solution(best.P, best.prices * np.exp(-beyond * every.step))


def _variables(
    cost: Floats, component: Component, epsilon: float, limit: float, lifted: bool
) -> Variables:
    """One variable for each orbit, in units of its distance from z: of a clique the largest of its
    members'. A row whose truth is in doubt may say anything: if ``lifted``, its unit is 1."""
    k, heads = len(cost), component.heads
    orbit, count = orbits(symmetries(component, cost), heads)
    far = np.minimum(component.distances(), 0 if epsilon < _SCALED else max(1, limit // epsilon))
    if lifted:
        gain, forced = _gain_of_truth(cost, component, epsilon)
        far[gain <= _DOUBT * forced] = 0.0
    farthest = np.zeros((k, k))
    np.maximum.at(farthest, heads, far)
    unit = np.zeros(count)
    unit[orbit] = -np.concatenate([far.ravel(), farthest[heads].ravel()])
    return Variables(orbit, unit)


class _Edges:
    """The constraints among orbits, each once, that bind: "plus <= e^(eps step) minus" in the
    variables' units.

    Attributes
    ----------
    rows : (n, 3) plus, minus, number of the step
    which, count : the row of each constraint, and how many each row stands for
    size_of : what each row is divided by: its largest entry is 1 or, if it is lifted, its smallest
        one that the solver sees
    """

    def __init__(
        self,
        every: Constraints,
        variables: Variables,
        epsilon: float,
        limit: float,
        lifted: bool,
    ):
        orbit, self.size = variables.orbit, len(variables.unit)
        steps, kind = np.unique(every.step, return_inverse=True)
        named = np.stack([orbit[every.plus], orbit[every.minus], kind.reshape(-1)], axis=1)
        self.rows, self.which, self.count = np.unique(
            named, axis=0, return_inverse=True, return_counts=True
        )
        plus, minus, step = self.rows[:, 0], self.rows[:, 1], steps[self.rows[:, 2]]
        exponent = epsilon * (step + variables.unit[minus] - variables.unit[plus])
        self.binding = exponent < limit
        self.factor = np.exp(exponent[self.binding])
        self.rows = self.rows[self.binding]
        self.size_of = np.maximum(self.factor, 1.0)
        if lifted:
            self.size_of = np.minimum(self.size_of, np.minimum(self.factor, 1.0) / _SEEN)

    def matrix(self) -> Any:
        """A with A x <= 0."""
        from scipy.sparse import coo_array

        plus, minus, _ = self.rows.T
        row = np.arange(len(plus))
        entries = np.concatenate([1 / self.size_of, -self.factor / self.size_of])
        where = np.concatenate([row, row]), np.concatenate([plus, minus])
        return coo_array((entries, where), shape=(len(row), self.size)).tocsr()

    def prices(self, marginals: Floats, scale: Floats) -> Floats:
        """Multipliers of all constraints, of those of the rows: shared evenly within an orbit."""
        out = np.zeros(len(self.binding))
        each = np.maximum(marginals, 0.0) / self.size_of / scale[self.rows[:, 0]]
        out[self.binding] = each
        return np.asarray((out / self.count)[self.which.reshape(-1)])


def _rows_that_sum_to_one(own: NDArray[np.int64], scale: Floats, lifted: bool) -> dict[str, Any]:
    """sum_z x(s, z) = 1 for every s; rows of one orbit say the same."""
    from scipy.sparse import coo_array

    rows = np.unique(np.sort(own, axis=1), axis=0)
    where = np.repeat(np.arange(len(rows)), own.shape[1]), rows.ravel()
    one = np.maximum(1.0, _SEEN / scale[rows].min(axis=1)) if lifted else np.ones(len(rows))
    entries = (one[:, None] * scale[rows]).ravel()
    E = coo_array((entries, where), shape=(len(rows), len(scale))).tocsr()
    return {"A_eq": E, "b_eq": one}


def lower_bound(cost: Floats, component: Component, epsilon: float, prices: Floats) -> float:
    """No mechanism has an expected loss below this, whatever the prices >= 0 are.

    Lagrange's bound: what a constraint forbids is paid for instead, and then every row s takes its
    cheapest output, every clique the cheapest m(z) of sum at most 1. Rounding is taken off: each
    sum of n terms is off by at most n + 2 units of 2^-53 of their absolute sum."""
    k = len(cost)
    every = constraints(component)
    paid = prices * every.factors(epsilon)
    where, terms = np.concatenate([every.plus, every.minus]), np.concatenate([prices, -paid])
    total, size = (np.bincount(where, t, 2 * k * k) for t in (terms, np.abs(terms)))
    count = np.bincount(where, minlength=2 * k * k) + 6.0
    least = np.concatenate([cost.ravel(), np.zeros(k * k)])
    least = (least + total - count * 2.0**-52 * (np.abs(least) + size)).reshape(2 * k, k)
    chosen = np.concatenate([least[:k].min(axis=1), np.minimum(least[k:].min(axis=1), 0.0)])
    return float(chosen.sum() - 2 * k * 2.0**-52 * np.abs(chosen).sum())


def truthful_bound(cost: Floats, component: Component, epsilon: float) -> float:
    """Another lower bound, for costs >= 0 whose truth is free: good where epsilon is large.

    Who is released truly with probability x(z, z) makes every other s say z with probability
    e^(-eps d_G(s, z)) x(z, z) at least, at a cost of B(z) x(z, z); who is not pays a(z), the least
    cost of an untruth, for 1 - x(z, z). Each entry is counted twice, so that a share theta of the
    one and 1 - theta of the other is a bound: min over x(z, z) of both, with the best theta."""
    if cost.min() < 0 or cost.diagonal().any():
        return 0.0
    reach = np.exp(-epsilon * component.distances())
    other = np.where(np.eye(len(cost), dtype=bool), np.inf, cost)
    forced, least = (cost * reach).sum(axis=0), other.min(axis=1)
    shares = np.append(1.0, least[least > 0] / (least + forced)[least > 0])
    bounds = np.minimum(shares[:, None] * forced, (1 - shares)[:, None] * least).sum(axis=1)
    return float(bounds.max()) * (1 - len(cost) * 2.0**-50)


def two_locations(epsilon: float) -> list[Floats]:
    """ln of all extreme mechanisms of two joined locations: one of them is best, exactly.

    The same answer always, or the truth with odds of e^eps to one, or the untruth."""
    truth, lie = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
    constant = np.array([[0.0, -np.inf], [0.0, -np.inf]])
    honest = np.array([[truth, lie], [lie, truth]])
    return [constant, constant[:, ::-1], honest, honest[:, ::-1]]


def committed(cost: Floats, component: Component, epsilon: float) -> Floats:
    """The limit of large epsilon: every location has one answer, but for what its neighbours must
    have of it.

    An output costs what it makes others say, and is named where that is less than what its own
    location would lose; who is not named answers the best that is."""
    gain, forced = _gain_of_truth(cost, component, epsilon)
    named = gain - forced > 0
    named[np.argmax(gain - forced)] = True
    answers = np.where(named, cost, np.inf).argmin(axis=1)
    return feasible(np.eye(len(cost))[answers], component, epsilon)


def _gain_of_truth(cost: Floats, component: Component, epsilon: float) -> tuple[Floats, Floats]:
    """What each location gains by naming itself and nothing else, and what it costs to make others
    name it as often as they must."""
    reach = np.exp(-epsilon * component.distances())
    other = np.where(np.eye(len(cost), dtype=bool), np.inf, cost)
    gain = other.min(axis=1) - cost.diagonal()
    return gain, (cost * reach - np.diag(cost.diagonal())).sum(axis=0)


def feasible(P: Floats, component: Component, epsilon: float) -> Floats:
    """The solver's answer made to keep the bound, changed as little as can be.

    Outputs that nobody has but for the solver's rounding are dropped. Then every entry is raised to
    what its neighbours ask for, max over s' of P(s', z) e^(-eps d_G(s, s')), which settles all
    ratios and adds no more than the solver was off. Rows are made distributions again, and what
    that disturbs is mended with a share of the mean row, of the same order."""
    P = np.clip(P, 0.0, None)
    P[:, P.max(axis=0) < _DUST] = 0.0
    reach = np.exp(-min(epsilon, 700.0) * component.distances())
    P = np.stack([(reach * P[:, z]).max(axis=1) for z in range(len(P))], axis=1)
    P /= P.sum(axis=1, keepdims=True)
    mean = P.mean(axis=0)
    i, j = component.edges()
    # e^(w eps) - 1, with a little room for rounding
    gain = np.expm1(np.minimum(epsilon * component.edge_weights(), 700.0))[:, None] * (1 - 1e-9)
    # (1 - eta)(P_i - e^(w eps) P_j) <= eta (e^(w eps) - 1) mean, for every edge and output
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.nanmax(
            np.where(mean > 0, (P[i] - P[j] - gain * P[j]) / (gain * mean), 0.0), initial=0.0
        )
    eta = excess / (1 + excess)
    return np.asarray((1 - eta) * P + eta * mean)
