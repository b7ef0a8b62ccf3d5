"""``determinant``: sign and logarithm of determinants, or determinants, from LU factors; a batch in a launch.

A group of threads multiplies the diagonal of a matrix. A product is a complex number of modulus about one, or
a real one, times a power of two, so that nothing overflows and one logarithm a matrix is taken. Products are
float64 in every dtype: determinants are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "Determinant", "source"]

STEM = "determinant"
PARAMETERS = parameters(
    "int32 pointer: piv",
    "pointer: a, sign, logarithm",
    "int32: n, products, lanes, count",
    "int64: step, piv_step, stride_a, stride_piv",
)
#: Elements of a diagonal for a thread, as long as a block has threads.
ELEMENTS = 4
#: Powers of two at most by which a product is scaled at a time.
MOST = 1000
#: Bits: the sign is negative; an element is zero, NaN, infinite.
NEGATIVE, ZERO, NAN, INFINITE = 1, 2, 4, 8


@dataclass(frozen=True)
class Determinant(BlockConfig):
    """Config of one `determinant` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 48

    @property
    def parts(self) -> int:
        """Float64 of a product."""
        return self.dtype_facts.reals_per_element

    @property
    def shared_bytes(self) -> int:
        """A product a thread, its exponent and its bits."""
        return self.DIM * (8 * self.parts + 8)

    def lanes(self, n: int) -> int:
        """Threads of a matrix of order `n`, a power of two."""
        wanted = 1 << (-(-n // ELEMENTS) - 1).bit_length()
        return min(wanted, 1 << (self.DIM.bit_length() - 1))

    def grid(self, n: int, count: int) -> int:
        """Blocks for `count` matrices of order `n`."""
        return -(-count // (self.DIM // self.lanes(n)))


def source(config: Determinant) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv: int32 pointer, pivots
    a: pointer, the factors
    sign: pointer, signs, one after the other; or determinants, which are float64 or complex128
    logarithm: pointer, logarithms of the moduli, one after the other
    n: int32, order
    products: int32, whether determinants are wanted, else signs and logarithms
    lanes: int32, threads of a matrix, ``config.lanes(n)``
    count: int32, matrices
    step: int64, stride along the diagonal (elements)
    piv_step: int64, words from pivot to pivot
    stride_a: int64, batch stride of A (elements)
    stride_piv: int64, batch stride of pivots (words)

    Grid: x ``config.grid(n, count)``.

    Notes
    -----
    A zero makes the determinant zero, whatever else is on the diagonal. Otherwise a NaN makes determinant and
    logarithm NaN, and an infinity makes them infinite. Complex signs are NaN then, and complex determinants.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _scaler() -> Callable:
    """``scale(product, state)``: the larger part of a product about one, and its exponent changed."""
    exponent, power, int32, LIMIT = ptx.double_exponent, ptx.double_power_of_two, ptx.types.int32, MOST

    @device_function
    def scale(product, state):
        e = int32(min(max(exponent(max(abs(product[0]), abs(product[1]))), -LIMIT), LIMIT))
        factor = power(int32(-e))
        product[0], product[1], state[0] = product[0] * factor, product[1] * factor, int32(state[0] + e)

    return scale


def _multiplier(config: Determinant) -> Callable:
    """``multiply(product, re, im)``: a product times a number."""
    COMPLEX = config.dtype_facts.is_complex

    @device_function
    def multiply(product, re, im):
        if COMPLEX:
            x, y = product[0], product[1]
            product[0], product[1] = x * re - y * im, x * im + y * re
        else:
            product[0] *= re

    return multiply


def _taker(config: Determinant) -> Callable:
    """``take(product, state, factor, shift, value, moved)``: an element of the diagonal into a product;
    `factor` and `shift` are scratch.
    """
    COMPLEX, LAST = config.dtype_facts.is_complex, config.dtype_facts.reals_per_element - 1
    float64, int32, exponent = ptx.types.float64, ptx.types.int32, ptx.double_exponent
    multiply, scale, ABOVE = _multiplier(config), _scaler(), 1024
    ZERO_, NAN_, INFINITE_ = ZERO, NAN, INFINITE

    @device_function
    def take(product, state, factor, shift, value, moved):
        re, im = float64(value[0]), float64(value[LAST])
        is_negative = moved
        if not COMPLEX:
            im = float64(0)
            is_negative = moved != (re < float64(0))
            re = abs(re)
        size = max(abs(re), abs(im))
        bits = int32(state[1] ^ int32(is_negative))
        if exponent(re) == ABOVE or exponent(im) == ABOVE:
            is_infinite = re - re != float64(0) and re == re
            is_infinite = is_infinite or (im - im != float64(0) and im == im)
            bits = int32(bits | (INFINITE_ if is_infinite else NAN_))
        elif size == float64(0):
            bits = int32(bits | ZERO_)
        else:
            factor[0], factor[1], shift[0] = re, im, state[0]
            scale(factor, shift)
            multiply(product, factor[0], factor[1])
            state[0] = shift[0]
            scale(product, state)
        state[1] = bits

    return take


def _reducer(config: Determinant) -> Callable:
    """``reduce(product, state, products, words, t, lane, lanes)``: the products of a group of threads as that
    of its first one.
    """
    PARTS, DIM = config.parts, config.DIM
    int32, multiply, scale, OTHERS, SIGN = (
        ptx.types.int32,
        _multiplier(config),
        _scaler(),
        ~NEGATIVE,
        NEGATIVE,
    )

    @device_function
    def put(product, state, products, words, t):
        for part in range(PARTS):
            products[t * PARTS + part] = product[part]
        words[t], words[DIM + t] = state[0], state[1]

    @device_function
    def reduce(product, state, products, words, t, lane, lanes):
        half = int32(lanes >> 1)
        put(product, state, products, words, t)
        while half > 0:
            cuda.syncthreads()
            if lane < half:
                other = int32(t + half)
                multiply(product, products[other * PARTS], products[other * PARTS + (PARTS - 1)])
                state[0] = int32(state[0] + words[other])
                scale(product, state)
                bits = words[DIM + other]
                state[1] = int32(((state[1] ^ bits) & SIGN) | ((state[1] | bits) & OTHERS))
                put(product, state, products, words, t)
            half = int32(half >> 1)

    return reduce


def _logarithm() -> Callable:
    """``logarithm(x, e)``: that of ``x 2^e`` for x from 1 to 3, to less than a unit in the last place.

    The polynomial is that of FDLIBM (Sun Microsystems, 1993).
    """
    float64, divide = ptx.types.float64, ptx.divide

    @device_function
    def logarithm(x, e):
        k = float64(e)
        if x > float64(1.4142135623730951):
            x, k = x * float64(0.5), k + float64(1)
        f = x - float64(1)
        s = divide(f, float64(2) + f)
        z = s * s
        w = z * z
        even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
        odd = w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
        rest, half = even + z * (0.6666666666666735130 + odd), float64(0.5) * f * f
        low = s * (half + rest) + k * float64(1.90821492927058770002e-10)
        return k * float64(6.93147180369123816490e-01) - ((half - low) - f)

    return logarithm


def _product_writer(config: Determinant) -> Callable:
    """``settle(product, state)``: the determinant in place of the product and its exponent."""
    COMPLEX, LIMIT, power = config.dtype_facts.is_complex, MOST, ptx.double_power_of_two
    float64, int32, ZERO_, NAN_, SIGN, ODD = (
        ptx.types.float64,
        ptx.types.int32,
        ZERO,
        NAN,
        NEGATIVE,
        NAN | INFINITE,
    )

    @device_function
    def settle(product, state):
        bits, e = state[1], int32(min(max(state[0], -3 * LIMIT), 3 * LIMIT))
        if bits & ZERO_:
            product[0], product[1] = float64(0), float64(0)
        elif bits & ODD:
            is_nan = (bits & NAN_) != 0 or COMPLEX
            product[0] = float64(float("nan")) if is_nan else float64(float("inf"))
            product[1] = product[0]
        while e != 0:  # rounded once: what is left after the first step is no more than it
            now = int32(min(max(e, -LIMIT), LIMIT))
            factor = power(now)
            product[0], product[1], e = product[0] * factor, product[1] * factor, int32(e - now)
        if bits & SIGN:
            product[0], product[1] = -product[0], -product[1]

    return settle


def _sign_writer(config: Determinant) -> Callable:
    """``write(product, state, sign, logarithm)``: of a product the sign, and the logarithm of the modulus."""
    facts = config.dtype_facts
    COMPLEX, LAST, real = facts.is_complex, facts.reals_per_element - 1, ptx.REALS[facts.real]
    float64, divide, square_root, log = ptx.types.float64, ptx.divide, ptx.square_root, _logarithm()
    ZERO_, NAN_, SIGN, ODD = ZERO, NAN, NEGATIVE, NAN | INFINITE

    @device_function
    def write(product, state, sign, logarithm):
        bits, modulus = state[1], product[0]
        if COMPLEX:
            modulus = square_root(product[0] * product[0] + product[1] * product[1])
        size, re, im = log(modulus, state[0]), float64(1), float64(0)
        if COMPLEX:
            re, im = divide(product[0], modulus), divide(product[1], modulus)
        if bits & SIGN:
            re, im = -re, -im
        if bits & ZERO_:
            size, re, im = float64(-float("inf")), float64(0), float64(0)
        elif bits & ODD:
            size = float64(float("nan")) if bits & NAN_ else float64(float("inf"))
            if COMPLEX:
                re, im = float64(float("nan")), float64(float("nan"))
        sign[LAST] = real(im)
        sign[0] = real(re)
        logarithm[0] = real(size)

    return write


def _build(config: Determinant):
    facts, DIM, PARTS = config.dtype_facts, config.DIM, config.parts
    REALS, real, WIDE = facts.reals_per_element, ptx.REALS[facts.real], 8 // facts.real_size
    int32, int64, float64 = ptx.types.int32, ptx.types.int64, ptx.types.float64
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    read, store_int64, grid_dependency_wait = (
        ptx.load_global(1, False),
        ptx.store_int64,
        ptx.grid_dependency_wait,
    )
    take, reduce, settle, write = (
        _taker(config),
        _reducer(config),
        _product_writer(config),
        _sign_writer(config),
    )

    def determinant(piv, a, sign, logarithm, n, products, lanes, count, step, piv_step, stride_a, stride_piv):
        # (1) the elements of this thread
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        matrix = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        doubles = shared_pointer(cuda.shared.array(0, float64, alignment=16))
        words = offset(shared_pointer(cuda.shared.array(0, int32, alignment=16)), 2 * PARTS * DIM)
        bits = shared_pointer(cuda.shared.array(0, int64, alignment=16))
        product, factor = cuda.local.array(2, float64), cuda.local.array(2, float64)
        state, shift, value = (
            cuda.local.array(2, int32),
            cuda.local.array(1, int32),
            cuda.local.array(REALS, real),
        )
        product[0], product[1], state[0], state[1] = float64(1), float64(0), int32(0), int32(0)
        grid_dependency_wait()
        if is_here:
            a, piv = offset(a, matrix * stride_a * REALS), offset(piv, matrix * stride_piv)
            for i in range(lane, n, lanes):
                for part in range(REALS):
                    read(value, part, a, int64(i) * step * REALS + part, True)
                take(product, state, factor, shift, value, piv[int64(i) * piv_step] != i)

        # (2) those of all threads of the matrix
        reduce(product, state, doubles, words, t, lane, lanes)
        is_first = is_here and lane == 0
        if products == 0:
            if is_first:
                write(product, state, offset(sign, matrix * REALS), offset(logarithm, matrix))
        else:
            # float64 by their bits: pointers of single precision are to float32
            if is_first:
                settle(product, state)
                for part in range(PARTS):
                    doubles[t * PARTS + part] = product[part]
            cuda.syncthreads()
            if is_first:
                for part in range(PARTS):
                    at = matrix * PARTS + part
                    store_int64(sign, at * WIDE, bits[t * PARTS + part])

    return determinant
