"""Names, docstrings and SciPy's attributes of the functions of `blas` and `lapack`."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, cleandoc, signature
from typing import Any

import numpy as np

from ...types import Dtype
from ..docstrings import Shared, completed, result_names
from .docs import LEVEL_3, Row, docstring
from .level1_docs import LEVEL_1
from .level2_docs import LEVEL_2
from .scipy import by_scipy

__all__ = ["dressed", "finished", "name_of"]

_ROWS = LEVEL_1 | LEVEL_2 | LEVEL_3


def name_of(stem: str, dtype: Dtype | None) -> str:
    """Return the name of a routine for a dtype, or for that of the arrays."""
    return stem if dtype is None else dtype.letter + stem


def dressed(
    function: Any, stem: str, name: str, dtype: Dtype | None, row: Row | None = None
) -> Callable[..., Any]:
    """Return a function of `blas` as users find it; its docstring is made of its row."""
    row = row or _ROWS[stem]
    function.__doc__ = docstring(stem, row)
    return finished(function, stem, name, dtype, row.shared, "blas", "int64")


def finished(
    function: Any, stem: str, name: str, dtype: Dtype | None, shared: Shared, module: str, integers: str
) -> Callable[..., Any]:
    """Return `function` with its docstring completed, and with the attributes of SciPy's; see `by_scipy`.

    Parameters
    ----------
    function : callable
        Its docstring names it by its stem.
    stem, name : str
        The name without and with the letter of the dtype.
    dtype : Dtype or None
        None for the dtype of the arrays.
    shared : Shared
        The rest of the docstring.
    module : str
        The public module of the function.
    integers : str
        The dtype of integers that it takes.
    """
    function.__name__ = function.__qualname__ = name
    if function.__doc__:  # none with python -OO
        function.__doc__ = _with_call(function, stem, name, dtype, shared, module)
    function.__module__ = function.module_name = f"pyblasgpu.{module}"
    if dtype is not None:
        function.typecode = function.prefix = dtype.letter
        function.dtype, function.int_dtype = np.dtype(dtype.name), np.dtype(integers)
    return by_scipy(function, stem, name, dtype)


def _with_call(function: Any, stem: str, name: str, dtype: Dtype | None, shared: Shared, module: str) -> str:
    """Return the completed docstring, with the dtype in its summary and a call as f2py writes it."""
    doc, parameters = cleandoc(function.__doc__), signature(function).parameters
    needed = [each.name for each in parameters.values() if each.default is Parameter.empty]
    optional = ", ".join([each for each in parameters if each not in needed])
    arguments = ", ".join([*needed, *([f"[{optional}]"] if optional else [])])
    types = "in the dtype that the arrays have together" if dtype is None else f"in {dtype.name}"
    summary, _, rest = doc.partition(".\n\n")
    call = f"``{', '.join(result_names(doc))} = {name}({arguments})``"
    rest = rest.replace(f"{module}.{stem}(", f"{module}.{name}(")
    return completed(f"{summary}, {types}.\n\n{call}\n\n{rest}", shared, parameters)
