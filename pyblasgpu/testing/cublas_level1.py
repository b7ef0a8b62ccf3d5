"""cuBLAS's Level 1, to be measured with ours."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from ..types import DTYPES, dtype_of
from .cublas import Cublas, library, scalar

__all__ = ["CublasVectors", "load_vectors"]

_DEVICE_POINTERS = 1  # results, and no scalars, are read on the device


class CublasVectors(Cublas):
    """A handle for vectors: device arrays of one dtype, contiguous; nothing of this is checked."""

    def axpy(self, alpha: complex, x: Any, y: Any) -> None:
        """``y := alpha x + y``."""
        dtype = dtype_of(x.dtype)
        self.call("axpy", dtype, x.size, scalar(alpha, dtype), *_vector(x), *_vector(y))

    def scal(self, alpha: complex, x: Any) -> None:
        """``x := alpha x``."""
        dtype = dtype_of(x.dtype)
        self.call("scal", dtype, x.size, scalar(alpha, dtype), *_vector(x))

    def copy(self, x: Any, y: Any) -> None:
        """``y := x``."""
        self.call("copy", dtype_of(x.dtype), x.size, *_vector(x), *_vector(y))

    def swap(self, x: Any, y: Any) -> None:
        """``x, y := y, x``."""
        self.call("swap", dtype_of(x.dtype), x.size, *_vector(x), *_vector(y))

    def rot(self, x: Any, y: Any, c: float, s: float) -> None:
        """``x, y := c x + s y, c y - s x``."""
        dtype = dtype_of(x.dtype)
        real = DTYPES["s" if dtype.real_size == 4 else "d"]
        name = {"c": "srot", "z": "drot"}.get(dtype.letter, "rot")
        numbers = scalar(c, real), scalar(s, real)
        self.call(name, dtype, x.size, *_vector(x), *_vector(y), *numbers)


class CublasNumbers(Cublas):
    """cuBLAS's reductions, whose results stay on the device."""

    def __init__(self, handle: ctypes.CDLL):
        super().__init__(handle)
        self._call("cublasSetPointerMode_v2", self._handle, _DEVICE_POINTERS)

    def dot(self, x: Any, y: Any, out: Any) -> None:
        """``out := x^T y``."""
        dtype = dtype_of(x.dtype)
        self.call(
            "dotu" if dtype.is_complex else "dot", dtype, x.size, *_vector(x), *_vector(y), _address(out)
        )

    def nrm2(self, x: Any, out: Any) -> None:
        """``out := ||x||``."""
        self._of_real_type("nrm2", x, out)

    def asum(self, x: Any, out: Any) -> None:
        """``out := sum of |Re x| + |Im x|``."""
        self._of_real_type("asum", x, out)

    def iamax(self, x: Any, out: Any) -> None:
        """``out :=`` the index of the largest, from 1, as int32."""
        letter = dtype_of(x.dtype).letter
        self._call(f"cublasI{letter}amax_v2", self._handle, x.size, *_vector(x), _address(out))

    def _of_real_type(self, name: str, x: Any, out: Any) -> None:
        prefix = {"c": "Sc", "z": "Dz"}.get(dtype_of(x.dtype).letter, dtype_of(x.dtype).letter.upper())
        self._call(f"cublas{prefix}{name}_v2", self._handle, x.size, *_vector(x), _address(out))


@lru_cache(maxsize=1)
def load_vectors() -> tuple[CublasVectors, CublasNumbers]:
    """Two handles of the cuBLAS of this process; raises BackendUnavailable where there is none."""
    return CublasVectors(library()), CublasNumbers(library())


def _address(x: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.__cuda_array_interface__["data"][0])


def _vector(x: Any) -> tuple[ctypes.c_void_p, int]:
    return _address(x), 1
