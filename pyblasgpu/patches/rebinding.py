"""Names of functions in all modules: bound to others, and bound again to what they were."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

__all__ = ["rebind"]

#: SciPy's extension modules, in which its own look-up finds the originals.
_UNTOUCHED = {f"scipy.linalg._{name}" for name in ("fblas", "cblas", "flapack", "clapack")}
#: The dictionary of a module by the descriptor of its base class: a module's own attribute access may run
#: code, and that of `importlib.util.LazyLoader` loads the module.
_namespace_of = vars(ModuleType)["__dict__"].__get__


def rebind(replacements: Mapping[int, Any]) -> None:
    """Bind the names of functions in every module to their replacements, which are found by `id`.

    No code of the modules runs. Modules that are imported later, or that import now on another thread, are
    not seen, nor are other objects than modules in `sys.modules`.
    """
    for name, module in sys.modules.copy().items():
        if name in _UNTOUCHED or str(name).partition(".")[0] == "pyblasgpu":
            continue
        if not issubclass(type(module), ModuleType):  # isinstance would look at the object's own __class__
            continue
        namespace = _namespace_of(module)
        for attribute, value in namespace.copy().items():
            replacement = replacements.get(id(value))
            if replacement is not None and namespace.get(attribute) is value:  # as other threads left it
                namespace[attribute] = replacement
