"""DGEMM by residues in the simulator: its kernels one by one, and calls end to end, with toy tiles."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product as pairs
from math import log2, prod

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch import tensor
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.int8 import (
    combine_residues,
    guarded,
    pack_residues,
    pivot_scales,
    product,
    row_scales,
)
from pyblasgpu.kernels.gemm.int8.image import DIGIT, FACTS, INVERSE, SCALE, SIZE, UNIT
from pyblasgpu.kernels.gemm.int8.moduli import MODULI
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.policies import deciding_by

from .int8_launching import (
    Products,
    combine,
    config_of,
    facts_of,
    multiply,
    pack,
    pack_part,
    residues_of,
)
from .launching import run, strides

U = 2.0**-53
KERNELS = {"row_scales", "pack_residues", "gemm_int8", "combine_residues", "gemm_int8_guarded"}


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def integers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(float)


def lying(x: np.ndarray, by_rows: bool, gap: int = 0) -> np.ndarray:
    """An operand, extent by k, with neighbours along the extent (else along k) adjacent, amid NaN."""
    extent, k = x.shape
    memory = np.full((k, extent + gap) if by_rows else (extent, k + gap), np.nan)
    view = memory.T[:extent] if by_rows else memory[:, :k]
    view[...] = x
    return view


# ----------------------------------------------------------------------------------------------- scales


def check_scales(by_rows=False, gap=0, k=150, moduli=13, kernels=row_scales) -> None:
    """Norms and elements of integers are as large as they may be; shares of the error are no less than what
    rows have; rows without a scale are flagged.
    """
    x = normal(70, k) * 2.0 ** (np.arange(70) * 11 - 380)[:, None]
    x[3] = 0
    x[4, 5:] = 0  # one large element
    x[4, -1] = 2.0**300
    x[5, 2], x[6, 1], x[7, 0], x[8], x[9] = np.nan, np.inf, 2.0**401, 2.0**-401, np.nan
    lies = lying(x, by_rows, gap)
    alone = facts_of(lies, moduli=moduli, kernels=kernels)[0]
    facts, _ = facts_of(lies, lying(x[:9], not by_rows), moduli=moduli, kernels=kernels)
    _, second = facts_of(lying(x[:9], not by_rows), lies, moduli=moduli, kernels=kernels)
    np.testing.assert_array_equal(facts, alone)
    np.testing.assert_array_equal(facts, second)
    most = prod(MODULI[:moduli]) / 2
    for row in range(70):
        scale, inverse, digit, size, unit = facts[[SCALE, INVERSE, DIGIT, SIZE, UNIT], row]
        if 5 <= row <= 9:
            assert not np.isfinite(size)
        elif row == 3:
            assert (scale, inverse, size, unit) == (0, 1, 0, 0)
        else:
            integers = abs(np.rint(x[row] * scale))
            square, largest = float((integers**2).sum()), integers.max()
            assert square <= most and largest <= 2.0**51
            assert 4 * square > most * 0.99 or 2 * largest >= 2.0**51
            assert scale * inverse == 1 and 64 <= largest * unit <= 128 and digit == unit * (1 - 2.0**-10)
            share = (integers.sum() / 2 + k / 8) * unit
            assert share <= size * (1 + 1e-9) and size <= share * (1 + 1e-5) + k * unit
    assert (facts[[SCALE, SIZE, UNIT], 70:] == 0).all() and (facts[INVERSE, 70:] == 1).all()


@pytest.mark.parametrize(("by_rows", "gap", "k"), [(False, 0, 150), (True, 3, 600), (False, 1, 9)])
def test_scales(by_rows, gap, k):
    check_scales(by_rows, gap, k)


def check_skipped(kernels=row_scales, packing=pack_residues) -> None:
    """Where all verdicts are 1, no row is read, and nothing is packed."""
    x = np.full((70, 50), np.nan)
    x[3:5] = normal(2, 50)
    (facts,) = facts_of(x, verdicts=[1] * 64, kernels=kernels)
    assert (facts[[SCALE, INVERSE, SIZE]] == [[0], [1], [np.inf]]).all()
    x[...] = normal(70, 50)
    for verdicts in ([0] + [1] * 63, [1] * 40 + [0]):
        np.testing.assert_array_equal(facts_of(x, verdicts=verdicts, kernels=kernels)[0], facts_of(x)[0])
    assert all(
        (each.images == -1).all() for each in pack(x, x, facts=[facts, facts], moduli=1, kernels=packing)
    )


def test_data_of_a_wide_range_are_not_packed():
    check_skipped()


# ------------------------------------------------------------------------------------------------- pack


def check_pack(by_rows=False, gap=0, extent=19, k=150, moduli=4, sample=1, kernels=pack_residues) -> None:
    """Residues of integers, digits of their sizes, zeros around them."""
    x = normal(extent, k, seed=extent)
    x[1, 1], x[2] = -0.0, 0
    other = lying(normal(9, k), not by_rows)
    _, packed = pack(other, lying(x, by_rows, gap), moduli=moduli, sample=sample, kernels=kernels)
    values, scale = packed.values(), packed.facts[SCALE, :extent, None]
    integers = np.rint(x * scale)
    for p, residues in zip(MODULI, values[:, :extent, :k].astype(int), strict=False):
        assert ((residues - integers.astype(object)) % p == 0).all()
        assert (2 * abs(residues) <= p + 1).all()
    assert not values[:, extent:].any() and not values[:, :, k:].any()
    stages, rows = packed.image.stages, packed.image.rows
    whole = np.zeros((rows, stages, 8, 16))
    digits = np.floor(abs(integers) * packed.facts[DIGIT, :extent, None])
    whole.reshape(rows, -1)[:extent, :k] = digits
    chunks = [whole[:, stage, stage % sample :: sample] for stage in range(stages)]
    sampled = np.concatenate(chunks, axis=1).reshape(rows, -1)
    actual = packed.values(digits=True)[0]
    np.testing.assert_array_equal(actual[:, : sampled.shape[1]], sampled)
    assert not actual[:, sampled.shape[1] :].any()


@pytest.mark.parametrize(
    ("by_rows", "gap", "extent", "k", "moduli", "sample"),
    [(False, 0, 19, 150, 4, 1), (True, 3, 70, 60, 2, 2), (False, 5, 5, 128, 13, 8), (True, 0, 9, 600, 1, 4)],
)
def test_operands_are_packed(by_rows, gap, extent, k, moduli, sample):
    check_pack(by_rows, gap, extent, k, moduli, sample)


# -------------------------------------------------------------------------------------------- products


def check_products(m=70, n=35, k=150, moduli=3, clusters=1, kernels=product, **fields) -> None:
    """Residues are those of products of integers, whatever is large."""
    a, b = (np.round(normal(rows, k, seed=rows) * 40) for rows in (m, n))
    config = config_of(moduli, **fields)
    left, right = pack(a, b, moduli=moduli, panel=config.PANEL)
    none = np.zeros((config.tiles(m, n), config.flags_of_tile), np.int32)
    actual = multiply(left, right, none, clusters, kernels, **fields).values(m, n).astype(int)
    integers = [np.rint(x * y.facts[SCALE, : len(x), None]).astype(int) for x, y in ((a, left), (b, right))]
    expected = residues_of(integers[0] @ integers[1].T, moduli)
    moduli_of = np.array(MODULI[:moduli])[:, None, None]
    assert ((actual - expected) % moduli_of == 0).all()


def check_parts(kernels=product, packing=pack_residues) -> None:
    """An image that is packed part by part is that of the whole; a product may take some rows and k of it."""
    x, y = (np.round(normal(rows, 260, seed=rows) * 40) for rows in (70, 9))
    whole, right = pack(x, y, moduli=1)
    parts = whole._replace(images=np.full_like(whole.images, -1))
    for begin, end in ((0, 64), (64, 70)):
        for first, last in ((0, 128), (128, 260)):
            pack_part(parts, x[begin:end, first:last].copy(), begin, first // 128, packing)
    np.testing.assert_array_equal(parts.values(), whole.values())
    none = np.zeros((1, 4), np.int32)
    actual = multiply(parts, right, none, kernels=kernels, cluster=1, begin=64, k=200).values(6, 9)
    scaled = [
        np.rint(each * packed.facts[SCALE, : len(each), None]) for each, packed in ((x, whole), (y, right))
    ]
    # k is in whole stages
    expected = residues_of(scaled[0][64:, :256].astype(int) @ scaled[1][:, :256].astype(int).T, 1)
    assert ((actual.astype(int) - expected) % MODULI[0] == 0).all()


def test_parts_of_an_image():
    check_parts()


def check_pivots(letter="d", kernels=pivot_scales) -> None:
    """Integers are as large as they may be whatever the diagonal is; rows without a pivot become NaN."""
    m, n, rows, rng = 40, 70, 64, np.random.default_rng(1)
    factor = rng.standard_normal((m, n)) * 2.0 ** rng.integers(-400, 400, m)[:, None]
    if letter == "z":
        factor = factor * np.exp(1j * rng.uniform(0, 6, (m, n)))
    sizes = (abs(factor) ** 2).sum(axis=1)
    diagonal = sizes * 1.5
    diagonal[3], diagonal[5], diagonal[7] = 0, -1, sizes[7] * 0.999
    factor[9, 69] = np.nan
    facts, config = np.full((FACTS, rows), np.nan), kernels.PivotScales(letter, threads=64)
    source, dtype = kernels.source(config), factor.dtype
    stored = np.zeros((m, 2), dtype)
    stored[:, 0] = diagonal
    run(source, config.grid(m), (stored, facts), (m, 0, rows, 2, 1), ())
    scale, inverse = facts[SCALE, :m], facts[INVERSE, :m]
    bad = np.isin(np.arange(m), (3, 5))
    assert np.isnan(inverse[bad]).all() and (scale[bad] == 0).all() and (scale * inverse == 1)[~bad].all()
    largest = np.sqrt(diagonal[~bad]) * scale[~bad]
    assert (largest < 2.0**config.bits).all() and (largest >= 2.0 ** (config.bits - 1) * 0.999).all()
    for block in (factor[:, :30], factor[:, 30:]):
        run(source, config.grid(m), (block, facts), (m, block.shape[1], rows, *strides(block)), ())
    bad |= np.isin(np.arange(m), (7, 9))
    assert np.isnan(facts[INVERSE, :m][bad]).all() and (facts[INVERSE, :m] == inverse)[~bad].all()


@pytest.mark.parametrize("letter", "dz")
def test_scales_from_a_diagonal(letter):
    check_pivots(letter)


TALL = {"BLK_M": 128, "PANEL": 128, "cluster": 1}


@pytest.mark.parametrize(
    ("m", "n", "k", "fields"),
    [
        (70, 35, 150, {}),
        (20, 9, 300, {"cluster": 1}),
        (70, 20, 40, {"clusters": 2}),
        (130, 5, 128, {}),
        (70, 5, 150, TALL),
    ],
)
def test_products(m, n, k, fields):
    check_products(m, n, k, **fields)


def test_the_largest_sums_of_all_moduli():
    """Bytes of -128 and of 127, of all moduli that a byte holds."""
    k = 100
    a, b = pack(np.ones((8, k)), np.ones((8, k)), moduli=15)
    for images, value in ((a.images, -128), (b.images, 127)):
        images.view(np.int8)[images.view(np.int8) != 0] = value
    residues = multiply(a, b, np.zeros((1, 4), np.int32)).values(8, 8).astype(int)
    terms = np.count_nonzero(a.values()[:, 0], axis=1)
    assert terms.max() == k
    assert ((residues - (-128 * 127 * terms)[:, None, None]) % np.array(MODULI)[:, None, None] == 0).all()


def digits_of(a, b, moduli=14, sample=1):
    """Operands for the check alone: of the integers of so many moduli."""
    return pack(a, b, moduli=1, facts=facts_of(a, b, moduli=moduli), sample=sample)


def check_flags(kernels=product) -> None:
    """Check warps that integers might not serve: a row of another range, one that is not finite, all
    where integers are short.
    """
    a, b = normal(80, 60), normal(40, 60, seed=2)
    short = multiply(*digits_of(a[:16], b[:32], 5), cluster=1, kernels=kernels)
    assert short.flags.tolist() == [[1, 0, 0, 0]]
    a[17] *= np.where(np.arange(60) == 3, 1e12, 1)
    a[79, 9], b[38, 0] = np.nan, np.inf
    flags = multiply(*digits_of(a, b), clusters=2, kernels=kernels).flags.reshape(2, 2, 4)
    assert flags[:, 0].tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert flags[:, 1].tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]


def test_flags():
    check_flags()


def check_sampled(kernels=product) -> None:
    """Half of k tells that normal data are served."""
    a, b = digits_of(normal(16, 400), normal(16, 400, seed=2), sample=2)
    assert multiply(a, b, cluster=1, sample=2, kernels=kernels).flags.tolist() == [[0] * 4]


def test_a_sample_of_digits():
    check_sampled()


def check_flagged(kernels=product) -> None:
    """A tile with a flag is left alone; the other one of its cluster is not."""
    a, b = pack(np.ones((100, 20)), np.ones((20, 20)), moduli=1)
    flags = np.array([[0, 0, 1, 0], [0, 0, 0, 0]], np.int32)
    residues = multiply(a, b, flags, kernels=kernels).residues
    assert (residues[:, 0] == -1).all() and (residues[:, 1] != -1).all()
    flags[1, 3] = 1
    assert (multiply(a, b, flags, kernels=kernels).residues == -1).all()


def test_flagged_tiles_are_left_alone():
    check_flagged()


# --------------------------------------------------------------------------------------------- combine


def check_combined(alpha=1.0, beta=0.0, m=70, moduli=13, flagged=False, kernels=combine_residues) -> None:
    """Integers of all sizes, of either sign, are exact but for the last rounding; 0 is 0."""
    config, rng, n, gap = config_of(moduli), np.random.default_rng(4), 20, 3
    product_of_all = prod(MODULI[:moduli])
    sizes, signs = rng.uniform(0, log2(product_of_all / 2) - 1, (m, n)), rng.choice([-1, 0, 1, 1], (m, n))
    values = np.frompyfunc(lambda size, sign: int(2.0**size) * int(sign), 2, 1)(sizes, signs)
    facts = facts_of(normal(m, 4), normal(n, 4, seed=2), moduli=moduli)
    down, across = -(-m // 64), -(-n // 32)
    whole = np.zeros((moduli, down * 64, across * 32), np.uint8)
    whole[:, :m, :n] = residues_of(values, moduli).astype(np.uint8)
    # as `Products.values` has them
    parts = whole.reshape(moduli, down, 4, 2, 8, across, 1, 4, 4, 2).transpose(0, 1, 5, 6, 2, 4, 8, 7, 3, 9)
    words = np.ascontiguousarray(parts).ravel().view(np.int32)
    flags = np.zeros((down * across, 4), np.int32)
    flags[0, 3] = flagged
    actual = Products(config, flags, words)
    memory = np.full((n, m + gap), np.nan)
    c = memory[:, :m]
    before = normal(n, m, seed=8)
    if beta:
        c[...] = before
    combine(*facts, actual, c, alpha, beta, kernels)
    scales = facts[0][INVERSE, :m] * facts[1][INVERSE, :n, None]
    exact = values.astype(float).T * scales
    expected = alpha * exact + (beta * before if beta else 0)
    bound = 4 * U * (abs(alpha * exact) + abs(beta * before))
    mine = np.ones((n, m), bool)
    mine[:, :64] = not flagged
    if beta == 0 and np.log2(abs(alpha)) % 1 == 0:
        bound = 0  # integers are rounded once
    assert (abs(c - expected) <= bound)[mine].all() and np.isnan(memory[:, m:]).all()
    assert np.array_equal(c[~mine], before[~mine])


@pytest.mark.parametrize(
    ("alpha", "beta", "m", "moduli"), [(1.0, 0.0, 70, 13), (-2.5, 0.5, 9, 15), (2.0, 0.0, 5, 5)]
)
def test_integers_are_put_together(alpha, beta, m, moduli):
    check_combined(alpha, beta, m, moduli=moduli)


def test_flagged_tiles_are_not_put_together():
    check_combined(beta=1.0, flagged=True)


# ---------------------------------------------------------------------------------------- what is left

TILE = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "WARP_M": 32, "WARP_N": 16, "VEC_A": 1, "VEC_B": 1}
LOADS = {"DIM_XA": 32, "DIM_YA": 1, "DIM_XB": 8, "DIM_YB": 4}


def check_guarded(kernels=guarded) -> None:
    """The tiles with a flag, and no others."""
    m, n, k = 70, 40, 11
    a, b, c = normal(k, m), normal(n, k, seed=2), np.full((n, m), 77.0)
    config = kernels.GemmInt8Guarded(dtype="d", FLAG_M=64, FLAG_N=32, **TILE, **LOADS)
    flags = np.array([[0] * 4, [0, 0, 0, 1], [1, 0, 0, 0], [0] * 4], np.int32)
    verdicts = np.array([1] * 63 + [0], np.int32)
    integers = m, n, k, 0, 0, 64, 2, 3, 1, 0, strides(a)[0], strides(b)[0], strides(c)[0]
    run(kernels.source(config), config.grid(m, n) + 2, (flags, verdicts, a, b, c, c, c), integers, (2.0, 0.0))
    mine = np.zeros((n, m), bool)
    mine[32:, :64] = mine[:32, 64:] = True
    np.testing.assert_allclose(c[mine], 2 * (b @ a)[mine], rtol=1e-12)
    assert (c[~mine] == 77).all()


def test_flagged_tiles_are_computed_by_fmas():
    check_guarded()


# ------------------------------------------------------------------------------------------ end to end


@contextmanager
def small_kernels(letter="d", **fields):
    """Toy tiles of all kernels."""
    with ExitStack() as stack:
        stack.enter_context(override("gemm_int8", config_of(dtype=letter, **fields)))
        stack.enter_context(override("pack_residues", pack_residues.PackResidues(letter, rows=8)))
        stack.enter_context(override("row_scales", row_scales.RowScales(letter, threads=64)))
        for trans in pairs((False, True), (False, True)):
            tile = guarded.GemmInt8Guarded(dtype=letter, **TILE, **LOADS).specialize(*trans)
            stack.enter_context(override("gemm_int8_guarded", tile))
        yield


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    monkeypatch.setattr(launch_list, "cache", {})


def families() -> list[str]:
    """Families that the last call has launched."""
    (launches,) = launch_list.cache.values()
    return [entry.source.name for entry in launches.entries]


@pytest.mark.usefixtures("fresh")
def test_calls():
    """A row of another range is served by FMAs, the rest by residues."""
    m, n, k = 67, 18, 100
    a, b, out = normal(m, k), normal(k, n, seed=2), np.asfortranarray(normal(m, n, seed=3))
    a[-1, 5] = 1e12
    before = out.copy()
    with small_kernels(moduli=14):
        result = pyblasgpu.gemm(a, b.T.copy(), trans_b="T", alpha=1.5, beta=-0.5, out=out, method="tensor")
    assert result is out and set(families()) == KERNELS
    assert gemm_error(1.5, a, b, -0.5, before, out) <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("fresh")
def test_a_call_on_data_of_a_wide_range():
    """All of it is left to FMAs, and B is not even packed."""
    m, n, k = 67, 18, 40
    a, b = normal(m, k), np.exp(9 * normal(k, n, seed=2))
    with small_kernels(moduli=1), deciding_by(int8_min_sampled_work=1):
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert set(families()) == KERNELS | {"sample_pairs"}
    np.testing.assert_allclose(result, a @ b, rtol=0, atol=(k + 2) * U * (abs(a) @ abs(b)).max())


@pytest.mark.usefixtures("fresh")
def test_blocks_of_a_result(monkeypatch):
    """With little workspace C is computed in blocks."""
    monkeypatch.setattr(tensor, "MOST_WORKSPACE", 28000)
    monkeypatch.setattr(tensor, "MIN_BLOCK", 32)
    a, b, out = integers(130, 20), integers(20, 40, seed=2), np.empty((130, 40), order="F")
    with small_kernels(cluster=1, moduli=1):
        pyblasgpu.gemm(a, b, out=out, method="tensor")
    assert families().count("combine_residues") == 6
    np.testing.assert_array_equal(out, a @ b)


def check_triangle(letter: str, routine: str, lower: bool, n: int, k: int, **options: object) -> None:
    """A triangle of C of integers, exact; beyond it nothing is written, of a Hermitian diagonal no imaginary
    part read. The last row is for FMAs.
    """
    a, c = integers(n, k), integers(n, n, seed=3)
    if letter == "z":
        a, c = a + 1j * integers(n, k, seed=4), c + 1j * integers(n, n, seed=5)
    else:
        a[-1, 3] = np.nan
    hermitian = routine == "herk"
    product_of_all = a @ (a.conj().T if hermitian else a.T)
    mine = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    if hermitian:
        before = np.where(np.eye(n, dtype=bool), c.real, c)
        c = np.where(np.eye(n, dtype=bool), c.real + complex(0, np.nan), c)
    else:
        before = c
    out = np.asfortranarray(c)
    with pyblasgpu.set_math_mode("tensor"):
        getattr(pyblasgpu, routine)(a, alpha=2.0, beta=-1.0, out=out, lower=lower, **options)
    np.testing.assert_array_equal(out[mine], (2 * product_of_all - before)[mine])
    np.testing.assert_array_equal(out[~mine], c[~mine])


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("letter", "routine", "lower", "n"),
    [("d", "syrk", True, 70), ("z", "herk", False, 34), ("z", "syrk", True, 9)],
)
def test_triangles(letter, routine, lower, n):
    with small_kernels(letter, moduli=2):
        check_triangle(letter, routine, lower, n, 20)
    assert set(families()) >= KERNELS
    # one operand is packed once, and so are its rows beside the diagonal
    assert families().count("pack_residues") == (1 if routine == "syrk" else 2)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("lower", "n", "limit", "count"), [(True, 190, 70000, 3), (False, 130, 41500, 6)])
def test_blocks_of_a_triangle(lower, n, limit, count, monkeypatch):
    """With little workspace: columns of one image, or rows of blocks with ordinary ones beside them."""
    monkeypatch.setattr(tensor, "MOST_WORKSPACE", limit)
    monkeypatch.setattr(tensor, "MIN_BLOCK", 64)
    with small_kernels(cluster=1, moduli=1):
        check_triangle("d", "syrk", lower, n, 9)
    assert families().count("combine_residues") == count
