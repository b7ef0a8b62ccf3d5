"""``jacobi_thread``: eigenvalues and vectors of the smallest symmetric and Hermitian matrices, one a thread.

Cyclic Jacobi by two-sided rotations, as in `jacobi_eigh`. A thread has the lower triangle and the vectors in
registers, so threads need not wait for one another. Tangents are approximate: what a rotation leaves of its
element is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters
from ..cholesky.inverse_root import inverse_root
from ..qr.reflector import scaler, size_of
from .rotation import turner

__all__ = ["STEM", "JacobiThread", "source"]

STEM = "jacobi_thread"
PARAMETERS = parameters(
    "pointer: a, w, v",
    "int32 pointer: info",
    "int32: n, vectors, conj, count",
    "int64: a_rs, a_cs, w_step, v_rs, v_cs, stride_a, stride_w, stride_v, stride_info",
)
SWEEPS = 100  # at most; six are many
LARGEST = 4  # order for which registers suffice
SKIPPED = 64  # part of a squared roundoff times the squared norm, to which an element is left as it is


@dataclass(frozen=True)
class JacobiThread(BlockConfig):
    """Config of one `jacobi_thread` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ORDER : int
        The largest order of a matrix.
    """

    DIM: int = 32
    ORDER: int = LARGEST

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(2 < self.ORDER <= LARGEST, "order", f"2 < ORDER <= {LARGEST}", ORDER=self.ORDER)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: the lower triangle, vectors, addresses."""
        elements = self.ORDER * (self.ORDER + 1) // 2 + self.ORDER**2
        return elements * self.dtype_facts.itemsize // 4 + 48

    def grid(self, count: int) -> int:
        """Blocks for `count` matrices."""
        return -(-count // self.DIM)


def source(config: JacobiThread) -> KernelSource:
    """The kernel of `config`, for n <= ORDER.

    Kernel parameters
    -----------------
    a: pointer, A, whose lower triangle is read
    w, v: pointer, eigenvalues in ascending order, reals, and vectors as columns; V may be A
    info: int32 pointer, 0, or n where A is not finite or the sweeps did not suffice
    n, vectors, conj, count: int32, order, whether vectors are wanted, whether A is meant conjugated, matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    w_step: int64, stride of w (reals)
    v_rs, v_cs: int64, row and column stride of V (elements)
    stride_a, stride_w, stride_v, stride_info: int64, batch strides (elements, reals, words)

    Grid: x ``config.grid(matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _at(i: int, j: int) -> int:
    """The place of element (i, j) of the lower triangle."""
    return i * (i + 1) // 2 + j


def _below(order: int) -> list[tuple[int, int]]:
    """Rows and columns of elements below the diagonal, those of the first rows first."""
    return [(i, j) for i in range(order) for j in range(i)]


def _mover(config: JacobiThread) -> tuple[Callable, Callable, Callable]:
    """``load(s, x, a, a_rs, a_cs, conj, n, is_here)``: the lower triangle, zeros beyond it, and the identity
    for vectors. ``rank(values, ranks, n)``: places of the values in ascending order. ``store(0, x, ranks, v,
    v_rs, v_cs, n, unit)``: the vectors in that order, times `unit`.
    """
    facts, ORDER, read, select = config.dtype_facts, config.ORDER, ptx.load_global(1, False), ptx.select
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, store_global = ptx.types.int32, ptx.types.int64, ptx.store_global

    def element(i: int, j: int) -> Callable:
        AT = _at(i, j) * REALS

        @device_function
        def load_one(s, a, a_rs, a_cs, conj, n, is_here):
            of = (int64(i) * a_rs + int64(j) * a_cs) * REALS
            for part in range(REALS):
                read(s, AT + part, a, of + part, is_here & (n > i))
            if COMPLEX:
                im = real(0) if i == j else s[AT + 1]
                s[AT + 1] = select(conj != 0, -im, im)

        return load_one

    @device_function
    def rank(values, ranks, n):
        for i in range(ORDER):
            place = int32(0)
            for j in range(ORDER):
                if j != i:
                    is_before = (values[j] < values[i]) | ((values[j] == values[i]) & (j < i))
                    place += select(is_before & (n > j), int32(1), int32(0))
            ranks[i] = place

    @device_function
    def store(number, x, ranks, v, v_rs, v_cs, n, unit):
        i, j = number // ORDER, number % ORDER
        of = (int64(i) * v_rs + int64(ranks[j]) * v_cs) * REALS
        for part in range(REALS):
            store_global(v, of + part, x[number * REALS + part] * unit, (n > i) & (n > j))

    triangle = [(i, j) for i in range(ORDER) for j in range(i + 1)]
    return in_order([element(*each) for each in triangle]), rank, unrolled(ORDER**2, store)


def _angle(facts: Dtype) -> Callable:
    """``angle(out, h, d, re, im)``: the rotation that makes the element (re, im) between two columns small,
    `d` the second diagonal element less the first. ``out`` becomes c and the parts of s; ``h`` what the
    second diagonal element gains, and the factor of what is left of the element.
    """
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    approximate, (_, inverse, _), select = ptx.inverse_root_approximation, inverse_root(facts), ptx.select

    @device_function
    def angle(out, h, d, re, im):
        size, unit, unit_im = abs(re), select(re < real(0), real(-1), real(1)), real(0)
        if COMPLEX:
            square = re * re + im * im
            over = inverse(square)
            size, unit, unit_im = square * over, re * over, im * over
        twice = size + size
        square = d * d + twice * twice
        r = approximate(abs(d) + square * approximate(square))
        t = twice * r * r
        t = select(d < real(0), -t, t)
        c = inverse(t * t + real(1))
        out[0], out[1], out[2] = c, t * c * unit, t * c * unit_im
        h[0] = t * c * c * (twice - t * d)
        rest = c * c * (size - t * (d + t * size))
        h[1], h[2] = rest * unit, rest * unit_im

    return angle


def _rotation(config: JacobiThread, p: int, q: int) -> Callable:
    """``rotate(s, x, y, out, h, n, vectors, least)``: that of columns p and q, where their element has a
    square above `least`.
    """
    facts, ORDER = config.dtype_facts, config.ORDER
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    angle, turn, AT = _angle(facts), turner(facts), _at(q, p) * REALS
    FIRST, SECOND, LAST = _at(p, p) * REALS, _at(q, q) * REALS, REALS - 1

    def row(r: int) -> Callable:
        places = [_at(max(r, k), min(r, k)) * REALS for k in (p, q)]
        ONE, OTHER = places
        SIGN, OTHER_SIGN = (-1.0 if r < k else 1.0 for k in (p, q))

        @device_function
        def turn_row(s, y, out):
            y[0], y[REALS] = s[ONE], s[OTHER]
            if COMPLEX:
                y[1], y[REALS + 1] = real(SIGN) * s[ONE + 1], real(OTHER_SIGN) * s[OTHER + 1]
            turn(y, 0, REALS, out[0], out[1], out[2])
            s[ONE], s[OTHER] = y[0], y[REALS]
            if COMPLEX:
                s[ONE + 1], s[OTHER + 1] = real(SIGN) * y[1], real(OTHER_SIGN) * y[REALS + 1]

        return turn_row

    @device_function
    def turn_vector(i, x, out):
        turn(x, (i * ORDER + p) * REALS, (i * ORDER + q) * REALS, out[0], out[1], out[2])

    rows = in_order([row(r) for r in range(ORDER) if r not in (p, q)])
    every = unrolled(ORDER, turn_vector)

    @device_function
    def rotate(s, x, y, out, h, n, vectors, least):
        square = s[AT] * s[AT]
        if COMPLEX:
            square += s[AT + 1] * s[AT + 1]
        if n > q and square > least:
            # below the diagonal is the conjugate of the element between the columns
            angle(out, h, s[SECOND] - s[FIRST], s[AT], -s[AT + LAST])
            s[FIRST] -= h[0]
            s[SECOND] += h[0]
            s[AT] = h[1]
            if COMPLEX:
                s[AT + 1] = -h[2]
            rows(s, y, out)
            if vectors != 0:
                every(0, x, out)

    return rotate


def _norms(config: JacobiThread) -> Callable:
    """``square(total, s)``: sums of squares of all elements on the diagonal, and of those below it."""
    facts, ORDER = config.dtype_facts, config.ORDER
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    ON, BELOW = (
        tuple(_at(i, i) * REALS for i in range(ORDER)),
        tuple(_at(*each) * REALS for each in _below(ORDER)),
    )

    def adder(places: tuple[int, ...], reals: int) -> Callable:
        def one(at: int) -> Callable:
            @device_function
            def add(total, s):
                for part in range(reals):
                    total[0] += s[at + part] * s[at + part]

            return add

        return in_order([one(at) for at in places])

    add_diagonal, add_others = adder(ON, 1), adder(BELOW, REALS)

    @device_function
    def square(total, s):
        total[0] = real(0)
        add_others(total, s)
        below = total[0]
        add_diagonal(total, s)
        return total[0] - below, below

    return square


def _build(config: JacobiThread):
    facts, DIM, ORDER = config.dtype_facts, config.DIM, config.ORDER
    REALS, real, UNIT = facts.reals_per_element, ptx.REALS[facts.real], facts.unit_roundoff
    int32, int64, offset, select = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.select
    (load, rank, store), size, scales = _mover(config), size_of(facts), scaler(facts)
    square, grid_dependency_wait = _norms(config), ptx.grid_dependency_wait
    sweep = in_order([_rotation(config, j, i) for i, j in _below(ORDER)])
    HALF, WHOLE, PAIR = ORDER * (ORDER + 1) // 2 * REALS, ORDER * ORDER * REALS, 2 * REALS

    @device_function
    def start(number, x):
        x[number] = real(1) if number % ((ORDER + 1) * REALS) == 0 else real(0)

    def taker(i: int) -> Callable:
        AT = _at(i, i) * REALS

        @device_function
        def take(values, s):
            values[i] = s[AT]

        return take

    starts, take = unrolled(WHOLE, start), in_order([taker(i) for i in range(ORDER)])

    def jacobi_thread(
        a, w, v, info, n, vectors, conj, count, a_rs, a_cs, w_step, v_rs, v_cs, stride_a, stride_w, stride_v,
        stride_info,
    ):  # fmt: skip
        # (1) the matrix of this thread
        matrix = int64(cuda.blockIdx.x) * DIM + int64(cuda.threadIdx.x & 1023)
        is_here = matrix < count
        s, x, y = cuda.local.array(HALF, real), cuda.local.array(WHOLE, real), cuda.local.array(PAIR, real)
        out, h = cuda.local.array(3, real), cuda.local.array(3, real)
        values, ranks = cuda.local.array(ORDER, real), cuda.local.array(ORDER, int32)
        grid_dependency_wait()
        load(s, offset(a, matrix * stride_a * REALS), a_rs, a_cs, conj, n, is_here)
        starts(0, x)

        # (2) A of about one; its norm
        most = real(0)
        for i in range(0, HALF, REALS):
            most = max(most, size(s, i))
        scales(out, most)
        is_bad, factor, back = not most < real(float("inf")), out[0], out[1]
        for i in range(HALF):
            s[i] = select(is_bad, real(0), s[i] * factor)
        on, off = square(out, s)
        norm = on + off + off
        enough, least = norm * real(UNIT * UNIT) * real(n), norm * real(UNIT * UNIT / SKIPPED)

        # (3) sweeps, until what is left below the diagonal is rounding
        number = int32(0)
        while number < SWEEPS and off > enough:
            sweep(s, x, y, out, h, n, vectors, least)
            _, off = square(out, s)
            number = int32(number + 1)

        # (4) the results
        take(values, s)
        rank(values, ranks, n)
        if is_here:
            back = real(float("nan")) if is_bad else back
            w = offset(w, matrix * stride_w)
            for i in range(ORDER):
                if n > i:
                    w[ranks[i] * w_step] = values[i] * back
            if vectors != 0:
                unit = back if is_bad else real(1)
                store(0, x, ranks, offset(v, matrix * stride_v * REALS), v_rs, v_cs, n, unit)
            info[matrix * stride_info] = n if off > enough or is_bad else int32(0)

    return jacobi_thread
