"""Names of functions in all modules: bound to others, and bound again to what they were."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

__all__ = ["rebind"]

#: SciPy's extension modules, in which its own look-up finds the originals.
_UNTOUCHED = {f"scipy.linalg._{name}" for name in ("fblas", "cblas", "flapack", "clapack")}


def rebind(replacements: Mapping[int, Any]) -> None:
    """In every module let the names of functions stand for their replacements, which are found by `id`.

    Modules that are imported later, or that import now on another thread, are not seen.
    """
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name in _UNTOUCHED or name.partition(".")[0] == "pyblasgpu":
            continue
        attributes = vars(module)
        for attribute, value in list(attributes.items()):
            replacement = replacements.get(id(value))
            if replacement is not None:
                attributes[attribute] = replacement
