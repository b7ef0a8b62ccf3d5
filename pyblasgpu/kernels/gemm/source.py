"""From a GEMM Config and its innermost product to the kernel: ordinary, persistent, or in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...gpu.compile import KernelSource
from ...types import Triangle, Uplo
from . import fused
from .form import Form
from .product import Product

__all__ = ["kernel_source", "plain_kernels"]

PARAMETERS = "ppp iiii qqq qqq rrrr".replace(" ", "")
PERSISTENT = "ppppp iiii iiii qqq qqq rrrr".replace(" ", "")
IN_PLACE = "pppp iii qq rr".replace(" ", "")
SOLVING = "ppp iii qq rr".replace(" ", "")


def kernel_source(
    config: Any,
    form: Form,
    conj: bool,
    triangle: Triangle | None,
    solved: bool,
    product: Callable[..., Product],
) -> KernelSource:
    """The kernel of `config`; with `conj` B is conjugated. ``product(config, conj_a, conj_b)`` is its heart.

    The kernel's parameters are pointers to A, B, C; int32 m, n, k and options (`kernels.common.options`:
    which triangle of C is meant, and whether A B is conjugated); int64 leading dimensions and batch strides
    of A, B, C (elements); alpha and beta (real, imaginary part). Grid: x ``config.grid(m, n, region)``, z the
    batch.

    Of a persistent kernel the pointers are to A, B, C, the partial tiles (one a block) and the flags (one a
    block, 0 before the launch and after it). After the options follow int32 tiles, full_waves,
    k_iters_per_block and remainder of a `TileSchedule`. Grid: x as many as the device holds.

    With a `triangle`, all of C is multiplied by it in place. The parameters
    are pointers to T, to the copy of its diagonal blocks, to the flags (one a tile, 0 before the launch;
    `diagonal_blocks` makes both), and to C; int32 m, n and options, whether T
    is upper; int64 leading dimensions of T, C; alpha. Grid: x
    ``config.grid(m, n)``; there are no batches. With `conj` T is conjugated.

    With a `triangle` and `solved`, C is solved by it instead. The parameters are pointers to T, to C, and to
    the flags (one a strip, 0 before the launch and after it); int32 m, n and options, whether T is upper and
    has a unit diagonal; else as above.
    """
    if config.serves_any_region and triangle is None:
        form = Form.EITHER
    flags: tuple = (("form", form), ("conj", conj))
    parameters = PERSISTENT if config.persistent else PARAMETERS
    if triangle:
        fused.check(config, triangle)
        triangle = Triangle.of(Uplo.LOWER, triangle.side)  # one kernel for both
        flags, parameters = (*flags, ("triangle", triangle)), IN_PLACE
    if solved:
        flags, parameters = (*flags, ("solved", solved)), SOLVING
    of_a = triangle is not None and triangle.on_left

    def build():
        # what only compiling needs: kernels that were built before are launched without it
        from .mainloop import build as build_ordinary
        from .persistent import build as build_persistent
        from .trmm_fused import build as build_trmm
        from .trsm_fused import build as build_trsm

        heart = product(config, conj and of_a, conj and not of_a)
        if triangle and solved:
            return build_trsm(config, heart, triangle, conj)
        if triangle:
            return build_trmm(config, heart, triangle, conj)
        if config.persistent:
            return build_persistent(config, heart, form is Form.TRIANGLE)
        return build_ordinary(config, heart, form.triangular)

    return KernelSource.of(
        config,
        parameters,
        build,
        flags=flags,
        min_blocks=config.min_blocks,
        shared_bytes=fused.shared_bytes(config, triangle) if triangle and solved else config.shared_bytes,
        reads_before_wait=config.reads_before_wait,
    )


def plain_kernels(source: Callable[..., KernelSource], config: Any) -> Iterator[KernelSource]:
    """All kernels of a Config but those fused with a triangle."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    forms = (Form.EITHER,) if config.serves_any_region else (Form.ALL, Form.TRIANGLE)
    return (source(config, form, conj) for form in forms for conj in conjs)
