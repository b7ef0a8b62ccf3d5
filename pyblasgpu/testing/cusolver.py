"""cuSOLVER's factorisations, to be measured with ours; nothing in the library computes with it."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import BackendUnavailable
from ..types import Diag, Dtype, Uplo, dtype_of

__all__ = ["DATA_TYPE", "Cusolver", "lead", "library", "load", "pointer"]

# values of the enums in cublas_api.h and library_types.h
_UPLO = {Uplo.LOWER: 0, Uplo.UPPER: 1}
_DIAG = {Diag.NON_UNIT: 0, Diag.UNIT: 1}
DATA_TYPE = {"s": 0, "d": 1, "c": 4, "z": 5}


class Cusolver:
    """A cuSOLVER handle of the current device and stream 0.

    Matrices are CuPy arrays, column-major and of one dtype; nothing of this is checked. A workspace is made
    once for each size.
    """

    def __init__(self, library: ctypes.CDLL):
        import cupy

        self._library, self._cupy = library, cupy
        self._handle = ctypes.c_void_p()
        self._call("cusolverDnCreate", ctypes.byref(self._handle))
        self.info = cupy.zeros(1, cupy.int32)
        self._workspaces: dict[tuple[Any, ...], Any] = {}

    def potrf(self, a: Any, uplo: Uplo) -> None:
        """The Cholesky factor of `a` in place."""
        self._with_workspace("potrf", a, self._of_triangle(a, uplo))

    def potri(self, a: Any, uplo: Uplo) -> None:
        """The inverse from the factor in `a`, in place."""
        self._with_workspace("potri", a, self._of_triangle(a, uplo))

    def _of_triangle(self, a: Any, uplo: Uplo) -> tuple[Any, ...]:
        return self._handle, _UPLO[uplo], a.shape[0], pointer(a), lead(a)

    def sytrf(self, a: Any, uplo: Uplo) -> None:
        """The factors L D L^T of `a` in place; pivots are not returned."""
        dtype, n, matrix = dtype_of(a.dtype), a.shape[0], (pointer(a), lead(a))
        key = "sytrf", dtype.letter, n, uplo
        if key not in self._workspaces:
            count = ctypes.c_int()
            self._typed("sytrf_bufferSize", dtype, self._handle, n, *matrix, ctypes.byref(count))
            pivots = self._cupy.zeros(n, self._cupy.int32)
            self._workspaces[key] = self._cupy.empty(max(count.value, 1), a.dtype), pivots
        workspace, pivots = self._workspaces[key]
        rest = pointer(pivots), pointer(workspace), workspace.size, pointer(self.info)
        self._typed("sytrf", dtype, self._handle, _UPLO[uplo], n, *matrix, *rest)

    def potrs(self, a: Any, b: Any, uplo: Uplo) -> None:
        """The solution in place of `b`, from the factor in `a`."""
        extents = a.shape[0], b.shape[1]
        arguments = pointer(a), lead(a), pointer(b), lead(b), pointer(self.info)
        self._typed("potrs", dtype_of(a.dtype), self._handle, _UPLO[uplo], *extents, *arguments)

    def geqrf(self, tau: Any, a: Any) -> None:
        """The QR factors of `a` in place, and the factors of its reflectors."""
        matrix = self._handle, *a.shape, pointer(a), lead(a)
        self._with_workspace("geqrf", a, matrix, (pointer(tau),))

    def orgqr(self, tau: Any, a: Any) -> None:
        """Q in place of the reflectors in `a`."""
        arguments = self._handle, *a.shape, tau.size, pointer(a), lead(a), pointer(tau)
        self._with_workspace("ungqr" if a.dtype.kind == "c" else "orgqr", a, arguments)

    def ormqr(self, tau: Any, a: Any, c: Any) -> None:
        """Q c in place, from the reflectors in `a`."""
        reflectors = pointer(a), lead(a), pointer(tau)
        left, untransposed = 0, 0  # values of CUBLAS_SIDE_LEFT and CUBLAS_OP_N
        arguments = self._handle, left, untransposed, *c.shape, tau.size, *reflectors, pointer(c), lead(c)
        self._with_workspace("unmqr" if a.dtype.kind == "c" else "ormqr", a, arguments)

    def gels(self, tau: Any, a: Any, b: Any) -> None:
        """The solution of least squares in place of `b`; `a` is overwritten, and `tau` not used."""
        letter, key = dtype_of(a.dtype).letter.upper(), ("gels", a.dtype.char, *a.shape, b.shape[1])
        name = f"cusolverDn{letter}{letter}gels"
        if key not in self._workspaces:
            self._workspaces[key] = self._cupy.empty_like(b), None
        x, workspace = self._workspaces[key]
        matrices = [each for array in (a, b, x) for each in (pointer(array), lead(array))]
        arguments = self._handle, *a.shape, b.shape[1], *matrices
        if workspace is None:
            nbytes = ctypes.c_size_t()
            self._call(f"{name}_bufferSize", *arguments, None, ctypes.byref(nbytes))
            workspace = self._cupy.empty(max(nbytes.value, 1), self._cupy.uint8)
            self._workspaces[key] = x, workspace
        size, steps = ctypes.c_size_t(workspace.size), ctypes.c_int()
        self._call(name, *arguments, pointer(workspace), size, ctypes.byref(steps), pointer(self.info))
        b[...] = x

    def _with_workspace(
        self, routine: str, a: Any, arguments: tuple[Any, ...], results: tuple[Any, ...] = ()
    ) -> None:
        dtype, sizes = dtype_of(a.dtype), [each for each in arguments if isinstance(each, int)]
        key = routine, dtype.letter, *sizes
        if key not in self._workspaces:
            count = ctypes.c_int()
            self._typed(f"{routine}_bufferSize", dtype, *arguments, ctypes.byref(count))
            self._workspaces[key] = self._cupy.empty(max(count.value, 1), a.dtype)
        workspace = self._workspaces[key]
        rest = pointer(workspace), workspace.size, pointer(self.info)
        self._typed(routine, dtype, *arguments, *results, *rest)

    def trtri(self, a: Any, uplo: Uplo, diag: Diag = Diag.NON_UNIT) -> None:
        """The inverse of a triangle in place."""
        dtype, n = dtype_of(a.dtype), ctypes.c_int64(a.shape[0])
        flags = self._handle, _UPLO[uplo], _DIAG[diag], n, DATA_TYPE[dtype.letter]
        matrix = pointer(a), ctypes.c_int64(lead(a))
        key = "trtri", dtype.letter, a.shape[0], uplo, diag
        if key not in self._workspaces:
            device, host = ctypes.c_size_t(), ctypes.c_size_t()
            sizes = ctypes.byref(device), ctypes.byref(host)
            self._call("cusolverDnXtrtri_bufferSize", *flags, *matrix, *sizes)
            workspace = self._cupy.empty(max(device.value, 1), self._cupy.uint8)
            self._workspaces[key] = workspace, ctypes.create_string_buffer(max(host.value, 1))
        workspace, buffer = self._workspaces[key]
        arguments = pointer(workspace), ctypes.c_size_t(workspace.size), buffer, ctypes.c_size_t(len(buffer))
        self._call("cusolverDnXtrtri", *flags, *matrix, *arguments, pointer(self.info))

    def potrf_batched(self, stack: Any, uplo: Uplo) -> None:
        """The Cholesky factors of a stack (batch, n, n) of column-major matrices in place."""
        batch, n, _ = stack.shape
        infos = self._infos(batch)
        arguments = n, self._each(stack), stack.strides[2] // stack.itemsize, pointer(infos), batch
        self._typed("potrfBatched", dtype_of(stack.dtype), self._handle, _UPLO[uplo], *arguments)

    def potrs_batched(self, stack: Any, b: Any, uplo: Uplo) -> None:
        """The solutions for one right-hand side each."""
        batch, n, _ = stack.shape
        left = self._each(stack), stack.strides[2] // stack.itemsize
        right = self._each(b), n, pointer(self.info), batch
        flags = self._handle, _UPLO[uplo], n, 1
        self._typed("potrsBatched", dtype_of(stack.dtype), *flags, *left, *right)

    def _infos(self, batch: int) -> Any:
        key = ("infos", batch)
        if key not in self._workspaces:
            self._workspaces[key] = self._cupy.zeros(batch, self._cupy.int32)
        return self._workspaces[key]

    def _each(self, stack: Any) -> ctypes.c_void_p:
        """The address of the addresses of a stack's matrices, which are kept on the device."""
        key = "each", stack.data.ptr, stack.strides[0], stack.shape[0]
        if key not in self._workspaces:
            steps = self._cupy.arange(stack.shape[0], dtype=self._cupy.uint64)
            self._workspaces[key] = steps * stack.strides[0] + stack.data.ptr
        return pointer(self._workspaces[key])

    def _typed(self, routine: str, dtype: Dtype, *arguments: Any) -> None:
        self._call(f"cusolverDn{dtype.letter.upper()}{routine}", *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: status {status}")


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)


def lead(a: Any) -> int:
    return max(a.strides[1] // a.itemsize, a.shape[0])


@lru_cache
def load() -> Cusolver:
    """cuSOLVER on the current device.

    Raises
    ------
    BackendUnavailable
        When there is no cuSOLVER, or no CuPy.
    """
    return Cusolver(library())


def library() -> ctypes.CDLL:
    """cuSOLVER's library, see `load`."""
    try:
        return ctypes.CDLL(_path())
    except (ImportError, OSError, RuntimeError) as problem:
        raise BackendUnavailable(f"cuSOLVER does not load: {problem}") from problem


def _path() -> str:
    """Return the library's path: the one that CuPy has loaded, else the one that cuda.pathfinder finds."""
    import_module("cupy_backends.cuda.libs.cusolver")
    maps = Path("/proc/self/maps")
    for line in maps.read_text().splitlines() if maps.exists() else ():
        if "libcusolver.so" in line:
            return line.split()[-1]
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return str(load_nvidia_dynamic_lib("cusolver").abs_path)
