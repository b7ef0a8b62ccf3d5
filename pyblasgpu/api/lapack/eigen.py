"""Eigenvalues of Hermitian matrices on a device, and the routines of `lapack` that take them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...frontend.arrays.any_array import host_values, library_of
from ...frontend.calls.direct import order_on_processor
from ...frontend.calls.factor_replay import ONE, Factors, call_key, replay_factor
from ...frontend.calls.lazy_routines import routine_module
from ...types import DTYPES, Dtype, Uplo
from ..blas.arrays import common_dtype_of
from . import spectra
from .call import as_stack, factor_call, from_source, order_of, run_by_row

__all__ = [
    "FUNCTIONS",
    "Vectors",
    "eigen_of_host_arrays",
    "eigen_on_device",
    "interval_of",
    "reals_of",
    "repeated_eigen",
]

#: Whether vectors are wanted, or the first one that is, and the one after the last.
Vectors = bool | tuple[int, int]


def reals_of(dtype: Dtype) -> Dtype:
    """The dtype of the real numbers of a dtype."""
    return DTYPES["s" if dtype.real_size == 4 else "d"]


def repeated_eigen(
    name: str, a: Array, low: bool, vectors: Vectors, overwrite_a: Flag = 0
) -> tuple[Array, Array, Any] | None:
    """Results of a call of `eigen_on_device` that is kept; None where there is none, and nothing was done."""
    repeated = replay_factor(call_key(name, "syevd", low, vectors), (a,), overwrite_a)
    if repeated is None:
        return None
    columns, info, w = repeated
    return w, columns, info


def eigen_on_device(
    name: str, dtype: Dtype | None, a: Array, low: bool, vectors: Vectors, overwrite_a: Flag = 0
) -> tuple[Array, Array, Any]:
    """Eigenvalues, eigenvectors and `info` of Hermitian device matrices, of which one triangle is read.

    Without `vectors` the second result is of their shape, and holds nothing. `vectors` may be a pair of int:
    the first one that is wanted, and the one after the last. Others hold anything.

    Raises
    ------
    NotImplementedError
        When the order is larger than kernels have it.
    """
    if (repeated := repeated_eigen(name, a, low, vectors, overwrite_a)) is not None:
        return repeated
    matrix = as_stack(name, "a", a, dtype)
    n, wanted = order_of(name, "a", matrix), dtype or common_dtype_of(name, (matrix,))
    routine = routine_module("lapack.syevd")
    largest = routine.max_order(wanted, library_of(matrix).device(matrix))
    if n > largest:
        raise NotImplementedError(
            routine.refusal(name, f"a has shape {tuple(matrix.shape)}", wanted, largest)
        )
    call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
    flags = {"uplo": Uplo.LOWER if low else Uplo.UPPER, "vectors": vectors}
    counts = ONE, Factors(n, reals_of(wanted))
    key = call_key(name, "syevd", low, vectors)
    columns, info, w = run_by_row(
        call, "syevd", flags, source, counts=counts, key=key, from_source=from_source("syevd", **flags)
    )
    return w, columns, info


def eigen_of_host_arrays(
    name: str, dtype: Dtype, a: np.ndarray, low: bool, vectors: Vectors
) -> tuple[np.ndarray, np.ndarray, Any] | None:
    """Results as of `eigen_on_device` for a stack in host memory, or for one matrix that is not too small for
    a device, where the backend is a device that serves it; else None.
    """
    n = a.shape[-1]
    if not a.size or (a.ndim < 3 and n < order_on_processor(dtype.letter)):
        return None
    call, source = factor_call(name, dtype, {}, "a", a, 0)
    if call.device is None or n > routine_module("lapack.syevd").max_order(dtype, call.device):
        return None
    flags = {"uplo": Uplo.LOWER if low else Uplo.UPPER, "vectors": vectors}
    counts = ONE, Factors(n, reals_of(dtype))
    columns, info, w = run_by_row(call, "syevd", flags, source, counts=counts)
    return w, columns, info


def _make(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """The function of a row of the table, of device arrays too."""

    def on_device(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        low = Uplo.parse(arguments["lower"], name, "lower") is Uplo.LOWER
        vectors = enabled(arguments["compute_v"], name, "compute_v")
        return eigen_on_device(name, dtype, arguments["a"], low, vectors, arguments["overwrite_a"])

    return spectra.made(stem, name, dtype, on_device)


def interval_of(name: str, values: np.ndarray, low: float, high: float, argument: str) -> slice:
    """Which of the values of a matrix, or of all of a stack, are in (low, high]."""
    firsts, ends = (values <= low).sum(axis=-1), (values <= high).sum(axis=-1)
    if values.ndim > 1 and len({*zip(firsts.ravel().tolist(), ends.ravel().tolist(), strict=True)}) > 1:
        raise ValueError(
            f"{name}: other eigenvalues of each matrix of the stack are in {argument}: pass one at a time"
        )
    return slice(int(firsts.flat[0]), int(ends.flat[0])) if values.size else slice(0, 0)


def _make_some(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """The function of a row of some eigenvalues, of device arrays too; an interval waits for all values."""

    def on_device(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        passed = {each: arguments[each] for each in ("compute_v", "range", "lower", "vl", "vu", "il", "iu")}
        options = spectra.checked(name, passed)
        n = order_of(name, "a", as_stack(name, "a", arguments["a"], dtype))
        vectors, kind = bool(options["compute_v"]), options["range"]
        part = slice(options["il"] - 1, options.get("iu", n)) if kind == "I" else slice(0, n)
        if kind == "I" and not 0 <= part.start < part.stop <= n:
            raise ValueError(f"{name}: il={part.start + 1}, iu={part.stop} is no range within 1 ... {n}")
        wanted: Vectors = (part.start, part.stop) if vectors and part != slice(0, n) else vectors
        low, overwrite = bool(options["lower"]), arguments["overwrite_a"]
        w, v, info = eigen_on_device(name, dtype, arguments["a"], low, wanted, overwrite)
        if kind == "V":
            argument = f"vl={options['vl']}, vu={options['vu']}"
            part = interval_of(name, host_values(w), options["vl"], options["vu"], argument)
        z, nothing = v[..., part] if vectors else v[..., :0, :0], info[..., None][..., :0]
        return w[..., part], z, part.stop - part.start, nothing, info

    return spectra.made(stem, name, dtype, on_device)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: each
    for make, stems in ((_make, ("syev", "syevd")), (_make_some, ("syevr", "syevx")))
    for stem in stems
    for name, each in spectra.functions(make, stem).items()
}
