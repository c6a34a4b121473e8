"""Sections of the page: at a glance, the map, the certificate, flags and the policy."""

import math
from collections.abc import Sequence
from html import escape

from .measures import Figures
from .page import card, epsilon, facts, icon, line_legend, pair, section, table, template, value

_MARKS = {
    "true": icon(16, 16, '<circle class="mark-true" cx="8" cy="8" r="5.5"/>'),
    "released": icon(18, 18, '<path class="mark-released" d="M9 1L17 9L9 17L1 9z"/>'),
    "guess": icon(16, 16, '<path class="mark-guess" stroke-width="2.6" d="M2 2L14 14M14 2L2 14"/>'),
    "repaired": icon(26, 8, '<path class="repaired" stroke-width="2.2" d="M0 4H26"/>'),
    "possible": icon(16, 16, '<rect class="possible" x="1" y="1" width="14" height="14"/>'),
    "belief": '<span class="ramp"></span>',
}
_PROOFS = {
    "table": "in integer arithmetic, on the very weights that are drawn from",
    "premises": "through the premises of the theorem that the noise rests on, checked exactly",
    "table+premises": (
        "in integer arithmetic on the very weights that are drawn from and, where a component is "
        "too large for a table, through the premises of the theorem that the noise rests on"
    ),
}

_VERDICTS = {
    "holds": '<span class="good">&#10003; proved</span>',
    "is not proved": '<span class="bad">not proved</span>',
    "does not hold": '<span class="bad">&#10007; broken</span>',
}


def tiles(f: Figures) -> str:
    """At a glance."""
    c = f["certificate"]
    verdict = _VERDICTS[c["verdict"]]
    delivered = (
        f"{c['worst']:.6f} delivered at worst" if math.isfinite(c["worst"]) else "no edge to keep"
    )
    if f["mode"] == "traces":
        proved = f"all {c['releases']:,} releases; {delivered}"
        out = [("", f"&epsilon; = {_epsilons(c)}", "promised at each step"), ("", verdict, proved)]
        out += _trace_tiles(f)
    else:
        each = "promised for each release"
        out = [("", f"&epsilon; = {epsilon(c['epsilon'])}", each), ("", verdict, delivered)]
        out += _single_tiles(f)
    body = "".join(
        f'<div class="tile {cls}"><dt>{label}</dt><dd>{figure}</dd></div>'
        for cls, figure, label in out
    )
    return f'<dl class="tiles" aria-label="At a glance">{body}</dl>'


def _epsilons(c: Figures) -> str:
    """The epsilons that releases of traces had."""
    least, most = min(c["epsilons"]), max(c["epsilons"])
    return epsilon(least) if least == most else f"{epsilon(least)} to {epsilon(most)}"


def _km(x: float) -> str:
    return f'{value(x)} <span class="unit">km</span>'


def _trace_tiles(f: Figures) -> list[tuple[str, str, str]]:
    a, g, true, s = f["attack"], f["flags"], f["has_truth"], f["composition"]
    best = next(row for row in a["rows"] if row["estimator"] == "bayes")
    known = g["surrogate"] is not None
    off = "is off by, on average"
    if not true:
        off = "is expected to be off by, if people move as the model says"
    return [
        ("release", _km(a["utility_km"]), f"the release {off}"),
        (
            "guess",
            _km(best["error_km"] if true else best["expected_km"]),
            f"the adversary's best guess {off}",
        ),
        (
            "",
            f'{value(s["kept"])} <span class="unit">of</span> {value(s["of"])}',
            "traces keep a promise as a whole: an edge that every release kept",
        ),
        (
            "",
            value(g["exposed"] + (g["surrogate"] or 0)),
            f"steps exposed{' or surrogate' if known else ''}; {g['repaired']:,} repaired",
        ),
    ]


def _single_tiles(f: Figures) -> list[tuple[str, str, str]]:
    u, out = f["expected"] or f["utility"], []
    assumed = "as likely as the prior says" if f["prior"] else "equally likely"
    off = f"is expected to be off by, if places are {assumed}"
    if u is not None:
        measured = f["expected"] is None
        said = "is off by, on average" if measured else off
        out.append(("release", _km(u["e_eu"]), f"the release {said}"))
    if f["privacy"] is not None:
        out.append(("guess", _km(f["privacy"]["error"]), f"the adversary's best guess {off}"))
    return out


def map_section(
    f: Figures,
    words: Figures,
    legend: Sequence[tuple[str, str]],
    layers: Sequence[tuple[str, str]],
    users: int,
) -> str:
    """``words`` say what steps and marks are called; ``legend`` and ``layers`` are (key, text)."""
    traces = f["mode"] == "traces"
    line = ""
    if traces:
        said = "Error" if f["has_truth"] else "Expected error"
        drawing = (
            '<svg id="timeline" class="timeline" aria-hidden="true" viewBox="0 0 320 130"></svg>'
        )
        marks = line_legend([("release", "release"), ("guess", "best guess so far")])
        line = f"<h3>{said} along this trace</h3>{drawing}{marks}"
    views = (("trace", words["whole"]), ("near", "Close by"), ("map", "Whole map"))
    body = template(
        "map.html",
        intro=words["intro"],
        step=words["step"].lower(),
        line=line,
        picker="" if traces else " hidden",
        others=", <kbd>&uarr;</kbd> <kbd>&darr;</kbd> other user" if users > 1 else "",
        legend="".join(f"<li>{_MARKS[key]}{escape(text)}</li>" for key, text in legend),
        views="".join(
            '<label><input type="radio" name="view" '
            f'value="{key}"{" checked" if key == words["view"] else ""}>{text}</label>'
            for key, text in views
        ),
        layers="".join(
            f'<label><input type="checkbox" data-show="{key}" checked>{text}</label>'
            for key, text in layers
        ),
    )
    return section("map", "Map", body)


def certificate_section(f: Figures) -> str:
    each = card("Each release", _certificate(f))
    if f["mode"] == "traces":
        return section(
            "certificate",
            "Certificate",
            pair(each, card("The whole trace", _composition(f["composition"]))),
        )
    several = (
        "<p>If the same person is released k times, the promises add up: k &epsilon; over the same "
        "edges. Whoever sees them all learns up to that much.</p>"
    )
    return section("certificate", "Certificate", pair(each, card("Several releases", several)))


def _certificate(f: Figures) -> str:
    """Of each release."""
    c, traces = f["certificate"], f["mode"] == "traces"
    if c["ok"]:
        body = '<p><strong class="good">The promise holds.</strong> '
    else:
        said = f'<strong class="bad">The promise {c["verdict"]}:</strong>'
        body = f"<p>{said} {escape(c['reason'])}. "
    how = _PROOFS[_proof(c) if traces else c["proof"]]
    what = f"all {value(c['releases'])} releases" if traces else f"{value(c['edges'])} edges"
    body += f"It was {'proved' if c['ok'] else 'checked'} for {what}, {how}.</p>"
    if f.get("remapped"):
        body += (
            "<p>Answers are remapped after they are drawn. That is post-processing: it cannot "
            "weaken the promise, which is proved for what is drawn.</p>"
        )
    worst = (
        f"&epsilon; = {value(c['worst'], digits=6)} at worst"
        if math.isfinite(c["worst"])
        else "no edge, nothing to keep"
    )
    return body + facts(_trace_facts(c, worst) if traces else _single_facts(c, worst))


def _proof(c: Figures) -> str:
    """How releases of traces were proved."""
    if not c["noises"]:
        return "table"
    return "table+premises" if c["tables"] else "premises"


def _trace_facts(c: Figures, worst: str) -> list[tuple[str, str]]:
    rows = [
        ("Promised", f"&epsilon; = {_epsilons(c)} at each step"),
        ("Delivered", worst),
        ("Proof", f"{value(c['tables'])} tables, {value(c['noises'])} noises"),
    ]
    if c["exposed"]:
        rows.append(("Exposed", f"{value(c['exposed'])} releases that nothing could hide"))
    return rows + _rounding(c)


def _single_facts(c: Figures, worst: str) -> list[tuple[str, str]]:
    rows = [("Promised", f"&epsilon; = {epsilon(c['epsilon'])} for each release")]
    rows.append(("Delivered", worst))
    if c["edge"] is not None:
        output = f", released as {c['output']}" if c["output"] is not None else ""
        rows.append(("Worst case", f"between locations {c['edge'][0]} and {c['edge'][1]}{output}"))
    rows.append(("Proof", f"{escape(c['proof'])}, {value(c['shapes'])} shapes"))
    return rows + _rounding(c)


def _rounding(c: Figures) -> list[tuple[str, str]]:
    if not c["rounding"]:
        return []
    return [("Rounding adds", f"a total variation of at most {c['rounding']:.1e}")]


def _composition(s: Figures) -> str:
    e, kept, of = s["epsilon"], s["kept"], s["of"]
    budget = f", within a budget of {s['budget']}" if s["budget"] is not None else ""
    text = (
        "<p>Releases of one user add up: together they satisfy the sum of their &epsilon;, for the "
        "edges that every step kept. Over the whole trace that is &epsilon; = "
        f"{epsilon(e['median'])} for the median user ({epsilon(e['low'])} to "
        f"{epsilon(e['high'])}){budget}.</p>"
    )
    if not kept:
        text += (
            f"<p>No edge was kept through all steps, in any of {value(of)} traces: as users move, "
            "what is possible moves along. So composition alone promises nothing about whole "
            "traces here; what was in fact learnt stands above, beside the utility.</p>"
        )
    elif kept < of:
        text += (
            f"<p>{value(of - kept)} of {value(of)} traces keep no edge through all steps: about "
            "them as a whole composition alone promises nothing.</p>"
        )
    if kept < of:
        text += (
            "<p>What helps: fewer releases (steps that nobody needs), larger blocks, and a budget, "
            "in total or over any so many steps.</p>"
        )
    rows = [
        (escape(user["label"]), epsilon(user["epsilon"]), value(user["edges"]))
        for user in s["users"]
    ]
    users = table(("User", "Sum of &epsilon;", "Edges kept"), rows)
    return (
        f"{text}<details{' open' if len(rows) < 6 else ''}><summary>User by user, for those on the "
        f"map</summary>{users}</details>"
    )


def flags_section(f: Figures) -> str:
    g = f["flags"]

    def of(n: int) -> str:
        return f"{value(n)} <small>({100 * n / max(g['steps'], 1):.1f} %)</small>"

    if g["surrogate"] is None:
        surrogate = (
            "Surrogate",
            "not told",
            "depends on true locations, which this report does not hold",
        )
    else:
        surrogate = (
            "Surrogate",
            of(g["surrogate"]),
            "the true location was ruled out; the nearest possible one was released from",
        )
    rows = [
        ("Steps with a release", value(g["steps"]), "all figures are of these"),
        ("Steps without", value(g["missing"]), "there was no location, nothing was said"),
        surrogate,
        ("Exposed", of(g["exposed"]), "only one location was possible: nothing could hide it"),
        (
            "Some place cut off",
            of(g["disconnected"]),
            "possible, but none of its neighbours in the policy is",
        ),
        (
            "Repaired",
            of(g["repaired"]),
            f"{g['edges_added']:,} edges were added in all, so that such places stay hidden",
        ),
        (
            "Possible locations",
            value(g["domain_median"], digits=0),
            "median size of C<sub>t</sub>, what the adversary thinks possible",
        ),
    ]
    return section(
        "flags",
        "Flags",
        f'<div class="card">{table(("What", "Steps", "Meaning"), rows, cls="flags")}</div>',
    )


def policy_section(
    f: Figures, settings: Sequence[tuple[str, str]], picture: tuple[str, str]
) -> str:
    """``picture``: the drawing, and what it shows."""
    p, m = f["policy"], f["map"]
    if m["kind"] == "grid":
        cell = f"{m['dx']:g} km" if m["dx"] == m["dy"] else f"{m['dx']:g} x {m['dy']:g} km"
        where = f"{value(m['rows'])} x {value(m['cols'])} cells of {cell}"
    else:
        where = f"{value(m['size'])} locations on a lattice of {1000 * m['dx']:g} m"
    rows = [
        ("Map", f"{where} ({m['width_km']:.3g} x {m['height_km']:.3g} km)"),
        ("Components", value(p["components"])),
        ("Edges", value(p["edges"])),
        ("Most neighbours", value(p["largest_degree"])),
        ("Without any edge", f"{value(p['without_edges'])} of {value(p['locations'])} locations"),
        *settings,
    ]
    drawing, caption = picture
    meaning = (
        "<p>An edge of the policy says: from what is released, nobody may tell these two places "
        "apart, within a factor e<sup>&epsilon;</sup>.</p>"
    )
    left = f'<div class="card">{facts(rows)}{_sizes(p["sizes"])}</div>'
    right = f'<figure class="card">{drawing}<figcaption>{escape(caption)}</figcaption></figure>'
    return section("policy", "Policy", meaning + pair(left, right))


def _sizes(sizes: list[list[int]]) -> str:
    """Bars: how many components have how many locations, the commonest sizes."""
    if not sizes:
        return ""
    common = sorted(sorted(sizes, key=lambda s: -s[1])[:8])
    most = max(count for _, count in common)
    rows = ""
    for k, count in common:
        bar = (
            '<span class="track"><span class="fill" '
            f'style="width:{100 * count / most:.1f}%"></span></span>'
        )
        rows += f"<span>{k:,} locations</span>{bar}<span>{count:,}</span>"
    more = (
        f'<p class="note">and {len(sizes) - len(common)} more sizes.</p>'
        if len(sizes) > len(common)
        else ""
    )
    return f'<h3>Components by size</h3><div class="sizes">{rows}</div>{more}'
