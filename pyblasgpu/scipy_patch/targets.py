"""The functions of SciPy and NumPy that `patch_scipy` replaces, and the sizes of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from ..patches.sizes import TYPECODES, Sizes, Target, argument, cube_root
from ..routine import Routine
from ..routine_table import typed_names
from ..types import Dtype

__all__ = ["numpys", "scipys"]

_IS_NUMPY_1 = np.__version__.startswith("1.")
_SIZES = Sizes(np.ndarray)


def scipys(active: list[Any]) -> Iterator[Target]:
    """The functions of scipy.linalg, scipy.linalg.blas and scipy.linalg.lapack."""
    linalg = import_module("scipy.linalg")
    ours = import_module("..linalg", __package__)
    for name, size in _LINALG.items():
        key = f"{name}_matrix" if size is _of_eigh else name  # that of stacks is NumPy's
        yield Target(
            key, f"scipy.linalg:{name}", getattr(linalg, name), getattr(ours, name), size, np.ndarray, active
        )
    for module, group in (("blas", "level3"), ("lapack", "lapack")):
        theirs, replacing = (
            import_module(f"{package}.{module}") for package in ("scipy.linalg", "pyblasgpu")
        )
        for name, (routine, dtype) in typed_names(group).items():
            original = getattr(theirs, name, None)
            if routine.crossover and original is not None:
                function = getattr(replacing, name)
                replaced, size = f"scipy.linalg.{module}:{name}", _typed(routine, dtype, function)
                yield Target(routine.stem, replaced, original, function, size, np.ndarray, active)


def numpys(active: list[Any]) -> Iterator[Target]:
    """The functions of numpy.linalg that have a counterpart here."""
    for function in import_module(".numpy_functions", __package__).FUNCTIONS:
        name = function.__name__
        size = _NUMPYS.get(name, _SIZES.order_if_square)
        original = getattr(np.linalg, name)
        yield Target(name, f"numpy.linalg:{name}", original, function, size, np.ndarray, active)


# ---------------------------------------------------------------------------------------------------- sizes


def _of_numpys_solve(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The size of systems whose shapes fit. Before NumPy 2 a stack may have a vector for each matrix."""
    size, right = _SIZES.order_if_square(args, kwargs), _SIZES.shape(argument(args, kwargs, 1, "b"))
    order = argument(args, kwargs, 0, "a").shape
    if right is None or right[-2:][:1] != order[-1:]:
        return -1
    return -1 if _IS_NUMPY_1 and 1 < len(right) < len(order) else size


def _of_qr(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The size of QR factors without pivots."""
    pivoting = args[4] if len(args) > 4 else kwargs.get("pivoting", False)
    return -1 if pivoting else _SIZES.order_of_a(args, kwargs)


def _of_numpys_qr(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The size of QR factors by modes that are not deprecated."""
    mode = args[1] if len(args) > 1 else kwargs.get("mode", "reduced")
    return _SIZES.order_of_a(args, kwargs) if mode in ("reduced", "complete", "r", "raw") else -1


_NUMPYS = {
    "solve": _of_numpys_solve,
    "qr": _of_numpys_qr,
    "eigh": _SIZES.of_square_stacks,
    "eigvalsh": _SIZES.of_square_stacks,
    "svd": _SIZES.of_stacks,
}


def _of_solve(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    structure = args[6] if len(args) > 6 else kwargs.get("assume_a")
    right = _SIZES.shape(argument(args, kwargs, 1, "b"))
    if structure in ("diagonal", "tridiagonal", "banded") or right is None:
        return -1
    return _SIZES.order_of_a(args, kwargs)


_SUBSETS = ("subset_by_index", "subset_by_value")


def _of_eigh(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """The order of one matrix of a standard problem, which is not overwritten."""
    shape = _SIZES.shape(argument(args, kwargs, 0, "a"))
    others = {key for key, value in kwargs.items() if value is not None and value is not False}
    is_plain = len(args) < 2 and others <= {"a", "lower", "eigvals_only", "check_finite", *_SUBSETS}
    is_served = is_plain and shape is not None and len(shape) == 2 and shape[0] == shape[1]
    return float(shape[0]) if is_served and shape is not None else -1


_LINALG: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], float]] = {
    "cholesky": _SIZES.order_of_a,
    "cho_factor": _SIZES.order_of_a,
    "cho_solve": _SIZES.solves("c_and_lower"),
    "solve_triangular": _SIZES.solves("a"),
    "solve": _of_solve,
    "inv": _SIZES.order_of_a,
    "det": _SIZES.order_of_a,
    "lu_factor": _SIZES.order_of_a,
    "lu_solve": _SIZES.solves("lu_and_piv"),
    "lu": _SIZES.order_of_a,
    "qr": _of_qr,
    "eigh": _of_eigh,
    "eigvalsh": _of_eigh,
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
            array = argument(args, kwargs, position, matrix.name)
            shape = _SIZES.shape(array)
            if shape is None or TYPECODES[array.dtype.char] != dtype.letter or len(shape) not in (1, 2):
                return -1
            rows, cols = shape if len(shape) == 2 else (*shape, 1)
            if kwargs.get(matrix.op):
                rows, cols = cols, rows
            extents = {matrix.cols: cols, matrix.rows: rows, "least": min(rows, cols)} | extents
        return cube_root(*(extents[each] for each in routine.work))

    return size
