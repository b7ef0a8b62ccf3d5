"""Types of `pyblasgpu.lapack`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Sequence
from typing import Any, overload
from numpy.typing import NDArray

from .frontend.arrays.device_integers import DeviceIntegers as DeviceIntegers
from .typing import (Array, ArrayLike, ArrayT, DiagFlag, Switch, TransFlag, UploFlag)

__all__ = ["DeviceIntegers", "get_lapack_funcs", "cposv", "cpotrf", "cpotri", "cpotrs", "dposv", "dpotrf",
    "dpotri", "dpotrs", "posv", "potrf", "potri", "potrs", "sposv", "spotrf", "spotri", "spotrs", "zposv",
    "zpotrf", "zpotri", "zpotrs", "cgesv", "cgetrf", "cgetri", "cgetrs", "claswp", "dgesv", "dgetrf",
    "dgetri", "dgetrs", "dlaswp", "gesv", "getrf", "getri", "getrs", "laswp", "sgesv", "sgetrf", "sgetri",
    "sgetrs", "slaswp", "zgesv", "zgetrf", "zgetri", "zgetrs", "zlaswp", "clauum", "ctrtri", "ctrtrs",
    "dlauum", "dtrtri", "dtrtrs", "lauum", "slauum", "strtri", "strtrs", "trtri", "trtrs", "zlauum", "ztrtri",
    "ztrtrs"]

def get_lapack_funcs(
    names: str | Sequence[str], arrays: Sequence[Array | ArrayLike] = (), dtype: Any = None,
    ilp64: bool | str = False,
) -> Any: ...
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
def gesv(
    a: ArrayT, b: ArrayT, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, Any, ArrayT, Any]: ...
@overload
def gesv(
    a: ArrayLike, b: ArrayLike, overwrite_a: Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], Any, NDArray[Any], Any]: ...
@overload
def getrf(a: ArrayT, overwrite_a: Switch = 0) -> tuple[ArrayT, Any, Any]: ...
@overload
def getrf(a: ArrayLike, overwrite_a: Switch = 0) -> tuple[NDArray[Any], Any, Any]: ...
@overload
def getri(lu: ArrayT, piv: Any, lwork: int | None = None, overwrite_lu: Switch = 0) -> tuple[ArrayT, Any]: ...
@overload
def getri(
    lu: ArrayLike, piv: Any, lwork: int | None = None, overwrite_lu: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
@overload
def getrs(
    lu: ArrayT, piv: Any, b: ArrayT, trans: TransFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[ArrayT, int]: ...
@overload
def getrs(
    lu: ArrayLike, piv: Any, b: ArrayLike, trans: TransFlag | Switch = 0, overwrite_b: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
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
def lauum(c: ArrayT, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0) -> tuple[ArrayT, int]: ...
@overload
def lauum(
    c: ArrayLike, lower: UploFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], int]: ...
@overload
def trtri(
    c: ArrayT, lower: UploFlag | Switch = 0, unitdiag: DiagFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[ArrayT, Any]: ...
@overload
def trtri(
    c: ArrayLike, lower: UploFlag | Switch = 0, unitdiag: DiagFlag | Switch = 0, overwrite_c: Switch = 0,
) -> tuple[NDArray[Any], Any]: ...
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
cposv = posv
cpotrf = potrf
cpotri = potri
cpotrs = potrs
dposv = posv
dpotrf = potrf
dpotri = potri
dpotrs = potrs
sposv = posv
spotrf = potrf
spotri = potri
spotrs = potrs
zposv = posv
zpotrf = potrf
zpotri = potri
zpotrs = potrs
cgesv = gesv
cgetrf = getrf
cgetri = getri
cgetrs = getrs
claswp = laswp
dgesv = gesv
dgetrf = getrf
dgetri = getri
dgetrs = getrs
dlaswp = laswp
sgesv = gesv
sgetrf = getrf
sgetri = getri
sgetrs = getrs
slaswp = laswp
zgesv = gesv
zgetrf = getrf
zgetri = getri
zgetrs = getrs
zlaswp = laswp
clauum = lauum
ctrtri = trtri
ctrtrs = trtrs
dlauum = lauum
dtrtri = trtri
dtrtrs = trtrs
slauum = lauum
strtri = trtri
strtrs = trtrs
zlauum = lauum
ztrtri = trtri
ztrtrs = trtrs
