"""Types of `pyblasgpu.lapack`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, overload
from numpy.typing import NDArray

from .typing import (Array, ArrayLike, ArrayT, DiagFlag, SideFlag, Switch, TransFlag, UploFlag)

__all__ = ["get_lapack_funcs", "potrf", "potri", "potrs", "posv", "spotrf", "dpotrf", "cpotrf", "zpotrf",
    "spotri", "dpotri", "cpotri", "zpotri", "spotrs", "dpotrs", "cpotrs", "zpotrs", "sposv", "dposv", "cposv",
    "zposv", "getrf", "getrs", "getri", "gesv", "laswp", "sgetrf", "dgetrf", "cgetrf", "zgetrf", "sgetrs",
    "dgetrs", "cgetrs", "zgetrs", "sgetri", "dgetri", "cgetri", "zgetri", "sgesv", "dgesv", "cgesv", "zgesv",
    "slaswp", "dlaswp", "claswp", "zlaswp", "sytrf", "hetrf", "sytrs", "hetrs", "sytri", "hetri", "sysv",
    "hesv", "ssytrf", "dsytrf", "csytrf", "zsytrf", "chetrf", "zhetrf", "ssytrs", "dsytrs", "csytrs",
    "zsytrs", "chetrs", "zhetrs", "ssytri", "dsytri", "csytri", "zsytri", "chetri", "zhetri", "ssysv",
    "dsysv", "csysv", "zsysv", "chesv", "zhesv", "ssytrf_lwork", "dsytrf_lwork", "csytrf_lwork",
    "zsytrf_lwork", "chetrf_lwork", "zhetrf_lwork", "ssysv_lwork", "dsysv_lwork", "csysv_lwork",
    "zsysv_lwork", "chesv_lwork", "zhesv_lwork", "geqrf", "geqp3", "orgqr", "ormqr", "sgeqrf", "dgeqrf",
    "cgeqrf", "zgeqrf", "sgeqp3", "dgeqp3", "cgeqp3", "zgeqp3", "sorgqr", "dorgqr", "cungqr", "zungqr",
    "sormqr", "dormqr", "cunmqr", "zunmqr", "gelqf", "orglq", "ormlq", "sgelqf", "dgelqf", "cgelqf", "zgelqf",
    "sorglq", "dorglq", "cunglq", "zunglq", "sormlq", "dormlq", "cunmlq", "zunmlq", "gels", "sgels", "dgels",
    "cgels", "zgels", "trtri", "lauum", "trtrs", "strtri", "dtrtri", "ctrtri", "ztrtri", "slauum", "dlauum",
    "clauum", "zlauum", "strtrs", "dtrtrs", "ctrtrs", "ztrtrs", "geqrt", "gemqrt", "tpqrt", "tpmqrt",
    "sgeqrt", "dgeqrt", "cgeqrt", "zgeqrt", "sgemqrt", "dgemqrt", "cgemqrt", "zgemqrt", "stpqrt", "dtpqrt",
    "ctpqrt", "ztpqrt", "stpmqrt", "dtpmqrt", "ctpmqrt", "ztpmqrt", "sgeqrf_lwork", "dgeqrf_lwork",
    "cgeqrf_lwork", "zgeqrf_lwork", "sgels_lwork", "dgels_lwork", "cgels_lwork", "zgels_lwork", "syev",
    "ssyev", "dsyev", "cheev", "zheev", "syevd", "ssyevd", "dsyevd", "cheevd", "zheevd", "syevr", "ssyevr",
    "dsyevr", "cheevr", "zheevr", "syevx", "ssyevx", "dsyevx", "cheevx", "zheevx", "sygv", "ssygv", "dsygv",
    "chegv", "zhegv", "sygvd", "ssygvd", "dsygvd", "chegvd", "zhegvd", "sygvx", "ssygvx", "dsygvx", "chegvx",
    "zhegvx", "sygst", "ssygst", "dsygst", "chegst", "zhegst", "sytrd", "ssytrd", "dsytrd", "chetrd",
    "zhetrd", "gesdd", "sgesdd", "dgesdd", "cgesdd", "zgesdd", "gesvd", "sgesvd", "dgesvd", "cgesvd",
    "zgesvd", "ssyev_lwork", "dsyev_lwork", "cheev_lwork", "zheev_lwork", "ssyevd_lwork", "dsyevd_lwork",
    "cheevd_lwork", "zheevd_lwork", "ssyevr_lwork", "dsyevr_lwork", "cheevr_lwork", "zheevr_lwork",
    "ssyevx_lwork", "dsyevx_lwork", "cheevx_lwork", "zheevx_lwork", "ssygv_lwork", "dsygv_lwork",
    "chegv_lwork", "zhegv_lwork", "ssygvx_lwork", "dsygvx_lwork", "chegvx_lwork", "zhegvx_lwork",
    "ssytrd_lwork", "dsytrd_lwork", "chetrd_lwork", "zhetrd_lwork", "sgesdd_lwork", "dgesdd_lwork",
    "cgesdd_lwork", "zgesdd_lwork", "sgesvd_lwork", "dgesvd_lwork", "cgesvd_lwork", "zgesvd_lwork"]

def get_lapack_funcs(
    names: str | Sequence[str], arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
    ilp64: bool | str = False,
) -> Any: ...
@overload
def potrf(
    a: ArrayT, lower: UploFlag | Switch = 0, clean: Switch = 1, overwrite_a: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def potrf(
    a: ArrayLike, lower: UploFlag | Switch = 0, clean: Switch = 1, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def potri(c: ArrayT, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0) -> tuple[ArrayT, Any]: ...
@overload
def potri(
    c: ArrayLike, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def potrs(
    c: ArrayT, b: ArrayT, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def potrs(
    c: ArrayLike, b: ArrayLike, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def posv(
    a: ArrayT, b: ArrayT, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ArrayT, Any]: ...
@overload
def posv(
    a: ArrayLike, b: ArrayLike, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
    overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], Any]: ...
@overload
def getrf(a: ArrayT, overwrite_a: Switch = 0) -> tuple[ArrayT, Any, Any]: ...
@overload
def getrf(a: ArrayLike, overwrite_a: Switch = 0) -> tuple[NDArray[Any], Any, Any]: ...
@overload
def getrs(
    lu: ArrayT, piv: Any, b: ArrayT, trans: TransFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def getrs(
    lu: ArrayLike, piv: Any, b: ArrayLike, trans: TransFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def getri(lu: ArrayT, piv: Any, lwork: int | None = None, overwrite_lu: Switch = 0) -> tuple[ArrayT, Any]: ...
@overload
def getri(
    lu: ArrayLike, piv: Any, lwork: int | None = None, overwrite_lu: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def gesv(
    a: ArrayT, b: ArrayT, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, Any]: ...
@overload
def gesv(
    a: ArrayLike, b: ArrayLike, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], Any]: ...
@overload
def laswp(
    a: ArrayT, piv: Any, k1: int = 0, k2: int | None = None, off: int = 0, inc: int = 1,
    overwrite_a: Switch = 0,
) -> ArrayT: ...
@overload
def laswp(
    a: ArrayLike, piv: Any, k1: int = 0, k2: int | None = None, off: int = 0, inc: int = 1,
    overwrite_a: Switch = 0,
) -> NDArray[Any]: ...
@overload
def hetrf(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, Any, Any]: ...
@overload
def hetrf(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], Any, Any]: ...
@overload
def hetrs(
    a: ArrayT, ipiv: Any, b: ArrayT, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def hetrs(
    a: ArrayLike, ipiv: Any, b: ArrayLike, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def hetri(
    a: ArrayT, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def hetri(
    a: ArrayLike, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def hesv(
    a: ArrayT, b: ArrayT, lwork: int | None = None, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
    overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, Any]: ...
@overload
def hesv(
    a: ArrayLike, b: ArrayLike, lwork: int | None = None, lower: UploFlag | Switch = 0,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], Any]: ...
@overload
def geqrf(
    a: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, ArrayT, int]: ...
@overload
def geqrf(
    a: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]: ...
@overload
def geqp3(
    a: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, ArrayT, int]: ...
@overload
def geqp3(
    a: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], NDArray[Any], int]: ...
@overload
def orgqr(
    a: ArrayT, tau: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def orgqr(
    a: ArrayLike, tau: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def ormqr(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayT, tau: ArrayT, c: ArrayT,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def ormqr(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayLike, tau: ArrayLike, c: ArrayLike,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def gelqf(
    a: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, ArrayT, int]: ...
@overload
def gelqf(
    a: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]: ...
@overload
def orglq(
    a: ArrayT, tau: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def orglq(
    a: ArrayLike, tau: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def ormlq(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayT, tau: ArrayT, c: ArrayT,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def ormlq(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayLike, tau: ArrayLike, c: ArrayLike,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def gels(
    a: ArrayT, b: ArrayT, trans: TransFlag | Switch = "N", lwork: int | None = None, overwrite_a: Switch = 0,
    overwrite_b: Switch = 0,
) -> tuple[ArrayT, ArrayT, Any]: ...
@overload
def gels(
    a: ArrayLike, b: ArrayLike, trans: TransFlag | Switch = "N", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], Any]: ...
@overload
def trtri(
    c: ArrayT, lower: UploFlag | Switch = 0, unitdiag: DiagFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def trtri(
    c: ArrayLike, lower: UploFlag | Switch = 0, unitdiag: DiagFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def lauum(c: ArrayT, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0) -> tuple[ArrayT, int]: ...
@overload
def lauum(
    c: ArrayLike, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def trtrs(
    a: ArrayT, b: ArrayT, lower: UploFlag | Switch = 0, trans: TransFlag | Switch = 0,
    unitdiag: DiagFlag | Switch = 0, lda: int | None = None, overwrite_b: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def trtrs(
    a: ArrayLike, b: ArrayLike, lower: UploFlag | Switch = 0, trans: TransFlag | Switch = 0,
    unitdiag: DiagFlag | Switch = 0, lda: int | None = None, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def geqrt(nb: int, a: ArrayT, overwrite_a: Switch = 0) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def geqrt(nb: int, a: ArrayLike, overwrite_a: Switch = 0) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def gemqrt(
    v: ArrayT, t: ArrayT, c: ArrayT, side: SideFlag | Switch = "L", trans: TransFlag | Switch = "N",
    overwrite_c: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def gemqrt(
    v: ArrayLike, t: ArrayLike, c: ArrayLike, side: SideFlag | Switch = "L", trans: TransFlag | Switch = "N",
    overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def tpqrt(
    l: int, nb: int, a: ArrayT, b: ArrayT, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ArrayT, ArrayT, int]: ...
@overload
def tpqrt(
    l: int, nb: int, a: ArrayLike, b: ArrayLike, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]: ...
@overload
def tpmqrt(
    l: int, v: ArrayT, t: ArrayT, a: ArrayT, b: ArrayT, side: SideFlag | Switch = "L",
    trans: TransFlag | Switch = "N", overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def tpmqrt(
    l: int, v: ArrayLike, t: ArrayLike, a: ArrayLike, b: ArrayLike, side: SideFlag | Switch = "L",
    trans: TransFlag | Switch = "N", overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
@overload
def gesdd(
    a: ArrayT, compute_uv: Switch = 1, full_matrices: Switch = 1, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def gesdd(
    a: ArrayLike, compute_uv: Switch = 1, full_matrices: Switch = 1, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def gesvd(
    a: ArrayT, compute_uv: Switch = 1, full_matrices: Switch = 1, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def gesvd(
    a: ArrayLike, compute_uv: Switch = 1, full_matrices: Switch = 1, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
spotrf = potrf
dpotrf = potrf
cpotrf = potrf
zpotrf = potrf
spotri = potri
dpotri = potri
cpotri = potri
zpotri = potri
spotrs = potrs
dpotrs = potrs
cpotrs = potrs
zpotrs = potrs
sposv = posv
dposv = posv
cposv = posv
zposv = posv
sgetrf = getrf
dgetrf = getrf
cgetrf = getrf
zgetrf = getrf
sgetrs = getrs
dgetrs = getrs
cgetrs = getrs
zgetrs = getrs
sgetri = getri
dgetri = getri
cgetri = getri
zgetri = getri
sgesv = gesv
dgesv = gesv
cgesv = gesv
zgesv = gesv
slaswp = laswp
dlaswp = laswp
claswp = laswp
zlaswp = laswp
@overload
def sytrf(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, Any, Any]: ...
@overload
def sytrf(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], Any, Any]: ...
@overload
def sytrs(
    a: ArrayT, ipiv: Any, b: ArrayT, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def sytrs(
    a: ArrayLike, ipiv: Any, b: ArrayLike, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def sytri(
    a: ArrayT, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def sytri(
    a: ArrayLike, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def sysv(
    a: ArrayT, b: ArrayT, lwork: int | None = None, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
    overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, Any]: ...
@overload
def sysv(
    a: ArrayLike, b: ArrayLike, lwork: int | None = None, lower: UploFlag | Switch = 0,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], Any]: ...
@overload
def ssytrf(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, Any, Any]: ...
@overload
def ssytrf(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], Any, Any]: ...
dsytrf = ssytrf
csytrf = ssytrf
zsytrf = ssytrf
chetrf = hetrf
zhetrf = hetrf
@overload
def ssytrs(
    a: ArrayT, ipiv: Any, b: ArrayT, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def ssytrs(
    a: ArrayLike, ipiv: Any, b: ArrayLike, lower: UploFlag | Switch = 0, overwrite_b: Switch = 0, *,
    rook: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
dsytrs = ssytrs
csytrs = ssytrs
zsytrs = ssytrs
chetrs = hetrs
zhetrs = hetrs
@overload
def ssytri(
    a: ArrayT, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def ssytri(
    a: ArrayLike, ipiv: Any, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
dsytri = ssytri
csytri = ssytri
zsytri = ssytri
chetri = hetri
zhetri = hetri
@overload
def ssysv(
    a: ArrayT, b: ArrayT, lwork: int | None = None, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
    overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, Any]: ...
@overload
def ssysv(
    a: ArrayLike, b: ArrayLike, lwork: int | None = None, lower: UploFlag | Switch = 0,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0, *, rook: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], Any]: ...
dsysv = ssysv
csysv = ssysv
zsysv = ssysv
chesv = hesv
zhesv = hesv
def ssytrf_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, int]: ...
dsytrf_lwork = ssytrf_lwork
csytrf_lwork = ssytrf_lwork
zsytrf_lwork = ssytrf_lwork
def chetrf_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, int]: ...
zhetrf_lwork = chetrf_lwork
def ssysv_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, int]: ...
dsysv_lwork = ssysv_lwork
csysv_lwork = ssysv_lwork
zsysv_lwork = ssysv_lwork
def chesv_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, int]: ...
zhesv_lwork = chesv_lwork
sgeqrf = geqrf
dgeqrf = geqrf
cgeqrf = geqrf
zgeqrf = geqrf
sgeqp3 = geqp3
dgeqp3 = geqp3
cgeqp3 = geqp3
zgeqp3 = geqp3
sorgqr = orgqr
dorgqr = orgqr
@overload
def cungqr(
    a: ArrayT, tau: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def cungqr(
    a: ArrayLike, tau: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
zungqr = cungqr
sormqr = ormqr
dormqr = ormqr
@overload
def cunmqr(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayT, tau: ArrayT, c: ArrayT,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def cunmqr(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayLike, tau: ArrayLike, c: ArrayLike,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
zunmqr = cunmqr
sgelqf = gelqf
dgelqf = gelqf
cgelqf = gelqf
zgelqf = gelqf
sorglq = orglq
dorglq = orglq
@overload
def cunglq(
    a: ArrayT, tau: ArrayT, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def cunglq(
    a: ArrayLike, tau: ArrayLike, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
zunglq = cunglq
sormlq = ormlq
dormlq = ormlq
@overload
def cunmlq(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayT, tau: ArrayT, c: ArrayT,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[ArrayT, ArrayT, int]: ...
@overload
def cunmlq(
    side: SideFlag | Switch, trans: TransFlag | Switch, a: ArrayLike, tau: ArrayLike, c: ArrayLike,
    lwork: int | None = None, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
zunmlq = cunmlq
sgels = gels
dgels = gels
cgels = gels
zgels = gels
strtri = trtri
dtrtri = trtri
ctrtri = trtri
ztrtri = trtri
slauum = lauum
dlauum = lauum
clauum = lauum
zlauum = lauum
strtrs = trtrs
dtrtrs = trtrs
ctrtrs = trtrs
ztrtrs = trtrs
sgeqrt = geqrt
dgeqrt = geqrt
cgeqrt = geqrt
zgeqrt = geqrt
sgemqrt = gemqrt
dgemqrt = gemqrt
cgemqrt = gemqrt
zgemqrt = gemqrt
stpqrt = tpqrt
dtpqrt = tpqrt
ctpqrt = tpqrt
ztpqrt = tpqrt
stpmqrt = tpmqrt
dtpmqrt = tpmqrt
ctpmqrt = tpmqrt
ztpmqrt = tpmqrt
def sgeqrf_lwork(m: int, n: int) -> tuple[Any, int]: ...
dgeqrf_lwork = sgeqrf_lwork
cgeqrf_lwork = sgeqrf_lwork
zgeqrf_lwork = sgeqrf_lwork
def sgels_lwork(m: int, n: int, nrhs: int, trans: TransFlag | Switch = "N") -> tuple[Any, int]: ...
dgels_lwork = sgels_lwork
cgels_lwork = sgels_lwork
zgels_lwork = sgels_lwork
@overload
def syev(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def syev(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssyev(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssyev(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsyev = ssyev
@overload
def cheev(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def cheev(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zheev = cheev
@overload
def syevd(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def syevd(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssyevd(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssyevd(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsyevd = ssyevd
@overload
def cheevd(
    a: ArrayT, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, lrwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def cheevd(
    a: ArrayLike, compute_v: Switch = 1, lower: UploFlag | Switch = 0, lwork: int | None = None,
    liwork: int | None = None, lrwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zheevd = cheevd
@overload
def syevr(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def syevr(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssyevr(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssyevr(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsyevr = ssyevr
@overload
def cheevr(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    lrwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def cheevr(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, lrwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zheevr = cheevr
@overload
def syevx(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def syevx(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssyevx(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssyevx(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsyevx = ssyevx
@overload
def cheevx(
    a: ArrayT, compute_v: Switch = 1, range: str = "ArrayT", lower: UploFlag | Switch = 0, vl: float = 0.0,
    vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0, lwork: int | None = None,
    overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def cheevx(
    a: ArrayLike, compute_v: Switch = 1, range: str = "ArrayLike", lower: UploFlag | Switch = 0,
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zheevx = cheevx
@overload
def sygv(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def sygv(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssygv(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssygv(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsygv = ssygv
@overload
def chegv(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def chegv(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zhegv = chegv
@overload
def sygvd(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def sygvd(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssygvd(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssygvd(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsygvd = ssygvd
@overload
def chegvd(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    lrwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def chegvd(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", uplo: str = "L", lwork: int | None = None,
    lrwork: int | None = None, liwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zhegvd = chegvd
@overload
def sygvx(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", range: str = "ArrayT", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def sygvx(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", range: str = "ArrayLike", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssygvx(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", range: str = "ArrayT", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssygvx(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", range: str = "ArrayLike", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsygvx = ssygvx
@overload
def chegvx(
    a: ArrayT, b: ArrayT, itype: int = 1, jobz: str = "V", range: str = "ArrayT", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def chegvx(
    a: ArrayLike, b: ArrayLike, itype: int = 1, jobz: str = "V", range: str = "ArrayLike", uplo: str = "L",
    vl: float = 0.0, vu: float = 1.0, il: int = 1, iu: int | None = None, abstol: float = 0.0,
    lwork: int | None = None, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zhegvx = chegvx
@overload
def sygst(
    a: ArrayT, b: ArrayT, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def sygst(
    a: ArrayLike, b: ArrayLike, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssygst(
    a: ArrayT, b: ArrayT, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssygst(
    a: ArrayLike, b: ArrayLike, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsygst = ssygst
@overload
def chegst(
    a: ArrayT, b: ArrayT, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def chegst(
    a: ArrayLike, b: ArrayLike, itype: int = 1, lower: UploFlag | Switch = 0, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zhegst = chegst
@overload
def sytrd(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def sytrd(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
@overload
def ssytrd(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def ssytrd(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
dsytrd = ssytrd
@overload
def chetrd(
    a: ArrayT, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[ArrayT, ...]: ...
@overload
def chetrd(
    a: ArrayLike, lower: UploFlag | Switch = 0, lwork: int | None = None, overwrite_a: Switch = 0,
) -> tuple[NDArray[Any], ...]: ...
zhetrd = chetrd
sgesdd = gesdd
dgesdd = gesdd
cgesdd = gesdd
zgesdd = gesdd
sgesvd = gesvd
dgesvd = gesvd
cgesvd = gesvd
zgesvd = gesvd
def ssyev_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
dsyev_lwork = ssyev_lwork
def cheev_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
zheev_lwork = cheev_lwork
def ssyevd_lwork(n: int, compute_v: Switch = 1, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
dsyevd_lwork = ssyevd_lwork
def cheevd_lwork(n: int, compute_v: Switch = 1, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
zheevd_lwork = cheevd_lwork
def ssyevr_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
dsyevr_lwork = ssyevr_lwork
def cheevr_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
zheevr_lwork = cheevr_lwork
def ssyevx_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
dsyevx_lwork = ssyevx_lwork
def cheevx_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
zheevx_lwork = cheevx_lwork
def ssygv_lwork(n: int, uplo: str = "L") -> tuple[Any, ...]: ...
dsygv_lwork = ssygv_lwork
def chegv_lwork(n: int, uplo: str = "L") -> tuple[Any, ...]: ...
zhegv_lwork = chegv_lwork
def ssygvx_lwork(n: int, uplo: str = "L") -> tuple[Any, ...]: ...
dsygvx_lwork = ssygvx_lwork
def chegvx_lwork(n: int, uplo: str = "L") -> tuple[Any, ...]: ...
zhegvx_lwork = chegvx_lwork
def ssytrd_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
dsytrd_lwork = ssytrd_lwork
def chetrd_lwork(n: int, lower: UploFlag | Switch = 0) -> tuple[Any, ...]: ...
zhetrd_lwork = chetrd_lwork
def sgesdd_lwork(m: int, n: int, compute_uv: Switch = 1, full_matrices: Switch = 1) -> tuple[Any, ...]: ...
dgesdd_lwork = sgesdd_lwork
cgesdd_lwork = sgesdd_lwork
zgesdd_lwork = sgesdd_lwork
def sgesvd_lwork(m: int, n: int, compute_uv: Switch = 1, full_matrices: Switch = 1) -> tuple[Any, ...]: ...
dgesvd_lwork = sgesvd_lwork
cgesvd_lwork = sgesvd_lwork
zgesvd_lwork = sgesvd_lwork
