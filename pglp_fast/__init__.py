"""pglp_fast: private locations under Policy Graph based Location Privacy, exact, certified and
fast.

>>> import pglp_fast as pf
>>> g = pf.Grid(30, 30, cell_km=0.5)
>>> m = pf.PPIM(pf.blocks(g, 3), epsilon=1.0)
>>> released = m.release([0, 31, 899])
>>> pf.certify(m).ok
True
"""

import lazy_loader

# The names are listed in __init__.pyi. Each is imported when it is first used:
# ``pglp-fast --help`` and errors need no compiler.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
