"""ZGEMM by residues in the simulator: what its kernels do with complex operands, and calls end to end."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product as pairs
from math import log2, prod

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.int8 import combine_residues, guarded, pack_residues, product, row_scales
from pyblasgpu.kernels.gemm.int8.image import DIGIT, INVERSE, SCALE
from pyblasgpu.kernels.gemm.int8.moduli import MODULI
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.error_bounds import gemm_error

from .int8_launching import Products, combine, config_of, facts_of, multiply, pack, residues_of
from .launching import run, strides

U = 2.0**-53


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def lying(x: np.ndarray, by_rows: bool, gap: int = 0) -> np.ndarray:
    """An operand, extent by k, with neighbours along the extent (else along k) adjacent, amid NaN."""
    extent, k = x.shape
    memory = np.full((k, extent + gap) if by_rows else (extent, k + gap), np.nan * (1 + 1j))
    view = memory.T[:extent] if by_rows else memory[:, :k]
    view[...] = x
    return view


def rounded(x: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """The integers of real and imaginary parts, as Python's."""
    return [np.rint(part * scale).astype(int).astype(object) for part in (x.real, x.imag)]


def as_real(x: np.ndarray) -> np.ndarray:
    return x.view(np.float64)


def check_scales(by_rows=False, gap=0, k=50, kernels=row_scales) -> None:
    """What is found of it is what is found of a real row of twice as many elements."""
    x = normal(10, k) * 2.0 ** (np.arange(10) * 11)[:, None]
    x[3], x[4, -1] = 0, complex(1, np.nan)
    (actual,), (expected,) = (facts_of(y, kernels=kernels) for y in (lying(x, by_rows, gap), as_real(x)))
    np.testing.assert_allclose(actual[:, :10], expected[:, :10], rtol=1e-14)
    np.testing.assert_array_equal(actual[[SCALE, INVERSE, DIGIT]], expected[[SCALE, INVERSE, DIGIT]])


@pytest.mark.parametrize(("by_rows", "gap", "k"), [(False, 0, 50), (True, 3, 70)])
def test_a_row_has_the_scale_of_its_parts(by_rows, gap, k):
    check_scales(by_rows, gap, k)


def check_pack(by_rows=False, gap=0, extent=9, k=40, moduli=2, conj=False, kernels=pack_residues) -> None:
    """Residues of real parts, of imaginary parts and of their sums; digits of the larger part."""
    x = normal(extent, k, seed=extent)
    x[1] *= 1 / 1024
    other = lying(normal(5, k), not by_rows)
    _, packed = pack(other, lying(x, by_rows, gap), moduli=moduli, conj=conj, kernels=kernels)
    values, scale = packed.values(), packed.facts[SCALE, :extent, None]
    re, im = rounded(x.conj() if conj else x, scale)
    numbers = [(part, p) for part in (re, im, re + im) for p in MODULI[:moduli]]
    assert len(values) == len(numbers)
    for (part, p), residues in zip(numbers, values[:, :extent, :k].astype(int), strict=True):
        assert ((residues - part) % p == 0).all()
        assert (2 * abs(residues) <= p + 1).all()
    assert not values[:, extent:].any() and not values[:, :, k:].any()
    larger = np.maximum(abs(re), abs(im)).astype(float)
    digits = np.floor(larger * packed.facts[DIGIT, :extent, None])
    np.testing.assert_array_equal(packed.values(digits=True)[0][:extent, :k], digits)


@pytest.mark.parametrize(
    ("by_rows", "gap", "conj", "moduli"), [(False, 0, False, 2), (True, 3, True, 2), (False, 3, True, 14)]
)
def test_operands_are_packed(by_rows, gap, conj, moduli):
    check_pack(by_rows, gap, conj=conj, moduli=moduli)


def check_products(m=20, n=9, k=40, moduli=2, kernels=product) -> None:
    """Residues are those of the three products."""
    a, b = (np.round(normal(rows, k, seed=rows) * 40) for rows in (m, n))
    left, right = pack(a, b, moduli=moduli)
    config = config_of(moduli, dtype="z")
    none = np.zeros((config.tiles(m, n), config.flags_of_tile), np.int32)
    actual = multiply(left, right, none, kernels=kernels).values(m, n).astype(int)
    (a_re, a_im), (b_re, b_im) = (
        rounded(x, y.facts[SCALE, : len(x), None]) for x, y in ((a, left), (b, right))
    )
    three = (a_re, b_re), (a_im, b_im), (a_re + a_im, b_re + b_im)
    expected = np.concatenate([residues_of(x @ y.T, moduli) for x, y in three])
    moduli_of = np.tile(MODULI[:moduli], 3)[:, None, None]
    assert ((actual - expected) % moduli_of == 0).all()


def test_products():
    check_products()


def check_flags(kernels=product) -> None:
    """A row of another range is flagged, normal data are not."""
    a, b = normal(40, 60), normal(20, 60, seed=2)
    a[17] *= np.where(np.arange(60) == 3, 1e12, 1)
    packed = pack(a, b, moduli=1, facts=facts_of(a, b, moduli=14))
    assert multiply(*packed, cluster=1, kernels=kernels).flags.tolist() == [[0, 1, 0, 0]]


def test_flags():
    check_flags()


def check_combined(alpha=1.0, beta=0.0, m=20, moduli=13, kernels=combine_residues) -> None:
    """Integers of all sizes, of either sign, are exact but for the last rounding; parts that are 0 are 0."""
    config, rng, n, gap = config_of(moduli, dtype="z"), np.random.default_rng(4), 20, 3
    most, shape = log2(prod(MODULI[:moduli]) / 2) - 1, (2, m, n)
    sizes, signs = rng.uniform(0, most, shape), rng.choice([-1, 0, 1, 1], shape)
    re, im = np.frompyfunc(lambda size, sign: int(2.0**size) * int(sign), 2, 1)(sizes, signs)
    first = np.frompyfunc(int, 1, 1)(rng.integers(0, 2**62, (m, n)))  # the product of real parts
    facts = facts_of(normal(m, 4), normal(n, 4, seed=2), moduli=moduli)
    memory = np.full((n, m + gap), np.nan * (1 + 1j))
    c, before = memory[:, :m], normal(n, m, seed=8)
    if beta:
        c[...] = before
    three = first, first - re, im + 2 * first - re
    actual = Products(config, *laid_out(config, np.concatenate([residues_of(x, moduli) for x in three])))
    combine(*facts, actual, c, alpha, beta, kernels)
    exact = (re.astype(float) + 1j * im.astype(float)).T
    exact = exact * (facts[0][INVERSE, :m] * facts[1][INVERSE, :n, None])
    expected = alpha * exact + (beta * before if beta else 0)
    bound = 8 * U * (abs(alpha) * abs(exact) + abs(beta * before))
    if beta == 0 and alpha in (1, 2, 1j):
        bound = 0  # parts are rounded once
    assert (abs(c - expected) <= bound).all() and np.isnan(memory[:, m:]).all()


def laid_out(config, residues: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No flags, and residues (images, m, n) as `Products.values` reads them."""
    images, m, n = residues.shape
    down, across = -(-m // 64), -(-n // 32)
    whole = np.zeros((images, down * 64, across * 32), np.uint8)
    whole[:, :m, :n] = residues.astype(np.uint8)
    parts = whole.reshape(images, down, 4, 2, 8, across, 1, 4, 4, 2).transpose(0, 1, 5, 6, 2, 4, 8, 7, 3, 9)
    words = np.ascontiguousarray(parts).ravel().view(np.int32)
    return np.zeros((down * across, config.flags_of_tile), np.int32), words


@pytest.mark.parametrize(
    ("alpha", "beta", "moduli"), [(1.0, 0.0, 13), (-2.5 + 1j, 0.5 - 3j, 14), (1j, 0.0, 15), (1, 2j, 5)]
)
def test_integers_are_put_together(alpha, beta, moduli):
    check_combined(alpha, beta, moduli=moduli)


# ---------------------------------------------------------------------------------------- what is left

TILE = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "WARP_M": 32, "WARP_N": 16, "VEC_A": 1, "VEC_B": 1}
LOADS = {"DIM_XA": 32, "DIM_YA": 1, "DIM_XB": 8, "DIM_YB": 4}


def check_guarded(conj=True, kernels=guarded) -> None:
    """The tiles with a flag, and no others."""
    m, n, k = 70, 20, 11
    a, b, c = normal(k, m), normal(n, k, seed=2), np.full((n, m), 77 + 0j)
    config = kernels.GemmInt8Guarded(dtype="z", FLAG_M=64, FLAG_N=32, **TILE, **LOADS)
    flags = np.array([[0, 0, 0, 1], [0] * 4], np.int32)
    integers = m, n, k, 0, int(conj), 0, 0, 0, 0, 0, strides(a)[0], strides(b)[0], strides(c)[0]
    run(kernels.source(config), config.grid(m, n), (flags, flags, a, b, c, c, c), integers, (2j, 0.0))
    expected = 2j * ((b.conj() if conj else b) @ a)
    np.testing.assert_allclose(c[:, :64], expected[:, :64], rtol=1e-12)
    assert (c[:, 64:] == 77).all()


def test_flagged_tiles_are_computed_by_fmas():
    check_guarded()


# ------------------------------------------------------------------------------------------ end to end


@contextmanager
def small_kernels():
    """Toy tiles of all kernels."""
    with ExitStack() as stack:
        stack.enter_context(override("gemm_int8", config_of(14, dtype="z", cluster=1)))
        stack.enter_context(override("pack_residues", pack_residues.PackResidues("z", rows=8)))
        stack.enter_context(override("row_scales", row_scales.RowScales("z", threads=64)))
        for trans in pairs((False, True), (False, True)):
            tile = guarded.GemmInt8Guarded(dtype="z", **TILE, **LOADS).specialize(*trans)
            stack.enter_context(override("gemm_int8_guarded", tile))
        yield


@pytest.mark.parametrize(("trans_a", "trans_b"), [("N", "C"), ("C", "N")])
def test_calls(trans_a, trans_b, monkeypatch):
    """A column of another range is served by FMAs, the rest by residues."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    monkeypatch.setattr(launch_list, "cache", {})
    m, n, k = 9, 34, 20
    a, b, out = normal(m, k), normal(k, n, seed=2), np.asfortranarray(normal(m, n, seed=3))
    b[5, -1] = 1e12
    before = out.copy()
    op = {"N": lambda x: x, "C": lambda x: x.conj().T.copy()}
    options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": 1.5 - 1j, "beta": 0.5j}
    with small_kernels():
        pyblasgpu.gemm(op[trans_a](a), op[trans_b](b), out=out, method="tensor", **options)
    (launches,) = launch_list.cache.values()
    names = {entry.source.name for entry in launches.entries}
    assert {"combine_residues", "gemm_int8_guarded"} <= names
    assert gemm_error(1.5 - 1j, a, b, 0.5j, before, out) <= 1
