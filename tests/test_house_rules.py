"""What CONTRIBUTING.md says of the code's shape, read from the sources."""

import ast
import re

from cases import ROOT

PACKAGE = ROOT / "pglp_fast"
TREES = {
    path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
# named tuples' public methods begin with an underscore
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# libraries without a public way: Numba's dispatchers and caches, argparse's list of options
OUTSIDE = {
    "_SubParsersAction",
    "_actions",
    "_choices_actions",
    "_finalized",
    "_get_module_for_linking",
    "_getvalue",
    "_impl_keys",
    "_linking_libraries",
    "_lookup_global",
    "_reload_init",
}
KERNELS = [path for path in TREES if path.parts[0] == "_kernels"]


def functions(tree):
    return [x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines_of(function):
    first = function.body[0]
    text = first.value if isinstance(first, ast.Expr) else None
    said = isinstance(text, ast.Constant) and isinstance(text.value, str)
    docstring = first.end_lineno - first.lineno + 1 if said else 0
    return function.end_lineno - function.lineno + 1 - docstring


def defined_in(tree):
    """Names that a file defines, as functions, classes, arguments, attributes or slots."""
    for x in ast.walk(tree):
        if isinstance(x, ast.FunctionDef | ast.ClassDef):
            yield x.name
        elif isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Store):
            yield x.attr
        elif isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
            yield x.id
        elif isinstance(x, ast.Constant) and isinstance(x.value, str):
            yield x.value


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_the_root_is_small():
    assert len(list(PACKAGE.glob("*.py*"))) <= 5


def test_files_are_short():
    long = [p for p in TREES if len((PACKAGE / p).read_text(encoding="utf-8").splitlines()) > 400]
    assert long == []


def test_functions_are_short():
    long = [f"{p}: {f.name}" for p in TREES for f in functions(TREES[p]) if lines_of(f) > 60]
    assert long == []


def test_kernels_take_few_parameters():
    many = [
        f"{path}: {f.name}"
        for path in KERNELS
        for f in functions(TREES[path])
        if len(f.args.posonlyargs) + len(f.args.args) + len(f.args.kwonlyargs) > 12
    ]
    assert many == []


def private_imports(tree):
    for x in ast.walk(tree):
        if isinstance(x, ast.ImportFrom) and (x.level or str(x.module).startswith("pglp_fast")):
            yield from (a for a in x.names if is_private(a.name) and x.module != "pglp_fast")


def foreign_attributes(tree):
    known = set(defined_in(tree)) | NAMED_TUPLE | OUTSIDE
    for x in ast.walk(tree):
        if isinstance(x, ast.Attribute) and is_private(x.attr) and x.attr not in known:
            own = isinstance(x.value, ast.Name) and x.value.id in ("self", "cls")
            if not own:
                yield x


def test_nothing_private_crosses_a_file():
    found = [
        f"{path}:{x.lineno}: {ast.unparse(x)}"
        for path, tree in TREES.items()
        for x in [*private_imports(tree), *foreign_attributes(tree)]
    ]
    assert found == []


def test_every_kernel_module_has_a_direct_test():
    untested = []
    for path in KERNELS:
        room, module = path.parent.name, path.stem
        folder = ROOT / "tests" / "kernels" / room
        texts = [test.read_text(encoding="utf-8") for test in folder.glob("*.py")]
        named = rf"_kernels\.{room}(\.{module}| import (\(\n)?[^()]*\b{module})\b"
        if module != "__init__" and not any(re.search(named, text) for text in texts):
            untested.append(str(path))
    assert untested == []


def test_files_are_written_and_progress_told_in_one_place():
    """One atomic writer, one bar, one set of intervals: all in ``_util``."""
    by_hand = re.compile(r"\bos\.(replace|rename|fsync)\(|\bimport tqdm|tqdm import|scipy\.stats")
    found = [p for p in TREES if by_hand.search((PACKAGE / p).read_text(encoding="utf-8"))]
    # Numba's cache is not the users' data: a lost entry is compiled again
    assert [str(p) for p in found if p.parts[0] != "_util"] == ["_kernels/base/jit.py"]


def test_lines_of_the_docs_are_up_to_100_characters():
    """Ruff sees to Python; tables, links and what commands print are as wide as they are."""
    long = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        fence = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                fence = line if fence is None else None
            printed = fence not in (None, "```python")
            free = printed or line.startswith("|") or "](" in line or "http" in line
            if len(line) > 100 and not free:
                long.append(f"{path.relative_to(ROOT)}:{number}")
    assert long == []


def test_kernels_that_a_command_waits_for_are_there():
    """``warn_of_compiling`` names one by its file and its name."""
    kernels = {f"{p.stem}.{f.name}" for p in KERNELS for f in functions(TREES[p])}
    named = {
        text.value
        for path, tree in TREES.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("warn_of_compiling")
        for text in ast.walk(call)
        if isinstance(text, ast.Constant)
    }
    assert named
    assert named <= kernels
