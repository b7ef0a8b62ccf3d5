"""Singular values of matrices on a device, and the routines of `lapack` that take them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...arguments import Array, enabled
from ...frontend.arrays.any_array import library_of, reshaped
from ...frontend.calls.factor_replay import ONE, Factors, call_key, replay_factor
from ...frontend.calls.lazy_routines import routine_module
from ...types import Dtype, Trans
from ..blas.arrays import common_dtype_of
from . import spectra
from .call import as_stack, factor_call, from_source, run_by_row
from .eigen import reals_of

__all__ = ["FUNCTIONS", "refined_svd", "repeated_svd", "svd_of_host_stack", "svd_on_device"]


def repeated_svd(name: str, a: Array, full: bool, vectors: bool) -> tuple[Array, Array, Array, Any] | None:
    """Results of a call of `svd_on_device` that is kept; None where there is none, and nothing was done."""
    repeated = replay_factor(call_key(name, "gesdd", full, vectors), (a,), 0)
    if repeated is None:
        return None
    _, info, s, u, vh = repeated
    return _shaped(a, u, vh, full, vectors, s, info)


def svd_on_device(
    name: str, dtype: Dtype | None, a: Array, full: bool, vectors: bool, keeps: bool = True
) -> tuple[Array, Array, Array, Any]:
    """Left singular vectors, singular values, right vectors as rows, and `info`, of device matrices.

    Parameters
    ----------
    full : bool
        Whether there are as many vectors as rows and columns, else as many as singular values.
    vectors : bool
        Whether vectors are computed; else there is one element of each.
    keeps : bool, default True
        Whether `repeated_svd` may find the call.

    Raises
    ------
    NotImplementedError
        When there are no kernels for the shape.
    """
    if keeps and (repeated := repeated_svd(name, a, full, vectors)) is not None:
        return repeated
    matrix = as_stack(name, "a", a, dtype)
    (m, n), wanted = matrix.shape[-2:], dtype or common_dtype_of(name, (matrix,))
    k = min(m, n)
    routine, device = routine_module("lapack.gesdd"), library_of(matrix).device(matrix)
    if k and not routine.serves(m, n, wanted, device, vectors=vectors):
        what = f"a has shape {tuple(matrix.shape)}"
        raise NotImplementedError(routine.refusal(name, what, wanted, device, vectors))
    call, source = factor_call(name, dtype, {}, "a", matrix, 0)
    counts = _counts(m, n, wanted, full, vectors)
    key = call_key(name, "gesdd", full, vectors) if keeps else None
    flags = {"vectors": vectors}
    _, info, s, u, vh = run_by_row(
        call, "gesdd", flags, source, counts=counts, key=key, from_source=from_source("gesdd", **flags)
    )
    return _shaped(matrix, u, vh, full, vectors, s, info)


def refined_columns(dtype: Dtype, device: int | None) -> int:
    """The most columns of matrices for `refined_svd`, with eigenvectors of their order."""
    most: int = routine_module("lapack.svd_refined").max_columns(dtype, device)
    vectors: int = routine_module("lapack.syevd").max_order(dtype, device)
    return min(most, vectors)


def refined_svd(name: str, dtype: Dtype, a: Array, v: Array, steps: int) -> tuple[Array, Array, Array, Any]:
    """Left singular vectors, singular values, right vectors as rows, and `info`, of device matrices with no
    more columns than rows, from right vectors that are accurate to some digits.

    Parameters
    ----------
    v : array, shape (..., n, n)
        The right vectors.
    steps : int
        How many times their digits are doubled. Where that was not enough, info is not 0.
    """
    key = call_key(name, "svd_refined", steps)
    found = replay_factor(key, (v, a), 0)
    if found is None:
        call, source = factor_call(name, dtype, {"v": v}, "a", a, 0)
        found = call.run_factor(
            _only_on_devices,
            prepare := partial(_launch_refined, steps),
            ((call.inputs[0], Trans.NO),),
            source,
            counts=(ONE, Factors(a.shape[-1], reals_of(dtype)), Factors(a.shape[-1] ** 2)),
            key=key,
            from_source=prepare,
        )
    u, info, s, vh = found
    return u, s, reshaped(vh, (*a.shape[:-2], a.shape[-1], a.shape[-1])), info


def _launch_refined(steps: int, scalars: tuple[Any, ...], operands: Any) -> Any:
    """The launch list of `refined_svd`."""
    return routine_module("lapack.svd_refined").new_launch_list(*operands, steps=steps)


def _only_on_devices(*arrays: Any) -> None:
    raise NotImplementedError("vectors of host matrices are LAPACK's, which need no refinement")


def svd_of_host_stack(
    name: str, dtype: Dtype, a: np.ndarray, full: bool, vectors: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any] | None:
    """Results as of `svd_on_device` for a stack in host memory, where the backend is a device that serves
    it; else None.
    """
    if a.ndim < 3 or not a.size:
        return None
    call, source = factor_call(name, dtype, {}, "a", a, 0)
    m, n = a.shape[-2:]
    routine, device = routine_module("lapack.gesdd"), call.device
    if device is None or not routine.serves(m, n, dtype, device, vectors=vectors):
        return None
    counts = _counts(m, n, dtype, full, vectors)
    _, info, s, u, vh = run_by_row(call, "gesdd", {"vectors": vectors}, source, counts=counts)
    return _shaped(a, u, vh, full, vectors, s, info)


def _counts(m: int, n: int, dtype: Dtype, full: bool, vectors: bool) -> tuple[int, ...]:
    """The numbers that the routine leaves: info, singular values, and the elements of U and of Vᴴ."""
    k = min(m, n)
    extents = (m * (m if full else k), n * (n if full else k)) if vectors else (1, 1)
    return ONE, Factors(k, reals_of(dtype)), *map(Factors, extents)


def _shaped(
    a: Array, u: Array, vh: Array, full: bool, vectors: bool, s: Array, info: Any
) -> tuple[Array, Array, Array, Any]:
    """The results, of which the elements of U are by columns and those of Vᴴ by rows."""
    if not vectors:
        return u, s, vh, info
    *batch, m, n = a.shape
    k = min(m, n)
    left = reshaped(u, (*batch, m if full else k, m))
    return library_of(left).swap(left), s, reshaped(vh, (*batch, n if full else k, n)), info


def _make(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """The function of a row of the table, of device arrays too."""

    def on_device(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        full, vectors = (enabled(arguments[flag], name, flag) for flag in ("full_matrices", "compute_uv"))
        return svd_on_device(name, dtype, arguments["a"], full, vectors)

    return spectra.made(stem, name, dtype, on_device)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: each for stem in ("gesdd", "gesvd") for name, each in spectra.functions(_make, stem).items()
}
