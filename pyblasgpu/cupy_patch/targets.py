"""The functions of CuPy that `patch_cupy` replaces, and the sizes of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from math import prod
from typing import Any

from ..patches.sizes import FEWEST, Size, Sizes, Target, argument
from . import functions

__all__ = ["KINDS", "LEAST", "targets"]

#: Whose size decides, by function: entries of the policy's ``replaced_min_size``.
KINDS = {
    "cholesky": "cholesky",
    "solve": "lu",
    "inv": "inverse",
    "slogdet": "lu",
    "det": "lu",
    "solve_triangular": "triangle",
    "lu_factor": "lu",
    "lu_solve": "triangle",
    "lu": "lu",
    "qr": "qr",
    "eigh": "eigh_stack",
    "eigvalsh": "eigh_stack",
    "svd": "svd_stack",
    "matmul": "product",
    "dot": "product",
}
#: Orders from which on functions are replaced that may wait, where CuPy's do not.
LEAST = {"solve": 1024, "inv": 1024, "qr": 1024}


def targets(active: list[Any]) -> Iterator[Target]:
    """The functions of cupy.linalg and cupyx.scipy.linalg, and products."""
    cupy = import_module("cupy")
    sizes = Sizes(cupy.ndarray)
    measures: dict[str, Size] = {
        "solve_triangular": sizes.solves("a"),
        "lu_solve": sizes.solves("lu_and_piv"),
        "lu_factor": sizes.order_of_a,
        "lu": sizes.order_of_a,
        "qr": sizes.order_of_a,
        "eigh": _of_many(sizes.of_square_stacks),
        "eigvalsh": _of_many(sizes.of_square_stacks),
        "svd": _of_many(sizes.of_stacks),
        "matmul": _alone(sizes.product),
        "dot": _alone(_of_matrices(sizes.product)),
    }
    places = {
        "cupy.linalg": (cupy.linalg, functions.LINALG),
        "cupyx.scipy.linalg": (import_module("cupyx.scipy.linalg"), functions.SCIPYS),
        "cupy": (cupy, functions.PRODUCTS),
    }
    for home, (module, group) in places.items():
        for function in group:
            name = function.__name__
            original = getattr(module, name, None)
            if original is not None:
                size = measures.get(name, sizes.order_if_square)
                size = size if home == "cupy" else _unchecked(size)
                yield Target(name, f"{home}:{name}", original, function, size, cupy.ndarray, active)


def _unchecked(size: Size) -> Size:
    """The size of a call where CuPy does not look at info, as it does on request."""

    def measured(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        return -1 if import_module("cupyx").geterr()["linalg"] == "raise" else size(args, kwargs)

    return measured


def _of_many(size: Size) -> Size:
    """The size of stacks of at least `FEWEST` matrices."""

    def measured(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        return size(args, kwargs) if prod(argument(args, kwargs, 0, "a").shape[:-2]) >= FEWEST else -1

    return measured


def _alone(size: Size) -> Size:
    """The size of a call without options, as ``out``."""
    return lambda args, kwargs: -1 if kwargs or len(args) != 2 else size(args, kwargs)


def _of_matrices(size: Size) -> Size:
    """The size of a call with two matrices, not with stacks."""
    return lambda args, kwargs: size(args, kwargs) if args[0].ndim == args[1].ndim == 2 else -1
