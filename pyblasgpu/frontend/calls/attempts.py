"""Routines that SciPy's functions compute for NumPy arrays as they are, from their rows; see `direct`."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from functools import cache
from inspect import signature
from math import inf
from typing import Any

from ...cpu.scipy.qr import workspace_of_geqp3, workspace_of_geqrf, workspace_of_orgqr, workspace_of_ormqr
from ...cpu.scipy.values import has_finite_diagonal, has_normal_reciprocals, is_finite
from ...routine import INTEGERS, Routine
from ...routine_table import ROUTINES
from ...types import DTYPES, Dtype, Side, Trans
from .direct import Accepts, Attempt, Facts, directly, scipys

__all__ = ["UNBLOCKED", "attempt_of", "by_scipy", "by_scipy_without_row"]

_MODULES = {"level1": "blas", "level2": "blas", "level3": "blas", "lapack": "lapack"}
#: The order below which the least workspace, which SciPy's functions take for these routines, is enough.
UNBLOCKED = 64
_MOST = dict.fromkeys(("geqp3", "geqrf", "hesv", "hetrf", "orgqr", "ormqr", "sysv", "sytrf"), UNBLOCKED)
#: Vectors that Level 1 overwrites where no flag is to allow it.
_IN_PLACE = {"axpy": "y", "copy": "y", "scal": "x", "swap": "xy"}
#: Numbers of Level 1.
_NUMBERS = {"axpy": ("a",), "scal": ("a",), "rot": ("c", "s")}
#: Values of integers that are no flags: a call that names a workspace or a part of an array is checked.
_VALUES: dict[str, Container[Any]] = {
    **dict.fromkeys(("offx", "offy"), (0,)),
    **dict.fromkeys(("incx", "incy"), (1,)),
    **dict.fromkeys(("n", "lda", "lwork", "liwork", "lrwork", "k1", "k2", "off", "inc"), ()),
}
#: Flags with which a function overwrites nothing.
_NOTHING: dict[str, Container[Any]] = dict.fromkeys(("overwrite_a", "overwrite_b"), (0,))
_ANY, _FORWARDS = range(-(2**31), 2**31), range(1, 2**31)
_Shape = tuple[int, ...]


def _has_finite_result(result: Any, arrays: Any, unit: Any) -> bool:
    """OpenBLAS multiplies zeros of the other triangle, which makes NaN of Inf, and orders complex factors."""
    return is_finite(result)


def _is_solution(result: Any, arrays: Any, unit: Any) -> bool:
    """OpenBLAS multiplies by reciprocals of the diagonal."""
    return is_finite(result) and (bool(unit) or has_normal_reciprocals(arrays[0]))


def _has_factor(result: Any, arrays: Any, unit: Any) -> bool:
    """OpenBLAS goes on after a pivot of NaN."""
    return has_finite_diagonal(result[0])


def _has_worked(result: Any, arrays: Any, unit: Any) -> bool:
    return bool(result[-1] == 0)


def _has_finite_factors(result: Any, arrays: Any, unit: Any) -> bool:
    return is_finite(result[0])


def _is_inverse(result: Any, arrays: Any, unit: Any) -> bool:
    return result[-1] == 0 and is_finite(result[0])


def _is_definite_solution(result: Any, arrays: Any, unit: Any) -> bool:
    factor, x, info = result
    return info == 0 and has_finite_diagonal(factor) and is_finite(x)


def _is_general_solution(result: Any, arrays: Any, unit: Any) -> bool:
    factors, _, x, info = result
    return info == 0 and is_finite(factors) and is_finite(x)


_ACCEPTS: dict[str, Accepts] = {
    "trmm": _has_finite_result,
    "trmv": _has_finite_result,
    "hemv": _has_finite_result,
    "her": _has_finite_result,
    "her2": _has_finite_result,
    "trsm": _is_solution,
    "trsv": _is_solution,
    "potrf": _has_factor,
    "potri": _has_worked,
    "posv": _is_definite_solution,
    "trtri": _has_worked,
    "getrf": _has_finite_factors,
    "getri": _is_inverse,
    "gesv": _is_general_solution,
    "sysv": _is_general_solution,
    "hesv": _is_general_solution,
}


def _are_alike(arrays: list[Any]) -> bool:
    """Whether the first two arrays have one shape."""
    return bool(arrays[0].shape == arrays[1].shape)


def _is_system(arrays: list[Any]) -> bool:
    """Whether the last array has the rows of right-hand sides of the first one."""
    return bool(arrays[0].shape[0] == arrays[-1].shape[0])


def _has_columns(arrays: list[Any]) -> bool:
    """Whether a matrix has no fewer rows than columns, and these are no fewer than reflectors."""
    (m, n), (k,) = arrays[0].shape, arrays[1].shape
    return bool(m >= n >= k)


def _has_reflectors(arrays: list[Any]) -> bool:
    """Whether a matrix from the left has a column a reflector, and as many rows as the other one."""
    (order, columns), (k,), rows = arrays[0].shape, arrays[1].shape, arrays[2].shape[0]
    return bool(order == rows and columns == k <= order)


_FITS = {"orgqr": _has_columns, "ormqr": _has_reflectors}


def _fits_of(routine: Routine, arrays: Mapping[str, Any]) -> Callable[[list[Any]], bool] | None:
    """The check of the arrays of a routine that SciPy's function lacks."""
    if routine.is_rank_2 and routine.group == "level3":
        return _are_alike
    if routine.group == "lapack" and "b" in arrays:
        return _is_system
    return _FITS.get(routine.stem)


def _letters_of(names: Mapping[str, str]) -> tuple[str, ...]:
    """LAPACK's letters of Q and its conjugate transpose; those of all dtypes where there are several."""
    kinds = {DTYPES[letter].is_complex for letter in names}
    return ("N",) if len(kinds) > 1 else ("N", "C" if True in kinds else "T")


def _workspace_of_geqrf(dtype: Any, a: _Shape) -> int:
    return workspace_of_geqrf(dtype, *a)


def _workspace_of_orgqr(dtype: Any, a: _Shape, tau: _Shape) -> int:
    return workspace_of_orgqr(dtype, *a, *tau)


def _workspace_of_ormqr(dtype: Any, a: _Shape, tau: _Shape, c: _Shape) -> int:
    return workspace_of_ormqr(dtype, Side.LEFT, *c, *tau)


def _workspace_of_geqp3(dtype: Any, a: _Shape) -> int:
    return workspace_of_geqp3(dtype, *a)


_WORKSPACES: dict[str, Callable[..., int]] = {
    "geqp3": _workspace_of_geqp3,
    "geqrf": _workspace_of_geqrf,
    "orgqr": _workspace_of_orgqr,
    "ormqr": _workspace_of_ormqr,
}


def by_scipy(function: Callable[..., Any], stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """Return `function`, but SciPy's for NumPy arrays where it is computed by that.

    Parameters
    ----------
    function : callable
        The function of this package.
    stem, name : str
        The name without and with the letter of the dtype.
    dtype : Dtype or None
        None for the dtype of the arrays.
    """
    if (routine := ROUTINES.get(stem)) is None:
        return function
    letters = routine.letters if dtype is None else dtype.letter
    names = {x: x + stem if dtype is None else name for x in letters if x in routine.direct}
    if not names:
        return function
    return directly(function, _facts(routine, names, tuple(signature(function).parameters)))


def by_scipy_without_row(
    function: Callable[..., Any],
    names: Mapping[str, str],
    arrays: tuple[str, ...],
    fits: Callable[[list[Any]], bool],
    square: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Return `function` of a routine without a row, but SciPy's for NumPy matrices that are not overwritten.

    SciPy's LAPACK computes them whatever their order. The other arguments are those of `Facts`.
    """
    matrices = dict.fromkeys(arrays, (2,))
    values = _VALUES | _NOTHING
    facts = Facts(names, matrices, square, values=values, of_vectors=True, fits=fits, module="lapack")
    return directly(function, facts)


@cache
def attempt_of(routine: Routine, letter: str, name: str) -> Attempt | None:
    """The calls that SciPy's function of this name may serve, with its own parameters; None for none."""
    if letter not in routine.direct:
        return None
    written = re.search(r"\((.*?)\)", scipys(_MODULES[routine.group], name).__doc__ or "")
    if written is None:
        return None
    needed, _, optional = written[1].partition(",[")
    parameters = *needed.split(","), *filter(None, optional.rstrip("]").split(","))
    facts = _facts(routine, {letter: name}, parameters)
    # arrays that may be left out may be None
    left_out = {*facts.arrays}.difference(needed.split(","))
    return Attempt({each: None if each in left_out else ... for each in parameters}, facts)


def _facts(routine: Routine, names: Mapping[str, str], parameters: tuple[str, ...]) -> Facts:
    """The facts of a routine whose function has these parameters."""
    is_level_1, is_lapack = routine.group == "level1", routine.group == "lapack"
    arrays = {
        each.name: (1,) if each.cols == "1" else (1, 2) if is_lapack and each.name == "b" else (2,)
        for each in routine.matrices
        if each.name in parameters and each.name not in INTEGERS
    }
    flagged = tuple(name for name in arrays if f"overwrite_{name}" in parameters)
    values = dict(_VALUES)
    if is_level_1:
        values |= dict.fromkeys(_VALUES, _ANY)
        values |= {"incx": _FORWARDS} if len(arrays) == 1 else {}
    if routine.is_update:
        known = [routine.values("trans", DTYPES[letter]) for letter in names]
        values["trans"] = [code for code, op in enumerate(Trans) if all(op in each for each in known)]
    if routine.stem == "ormqr":  # which needs its workspace; from the left alone
        values |= {"side": ("L",), "trans": _letters_of(names), "lwork": range(UNBLOCKED, 2**31)}
    # of csscal and its like the numbers are real
    is_mixed = is_level_1 and any(name != routine.scipys(letter)[0] for letter, name in names.items())
    numbers = _NUMBERS.get(routine.stem, ())
    return Facts(
        names,
        arrays,
        square=tuple(
            each.name for each in routine.matrices if each.rows == each.cols and each.name in arrays
        ),
        written=flagged or tuple(_IN_PLACE.get(routine.stem, "")),
        numbers=numbers,
        real=numbers if is_mixed or routine.stem == "rot" else routine.real,
        values=values,
        of_vectors=routine.group in ("level1", "level2"),
        fits=_fits_of(routine, arrays),
        pivots=next((name for name in ("piv", "ipiv") if name in parameters), ""),
        most=_MOST.get(routine.stem, inf),
        workspace=_WORKSPACES.get(routine.stem),
        accepts=_ACCEPTS.get(routine.stem),
        module=_MODULES[routine.group],
    )
