"""The section that matters: what a release costs beside what it buys; never one without the
other."""

import math

from pglp_fast.adversary.attack_table import OFTEN, lifts

from . import charts
from .measures import LEVEL, Figures
from .page import card, facts, interval, line_legend, pair, section, share, table, value

ESTIMATORS = {
    "released": "The release itself",
    "bayes": "Best guess, all releases",
    "map": "Likeliest place, all releases",
    "viterbi": "Likeliest path",
    "online bayes": "Best guess, releases so far",
    "online map": "Likeliest place, so far",
    "no release": "Best guess, no release",
}
_SURE = f"{100 * LEVEL:g} %"


def balance_section(f: Figures) -> str:
    traces = f["mode"] == "traces"
    cost = _trace_utility(f) if traces else _single_utility(f)
    bought = _trace_adversary(f) if traces else _single_adversary(f["privacy"])
    figures = _trace_charts(f["curves"]) if traces else _single_charts(f)
    drawn = "".join(f'<figure class="card">{figure}</figure>' for figure in figures)
    body = (
        "<p>Read both columns: noise that costs much and hides little is as bad as noise that "
        "costs little because it says everything.</p>"
        + (_surrogates(f["flags"]) if traces else "")
        + pair(card("Utility: what it costs", cost), card("Adversary: what it buys", bought))
        + f'<div class="pair charts">{drawn}</div>'
    )
    return section("balance", "Utility and adversary", body)


def _surrogates(g: Figures) -> str:
    """Where the model is often wrong, distances from the truth say more about the model than
    about privacy."""
    if g["surrogate"] is None:
        return (
            '<p class="note">All figures hold if people move as the model says. Where they do not, '
            "they may be far from what is so; true locations would tell, and are not here.</p>"
        )
    if g["surrogate"] <= OFTEN * g["steps"]:
        return ""
    return (
        f'<p class="banner">At {share(g["surrogate"] / g["steps"])} of the steps the mobility '
        "model called the true location "
        "impossible, and another was released from. Errors are then those of the model, the "
        "release's and the adversary's alike; "
        "an adversary with a better model would do better.</p>"
    )


def utility_table(u: Figures, caption: str) -> str:
    def ci(name: str, percent: bool = False) -> str:
        return interval((u.get(f"{name}_low"), u.get(f"{name}_high")), percent)

    rows = [("Mean distance", value(u["e_eu"], "km") + ci("e_eu"))]
    for (q, x), bounds in zip(u["quantiles"], u["quantile_intervals"], strict=True):
        rows.append((f"{100 * q:g} % are within", value(x, "km") + interval(bounds)))
    if u["e_r"] is not None:
        rows.append(("Other region", share(u["e_r"]) + ci("e_r", True)))
    if u["e_poi"] is not None:
        rows.append(("Other category", share(u["e_poi"]) + ci("e_poi", True)))
    rows += [
        ("Worst place, mean", value(u["worst"], "km")),
        ("Farthest", value(u["largest"], "km")),
    ]
    return table((), rows, caption)


# -- traces


def _trace_utility(f: Figures) -> str:
    a, u = f["attack"], f["utility"]
    if u is not None:
        sample = f"{value(u['count'])} releases; {_SURE} intervals, users being the sample"
        return utility_table(u, f"Distance between true and released location: {sample}")
    return (
        "<p>Without true locations, the error is what somebody who knows the model and sees all "
        "releases expects it to be.</p>"
        + table(
            (), [("Mean distance", value(a["utility_km"], "km") + interval(a["utility_interval"]))]
        )
    )


def _trace_adversary(f: Figures) -> str:
    a, true = f["attack"], f["has_truth"]
    by_name = {row["estimator"]: row for row in a["rows"]}
    names = [name for name in ESTIMATORS if name in by_name]
    rows = []
    for name in names:
        r = by_name[name]
        row = [ESTIMATORS[name], value(r["expected_km"]) + interval(r["expected_interval"])]
        if true:
            row.append(value(r["error_km"]) + interval(r["error_interval"]))
            row.append(share(r["hit_rate"]) + interval(r["hit_interval"], True))
        rows.append(row)
    head = ["Guess", "expects to be off by (km)"] + (
        ["is off by (km)", "hits the place"] if true else []
    )
    caption = f"{value(a['users'])} users, {value(a['steps'])} steps, {_SURE} intervals"
    return (
        '<p class="note">The adversary knows the policy, the mechanism and how people move, and '
        "sees every release.</p>"
        + table(head, rows, caption, mark=names.index("bayes"))
        + f"<p>On average {value(a['entropy_bits'], 'bits', 2)} of a location stay open. "
        f"{lifts(a['median_lift'], a['lift']).capitalize()}.</p>"
    )


def _trace_charts(c: Figures) -> list[str]:
    lines = {name: c[name] for name in ("release", "guess") if name in c}
    if not lines:
        return []
    measured = "distance from the truth" if c["kind"] == "error" else "expected distance"
    named = {"release": "release", "guess": "best guess, all releases"}
    legend = line_legend([(name, named[name]) for name in lines])
    one = next(iter(lines.values()))["time"]
    told = f"Mean {measured} in km, step by step."
    if any(math.isfinite(high) for high in one["high"]):
        told += f" Bands: {_SURE} intervals of the mean, where 5 users or more released."
    if c["own_clocks"]:
        told += " Traces begin at different times: they are laid with their ends together"
        told += ", without long silence." if c["closed"] else "."
    if one["width"] > 1:
        told += f" Each point is the mean of {one['width']} steps."
    over_time = charts.time_chart(
        {name: line["time"] for name, line in lines.items()},
        f"mean {measured} (km)",
        f"Mean {measured} by step, of the release and of the adversary's best guess",
    )
    shares = charts.share_chart(
        {name: line["cdf"] for name, line in lines.items()},
        f"{measured} (km)",
        f"Share of releases whose {measured} is at most so many km, and the same of the "
        "adversary's best guess",
    )
    right = (
        "Share of steps within a distance; the axis ends where 99 % of both are. Further left is "
        "nearer to the truth: the release should be, the guess should not."
    )
    return [
        f"{over_time}{legend}<figcaption>{told}</figcaption>",
        f"{shares}{legend}<figcaption>{right}</figcaption>",
    ]


# -- single releases


def _single_utility(f: Figures) -> str:
    u, s = f["expected"], f["utility"]
    if u is not None:
        out = utility_table(u, f"Expected, computed exactly over {value(u['count'])} locations")
    else:
        more = "." if s is not None else "; give true and released cells for an estimate."
        out = f"<p>The output sets of this mechanism are too large for exact figures{more}</p>"
    if s is not None:
        alike = "users being the sample" if f["clustered"] else "pairs taken as independent"
        out += utility_table(
            s,
            (
                f"Estimated from {value(s['count'])} true and released locations; {_SURE} "
                f"intervals, {alike}"
            ),
        )
    return out


def _single_adversary(p: Figures | None) -> str:
    if p is None:
        return (
            "<p>The output sets of this mechanism are too large for an exact answer: release "
            "traces and attack them (<code>pf.attack</code>).</p>"
        )
    return (
        '<p class="note">The adversary knows how likely each place is, the mechanism and the '
        "release, and names the place of "
        "least expected distance.</p>"
    ) + facts(
        [
            ("Best guess is off by", value(p["error"], "km")),
            ("told the component alone", value(p["told_error"], "km")),
            ("Bits left open", value(p["entropy"], digits=2)),
            ("told the component alone", value(p["told_entropy"], digits=2)),
            (
                "Belief can rise by",
                f"a factor e<sup>{p['lift']:.2f}</sup> beyond knowing the component",
            ),
        ]
    )


def _single_charts(f: Figures) -> list[str]:
    out, p, u = [], f["privacy"], f["expected"] or f["utility"]
    if u is not None:
        bars = [("release", "Release, mean", u["e_eu"])]
        if p is not None:
            bars += [
                ("guess", "Adversary's best guess", p["error"]),
                ("told", "Guess if told the component only", p["told_error"]),
            ]
        bars.append(("release", "Release, worst place", u["worst"]))
        said = "Expected distances: " + "; ".join(f"{label} {km:.3f} km" for _, label, km in bars)
        chart = charts.bar_chart(bars, "expected distance from the truth (km)", said)
        out.append(f"{chart}<figcaption>The release's error beside the adversary's.</figcaption>")
    if f["curves"]:
        chart = charts.share_chart(
            f["curves"],
            "distance from the truth (km)",
            "Share of releases that are at most so many km off",
        )
        out.append(
            f"{chart}<figcaption>Share of releases within a distance of the truth; the axis ends "
            "where 99 % are.</figcaption>"
        )
    return out
