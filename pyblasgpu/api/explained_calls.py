"""The launch lists of calls of level 1, level 2 and LAPACK that `explain` lists, on dense operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..frontend.calls.lazy_routines import launch_list_of, routine_module
from ..operands import Operand
from ..types import DTYPES, INDEX, Diag, Dtype, Side, Trans, Uplo

__all__ = ["EXPLAINED", "SQUARES", "VECTORS", "launch_lists"]


class _Call(NamedTuple):
    """m by n of a dtype, column-major; `batch` of them on a device."""

    dtype: Dtype
    m: int
    n: int
    batch: int
    device: int

    def dense(self, rows: int, cols: int, dtype: Dtype | None = None) -> Operand:
        ld = max(rows, 1)
        kind = dtype or self.dtype
        return Operand(0, rows, cols, 1, ld, kind, False, self.batch, ld * cols, self.device)

    def vector(self, length: int) -> Operand:
        return self.dense(length, 1)

    @property
    def square(self) -> Operand:
        return self.dense(self.m, self.m)

    @property
    def integer(self) -> Operand:
        """An integer for each matrix, as `info`."""
        return self.vector(1)


def _map(operation: str) -> Callable[[_Call], list[Any]]:
    def lists(call: _Call) -> list[Any]:
        return [
            routine_module("level1").launch_list(operation, 2.0, call.vector(call.m), call.vector(call.m))
        ]

    return lists


def _reduction(operation: str) -> Callable[[_Call], list[Any]]:
    def lists(call: _Call) -> list[Any]:
        real = DTYPES["s" if call.dtype.real_size == 4 else "d"]
        number = {"dot": call.dtype, "iamax": INDEX}.get(operation, real)
        vectors = [call.vector(call.m)] * (2 if operation == "dot" else 1)
        make = routine_module("level1").reduce_launch_list
        return [make(operation, False, *vectors, call.dense(1, 1, number))]

    return lists


def _gemv(call: _Call) -> list[Any]:
    a = call.dense(call.m, call.n)
    return [launch_list_of("gemv")(2.0, a, call.vector(call.n), 0, call.vector(call.m))]


def _ger(call: _Call) -> list[Any]:
    return [launch_list_of("ger")(2.0, call.vector(call.m), call.vector(call.n), call.dense(call.m, call.n))]


def _symmetric(hermitian: bool) -> Callable[[_Call], list[Any]]:
    def lists(call: _Call) -> list[Any]:
        x, flags = call.vector(call.m), {"uplo": Uplo.LOWER, "hermitian": hermitian and call.dtype.is_complex}
        return [launch_list_of("symv")(2.0, call.square, x, 0, x, **flags)]

    return lists


def _rank(which: str, hermitian: bool) -> Callable[[_Call], list[Any]]:
    def lists(call: _Call) -> list[Any]:
        vectors = [call.vector(call.m)] * (2 if which == "syr2" else 1)
        flags = {"uplo": Uplo.LOWER, "hermitian": hermitian and call.dtype.is_complex}
        return [launch_list_of(which)(2.0, *vectors, call.square, **flags)]

    return lists


def _trmv(call: _Call) -> list[Any]:
    x = call.vector(call.m)
    return [launch_list_of("trmv")(call.square, x, x, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)]


def _trsv(call: _Call) -> list[Any]:
    flags = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
    return [launch_list_of("trsm")(1, call.square, call.vector(call.m), **flags)]


def _factor(name: str, *, info: bool = True, **flags: Any) -> Callable[[_Call], list[Any]]:
    """Return the launch lists of a factor of one square matrix, with `info` or without."""

    def lists(call: _Call) -> list[Any]:
        return [launch_list_of(name)(*[call.integer] * info, call.square, **flags)]

    return lists


def _potrs(call: _Call) -> list[Any]:
    return [launch_list_of("potrs")(call.square, call.dense(call.m, call.n), uplo=Uplo.LOWER)]


def _trtrs(call: _Call) -> list[Any]:
    operands = call.integer, call.square, call.dense(call.m, call.n)
    return [launch_list_of("trtrs")(*operands, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)]


def _getrf(call: _Call) -> list[Any]:
    piv = call.vector(min(call.m, call.n))
    return [launch_list_of("getrf")(piv, call.integer, call.dense(call.m, call.n))]


def _getrs(call: _Call) -> list[Any]:
    operands = call.vector(call.m), call.square, call.dense(call.m, call.n)
    return [launch_list_of("getrs")(*operands, trans=Trans.NO)]


def _getri(call: _Call) -> list[Any]:
    return [launch_list_of("getri")(call.integer, call.vector(call.m), call.square)]


def _laswp(call: _Call) -> list[Any]:
    piv = call.vector(min(call.m, call.n))
    return [launch_list_of("laswp")(piv, call.dense(call.m, call.n), backwards=False)]


_POTRF = _factor("potrf", uplo=Uplo.LOWER)
_VECTORS = {
    **{name: _map(name) for name in ("copy", "scal", "axpy", "swap", "rot")},
    **{name: _reduction(name) for name in ("dot", "nrm2", "asum", "iamax")},
}
_RECTANGLES = {
    "gemv": _gemv,
    "ger": _ger,
    "potrs": _potrs,
    "posv": lambda call: [*_POTRF(call), *_potrs(call)],
    "trtrs": _trtrs,
    "getrf": _getrf,
    "getrs": _getrs,
    "gesv": lambda call: [*_getrf(call._replace(n=call.m)), *_getrs(call)],
    "laswp": _laswp,
}
_SQUARES = {
    "symv": _symmetric(False),
    "hemv": _symmetric(True),
    "trmv": _trmv,
    "trsv": _trsv,
    "syr": _rank("syr", False),
    "her": _rank("syr", True),
    "syr2": _rank("syr2", False),
    "her2": _rank("syr2", True),
    "potrf": _POTRF,
    "potri": _factor("potri", uplo=Uplo.LOWER),
    "trtri": _factor("trtri", uplo=Uplo.LOWER, diag=Diag.NON_UNIT),
    "lauum": _factor("lauum", info=False, uplo=Uplo.LOWER),
    "getri": _getri,
}
_CALLS: dict[str, Callable[[_Call], list[Any]]] = {**_VECTORS, **_RECTANGLES, **_SQUARES}

#: The routines: of vectors, of matrices, of LAPACK.
EXPLAINED = tuple(_CALLS)
#: Routines of vectors, and of a square matrix.
VECTORS, SQUARES = tuple(_VECTORS), tuple(_SQUARES)


def launch_lists(routine: str, dtype: Dtype, m: int, n: int, device: int, batch: int) -> list[Any]:
    """Return the launch lists of a call, in order."""
    return [
        launches for launches in _CALLS[routine](_Call(dtype, m, n, batch, device)) if launches is not None
    ]
