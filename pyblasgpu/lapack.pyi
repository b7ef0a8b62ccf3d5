"""Types of `pyblasgpu.lapack`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, overload
from numpy.typing import NDArray

from .frontend.arrays.device_integers import DeviceIntegers as DeviceIntegers
from .typing import (Array, ArrayLike, ArrayT, DiagFlag, SideFlag, Switch, TransFlag, UploFlag)

__all__ = ["DeviceIntegers", "get_lapack_funcs", "potrf", "potri", "potrs", "posv", "spotrf", "dpotrf",
    "cpotrf", "zpotrf", "spotri", "dpotri", "cpotri", "zpotri", "spotrs", "dpotrs", "cpotrs", "zpotrs",
    "sposv", "dposv", "cposv", "zposv", "getrf", "getrs", "getri", "gesv", "laswp", "sgetrf", "dgetrf",
    "cgetrf", "zgetrf", "sgetrs", "dgetrs", "cgetrs", "zgetrs", "sgetri", "dgetri", "cgetri", "zgetri",
    "sgesv", "dgesv", "cgesv", "zgesv", "slaswp", "dlaswp", "claswp", "zlaswp", "geqrf", "geqp3", "orgqr",
    "ormqr", "sgeqrf", "dgeqrf", "cgeqrf", "zgeqrf", "sgeqp3", "dgeqp3", "cgeqp3", "zgeqp3", "sorgqr",
    "dorgqr", "cungqr", "zungqr", "sormqr", "dormqr", "cunmqr", "zunmqr", "trtri", "lauum", "trtrs", "strtri",
    "dtrtri", "ctrtri", "ztrtri", "slauum", "dlauum", "clauum", "zlauum", "strtrs", "dtrtrs", "ctrtrs",
    "ztrtrs", "gels", "geqrt", "gemqrt", "tpqrt", "tpmqrt", "sgels", "dgels", "cgels", "zgels", "sgeqrt",
    "dgeqrt", "cgeqrt", "zgeqrt", "sgemqrt", "dgemqrt", "cgemqrt", "zgemqrt", "stpqrt", "dtpqrt", "ctpqrt",
    "ztpqrt", "stpmqrt", "dtpmqrt", "ctpmqrt", "ztpmqrt", "sgeqrf_lwork", "dgeqrf_lwork", "cgeqrf_lwork",
    "zgeqrf_lwork", "sgels_lwork", "dgels_lwork", "cgels_lwork", "zgels_lwork"]

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
sgels = gels
dgels = gels
cgels = gels
zgels = gels
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
