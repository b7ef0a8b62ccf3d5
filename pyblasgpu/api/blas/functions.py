"""Names, docstrings and SciPy's attributes of the functions of `blas` and `lapack`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc, signature
from typing import Any

import numpy as np

from ...frontend.calls.attempts import by_scipy
from ...routine_table import ROUTINES
from ...types import DTYPES, Dtype
from ..docstrings import Shared, completed, result_names
from .docs import RAISES, TEXTS, Text, arguments_of, docstring

__all__ = ["Maker", "dressed", "finished", "functions_of", "named_functions"]


#: ``make(stem, name, dtype)`` returns the function of a routine; dtype None is that of the arrays.
Maker = Callable[[str, str, "Dtype | None"], Callable[..., Any]]


def functions_of(makers: Mapping[str, Maker], generic: bool = False) -> dict[str, Callable[..., Any]]:
    """Return functions by SciPy's names; if `generic`, one by the stem too, for the dtype of the arrays."""
    found = {stem: make(stem, stem, None) for stem, make in makers.items()} if generic else {}
    for stem, make in makers.items():
        row = ROUTINES[stem]
        for letter in row.letters:
            found |= {name: make(stem, name, DTYPES[letter]) for name in row.scipys(letter)}
    return found


def named_functions(
    library: str,
    functions: Mapping[str, Callable[..., Any]],
    names: str | Sequence[str],
    full_name: Callable[[str], str],
) -> Any:
    """Return the function of a name without prefix; of a sequence of names a list."""
    found = []
    for full in map(full_name, [names] if isinstance(names, str) else names):
        if full not in functions:
            raise ValueError(f"{library} function {full} could not be found")
        found.append(functions[full])
    return found[0] if isinstance(names, str) else found


def dressed(
    function: Any, stem: str, name: str, dtype: Dtype | None, text: Text | None = None, raises: str = RAISES
) -> Callable[..., Any]:
    """Return a function of `blas` as users find it; its docstring is made of its row."""
    function.__doc__ = docstring(function, stem, name, _types(dtype), text or TEXTS[stem], raises)
    return _attributed(function, stem, name, dtype, "blas", "int64")


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
    if function.__doc__:  # none with python -OO
        function.__doc__ = _with_call(function, stem, name, dtype, shared, module)
    return _attributed(function, stem, name, dtype, module, integers)


def _attributed(
    function: Any, stem: str, name: str, dtype: Dtype | None, module: str, integers: str
) -> Callable[..., Any]:
    """Return `function` with its name and the attributes of SciPy's."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = function.module_name = f"pyblasgpu.{module}"
    if dtype is not None:
        function.typecode = function.prefix = dtype.letter
        function.dtype, function.int_dtype = np.dtype(dtype.name), np.dtype(integers)
    return by_scipy(function, stem, name, dtype)


def _types(dtype: Dtype | None) -> str:
    return "in the dtype that the arrays have together" if dtype is None else f"in {dtype.name}"


def _with_call(function: Any, stem: str, name: str, dtype: Dtype | None, shared: Shared, module: str) -> str:
    """Return the completed docstring, with the dtype in its summary and a call as f2py writes it."""
    doc, parameters = cleandoc(function.__doc__), signature(function).parameters
    summary, _, rest = doc.partition(".\n\n")
    call = f"``{', '.join(result_names(doc))} = {name}({arguments_of(parameters)})``"
    rest = rest.replace(f"{module}.{stem}(", f"{module}.{name}(")
    return completed(f"{summary}, {_types(dtype)}.\n\n{call}\n\n{rest}", shared, parameters)
