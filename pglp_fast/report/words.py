"""What things are called on the page."""

from html import escape

from pglp_fast.mechanisms.contract import Mechanism

from .page import banner

CALIBRATIONS = {
    "component": "component: noise from the edges of the own component, and an output there",
    "graph": "graph: noise from all edges of the policy, any possible location as output",
}
PRIVATE = banner(
    "Keep this file private.",
    "It contains true locations. Whoever reads it needs no attack. Leave <code>truth</code> out "
    "for a report that can be shared.",
)
FIRST_KNOWN = banner(
    "Keep this file private.",
    "The users' first true locations were given to the adversary (priors=&quot;point&quot;), and "
    "so this file contains them.",
)
SEEDED = banner(
    "Seeded release.",
    "The noise came from a seed, so that results repeat. It protects nobody against who knows or "
    "finds the seed.",
)


def calibration(name: str, outputs: str = "component") -> str:
    """Where noise comes from, and where releases may lie."""
    if outputs == "map":
        return (
            "component: noise from the edges of the own component, any location of the map as "
            "output"
        )
    return CALIBRATIONS[name]


def sampled(sample: str | None) -> str:
    """Of what the page tells a part."""
    return "" if sample is None else f"A sample: {escape(sample)}. "


def unproved(note: str | None) -> str:
    """A note on what this page stands on."""
    return "" if note is None else banner("Taken on trust.", escape(note))


PUBLIC = (
    "Everything in this file follows from the releases and from what is public: how people move, "
    "the policy, the mechanism."
)


def mechanism(m: Mechanism, remapped: bool) -> str:
    """What a mechanism is called."""
    return m.label + (", answers remapped" if remapped else "")
