"""Where: grids, points, projections, and a made-up city."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=["synthetic"])
