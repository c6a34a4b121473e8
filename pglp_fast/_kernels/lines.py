"""Lines of a text table, with something added at their ends."""

import numpy as np

from .jit import kernel

_QUOTE, _RETURN, _NEWLINE, _SPACE = 34, 13, 10, 32


@kernel
def count_fields(data, start, stop, delimiter):
    """Fields of the line data[start:stop] (without its end), -1 where a quote is not closed or text follows a closing one."""
    i, fields = start, 1
    while i < stop:
        if data[i] == _QUOTE:
            i += 1
            closed = False
            while i < stop and not closed:
                if data[i] == _QUOTE:
                    if i + 1 < stop and data[i + 1] == _QUOTE:
                        i += 1
                    else:
                        closed = True
                i += 1
            if not closed:
                return -1
            while i < stop and data[i] != delimiter:
                if data[i] != _SPACE:
                    return -1
                i += 1
        else:
            while i < stop and data[i] != delimiter:
                i += 1
        if i < stop:  # a delimiter: one more field, be it empty
            fields += 1
            i += 1
    return fields


@kernel
def join_lines(data, starts, stops, delimiter, dropped, tails, tail_starts, which, out):
    """Each line without the fields that are dropped, then its tail, then its own line end; returns the bytes written.

    ``stops`` are where the newlines stand (or the text ends); tail ``which[k]`` of line k starts with a delimiter. A line that
    loses fields keeps the delimiters between those left.
    """
    to = 0
    some_dropped = dropped.any()
    for k in range(len(starts)):
        start, stop = starts[k], stops[k]
        returns = stop > start and data[stop - 1] == _RETURN
        if returns:
            stop -= 1
        if not some_dropped:
            for i in range(start, stop):
                out[to] = data[i]
                to += 1
        else:
            i, field, written = start, 0, 0
            while True:
                keep = field >= len(dropped) or not dropped[field]
                if keep and written > 0:
                    out[to] = delimiter
                    to += 1
                inside = i < stop and data[i] == _QUOTE
                first = i
                while i < stop and (inside or data[i] != delimiter):
                    if inside and i > first and data[i] == _QUOTE:
                        if i + 1 < stop and data[i + 1] == _QUOTE:
                            if keep:
                                out[to] = data[i]
                                to += 1
                            i += 1
                        else:
                            inside = False
                    if keep:
                        out[to] = data[i]
                        to += 1
                    i += 1
                field += 1
                written += keep
                if i >= stop:
                    break
                i += 1
        for i in range(tail_starts[which[k]], tail_starts[which[k] + 1]):
            out[to] = tails[i]
            to += 1
        if returns:
            out[to] = _RETURN
            to += 1
        out[to] = _NEWLINE
        to += 1
    return to


@kernel
def add_hashes(codes, ms, lat_bits, lon_bits, sums, counts):
    """Adds to each user's sum a 64-bit mix of the time and place of each of its rows: the order of rows does not matter."""
    a, b, c = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for k in range(len(codes)):
        if codes[k] >= 0:
            z = a
            for word in (ms[k], lat_bits[k], lon_bits[k]):
                z = (z ^ word) + a
                z = (z ^ (z >> np.uint64(30))) * b
                z = (z ^ (z >> np.uint64(27))) * c
                z = z ^ (z >> np.uint64(31))
            sums[codes[k]] += z
            counts[codes[k]] += 1
