"""Packages that only tables need."""

from importlib import import_module
from typing import Any

from ..errors import MissingPackage


def need(package: str) -> Any:
    """The package, or how to get it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingPackage(f'this needs {package}: install it with  pip install "pglp-fast[tables]"') from None
