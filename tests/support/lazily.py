"""Modules that take seconds to import are imported by the test that uses them, not by every process that collects."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def lazily(name: str) -> Any:
    """Return what stands for a module: it is imported when something of it is asked for."""
    return _Later(name)


class _Later:
    """A name without its module yet.

    Pytest asks all that it finds in a test module for names of its own; the answer is no without a look.
    (`importlib.util.LazyLoader` would import for that question.)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> Any:
        if asked.startswith("__") or asked == "_mock_name":
            raise AttributeError(asked)
        return getattr(import_module(self._name), asked)
