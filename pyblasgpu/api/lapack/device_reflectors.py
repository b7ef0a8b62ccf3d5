"""Blocks of reflectors on a device: LAPACK's geqrt, gemqrt, tpqrt and tpmqrt, of factors and products.

The reflectors of a block are ``I - V T Vᴴ``, one after the other. Their T is (I + D U)⁻¹ D, with the factors
tau on the diagonal of D, and U is what VᴴV has above its diagonal. Where tau is zero T has a column of zeros.

A triangle above a matrix is factored as one matrix: the reflectors have zeros where it has. So V = [I; V2],
and products with it take V2 alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, Flag
from ...frontend.arrays.any_array import common_library
from ...frontend.arrays.streams import contexts
from ...types import Dtype, Trans
from ..blas.arrays import common_dtype_of
from ..keyword.level3 import gemm
from ..keyword.triangular import trsm
from . import qr
from .call import as_stack
from .qr_calls import check_op

__all__ = ["DeviceStacks", "blocks_of", "blocks_of_two", "device_stacks", "product", "product_of_two"]


class DeviceStacks(NamedTuple):
    """Matrices and stacks of a device, of one dtype and with the same leading dimensions.

    Attributes
    ----------
    name : str
        The routine, for messages.
    passed : mapping of str to array
        The arguments.
    dtype : Dtype
    arrays : list of array
    xp : module
        The namespace of their library.
    device : int
    """

    name: str
    passed: Mapping[str, Array]
    dtype: Dtype
    arrays: list[Any]
    xp: Any
    device: int

    def op(self, op: Trans, passed: Flag) -> bool:
        """Whether an op is the conjugate transpose."""
        check_op(self.name, op, passed, self.dtype)
        return op is not Trans.NO

    def current(self) -> Any:
        """Return the block in which the arrays' device is current."""
        return contexts().current_context(self.device)

    def identity(self, rows: int, cols: int | None = None) -> Any:
        """Return ones on a diagonal."""
        return self.xp.eye(rows, cols, dtype=self.arrays[0].dtype, device=self.arrays[0].device)


def device_stacks(name: str, arrays: Mapping[str, Array], dtype: Dtype | None) -> DeviceStacks | None:
    """Return the arguments where all are device arrays of a library with a namespace, else None."""
    each = [as_stack(name, argument, array, dtype) for argument, array in arrays.items()]
    library = common_library(name, tuple(arrays), tuple(each))
    if library.host:
        return None
    try:
        xp = import_module("array_api_compat").array_namespace(*each)
    except TypeError:
        return None
    kind, device = dtype or common_dtype_of(name, tuple(each)), library.device(each[0])
    with contexts().current_context(device):
        try:
            batch = np.broadcast_shapes(*(tuple(array.shape[:-2]) for array in each))
        except ValueError:
            shapes = ", ".join(
                f"{argument} {tuple(array.shape)}" for argument, array in zip(arrays, each, strict=True)
            )
            raise ValueError(f"{name}: the leading dimensions of {shapes} do not broadcast") from None
        cast = [xp.astype(array, getattr(xp, kind.name), copy=False) for array in each]
        spread = [xp.broadcast_to(array, (*batch, *array.shape[-2:])) for array in cast]
    return DeviceStacks(name, arrays, kind, spread, xp, device)


def blocks_of(stacks: DeviceStacks, width: int) -> tuple[Any, Any]:
    """Factors of the matrices, and the triangles of their blocks of `width` reflectors."""
    (a,) = stacks.arrays
    k = min(a.shape[-2:])
    factors, tau, _, _ = qr.FUNCTIONS[f"{stacks.dtype.letter}geqrf"](a)
    return factors, _triangles(stacks, _vectors(stacks, factors[..., :k]), tau, width)


def product(stacks: DeviceStacks, adjoint: bool, from_right: bool) -> Any:
    """Product of Q or its adjoint and a matrix, from vectors and triangles."""
    v, t, c = stacks.arrays
    v = _vectors(stacks, v)
    for first, last in _order(v.shape[-1], t.shape[-2], adjoint != from_right):
        part, triangle = v[..., first:last], _triangle(stacks, t, first, last)
        if from_right:
            c = c - gemm(gemm(gemm(c, part), triangle, trans_b=_op(adjoint)), part, trans_b="C")
        else:
            c = c - gemm(part, gemm(triangle, gemm(part, c, trans_a="C"), trans_a=_op(adjoint)))
    return c


def blocks_of_two(stacks: DeviceStacks, rows: int, width: int) -> tuple[Any, Any, Any]:
    """R, the vectors and the triangles of blocks of triangles above matrices, of which the last `rows` are
    trapezoids. What is not read stays.
    """
    (a, b), xp = stacks.arrays, stacks.xp
    n = a.shape[-1]
    triangle, trapezoid = _upper(stacks, n, n, 0), _upper(stacks, b.shape[-2], n, b.shape[-2] - rows)
    both = xp.concat(
        [xp.where(triangle, a, xp.zeros_like(a)), xp.where(trapezoid, b, xp.zeros_like(b))], axis=-2
    )
    factors, tau, _, _ = qr.FUNCTIONS[f"{stacks.dtype.letter}geqrf"](both)
    vectors = xp.where(trapezoid, factors[..., n:, :], xp.zeros_like(b))
    t = _triangles(stacks, vectors, tau, width)
    return xp.where(triangle, factors[..., :n, :], a), xp.where(trapezoid, vectors, b), t


def product_of_two(stacks: DeviceStacks, rows: int, adjoint: bool, from_right: bool) -> tuple[Any, Any]:
    """Product of Q or its adjoint and two matrices, one above or left of the other."""
    (v, t, a, b), xp = stacks.arrays, stacks.xp
    order, k = v.shape[-2:]
    v = xp.where(_upper(stacks, order, k, order - rows), v, xp.zeros_like(v))
    parts = {}
    for first, last in _order(k, t.shape[-2], adjoint != from_right):
        part, triangle = v[..., first:last], _triangle(stacks, t, first, last)
        if from_right:
            own = a[..., first:last]
            change = gemm(own + gemm(b, part), triangle, trans_b=_op(adjoint))
            b = b - gemm(change, part, trans_b="C")
        else:
            own = a[..., first:last, :]
            change = gemm(triangle, own + gemm(part, b, trans_a="C"), trans_a=_op(adjoint))
            b = b - gemm(part, change)
        parts[first] = own - change
    return xp.concat([parts[first] for first in sorted(parts)], axis=-1 if from_right else -2), b


def _op(adjoint: bool) -> str:
    return "C" if adjoint else "N"


def _order(k: int, width: int, forward: bool) -> Iterator[tuple[int, int]]:
    """The columns of the blocks, in the order in which they are applied."""
    firsts = range(0, k, width)
    for first in firsts if forward else reversed(firsts):
        yield first, min(first + width, k)


def _upper(stacks: DeviceStacks, rows: int, cols: int, skipped: int) -> Any:
    """Mask of the rows above the last ones, and of an upper trapezoid in these."""
    xp, where = stacks.xp, stacks.arrays[0].device
    i, j = (xp.arange(extent, device=where) for extent in (rows, cols))
    return i[:, None] <= j + skipped


def _vectors(stacks: DeviceStacks, factors: Any) -> Any:
    """V with its ones and zeros."""
    return stacks.xp.tril(factors, k=-1) + stacks.identity(*factors.shape[-2:])


def _triangle(stacks: DeviceStacks, t: Any, first: int, last: int) -> Any:
    """T of a block with the zeros below its diagonal."""
    return stacks.xp.triu(t[..., : last - first, first:last])


def _triangles(stacks: DeviceStacks, v: Any, tau: Any, width: int) -> Any:
    """T of the blocks of V, one right of the other; V may be without the triangle on top."""
    xp, found = stacks.xp, []
    for first, last in _order(v.shape[-1], width, True):
        part, factors = v[..., first:last], tau[..., first:last]
        above = xp.triu(gemm(part, part, trans_a="C"), k=1) * factors[..., :, None]
        t = trsm(above, stacks.identity(last - first) * factors[..., None, :], unit_diag=True)
        below = xp.zeros(
            (*t.shape[:-2], width - (last - first), last - first), dtype=t.dtype, device=t.device
        )
        found.append(xp.concat([t, below], axis=-2))
    return xp.concat(found, axis=-1)
