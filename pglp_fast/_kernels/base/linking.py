"""How kernels that call each other become machine code: once, where Python calls.

Numba makes every function that a kernel calls executable by itself: it optimises it with all that
it calls, emits machine code, and wraps it for Python. Each level of calls repeats the work of the
levels below. Of a kernel that only other kernels call, none of that is ever used. Here such a
kernel stays as it was translated. The one that Python calls is linked with all that it needs, then
optimised and emitted once; the compiler inlines as it would in one source file. The first release
of a trace compiles in less than half the time so.

This uses parts of Numba that are not documented. ``tests/kernels/base/test_linking.py`` has what it
relies on.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral

_ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba names what a function needs when it raises


class _NotYet:
    """The code generator, for a library without machine code: an environment is set later."""

    def __init__(self, codegen: Any):
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


class Library(JITCodeLibrary):
    """A function as Numba translated it, and the libraries of those that it calls.

    It becomes machine code when somebody asks for the address of what is in it."""

    @property
    def codegen(self) -> Any:
        return self._codegen if self._finalized else _NotYet(self._codegen)

    def add_linking_library(self, library: Any) -> None:
        self._linking_libraries.append(library)

    def get_pointer_to_function(self, name: str) -> int:
        if not self._finalized:
            try:
                self._final_module.get_function(name)
            except NameError:
                return 0
        return int(super().get_pointer_to_function(name))

    def _translated(self) -> Any:
        """A copy of the functions, which may stand in several libraries."""
        module = self._final_module.clone()
        for function in module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        return module

    def _called(self) -> "list[Any]":
        """All libraries that are needed, directly or not, each behind all that call it."""
        seen, done = set(), []
        waiting: list[tuple[Any, bool]] = [(library, False) for library in self._linking_libraries]
        while waiting:
            library, left = waiting.pop()
            if left:
                done.append(library)
            elif library not in seen:
                seen.add(library)
                waiting.append((library, True))
                if _is_open(library):
                    waiting.extend((other, False) for other in library._linking_libraries)
        return done[::-1]

    def _link(self) -> None:
        """Take in all that is called. A function that nothing calls yet would be left out by the
        linker, so callers come first.

        Nobody else calls what is taken in, and the compiler is told so: it inlines what is called
        once, and passes on no argument that is not used. Of arguments there are many: a work space
        is hundreds of numbers."""
        own = {f.name for f in self._final_module.functions if not f.is_declaration}
        for library in self._called():
            self._reload_init.update(library._reload_init)
            if _is_open(library):
                self._final_module.link_in(library._translated())
            else:
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        for function in self._final_module.functions:
            taken = not function.is_declaration and function.name not in own
            if taken and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._link()
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and not variable.is_declaration:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


def _is_open(library: Any) -> bool:
    """Whether a library holds its own functions alone, without those that they call."""
    return isinstance(library, Library) and not library._finalized


@contextlib.contextmanager
def _own_libraries(codegen: Any) -> Iterator[None]:
    """Libraries that are made in here are ours. They serve any other caller as well."""
    with global_compiler_lock:
        theirs, codegen._library_class = codegen._library_class, Library
        try:
            yield
        finally:
            codegen._library_class = theirs


class _Dispatcher(CPUDispatcher):
    """Compiles a function for each signature that it is called with."""

    def compile(self, sig: Any) -> Any:
        with _own_libraries(self.targetctx.codegen()):
            return super().compile(sig)


class _Entry(_Dispatcher):
    """What Python calls. ``alone`` of the cache keeps other processes from compiling the same."""

    def __init__(self, function: Any, options: dict[str, Any], cache: Any):
        super().__init__(function, targetoptions={**options, "no_cfunc_wrapper": True})
        self._alone = contextlib.nullcontext
        if cache is not None:
            self._cache, self._alone = cache, cache.alone

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, self._alone():
            return super().compile(sig)


class Kernel(_Dispatcher):
    """A function for other kernels to call. Called from Python, it is compiled for that.

    Attributes
    ----------
    entry : Dispatcher
        What Python calls, which has a wrapper that takes Python's objects.
    """

    def __init__(self, function: Any, options: dict[str, Any], cache: Any):
        inner = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=inner)
        self.entry = _Entry(function, options, cache)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """What a call by another kernel means. A number that is written there is a number like any
        other: Numba would translate the function again for each of them."""
        plain = {name: unliteral(given) for name, given in named.items()}
        return super().get_call_template(tuple(map(unliteral, arguments)), plain)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)
