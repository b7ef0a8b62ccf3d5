"""A call of one of LAPACK's Fortran routines: its arguments as values and views of the caller's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["Call", "Functions"]


class Call:
    """Arguments of a call by their names, each an address."""

    def __init__(self, name: str, arguments: list[str], pointers: tuple[int, ...]) -> None:
        self.name, self.at = name, dict(zip(arguments, pointers, strict=True))
        self.dtype = np.dtype(name[0].translate(str.maketrans("sdcz", "fdFD")))
        self.real = self.dtype.type().real.dtype

    def word(self, name: str) -> str:
        """A character, in upper case."""
        return ctypes.string_at(self.at[name], 1).decode().upper()

    def number(self, name: str) -> int:
        """An integer."""
        return ctypes.c_int.from_address(self.at[name]).value

    def size(self, name: str) -> float:
        """A real number."""
        return float(self.vector(name, 1, self.real)[0])

    def vector(self, name: str, n: int, dtype: Any = None) -> np.ndarray:
        """The first elements of an array."""
        return self.matrix(name, n, 1, max(n, 1), dtype)[:, 0]

    def matrix(self, name: str, rows: int, columns: int, ld: int = 0, dtype: Any = None) -> np.ndarray:
        """A matrix in the caller's memory."""
        dtype = np.dtype(dtype or self.dtype)
        ld = ld or self.number(f"LD{name}")
        if not rows or not columns:
            return np.empty((rows, columns), dtype, "F")
        memory = (ctypes.c_char * (dtype.itemsize * ld * columns)).from_address(self.at[name])
        return np.ndarray((ld, columns), dtype, memory, order="F")[:rows]

    @property
    def is_lapacks(self) -> bool:
        """Whether LAPACK answers the call: a query of workspaces, or one of no rows or columns, or where some
        columns are not to be exchanged.
        """
        extents = ("N",) if "LDZ" in self.at else ("M", "N", "K", "NRHS")  # M of some eigenvalues is a result
        if any(name in self.at and self.number(name) == 0 for name in extents):
            return True
        if "JPVT" in self.at and self.vector("JPVT", self.number("N"), "i4").any():
            return True
        return any(name in self.at and self.number(name) == -1 for name in ("LWORK", "LRWORK", "LIWORK"))

    def ended(self, info: Any) -> None:
        """Set INFO."""
        ctypes.c_int.from_address(self.at["INFO"]).value = int(info)


class Functions:
    """Base of functions that answer calls by the library's, of arrays in some memory."""

    def __init__(self, on: str) -> None:
        from pyblasgpu import lapack, linalg

        self.lapack, self.linalg, self.is_host = lapack, linalg, on == "cpu"
        self.put, self.get = _place(on)

    def called(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
        """Results on the host; arrays among the arguments are copied."""
        passed = (
            self.put(np.array(each, order="F")) if isinstance(each, np.ndarray) else each
            for each in arguments
        )
        found = function(*passed, **options)
        found, on_host = found if isinstance(found, tuple) else (found,), (int, np.generic, np.ndarray)
        return [each if isinstance(each, on_host) else np.asarray(self.get(each)) for each in found]

    def routine(self, call: Call, *arguments: Any, **options: Any) -> list[Any]:
        """Results of the routine of the call's name."""
        return self.called(getattr(self.lapack, call.name), *arguments, **options)


def _place(on: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What puts an array into the memory that is meant, and what gets one."""
    if on == "cpu":
        return (lambda array: array), (lambda array: array)
    if on == "card":
        cupy = import_module("cupy")
        return cupy.asarray, cupy.asnumpy
    fake_device, patch = import_module("fake_device"), import_module("pytest").MonkeyPatch()
    if on == "launches":
        kernels = import_module("fake_kernels")  # before the device, which replaces what it keeps
        fake_device.install(patch)
        kernels.install_below(patch)
    else:
        import_module("sim.simulated").arrays_on_device(patch)
    return fake_device.Array, lambda array: array.host
