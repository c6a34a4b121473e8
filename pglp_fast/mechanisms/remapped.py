"""Bayesian remapping: what a mechanism says, replaced by the best guess at what it meant.

Given a prior pi over locations, an output z stands for the posterior pi(s) Pr(z|s), and the
location w that minimises the expected loss sum_s pi(s) Pr(z|s) loss(s, w) is a better answer than
z (Chatzikokolakis, ElSalamouny and Palamidessi, PoPETs 2017). It is a function of z and of public
knowledge alone: post-processing, which cannot weaken {epsilon, G}-location privacy."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.noise.alias_tables import Requests
from pglp_fast._kernels.policy import shapes
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.policy.components import Component

from .contract import Floats, Mechanism
from .losses import make_loss, make_prior

_CHUNK = 1 << 22  # products held at once


class Remapped(Mechanism):
    """A mechanism whose answers are remapped to the location of least expected loss.

    Parameters
    ----------
    mechanism : any other
    prior : how likely each location is, (N,); even unless told. Public knowledge.
    loss : "euclidean" (km), "squared" (km^2), an (N, N) matrix of loss[s, w], or a function loss(s,
        w) of two integer arrays of locations that broadcast

    Attributes
    ----------
    mechanism : the one that draws, and that ``certify`` proves
    to : (N,) what each location is remapped to

    Notes
    -----
    An answer stays within the output set of what was said; equal losses go to the lower location.
    In traces, where the prior is what the adversary thinks before each release, use
    ``TraceReleaser(..., remap=loss)``."""

    label = "remapped"

    def __init__(
        self, mechanism: Mechanism, prior: ArrayLike | None = None, loss: Any = "euclidean"
    ):
        if not isinstance(mechanism, Mechanism) or mechanism.source is not mechanism:
            raise InvalidParameter(
                "the first argument must be a mechanism that draws, got "
                f"{type(mechanism).__name__}: "
                "pass pf.PPIM(...), pf.KRR(...), ...; remapping twice is remapping once"
            )
        self.mechanism, self.policy = mechanism, mechanism.policy
        self.graph, self.epsilon, self.domain = mechanism.graph, mechanism.epsilon, mechanism.domain
        self.calibration, self.sampler = mechanism.calibration, mechanism.sampler
        self.outputs, self.noise_groups = mechanism.outputs, mechanism.noise_groups
        self.locations, self.tables = mechanism.locations, mechanism.tables
        self.prior, self.loss = make_prior(self.locations, prior), make_loss(self.locations, loss)
        self.translates = self.prior is None and self.loss.translates
        self.groups = mechanism.groups if self.translates else mechanism.groups.apart()
        self.to = np.arange(self.locations.size, dtype=check.CELL)
        for shape, size in enumerate(mechanism.groups.sizes.tolist()):
            if size > 1:
                self._remap(shape, size)

    @property
    def source(self) -> Mechanism:
        return self.mechanism

    @classmethod
    def for_components(cls, *_: Any, **__: Any) -> Self:
        raise InvalidParameter("traces remap what another mechanism draws: use remap='euclidean'")

    def log_probabilities(self, component: Component) -> Floats:
        """Of a component of the policy that it was made for."""
        shape = self.groups.shape(int(component.known_members()[0]))
        return self.log_rows(shape, np.arange(len(component.sites)))

    def _remap(self, shape: int, size: int) -> None:
        """Find where all groups of one of the mechanism's shapes are remapped to."""
        inner = self.mechanism.groups
        which = np.flatnonzero(inner.shape_of == shape)
        members = inner.members[inner.starts[which][:, None] + np.arange(size)]
        first = int(members[0, 0])
        logs = self.mechanism.matrix(first, log=True)[1].T  # of place s given z
        if self.translates:
            to = self._best(logs, np.full((1, size), 1.0 / size), self._losses(members[0]))
            self.to[members] = members[:, to[0]]
            return
        weight = np.ones(members.shape) if self.prior is None else self.prior[members]
        weight[weight.sum(axis=1) == 0] = 1.0
        together = self.loss.translates
        step = max(1, _CHUNK // size**2) if together else 1
        for begin in range(0, len(which), step):
            some = slice(begin, begin + step)
            to = self._best(logs, weight[some], self._losses(members[0 if together else begin]))
            self.to[members[some]] = np.take_along_axis(members[some], to, axis=1)

    def _losses(self, members: NDArray[np.int32]) -> Floats:
        nothing = np.empty((0, 2), np.int64)
        sites = shapes.sites_of(members, self.locations.lattice)
        return self.loss.matrix(Component(sites, np.arange(len(members)), nothing, members))

    @staticmethod
    def _best(logs: Floats, weight: Floats, losses: Floats) -> NDArray[np.int64]:
        """For each prior over a group's places, the best place to answer for each place z: z itself
        where it is never said."""
        with np.errstate(divide="ignore"):
            joint = logs[None] + np.log(weight)[:, None, :]
        top = joint.max(axis=2, keepdims=True)
        never = np.isneginf(top[..., 0])
        cost = np.exp(joint - np.where(np.isneginf(top), 0.0, top)) @ losses
        return np.where(never, np.arange(logs.shape[0]), cost.argmin(axis=2))

    def _places(self, shape: int) -> tuple[int, NDArray[np.int64]]:
        """(the mechanism's shape, where each place is remapped to) of one of our shapes."""
        members = self.groups.of_shape(shape)
        to = self.groups.address[self.to[members], 1].astype(np.int64)
        return self.mechanism.groups.shape(int(members[0])), to

    def log_rows(self, shape: int, sources: NDArray[np.int64]) -> Floats:
        inner, to = self._places(shape)
        logs = self.mechanism.log_rows(inner, sources)
        order = np.argsort(to, kind="stable")
        targets, begin = np.unique(to[order], return_index=True)
        out = np.full(logs.shape, -np.inf)
        out[:, targets] = np.logaddexp.reduceat(logs[:, order], begin, axis=1)
        return out

    def table(self, s: int) -> tuple[check.Cells, NDArray[np.uint64]]:
        outputs, drawn = self.mechanism.table(s)
        merged = np.zeros_like(drawn)
        np.add.at(merged, np.searchsorted(outputs, self.to[outputs]), drawn)
        return outputs, merged

    def draw(self, requests: Requests, out: check.Cells) -> None:
        self.mechanism.draw(requests, out)
        out[:] = self.to[out]

    def draw_one(self, key: NDArray[np.uint32], t: int, cell: int) -> int:
        found = self.mechanism.draw_one(key, t, cell)
        return found if found < 0 else int(self.to[found])
