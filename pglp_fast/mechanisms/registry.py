"""The mechanisms that have a name: one row each.

The names are those of ``TraceReleaser(mechanism=...)`` and of the command line. Everything else
(label, options, what it needs) is said by the class, which is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pglp_fast.errors import InvalidParameter

if TYPE_CHECKING:
    from .contract import Mechanism

MECHANISMS = {
    "ppim": "pglp_fast.mechanisms.ppim:PPIM",
    "plm": "pglp_fast.mechanisms.plm:PLM",
    "planar-laplace": "pglp_fast.mechanisms.planar_laplace:PlanarLaplace",
    "krr": "pglp_fast.mechanisms.krr:KRR",
    "graph-exponential": "pglp_fast.mechanisms.graph_exponential:GraphExponential",
    "optimal": "pglp_fast.mechanisms.optimal:Optimal",
    "pim": "pglp_fast.mechanisms.ppim:PIM",
    "lm": "pglp_fast.mechanisms.plm:LM",
}


def find(mechanism: Any) -> "type[Mechanism]":
    """The class of a mechanism: of one of the names above, at "module:Class", or the class."""
    from .contract import Mechanism

    if isinstance(mechanism, type) and issubclass(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, str) and (mechanism in MECHANISMS or ":" in mechanism):
        return load(MECHANISMS.get(mechanism, mechanism))
    noise_first = sorted(MECHANISMS, key=lambda name: not load(MECHANISMS[name]).geometric)
    names = ", ".join(map(repr, noise_first))
    raise InvalidParameter(f"mechanism must be one of {names}, got {mechanism!r}")


def load(where: str) -> "type[Mechanism]":
    """The class at "module:Class"; the module must be one that Python can import."""
    from .contract import Mechanism

    module, _, name = where.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"the mechanism {where!r} is not found: {error}; give module:Class, with the module on "
            "the path (PYTHONPATH)"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Mechanism)):
        raise InvalidParameter(f"{where} is not a mechanism: it must be a class of pf.Mechanism")
    return found
