"""Types of arguments, for annotations and type checkers; no call imports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, SupportsComplex, SupportsFloat, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .types import Diag, Side, Trans, Uplo

__all__ = [
    "Array",
    "ArrayLike",
    "ArrayT",
    "AssumeA",
    "Backend",
    "Casting",
    "Devices",
    "DiagFlag",
    "MathMode",
    "Method",
    "Number",
    "Order",
    "Progress",
    "SideFlag",
    "Stream",
    "SupportsCudaArrayInterface",
    "SupportsDLPack",
    "Switch",
    "TransFlag",
    "UploFlag",
]


class SupportsDLPack(Protocol):
    """An array that exports DLPack: NumPy's, CuPy's, PyTorch's, JAX's and others."""

    def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...


class SupportsCudaArrayInterface(Protocol):
    """An array in device memory that has the CUDA array interface: Numba's and others."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


Array: TypeAlias = SupportsDLPack | SupportsCudaArrayInterface
#: The kind of array that is passed, and returned.
ArrayT = TypeVar("ArrayT", bound=Array)
#: NumPy's arrays, and sequences that become one.
ArrayLike: TypeAlias = NDArray[Any] | list[Any] | tuple[Any, ...]

#: A scalar, or an array of one element.
Number: TypeAlias = SupportsComplex | SupportsFloat | SupportsIndex
#: A bool, or an int in its place.
Switch: TypeAlias = int | np.integer[Any] | np.bool_

TransFlag: TypeAlias = Literal["N", "T", "C", "H", "n", "t", "c", "h", 0, 1, 2] | Trans
SideFlag: TypeAlias = Literal["L", "R", "l", "r", 0, 1] | Side
UploFlag: TypeAlias = Literal["U", "L", "u", "l", 0, 1] | bool | np.bool_ | Uplo
DiagFlag: TypeAlias = Literal["N", "U", "n", "u", 0, 1] | bool | np.bool_ | Diag

Method: TypeAlias = Literal["3m", "tensor"]
MathMode: TypeAlias = Literal["tensor"]
Backend: TypeAlias = Literal["auto", "cuda", "cpu", "sim", "numba"]
Devices: TypeAlias = Sequence[int] | Literal["all"]
#: A function of the tasks that are done and of all; or whether a bar shows them.
Progress: TypeAlias = Callable[[int, int], object] | bool

Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Order: TypeAlias = Literal["K", "A", "C", "F"]
AssumeA: TypeAlias = (
    Literal["general", "gen", "diagonal", "tridiagonal", "banded", "upper triangular", "lower triangular"]
    | Literal["symmetric", "sym", "hermitian", "her", "positive definite", "pos"]
)


class _CudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...


class _CuPyStream(Protocol):
    @property
    def ptr(self) -> int: ...


class _PyTorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...


class _NumbaStream(Protocol):
    @property
    def handle(self) -> Any: ...


#: The address of a CUDA stream, or the stream object of a library.
Stream: TypeAlias = SupportsIndex | _CudaStream | _CuPyStream | _PyTorchStream | _NumbaStream
