"""Which method products take that ask for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from ..arguments import shown
from ..types import TENSOR, Dtype
from .overrides import get_override, override

__all__ = ["MIN_ORDER", "in_mode", "method_of", "mode_of_routine", "set_math_mode", "splits_singles"]

MODE = "math_mode"
#: Orders from which on a factorization gains by products on tensor cores: below, lookahead gains more.
MIN_ORDER = {"getrf": 12288}
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def set_math_mode(mode: str | None) -> Iterator[None]:
    """Within the block, and in this thread or task alone, how products are made.

    Parameters
    ----------
    mode : {'tensor'} or None
        'tensor': on tensor cores, as by ``gemm(..., method='tensor')``, within the same bound of the error:
        of FP16 in float32 and complex64, of INT8 in float64 and complex128.
        It holds for `gemm` and plans, for `linalg` and `blas`, and for the products that other routines are
        made of, as SYRK and the recursions of TRSM and Cholesky. None: by FMAs.

    Yields
    ------
    None
        The mode ends with the block.

    Raises
    ------
    ValueError
        For another mode.

    See Also
    --------
    gemm : A method for one product; other routines of products take it too.
    explain : What a call would run, the mode included.

    Notes
    -----
    Inner modes win. Where tensor cores do not serve, as for small products, triangles of float64 and on other
    devices, the mode changes nothing. Of float32 and complex64 each product takes a workspace as large as its
    two factors, large ones half as much again, in routines with a limit too. Beside these a large SYMM copies
    its matrix, and a large TRMM the one that it multiplies. Of float64 and complex128 a product takes up to
    4 GiB, and at most half of the memory that is free. Where too little is, it runs with FMAs, and rounds
    otherwise.

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.set_math_mode("tensor"):
    ...     pyblasgpu.gemm(a, b, out=c)  # doctest: +SKIP
    """
    if mode not in (None, TENSOR):
        raise ValueError(f"set_math_mode: mode={shown(mode)} is neither {TENSOR!r} nor None")
    with override(MODE, mode):
        yield


def in_mode(method: str | None, function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` run in the mode of a `method`; None is the mode around it."""
    if method is None:
        return function

    @wraps(function)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with override(MODE, method):
            return function(*arguments, **options)

    return run


@contextmanager
def mode_of_routine(routine: str, order: int) -> Iterator[None]:
    """Within the block a routine's products are made by FMAs, where the mode brings it nothing."""
    if order >= MIN_ORDER.get(routine, 0) or get_override(MODE) is None:
        yield
        return
    with override(MODE, None):
        yield


def method_of(requested: str | None) -> str | None:
    """The method of a product: what the call has `requested` for, else what the mode says."""
    mode: str | None = get_override(MODE)
    return mode if requested is None else requested


def splits_singles(dtype: Dtype) -> bool:
    """Whether the mode makes products in `dtype` of FP16. Routines of float32 and complex64 go other ways
    then; of float64 and complex128 they are the same, and their large products alone gain.
    """
    return dtype.real_size == 4 and method_of(None) == TENSOR
