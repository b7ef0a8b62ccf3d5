"""cuBLAS, to be measured with ours; nothing in the library computes with it.

The library is the one that the process has loaded, else the first that cuda.pathfinder finds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..errors import BackendUnavailable
from ..routine_table import ROUTINES
from ..types import DTYPES, Diag, Dtype, Side, Trans, Uplo, dtype_of

__all__ = ["Cublas", "library", "load", "scalar"]

# values of the enums in cublas_api.h
_TRANS = {Trans.NO: 0, Trans.TRANS: 1, Trans.CONJ: 2}
_UPLO = {Uplo.LOWER: 0, Uplo.UPPER: 1}
_SIDE = {Side.LEFT: 0, Side.RIGHT: 1}
_DIAG = {Diag.NON_UNIT: 0, Diag.UNIT: 1}


class Cublas:
    """A cuBLAS handle of the current device.

    Matrices are device arrays with ``__cuda_array_interface__``, column-major (a leading stride is
    allowed) and of one dtype; nothing of this is checked. Those of a GEMM or TRSM may be batches, (batch,
    rows, columns), A and B of a GEMM also with a batch stride of 0.
    """

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        version = ctypes.c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(version))
        #: For example 130100 for 13.1.
        self.version = version.value
        self._addresses: dict[tuple[int, int, int], Any] = {}

    def set_stream(self, stream: int) -> None:
        """Run what follows on `stream` (a handle as an int; 0 is the legacy default stream)."""
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))

    def gemm(self, alpha, a, b, beta, c, trans_a: Trans = Trans.NO, trans_b: Trans = Trans.NO) -> None:
        """``c := alpha op(a) op(b) + beta c``."""
        *batch, _, _ = c.shape
        suffix, lies = ("StridedBatched", _batch) if batch else ("_v2", _matrix)
        self._product(f"gemm{suffix}", lies, alpha, a, b, beta, c, trans_a, trans_b, *batch)

    def gemm3m(self, alpha, a, b, beta, c, trans_a: Trans = Trans.NO, trans_b: Trans = Trans.NO) -> None:
        """Multiply complex matrices by three real products; no batch."""
        self._product("gemm3m", _matrix, alpha, a, b, beta, c, trans_a, trans_b)

    def _product(
        self, name: str, lies: Callable, alpha, a, b, beta, c, trans_a, trans_b, *batch: int
    ) -> None:
        """``lies(x)`` returns the place of a matrix, or of a batch of them."""
        dtype, k = dtype_of(c.dtype), a.shape[-1 if trans_a is Trans.NO else -2]
        extents = _TRANS[trans_a], _TRANS[trans_b], *c.shape[-2:], k
        self._named(
            name,
            dtype,
            *extents,
            scalar(alpha, dtype),
            *lies(a),
            *lies(b),
            scalar(beta, dtype),
            *lies(c),
            *batch,
        )

    def trmm(self, alpha, a, b, side: Side, uplo: Uplo, trans: Trans, diag: Diag, out=None) -> None:
        """``out := alpha op(a) b`` or ``alpha b op(a)``; by default in place: cuBLAS's C is B."""
        arguments = self._triangular(alpha, a, b, side, uplo, trans, diag, _matrix)
        self.call("trmm", dtype_of(b.dtype), *arguments, *_matrix(b if out is None else out))

    def trsm(self, alpha, a, b, side: Side, uplo: Uplo, trans: Trans, diag: Diag) -> None:
        """Solve ``op(a) x = alpha b`` or ``x op(a) = alpha b``; x overwrites b. Both may be batches."""
        *batch, _, _ = b.shape
        suffix, lies = ("Batched", self._each) if batch else ("_v2", _matrix)
        arguments = self._triangular(alpha, a, b, side, uplo, trans, diag, lies)
        self._named(f"trsm{suffix}", dtype_of(b.dtype), *arguments, *batch)

    def trsv(self, a, x, uplo: Uplo, trans: Trans, diag: Diag) -> None:
        """Solve ``op(a) y = x`` for one column, which y overwrites."""
        flags, (start, _) = (_UPLO[uplo], _TRANS[trans], _DIAG[diag]), _matrix(x)
        self.call("trsv", dtype_of(x.dtype), *flags, x.shape[0], *_matrix(a), start, 1)

    def gemv(self, alpha, a, x, beta, y, trans: Trans = Trans.NO) -> None:
        """``y := alpha op(a) x + beta y``, x and y matrices of one column."""
        dtype, ((start, _), (end, _)) = dtype_of(y.dtype), (_matrix(x), _matrix(y))
        matrix = *a.shape, scalar(alpha, dtype), *_matrix(a)
        self.call("gemv", dtype, _TRANS[trans], *matrix, start, 1, scalar(beta, dtype), end, 1)

    def ger(self, alpha, x, y, a) -> None:
        """``a := a + alpha x y^T``, x and y matrices of one column."""
        dtype, ((left, _), (right, _)) = dtype_of(a.dtype), (_matrix(x), _matrix(y))
        name = "geru" if dtype.is_complex else "ger"
        self.call(name, dtype, *a.shape, scalar(alpha, dtype), left, 1, right, 1, *_matrix(a))

    def _each(self, x: Any) -> tuple[ctypes.c_void_p, int]:
        """The address of the addresses of a batch's matrices, which are kept on the device, and the leading
        stride.
        """
        import cupy

        start, ld, step = _batch(x)
        key = start.value or 0, step.value * x.dtype.itemsize, x.shape[0]
        if key not in self._addresses:
            self._addresses[key] = cupy.arange(key[2], dtype=cupy.uint64) * key[1] + key[0]
        return ctypes.c_void_p(self._addresses[key].data.ptr), ld

    @staticmethod
    def _triangular(alpha, a, b, side, uplo, trans, diag, lies: Callable) -> tuple:
        flags = (_SIDE[side], _UPLO[uplo], _TRANS[trans], _DIAG[diag])
        return (*flags, *b.shape[-2:], scalar(alpha, dtype_of(b.dtype)), *lies(a), *lies(b))

    def symm(self, alpha, a, b, beta, c, side: Side, uplo: Uplo) -> None:
        """``c := alpha a b + beta c`` or ``alpha b a + beta c``, a symmetric."""
        self._symmetric("symm", alpha, a, b, beta, c, side, uplo)

    def hemm(self, alpha, a, b, beta, c, side: Side, uplo: Uplo) -> None:
        """``c := alpha a b + beta c`` or ``alpha b a + beta c``, a Hermitian."""
        self._symmetric("hemm", alpha, a, b, beta, c, side, uplo)

    def syrk(self, alpha, a, beta, c, uplo: Uplo, trans: Trans) -> None:
        """A triangle of ``c := alpha op(a) op(a)^T + beta c``."""
        self._rank_k("syrk", (a,), alpha, beta, c, uplo, trans)

    def herk(self, alpha, a, beta, c, uplo: Uplo, trans: Trans) -> None:
        """A triangle of ``c := alpha op(a) op(a)^H + beta c``, alpha and beta real."""
        self._rank_k("herk", (a,), alpha, beta, c, uplo, trans)

    def syr2k(self, alpha, a, b, beta, c, uplo: Uplo, trans: Trans) -> None:
        """A triangle of ``c := alpha op(a) op(b)^T + alpha op(b) op(a)^T + beta c``."""
        self._rank_k("syr2k", (a, b), alpha, beta, c, uplo, trans)

    def her2k(self, alpha, a, b, beta, c, uplo: Uplo, trans: Trans) -> None:
        """A triangle of ``c := alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H + beta c``, beta real."""
        self._rank_k("her2k", (a, b), alpha, beta, c, uplo, trans)

    def _symmetric(self, routine: str, alpha, a, b, beta, c, side, uplo) -> None:
        dtype = dtype_of(c.dtype)
        self.call(
            routine,
            dtype,
            _SIDE[side],
            _UPLO[uplo],
            *c.shape,
            scalar(alpha, dtype),
            *_matrix(a),
            *_matrix(b),
            scalar(beta, dtype),
            *_matrix(c),
        )

    def _rank_k(self, routine: str, inputs: tuple, alpha, beta, c, uplo, trans) -> None:
        dtype = dtype_of(c.dtype)
        k = inputs[0].shape[-1 if trans is Trans.NO else -2]
        real, row = DTYPES["s" if dtype.real == "float32" else "d"], ROUTINES[routine]
        factor, other = (
            scalar(value, real if name in row.real else dtype)
            for name, value in (("alpha", alpha), ("beta", beta))
        )
        matrices = (argument for x in inputs for argument in _matrix(x))
        self.call(
            routine,
            dtype,
            _UPLO[uplo],
            _TRANS[trans],
            c.shape[0],
            k,
            factor,
            *matrices,
            other,
            *_matrix(c),
        )

    def call(self, routine: str, dtype: Dtype, *arguments) -> None:
        """``cublas<T>routine_v2`` of a dtype, with these arguments after the handle."""
        self._named(f"{routine}_v2", dtype, *arguments)

    def _named(self, name: str, dtype: Dtype, *arguments) -> None:
        self._call(f"cublas{dtype.letter.upper()}{name}", self._handle, *arguments)

    def _call(self, name: str, *arguments) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned status {status}")


@lru_cache(maxsize=1)
def load() -> Cublas:
    """The cuBLAS of this process.

    Raises
    ------
    BackendUnavailable
        When there is none.
    """
    return Cublas(library())


def library() -> ctypes.CDLL:
    """The library; raises as `load`."""
    try:
        from cuda import pathfinder

        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    except (ImportError, OSError, RuntimeError) as missing:
        raise BackendUnavailable(f"cuBLAS cannot be used here: {str(missing).splitlines()[0]}") from missing


def _matrix(x: Any) -> tuple[ctypes.c_void_p, int]:
    """Pointer and leading stride of a column-major matrix, or of one column, on the device."""
    if len(x.shape) > 2:
        raise ValueError(f"cuBLAS takes one matrix here, not a batch of shape {x.shape}")
    return _start(x)


def _start(x: Any) -> tuple[ctypes.c_void_p, int]:
    """Pointer and leading stride of the first of column-major matrices."""
    interface = x.__cuda_array_interface__
    strides = interface.get("strides")
    ld = strides[-1] // x.dtype.itemsize if strides else x.shape[-2]
    return ctypes.c_void_p(interface["data"][0]), max(ld, 1)


def _batch(x: Any) -> tuple[ctypes.c_void_p, int, ctypes.c_longlong]:
    """Pointer, leading stride and batch stride of a batch of column-major matrices."""
    strides = x.__cuda_array_interface__.get("strides")
    step = strides[0] // x.dtype.itemsize if strides else x.shape[-2] * x.shape[-1]
    return *_start(x), ctypes.c_longlong(step)


def scalar(value: complex, dtype: Dtype) -> Any:
    """`value` in host memory, as cuBLAS takes alpha and beta."""
    real: Any = ctypes.c_float if dtype.real == "float32" else ctypes.c_double
    value = complex(value)
    return (real * dtype.reals_per_element)(*(value.real, value.imag)[: dtype.reals_per_element])
