"""How golden results are kept and compared.

A case is a name and a tree of dicts, lists, texts, numbers and arrays. Trees of a group of cases
go to ``data/<group>.json`` (zipped where it is long); the arrays in it to ``data/<group>.npz``, all
of a kind end to end.

Integers, flags and texts must be the same. The same machine gives the same bits, but another one's
exp and log may differ in the last: floats, those in texts too, may differ by 1e-12 of their size or
1e-14, the integer weights of tables (uint64) by 2**-28 of their sum 2**63, for a last bit decides
how a row is filled up. ``PGLP_GOLDEN_EXACT=1`` asks for the same bits.
"""

import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent / "data"
RELATIVE, ABSOLUTE = 1e-12, 1e-14
WEIGHT = np.uint64(1 << 35)
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
KINDS = {"f": np.float64, "i": np.int64, "u": np.uint64}
FREELY_WRAPPED = ("cli_help",)  # groups of texts that are compared word by word
LONG = 60_000  # characters from which a text is zipped
LARGEST = 400  # entries of an array that are kept as they are


def digest(data):
    if isinstance(data, str):
        data = data.encode()
    return hashlib.sha256(data).hexdigest()


def small(array):
    """Of an array that is too long to keep: a digest of integers, weighted sums of floats."""
    array = np.asarray(array)
    if array.size <= LARGEST:
        return array
    if array.dtype.kind == "f":
        rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array[None]
        weight = 1.0 / np.arange(1, rows.shape[1] + 1)
        return {"shape": list(array.shape), "sums": [float((row * weight).sum()) for row in rows]}
    whole = np.ascontiguousarray(array, dtype=np.uint64 if array.dtype == np.uint64 else np.int64)
    first = whole.reshape(-1)[:8].tolist()
    return {"shape": list(array.shape), "sha256": digest(whole.tobytes()), "first": first}


def plain(value):
    """Trees as they are kept: keys are texts, numbers Python's, arrays of one of three kinds."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "Mm":
            value = value.astype("int64")
        if value.dtype.kind in "OUS":
            return [plain(v) for v in value.tolist()]
        value = small(value)
        if isinstance(value, dict):
            return plain(value)
        kind = "u" if value.dtype == np.uint64 else "f" if value.dtype.kind == "f" else "i"
        return np.ascontiguousarray(value, dtype=KINDS[kind])
    if isinstance(value, np.generic):
        return plain(value.item())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"golden results hold no {type(value).__name__}")


class Packer:
    """Arrays end to end, each distinct one once."""

    def __init__(self):
        self.parts = {kind: [] for kind in KINDS}
        self.length = dict.fromkeys(KINDS, 0)
        self.seen = {}

    def pack(self, value):
        if isinstance(value, dict):
            return {k: self.pack(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.pack(v) for v in value]
        if not isinstance(value, np.ndarray):
            return value
        kind = {"float64": "f", "int64": "i", "uint64": "u"}[value.dtype.name]
        key = (kind, value.tobytes())
        if key not in self.seen:
            self.seen[key] = self.length[kind]
            self.parts[kind].append(value.reshape(-1))
            self.length[kind] += value.size
        return {"@": kind, "at": self.seen[key], "shape": list(value.shape)}

    def arrays(self):
        return {
            kind: np.concatenate([np.empty(0, KINDS[kind]), *parts])
            for kind, parts in self.parts.items()
        }


def unpack(value, arrays):
    if isinstance(value, dict):
        if "@" in value:
            length = int(np.prod(value["shape"], dtype=np.int64))
            flat = arrays[value["@"]][value["at"] : value["at"] + length]
            return flat.reshape(value["shape"])
        return {k: unpack(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [unpack(v, arrays) for v in value]
    return value


def write(group, cases):
    """``cases``: name -> tree."""
    DATA.mkdir(exist_ok=True)
    packer = Packer()
    trees = {name: packer.pack(plain(tree)) for name, tree in cases.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(tree)}" for name, tree in trees.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    for old in DATA.glob(f"{group}.json*"):
        old.unlink()
    if len(text) < LONG:
        (DATA / f"{group}.json").write_text(text, encoding="utf-8")
    else:
        (DATA / f"{group}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    np.savez_compressed(DATA / f"{group}.npz", **packer.arrays())


def read(group):
    with np.load(DATA / f"{group}.npz") as file:
        arrays = {kind: file[kind] for kind in KINDS}
    path = DATA / f"{group}.json"
    if path.exists():
        text = path.read_text(encoding="utf-8")
    else:
        text = gzip.decompress((DATA / f"{group}.json.gz").read_bytes()).decode()
    trees = json.loads(text)
    return {name: unpack(tree, arrays) for name, tree in trees.items()}


def _close(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not _exact():
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= RELATIVE * np.maximum(np.abs(a), np.abs(b)) + ABSOLUTE
        same |= near & np.isfinite(a) & np.isfinite(b)
    return same


def _exact():
    return os.environ.get("PGLP_GOLDEN_EXACT", "0") != "0"


def _same_text(a, b):
    """Whether two texts differ in nothing but the last digits of numbers."""
    if a == b:
        return True
    x, y = NUMBER.findall(a), NUMBER.findall(b)
    if _exact() or len(x) != len(y) or NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    return bool(_close([float(v) for v in x], [float(v) for v in y]).all())


def figures(text):
    """Of JSON that is too long to keep: a digest of all but its floats, and a weighted sum."""
    floats = []

    def without(value):
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items()}
        if isinstance(value, list):
            return [without(v) for v in value]
        if isinstance(value, float):
            floats.append(value)
            return "float"
        return value

    rest = digest(json.dumps(without(json.loads(text))))
    weight = 1.0 / np.arange(1, len(floats) + 1)
    return {"sha256": rest, "floats": len(floats), "sum": float((np.array(floats) * weight).sum())}


def differences(now, then, where=""):
    """What differs between two trees, in words; at most a few for each place."""
    if isinstance(now, np.ndarray) or isinstance(then, np.ndarray):
        yield from _array_differences(now, then, where)
    elif isinstance(now, dict) and isinstance(then, dict):
        for key in [*then, *(k for k in now if k not in then)]:
            if key not in now or key not in then:
                yield f"{where}.{key}: {'gone' if key in then else 'new'}"
            else:
                yield from differences(now[key], then[key], f"{where}.{key}")
    elif isinstance(now, list) and isinstance(then, list):
        if len(now) != len(then):
            yield f"{where}: {len(now)} entries now, {len(then)} recorded: {now} / {then}"[:1500]
            return
        for k, (a, b) in enumerate(zip(now, then, strict=True)):
            yield from differences(a, b, f"{where}[{k}]")
    elif isinstance(now, float) and isinstance(then, float):
        if not _close(now, then):
            yield f"{where}: {now!r} now, {then!r} recorded"
    elif isinstance(now, str) and isinstance(then, str):
        if not _same_text(now, then):
            yield from _text_differences(now, then, where)
    elif type(now) is not type(then) or now != then:
        yield from _text_differences(now, then, where)


def _text_differences(now, then, where):
    if isinstance(now, str) and isinstance(then, str) and ("\n" in now or "\n" in then):
        a, b = now.split("\n"), then.split("\n")
        if len(a) != len(b):
            yield f"{where}: {len(a)} lines now, {len(b)} recorded"
        for k, (x, y) in enumerate(zip(a, b, strict=False)):
            if not _same_text(x, y):
                yield f"{where}, line {k + 1}:\n      now      {x}\n      recorded {y}"
                return
        return
    yield f"{where}: {now!r} now, {then!r} recorded"


def _array_differences(now, then, where):
    if not isinstance(now, np.ndarray) or not isinstance(then, np.ndarray):
        yield f"{where}: {now!r} now, {then!r} recorded"
    elif now.dtype != then.dtype or now.shape != then.shape:
        a, b = f"{now.dtype}{now.shape}", f"{then.dtype}{then.shape}"
        yield f"{where}: {a} now, {b} recorded"
    else:
        same = _close(now, then) if now.dtype.kind == "f" else now == then
        if now.dtype == np.uint64 and not _exact():
            same |= np.maximum(now, then) - np.minimum(now, then) <= WEIGHT
        bad = np.argwhere(~same)
        if len(bad):
            at = tuple(bad[0].tolist())
            first = f"at {at} {now[at]!r} now, {then[at]!r} recorded"
            yield f"{where}: {len(bad)} of {now.size} differ; {first}"


def _unwrapped(tree):
    """Texts as their words: where a line is broken does not matter."""
    if isinstance(tree, dict):
        return {key: _unwrapped(value) for key, value in tree.items()}
    return " ".join(tree.replace("\\\n", " ").split()) if isinstance(tree, str) else tree


def compare(group, cases):
    """Messages for all cases of a group that are not as recorded."""
    recorded = read(group)
    if group in FREELY_WRAPPED:
        recorded, cases = _unwrapped(recorded), _unwrapped(cases)
    messages = [
        f"{group}: {name} is recorded and is gone" for name in recorded if name not in cases
    ]
    for name, tree in cases.items():
        if name not in recorded:
            messages.append(f"{group}: {name} is not recorded")
            continue
        wrong = list(differences(plain(tree), recorded[name]))
        messages += [f"{group}: {name}{line}" for line in wrong[:5]]
        if len(wrong) > 5:
            messages.append(f"{group}: {name}: {len(wrong) - 5} more")
    return messages
