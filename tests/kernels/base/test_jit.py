"""Compiled kernels on disk: never stale, never in the way."""

import os
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numba
import pytest

from cases import ROOT
from pglp_fast._kernels.base import jit

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

# bits.popcount calls bits.popcount1
COUNT = """
import numpy as np
from pglp_fast._kernels.base import bits, jit
found = int(bits.popcount(np.array([3, 5], np.uint64)))
folder = next((f for p, f in jit.FOLDERS.items() if p.name == "bits.py"), None)
print(found, sum(bits.popcount.entry.stats.cache_hits.values()), folder)
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that may be edited, with nothing compiled."""
    shutil.copytree(
        ROOT / "pglp_fast",
        tmp_path / "copy" / "pglp_fast",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path / "copy"


def start(copy, script=COUNT, stdin=None, **environment):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-W", "always", "-c", script],
        env={**inherited, "PYTHONPATH": str(copy), **environment},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=copy,
    )


def finish(process):
    """(count, number of cache hits, cache folder), and what went to standard error."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    count, hits, folder = out.split(maxsplit=2)
    return (int(count), int(hits), folder.strip()), err


def files(folder):
    """Compiled kernels, without the locks beside them."""
    return sorted(p for p in Path(folder).rglob("[!.]*-*") if p.is_file())


def test_an_edited_kernel_recompiles_its_callers(copy):
    """In another file, where Numba's own cache would go on answering 4."""
    bits = copy / "pglp_fast" / "_kernels" / "base" / "bits.py"
    text = bits.read_text()
    start_of = text.index("@bare\ndef popcount1(word):")
    stop_of = text.index("@bare\ndef lowest1")
    called = text[start_of:stop_of]
    names = "import numpy as np\n\nfrom .jit import bare\n"
    constants = "".join(
        line + "\n" for line in text.splitlines() if line.startswith(("_ONE", "_M")) and "=" in line
    )
    bits.write_text(
        text[:start_of].replace(
            "from .jit import", "from .counting import popcount1\nfrom .jit import"
        )
        + text[stop_of:]
    )
    counting = bits.with_name("counting.py")
    counting.write_text(names + constants + called)
    (found, hits, folder), _ = finish(start(copy))
    assert (found, hits) == (4, 0)
    assert finish(start(copy))[0] == (4, 1, folder)
    counting.write_text(names + constants + called.replace("return np.int64(", "return 100 + ("))
    (found, hits, other), _ = finish(start(copy))
    assert (found, hits) == (204, 0)
    assert other != folder


def test_the_user_says_where(copy, tmp_path):
    (_, _, folder), _ = finish(start(copy, NUMBA_CACHE_DIR=str(tmp_path / "here")))
    assert Path(folder).parent == tmp_path / "here" / "pglp_fast"
    assert files(folder)


def test_code_that_is_compiled_in_another_way_does_not_mix(copy):
    folders = set()
    for way in ({}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_OPT": "1"}):
        (_, hits, folder), _ = finish(start(copy, **way))
        assert hits == 0
        folders.add(folder)
    assert len(folders) == 3


def test_the_users_own_folder_where_the_package_cannot_be_written_to(copy, tmp_path):
    (copy / "pglp_fast" / "_kernels" / "__pycache__").touch()  # no folder, even for root
    (_, _, folder), err = finish(
        start(copy, XDG_CACHE_HOME=str(tmp_path / "cache"), HOME=str(tmp_path))
    )
    assert tmp_path in Path(folder).parents
    assert copy not in Path(folder).parents
    assert "RuntimeWarning" not in err


def test_nowhere_to_write_to(copy):
    (copy / "pglp_fast" / "_kernels" / "__pycache__").touch()
    (found, hits, folder), err = finish(
        start(copy, HOME="/dev/null", XDG_CACHE_HOME="/dev/null/cache")
    )
    assert (found, hits, folder) == (4, 0, "None")
    assert err.count("set NUMBA_CACHE_DIR") == 1
    (found, hits, folder), err = finish(start(copy, NUMBA_CACHE_DIR="/dev/null/cache"))
    assert (found, hits, folder) == (4, 0, "None")


def test_where_warnings_are_errors_importing_still_works():
    """Nothing is compiled here: the note on folders comes with the import."""
    script = (
        "from pglp_fast import Grid; from pglp_fast._kernels.base import jit; print(jit.FOLDERS)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": "/dev/null/cache"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.strip() == "{}", done.stderr


def test_damaged_files_are_compiled_again(copy):
    (_, _, folder), _ = finish(start(copy))
    for damage in (
        lambda text: b"",
        lambda text: text[: len(text) // 2],
        lambda text: text[:-1] + bytes([text[-1] ^ 1]),
    ):
        for path in files(folder):
            path.write_bytes(damage(path.read_bytes()))
        assert finish(start(copy))[0] == (4, 0, folder)
    assert finish(start(copy))[0] == (4, 1, folder)


def test_two_processes_on_an_empty_cache(copy):
    """And with different signatures, which Numba's index of a kernel may mix up."""
    other = COUNT.replace("np.array([3, 5], np.uint64)", "np.array([3, 5, 0, 1], np.uint64)[::2]")
    both = [start(copy), start(copy, other), start(copy)]
    assert [finish(p)[0][0] for p in both] == [4, 2, 4]
    assert [finish(start(copy, script))[0][:2] for script in (COUNT, other)] == [(4, 1), (2, 1)]


def test_of_two_processes_one_compiles(copy):
    """The other waits, and reads what was compiled: also when it is not the first that asks."""
    script = "import sys\nsys.stdin.readline()\n" + COUNT
    both = [start(copy, script, stdin=subprocess.PIPE) for _ in range(4)]
    for process in both:  # all are ready before the first may go
        process.stdin.write("\n")
    for process in both:
        process.stdin.close()
        process.stdin = None
    answers = [finish(process)[0] for process in both]
    assert sorted(hits for _, hits, _ in answers) == [0, 1, 1, 1]


def test_a_process_that_dies_while_it_compiles_keeps_nobody_waiting(copy):
    """Its lock goes with it."""
    script = COUNT.replace(
        "found =",
        "import os\nwith bits.popcount.entry._alone():\n    os.kill(os.getpid(), 9)\nfound =",
    )
    start(copy, script).communicate(timeout=600)
    assert finish(start(copy))[0][:2] == (4, 0)


def test_old_folders_are_removed_when_a_new_one_is_made(copy, tmp_path):
    """Those of the same kernel file, but for the three used last, and all after a month."""
    parent = tmp_path / "here" / "pglp_fast"
    ages = {"base-bits-a": 1, "base-bits-b": 40, "base-chacha-a": 99}
    ages |= {f"base-growing-{i}": i for i in range(1, 6)}
    for name, days in ages.items():
        (parent / f"kernels-{name}").mkdir(parents=True)
        os.utime(parent / f"kernels-{name}", (time.time() - 86400 * days,) * 2)
    script = COUNT.replace("import bits, jit", "import bits, growing, jit")
    (_, _, folder), _ = finish(start(copy, script, NUMBA_CACHE_DIR=str(tmp_path / "here")))
    left = {p.name.removeprefix("kernels-") for p in parent.iterdir()}
    growing = {name for name in left if name.startswith("base-growing-")}
    assert growing >= {f"base-growing-{i}" for i in (1, 2, 3)}
    assert len(growing) == 4
    imported = {name for name in left if name.startswith("base-sorting-")}  # by bits
    others = {Path(folder).name[8:], "base-bits-a", "base-chacha-a"}
    assert left - growing - imported == others


def test_digests_follow_imports(tmp_path):
    """Every way to write an import, over several files, and in a circle."""
    texts = {
        "__init__.py": "",
        "low/__init__.py": "",
        "low/a.py": "x = 1\n",
        "low/b.py": "from .a import x\n",
        "low/c.py": "from . import (\n    b,\n)\n",
        "high/__init__.py": "from pglp_fast._kernels.low.c import y\n",
        "high/d.py": "import pglp_fast._kernels.high\n",
        "high/e.py": "from pglp_fast._kernels.high import f as other\n",
        "high/f.py": "if True:\n    import pglp_fast._kernels.high.e as h\n",
        "high/g.py": "# from nowhere\n",
    }

    def digests(**changed):
        for name, text in texts.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(changed.get(Path(name).stem, text))
        found = jit.source_digests(tmp_path)
        return {p.relative_to(tmp_path).as_posix(): d for p, d in found.items()}

    before = digests()
    assert before == digests()
    assert len(before) == 10

    def changed(name):
        after = digests(**{name: texts[next(t for t in texts if t.endswith(f"/{name}.py"))] + "#"})
        return {Path(p).stem for p in before if before[p] != after[p]}

    assert changed("a") == {"a", "b", "c", "__init__", "d", "e", "f"}
    assert changed("c") == {"c", "__init__", "d", "e", "f"}
    assert changed("e") == changed("f") == {"e", "f"}
    assert changed("g") == {"g"}


def test_files_are_told_apart_by_the_fields_of_named_tuples(tmp_path):
    """Numba's types of two named tuples with the same name and types look the same."""
    files, integer = jit._Files(tmp_path / "kernel"), numba.int64
    paths = set()
    for fields in (["a", "b"], ["b", "a"]):
        given = numba.types.NamedUniTuple(integer, 2, namedtuple("Pair", fields))
        for signature in ((given,), (numba.types.Tuple((given, numba.float64)), integer)):
            paths.add(files._path((signature, "cpu", "code")))
    assert len(paths) == 4


def test_what_is_compiled_is_known(copy):
    script = COUNT + "print(jit.is_compiled('bits.popcount'), jit.is_compiled('bits.nothing'))"
    process = start(copy, script)
    assert process.communicate(timeout=600)[0].split()[-2:] == ["True", "False"]


def test_kernels_of_others_are_not_kept():
    """Their sources are not in the digest."""

    @jit.kernel
    def add(a, b):
        return a + b

    assert add(1, 2) == 3
    assert not jit.is_compiled("test_jit.test_kernels_of_others_are_not_kept.locals.add")
    assert type(add._cache).__name__ == "NullCache"


def test_a_second_process_compiles_nothing():
    """Every kernel of a release comes from the disk: one that cannot be kept (for a global array,
    say) would be compiled in every process."""
    script = """
import numba.core.caching as caching
misses = []
save = caching.Cache.save_overload
caching.Cache.save_overload = lambda self, sig, data: (misses.append(self), save(self, sig, data))
import pglp_fast as pf
pf.PPIM(pf.blocks(pf.Grid(9, 9), 3), epsilon=1.0).release([0, 1])
print(len(misses), 0, 0)
"""
    finish(start(ROOT, script))
    assert finish(start(ROOT, script))[0][0] == 0
