"""Packages that are optional."""

import sys
from importlib import import_module
from typing import Any

from pglp_fast.errors import MissingPackage


def need(package: str, extra: str = "tables", what: str = "this needs") -> Any:
    """The package, or an error that says which extra of ours brings it."""
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise MissingPackage(
            f"{what} {name}, which is not installed: pip install {name}  (part of our extra "
            f"'{extra}')"
        ) from None


class Later:
    """An optional package that is imported when something of it is first used."""

    def __init__(self, package: str, extra: str = "tables"):
        self._named, self._module = (package, extra), None

    def __getattr__(self, name: str) -> Any:
        if self._module is None or sys.modules.get(self._named[0]) is not self._module:
            self._module = need(*self._named)  # whole, even if another thread is importing it
        return getattr(self._module, name)
