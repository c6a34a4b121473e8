"""What things are called on the page."""

from .page import banner

MECHANISMS = {
    "ppim": "P-PIM",
    "plm": "P-LM",
    "pim": "PIM",
    "lm": "LM",
    "planar-laplace": "planar Laplace",
    "krr": "k-ary randomised response",
    "graph-exponential": "graph exponential",
    "optimal": "optimal (least expected loss)",
    "planarlaplace": "planar Laplace",
    "graphexponential": "graph exponential",
}
CALIBRATIONS = {
    "component": "component: noise from the edges of the own component, and an output there",
    "graph": "graph: noise from all edges of the policy, any possible location as output",
}
PRIVATE = banner(
    "Keep this file private.",
    "It contains true locations. Whoever reads it needs no attack. Leave <code>truth</code> out for a report that can be shared.",
)
FIRST_KNOWN = banner(
    "Keep this file private.",
    "The users' first true locations were given to the adversary (priors=&quot;point&quot;), and so this file contains them.",
)
SEEDED = banner(
    "Seeded release.",
    "The noise came from a seed, so that results repeat. It protects nobody against who knows or finds the seed.",
)
PUBLIC = "Everything in this file follows from the releases and from what is public: how people move, the policy, the mechanism."


def mechanism(name: str, remapped: bool) -> str:
    """Of a releaser's setting or of a mechanism's class."""
    return MECHANISMS.get(name.lower(), name) + (", answers remapped" if remapped else "")
