"""Kernels that only kernels call are translated, and become machine code with their caller."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import errors
from numba.core.compiler import Flags

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.linking import Kernel

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def make():
    """(lowest, middle, highest): a chain of calls. The lowest raises, as does NumPy's argmin."""

    @kernel
    def lowest(values, k):
        if k < 0:
            raise ValueError("k is negative")
        return np.sort(values)[k] + values[np.argmin(values)]

    @kernel
    def middle(values, k):
        return 2 * lowest(values, k)

    @kernel
    def highest(values, k):
        return middle(values, k) + lowest(values, 0)

    return lowest, middle, highest


VALUES = np.array([3.0, 1.0, 2.0])


def libraries(dispatcher):
    return [result.library for result in dispatcher.overloads.values()]


def test_only_what_python_calls_becomes_machine_code():
    """Would catch a Numba whose compiler asks for the address of every function again."""
    lowest, middle, highest = made = make()
    assert all(isinstance(one, Kernel) for one in made)
    assert highest(VALUES, 2) == 2 * 4 + 2
    for inner in (lowest, middle):
        assert inner.overloads
        assert not any(library._finalized for library in libraries(inner))
        assert not inner.entry.overloads
    assert [library._finalized for library in libraries(highest.entry)] == [True]
    assert not highest.overloads


def test_each_of_them_can_be_called_from_python_too():
    lowest, middle, highest = make()
    assert highest(VALUES, 2) == 10
    assert lowest(VALUES, 1) == 3
    assert middle(VALUES, 1) == 6
    assert lowest(VALUES.astype(np.int32), 2) == 4  # another signature


def test_errors_raised_below_arrive():
    """Numba keeps what an error needs in an environment; without it the process would crash."""
    _, middle, highest = make()
    for called in (middle, highest):
        with pytest.raises(ValueError, match="k is negative"):
            called(VALUES, -1)
        # with checked indices the sorted array answers first
        with pytest.raises(IndexError if numba.config.BOUNDSCHECK else ValueError):
            called(VALUES[:0], 0)


def test_kernels_and_other_peoples_functions_share_what_numba_translates():
    """First here, then there, and the other way round; others may call kernels."""
    lowest, _, highest = make()

    @numba.njit
    def before(values):
        return np.median(values), np.argsort(values)

    @numba.njit
    def after(values, k):
        return np.sort(values), np.argmin(values), lowest(values, k)

    assert before(VALUES)[0] == 2
    assert highest(VALUES, 2) == 10
    assert after(VALUES, 1)[2] == 3
    assert before(VALUES.astype(np.int64))[1].tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="k is negative"):
        after(VALUES, -1)


def test_threads_that_compile_at_once():
    made, found = make(), []
    calls = [threading.Thread(target=lambda k=k: found.append(made[k](VALUES, 2))) for k in (0, 1)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert sorted(found) == [4, 8]


def test_what_is_called_on_several_levels_is_linked():
    """The linker drops what nothing calls yet. Would catch libraries that are linked in the order
    in which they are met: least is met below ``other`` too, before that calls it."""

    @kernel
    def least(values):
        return values.min()

    @kernel
    def other(values):
        return least(values) + 1

    @kernel
    def another(values):
        return other(values) + least(values)

    for calls in ((least, other, another), (another, other, least), (other, least, another)):
        first, second, third = calls

        @kernel
        def entry(values, first=first, second=second, third=third):
            return first(values) + second(values) + third(values)

        assert entry(VALUES) == 1 + 2 + 3


def test_numbers_that_are_written_in_a_call_are_translated_once():
    @kernel
    def power(base, exponent, negative):
        return (-1 if negative else 1) * base**exponent

    @kernel
    def caller(x):
        return power(x, 2, False), power(x, 3, exponent_of(x)), power(x, x, True), power(3, 2, True)

    @kernel
    def exponent_of(x):
        return x > 100

    assert caller(2) == (4, 8, -4, -9)
    assert len(power.overloads) == 1


def test_numba_is_left_as_it_was_for_others():
    """While a kernel is compiled, wrappers, colours and searches for garbage are left out."""
    _, _, highest = make()
    context, before = highest.targetctx, gc.get_threshold()
    kinds = context.codegen()._library_class, type(errors.termcolor())
    assert highest(VALUES, 2) == 10
    with pytest.raises(numba.core.errors.TypingError):
        highest(VALUES, "text")
    assert gc.get_threshold() == before
    assert (context.codegen()._library_class, type(errors.termcolor())) == kinds
    changed = vars(context), vars(highest.typingctx), vars(errors.termcolor())
    ours = {"create_cfunc_wrapper", "_resolve_user_function_type", "_markup"}
    assert not ours & {name for each in changed for name in each}

    @numba.njit
    def twice(x):
        return 2 * x

    @numba.njit
    def call(function, x):  # by its C wrapper
        return function(x)

    signature = numba.types.FunctionType(numba.float64(numba.float64))
    assert numba.njit((signature, numba.float64))(call.py_func)(twice, 1.5) == 3.0


ALONE = """
import sys
sys.path.insert(0, {folder!r})
from test_linking import VALUES, libraries, make

highest = make()[2]
assert highest(VALUES, 2) == 10
(library,) = libraries(highest.entry)
names = [f.name for called in library._called() for f in called._final_module.functions]
assert names
print([name for name in names if name.startswith("cfunc.")])
"""


def test_no_wrappers_for_what_only_kernels_call():
    """In a process of its own: what other code had Numba translate before has its wrapper."""
    script = ALONE.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_a_call_means_depends_on_the_options():
    """Of a function that is remembered too: kernels that count references call one that does, or
    the arrays that it makes would never be freed, or be freed twice."""

    @kernel
    def counting(n):
        return np.ones(n).sum() + max(n, 2.0)

    @bare
    def not_counting(values, n):
        return values.sum() + max(n, 2.0)

    @kernel
    def both(n):
        return counting(n) + not_counting(np.ones(n), n) + np.ones(n).sum() + max(n, 2.0)

    for _ in range(3):
        assert both(5) == 30.0 == both(np.int64(5))


def test_options_are_equal_where_numba_says_so():
    """Would catch options that are remembered after one of them has changed."""
    lowest, middle, _ = make()
    flags = [k._compiler._customize_flags(Flags()) for k in (lowest, middle)]
    assert flags[0] == flags[1] == Flags()
    assert hash(flags[0]) == hash(Flags())
    flags[0].nrt = True
    assert flags[0] != flags[1]
    assert flags[0] == flags[0].copy() != Flags()


def test_a_bare_kernel_leaves_counts_of_references_alone():
    """It may be called by one that counts, in any order, and by Python."""

    @bare
    def total(values):
        out = 0.0
        for value in values[1:]:
            out += value
        return out

    @kernel
    def made(n):
        values = np.ones(n)
        return total(values) + total(values), values

    for _ in range(3):
        assert total(VALUES) == 3.0
        found, values = made(5)
        assert found == 8.0
        assert values.sum() == 5.0
    with pytest.raises(numba.core.errors.NumbaError):

        @bare
        def making(n):
            return np.ones(n)

        making(3)
