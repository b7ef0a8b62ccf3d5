"""Types of `pyblasgpu.linalg`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, Literal, overload
from numpy.typing import NDArray

from .api.linalg.determinant import SlogdetResult
from .typing import (Array, ArrayLike, ArrayT, AssumeA, Casting, DiagFlag, Method, Order, Switch, TransFlag,
    UploFlag)

__all__ = ["cho_factor", "cho_solve", "cholesky", "det", "dot", "einsum", "inner", "inv", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul", "matrix_power", "matvec", "multi_dot", "outer", "qr", "qr_delete",
    "qr_insert", "qr_multiply", "qr_update", "slogdet", "solve", "solve_triangular", "tensordot", "vdot",
    "vecdot", "vecmat"]

@overload
def cho_factor(
    a: ArrayT, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[ArrayT, Switch]: ...
@overload
def cho_factor(
    a: ArrayLike, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[NDArray[Any], Switch]: ...
@overload
def cho_solve(
    c_and_lower: tuple[ArrayT, Switch], b: ArrayT, overwrite_b: Switch = False,
    check_finite: Switch | None = None,
) -> ArrayT: ...
@overload
def cho_solve(
    c_and_lower: tuple[ArrayLike, Switch], b: ArrayLike, overwrite_b: Switch = False,
    check_finite: Switch | None = None,
) -> NDArray[Any]: ...
@overload
def cholesky(
    a: ArrayT, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None, *, upper: Switch | None = None,
) -> ArrayT: ...
@overload
def cholesky(
    a: ArrayLike, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None, *, upper: Switch | None = None,
) -> NDArray[Any]: ...
def det(a: Array | ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None) -> Any: ...
def dot(a: Array | ArrayLike | complex, b: Array | ArrayLike | complex, out: Array | None = None) -> Any: ...
@overload
def einsum(subscripts: str, a: ArrayT, b: ArrayT, /, out: ArrayT | None = None) -> ArrayT: ...
@overload
def einsum(
    subscripts: str, a: ArrayLike | complex, b: ArrayLike | complex, /, out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def inner(a: Array | ArrayLike | complex, b: Array | ArrayLike | complex, /) -> Any: ...
@overload
def inv(
    a: ArrayT, overwrite_a: Switch = False, check_finite: Switch | None = None, *,
    assume_a: AssumeA | None = None, lower: UploFlag | Switch = False,
) -> ArrayT: ...
@overload
def inv(
    a: ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None, *,
    assume_a: AssumeA | None = None, lower: UploFlag | Switch = False,
) -> NDArray[Any]: ...
@overload
def lstsq(
    a: ArrayT, b: ArrayT, cond: float | None = None, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None,
    lapack_driver: Literal["gelsd", "gelsy", "gelss", "gels"] | None = None,
) -> tuple[ArrayT, ArrayT, Any, Any]: ...
@overload
def lstsq(
    a: ArrayLike, b: ArrayLike, cond: float | None = None, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None,
    lapack_driver: Literal["gelsd", "gelsy", "gelss", "gels"] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], Any, Any]: ...
@overload
def lu(
    a: ArrayT, permute_l: Literal[False, 0] = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None, p_indices: Switch = False,
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
@overload
def lu(
    a: ArrayT, permute_l: Literal[True, 1], overwrite_a: Switch = False, check_finite: Switch | None = None,
    p_indices: Switch = False,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def lu(
    a: ArrayLike, permute_l: Literal[False, 0] = False, overwrite_a: Switch = False,
    check_finite: Switch | None = None, p_indices: Switch = False,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@overload
def lu(
    a: ArrayLike, permute_l: Literal[True, 1], overwrite_a: Switch = False,
    check_finite: Switch | None = None, p_indices: Switch = False,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def lu_factor(
    a: ArrayT, overwrite_a: Switch = False, check_finite: Switch | None = None,
) -> tuple[ArrayT, Any]: ...
@overload
def lu_factor(
    a: ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None,
) -> tuple[NDArray[Any], Any]: ...
@overload
def lu_solve(
    lu_and_piv: tuple[ArrayT, Any], b: ArrayT, trans: TransFlag | Switch = 0, overwrite_b: Switch = False,
    check_finite: Switch | None = None,
) -> ArrayT: ...
@overload
def lu_solve(
    lu_and_piv: tuple[ArrayLike, Any], b: ArrayLike, trans: TransFlag | Switch = 0,
    overwrite_b: Switch = False, check_finite: Switch | None = None,
) -> NDArray[Any]: ...
@overload
def matmul(
    x1: ArrayT, x2: ArrayT, /, out: Any = None, *, casting: Casting = "same_kind", order: Order | None = "K",
    dtype: Any = None, subok: bool = True, method: Method | None = None,
) -> ArrayT: ...
@overload
def matmul(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, *, casting: Casting = "same_kind",
    order: Order | None = "K", dtype: Any = None, subok: bool = True, method: Method | None = None,
) -> NDArray[Any]: ...
@overload
def matrix_power(a: ArrayT, n: int) -> ArrayT: ...
@overload
def matrix_power(a: ArrayLike, n: int) -> NDArray[Any]: ...
@overload
def matvec(
    x1: ArrayT, x2: ArrayT, /, out: Any = None, *, casting: Casting = "same_kind", order: Order | None = "K",
    dtype: Any = None, subok: bool = True,
) -> ArrayT: ...
@overload
def matvec(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, *, casting: Casting = "same_kind",
    order: Order | None = "K", dtype: Any = None, subok: bool = True,
) -> NDArray[Any]: ...
@overload
def multi_dot(arrays: Sequence[ArrayT], *, out: ArrayT | None = None) -> ArrayT: ...
@overload
def multi_dot(arrays: Sequence[ArrayLike], *, out: NDArray[Any] | None = None) -> NDArray[Any]: ...
@overload
def outer(a: ArrayT, b: ArrayT, out: ArrayT | None = None) -> ArrayT: ...
@overload
def outer(
    a: ArrayLike | complex, b: ArrayLike | complex, out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def qr(
    a: Array | ArrayLike, overwrite_a: Switch = False, lwork: int | None = None,
    mode: Literal["full", "economic", "r", "raw", "complete", "reduced"] = "full", pivoting: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[Any, ...]: ...
@overload
def qr_delete(
    Q: ArrayT, R: ArrayT, k: int, p: int = 1, which: Literal["row", "col"] = "row",
    overwrite_qr: Switch = False, check_finite: Switch | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def qr_delete(
    Q: ArrayLike, R: ArrayLike, k: int, p: int = 1, which: Literal["row", "col"] = "row",
    overwrite_qr: Switch = False, check_finite: Switch | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def qr_insert(
    Q: ArrayT, R: ArrayT, u: ArrayT, k: int, which: Literal["row", "col"] = "row",
    rcond: float | None = None, overwrite_qru: Switch = False, check_finite: Switch | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def qr_insert(
    Q: ArrayLike, R: ArrayLike, u: ArrayLike, k: int, which: Literal["row", "col"] = "row",
    rcond: float | None = None, overwrite_qru: Switch = False, check_finite: Switch | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def qr_multiply(
    a: ArrayT, c: ArrayT, mode: Literal["left", "right"] = "right", pivoting: Switch = False,
    conjugate: Switch = False, overwrite_a: Switch = False, overwrite_c: Switch = False,
) -> tuple[ArrayT, ...]: ...
@overload
def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: Literal["left", "right"] = "right", pivoting: Switch = False,
    conjugate: Switch = False, overwrite_a: Switch = False, overwrite_c: Switch = False,
) -> tuple[NDArray[Any], ...]: ...
@overload
def qr_update(
    Q: ArrayT, R: ArrayT, u: ArrayT, v: ArrayT, overwrite_qruv: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def qr_update(
    Q: ArrayLike, R: ArrayLike, u: ArrayLike, v: ArrayLike, overwrite_qruv: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def slogdet(a: Array | ArrayLike) -> SlogdetResult: ...
@overload
def solve(
    a: ArrayT, b: ArrayT, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None, assume_a: AssumeA | None = None,
    transposed: Switch = False, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def solve(
    a: ArrayLike, b: ArrayLike, lower: UploFlag | Switch = False, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None, assume_a: AssumeA | None = None,
    transposed: Switch = False, *, method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def solve_triangular(
    a: ArrayT, b: ArrayT, trans: TransFlag | Switch = 0, lower: UploFlag | Switch = False,
    unit_diagonal: DiagFlag | Switch = False, overwrite_b: Switch = False,
    check_finite: Switch | None = None,
) -> ArrayT: ...
@overload
def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: TransFlag | Switch = 0, lower: UploFlag | Switch = False,
    unit_diagonal: DiagFlag | Switch = False, overwrite_b: Switch = False,
    check_finite: Switch | None = None,
) -> NDArray[Any]: ...
@overload
def tensordot(
    a: ArrayT, b: ArrayT, axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2,
) -> ArrayT: ...
@overload
def tensordot(
    a: ArrayLike | complex, b: ArrayLike | complex,
    axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2,
) -> NDArray[Any]: ...
def vdot(a: Array | ArrayLike | complex, b: Array | ArrayLike | complex, /) -> Any: ...
def vecdot(
    x1: Array | ArrayLike, x2: Array | ArrayLike, /, out: Any = None, *, axis: int = -1,
    casting: Casting = "same_kind", order: Order | None = "K", dtype: Any = None, subok: bool = True,
) -> Any: ...
@overload
def vecmat(
    x1: ArrayT, x2: ArrayT, /, out: Any = None, *, casting: Casting = "same_kind", order: Order | None = "K",
    dtype: Any = None, subok: bool = True,
) -> ArrayT: ...
@overload
def vecmat(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, *, casting: Casting = "same_kind",
    order: Order | None = "K", dtype: Any = None, subok: bool = True,
) -> NDArray[Any]: ...
