"""Griffe extension for the reference pages.

Docstrings of the package say ``name : description`` on one line, where the NumPy style expects a
type. Types are in the signatures. This extension moves the description below the name, and gives a
one-sentence ``Returns`` section the type of the signature.
"""

import re
from typing import Any

import griffe

_HEADER = re.compile(r"^(Parameters|Attributes|Returns|Raises|Notes)\n-+\n", re.M)
_ENTRY = re.compile(r"^(\*{0,2}[\w, ]+?) : (.*)$")


def rearranged(text: str, returns: str = "") -> str:
    """The docstring in NumPy style: descriptions below names.

    Parameters
    ----------
    text : a docstring
    returns : the annotation of the returned value
    """
    parts = _HEADER.split(text)
    out = [parts[0]]
    for header, body in zip(parts[1::2], parts[2::2], strict=True):
        if header in ("Parameters", "Attributes"):
            body = "\n".join(_ENTRY.sub(r"\1\n    \2", line) for line in body.split("\n"))
        elif (
            header == "Returns" and "\n    " not in body
        ):  # sentences only, no indented description
            # A bare paragraph would be read as one more parameter of the section before.
            lines = "\n    ".join(body.strip().splitlines())
            body = f"{returns or 'object'}\n    {lines}\n\n"
        out.append(f"{header}\n{'-' * len(header)}\n{body}")
    return "".join(out)


class Descriptions(griffe.Extension):
    """Rearranges every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            returns = str(getattr(obj, "returns", None) or "")
            obj.docstring.value = rearranged(obj.docstring.value, returns)
