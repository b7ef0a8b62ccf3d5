"""cuSOLVER's eigenvalues and singular values, to be measured with ours."""

from __future__ import annotations

import ctypes
from typing import Any

from ..types import Dtype, dtype_of
from .cusolver import DATA_TYPE, Cusolver, lead, pointer

__all__ = ["CusolverSpectra"]

_VECTORS, _LOWER = 1, 0  # values of CUSOLVER_EIG_MODE_VECTOR and CUBLAS_FILL_MODE_LOWER
_SOME = ord("S")  # of LAPACK's job: as many vectors as singular values


def _long(number: int) -> ctypes.c_int64:
    return ctypes.c_int64(number)


class CusolverSpectra(Cusolver):
    """cuSOLVER's routines of spectra.

    A stack has shape (n, n, batch) or (m, n, batch), each matrix column-major and one after the other, as
    have vectors; values have one column a matrix. Matrices are overwritten. Of Hermitian matrices the lower
    triangle is read.
    """

    def syevd(self, a: Any, w: Any, vectors: bool) -> None:
        """Eigenvalues of one matrix to `w`, and vectors in place of `a`."""
        self._x_eigen("Xsyevd", a, w, vectors, ())

    def syev_batched(self, a: Any, w: Any, vectors: bool) -> None:
        """Eigenvalues and vectors of a stack, by the 64-bit interface."""
        self._x_eigen("XsyevBatched", a, w, vectors, (_long(a.shape[2]),))

    def syevj_batched(self, a: Any, w: Any, vectors: bool) -> None:
        """Eigenvalues and vectors of a stack, by Jacobi's method."""
        dtype, n, batch = dtype_of(a.dtype), a.shape[0], a.shape[2]
        name = "heevjBatched" if dtype.is_complex else "syevjBatched"
        arguments = self._handle, _VECTORS * vectors, _LOWER, n, pointer(a), lead(a), pointer(w)
        self._by_jacobi(name, "Syevj", dtype, arguments, (batch,))

    def gesvd(self, a: Any, s: Any, u: Any, vh: Any) -> None:
        """Singular values of one matrix, m >= n, and reduced vectors, by QR iteration."""
        (m, n), job = a.shape, ctypes.c_byte(_SOME)
        self._x_singular("Xgesvd", (job, job, _long(m), _long(n)), (a, s, u, vh), ())

    def gesvdp(self, a: Any, s: Any, u: Any, v: Any) -> None:
        """Singular values and vectors by a polar decomposition; V is not transposed."""
        (m, n), defect = a.shape, ctypes.c_double()
        flags = _VECTORS, 1, _long(m), _long(n)
        self._x_singular("Xgesvdp", flags, (a, s, u, v), (ctypes.byref(defect),))

    def gesvdj(self, a: Any, s: Any, u: Any, v: Any) -> None:
        """Singular values and vectors by Jacobi's method."""
        (m, n), dtype = a.shape, dtype_of(a.dtype)
        matrices = pointer(a), lead(a), pointer(s), pointer(u), lead(u), pointer(v), lead(v)
        arguments = self._handle, _VECTORS, 1, m, n, *matrices
        self._by_jacobi("gesvdj", "Gesvdj", dtype, arguments, ())

    def gesvdj_batched(self, a: Any, s: Any, u: Any, v: Any) -> None:
        """Singular values and vectors of a stack of at most 32 by 32."""
        (m, n, batch), dtype = a.shape, dtype_of(a.dtype)
        matrices = pointer(a), lead(a), pointer(s), pointer(u), lead(u), pointer(v), lead(v)
        self._by_jacobi("gesvdjBatched", "Gesvdj", dtype, (self._handle, _VECTORS, m, n, *matrices), (batch,))

    def gesvda_batched(self, a: Any, s: Any, u: Any, v: Any) -> None:
        """Singular values and vectors of a stack by eigenvalues of AᴴA: small ones are not accurate."""
        (m, n, batch), dtype = a.shape, dtype_of(a.dtype)
        strides = [ctypes.c_longlong(x.strides[-1] // x.itemsize) for x in (a, s, u, v)]
        matrices = (
            pointer(a), lead(a), strides[0], pointer(s), strides[1], pointer(u), lead(u), strides[2],
            pointer(v), lead(v), strides[3],
        )  # fmt: skip
        arguments = self._handle, _VECTORS, n, m, n, *matrices
        work, infos = self._sized("gesvdaStridedBatched", dtype, arguments, (batch,)), self._infos(batch)
        rest = pointer(work), work.size, pointer(infos), None, batch
        self._typed("gesvdaStridedBatched", dtype, *arguments, *rest)

    def _by_jacobi(
        self, name: str, parameters: str, dtype: Dtype, arguments: tuple[Any, ...], batch: tuple[int, ...]
    ) -> None:
        """A routine whose last arguments are parameters of Jacobi's method, and the batch."""
        made = self._parameters(f"cusolverDnCreate{parameters}Info")
        work, infos = self._sized(name, dtype, arguments, (made, *batch)), self._infos(max(1, *batch, 1))
        rest = pointer(work), work.size, pointer(infos), made, *batch
        self._typed(name, dtype, *arguments, *rest)

    def _sized(self, name: str, dtype: Dtype, arguments: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
        """The workspace of a routine whose sizes are in elements."""
        key = name, dtype.letter, *(each for each in (*arguments, *rest) if isinstance(each, int))
        if key not in self._workspaces:
            count = ctypes.c_int()
            self._typed(f"{name}_bufferSize", dtype, *arguments, ctypes.byref(count), *rest)
            self._workspaces[key] = self._cupy.empty(max(count.value, 1), dtype.name)
        return self._workspaces[key]

    def _parameters(self, create: str) -> ctypes.c_void_p:
        if (create,) not in self._workspaces:
            made = ctypes.c_void_p()
            self._call(create, ctypes.byref(made))
            self._workspaces[create,] = made
        found: ctypes.c_void_p = self._workspaces[create,]
        return found

    def _x_eigen(self, name: str, a: Any, w: Any, vectors: bool, batch: tuple[Any, ...]) -> None:
        dtype, n = dtype_of(a.dtype), a.shape[0]
        kind, real = DATA_TYPE[dtype.letter], DATA_TYPE[dtype_of(w.dtype).letter]
        flags = self._handle, self._parameters("cusolverDnCreateParams"), _VECTORS * vectors, _LOWER
        arguments = *flags, _long(n), kind, pointer(a), _long(lead(a)), real, pointer(w), kind
        key = name, dtype.letter, *a.shape, vectors
        self._x_call(name, key, arguments, batch, self._infos(w.size // n), ())

    def _x_singular(
        self, name: str, flags: tuple[Any, ...], arrays: tuple[Any, ...], rest: tuple[Any, ...]
    ) -> None:
        a, s, u, v = arrays
        kind, real = DATA_TYPE[dtype_of(a.dtype).letter], DATA_TYPE[dtype_of(s.dtype).letter]
        matrices = kind, pointer(a), _long(lead(a)), real, pointer(s)
        vectors = [x for each in (u, v) for x in (kind, pointer(each), _long(lead(each)))]
        first = self._handle, self._parameters("cusolverDnCreateParams"), *flags
        key = name, a.dtype.char, *a.shape
        self._x_call(name, key, (*first, *matrices, *vectors, kind), (), self.info, rest)

    def _x_call(
        self,
        name: str,
        key: tuple[Any, ...],
        arguments: tuple[Any, ...],
        batch: tuple[Any, ...],
        infos: Any,
        rest: tuple[Any, ...],
    ) -> None:
        """A routine of the 64-bit interface, with workspaces on the device and in host memory."""
        if key not in self._workspaces:
            device, host = ctypes.c_size_t(), ctypes.c_size_t()
            sizes = ctypes.byref(device), ctypes.byref(host)
            self._call(f"cusolverDn{name}_bufferSize", *arguments, *sizes, *batch)
            work = self._cupy.empty(max(device.value, 1), self._cupy.uint8)
            self._workspaces[key] = work, ctypes.create_string_buffer(max(host.value, 1))
        work, buffer = self._workspaces[key]
        on_device = pointer(work), ctypes.c_size_t(work.size)
        on_host = buffer, ctypes.c_size_t(len(buffer))
        self._call(f"cusolverDn{name}", *arguments, *on_device, *on_host, pointer(infos), *rest, *batch)
