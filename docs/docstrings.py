"""For the reference: our docstrings say ``name : what it is`` on one line, where the NumPy style would expect a type.

Types are in the signatures; the text after the colon is moved to where a description belongs.
"""

import re
from typing import Any

import griffe

_HEADER = re.compile(r"^(Parameters|Attributes|Returns|Raises|Notes)\n-+\n", re.M)
_ENTRY = re.compile(r"^(\*{0,2}[\w, ]+?) : (.*)$")


def rearranged(text: str) -> str:
    """The docstring with descriptions below names, and returns as a sentence."""
    parts = _HEADER.split(text)
    out = [parts[0]]
    for header, body in zip(parts[1::2], parts[2::2], strict=True):
        if header == "Returns":
            out.append(f"**Returns:** {body.strip()}\n\n")
            continue
        if header in ("Parameters", "Attributes"):
            body = "\n".join(_ENTRY.sub(r"\1\n    \2", line) for line in body.split("\n"))
        out.append(f"{header}\n{'-' * len(header)}\n{body}")
    return "".join(out)


class Descriptions(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = rearranged(obj.docstring.value)
