"""The page: figures in, HTML out. Everything that comes from outside passes through ``escape``."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from .._version import __version__
from . import svg
from .figures import LEVEL, Figures, plain

ESTIMATORS = {
    "released": "The release itself",
    "bayes": "Best guess, all releases",
    "map": "Likeliest place, all releases",
    "viterbi": "Likeliest path",
    "online bayes": "Best guess, releases so far",
    "online map": "Likeliest place, so far",
    "no release": "Best guess, no release",
}
_LEGENDS = {
    "true": '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><circle class="mark-true" cx="8" cy="8" r="5.5"/></svg>',
    "released": '<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path class="mark-released" d="M9 1L17 9L9 17L1 9z"/></svg>',
    "guess": '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path class="mark-guess" stroke-width="2.6" d="M2 2L14 14M14 2L2 14"/></svg>',
    "repaired": '<svg width="26" height="8" viewBox="0 0 26 8" aria-hidden="true"><path class="repaired" stroke-width="2.2" d="M0 4H26"/></svg>',
    "possible": '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><rect class="possible" x="1" y="1" width="14" height="14"/></svg>',
    "belief": '<span class="ramp"></span>',
}


def value(x: float | int | None, unit: str = "", digits: int = 3) -> str:
    """A figure as text, and in full for machines: <data value=...>."""
    if x is None or (isinstance(x, float) and math.isnan(x)):
        return "&ndash;"
    if isinstance(x, int):
        text = f"{x:,}"
    elif math.isinf(x):
        text = "unbounded"
    else:
        text = f"{x:,.{digits}f}"
    return f'<data value="{x!r}">{text}</data>{f" {unit}" if unit else ""}'


def epsilon(x: float) -> str:
    return f'<data value="{x!r}">{x:.6g}</data>'


def share(x: float | None) -> str:
    if x is None or math.isnan(x):
        return "&ndash;"
    return f'<data value="{x!r}">{100 * x:.1f} %</data>'


def interval(pair: Sequence[float | None] | None, percent: bool = False) -> str:
    if pair is None or any(v is None or math.isnan(v) for v in pair):
        return ""
    low, high = (("&infin;" if math.isinf(v) else f"{100 * v:.1f}" if percent else f"{v:.3f}") for v in pair if v is not None)
    return f'<span class="ci">{low}&ndash;{high}{" %" if percent else ""}</span>'


def facts(rows: Sequence[tuple[str, str]]) -> str:
    return '<dl class="facts">' + "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in rows) + "</dl>"


def tile(cls: str, figure: str, label: str) -> str:
    return f'<div class="tile {cls}"><dt>{label}</dt><dd>{figure}</dd></div>'


def banner(heading: str, text: str) -> str:
    return f'<div class="banner" role="note"><p><strong>{heading}</strong>{text}</p></div>'


def section(key: str, heading: str, body: str) -> str:
    return f'<section id="{key}" aria-labelledby="{key}-heading"><h2 id="{key}-heading">{heading}</h2>{body}</section>'


def _line(name: str, text: str) -> str:
    mark = f'<svg width="26" height="8" viewBox="0 0 26 8" aria-hidden="true"><path class="line {name}" d="M0 4H26"/></svg>'
    return f"<li>{mark}{text}</li>"


# -- sections


def policy_section(f: Figures, settings: Sequence[tuple[str, str]], picture: tuple[str, str]) -> str:
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
    left = facts(rows) + _sizes(p["sizes"])
    drawing, caption = picture
    right = f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"
    meaning = "<p>An edge of the policy says: from what is released, nobody may tell these two places apart, within a factor e<sup>&epsilon;</sup>.</p>"
    return section(
        "policy", "Policy", f'{meaning}<div class="pair"><div class="card">{left}</div><div class="card">{right}</div></div>'
    )


def _sizes(sizes: list[list[int]]) -> str:
    if not sizes:
        return ""
    many = sorted(sizes, key=lambda s: -s[1])[:8]
    most = max(count for _, count in many)
    rows = "".join(
        f'<span>{k:,} locations</span><span class="track"><span class="fill" style="width:{100 * c / most:.1f}%"></span></span><span>{c:,}</span>'
        for k, c in sorted(many)
    )
    more = f'<p class="note">and {len(sizes) - len(many)} more sizes.</p>' if len(sizes) > len(many) else ""
    return f'<h3>Components by size</h3><div class="sizes">{rows}</div>{more}'


def certificate_section(f: Figures) -> str:
    c = f["certificate"]
    if c["ok"]:
        verdict = '<p><strong class="good">The promise holds.</strong> '
    else:
        verdict = f'<p><strong class="bad">The promise does not hold:</strong> {escape(c["reason"])}. '
    edges = f"{value(c['edges'])} edges" if c["count"] == 1 else f"every edge of {value(c['count'])} repaired policies"
    if "table" in c["proof"] and "premises" in c["proof"]:
        how = "in integer arithmetic on the very weights that are drawn from, and where a component is too large for a table, through the premises of the theorem that the noise rests on"
    elif "table" in c["proof"]:
        how = "in integer arithmetic, on the very weights that are drawn from"
    else:
        how = "through the premises of the theorem that the noise rests on, checked exactly"
    body = verdict + f"It was proved for {edges}, {how}.</p>"
    rows = [
        ("Promised", f"&epsilon; = {epsilon(c['epsilon'])} {'at each step' if f['mode'] == 'traces' else 'for each release'}"),
        ("Delivered", f"&epsilon; = {value(c['worst'], digits=6)} at worst" if math.isfinite(c["worst"]) else "no edge, nothing to tell apart"),
    ]
    if c["edge"] is not None:
        between = f"between locations {c['edge'][0]} and {c['edge'][1]}"
        rows.append(("Worst case", between + (f", released as {c['output']}" if c["output"] is not None else "")))
    rows.append(("Proof", f"{escape(c['proof'])}, {value(c['shapes'])} shapes" + ("" if c["count"] == 1 else " in the worst policy")))
    if c["rounding"]:
        rows.append(("Rounding adds", f"a total variation of at most {c['rounding']:.1e}"))
    if f.get("remapped"):
        body += "<p>Answers are remapped after they are drawn. That is post-processing: it cannot weaken the promise, which is proved for what is drawn.</p>"
    left = f'<div class="card"><h3 style="margin-top:0">Each release</h3>{body}{facts(rows)}</div>'
    if f["mode"] != "traces":
        more = (
            '<div class="card"><h3 style="margin-top:0">Several releases</h3><p>If the same person is released k times, the promises add up: '
            "k &epsilon; over the same edges. Whoever sees them all learns up to that much.</p></div>"
        )
        return section("certificate", "Certificate", f'<div class="pair">{left}{more}</div>')
    s = f["composition"]
    e = s["epsilon"]
    text = (
        "<p>Releases of one user add up: together they satisfy the sum of their &epsilon;, for the edges that every step kept. "
        f"Over the whole trace that is &epsilon; = {epsilon(e['median'])} for the median user ({epsilon(e['low'])} to {epsilon(e['high'])})"
        + (f", within a budget of {epsilon(s['budget'])}" if s["budget"] is not None else "")
        + ".</p>"
    )
    kept = [user["edges"] for user in s["users"]]
    if kept and max(kept) == 0:
        text += (
            f"<p>No edge was kept through all steps, for any of the {len(kept)} users shown: as users move, what is possible moves along. "
            "So composition alone promises nothing about whole traces here; what was in fact learnt stands above, beside the utility.</p>"
        )
    table = "".join(
        f"<tr><th scope='row'>{escape(user['label'])}</th><td>{epsilon(user['epsilon'])}</td><td>{value(user['edges'])}</td></tr>"
        for user in s["users"]
    )
    text += (
        f'<details{" open" if len(kept) < 6 else ""}><summary>User by user, for those on the map</summary><div class="scroll"><table><thead><tr><th scope="col">User</th>'
        f'<th scope="col">Sum of &epsilon;</th><th scope="col">Edges kept</th></tr></thead><tbody>{table}</tbody></table></div></details>'
    )
    return section("certificate", "Certificate", f'<div class="pair">{left}<div class="card"><h3 style="margin-top:0">The whole trace</h3>{text}</div></div>')


def utility_table(u: Figures, caption: str) -> str:
    def ci(name: str, percent: bool = False) -> str:
        return interval((u.get(f"{name}_low"), u.get(f"{name}_high")), percent)

    rows = [("Mean distance", value(u["e_eu"], "km") + ci("e_eu"))]
    for (q, x), pair in zip(u["quantiles"], u["quantile_intervals"], strict=True):
        rows.append((f"{100 * q:g} % are within", value(x, "km") + interval(pair)))
    if u["e_r"] is not None:
        rows.append(("Other region", share(u["e_r"]) + ci("e_r", True)))
    if u["e_poi"] is not None:
        rows.append(("Other category", share(u["e_poi"]) + ci("e_poi", True)))
    rows.append(("Worst place, mean", value(u["worst"], "km")))
    rows.append(("Farthest", value(u["largest"], "km")))
    body = "".join(f'<tr><th scope="row">{term}</th><td>{text}</td></tr>' for term, text in rows)
    return f'<div class="scroll"><table><caption>{caption}</caption><tbody>{body}</tbody></table></div>'


def balance_section(f: Figures) -> str:
    """What it costs beside what it buys; never one without the other."""
    intro = "<p>Read both columns: noise that costs much and hides little is as bad as noise that costs little because it says everything.</p>"
    if f["mode"] == "traces":
        left, right, charts = _trace_balance(f)
    else:
        left, right, charts = _single_balance(f)
    columns = (
        f'<div class="pair"><div class="card"><h3 style="margin-top:0">Utility: what it costs</h3>{left}</div>'
        f'<div class="card"><h3 style="margin-top:0">Adversary: what it buys</h3>{right}</div></div>'
    )
    drawn = "".join(f'<figure class="card">{chart}</figure>' for chart in charts)
    return section("balance", "Utility and adversary", f'{intro}{columns}<div class="pair" style="margin-top:1rem">{drawn}</div>')


def _trace_balance(f: Figures) -> tuple[str, str, list[str]]:
    a, u = f["attack"], f["utility"]
    percent = f"{100 * LEVEL:g} %"
    true = f["has_truth"]
    if u is not None:
        left = utility_table(u, f"Distance between true and released location: {value(u['count'])} releases; {percent} intervals, users being the sample")
    else:
        left = (
            "<p>Without true locations, the error is what somebody who knows the model and sees all releases expects it to be.</p>"
            + facts([("Mean distance", value(a["utility_km"], "km") + interval(a["utility_interval"]))])
        )
    head = '<th scope="col">Guess</th><th scope="col">expects to be off by (km)</th>'
    head += '<th scope="col">is off by (km)</th><th scope="col">hits the place</th>' if true else ""
    body = ""
    by_name = {row["estimator"]: row for row in a["rows"]}
    for name, plainly in ESTIMATORS.items():
        if name not in by_name:
            continue
        r = by_name[name]
        body += f'<tr{" class=mark" if name == "bayes" else ""}><th scope="row">{plainly}</th><td>{value(r["expected_km"])}{interval(r["expected_interval"])}</td>'
        if true:
            body += f"<td>{value(r['error_km'])}{interval(r['error_interval'])}</td><td>{share(r['hit_rate'])}{interval(r['hit_interval'], True)}</td>"
        body += "</tr>"
    right = (
        '<p class="note">The adversary knows the policy, the mechanism and how people move, and sees every release.</p>'
        f'<div class="scroll"><table><caption>{value(a["users"])} users, {value(a["steps"])} steps, {percent} intervals</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<p>On average {value(a["entropy_bits"], "bits", 2)} of a location stay open; one release raised belief in a place at most by a factor '
        f"e<sup>{a['lift']:.2f}</sup>.</p>"
    )
    c = f["curves"]
    measured = "distance from the truth" if c["kind"] == "error" else "expected distance"
    charts = []
    drawn = {name: c[name] for name in ("release", "guess") if name in c}
    if drawn:
        legend = f'<ul class="legend">{_line("release", "release")}{_line("guess", "best guess, all releases")}</ul>'
        one = next(iter(drawn.values()))["time"]
        band = f"Bands: {percent} intervals of the mean between users." if any(map(math.isfinite, one["high"])) else ""
        grouped = f" Each point is the mean of {one['width']} steps." if one["width"] > 1 else ""
        charts.append(
            svg.time_chart({k: v["time"] for k, v in drawn.items()}, f"mean {measured} (km)", f"Mean {measured} by step, of the release and of the adversary's best guess")
            + f"{legend}<figcaption>Mean {measured} in km, step by step. {band}{grouped}</figcaption>"
        )
        charts.append(
            svg.share_chart({k: v["cdf"] for k, v in drawn.items()}, f"{measured} (km)", f"Share of steps whose {measured} is at most so many km")
            + f"{legend}<figcaption>Share of steps within a distance. Further left is nearer to the truth: the release should be useful, the guess should not.</figcaption>"
        )
    return left, right, charts


def _single_balance(f: Figures) -> tuple[str, str, list[str]]:
    u, s, p = f["expected"], f["utility"], f["privacy"]
    parts = []
    if u is not None:
        parts.append(utility_table(u, f"Expected, computed exactly over {value(u['count'])} locations"))
    else:
        parts.append("<p>The output sets of this mechanism are too large for exact figures" + (".</p>" if s is not None else "; give true and released cells for an estimate.</p>"))
    if s is not None:
        alike = "pairs taken as independent" if not f["clustered"] else "users being the sample"
        parts.append(utility_table(s, f"Estimated from {value(s['count'])} true and released locations; {100 * LEVEL:g} % intervals, {alike}"))
    if p is None:
        right = "<p>The output sets of this mechanism are too large for an exact answer: release traces and attack them (<code>pf.attack</code>).</p>"
    else:
        right = (
            '<p class="note">The adversary knows how likely each place is, the mechanism and the release, and names the place of least expected distance.</p>'
            + facts(
                [
                    ("Best guess is off by", value(p["error"], "km")),
                    ("told the component alone", value(p["told_error"], "km")),
                    ("Bits left open", value(p["entropy"], digits=2)),
                    ("told the component alone", value(p["told_entropy"], digits=2)),
                    ("Belief can rise by", f"a factor e<sup>{p['lift']:.2f}</sup> beyond knowing the component"),
                ]
            )
        )
    charts = []
    first = u or s
    if first is not None:
        bars = [("release", "Release, mean", first["e_eu"])]
        if p is not None:
            bars += [("guess", "Adversary's best guess", p["error"]), ("told", "Guess if told the component only", p["told_error"])]
        bars.append(("release", "Release, worst place", first["worst"]))
        charts.append(
            svg.bar_chart(bars, "expected distance from the truth (km)", "Expected distances: " + "; ".join(f"{b[1]} {b[2]:.3f} km" for b in bars))
            + "<figcaption>The release's error beside the adversary's.</figcaption>"
        )
    if f["curves"]:
        charts.append(
            svg.share_chart(f["curves"], "distance from the truth (km)", "Share of releases that are at most so many km off")
            + "<figcaption>Share of releases within a distance of the truth.</figcaption>"
        )
    return "".join(parts), right, charts


def flags_section(f: Figures) -> str:
    g = f["flags"]
    steps = max(g["steps"], 1)

    def of(n: int) -> str:
        return f"{value(n)} <small>({100 * n / steps:.1f} %)</small>"

    rows = [
        ("Steps with a release", value(g["steps"]), "the rest had no location to release" if g["missing"] else ""),
        ("Steps without", value(g["missing"]), "nothing was said, the belief moved on"),
    ]
    if g["surrogate"] is not None:
        rows.append(("Surrogate", of(g["surrogate"]), "the true location was ruled out; the nearest possible one was released from"))
    else:
        rows.append(("Surrogate", "not told", "depends on true locations, which this report does not hold"))
    rows += [
        ("Exposed", of(g["exposed"]), "only one location was possible: nothing could hide it"),
        ("Some place lost all neighbours", of(g["disconnected"]), "locations that the adversary's knowledge cut off"),
        ("Repaired", of(g["repaired"]), f"{g['edges_added']:,} edges were added in all"),
        ("Possible locations, median", value(g["domain_median"], digits=0), "size of C<sub>t</sub>"),
    ]
    body = "".join(f'<tr><th scope="row">{a}</th><td>{b}</td><td class="why">{c}</td></tr>' for a, b, c in rows)
    table = f'<div class="scroll"><table class="flags"><thead><tr><th scope="col">What</th><th scope="col">Steps</th><th scope="col">Meaning</th></tr></thead><tbody>{body}</tbody></table></div>'
    return section("flags", "Flags", f'<div class="card">{table}</div>')


def map_section(f: Figures, words: Figures, names: Sequence[str], layers: Sequence[tuple[str, str]], users: int) -> str:
    legend = "".join(f"<li>{_LEGENDS[key]}{escape(text)}</li>" for key, text in names)
    boxes = "".join(f'<label><input type="checkbox" data-show="{key}" checked>{text}</label>' for key, text in layers)
    views = "".join(
        f'<label><input type="radio" name="view" value="{key}"{" checked" if key == words["view"] else ""}>{text}</label>'
        for key, text in (("trace", words["whole"]), ("near", "Close by"), ("map", "Whole map"))
    )
    picker = '<label class="grow"><span class="sr">User</span><select id="user" aria-label="User"></select></label>'
    if f["mode"] != "traces":
        picker = '<label hidden><select id="user" aria-label="Set"></select></label>'
    what = (
        "<p>Step through what was released, and what the adversary made of it at that moment.</p>"
        if f["mode"] == "traces"
        else f"<p>{words['intro']}</p>"
    )
    line = ""
    if f["mode"] == "traces":
        said = "Error" if f["has_truth"] else "Expected error"
        line = (
            f'<h3>{said} along this trace</h3><svg id="timeline" class="timeline" aria-hidden="true" viewBox="0 0 320 130"></svg>'
            f'<ul class="legend">{_line("release", "release")}{_line("guess", "best guess so far")}</ul>'
        )
    body = f"""{what}
<div class="card" id="explorer" role="group" aria-label="Map with controls">
<div class="explorer">
<div>
<div id="stage" class="stage" tabindex="0" role="application" aria-roledescription="map" aria-labelledby="map-title" aria-describedby="map-keys">
<svg aria-hidden="true" viewBox="0 0 1 1"></svg>
<span id="map-title" class="sr"></span>
<span class="north" aria-hidden="true">N &uarr;</span><span class="scale" aria-hidden="true"><i id="bar"></i><span id="bar-text"></span></span>
</div>
<div class="controls">
<button id="prev" type="button" aria-label="One {words["step"].lower()} back">&#9664;</button>
<button id="play" type="button" aria-pressed="false">Play</button>
<button id="next" type="button" aria-label="One {words["step"].lower()} on">&#9654;</button>
{picker}
</div>
<label><span class="sr">{words["step"]}</span><input id="scrub" type="range" min="0" max="0" value="0" step="1" aria-label="{words["step"]}"></label>
</div>
<div class="readout">
<h3 id="readout-title"></h3>
<div id="badges" class="badges"></div>
<dl id="readout-facts" class="facts"></dl>
{line}
</div>
<div>
<ul class="legend" aria-label="Legend">{legend}</ul>
<fieldset class="choices"><legend>View</legend>{views}</fieldset>
<fieldset class="choices"><legend>Show</legend>{boxes}</fieldset>
<p class="hint" id="map-keys">On the map: <kbd>&larr;</kbd> <kbd>&rarr;</kbd> one {words["step"].lower()}, <kbd>Home</kbd> <kbd>End</kbd> first and last, <kbd>space</kbd> play{", <kbd>&uarr;</kbd> <kbd>&darr;</kbd> other user" if users > 1 else ""}; or swipe.</p>
</div>
</div>
<p id="live" class="sr" aria-live="polite"></p>
<noscript><p>The map needs JavaScript. Everything else on this page does not.</p></noscript>
</div>"""
    return section("map", words["heading"], body)


def tiles(f: Figures) -> str:
    c = f["certificate"]
    out = [tile("", f"&epsilon; = {epsilon(c['epsilon'])}", "promised at each step" if f["mode"] == "traces" else "promised for each release")]
    verdict = '<span class="good">&#10003; proved</span>' if c["ok"] else '<span class="bad">&#10007; broken</span>'
    out.append(tile("", verdict, f"{c['worst']:.6f} delivered at worst" if math.isfinite(c["worst"]) else "no edge to keep"))
    km = ' <span class="unit">km</span>'
    if f["mode"] == "traces":
        a = f["attack"]
        out.append(tile("release", value(a["utility_km"]) + km, "the release is off by, on average" if f["has_truth"] else "the release is expected to be off by"))
        best = next(r for r in a["rows"] if r["estimator"] == "bayes")
        guess = best["error_km"] if f["has_truth"] else best["expected_km"]
        out.append(tile("guess", value(guess) + km, "the adversary's best guess is off by" if f["has_truth"] else "the adversary's best guess expects to be off by"))
        out.append(tile("", f"{value(f['users'])} <span class='unit'>x</span> {value(f['steps'])}", "users and steps"))
        g = f["flags"]
        flags = g["exposed"] + (g["surrogate"] or 0)
        label = "steps exposed or surrogate" if g["surrogate"] is not None else "steps exposed"
        out.append(tile("", value(flags), f"{label}; {g['repaired']:,} repaired"))
    else:
        u = f["expected"] or f["utility"]
        if u is not None:
            out.append(tile("release", value(u["e_eu"]) + km, "the release is off by, on average"))
        if f["privacy"] is not None:
            out.append(tile("guess", value(f["privacy"]["error"]) + km, "the adversary's best guess is off by"))
    return f'<dl class="tiles" aria-label="At a glance">{"".join(out)}</dl>'


# -- all together


def embed(data: Any) -> str:
    """JSON that cannot end its script element, whatever strings it holds."""
    text = json.dumps(plain(data), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def assemble(title: str, lead: str, banners: str, main: str, footer: str, data: Any) -> str:
    """The whole file. Only this script may run, and nothing may be fetched: the page says so to the browser."""
    here = files(__package__)
    css, js = (here.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "title": escape(title), "css": css, "lead": lead, "banners": banners, "main": main, "footer": footer,
        "data": embed(data), "js": js,
    }  # fmt: skip
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], here.joinpath("page.html").read_text("utf-8"))


def made_with() -> str:
    return f"Made with pglp_fast {escape(__version__)}."
