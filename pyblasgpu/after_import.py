"""Functions that are called once a module is imported, which does not import it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["after_import"]


def after_import(name: str, function: Callable[[], None]) -> None:
    """Call `function` at once where the module is imported, else as soon as another one imports it.

    Parameters
    ----------
    name : str
        The full name of the module.
    function : callable
        Called without arguments, by the thread that imports.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        function()
    else:
        sys.meta_path.insert(0, _Finder(name, function))


class _Finder:
    """An import hook for a module: it is imported as ever, and then the function is called."""

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name, self._function, self._is_looking = name, function, False

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of the module; None of other modules, which are for the finders that follow."""
        if name != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = find_spec(name)
        finally:
            self._is_looking = False
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                with suppress(ValueError):  # another thread has removed it
                    sys.meta_path.remove(self)
                self._function()

            loader.exec_module = execute_and_call
        return spec
