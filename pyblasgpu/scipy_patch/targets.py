"""The functions of SciPy and NumPy that `patch_scipy` replaces, and the sizes of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ..routine import Routine
from ..routine_table import typed_names
from ..types import DTYPES, Dtype

__all__ = ["Target", "numpys", "scipys"]

_IS_NUMPY_1 = np.__version__.startswith("1.")
_TYPECODES = {np.dtype(dtype.name).char: letter for letter, dtype in DTYPES.items()}


class Target(NamedTuple):
    """One function that is replaced.

    Attributes
    ----------
    name : str
        The key of its threshold.
    replaced : str
        The function that is replaced, as "module:function".
    original, ours : callable
        SciPy's or NumPy's function, and the one in its place.
    size : callable
        ``size(args, kwargs)`` is the size of a call, -1 if it is not for us.
    """

    name: str
    replaced: str
    original: Callable[..., Any]
    ours: Callable[..., Any]
    size: Callable[[tuple[Any, ...], Mapping[str, Any]], float]


def scipys() -> Iterator[Target]:
    """The functions of scipy.linalg, scipy.linalg.blas and scipy.linalg.lapack."""
    linalg = import_module("scipy.linalg")
    ours = import_module("..linalg", __package__)
    for name, size in _LINALG.items():
        yield Target(name, f"scipy.linalg:{name}", getattr(linalg, name), getattr(ours, name), size)
    for module, group in (("blas", "level3"), ("lapack", "lapack")):
        theirs, replacing = (
            import_module(f"{package}.{module}") for package in ("scipy.linalg", "pyblasgpu")
        )
        for name, (routine, dtype) in typed_names(group).items():
            original = getattr(theirs, name, None)
            if routine.crossover and original is not None:
                function = getattr(replacing, name)
                replaced, size = f"scipy.linalg.{module}:{name}", _typed(routine, dtype, function)
                yield Target(routine.stem, replaced, original, function, size)


def numpys() -> Iterator[Target]:
    """The functions of numpy.linalg that have a counterpart here."""
    for function in import_module(".numpy_functions", __package__).FUNCTIONS:
        name = function.__name__
        size = _of_numpys_solve if name == "solve" else _order_if_square
        yield Target(name, f"numpy.linalg:{name}", getattr(np.linalg, name), function, size)


# ---------------------------------------------------------------------------------------------------- sizes


def _argument(args: tuple[Any, ...], kwargs: Mapping[str, Any], position: int, name: str) -> Any:
    """An argument that is there, passed by position or by name."""
    return args[position] if len(args) > position else kwargs[name]


def _shape(array: Any) -> tuple[int, ...] | None:
    """The shape of an array of NumPy's own class and one of the four dtypes; None of all else."""
    if type(array) is np.ndarray and array.dtype.char in _TYPECODES:
        shape: tuple[int, ...] = array.shape
        return shape
    return None


def _cube_root(*extents: int) -> float:
    product = 1.0
    for extent in extents:
        product *= extent
    return float(product ** (1 / 3))


def _order_of_a(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The size of factorizations: of many matrices, that of the one with as much work."""
    shape = _shape(_argument(args, kwargs, 0, "a"))
    if shape is None or len(shape) < 2:
        return -1
    return _cube_root(*shape, min(shape[-2:]))


def _order_if_square(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """Return the order of square matrices; NumPy refuses others."""
    shape = _shape(_argument(args, kwargs, 0, "a"))
    return -1 if shape is None or shape[-1:] != shape[-2:-1] else _order_of_a(args, kwargs)


def _of_numpys_solve(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The size of systems whose shapes fit. Before NumPy 2 a stack may have a vector for each matrix."""
    size, right = _order_if_square(args, kwargs), _shape(_argument(args, kwargs, 1, "b"))
    order = _argument(args, kwargs, 0, "a").shape
    if right is None or right[-2:][:1] != order[-1:]:
        return -1
    return -1 if _IS_NUMPY_1 and 1 < len(right) < len(order) else size


def _solves(name: str) -> Callable[[tuple[Any, ...], Mapping[str, Any]], float]:
    """The size of solves with a factor, or with a pair whose first part is one."""

    def size(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        factor = _argument(args, kwargs, 0, name)
        shape = _shape(factor[0] if isinstance(factor, tuple) else factor)
        right = _shape(_argument(args, kwargs, 1, "b"))
        if shape is None or right is None or len(shape) < 2 or not right:
            return -1
        return _cube_root(shape[-1], *right)

    def squared(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        measured = size(args, kwargs)
        right = _argument(args, kwargs, 1, "b")
        return measured if measured < 0 or right.ndim > 1 else _cube_root(*right.shape, *right.shape)

    return squared


def _of_solve(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    structure = args[6] if len(args) > 6 else kwargs.get("assume_a")
    right = _shape(_argument(args, kwargs, 1, "b"))
    if structure in ("diagonal", "tridiagonal", "banded") or right is None:
        return -1
    return _order_of_a(args, kwargs)


_LINALG: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], float]] = {
    "cholesky": _order_of_a,
    "cho_factor": _order_of_a,
    "cho_solve": _solves("c_and_lower"),
    "solve_triangular": _solves("a"),
    "solve": _of_solve,
    "inv": _order_of_a,
    "det": _order_of_a,
    "lu_factor": _order_of_a,
    "lu_solve": _solves("lu_and_piv"),
    "lu": _order_of_a,
}


def _typed(
    routine: Routine, dtype: Dtype, function: Callable[..., Any]
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], float]:
    """The size of a call of SciPy's wrapper, which would cast arrays of other dtypes."""
    parameters = list(signature(function).parameters)
    places = [(parameters.index(matrix.name), matrix) for matrix in routine.inputs]

    def size(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        extents: dict[str, int] = {}
        for position, matrix in places:
            array = _argument(args, kwargs, position, matrix.name)
            shape = _shape(array)
            if shape is None or _TYPECODES[array.dtype.char] != dtype.letter or len(shape) not in (1, 2):
                return -1
            rows, cols = shape if len(shape) == 2 else (*shape, 1)
            if kwargs.get(matrix.op):
                rows, cols = cols, rows
            extents = {matrix.cols: cols, matrix.rows: rows, "least": min(rows, cols)} | extents
        return _cube_root(*(extents[each] for each in routine.work))

    return size
