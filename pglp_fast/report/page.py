"""Pieces of the page, and the page.

Everything that comes from outside passes through ``escape``.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from pglp_fast._util.json_values import plain
from pglp_fast._version import __version__

from .measures import Figures


def value(x: float | int | None, unit: str = "", digits: int = 3) -> str:
    """A figure as text, and in full for machines: <data value=...>."""
    if x is None or math.isnan(x):
        return "&ndash;"
    text = f"{x:,}" if isinstance(x, int) else "unbounded" if math.isinf(x) else f"{x:,.{digits}f}"
    return f'<data value="{x!r}">{text}</data>{f" {unit}" if unit else ""}'


def epsilon(x: float) -> str:
    return f'<data value="{x!r}">{x:.6g}</data>'


def share(x: float | None) -> str:
    return (
        "&ndash;" if x is None or math.isnan(x) else f'<data value="{x!r}">{100 * x:.1f} %</data>'
    )


def interval(pair: Sequence[float | None] | None, percent: bool = False) -> str:
    """In small print below a figure; nothing where nothing is known."""
    if pair is None or any(v is None or math.isnan(v) for v in pair):
        return ""
    low, high = (
        ("&infin;" if math.isinf(v) else f"{100 * v:.1f}" if percent else f"{v:.3f}")
        for v in pair
        if v is not None
    )
    return f'<span class="ci">{low}&ndash;{high}{" %" if percent else ""}</span>'


def facts(rows: Sequence[tuple[str, str]]) -> str:
    return (
        '<dl class="facts">'
        + "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in rows)
        + "</dl>"
    )


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    cls: str = "",
    mark: int = -1,
) -> str:
    """The first cell of a row is its heading; row ``mark`` stands out."""
    top = f"<caption>{caption}</caption>" if caption else ""
    if head:
        top += (
            "<thead><tr>"
            + "".join(f'<th scope="col">{text}</th>' for text in head)
            + "</tr></thead>"
        )
    body = ""
    for k, (first, *rest) in enumerate(rows):
        cells = "".join(f"<td>{text}</td>" for text in rest)
        body += f'<tr{" class=mark" if k == mark else ""}><th scope="row">{first}</th>{cells}</tr>'
    named = f" class={cls}" if cls else ""
    whole = f"<table{named}>{top}<tbody>{body}</tbody></table>"
    return f'<div class="scroll">{whole}</div>'


def card(heading: str, body: str) -> str:
    return f'<div class="card"><h3>{heading}</h3>{body}</div>'


def pair(left: str, right: str) -> str:
    return f'<div class="pair">{left}{right}</div>'


def banner(heading: str, text: str) -> str:
    return f'<div class="banner" role="note"><p><strong>{heading}</strong>{text}</p></div>'


def section(key: str, heading: str, body: str) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-heading"><h2 '
        f'id="{key}-heading">{heading}</h2>{body}</section>'
    )


def icon(width: int, height: int, drawing: str) -> str:
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'aria-hidden="true">{drawing}</svg>'
    )


def line_legend(names: Sequence[tuple[str, str]]) -> str:
    """(class, text) of each line of a chart."""
    items = "".join(
        f'<li>{icon(26, 8, f"""<path class="line {name}" d="M0 4H26"/>""")}{text}</li>'
        for name, text in names
    )
    return f'<ul class="legend">{items}</ul>'


# -- all together


def embed(data: Any) -> str:
    """JSON that cannot end its script element, whatever strings it holds."""
    text = json.dumps(plain(data), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def template(name: str, **parts: str) -> str:
    """A file of this folder with its {{places}} filled, in one pass: what is filled in is not
    looked at again."""
    return re.sub(
        r"\{\{(\w+)\}\}",
        lambda m: parts[m[1]],
        files(__package__).joinpath(name).read_text("utf-8"),
    )


def assemble(
    title: str, lead: str, banners: str, main: str, notes: Sequence[str], data: Figures
) -> str:
    """The whole file.

    Only its own script may run, and nothing may be fetched: the page tells the browser so.
    """
    css, js, embedded = template("page.css"), template("page.js"), embed(data)
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    held = (
        f"it holds {len(embedded) / 1e3:,.0f} kB of figures as JSON, in the element with the id "
        "&quot;data&quot;"
    )
    said = (
        "".join(f"<li>{escape(note)}</li>" for note in notes)
        + f"<li>One file, nothing is fetched: {held}.</li>"
    )
    return template(
        "page.html",
        policy=f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        title=escape(title),
        css=css,
        lead=lead,
        banners=banners,
        main=main,
        data=embedded,
        js=js,
        footer=(
            f"<h2>About this file</h2><ul>{said}</ul><p>Made with pglp_fast "
            f"{escape(__version__)}.</p>"
        ),
    )
