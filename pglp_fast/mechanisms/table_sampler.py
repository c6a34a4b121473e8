"""The table sampler: a release is drawn from 64-bit integer weights, by one alias row a place."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import alias_rows, alias_tables as kernels
from pglp_fast._kernels.noise.integer_weights import MAX_DISTANCE
from pglp_fast._kernels.policy import shapes
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import ForkLock, run_ranges
from pglp_fast.errors import InvalidParameter, PGLPError, TooLarge

from .exp_bound import exp_lower_bound, pair_bounds

if TYPE_CHECKING:
    from .contract import Mechanism

SAMPLERS = ("auto", "table", "geometric")
MAX_TABLE = 2048  # locations in a component for which a table, or ``matrix``, is made at all
ROW_SUM = 1e-9  # a table is refused whose exact rows are further off than this
AUTO_TABLE = 128  # "auto" uses a table up to this many locations in a component ...
# ... and fewer where all distinct shapes together would need more entries than this (200 MB)
AUTO_ENTRIES = 1 << 24
# tables that are missing and together no larger than this are made without asking who needs them
EAGER_ENTRIES = 1 << 16
_CHUNK = 1 << 20  # probabilities held at once (8 MB)


class TableSampler:
    """Tables of a mechanism's shapes: laid out at once, made when they are first needed.

    Attributes
    ----------
    arrays : the alias rows, for kernels
    mixed : for each shape, the total variation distance between what is drawn and the exact
        probabilities: what rounding to integers on which the proof holds costs
    missing : for each shape, whether its table is still to be made
    bound : a rational number just below e^epsilon
    """

    def __init__(self, mechanism: "Mechanism"):
        self.mechanism = mechanism
        self.bound = exp_lower_bound(mechanism.epsilon)
        sizes = mechanism.groups.sizes
        distinct, which = np.unique(sizes, return_inverse=True)
        bits = np.array([alias_rows.column_bits(k) for k in distinct.tolist()], np.int64)[which]
        entries = sizes << bits
        tabled = sizes <= self._limit(sizes, entries)
        ends = np.cumsum(np.where(tabled, entries, 0))
        total = int(ends[-1]) if ends.size else 0
        self.arrays = alias_rows.AliasTables(
            bits,
            np.where(tabled, ends - entries, -1),
            np.empty(total, np.uint64),  # pages are only touched when filled
            np.empty(total, np.int32),
        )
        self.mixed = np.zeros(sizes.size)
        self.missing = tabled.copy()
        self._lock = ForkLock()

    def _limit(self, sizes: NDArray[np.int64], entries: NDArray[np.int64]) -> int:
        """Members up to which a shape gets a table.

        It depends on the policy alone, never on requests."""
        m = self.mechanism
        if not m.geometric or m.sampler == "table":
            if sizes.size and sizes.max() > MAX_TABLE:
                raise TooLarge(
                    f"a component has {sizes.max()} locations, a table takes {MAX_TABLE}: use "
                    "sampler='auto' or 'geometric'"
                )
            return MAX_TABLE
        limit = AUTO_TABLE if m.sampler == "auto" else 0
        while entries[sizes <= limit].sum() > AUTO_ENTRIES:
            limit //= 2
        return limit

    @property
    def tabled(self) -> NDArray[np.bool_]:
        """For each shape, whether it is sampled from a table."""
        return np.asarray(self.arrays.offset >= 0)

    def proved_groups(self) -> shapes.Groups:
        """The mechanism's groups, with the bound that each weighted edge is proved with."""
        m = self.mechanism
        if m.graph.weights is None:
            return m.groups.arrays
        weights = m.graph.weights
        bounds = pair_bounds(m.epsilon, weights.numerator, weights.denominator)
        return m.groups.arrays._replace(**bounds._asdict())

    @property
    def protected(self) -> tuple[Polygons, bool]:
        """(sensitivity hulls, whether all pairs that they reach are protected and not edges alone);
        the hulls are empty where they are not asked for."""
        groups = self.mechanism.groups
        if self.mechanism.calibration == "graph":
            return groups.hulls, True
        none = np.zeros(len(groups.representative) + 1, np.int64)
        return Polygons(np.zeros((0, 2), np.int64), none), False

    def ensure(self, cells: check.Cells | None = None) -> None:
        """Make the tables that releasing these cells needs (None: all of them).

        Each is made once, by one thread."""
        if not self.missing.any():
            return
        with self._lock:
            need, groups = self.missing, self.mechanism.groups
            if (
                cells is not None
                and (groups.sizes[need] << self.arrays.bits[need]).sum() > EAGER_ENTRIES
            ):
                used = np.zeros(need.size, bool)
                kernels.mark_shapes(cells, groups.arrays, used)
                need = need & used
            which = np.flatnonzero(need)
            ends = np.cumsum(groups.sizes[which] ** 2)
            for part in np.split(which, np.flatnonzero(np.diff(ends // _CHUNK)) + 1):
                if part.size:
                    self._fill(part)
                    self.missing[part] = False

    def _fill(self, which: NDArray[np.int64]) -> None:
        m, groups, proved = self.mechanism, self.mechanism.groups, self.proved_groups()
        at = starts_of(groups.sizes[which] ** 2)
        hulls, reached = self.protected
        P = m.probabilities(which)
        found = np.zeros((len(groups.representative), 2))  # distance from P, off from 1

        def part(start: int, stop: int) -> None:
            kernels.fill_tables(
                which, start, stop, proved, hulls, reached, P, at, self.bound,
                self.arrays, found,
            )  # fmt: skip

        run_ranges(part, which.size, smallest=16)
        worst = int(np.argmax(found[:, 1]))
        if found[worst, 1] > ROW_SUM:
            raise PGLPError(
                f"the probabilities of the component of location {groups.of_shape(worst)[0]} sum "
                f"to 1 only within {found[worst, 1]:.1e}: they are too far apart for float64; use "
                "a coarser resolution_km, or sampler='geometric'"
            )
        if not np.isfinite(found[which, 0]).all():
            worst = int(which[np.argmax(found[which, 0])])
            raise PGLPError(
                f"no integer weights for the component of location {groups.of_shape(worst)[0]} "
                f"keep epsilon = {m.epsilon:g} within {MAX_DISTANCE:g} of its probabilities: use "
                "a larger epsilon or smaller components"
            )
        self.mixed[which] = found[which, 0]

    def weights(self, s: int) -> NDArray[np.uint64]:
        """The integer weights that a release from s is drawn with, read back from the table."""
        groups = self.mechanism.groups
        shape = groups.shape(s)
        if self.arrays.offset[shape] < 0:
            raise InvalidParameter(
                f"location {s} is released by the geometric sampler: there is no table; use "
                "sampler='table'"
            )
        self.ensure(groups.of(s)[:1])
        out = np.empty((groups.sizes[shape],) * 2, np.uint64)
        alias_rows.read_rows(self.arrays, shape, out)
        return np.asarray(out[groups.address[s, 1]])

    @cached_property
    def rows(self) -> kernels.Rows:
        """What a single release reads."""
        groups = self.mechanism.groups.arrays
        return kernels.Rows(
            groups.address, groups.shape_of, groups.starts, groups.members, self.missing,
            *self.arrays,
        )  # fmt: skip

    def release_one(self, key: NDArray[np.uint32], user: int, t: int, cell: int) -> int:
        """Release one cell; -1 where that takes the longer way: there is no table, or not yet."""
        return int(kernels.release_one(key, user, t, cell, self.rows))

    def release(self, requests: kernels.Requests, out: check.Cells) -> None:
        """Release the cells whose shape has a table."""
        self.ensure(requests.cells)
        if not self.tabled.any():
            return

        def part(start: int, stop: int) -> None:
            kernels.release_table(
                requests, start, stop, self.mechanism.groups.arrays, self.arrays, out
            )

        run_ranges(part, requests.cells.size)
