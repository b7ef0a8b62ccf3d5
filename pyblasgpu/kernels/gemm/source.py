"""Kernel of a GEMM Config and its innermost product_of: ordinary, persistent, or with a triangle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from ...gpu.build.compile import KernelSource
from ...types import Triangle, Uplo
from ..common.parameters import parameters
from . import fused
from .form import Form
from .product import Product

__all__ = ["kernel_source", "plain_kernels"]

PARAMETERS = parameters(
    "pointer: a, b, c",
    "int32: m, n, k, options",
    "int64: k_all, lda, ldb, ldc, stride_a, stride_b, stride_c",
    "real: alpha, alpha_i, beta, beta_i",
)
PERSISTENT = parameters(
    "pointer: a, b, c, partials, flags",
    "int32: m, n, k, options, tiles, full_waves, k_iters_per_block, remainder",
    "int64: lda, ldb, ldc, stride_a, stride_b, stride_c",
    "real: alpha, alpha_i, beta, beta_i",
)
BY_TRIANGLE = parameters(
    "pointer: tri, blocks, flags, b, c",
    "int32: m, n, options",
    "int64: ldt, ldb, ldc",
    "real: alpha, alpha_i",
)
SOLVING = parameters(
    "pointer: tri, b, c, flags",
    "int32: m, n, options",
    "int64: ldt, ldb, ldc",
    "real: alpha, alpha_i, factor, factor_i",
)


def kernel_source(
    config: Any,
    form: Form,
    conj: bool,
    triangle: Triangle | None,
    solved: bool,
    product_of: Callable[..., Product],
) -> KernelSource:
    """The kernel of `config` with ``product_of(config, conj_a, conj_b)``; with `conj` B, or T, is conjugated.

    With a `triangle`, C is the product of it and B, which may be C; with `solved` too, C is solved by it.
    Then there are no batches.

    Kernel parameters
    -----------------
    a, b, c: pointer, A, B, C
    m, n, k: int32, extents; of a batch `k` is that of each matrix but the last
    options: int32, C's triangle, whether A B is conjugated (`kernels.common.options`)
    k_all: int64, k of all matrices of the batch together; the last one has what the others leave, at most `k`
    lda, ldb, ldc: int64, leading dimensions (elements)
    stride_a, stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(m, n, region)``, z the batch.

    Kernel parameters, persistent
    -----------------------------
    a, b, c: pointer, A, B, C
    partials: pointer, the partial tiles, one a block
    flags: pointer, one a block, 0 before the launch and after it
    m, n, k: int32, extents
    options: int32, as above
    tiles, full_waves, k_iters_per_block, remainder: int32, of a `TileSchedule`
    lda, ldb, ldc: int64, leading dimensions (elements)
    stride_a, stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x as many blocks as the device holds.

    Kernel parameters, by a triangle
    --------------------------------
    tri: pointer, T
    blocks: pointer, the copy of its diagonal blocks, by `diagonal_blocks`
    flags: pointer, one a tile, 0 before the launch, by `diagonal_blocks`
    b, c: pointer, B, C
    m, n: int32, extents
    options: int32, whether T is upper, and whether C is another matrix than B (`OVERWRITE`)
    ldt, ldb, ldc: int64, leading dimensions (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(m, n)``.

    Kernel parameters, solving
    --------------------------
    tri, b, c: pointer, T, B, C
    flags: pointer, one a strip, 0 before the launch and after it
    m, n: int32, extents
    options: int32, whether T is upper and has a unit diagonal, whether B is copied to C or added (`READS_Y`)
    ldt, ldb, ldc: int64, leading dimensions (elements)
    alpha, alpha_i, factor, factor_i: real, parts of alpha, and of the factor of B

    Grid: x ``config.grid(m, n)``.
    """
    if config.serves_any_region and triangle is None:
        form = Form.EITHER
    flags: tuple = (("form", form), ("conj", conj))
    module, listed = "mainloop", PARAMETERS
    options: tuple[Any, ...] = (form.triangular,)
    if config.persistent:
        module, options, listed = "persistent", (form is Form.TRIANGLE,), PERSISTENT
    if triangle:
        fused.check(config, triangle)
        triangle = Triangle.of(Uplo.LOWER, triangle.side)  # one kernel for both
        module, options, listed = "trmm_fused", (triangle, conj), BY_TRIANGLE
        flags = (*flags, ("triangle", triangle))
    if solved:
        module, listed = "trsm_fused", SOLVING
        flags = (*flags, ("solved", solved))
    of_a, module = triangle is not None and triangle.on_left, f"{__package__}.{module}"

    def build():
        # what only compiling needs: kernels that were built before are launched without it
        product = product_of(config, conj and of_a, conj and not of_a)
        return import_module(module).build(config, product, *options)

    return KernelSource.of(
        config,
        listed,
        build,
        flags=flags,
        shared_bytes=fused.shared_bytes(config, triangle) if triangle and solved else config.shared_bytes,
        reads_before_wait=config.reads_before_wait,
        parts=(module,),
    )


def plain_kernels(source: Callable[..., KernelSource], config: Any) -> Iterator[KernelSource]:
    """All kernels of a Config but those fused with a triangle."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    forms = (Form.EITHER,) if config.serves_any_region else (Form.ALL, Form.TRIANGLE)
    return (source(config, form, conj) for form in forms for conj in conjs)
