"""The best guesses of an adversary who sees no release: the prior alone, moved along the chain."""

import numpy as np

from pglp_fast._kernels.attack.no_release import guess_unseen
from pglp_fast._kernels.attack.records import Moves, Observations
from pglp_fast._util import validate as check
from pglp_fast._util.threads import run_ranges

from .attack_inputs import moves_of, workspace_of
from .evidence import Evidence


def guesses_without_release(
    evidence: Evidence, seen: Observations, moves: Moves, turned: Moves
) -> check.Cells:
    """As ``Attack.no_release``: one for each row, in the shape of the evidence.

    Persons with the same prior at the same phase of the cycle share the work."""
    person = evidence.person
    if not person.size:
        return evidence.as_given(np.empty(0, check.CELL), -1)
    begin = seen.steps[np.minimum(seen.first[:-1], len(person) - 1)]
    # with one matrix only the moves since the first release count
    phase = begin % (len(seen.cycle) if evidence.model.periods > 1 else 1)
    pairs, pair = np.unique(np.stack([seen.of, phase], axis=1), axis=0, return_inverse=True)
    times, time = np.unique(seen.steps - begin[person], return_inverse=True)
    keys, of = np.unique(pair.reshape(-1)[person] * len(times) + time, return_inverse=True)
    first = np.searchsorted(keys, np.arange(len(pairs) + 1) * len(times))
    row, step = np.ascontiguousarray(pairs.T)
    after, guesses = times[keys % len(times)], np.full(len(keys), -1, check.CELL)
    locations = evidence.model.locations
    if turned is moves:  # the attack itself had no gaps
        turned = moves_of(evidence.model, transposed=True)
    run_ranges(
        lambda start, stop: guess_unseen(
            moves,
            turned,
            seen,
            locations.lattice,
            workspace_of(locations),
            row,
            step,
            first,
            after,
            start,
            stop,
            guesses,
        ),
        len(pairs),
        smallest=1,
    )
    return evidence.as_given(guesses[of], -1)
