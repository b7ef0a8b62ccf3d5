"""Types of `pyblasgpu.linalg`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload
from numpy.typing import NDArray

from .api.linalg.determinant import SlogdetResult
from .typing import (Array, ArrayLike, ArrayT, AssumeA, Casting, DiagFlag, Method, Order, Switch, TransFlag,
    UploFlag)

__all__ = ["cho_factor", "cho_solve", "cholesky", "cond", "cross", "det", "diagonal", "dot", "eigh",
    "eigvalsh", "einsum", "expm", "funm", "inertia", "inner", "inv", "ldl", "logm", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "matvec", "multi_dot", "norm", "null_space", "orth", "outer", "pinv", "pinvh", "polar", "qr", "qr_delete",
    "qr_insert", "qr_multiply", "qr_update", "slogdet", "solve", "solve_triangular", "sqrtm", "svd",
    "svdvals", "tensordot", "trace", "vdot", "vecdot", "vecmat", "vector_norm"]

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
    check_finite: Switch | None = None, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def cho_solve(
    c_and_lower: tuple[ArrayLike, Switch], b: ArrayLike, overwrite_b: Switch = False,
    check_finite: Switch | None = None, *, method: Literal["tensor"] | None = None,
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
def cond(x: Array | ArrayLike, p: str | float | None = None) -> Any: ...
@overload
def cross(x1: ArrayT, x2: ArrayT, /, *, axis: int = -1) -> ArrayT: ...
@overload
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> NDArray[Any]: ...
def det(a: Array | ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None) -> Any: ...
@overload
def diagonal(x: ArrayT, /, *, offset: int = 0) -> ArrayT: ...
@overload
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> NDArray[Any]: ...
def dot(a: Array | ArrayLike | complex, b: Array | ArrayLike | complex, out: Array | None = None) -> Any: ...
def eigh(
    a: Array | ArrayLike, b: Array | ArrayLike | None = None, *, lower: UploFlag | Switch = True,
    eigvals_only: Switch = False, overwrite_a: Switch = False, overwrite_b: Switch = False,
    type: Literal[1, 2, 3] = 1, check_finite: Switch | None = None,
    subset_by_index: Sequence[int] | None = None, subset_by_value: Sequence[float] | None = None,
    driver: Literal["ev", "evd", "evr", "evx", "gv", "gvd", "gvx"] | None = None,
    UPLO: Literal["L", "U", "l", "u"] | None = None,
) -> Any: ...
@overload
def eigvalsh(
    a: ArrayT, b: ArrayT | None = None, *, lower: UploFlag | Switch = True, overwrite_a: Switch = False,
    overwrite_b: Switch = False, type: Literal[1, 2, 3] = 1, check_finite: Switch | None = None,
    subset_by_index: Sequence[int] | None = None, subset_by_value: Sequence[float] | None = None,
    driver: Literal["ev", "evd", "evr", "evx", "gv", "gvd", "gvx"] | None = None,
    UPLO: Literal["L", "U", "l", "u"] | None = None,
) -> ArrayT: ...
@overload
def eigvalsh(
    a: ArrayLike, b: ArrayLike | None = None, *, lower: UploFlag | Switch = True,
    overwrite_a: Switch = False, overwrite_b: Switch = False, type: Literal[1, 2, 3] = 1,
    check_finite: Switch | None = None, subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: Literal["ev", "evd", "evr", "evx", "gv", "gvd", "gvx"] | None = None,
    UPLO: Literal["L", "U", "l", "u"] | None = None,
) -> NDArray[Any]: ...
@overload
def einsum(subscripts: str, a: ArrayT, b: ArrayT, /, out: ArrayT | None = None) -> ArrayT: ...
@overload
def einsum(
    subscripts: str, a: ArrayLike | complex, b: ArrayLike | complex, /, out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def expm(A: ArrayT) -> ArrayT: ...
@overload
def expm(A: ArrayLike) -> NDArray[Any]: ...
def funm(
    A: Array | ArrayLike, func: Callable[..., Any], disp: Switch = True, *, hermitian: Switch = False,
) -> Any: ...
def inertia(
    A: Array | ArrayLike, lower: UploFlag | Switch = True, overwrite_a: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[Any, Any, Any]: ...
def inner(a: Array | ArrayLike | complex, b: Array | ArrayLike | complex, /) -> Any: ...
@overload
def inv(
    a: ArrayT, overwrite_a: Switch = False, check_finite: Switch | None = None, *,
    assume_a: AssumeA | None = None, lower: UploFlag | Switch = False,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def inv(
    a: ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None, *,
    assume_a: AssumeA | None = None, lower: UploFlag | Switch = False,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def ldl(
    A: ArrayT, lower: UploFlag | Switch = True, hermitian: Switch = True, overwrite_a: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
@overload
def ldl(
    A: ArrayLike, lower: UploFlag | Switch = True, hermitian: Switch = True, overwrite_a: Switch = False,
    check_finite: Switch | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@overload
def logm(A: ArrayT, *, hermitian: Switch = False) -> ArrayT: ...
@overload
def logm(A: ArrayLike, *, hermitian: Switch = False) -> NDArray[Any]: ...
@overload
def lstsq(
    a: ArrayT, b: ArrayT, cond: float | None = None, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None,
    lapack_driver: Literal["gelsd", "gelsy", "gelss", "gels"] | None = None, *,
    method: Literal["tensor"] | None = None,
) -> tuple[ArrayT, ArrayT, Any, Any]: ...
@overload
def lstsq(
    a: ArrayLike, b: ArrayLike, cond: float | None = None, overwrite_a: Switch = False,
    overwrite_b: Switch = False, check_finite: Switch | None = None,
    lapack_driver: Literal["gelsd", "gelsy", "gelss", "gels"] | None = None, *,
    method: Literal["tensor"] | None = None,
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
def matrix_norm(x: Array | ArrayLike, /, *, keepdims: Switch = False, ord: str | float = "fro") -> Any: ...
@overload
def matrix_power(a: ArrayT, n: int) -> ArrayT: ...
@overload
def matrix_power(a: ArrayLike, n: int) -> NDArray[Any]: ...
def matrix_rank(
    A: Array | ArrayLike, tol: float | Array | ArrayLike | None = None, hermitian: Switch = False, *,
    rtol: float | Array | ArrayLike | None = None, check_finite: Switch | None = None,
) -> Any: ...
@overload
def matrix_transpose(x: ArrayT, /) -> ArrayT: ...
@overload
def matrix_transpose(x: ArrayLike, /) -> NDArray[Any]: ...
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
def norm(
    a: Array | ArrayLike, ord: str | float | None = None, axis: int | Sequence[int] | None = None,
    keepdims: Switch = False, check_finite: Switch | None = None,
) -> Any: ...
@overload
def null_space(
    A: ArrayT, rcond: float | None = None, *, overwrite_a: Switch = False,
    check_finite: Switch | None = None, lapack_driver: Literal["gesdd", "gesvd"] = "gesdd",
) -> ArrayT: ...
@overload
def null_space(
    A: ArrayLike, rcond: float | None = None, *, overwrite_a: Switch = False,
    check_finite: Switch | None = None, lapack_driver: Literal["gesdd", "gesvd"] = "gesdd",
) -> NDArray[Any]: ...
@overload
def orth(A: ArrayT, rcond: float | None = None) -> ArrayT: ...
@overload
def orth(A: ArrayLike, rcond: float | None = None) -> NDArray[Any]: ...
@overload
def outer(a: ArrayT, b: ArrayT, out: ArrayT | None = None) -> ArrayT: ...
@overload
def outer(
    a: ArrayLike | complex, b: ArrayLike | complex, out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def pinv(
    a: Array | ArrayLike, *, atol: float | Array | ArrayLike | None = None,
    rtol: float | Array | ArrayLike | None = None, return_rank: Switch = False,
    check_finite: Switch | None = None, hermitian: Switch = False,
) -> Any: ...
def pinvh(
    a: Array | ArrayLike, atol: float | Array | ArrayLike | None = None,
    rtol: float | Array | ArrayLike | None = None, lower: UploFlag | Switch = True,
    return_rank: Switch = False, check_finite: Switch | None = None,
) -> Any: ...
@overload
def polar(a: ArrayT, side: Literal["right", "left"] = "right") -> tuple[ArrayT, ArrayT]: ...
@overload
def polar(a: ArrayLike, side: Literal["right", "left"] = "right") -> tuple[NDArray[Any], NDArray[Any]]: ...
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
def sqrtm(A: ArrayT, *, hermitian: Switch = False) -> ArrayT: ...
@overload
def sqrtm(A: ArrayLike, *, hermitian: Switch = False) -> NDArray[Any]: ...
def svd(
    a: Array | ArrayLike, full_matrices: Switch = True, compute_uv: Switch = True,
    overwrite_a: Switch = False, check_finite: Switch | None = None,
    lapack_driver: Literal["gesdd", "gesvd"] = "gesdd",
) -> Any: ...
@overload
def svdvals(a: ArrayT, overwrite_a: Switch = False, check_finite: Switch | None = None) -> ArrayT: ...
@overload
def svdvals(
    a: ArrayLike, overwrite_a: Switch = False, check_finite: Switch | None = None,
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
def trace(x: Array | ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Any: ...
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
def vector_norm(
    x: Array | ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: Switch = False,
    ord: float = 2,
) -> Any: ...
