"""The state of a stream as arrays of a file, and back.

A file that was tampered with must not reach the kernels, nor earn anybody a budget: it is sealed
with the stream's own key, and every array is checked all the same."""

import hashlib
import hmac
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace.records import LOGS, OWN, Beliefs, LedgerRows, words_for
from pglp_fast._util.validate import MAX_TIME, MAX_USER
from pglp_fast.errors import InvalidState

from . import ledger_file
from .engine import State, Users
from .policies import PolicySet
from .proof import Proof
from .spending import Spending
from .stream_state import StreamState

KIND = "stream"
_PAST = "past_"  # before the names of the arrays of what was released before the stream
# names in the file, in the order of the fields of LedgerRows
_LEDGER = ("kept_kind", "kept_start", "kept_cells", "edges_start", "edges_cells", "used")
# what changes without the stream: how often it was resumed, and what the file is
_UNSEALED = ("generation", "seal", "kind", "version")


def pack(
    state: StreamState, fingerprint: str, booked: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """(arrays, facts) of a stream under a releaser with this fingerprint; ``booked``: its releases
    are written down in a ledger file."""
    users, now = state.users, state.now
    arrays: dict[str, NDArray[Any]] = {
        "key": users.key,
        "ids": users.ids,
        "policy": state.policy,
        "epsilon": state.epsilon,
        "released": state.released,
        "cycle": state.cycle,
    }
    parts: tuple[tuple[str, Any], ...] = (
        ("priors", users.priors),
        ("beliefs", now.beliefs),
        ("last", state.before.beliefs),
        ("spent", now.spending),
    )
    for name, rows in parts:
        arrays |= {f"{name}_{field}": values for field, values in rows._asdict().items()}
    arrays |= dict(zip(_LEDGER, now.ledger, strict=True))
    facts: dict[str, Any] = {"t": state.t, "point": users.point, "told": state.told}
    facts |= {"generation": 0, "fingerprint": fingerprint, "proof": state.proof.to_dict()}
    facts |= {"booked": booked, "past": None}
    if state.past is not None:
        past, facts["past"] = ledger_file.pack(state.past)
        arrays |= {_PAST + name: array for name, array in past.items()}
    return arrays, facts | {"seal": _seal(arrays, facts)}


def unpack(
    arrays: dict[str, NDArray[Any]], facts: dict[str, Any], policies: PolicySet, periods: int
) -> StreamState:
    """The stream of a file under these policies and a model of so many periods."""

    def rows(kind: Any, name: str) -> Any:
        return kind(*(arrays[f"{name}_{field}"] for field in kind._fields))

    try:
        sealed = hmac.compare_digest(_seal(arrays, facts), str(facts["seal"]))
        users = Users(arrays["ids"], arrays["key"], rows(Rows, "priors"), bool(facts["point"]))
        ledger = LedgerRows(*(arrays[name] for name in _LEDGER))
        arrays = {"spent_shares": np.zeros((len(users.ids), 0))} | arrays  # older files have none
        now = State(rows(Beliefs, "beliefs"), ledger, rows(Spending, "spent"))
        before = now._replace(beliefs=rows(Beliefs, "last"))
        proof = Proof.from_dict(facts["proof"])
        past = None
        if facts["past"] is not None:
            own = {k.removeprefix(_PAST): a for k, a in arrays.items() if k.startswith(_PAST)}
            past = ledger_file.unpack(own, facts["past"], "its past", policies.locations)
        state = StreamState(
            users, facts["t"], now, before, arrays["cycle"], bool(facts["told"]),
            arrays["policy"], arrays["epsilon"], arrays["released"], proof, past,
        )  # fmt: skip
        sound = sealed and _sound(state, policies, periods)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        sound = False
    if not sound:
        raise InvalidState(
            "the saved stream contradicts itself: it was changed after it was written; "
            "restore it from a copy"
        )
    return state


def _seal(arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> str:
    """A code of everything that is saved, keyed with the stream's own key."""
    told = {name: value for name, value in facts.items() if name not in _UNSEALED}
    code = hmac.new(arrays["key"].tobytes(), json.dumps(told, sort_keys=True).encode(), "sha256")
    for name in sorted(arrays):
        array = arrays[name]
        code.update(f"{name}{array.dtype}{array.shape}".encode())
        code.update(hashlib.sha256(array.tobytes()).digest())
    return code.hexdigest()


def _sound(state: StreamState, policies: PolicySet, periods: int) -> bool:
    users, now, ledger, t = state.users, state.now, state.now.ledger, state.t
    size, spent = policies.locations.size, state.now.spending
    n, priors, cycle = len(users.ids), users.priors, state.cycle
    rows = len(priors.start) - 1
    return (
        type(t) is int
        and 0 <= t < MAX_TIME
        and users.key.shape == (8,)
        and users.key.dtype == np.uint32
        and _whole(users.ids, n, 0, MAX_USER)
        and len(np.unique(users.ids)) == n
        and _whole(spent.releases, n, 0, t + 1)
        and ledger_file.is_spending(spent, n, len(policies))
        and _whole(state.policy, n, 0, len(policies))
        and state.epsilon.dtype == np.float64
        and state.epsilon.shape == (n,)
        and bool((state.epsilon > 0).all())
        and state.released.dtype == np.int32
        and _whole(state.released.astype(np.int64), n, -1, size)
        and ledger.used.dtype == np.uint64
        and ledger.used.shape == (n, words_for(len(policies)))
        and _whole(cycle, cycle.size, 0, periods)
        and cycle.size > 0
        and _well_formed(priors.start, priors.cells, rows, size)
        and _well_formed(ledger.start, ledger.cells, n, size)
        and _well_formed(ledger.edge_start, ledger.edges, n, size, ascending=False)
        and ledger.edges.ndim == 2
        and ledger.edges.shape[1] == 2
        and _whole(ledger.kind, n, OWN, rows)
        and _believable(priors.values, np.full(rows, LOGS), priors.start)
        and all(_well_dated(b, rows, n, t, size) for b in (now.beliefs, state.before.beliefs))
    )


def _whole(values: NDArray[Any], n: int, low: int, high: int) -> bool:
    """n numbers in low .. high - 1."""
    return (
        values.dtype == np.int64
        and values.shape == (n,)
        and bool((values >= low).all() and (values < high).all())
    )


def _well_dated(beliefs: Beliefs, rows: int, n: int, t: int, size: int) -> bool:
    """Whether beliefs are priors, or distributions of a step in the past."""
    kind, at = beliefs.kind, beliefs.at
    return (
        _whole(kind, n, LOGS, rows)
        and not (kind == OWN + 1).any()  # every user has a prior, or a belief
        and _whole(at, n, -1, t)
        and bool((at[kind < 0] >= 0).all())
        and _well_formed(beliefs.start, beliefs.cells, n, size)
        and bool((np.diff(beliefs.start)[kind < 0] > 0).all())
        and _believable(beliefs.values, kind, beliefs.start)
    )


def _believable(values: NDArray[Any], kind: NDArray[np.int64], start: NDArray[np.int64]) -> bool:
    """Whether rows are distributions: probabilities, or where the kind says so logarithms."""
    if values.dtype != np.float64 or values.shape != (start[-1],) or not np.isfinite(values).all():
        return False
    logs = np.repeat(kind == LOGS, np.diff(start))
    p = np.where(logs, np.exp(np.minimum(values, 1.0)), values)
    some = np.diff(start) > 0
    sums = np.add.reduceat(p, start[:-1][some]) if some.any() else np.ones(0)
    return bool((p[~logs] > 0).all() and (np.abs(sums - 1) < 1e-6).all())


def _well_formed(
    start: NDArray[Any], cells: NDArray[Any], n: int, size: int, *, ascending: bool = True
) -> bool:
    """Whether rows lie end to end and hold locations only, in order."""
    if not (
        start.dtype == np.int64
        and cells.dtype == np.int32
        and start.shape == (n + 1,)
        and start[0] == 0
        and start[-1] == len(cells)
        and (np.diff(start) >= 0).all()
        and (cells >= 0).all()
        and (cells < size).all()
    ):
        return False
    if not ascending or cells.size == 0:
        return True
    follows = np.ones(len(cells), np.bool_)
    follows[start[:-1][np.diff(start) > 0]] = False  # the first of a row
    return bool((np.diff(cells, prepend=-1)[follows] > 0).all())
