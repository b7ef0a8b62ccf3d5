"""Types of `pyblasgpu.blas`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, Literal, overload
from numpy.typing import NDArray
import numpy as np

from .typing import (Array, ArrayLike, ArrayT, DiagFlag, Method, Number, SideFlag, Switch, TransFlag,
    UploFlag)

__all__ = ["find_best_blas_type", "get_blas_funcs", "gemm", "trmm", "trsm", "symm", "hemm", "syrk", "herk",
    "syr2k", "her2k", "gemmtr", "sgemm", "dgemm", "cgemm", "zgemm", "strmm", "dtrmm", "ctrmm", "ztrmm",
    "strsm", "dtrsm", "ctrsm", "ztrsm", "ssymm", "dsymm", "csymm", "zsymm", "chemm", "zhemm", "ssyrk",
    "dsyrk", "csyrk", "zsyrk", "cherk", "zherk", "ssyr2k", "dsyr2k", "csyr2k", "zsyr2k", "cher2k", "zher2k",
    "sgemmtr", "dgemmtr", "cgemmtr", "zgemmtr", "saxpy", "daxpy", "caxpy", "zaxpy", "scopy", "dcopy", "ccopy",
    "zcopy", "sscal", "dscal", "cscal", "csscal", "zscal", "zdscal", "sswap", "dswap", "cswap", "zswap",
    "srot", "drot", "csrot", "zdrot", "srotm", "drotm", "sdot", "ddot", "cdotu", "cdotc", "zdotu", "zdotc",
    "snrm2", "dnrm2", "scnrm2", "dznrm2", "sasum", "dasum", "scasum", "dzasum", "isamax", "idamax", "icamax",
    "izamax", "sgemv", "dgemv", "cgemv", "zgemv", "ssymv", "dsymv", "chemv", "zhemv", "strmv", "dtrmv",
    "ctrmv", "ztrmv", "strsv", "dtrsv", "ctrsv", "ztrsv", "sger", "dger", "cgeru", "cgerc", "zgeru", "zgerc",
    "ssyr", "dsyr", "csyr", "zsyr", "cher", "zher", "ssyr2", "dsyr2", "cher2", "zher2", "sgbmv", "dgbmv",
    "cgbmv", "zgbmv", "ssbmv", "dsbmv", "chbmv", "zhbmv", "stbmv", "dtbmv", "ctbmv", "ztbmv", "stbsv",
    "dtbsv", "ctbsv", "ztbsv", "sspmv", "dspmv", "cspmv", "zspmv", "chpmv", "zhpmv", "sspr", "dspr", "cspr",
    "zspr", "chpr", "zhpr", "sspr2", "dspr2", "chpr2", "zhpr2", "stpmv", "dtpmv", "ctpmv", "ztpmv", "stpsv",
    "dtpsv", "ctpsv", "ztpsv", "srotg", "drotg", "crotg", "zrotg", "srotmg", "drotmg"]

def find_best_blas_type(
    arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
) -> tuple[str, np.dtype[Any], bool]: ...
def get_blas_funcs(
    names: str | Sequence[str], arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
    ilp64: bool | str = False,
) -> Any: ...
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
sgemm = gemm
dgemm = gemm
cgemm = gemm
zgemm = gemm
strmm = trmm
dtrmm = trmm
ctrmm = trmm
ztrmm = trmm
strsm = trsm
dtrsm = trsm
ctrsm = trsm
ztrsm = trsm
@overload
def ssymm(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def ssymm(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    side: SideFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
dsymm = ssymm
csymm = ssymm
zsymm = ssymm
chemm = hemm
zhemm = hemm
@overload
def ssyrk(
    alpha: Number, a: ArrayT, beta: Number = 0.0, c: ArrayT | None = None, trans: TransFlag | Switch = 0,
    lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def ssyrk(
    alpha: Number, a: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
dsyrk = ssyrk
csyrk = ssyrk
zsyrk = ssyrk
cherk = herk
zherk = herk
@overload
def ssyr2k(
    alpha: Number, a: ArrayT, b: ArrayT, beta: Number = 0.0, c: ArrayT | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def ssyr2k(
    alpha: Number, a: ArrayLike, b: ArrayLike, beta: Number = 0.0, c: ArrayLike | None = None,
    trans: TransFlag | Switch = 0, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0, *,
    method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
dsyr2k = ssyr2k
csyr2k = ssyr2k
zsyr2k = ssyr2k
cher2k = her2k
zher2k = her2k
sgemmtr = gemmtr
dgemmtr = gemmtr
cgemmtr = gemmtr
zgemmtr = gemmtr
@overload
def saxpy(
    x: ArrayT, y: ArrayT, n: int | None = None, a: Number = 1.0, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> ArrayT: ...
@overload
def saxpy(
    x: ArrayLike, y: ArrayLike, n: int | None = None, a: Number = 1.0, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> NDArray[Any]: ...
daxpy = saxpy
caxpy = saxpy
zaxpy = saxpy
@overload
def scopy(
    x: ArrayT, y: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1,
) -> ArrayT: ...
@overload
def scopy(
    x: ArrayLike, y: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> NDArray[Any]: ...
dcopy = scopy
ccopy = scopy
zcopy = scopy
@overload
def sscal(a: Number, x: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1) -> ArrayT: ...
@overload
def sscal(a: Number, x: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> NDArray[Any]: ...
dscal = sscal
cscal = sscal
@overload
def csscal(
    a: Number, x: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def csscal(
    a: Number, x: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
zscal = sscal
zdscal = csscal
@overload
def sswap(
    x: ArrayT, y: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def sswap(
    x: ArrayLike, y: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
dswap = sswap
cswap = sswap
zswap = sswap
@overload
def srot(
    x: ArrayT, y: ArrayT, c: Number, s: Number, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def srot(
    x: ArrayLike, y: ArrayLike, c: Number, s: Number, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
drot = srot
csrot = srot
zdrot = srot
@overload
def srotm(
    x: ArrayT, y: ArrayT, param: ArrayT, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def srotm(
    x: ArrayLike, y: ArrayLike, param: ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1, overwrite_x: Switch = 0, overwrite_y: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
drotm = srotm
def sdot(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
ddot = sdot
def cdotu(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
def cdotc(
    x: Array | ArrayLike, y: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1,
    offy: int = 0, incy: int = 1,
) -> Any: ...
zdotu = cdotu
zdotc = cdotc
def snrm2(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
dnrm2 = snrm2
scnrm2 = snrm2
dznrm2 = snrm2
def sasum(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
dasum = sasum
scasum = sasum
dzasum = sasum
def isamax(x: Array | ArrayLike, n: int | None = None, offx: int = 0, incx: int = 1) -> Any: ...
idamax = isamax
icamax = isamax
izamax = isamax
@overload
def sgemv(
    alpha: Number, a: ArrayT, x: ArrayT, beta: Number = 0.0, y: ArrayT | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, trans: TransFlag | Switch = 0, overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def sgemv(
    alpha: Number, a: ArrayLike, x: ArrayLike, beta: Number = 0.0, y: ArrayLike | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, trans: TransFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dgemv = sgemv
cgemv = sgemv
zgemv = sgemv
@overload
def ssymv(
    alpha: Number, a: ArrayT, x: ArrayT, beta: Number = 0.0, y: ArrayT | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> ArrayT: ...
@overload
def ssymv(
    alpha: Number, a: ArrayLike, x: ArrayLike, beta: Number = 0.0, y: ArrayLike | None = None, offx: int = 0,
    incx: int = 1, offy: int = 0, incy: int = 1, lower: UploFlag | Switch = 0, overwrite_y: Switch = 0,
) -> NDArray[Any]: ...
dsymv = ssymv
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
zhemv = chemv
@overload
def strmv(
    a: ArrayT, x: ArrayT, offx: int = 0, incx: int = 1, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def strmv(
    a: ArrayLike, x: ArrayLike, offx: int = 0, incx: int = 1, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtrmv = strmv
ctrmv = strmv
ztrmv = strmv
@overload
def strsv(
    a: ArrayT, x: ArrayT, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> ArrayT: ...
@overload
def strsv(
    a: ArrayLike, x: ArrayLike, incx: int = 1, offx: int = 0, lower: UploFlag | Switch = 0,
    trans: TransFlag | Switch = 0, diag: DiagFlag | Switch = 0, overwrite_x: Switch = 0,
) -> NDArray[Any]: ...
dtrsv = strsv
ctrsv = strsv
ztrsv = strsv
@overload
def sger(
    alpha: Number, x: ArrayT, y: ArrayT, incx: int = 1, incy: int = 1, a: ArrayT | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def sger(
    alpha: Number, x: ArrayLike, y: ArrayLike, incx: int = 1, incy: int = 1, a: ArrayLike | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
dger = sger
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
def cgerc(
    alpha: Number, x: ArrayT, y: ArrayT, incx: int = 1, incy: int = 1, a: ArrayT | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def cgerc(
    alpha: Number, x: ArrayLike, y: ArrayLike, incx: int = 1, incy: int = 1, a: ArrayLike | None = None,
    overwrite_x: Switch = 1, overwrite_y: Switch = 1, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
zgeru = cgeru
zgerc = cgerc
@overload
def ssyr(
    alpha: Number, x: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def ssyr(
    alpha: Number, x: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
dsyr = ssyr
csyr = ssyr
zsyr = ssyr
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
zher = cher
@overload
def ssyr2(
    alpha: Number, x: ArrayT, y: ArrayT, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayT | None = None, overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def ssyr2(
    alpha: Number, x: ArrayLike, y: ArrayLike, lower: UploFlag | Switch = 0, incx: int = 1, offx: int = 0,
    incy: int = 1, offy: int = 0, n: int | None = None, a: ArrayLike | None = None, overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
dsyr2 = ssyr2
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
zher2 = cher2
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
