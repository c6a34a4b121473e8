"""Errors of the library, said in the words of the command line."""

import re

_COLUMNS = re.compile(r'columns=\{"user": \.\.\., "time": \.\.\., "lat": \.\.\., "lon": \.\.\.\}')
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_COLUMNS, "--columns user=...,time=...,lat=...,lon=..."),
    (re.compile(r"columns=\{'(\w+)': '([^']*)'\}"), r"--columns \1=\2"),
    (
        re.compile(r"\(or give names=\[\.\.\.\] of its columns\)"),
        "(or give the names of its columns with --names)",
    ),
    (
        re.compile(r"on_error='skip' leaves such rows out and reports them"),
        "--on-error skip goes on without such rows",
    ),
    (re.compile(r"\bon_error='skip'"), "--on-error skip"),
    (re.compile(r"\btime_format=('[^']*')"), r"--time-format \1"),
    (re.compile(r"\ballow_outside=True"), "--allow-outside"),
    (re.compile(r"\b(force|resume)=True"), r"--\1"),
    (re.compile(r"\b(labels|mobility)=([A-Z]+)"), r"--\1 \2"),
    (re.compile(r"^(labels|delta|repair|likelihood|step|prefix|names|delimiter) "), r"--\1 "),
    (re.compile(r"\b(leave|with|raise) (?:the )?(step|prefix|budget)\b"), r"\1 --\2"),
    (re.compile(r"^rng must be"), "--seed must be"),
    (re.compile(r"\bgive max_gap, so"), "give --max-gap, so"),
    (
        re.compile(
            r"\b(epsilon|policy|mechanism|calibration|remap|repair|delta|likelihood|step)='([^']*)'"
        ),
        r"--\1 \2",
    ),
    (re.compile(r"use pf\.complete$"), "use --policy complete"),
    (re.compile(r"with max_gap$"), "with --max-gap"),
)


def as_options(error: BaseException) -> str:
    """The message of an error, with options where the library names arguments."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = str(error)
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text
