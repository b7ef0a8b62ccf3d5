"""What kernels that add up parts of products have in common: loads of 16 bytes, ordered sums, C's update."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..errors import require
from ..gpu.backend import device_function, ptx, unrolled
from ..types import DTYPES, Dtype

__all__ = ["LOAD", "Summing", "adder", "writer"]

LOAD = 16  # bytes of one load


@dataclass(frozen=True, kw_only=True)
class Summing:
    """What the Config of such a kernel holds.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    DIM : int
        Threads of a block.
    UNROLL : int
        Parts that a thread reads at a time.
    """

    dtype: str
    DIM: int = 256
    UNROLL: int = 4

    def __post_init__(self):
        require(self.DIM <= 1024, "max_threads", "DIM <= 1024", DIM=self.DIM)
        require(self.DIM % 32 == 0, "whole_warps", "DIM % 32 == 0", DIM=self.DIM)
        require(self.UNROLL >= 1, "unroll", "UNROLL >= 1", UNROLL=self.UNROLL)

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def VEC(self) -> int:
        """Elements of one load."""
        return LOAD // self.dtype_facts.itemsize

    @property
    def threads(self) -> int:
        return self.DIM


def adder(facts: Dtype, UNROLL: int):
    """``add_up(acc, ahead, p, stride, count, inside)``: acc += p[0] + ... + p[count - 1], in this order.

    The partials are `stride` elements apart; `acc` holds 16 bytes of one, `ahead` as much of each of UNROLL.
    """
    PARTS, WIDTH = facts.parts, LOAD // facts.real_size
    read, offset = ptx.load_global(WIDTH, True), ptx.offset

    @device_function
    def fetch(u, ahead, p, stride, count, inside):
        read(ahead, u * WIDTH, p, u * stride * PARTS, inside & (u < count))

    @device_function
    def add(x, acc, ahead):
        acc[x % WIDTH] += ahead[x]

    fetch_all, add_all = unrolled(UNROLL, fetch), unrolled(UNROLL * WIDTH, add)

    @device_function
    def add_up(acc, ahead, p, stride, count, inside):
        for first in range(0, count, UNROLL):
            # the whole group is under way before the first is needed; beyond the last come zeros
            fetch_all(0, ahead, p, stride, count - first, inside)
            add_all(0, acc, ahead)
            p = offset(p, UNROLL * stride * PARTS)

    return add_up


def writer(facts: Dtype, real_diagonal: bool = False):
    """``write(c, at, re, im, old, ok, diagonal, reads_c, ...)``: C[at] := alpha (re + im i) + beta C[at], if
    `ok`; with `real_diagonal` it is real on the diagonal.
    """
    PARTS, COMPLEX, real = facts.parts, facts.is_complex, ptx.REALS[facts.real]
    read, write_real = ptx.load_global(PARTS, False), ptx.store_global

    @device_function
    def write(c, at, re, im, old, ok, diagonal, reads_c, alpha, alpha_i, beta, beta_i):
        read(old, 0, c, at, ok & reads_c)
        if COMPLEX:
            if real_diagonal and diagonal:
                old[1] = real(0)
            write_real(c, at, alpha * re - alpha_i * im + (beta * old[0] - beta_i * old[1]), ok)
            im = alpha * im + alpha_i * re + (beta * old[1] + beta_i * old[0])
            write_real(c, at + 1, real(0) if real_diagonal and diagonal else im, ok)
        else:
            write_real(c, at, alpha * re + beta * old[0], ok)

    return write
