"""From a GEMM Config and its innermost product to the kernel: an ordinary or a persistent one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..gpu.compile import KernelSource
from .gemm_body import Product
from .gemm_body import build as build_ordinary
from .gemm_persistent import build as build_persistent
from .part import PARTS, check_part

__all__ = ["kernel_source"]

PARTS_OF_C = tuple(part for part in PARTS if part != "strict")
PARAMETERS = "ppp iii qqq qqq rrrr".replace(" ", "")
PERSISTENT = "ppppp iii iiii qqq qqq rrrr".replace(" ", "")


def kernel_source(
    config: Any, conj_a: bool, conj_b: bool, part: str, product: Callable[..., Product]
) -> KernelSource:
    """The kernel of `config`, with A, B conjugated or not; ``product(config, conj_a, conj_b)`` is its heart.

    Of C only `part` is read and written, one of `PARTS_OF_C`.

    The kernel's parameters are pointers to A, B, C; int32 m, n, k; int64 leading strides and batch
    strides of A, B, C (elements); alpha and beta (real, imaginary part). Grid: x ``config.grid(m, n, part)``,
    z the batch.

    Of a persistent kernel the pointers are to A, B, C, the pieces (a tile a block) and the flags (one a
    block, 0 before the launch and after it), and after k stand int32 tiles, rounds, run and longer of a
    `walk.Walk`. Grid: x as many as the device holds.
    """
    check_part(part, PARTS_OF_C)
    build = build_persistent if config.persistent else build_ordinary
    return KernelSource(
        name=config.STEM,
        config=config,
        flags=(("conj_a", conj_a), ("conj_b", conj_b), ("part", part)),
        real=config.dtype_facts.real,
        parameters=PERSISTENT if config.persistent else PARAMETERS,
        threads=config.threads,
        min_blocks=config.min_blocks,
        shared_bytes=config.shared_bytes,
        build=lambda: build(config, product(config, conj_a, conj_b), part),
        ahead=config.ahead,
    )
