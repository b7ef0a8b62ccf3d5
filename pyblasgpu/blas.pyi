"""Types of `pyblasgpu.blas`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, Literal, overload
from numpy.typing import NDArray
import numpy as np

from .typing import (Array, ArrayLike, ArrayT, DiagFlag, Method, Number, SideFlag, Switch, TransFlag,
    UploFlag)

__all__ = ["cgemm", "cgemmtr", "chemm", "cher2k", "cherk", "csymm", "csyr2k", "csyrk", "ctrmm", "ctrsm",
    "dgemm", "dgemmtr", "dsymm", "dsyr2k", "dsyrk", "dtrmm", "dtrsm", "find_best_blas_type", "gemm", "gemmtr",
    "get_blas_funcs", "hemm", "her2k", "herk", "sgemm", "sgemmtr", "ssymm", "ssyr2k", "ssyrk", "strmm",
    "strsm", "symm", "syr2k", "syrk", "trmm", "trsm", "zgemm", "zgemmtr", "zhemm", "zher2k", "zherk", "zsymm",
    "zsyr2k", "zsyrk", "ztrmm", "ztrsm", "caxpy", "ccopy", "cdotc", "cdotu", "cscal", "csrot", "csscal",
    "cswap", "dasum", "daxpy", "dcopy", "ddot", "dnrm2", "drot", "drotm", "dscal", "dswap", "dzasum",
    "dznrm2", "icamax", "idamax", "isamax", "izamax", "sasum", "saxpy", "scasum", "scnrm2", "scopy", "sdot",
    "snrm2", "srot", "srotm", "sscal", "sswap", "zaxpy", "zcopy", "zdotc", "zdotu", "zdrot", "zdscal",
    "zscal", "zswap", "cgemv", "chemv", "ctrmv", "ctrsv", "dgemv", "dsymv", "dtrmv", "dtrsv", "sgemv",
    "ssymv", "strmv", "strsv", "zgemv", "zhemv", "ztrmv", "ztrsv", "cgerc", "cgeru", "cher", "cher2", "csyr",
    "dger", "dsyr", "dsyr2", "sger", "ssyr", "ssyr2", "zgerc", "zgeru", "zher", "zher2", "zsyr", "sgbmv",
    "dgbmv", "cgbmv", "zgbmv", "ssbmv", "dsbmv", "chbmv", "zhbmv", "stbmv", "dtbmv", "ctbmv", "ztbmv",
    "stbsv", "dtbsv", "ctbsv", "ztbsv", "sspmv", "dspmv", "cspmv", "zspmv", "chpmv", "zhpmv", "sspr", "dspr",
    "cspr", "zspr", "chpr", "zhpr", "sspr2", "dspr2", "chpr2", "zhpr2", "stpmv", "dtpmv", "ctpmv", "ztpmv",
    "stpsv", "dtpsv", "ctpsv", "ztpsv", "srotg", "drotg", "crotg", "zrotg", "srotmg", "drotmg"]

def find_best_blas_type(
    arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
) -> tuple[str, np.dtype[Any], bool]: ...
@overload
def gemm(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans_a: TransFlag | Switch = 0, trans_b: TransFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Method | None = None,
) -> ArrayT: ...
@overload
def gemm(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans_a: TransFlag | Switch = 0, trans_b: TransFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Method | None = None,
) -> NDArray[Any]: ...
@overload
def gemmtr(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans_a: TransFlag | Switch = 0, trans_b: TransFlag | Switch = 0, lower: UploFlag | Switch = 0,
    overwrite_c: Switch = 0,
) -> ArrayT: ...
@overload
def gemmtr(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans_a: TransFlag | Switch = 0, trans_b: TransFlag | Switch = 0, lower: UploFlag | Switch = 0,
    overwrite_c: Switch = 0,
) -> NDArray[Any]: ...
def get_blas_funcs(
    names: str | Sequence[str], arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
    ilp64: bool | str = False,
) -> Any: ...
@overload
def hemm(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def hemm(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def her2k(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def her2k(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def herk(
    alpha: Number, a: ArrayT, beta: Number = 0.0, c: ArrayT | None = None, trans: TransFlag | Switch = 0,
    lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def herk(
    alpha: Number, a: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def trmm(
    alpha: Number, a: ArrayT, b: ArrayT, side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0,
    trans_a: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_b: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def trmm(
    alpha: Number, a: ArrayLike, b: ArrayLike, side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0,
    trans_a: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_b: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def trsm(
    alpha: Number, a: ArrayT, b: ArrayT, side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0,
    trans_a: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_b: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def trsm(
    alpha: Number, a: ArrayLike, b: ArrayLike, side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0,
    trans_a: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_b: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
cgemm = gemm
cgemmtr = gemmtr
chemm = hemm
cher2k = her2k
cherk = herk
@overload
def csymm(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def csymm(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def csyr2k(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def csyr2k(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def csyrk(
    alpha: Number, a: ArrayT, beta: Number = 0.0, c: ArrayT | None = None, trans: TransFlag | Switch = 0,
    lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def csyrk(
    alpha: Number, a: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
ctrmm = trmm
ctrsm = trsm
dgemm = gemm
dgemmtr = gemmtr
dsymm = csymm
dsyr2k = csyr2k
dsyrk = csyrk
dtrmm = trmm
dtrsm = trsm
sgemm = gemm
sgemmtr = gemmtr
ssymm = csymm
ssyr2k = csyr2k
ssyrk = csyrk
strmm = trmm
strsm = trsm
@overload
def symm(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def symm(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def syr2k(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def syr2k(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def syrk(
    alpha: Number, a: ArrayT, beta: Number = 0.0, c: ArrayT | None = None, trans: TransFlag | Switch = 0,
    lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def syrk(
    alpha: Number, a: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
zgemm = gemm
zgemmtr = gemmtr
zhemm = hemm
zher2k = her2k
zherk = herk
zsymm = csymm
zsyr2k = csyr2k
zsyrk = csyrk
ztrmm = trmm
ztrsm = trsm
@overload
def caxpy(
    x: ArrayT, y: ArrayT, n: int | None = None, a: Number = 1.0, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> ArrayT: ...
@overload
def caxpy(
    x: ArrayLike, y: ArrayLike, n: int | None = None, a: Number = 1.0, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> NDArray[Any]: ...
@overload
def ccopy(
    x: ArrayT, y: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1,
) -> ArrayT: ...
@overload
def ccopy(
    x: ArrayLike, y: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> NDArray[Any]: ...
def cdotc(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
def cdotu(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
@overload
def cscal(a: Number, x: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1) -> ArrayT: ...
@overload
def cscal(a: Number, x: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> NDArray[Any]: ...
@overload
def csrot(
    x: ArrayT, y: ArrayT, c: Number, s: Number, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def csrot(
    x: ArrayLike, y: ArrayLike, c: Number, s: Number, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def csscal(
    a: Number, x: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def csscal(
    a: Number, x: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
@overload
def cswap(
    x: ArrayT, y: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def cswap(
    x: ArrayLike, y: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def dasum(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
daxpy = caxpy
dcopy = ccopy
def ddot(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
def dnrm2(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
drot = csrot
@overload
def drotm(
    x: ArrayT, y: ArrayT, param: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def drotm(
    x: ArrayLike, y: ArrayLike, param: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
dscal = cscal
dswap = cswap
dzasum = dasum
dznrm2 = dnrm2
def icamax(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
idamax = icamax
isamax = icamax
izamax = icamax
sasum = dasum
saxpy = caxpy
scasum = dasum
scnrm2 = dnrm2
scopy = ccopy
sdot = ddot
snrm2 = dnrm2
srot = csrot
srotm = drotm
sscal = cscal
sswap = cswap
zaxpy = caxpy
zcopy = ccopy
zdotc = cdotc
zdotu = cdotu
zdrot = csrot
zdscal = csscal
zscal = cscal
zswap = cswap
@overload
def cgemv(
    alpha: Number, a: ArrayT, x: ArrayT, beta: Number = 0.0, y: ArrayT | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, trans: TransFlag | Switch = 0, overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def cgemv(
    alpha: Number, a: ArrayLike, x: ArrayLike, beta: Number = 0.0, y: ArrayLike | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, trans: TransFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
@overload
def chemv(
    alpha: Number, a: ArrayT, x: ArrayT, beta: Number = 0.0, y: ArrayT | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def chemv(
    alpha: Number, a: ArrayLike, x: ArrayLike, beta: Number = 0.0, y: ArrayLike | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
@overload
def ctrmv(
    a: ArrayT, x: ArrayT, offx: int = 0, incx: int = 1, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def ctrmv(
    a: ArrayLike, x: ArrayLike, offx: int = 0, incx: int = 1, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
@overload
def ctrsv(
    a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def ctrsv(
    a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dgemv = cgemv
@overload
def dsymv(
    alpha: Number, a: ArrayT, x: ArrayT, beta: Number = 0.0, y: ArrayT | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def dsymv(
    alpha: Number, a: ArrayLike, x: ArrayLike, beta: Number = 0.0, y: ArrayLike | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dtrmv = ctrmv
dtrsv = ctrsv
sgemv = cgemv
ssymv = dsymv
strmv = ctrmv
strsv = ctrsv
zgemv = cgemv
zhemv = chemv
ztrmv = ctrmv
ztrsv = ctrsv
@overload
def cgerc(
    alpha: Number, x: ArrayT, y: ArrayT, incx: int = 1, incy: int = 1, a: ArrayT | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def cgerc(
    alpha: Number, x: ArrayLike, y: ArrayLike, incx: int = 1, incy: int = 1, a: ArrayLike | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def cgeru(
    alpha: Number, x: ArrayT, y: ArrayT, incx: int = 1, incy: int = 1, a: ArrayT | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def cgeru(
    alpha: Number, x: ArrayLike, y: ArrayLike, incx: int = 1, incy: int = 1, a: ArrayLike | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def cher(
    alpha: Number, x: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def cher(
    alpha: Number, x: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def cher2(
    alpha: Number, x: ArrayT, y: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def cher2(
    alpha: Number, x: ArrayLike, y: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def csyr(
    alpha: Number, x: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def csyr(
    alpha: Number, x: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def dger(
    alpha: Number, x: ArrayT, y: ArrayT, incx: int = 1, incy: int = 1, a: ArrayT | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def dger(
    alpha: Number, x: ArrayLike, y: ArrayLike, incx: int = 1, incy: int = 1, a: ArrayLike | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
dsyr = csyr
@overload
def dsyr2(
    alpha: Number, x: ArrayT, y: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def dsyr2(
    alpha: Number, x: ArrayLike, y: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
sger = dger
ssyr = csyr
ssyr2 = dsyr2
zgerc = cgerc
zgeru = cgeru
zher = cher
zher2 = cher2
zsyr = csyr
@overload
def sgbmv(
    m: int, n: int, kl: int, ku: int, alpha: Number, a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0,
    beta: Number = 0.0, y: ArrayT | None = None, incy: int = 1, offy: int = 0, trans: TransFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def sgbmv(
    m: int, n: int, kl: int, ku: int, alpha: Number, a: ArrayLike, x: ArrayLike, incx: int = 1,
    offx: int = 0, beta: Number = 0.0, y: ArrayLike | None = None, incy: int = 1, offy: int = 0,
    trans: TransFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dgbmv = sgbmv
cgbmv = sgbmv
zgbmv = sgbmv
@overload
def ssbmv(
    k: int, alpha: Number, a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayT | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def ssbmv(
    k: int, alpha: Number, a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayLike | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dsbmv = ssbmv
@overload
def chbmv(
    k: int, alpha: Number, a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayT | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def chbmv(
    k: int, alpha: Number, a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayLike | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
zhbmv = chbmv
@overload
def stbmv(
    k: int, a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def stbmv(
    k: int, a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtbmv = stbmv
ctbmv = stbmv
ztbmv = stbmv
@overload
def stbsv(
    k: int, a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def stbsv(
    k: int, a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtbsv = stbsv
ctbsv = stbsv
ztbsv = stbsv
@overload
def sspmv(
    n: int, alpha: Number, ap: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayT | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def sspmv(
    n: int, alpha: Number, ap: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayLike | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dspmv = sspmv
cspmv = sspmv
zspmv = sspmv
@overload
def chpmv(
    n: int, alpha: Number, ap: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayT | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def chpmv(
    n: int, alpha: Number, ap: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, beta: Number = 0.0,
    y: ArrayLike | None = None, incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0,
    overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
zhpmv = chpmv
@overload
def sspr(
    n: int, alpha: Number, x: ArrayT, ap: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    overwrite_ap: Switch = 0,
) -> ArrayT: ...
@overload
def sspr(
    n: int, alpha: Number, x: ArrayLike, ap: ArrayLike, incx: int = 1, offx: int = 0,
    lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> NDArray[Any]: ...
dspr = sspr
cspr = sspr
zspr = sspr
@overload
def chpr(
    n: int, alpha: Number, x: ArrayT, ap: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    overwrite_ap: Switch = 0,
) -> ArrayT: ...
@overload
def chpr(
    n: int, alpha: Number, x: ArrayLike, ap: ArrayLike, incx: int = 1, offx: int = 0,
    lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> NDArray[Any]: ...
zhpr = chpr
@overload
def sspr2(
    n: int, alpha: Number, x: ArrayT, y: ArrayT, ap: ArrayT, incx: int = 1, offx: int = 0, incy: int = 1,
    offy: int = 0, lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> ArrayT: ...
@overload
def sspr2(
    n: int, alpha: Number, x: ArrayLike, y: ArrayLike, ap: ArrayLike, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> NDArray[Any]: ...
dspr2 = sspr2
@overload
def chpr2(
    n: int, alpha: Number, x: ArrayT, y: ArrayT, ap: ArrayT, incx: int = 1, offx: int = 0, incy: int = 1,
    offy: int = 0, lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> ArrayT: ...
@overload
def chpr2(
    n: int, alpha: Number, x: ArrayLike, y: ArrayLike, ap: ArrayLike, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, lower: UploFlag | Switch = 0, overwrite_ap: Switch = 0,
) -> NDArray[Any]: ...
zhpr2 = chpr2
@overload
def stpmv(
    n: int, ap: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def stpmv(
    n: int, ap: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtpmv = stpmv
ctpmv = stpmv
ztpmv = stpmv
@overload
def stpsv(
    n: int, ap: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def stpsv(
    n: int, ap: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtpsv = stpsv
ctpsv = stpsv
ztpsv = stpsv
def srotg(a: Number, b: Number) -> Any: ...
drotg = srotg
crotg = srotg
zrotg = srotg
def srotmg(d1: Number, d2: Number, x1: Number, y1: Number) -> Any: ...
drotmg = srotmg
