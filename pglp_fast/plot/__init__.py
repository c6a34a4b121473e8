"""Pictures, with matplotlib (the ``plot`` extra). Every function takes an ``ax`` and returns it.

Maps are in km, in the frame of ``locations.xy``, with equal aspect. Nothing is shown or saved here:
that is the caller's to do."""

from .curves import adversary_curves, bars, error_curves, lines, over_time, privacy_utility
from .exposures import exposure
from .geography import latlon_axes
from .interactive import InteractiveMap, interactive_map
from .maps import heat, map_axes
from .noises import noise, releases
from .policies import MAX_OUTLINES, policy
from .posteriors import posterior
from .style import COLOURS, MARKERS, MAX_EDGES, new_axes, pyplot
from .traces import trace

__all__ = [
    "COLOURS",
    "MARKERS",
    "MAX_EDGES",
    "MAX_OUTLINES",
    "InteractiveMap",
    "adversary_curves",
    "bars",
    "error_curves",
    "exposure",
    "heat",
    "interactive_map",
    "latlon_axes",
    "lines",
    "map_axes",
    "new_axes",
    "noise",
    "over_time",
    "policy",
    "posterior",
    "privacy_utility",
    "pyplot",
    "releases",
    "trace",
]
