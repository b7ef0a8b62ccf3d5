"""Types of `pyblasgpu`, written by tools/make_stubs.py."""

# fmt: off
# ruff: noqa

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload
from numpy.typing import NDArray

from . import blas as blas
from . import dask as dask
from . import errors as errors
from . import jax as jax
from . import lapack as lapack
from . import linalg as linalg
from . import torch as torch
from .frontend.handle import Handle as Handle
from .cupy_patch.switch import CupyPatch
from .frontend.backend_status import BackendStatus
from .frontend.calls.plan import Plan
from .scipy_patch.switch import ScipyPatch
from .settings import Setting
from .torch_patch.switch import TorchPatch
from .typing import (Array, ArrayLike, ArrayT, Backend, Devices, DiagFlag, MathMode, Method, Number, Progress,
    SideFlag, Stream, Switch, TransFlag, UploFlag)

__version__: str
__all__ = ["Handle", "__version__", "asum", "axpy", "backend_status", "blas", "copy", "dot", "errors",
    "explain", "gemm", "gemm_grouped", "gemmtr", "gemv", "ger", "hemm", "hemv", "her", "her2", "her2k",
    "herk", "iamax", "lapack", "linalg", "nrm2", "override", "patch_cupy", "patch_report", "patch_scipy",
    "patch_torch", "plan_gemm", "plan_trmm", "plan_trsm", "potrf_grouped", "release_memory", "rot", "rotm",
    "scal", "set_math_mode", "show_config", "swap", "symm", "symv", "syr", "syr2", "syr2k", "syrk", "trmm",
    "trmv", "trsm", "trsm_grouped", "trsv", "unpatch_cupy", "unpatch_scipy", "unpatch_torch", "use_devices"]

def asum(
    x: Array | ArrayLike, *, out: Array | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> Any: ...
@overload
def axpy(
    x: ArrayT, y: ArrayT, *, alpha: Number = 1, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> ArrayT: ...
@overload
def axpy(
    x: ArrayLike, y: ArrayLike, *, alpha: Number = 1, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
def backend_status(backend: Backend | None = None) -> BackendStatus: ...
@overload
def copy(
    x: ArrayT, *, out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def copy(
    x: ArrayLike, *, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> NDArray[Any]: ...
def dot(
    x: Array | ArrayLike, y: Array | ArrayLike, *, conj: Switch = False, out: Array | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> Any: ...
def explain(
    routine: str, dtype: Any, m: int, n: int | None = None, k: int | None = None, device: int | str = 0,
    batch: int = 1, method: Method | None = None,
) -> list[tuple[str, str, str]]: ...
@overload
def gemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, out: ArrayT | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> ArrayT: ...
@overload
def gemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, out: ArrayT | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def gemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, out: ArrayT | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def gemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, out: NDArray[Any] | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def gemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, out: NDArray[Any] | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def gemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, out: NDArray[Any] | None = None,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", stream: Stream | None = None,
    backend: Backend | None = None, method: Method | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def gemm_grouped(
    a: Sequence[ArrayT], b: Sequence[ArrayT], *, alpha: Number | Sequence[Number] = 1,
    beta: Number | Sequence[Number] = 0, out: Sequence[ArrayT] | None = None,
    trans_a: TransFlag | Sequence[TransFlag] = "N", trans_b: TransFlag | Sequence[TransFlag] = "N",
    stream: Stream | None = None, backend: Backend | None = None,
) -> list[ArrayT]: ...
@overload
def gemm_grouped(
    a: Sequence[ArrayLike], b: Sequence[ArrayLike], *, alpha: Number | Sequence[Number] = 1,
    beta: Number | Sequence[Number] = 0, out: Sequence[NDArray[Any]] | None = None,
    trans_a: TransFlag | Sequence[TransFlag] = "N", trans_b: TransFlag | Sequence[TransFlag] = "N",
    stream: Stream | None = None, backend: Backend | None = None,
) -> list[NDArray[Any]]: ...
@overload
def gemmtr(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def gemmtr(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans_a: TransFlag = "N", trans_b: TransFlag = "N", out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def gemv(
    a: ArrayT, x: ArrayT, *, alpha: Number = 1, beta: Number = 0, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def gemv(
    a: ArrayLike, x: ArrayLike, *, alpha: Number = 1, beta: Number = 0, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def ger(
    x: ArrayT, y: ArrayT, *, alpha: Number = 1, conj: Switch = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def ger(
    x: ArrayLike, y: ArrayLike, *, alpha: Number = 1, conj: Switch = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def hemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> ArrayT: ...
@overload
def hemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def hemm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def hemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def hemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def hemm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def hemv(
    a: ArrayT, x: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def hemv(
    a: ArrayLike, x: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def her(
    x: ArrayT, *, alpha: Number = 1, lower: UploFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def her(
    x: ArrayLike, *, alpha: Number = 1, lower: UploFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def her2(
    x: ArrayT, y: ArrayT, *, alpha: Number = 1, lower: UploFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def her2(
    x: ArrayLike, y: ArrayLike, *, alpha: Number = 1, lower: UploFlag = False,
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def her2k(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans: TransFlag = "N", out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def her2k(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans: TransFlag = "N", out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def herk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[True] = True, progress: Progress | None = None,
) -> ArrayT: ...
@overload
def herk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[False], progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def herk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: bool, progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def herk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[True] = True, progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def herk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[False], progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def herk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: bool, progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
def iamax(
    x: Array | ArrayLike, *, out: Array | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> Any: ...
def nrm2(
    x: Array | ArrayLike, *, out: Array | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> Any: ...
def override(name: str, value: Any) -> Setting: ...
def patch_cupy(
    *, thresholds: float | Mapping[str, float] | None = None, backend: Backend | None = None,
) -> CupyPatch: ...
def patch_report() -> str: ...
def patch_scipy(
    *, thresholds: float | Mapping[str, float] | None = None, backend: Backend | None = None,
    numpy: bool = False,
) -> ScipyPatch: ...
def patch_torch(
    *, thresholds: float | Mapping[str, float] | None = None, backend: Backend | None = None,
) -> TorchPatch: ...
def plan_gemm(
    a: Array, b: Array, out: Array, *, alpha: Number = 1, beta: Number = 0, trans_a: TransFlag = "N",
    trans_b: TransFlag = "N", stream: Stream | None = None, method: Method | None = None,
) -> Plan: ...
def plan_trmm(
    a: Array, b: Array, out: Array, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, stream: Stream | None = None,
    method: Literal["tensor"] | None = None,
) -> Plan: ...
def plan_trsm(
    a: Array, b: Array, out: Array, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, stream: Stream | None = None,
    method: Literal["tensor"] | None = None,
) -> Plan: ...
@overload
def potrf_grouped(
    a: Sequence[ArrayT], *, lower: UploFlag | Sequence[UploFlag] = False,
    out: Sequence[ArrayT] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[list[ArrayT], Any]: ...
@overload
def potrf_grouped(
    a: Sequence[ArrayLike], *, lower: UploFlag | Sequence[UploFlag] = False,
    out: Sequence[NDArray[Any]] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[list[NDArray[Any]], Any]: ...
def release_memory() -> None: ...
@overload
def rot(
    x: ArrayT, y: ArrayT, c: Number, s: Number, *, out: tuple[ArrayT, ArrayT] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def rot(
    x: ArrayLike, y: ArrayLike, c: Number, s: Number, *,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def rotm(
    x: ArrayT, y: ArrayT, param: ArrayT, *, out: tuple[ArrayT, ArrayT] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def rotm(
    x: ArrayLike, y: ArrayLike, param: ArrayLike, *, out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def scal(
    x: ArrayT, *, alpha: Number, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> ArrayT: ...
@overload
def scal(
    x: ArrayLike, *, alpha: Number, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> NDArray[Any]: ...
def set_math_mode(mode: MathMode | None) -> Setting: ...
@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
@overload
def swap(
    x: ArrayT, y: ArrayT, *, stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def swap(
    x: ArrayLike, y: ArrayLike, *, stream: Stream | None = None, backend: Backend | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def symm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> ArrayT: ...
@overload
def symm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def symm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def symm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[True] = True,
    progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def symm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: Literal[False],
    progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def symm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, side: SideFlag = "L",
    lower: UploFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None, device: int | None = None,
    devices: Devices | None = None, max_device_memory: int | None = None, blocking: bool,
    progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def symv(
    a: ArrayT, x: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def symv(
    a: ArrayLike, x: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def syr(
    x: ArrayT, *, alpha: Number = 1, lower: UploFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def syr(
    x: ArrayLike, *, alpha: Number = 1, lower: UploFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def syr2(
    x: ArrayT, y: ArrayT, *, alpha: Number = 1, lower: UploFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def syr2(
    x: ArrayLike, y: ArrayLike, *, alpha: Number = 1, lower: UploFlag = False,
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def syr2k(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans: TransFlag = "N", out: ArrayT | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None,
) -> ArrayT: ...
@overload
def syr2k(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False,
    trans: TransFlag = "N", out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None, method: Literal["tensor"] | None = None,
) -> NDArray[Any]: ...
@overload
def syrk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[True] = True, progress: Progress | None = None,
) -> ArrayT: ...
@overload
def syrk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[False], progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def syrk(
    a: ArrayT, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: bool, progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def syrk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[True] = True, progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def syrk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: Literal[False], progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def syrk(
    a: ArrayLike, *, alpha: Number = 1, beta: Number = 0, lower: UploFlag = False, trans: TransFlag = "N",
    out: NDArray[Any] | None = None, stream: Stream | None = None, backend: Backend | None = None,
    method: Literal["tensor"] | None = None, device: int | None = None, devices: Devices | None = None,
    max_device_memory: int | None = None, blocking: bool, progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def trmm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[True] = True, progress: Progress | None = None,
) -> ArrayT: ...
@overload
def trmm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[False], progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def trmm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: bool, progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def trmm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[True] = True, progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def trmm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[False], progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def trmm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: bool, progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def trmv(
    a: ArrayT, x: ArrayT, *, lower: UploFlag = False, trans: TransFlag = "N", unit_diag: DiagFlag = False,
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def trmv(
    a: ArrayLike, x: ArrayLike, *, lower: UploFlag = False, trans: TransFlag = "N",
    unit_diag: DiagFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> NDArray[Any]: ...
@overload
def trsm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[True] = True, progress: Progress | None = None,
) -> ArrayT: ...
@overload
def trsm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[False], progress: Progress | None = None,
) -> Handle[ArrayT]: ...
@overload
def trsm(
    a: ArrayT, b: ArrayT, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: ArrayT | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: bool, progress: Progress | None = None,
) -> ArrayT | Handle[ArrayT]: ...
@overload
def trsm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[True] = True, progress: Progress | None = None,
) -> NDArray[Any]: ...
@overload
def trsm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: Literal[False], progress: Progress | None = None,
) -> Handle[NDArray[Any]]: ...
@overload
def trsm(
    a: ArrayLike, b: ArrayLike, *, alpha: Number = 1, side: SideFlag = "L", lower: UploFlag = False,
    trans: TransFlag = "N", unit_diag: DiagFlag = False, out: NDArray[Any] | None = None,
    stream: Stream | None = None, backend: Backend | None = None, method: Literal["tensor"] | None = None,
    device: int | None = None, devices: Devices | None = None, max_device_memory: int | None = None,
    blocking: bool, progress: Progress | None = None,
) -> NDArray[Any] | Handle[NDArray[Any]]: ...
@overload
def trsm_grouped(
    a: Sequence[ArrayT], b: Sequence[ArrayT], *, alpha: Number | Sequence[Number] = 1,
    side: SideFlag | Sequence[SideFlag] = "L", lower: UploFlag | Sequence[UploFlag] = False,
    trans: TransFlag | Sequence[TransFlag] = "N", unit_diag: DiagFlag | Sequence[DiagFlag] = False,
    out: Sequence[ArrayT] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> list[ArrayT]: ...
@overload
def trsm_grouped(
    a: Sequence[ArrayLike], b: Sequence[ArrayLike], *, alpha: Number | Sequence[Number] = 1,
    side: SideFlag | Sequence[SideFlag] = "L", lower: UploFlag | Sequence[UploFlag] = False,
    trans: TransFlag | Sequence[TransFlag] = "N", unit_diag: DiagFlag | Sequence[DiagFlag] = False,
    out: Sequence[NDArray[Any]] | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> list[NDArray[Any]]: ...
@overload
def trsv(
    a: ArrayT, x: ArrayT, *, lower: UploFlag = False, trans: TransFlag = "N", unit_diag: DiagFlag = False,
    out: ArrayT | None = None, stream: Stream | None = None, backend: Backend | None = None,
) -> ArrayT: ...
@overload
def trsv(
    a: ArrayLike, x: ArrayLike, *, lower: UploFlag = False, trans: TransFlag = "N",
    unit_diag: DiagFlag = False, out: NDArray[Any] | None = None, stream: Stream | None = None,
    backend: Backend | None = None,
) -> NDArray[Any]: ...
def unpatch_cupy() -> None: ...
def unpatch_scipy() -> None: ...
def unpatch_torch() -> None: ...
def use_devices(devices: Devices | None = None, max_device_memory: int | None = None) -> Setting: ...
