"""Text tables as bytes: where the fields are, and what numbers and times they spell.

Nothing is copied and no string is made: a field is a span [start, end) of the file's bytes. What a span does not spell
is marked, never guessed; the facade says which line it was.
"""

import numpy as np

from .jit import kernel

NEWLINE, RETURN, QUOTE, SPACE, TAB = 10, 13, 34, 32, 9
PLUS, COMMA, MINUS, DOT, SLASH, COLON = 43, 44, 45, 46, 47, 58
ZERO, NINE, LETTER_T, LETTER_Z = 48, 57, 84, 90

# what is wrong with a row, besides holding another number of fields than it should (then that number)
FINE, UNCLOSED, STRAY = 0, -1, -2
# what is wrong with a field
GOOD, BAD, LONG = 0, 1, 2

MS_DAY = 86_400_000
MONTHS = np.frombuffer(b"janfebmaraprmayjunjulaugsepoctnovdec", np.uint8)


@kernel
def split_rows(data, start, stop, final, delimiter, quoted, wanted, line, row, spans, lines, faults):
    """Fields of whole lines of data[start:stop], from row ``row`` of ``spans`` on: (bytes done, next line, next row).

    ``wanted[f]`` is the slot of ``spans`` (slots, rows, 2) that field f goes to, -1 for none; a row has len(wanted) fields.
    A line without its end is left for the next call unless ``final``. Blank lines are passed over and counted as lines. A
    newline always ends a row.
    """
    capacity, n_fields = spans.shape[1], len(wanted)
    at = start
    while row < capacity and at < stop:
        i, field, fault, open_end = at, 0, FINE, True
        while open_end:
            first, last, escaped = i, -1, False
            if quoted and i < stop and data[i] == QUOTE:
                i += 1
                while i < stop and data[i] != NEWLINE:
                    if data[i] == QUOTE:
                        if i + 1 < stop and data[i + 1] == QUOTE:
                            escaped = True
                            i += 1
                        else:
                            break
                    i += 1
                if i < stop and data[i] == QUOTE:
                    # doubled quotes are undone with the outer ones, where the text is needed
                    first, last = (first, i + 1) if escaped else (first + 1, i)
                    i += 1
                elif fault == FINE:
                    fault = UNCLOSED
            while i < stop and data[i] != delimiter and data[i] != NEWLINE:
                if last >= 0 and data[i] != RETURN and data[i] != SPACE and fault == FINE:
                    fault = STRAY
                i += 1
            if last < 0:
                last = i
                if (i == stop or data[i] == NEWLINE) and last > first and data[last - 1] == RETURN:
                    last -= 1
            if field < n_fields and wanted[field] >= 0:
                spans[wanted[field], row, 0] = first
                spans[wanted[field], row, 1] = last
            field += 1
            open_end = i < stop and data[i] == delimiter
            if open_end:
                i += 1
        if i >= stop and not final:
            break
        blank = field == 1 and (i == at or (i == at + 1 and data[at] == RETURN))
        if not blank:
            lines[row] = line
            faults[row] = fault if fault != FINE else (FINE if field == n_fields else field)
            row += 1
        line += 1
        at = min(i + 1, stop)
    return at, line, row


@kernel
def trim(data, start, end):
    """The span without the spaces around it."""
    while start < end and (data[start] == SPACE or data[start] == TAB):
        start += 1
    while end > start and (data[end - 1] == SPACE or data[end - 1] == TAB):
        end -= 1
    return start, end


@kernel
def is_missing(data, start, end):
    """Nothing, or NaN, NaT, NA, N/A, null, None in any case: what tables write for "no value"."""
    n = end - start
    if n == 0:
        return True
    if n > 4:
        return False
    a, b = data[start] | 32, data[start + 1] | 32 if n > 1 else 0
    c = data[start + 2] | 32 if n > 2 else 0
    d = data[start + 3] | 32 if n > 3 else 0
    if n == 2:
        return a == 110 and b == 97  # na
    if n == 3:  # nan, nat, n/a
        return a == 110 and ((b == 97 and (c == 110 or c == 116)) or (data[start + 1] == SLASH and c == 97))
    if n == 4:  # null, none
        return a == 110 and ((b == 117 and c == 108 and d == 108) or (b == 111 and c == 110 and d == 101))
    return False


@kernel
def long_quotient(mantissa, divisor):
    """(mantissa / divisor to the nearest double, GOOD), or LONG where it is too close to call; 2^53 < mantissa < 2^60.

    The mantissa is the sum of two doubles; a first quotient q leaves a remainder that is a double (q times the divisor by
    Dekker's exact product), and its quotient r makes q + r right to some 2^-100. Their sum rounds as the truth does unless what
    is lost in it comes within 2^-35 of half a unit.
    """
    low = mantissa & np.int64(2047)
    high = np.float64(mantissa - low)
    q = high / divisor
    product = q * divisor
    split = 134217729.0  # 2^27 + 1
    q_high = q * split - (q * split - q)
    q_low = q - q_high
    d_high = divisor * split - (divisor * split - divisor)
    d_low = divisor - d_high
    error = ((q_high * d_high - product) + q_high * d_low + q_low * d_high) + q_low * d_low
    r = ((high - product) - error + np.float64(low)) / divisor
    total = q + r
    lost = (q - total) + r
    return total, GOOD if total + lost * (1.0 + 2.0**-35) == total else LONG


@kernel
def number(data, start, end, powers):
    """(value, GOOD | BAD | LONG) of a decimal number.

    With at most 2^53 for its digits and a power of ten up to 22 both are exact doubles, and one division or
    multiplication rounds once: that is the nearest double (Clinger 1990). Up to 18 digits go through ``long_quotient``. Anything
    else is LONG: sound, but for a slower reader.
    """
    i, sign = start, 1.0
    if i < end and (data[i] == PLUS or data[i] == MINUS):
        sign = -1.0 if data[i] == MINUS else 1.0
        i += 1
    mantissa, exponent, digits, seen = np.int64(0), 0, 0, False
    fraction = False
    while i < end:
        c = data[i]
        if c >= ZERO and c <= NINE:
            seen = True
            if digits < 18:
                mantissa = mantissa * 10 + np.int64(c - ZERO)
            digits += 1 if mantissa > 0 else 0
            exponent -= 1 if fraction else 0
        elif c == DOT and not fraction:
            fraction = True
        else:
            break
        i += 1
    if not seen:
        return np.nan, BAD
    if i < end:
        if data[i] | 32 != 101:  # e
            return np.nan, BAD
        i += 1
        negative = i < end and data[i] == MINUS
        if i < end and (data[i] == PLUS or data[i] == MINUS):
            i += 1
        if i == end or end - i > 4:
            return np.nan, BAD
        power = 0
        while i < end:
            c = data[i]
            if c < ZERO or c > NINE:
                return np.nan, BAD
            power = power * 10 + np.int64(c - ZERO)
            i += 1
        exponent += -power if negative else power
    if mantissa == 0:
        return sign * 0.0, GOOD
    if digits > 18 or exponent > 22 or exponent < -22 or (exponent > 0 and mantissa > (1 << 53)):
        return np.nan, LONG
    value = np.float64(mantissa)
    if exponent >= 0:
        return sign * (value * powers[exponent]), GOOD
    if mantissa <= (1 << 53):
        return sign * (value / powers[-exponent]), GOOD
    value, mark = long_quotient(mantissa, powers[-exponent])
    return sign * value, mark


@kernel
def numbers(data, spans, powers, out, marks):
    """Each span as a number: NaN where nothing is written, and ``marks`` where it is not a number or a long one.

    Plain decimals of up to 18 digits are read here and now: a call that takes an array costs as much as the whole number.
    """
    for r in range(len(spans)):
        i, end = spans[r, 0], spans[r, 1]
        negative = i < end and data[i] == MINUS
        i += negative
        mantissa, first, point = np.int64(0), i, end
        while i < end:
            c = np.int64(data[i]) - ZERO
            if c >= 0 and c <= 9:
                mantissa = mantissa * 10 + c
            elif c == DOT - ZERO and point == end:
                point = i
            else:
                break
            i += 1
            if i - first > 19:
                break
        count = i - first - (point < end)
        if i == end and count > 0 and count <= 18:
            divisor = powers[max(i - point - 1, 0)]
            value, mark = np.float64(mantissa) / divisor, GOOD
            if mantissa > (1 << 53) and divisor > 1:
                value, mark = long_quotient(mantissa, divisor)
            out[r], marks[r] = -value if negative else value, mark
            continue
        start, end = trim(data, spans[r, 0], spans[r, 1])
        marks[r] = GOOD
        if is_missing(data, start, end):
            out[r] = np.nan
        else:
            out[r], marks[r] = number(data, start, end, powers)


@kernel
def copy_spans(data, spans, rows, out):
    """Bytes of some spans, trimmed, padded with zeros to the width of ``out``."""
    for k in range(len(rows)):
        start, end = trim(data, spans[rows[k], 0], spans[rows[k], 1])
        for j in range(out.shape[1]):
            out[k, j] = data[start + j] if start + j < end else 0


@kernel
def digits(data, start, end, least, most):
    """(value, where it stops) of a run of ``least``..``most`` digits; -1 if there is none."""
    value, i = np.int64(0), start
    while i < end and i - start < most and data[i] >= ZERO and data[i] <= NINE:
        value = value * 10 + np.int64(data[i] - ZERO)
        i += 1
    return (value, i) if i - start >= least else (np.int64(-1), i)


@kernel
def days_since_1970(year, month, day):
    """The day's number in the proleptic Gregorian calendar, or the lowest int64 if there is no such day.

    Years are counted from March, so that the leap day comes last: 365 y + y/4 - y/100 + y/400 days to the year, and
    (153 m + 2) / 5 to its month.
    """
    none = np.int64(-(1 << 62))
    if month < 1 or month > 12 or day < 1 or year < 0:
        return none
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    short = month == 4 or month == 6 or month == 9 or month == 11
    if day > (28 + leap if month == 2 else 30 if short else 31):
        return none
    y, m = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719_468


@kernel
def stamp(y3, y2, y1, y0, m1, m0, d1, d0, h1, h0, n1, n0, s1, s0):
    """ms since 1970 of fourteen bytes that should be digits, yyyymmddhhmmss; a number below -2^61 if they are no time."""
    none = np.int64(-(1 << 62))
    for c in (y3, y2, y1, y0, m1, m0, d1, d0, h1, h0, n1, n0, s1, s0):
        if c < ZERO or c > NINE:
            return none
    year = 1000 * np.int64(y3) + 100 * np.int64(y2) + 10 * np.int64(y1) + np.int64(y0) - 1111 * ZERO
    month, day = 10 * np.int64(m1) + np.int64(m0) - 11 * ZERO, 10 * np.int64(d1) + np.int64(d0) - 11 * ZERO
    hour, minute = 10 * np.int64(h1) + np.int64(h0) - 11 * ZERO, 10 * np.int64(n1) + np.int64(n0) - 11 * ZERO
    second = 10 * np.int64(s1) + np.int64(s0) - 11 * ZERO
    days = days_since_1970(year, month, day)
    if days < -(1 << 61) or hour > 23 or minute > 59 or second > 60:
        return none
    return days * MS_DAY + ((hour * 60 + minute) * 60 + second) * 1000


@kernel
def clock(data, start, end):
    """(ms since midnight, where it stops) of hh:mm[:ss[.fraction]]; -1 if it is none. Second 60 is the next minute's 0."""
    hour, i = digits(data, start, end, 1, 2)
    if hour < 0 or hour > 23 or i >= end or data[i] != COLON:
        return np.int64(-1), i
    minute, i = digits(data, i + 1, end, 2, 2)
    if minute < 0 or minute > 59:
        return np.int64(-1), i
    ms = (hour * 60 + minute) * 60_000
    if i < end and data[i] == COLON:
        second, i = digits(data, i + 1, end, 2, 2)
        if second < 0 or second > 60:
            return np.int64(-1), i
        ms += second * 1000
        if i < end and (data[i] == DOT or data[i] == COMMA):
            i += 1
            weight, first = 100, i
            while i < end and data[i] >= ZERO and data[i] <= NINE:
                ms += weight * np.int64(data[i] - ZERO)
                weight //= 10
                i += 1
            if i == first:
                return np.int64(-1), i
    return ms, i


@kernel
def zone(data, start, end):
    """(offset in ms, where it stops, GOOD | BAD) of Z, UTC, +hh, +hhmm or +hh:mm."""
    if data[start] | 32 == 122:  # z
        return np.int64(0), start + 1, GOOD
    if end - start >= 3 and data[start] | 32 == 117 and data[start + 1] | 32 == 116 and data[start + 2] | 32 == 99:  # utc
        return np.int64(0), start + 3, GOOD
    if data[start] != PLUS and data[start] != MINUS:
        return np.int64(0), start, BAD
    hour, i = digits(data, start + 1, end, 2, 2)
    if hour < 0 or hour > 15:
        return np.int64(0), i, BAD
    minute = np.int64(0)
    if i < end and (data[i] == COLON or (data[i] >= ZERO and data[i] <= NINE)):
        if data[i] == COLON:
            i += 1
        minute, i = digits(data, i, end, 2, 2)
        if minute < 0 or minute > 59:
            return np.int64(0), i, BAD
    offset = (hour * 60 + minute) * 60_000
    return -offset if data[start] == MINUS else offset, i, GOOD


@kernel
def date(data, start, end):
    """(day number, where it stops) of yyyy-mm-dd or yyyy/mm/dd; a number below -2^61 if it is none."""
    none = np.int64(-(1 << 62))
    year, i = digits(data, start, end, 4, 4)
    if year < 0 or i >= end or (data[i] != MINUS and data[i] != SLASH):
        return none, i
    separator = data[i]
    month, i = digits(data, i + 1, end, 1, 2)
    if month < 0 or i >= end or data[i] != separator:
        return none, i
    day, i = digits(data, i + 1, end, 1, 2)
    if day < 0:
        return none, i
    return days_since_1970(year, month, day), i


@kernel
def month_number(data, start):
    """1..12 for the three letters of an English month in any case, 0 for none."""
    for m in range(12):
        if (data[start] | 32, data[start + 1] | 32, data[start + 2] | 32) == (
            MONTHS[3 * m],
            MONTHS[3 * m + 1],
            MONTHS[3 * m + 2],
        ):
            return m + 1
    return 0


@kernel
def skip_spaces(data, start, end):
    while start < end and data[start] == SPACE:
        start += 1
    return start


@kernel
def english_time(data, start, end):
    """(ms, GOOD | BAD) of "Tue Apr 03 18:17:18 +0000 2012", as the Foursquare sets write it."""
    if end - start < 26:
        return np.int64(0), BAD
    month = month_number(data, start + 4)
    i = skip_spaces(data, start + 7, end)
    day, i = digits(data, i, end, 1, 2)
    ms, i = clock(data, skip_spaces(data, i, end), end)
    i = skip_spaces(data, i, end)
    if day < 0 or ms < 0 or month == 0 or i >= end:
        return np.int64(0), BAD
    offset, i, mark = zone(data, i, end)
    year, i = digits(data, skip_spaces(data, i, end), end, 4, 4)
    days = days_since_1970(year, month, day)
    if mark == BAD or i != end or days < -(1 << 61):
        return np.int64(0), BAD
    return days * MS_DAY + ms - offset, GOOD


@kernel
def epoch_ms(value):
    """(ms, GOOD | BAD) of a whole number since 1970: its size says whether it counts s, ms, us or ns.

    Up to 11 digits are seconds, 12 and 13 milliseconds, 15 and 16 microseconds, 18 and 19 nanoseconds.
    """
    size = abs(value)
    if size < 100_000_000_000:
        return value * 1000, GOOD
    if size < 10_000_000_000_000:
        return value, GOOD
    if size >= 100_000_000_000_000 and size < 10_000_000_000_000_000:
        return value // 1000, GOOD
    if size >= 100_000_000_000_000_000:
        return value // 1_000_000, GOOD
    return np.int64(0), BAD


@kernel
def written_time(data, start, end, powers):
    """(ms, has its own zone, GOOD | BAD): ISO 8601, the Foursquare form, or a number since 1970."""
    first = data[start]
    if first | 32 >= 97 and first | 32 <= 122:
        ms, mark = english_time(data, start, end)
        return ms, True, mark
    days, i = date(data, start, end)
    if days < -(1 << 61):
        value, stop = digits(data, start + (first == MINUS), end, 1, 19)
        if value >= 0 and stop == end:
            ms, mark = epoch_ms(-value if first == MINUS else value)
            return ms, True, mark
        seconds, mark = number(data, start, end, powers)
        if mark != GOOD or abs(seconds) >= 1e11:
            return np.int64(0), True, BAD
        return np.int64(np.floor(seconds * 1000 + 0.5)), True, GOOD
    if i == end:
        return days * MS_DAY, False, GOOD
    if data[i] | 32 != 116 and data[i] != SPACE:  # t
        return np.int64(0), False, BAD
    ms, i = clock(data, skip_spaces(data, i + 1, end), end)
    i = skip_spaces(data, i, end)
    if ms < 0:
        return np.int64(0), False, BAD
    if i == end:
        return days * MS_DAY + ms, False, GOOD
    offset, i, mark = zone(data, i, end)
    return days * MS_DAY + ms - offset, True, GOOD if mark == GOOD and i == end else BAD


@kernel
def times(data, spans, powers, none, out, zoned, marks):
    """Each span as ms since 1970, ``none`` where nothing is written; ``zoned`` if the text says which zone it means.

    What nearly all files write, yyyy-mm-ddThh:mm:ss with or without a fraction and Z, is read here and now.
    """
    for r in range(len(spans)):
        i, end = spans[r, 0], spans[r, 1]
        marks[r], zoned[r] = GOOD, True
        if (
            end - i >= 19 and data[i + 4] == MINUS and data[i + 7] == MINUS and data[i + 13] == COLON and data[i + 16] == COLON
            and (data[i + 10] == SPACE or data[i + 10] == LETTER_T)
        ):  # fmt: skip
            ms = stamp(
                data[i], data[i + 1], data[i + 2], data[i + 3], data[i + 5], data[i + 6], data[i + 8], data[i + 9],
                data[i + 11], data[i + 12], data[i + 14], data[i + 15], data[i + 17], data[i + 18],
            )  # fmt: skip
            at = i + 19
            if at + 1 < end and data[at] == DOT:
                at += 1
                weight = 100
                while at < end and data[at] >= ZERO and data[at] <= NINE:
                    ms += weight * (np.int64(data[at]) - ZERO)
                    weight //= 10
                    at += 1
            utc = (at + 1 == end and data[at] == LETTER_Z) or (
                at + 6 == end and data[at] == PLUS and data[at + 3] == COLON
                and data[at + 1] == ZERO and data[at + 2] == ZERO and data[at + 4] == ZERO and data[at + 5] == ZERO
            )  # fmt: skip
            if ms > -(1 << 61) and (at == end or utc):
                out[r], zoned[r] = ms, utc
                continue
        start, end = trim(data, spans[r, 0], spans[r, 1])
        if is_missing(data, start, end):
            out[r] = none
        else:
            out[r], zoned[r], marks[r] = written_time(data, start, end, powers)


@kernel
def dates_and_clocks(data, date_spans, clock_spans, out, marks):
    """ms since 1970 of a date in one column and a time of day in another."""
    for r in range(len(date_spans)):
        i, j = date_spans[r, 0], clock_spans[r, 0]
        if (
            date_spans[r, 1] - i == 10 and data[i + 4] == MINUS and data[i + 7] == MINUS
            and clock_spans[r, 1] - j == 8 and data[j + 2] == COLON and data[j + 5] == COLON
        ):  # fmt: skip
            ms = stamp(
                data[i], data[i + 1], data[i + 2], data[i + 3], data[i + 5], data[i + 6], data[i + 8], data[i + 9],
                data[j], data[j + 1], data[j + 3], data[j + 4], data[j + 6], data[j + 7],
            )  # fmt: skip
            if ms > -(1 << 61):
                out[r], marks[r] = ms, GOOD
                continue
        start, end = trim(data, date_spans[r, 0], date_spans[r, 1])
        days, stop = date(data, start, end)
        begin, last = trim(data, clock_spans[r, 0], clock_spans[r, 1])
        ms, after = clock(data, begin, last)
        marks[r] = GOOD if days > -(1 << 61) and stop == end and ms >= 0 and after == last else BAD
        out[r] = days * MS_DAY + ms if marks[r] == GOOD else 0


@kernel
def epochs(values, out, marks):
    """Whole numbers since 1970 as ms."""
    for r in range(len(values)):
        out[r], marks[r] = epoch_ms(values[r])
