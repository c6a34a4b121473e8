"""How kernels that call each other become machine code: once, where Python calls.

Numba makes every function that a kernel calls executable by itself: it optimises it with all that
it calls, emits machine code, and wraps it for Python. Each level of calls repeats the work of the
levels below. Of a kernel that only other kernels call, none of that is ever used. Here such a
kernel stays as it was translated. The one that Python calls is linked with all that it needs, then
optimised and emitted once; the compiler inlines as it would in one source file. The first release
of a trace compiles in less than half the time so.

What is left is Numba's own work in Python, and what of it serves nobody here is left out: wrappers
for C around its array functions, searches for garbage, colours of messages, finding again and again
what ``a + b`` means, and comparing all options of a kernel to do so.

This uses parts of Numba that are not documented. ``tests/kernels/base/test_linking.py`` has what it
relies on.
"""

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any

from llvmlite import binding as llvm
from numba.core import errors, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
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


class _Options(Flags):  # type: ignore[misc]
    """The options of a kernel: spelt out and hashed once, until one of them is changed."""

    __slots__ = ("__dict__",)

    @functools.cached_property
    def _spelt(self) -> dict[str, Any]:
        return dict(super().values())

    @functools.cached_property
    def _hash(self) -> int:
        return hash(tuple(sorted(self._spelt)))

    def values(self) -> dict[str, Any]:
        return self._spelt

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.__dict__.clear()


_RARELY = 100_000  # objects, between two searches for garbage: compiling makes many that stay
# What calls of Numba's functions mean, by function, types and options: (signature, implementation)
_MEANINGS: dict[Any, tuple[Any, Any]] = {}


def _remembered(typing: Any) -> Any:
    """How Numba finds what a call means, but once for each of its functions and types.

    It tries one candidate after the other, some fifty for the sum of two numbers, and writes down
    why each does not fit."""
    find = typing._resolve_user_function_type

    def resolve(called: Any, arguments: Any, named: Any, literals: Any = None) -> Any:
        function = typing._lookup_global(called) or called
        if type(function) is not types.Function:
            return find(called, arguments, named, literals)
        options = ConfigStack.top_or_none()
        key = function, tuple(arguments), tuple(named.items()), options
        if key not in _MEANINGS:
            signature = find(called, arguments, named, literals)
            if signature is None:
                return None
            _MEANINGS[key] = signature, function.get_impl_key(signature)
        signature, implementation = _MEANINGS[key]
        function._impl_keys[signature.args] = implementation
        return signature

    return resolve


@contextlib.contextmanager
def _our_way(typing: Any, context: Any) -> Iterator[None]:
    """Libraries that are made in here are ours; they serve any other caller as well."""
    codegen = context.codegen()
    with global_compiler_lock:
        if codegen._library_class is Library:
            yield
            return
        library, often, messages = codegen._library_class, gc.get_threshold(), errors.termcolor()
        codegen._library_class = Library
        typing._resolve_user_function_type = _remembered(typing)
        context.create_cfunc_wrapper = lambda *_: None
        messages._markup = lambda text, *_: text  # of candidates that do not fit: seldom read
        if gc.isenabled():
            gc.set_threshold(max(_RARELY, often[0]), *often[1:])
        try:
            yield
        finally:
            codegen._library_class = library
            del typing._resolve_user_function_type
            del context.create_cfunc_wrapper, messages._markup
            gc.set_threshold(*often)


class _Dispatcher(CPUDispatcher):
    """Compiles a function for each signature that it is called with."""

    def __init__(self, function: Any, options: dict[str, Any]):
        super().__init__(function, targetoptions=options)
        self._compiler._customize_flags = _Options  # a copy of what Numba read from the options

    def compile(self, sig: Any) -> Any:
        with _our_way(self.typingctx, self.targetctx):
            return super().compile(sig)


class _Entry(_Dispatcher):
    """What Python calls. ``alone`` of the cache keeps other processes from compiling the same."""

    def __init__(self, function: Any, options: dict[str, Any], cache: Any):
        super().__init__(function, {**options, "no_cfunc_wrapper": True})
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
        super().__init__(
            function, {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        )
        self.entry = _Entry(function, options, cache)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """What a call by another kernel means. A number that is written there is a number like any
        other: Numba would translate the function again for each of them."""
        plain = {name: unliteral(given) for name, given in named.items()}
        return super().get_call_template(tuple(map(unliteral, arguments)), plain)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)
