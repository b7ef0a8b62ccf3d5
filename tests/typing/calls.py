"""Right and wrong calls for type checkers: a line that ends with an E is wrong, all others are right.

The E names the error: of an argument, or as mypy does. `test_typing` has checkers read this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import pyblasgpu as pb
from pyblasgpu import Handle, blas, lapack, linalg
from pyblasgpu.types import Diag, Side, Trans, Uplo
from pyblasgpu.typing import ArrayT, Backend, TransFlag


class Tensor:
    """An array as PyTorch's, CuPy's and JAX's are: it exports DLPack."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return stream


class DeviceArray:
    """An array as Numba's are: it has the CUDA array interface."""

    __cuda_array_interface__: dict[str, Any]


class Stream:
    ptr: int


class TorchStream:
    @property
    def cuda_stream(self) -> int:
        return 1


Matrix = NDArray[np.float64]


def kinds(a: Matrix, t: Tensor, d: DeviceArray, x: Any) -> None:
    """The kind that comes in comes out."""
    assert_type(pb.gemm(a, a), Matrix)
    assert_type(pb.gemm(t, t, out=t), Tensor)
    assert_type(pb.trsm(d, d, out=None), DeviceArray)
    assert_type(pb.gemm(x, x), Any)
    assert_type(pb.gemv(t, t), Tensor)
    assert_type(pb.axpy(d, d, alpha=2), DeviceArray)
    assert_type(pb.rot(t, t, 0.6, 0.8), tuple[Tensor, Tensor])
    assert_type(pb.syr2k(t, t), Tensor)
    assert_type(blas.dgemm(1, t, t), Tensor)
    assert_type(blas.zher2k(1.0, a, a), Matrix)
    assert_type(blas.get_blas_funcs("gemm"), Any)
    assert_type(blas.dgbmv(2, 2, 1, 1, 1.0, t, t), Tensor)
    assert_type(lapack.dpotrf(t), tuple[Tensor, Any])
    assert_type(lapack.gesv(a, a), tuple[Matrix, Any, Matrix, Any])
    assert_type(linalg.solve(t, t), Tensor)
    assert_type(linalg.cho_solve((t, True), t), Tensor)
    assert_type(linalg.lu_solve(linalg.lu_factor(t), t), Tensor)
    assert_type(linalg.matmul(d, d), DeviceArray)
    assert_type(linalg.multi_dot([t, t, t]), Tensor)
    assert_type(linalg.slogdet(t).logabsdet, Any)


def products(a: ArrayT, b: ArrayT) -> ArrayT:
    """A function of one's own."""
    return pb.trmm(a, pb.gemm(a, b), lower=True)


def lists(a: Matrix) -> None:
    """Results of sequences are NumPy's; some functions take numbers as well."""
    assert_type(pb.gemm([[1.0]], [[2.0]]), NDArray[Any])
    assert_type(pb.trsm(a, [[2.0]], blocking=False), Handle[NDArray[Any]])
    assert_type(pb.axpy([1.0], (2.0,)), NDArray[Any])
    assert_type(linalg.outer(2, [1.0, 2.0]), NDArray[Any])
    linalg.dot(2, 3j)
    assert_type(linalg.solve([[2.0, 0.0], [0.0, 2.0]], [1.0, 2.0]), NDArray[Any])
    assert_type(blas.dgemm(1, a, [[1.0], [2.0]]), NDArray[Any])
    assert_type(lapack.dpotrf([[2.0]]), tuple[NDArray[Any], Any])


def results_by_arguments(t: Tensor, waits: bool) -> None:
    assert_type(pb.gemm(t, t, blocking=True), Tensor)
    assert_type(pb.gemm(t, t, blocking=False), Handle[Tensor])
    assert_type(pb.trsm(t, t, blocking=False).wait(), Tensor)
    assert_type(pb.herk(t, blocking=waits), Tensor | Handle[Tensor])
    assert_type(linalg.lu(t), tuple[Tensor, Tensor, Tensor])
    assert_type(linalg.lu(t, permute_l=True), tuple[Tensor, Tensor])
    assert_type(linalg.lu([[1.0]], True), tuple[NDArray[Any], NDArray[Any]])
    assert_type(pb.show_config("dicts"), dict[str, Any])
    pb.gemm(t, t).wait()  # E: attr-defined
    pb.gemm(t, t, blocking=False) + 1  # E: operator


def arrays(t: Tensor) -> None:
    pb.gemm("nonsense", t)  # E: argument
    pb.gemm(t, None)  # E: argument
    pb.gemv(t, 3.0)  # E: argument
    pb.syrk(t, out=3)  # E: argument
    pb.syrk([[1.0]], out=[[1.0]])  # E: argument
    pb.plan_gemm(t, t, None)  # E: argument
    assert_type(pb.plan_gemm(t, t, t)(t, t, t), Tensor)
    pb.plan_gemm(t, t, t)(t, t, "out")  # E: argument
    pb.nrm2(t, out=[1.0])  # E: argument
    pb.nrm2("x")  # E: argument
    blas.dgemm(1, "nonsense", t)  # E: argument
    blas.ddot("x", "y")  # E: argument
    blas.dgbmv(2, 2, 1, 1, 1.0, "a", t)  # E: argument
    lapack.dgetrf(None)  # E: argument
    lapack.getrs(t, [0], 3)  # E: argument
    linalg.solve("a", "b")  # E: argument
    linalg.det(None)  # E: argument
    linalg.multi_dot("ab")  # E: argument


def flags(t: Tensor, lower: bool, trans: TransFlag, transposed: int) -> None:
    pb.gemm(t, t, trans_a="c", trans_b=trans)
    pb.gemm(t, t, trans_a=Trans.CONJ, trans_b=1)
    pb.trsm(t, t, side=Side.RIGHT, lower=Uplo.LOWER, unit_diag=Diag.UNIT)
    pb.trmm(t, t, side="r", lower=lower, trans="T", unit_diag=True)
    pb.trmm(t, t, lower=np.True_, unit_diag="U")
    blas.dtrsm(1, t, t, side=1, lower=transposed, trans_a=transposed, diag="U")
    linalg.solve_triangular(t, t, trans="T", lower="L", unit_diagonal=1)
    pb.gemm(t, t, trans_a="X")  # E: argument
    pb.gemm(t, t, trans_b=3)  # E: argument
    pb.gemv(t, t, trans="no")  # E: argument
    pb.trsm(t, t, side="up")  # E: argument
    pb.syr(t, lower="yes")  # E: argument
    pb.trsv(t, t, unit_diag=None)  # E: argument
    blas.dgemm(1, t, t, trans_a="X")  # E: argument
    blas.dsyrk(1, t, overwrite_c="yes")  # E: argument
    lapack.dtrtri(t, unitdiag="X")  # E: argument
    linalg.cholesky(t, lower="X")  # E: argument
    linalg.solve(t, t, assume_a="round")  # E: argument


def numbers(t: Tensor) -> None:
    pb.gemm(t, t, alpha=np.float32(2), beta=1j)
    pb.scal(t, alpha=np.ones(1))
    pb.gemm(t, t, alpha="2")  # E: argument
    pb.axpy(t, t, alpha=None)  # E: argument
    pb.scal(t)  # E: argument
    blas.dgemm("1", t, t)  # E: argument
    blas.drotg("1", 2)  # E: argument
    blas.daxpy(t, t, incx=0.5)  # E: argument


def options(t: Tensor, backend: Backend, report: Callable[[int, int], None]) -> None:
    pb.gemm(t, t, method="tensor", backend=backend, devices=[0, 1], progress=report)
    pb.gemm(t, t, method="3m", backend="cpu", devices="all", max_device_memory=1 << 30, progress=True)
    pb.gemm(t, t, stream=0)
    pb.gemm(t, t, stream=Stream())
    pb.gemv(t, t, stream=TorchStream())
    blas.zgemm(1, t, t, method="3m")
    pb.gemm(t, t, method="tensr")  # E: argument
    pb.trsm(t, t, method="3m")  # E: argument
    blas.dsymm(1, t, t, method="3m")  # E: argument
    linalg.solve(t, t, method="3m")  # E: argument
    pb.plan_trsm(t, t, t, method="3m")  # E: argument
    pb.gemv(t, t, backend="gpu")  # E: argument
    pb.gemm(t, t, devices="some")  # E: argument
    pb.gemm(t, t, blocking="no")  # E: argument
    pb.gemm(t, t, progress="bar")  # E: argument
    pb.gemv(t, t, stream="default")  # E: argument
    pb.gemm(t, t, lower=True)  # E: argument
    linalg.matmul(t, t, casting="any")  # E: argument


def settings() -> None:
    with pb.set_math_mode("tensor"), pb.use_devices("all", 1 << 30), pb.override("splits", 2):
        pb.set_math_mode(None)
    with pb.patch_scipy(backend="cpu", thresholds={"solve": 100}) as patch:
        assert_type(patch.thresholds, dict[str, float])
    pb.set_math_mode("bogus")  # E: argument
    pb.use_devices("some")  # E: argument
    pb.use_devices(max_device_memory="1 GiB")  # E: argument
    pb.patch_scipy(backend="gpu")  # E: argument
    pb.explain("gemm", "d", 64, method="fast")  # E: argument
    pb.backend_status("gpu")  # E: argument
    pb.show_config("text")  # E: argument
