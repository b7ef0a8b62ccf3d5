"""Parts of the Jacobi kernels: pairs of columns, rotations, reductions over the threads of a matrix.

A step rotates disjoint pairs of columns: the games of a round of a tournament, in which each column meets
each other one once. A rotation J = [[c, s], [-conj(s), c]] with a real c is applied to columns from the
right; conj(s) in place of s applies its adjoint to rows from the left.
"""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import cuda, device_function, ptx
from ....types import Dtype
from ...common.kernel_config import WARP, KernelConfig
from ..lane_sums import adder, larger, over_lanes

__all__ = [
    "PARTIALS",
    "angle",
    "barrier",
    "pair_of",
    "resident_blocks",
    "team_max",
    "team_sum",
    "turner",
]

#: Reals of shared memory for a sum over all warps of a block.
PARTIALS = 32
#: Bytes of a multiprocessor's shared memory, of Hopper's, and what a block takes of it for itself.
SHARED, RESERVED = 228 << 10, 1 << 10


def resident_blocks(config: KernelConfig, threads: int) -> int:
    """Blocks that a multiprocessor is to hold: of `threads` threads, where shared memory allows as many."""
    by_memory = SHARED // (config.shared_bytes + RESERVED)
    return max(min(by_memory, threads // config.threads), 1)


def pair_of() -> Callable:
    """``pair(i, k, m)``: the columns of pair `i` in step `k` of m - 1 steps, m even."""
    int32 = ptx.types.int32

    @device_function
    def pair(i, k, m):
        rounds = int32(m - 1)
        p, q = int32(k + i), int32(k - i)
        if p >= rounds:
            p = int32(p - rounds)
        if q < 0:
            q = int32(q + rounds)
        if i == 0:
            p = rounds
        return p, q

    return pair


def angle(facts: Dtype) -> Callable:
    """``make(out, d, re, im)``: the rotation that makes the element (re, im) between two columns zero, `d`
    the second diagonal element less the first. ``out`` becomes c and the parts of s; the result is what the
    second diagonal element gains and the first one loses.
    """
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    divide, root = ptx.divide, ptx.square_root

    @device_function
    def make(out, d, re, im):
        size = abs(re)
        if COMPLEX:
            size, rest = max(size, abs(im)), min(size, abs(im))
            rest = divide(rest, size) if rest > real(0) else rest
            size = size * root(real(1) + rest * rest)
        out[0], out[1], out[2] = real(1), real(0), real(0)
        if size == real(0):
            return real(0)
        tau = divide(d, size + size)
        t = divide(real(1), abs(tau) + root(real(1) + tau * tau))
        t = -t if tau < real(0) else t
        c = divide(real(1), root(real(1) + t * t))
        s = t * c
        out[0] = c
        if COMPLEX:
            out[1], out[2] = s * divide(re, size), s * divide(im, size)
        else:
            out[1] = s if re > real(0) else -s
        return t * size

    return make


def turner(facts: Dtype) -> Callable:
    """``turn(x, i, j, c, re, im)``: the rotation of c and s = (re, im) applied to the elements ``x[i]`` and
    ``x[j]``.
    """
    COMPLEX = facts.is_complex

    @device_function
    def turn(x, i, j, c, re, im):
        first, second = x[i], x[j]
        if COMPLEX:
            first_im, second_im = x[i + 1], x[j + 1]
            x[i] = c * first - re * second - im * second_im
            x[i + 1] = c * first_im - re * second_im + im * second
            x[j] = c * second + re * first - im * first_im
            x[j + 1] = c * second_im + re * first_im + im * first
        else:
            x[i] = c * first - re * second
            x[j] = c * second + re * first

    return turn


def barrier(team: int) -> Callable:
    """``sync()``: all threads of a matrix wait for one another; `team` is the most threads of one."""
    sync_warp, is_warp = ptx.sync_warp, team <= WARP

    @device_function
    def sync():
        if is_warp:
            sync_warp()
        else:
            cuda.syncthreads()

    return sync


def team_sum(team: int) -> Callable:
    """``total(x, partials, t, lanes)``: the sum of the numbers of all threads of a matrix."""
    return _team_reduce(team, adder())


def team_max(team: int) -> Callable:
    """``largest(x, partials, t, lanes)``: the largest of the numbers of all threads of a matrix."""
    return _team_reduce(team, larger())


def _team_reduce(team: int, combine: Callable) -> Callable:
    """``reduce(x, partials, t, lanes)``: the numbers of all threads of a matrix combined, the same bits in
    all of them, after a barrier. Of a warp or less each matrix has `lanes` neighbouring threads, a power of
    two.
    """
    int32, is_warp, WARPS = ptx.types.int32, team <= WARP, -(-team // WARP)
    sync_warp, over = ptx.sync_warp, over_lanes(combine)

    @device_function
    def reduce(x, partials, t, lanes):
        sync_warp()
        lane = int32(t & 31)
        x = over(x, lane, lanes if is_warp else int32(WARP))
        if not is_warp:
            if lane == 0:
                partials[t >> 5] = x
            cuda.syncthreads()
            x = partials[0]
            for warp in range(1, WARPS):
                x = combine(x, partials[warp])
            cuda.syncthreads()
        return x

    return reduce
