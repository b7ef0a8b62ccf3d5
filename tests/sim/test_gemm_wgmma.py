"""SGEMM by pairs of FP16 in the simulator: images, products, and the tiles that are left to FMAs."""

from __future__ import annotations

import numpy as np
import pytest
from region_mask import mask

from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.gemm.wgmma import equilibrate, guarded, pack_halves, product
from pyblasgpu.types import Region

from .wgmma_launching import BLK_K, PANEL, multiply, multiply_flagged, pack, powers_of

U = 2.0**-24


def normal(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def lying(x: np.ndarray, by_rows: bool, gap: int = 0) -> np.ndarray:
    """A batch of (extent, k), with neighbours along the extent (else along k) adjacent, amid NaN."""
    batch, extent, k = x.shape
    shape = (batch, k, extent + gap) if by_rows else (batch, extent, k + gap)
    memory = np.full(shape, np.nan, np.float32)
    view = memory.transpose(0, 2, 1)[:, :extent] if by_rows else memory[:, :, :k]
    view[...] = x
    return view


def check_pack(extent=19, k=70, by_rows=False, gap=0, batch=1, blk_k=BLK_K, kernels=pack_halves) -> None:
    """All elements of two operands that lie unlike come back, the padding is zero, scales are right, and
    nothing is flagged.
    """
    graded = [
        normal(count, rows, k, seed=rows) * np.float32(2) ** (np.arange(rows, dtype=np.float32) % 40)[:, None]
        for count, rows in ((batch, extent), (1, 70))
    ]
    lie = [lying(x, way, gap) for x, way in zip(graded, (by_rows, not by_rows), strict=True)]
    for x, packed in zip(graded, pack(*lie, kernels=kernels, blk_k=blk_k), strict=True):
        check_image(x, packed)


def check_image(x, packed) -> None:
    values, (batch, extent, k), blk_k = packed.values(), x.shape, packed.image.blk_k
    assert (packed.flags == 0).all()
    np.testing.assert_array_less(np.abs(values[:, :extent, :k] - x), np.abs(x) * 2.0**-22)
    assert not values[:, extent:].any() and not values[:, :, k:].any()
    largest = np.abs(values.reshape(*values.shape[:2], -1, blk_k)).max(axis=3)  # batch, row, block
    exponents = np.where(largest > 0, np.frexp(largest)[1] - 16, 0)
    exponents += largest * 2.0**-exponents > 65504
    scales = packed.scales.reshape(batch, packed.image.panels, -1, PANEL).transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(scales.reshape(batch, -1, packed.image.blocks), 2.0**exponents)


@pytest.mark.parametrize(
    ("by_rows", "k", "gap", "blk_k"),
    [
        (False, 70, 0, 64),
        (True, 128, 0, 32),
        (False, 128, 1, 64),
        (True, 128, 1, 64),
        (True, 5, 3, 64),
        (False, 260, 0, 256),
    ],
)
def test_operands_are_split_and_packed(by_rows, k, gap, blk_k):
    check_pack(k=k, by_rows=by_rows, gap=gap, batch=2, blk_k=blk_k)


def check_complex_pack(conjs, by_rows=False, kernels=pack_halves) -> None:
    """Complex operands are packed as real matrices whose product is that of the complex ones."""
    k = 35 if by_rows else 64
    a, b = (normal(2, rows, k) + 1j * normal(2, rows, k, seed=5) for rows in (34, 17))
    lie = [complex_lying(x, by_rows) for x in (a, b)]
    left, right = (x.values() for x in pack(*lie, kernels=kernels, conjs=conjs))
    a, b = (x.conj() if conj else x for x, conj in zip((a, b), conjs, strict=True))
    expanded = np.stack([np.stack([a.real, -a.imag], -1), np.stack([a.imag, a.real], -1)], 2)
    alternating = np.stack([b.real, b.imag], -1)
    for actual, x in ((left, expanded.reshape(2, 68, -1)), (right, alternating.reshape(2, 17, -1))):
        np.testing.assert_array_less(np.abs(actual[:, : x.shape[1], : 2 * k] - x), np.abs(x) * 2.0**-22)
        assert not actual[:, x.shape[1] :].any() and not actual[:, :, 2 * k :].any()


def complex_lying(x: np.ndarray, by_rows: bool) -> np.ndarray:
    x = x.astype(np.complex64)
    return np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1) if by_rows else x


@pytest.mark.parametrize(("conjs", "by_rows"), [((False, True), False), ((True, False), True)])
def test_complex_operands_are_packed_as_real_ones(conjs, by_rows):
    check_complex_pack(conjs, by_rows)


def check_equilibrated(dtype=np.float32, kernels=equilibrate, packs=pack_halves) -> None:
    """Powers bring A D and D^-1 B to one size, the more so the more they differ; images are those of the
    products, and without flags. Where a row or column tells nothing the powers are 1.
    """
    k, rng = 70, np.random.default_rng(9)
    grade = np.float32(2) ** rng.integers(-20, 21, k).astype(np.float32)
    a, b = normal(67, k).astype(dtype) * grade, normal(17, k, seed=4).astype(dtype) / grade
    if np.iscomplexobj(a):
        a, b = a.imag + 1j * a.real, b.imag + 1j * b.real  # all of it in the second part
    a[:, 3], b[:, 4], a[0, 5] = 0, 0, np.inf
    a, b = a.astype(dtype), np.asfortranarray(b.astype(dtype))
    of_a, of_b = powers_of(a, b, kernels)
    assert (of_a * of_b == 1).all() and (of_a[3:6] == 1).all()
    others = np.delete(np.arange(k), [3, 4, 5])
    sizes = [abs(x[:, others] * p[others]).max(axis=0) for x, p in ((a, of_a), (b, of_b))]
    assert (sizes[0] / sizes[1] > 0.02).all() and (sizes[0] / sizes[1] < 50).all()
    a[0, 5] = 0
    operands = pack(a[None], b[None], kernels=packs, powers=np.stack([of_a, of_b]))
    if dtype is np.float32:
        for packed, x in zip(operands, (a * of_a, b * of_b), strict=True):
            assert not packed.flags.any()
            values = packed.values()[0, : len(x), :k]
            np.testing.assert_array_less(np.abs(values - x), np.abs(x) * 2.0**-21 + (x == 0))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_operands_are_equilibrated(dtype):
    check_equilibrated(dtype)


def check_triangle(region=Region.LOWER, n=72, cluster=1, kernels=product) -> None:
    """A triangle of C is computed, and nothing else of it read or written."""
    a, b = normal(1, n, 64), normal(1, n, 64, seed=4)
    mine = mask(region, n, n)
    c = np.ascontiguousarray(np.where(mine, normal(1, n, n, seed=5), np.float32(77)).swapaxes(1, 2))
    before = c.copy()
    multiply(*pack(a, b), c, 1.0, 2.0, kernels=kernels, cluster=cluster, region=region)
    actual, exact = c[0].T, a[0].astype(float) @ b[0].T + 2 * before[0].T
    sizes = abs(a[0].astype(float)) @ abs(b[0].T) + 2 * abs(before[0].T)
    assert (np.abs(actual - exact) <= 66 * U * sizes)[mine].all() and (actual[~mine] == 77).all()


@pytest.mark.parametrize(
    ("region", "n", "cluster"), [(Region.LOWER, 72, 1), (Region.UPPER, 72, 2), (Region.LOWER, 130, 2)]
)
def test_triangles(region, n, cluster):
    check_triangle(region, n, cluster)


NOT_HELD = {
    "nan": lambda x: x.__setitem__((0, 47, 258), np.nan),
    "inf": lambda x: x.__setitem__((0, 47, 258), np.inf),
    "tiny": lambda x: x.__setitem__((0, 47, 258), 2.0**-31),
    "subnormal": lambda x: x.__setitem__((0, 47, 258), 2.0**-140),
    "vanishing": lambda x: x.__setitem__((0, 47, slice(256, None)), [2.0**51] + [2.0**-140] * 3),
    "too_large": lambda x: x.__setitem__((0, 47, slice(256, None)), 2.0**52),
    "too_small": lambda x: x.__setitem__((0, 47, slice(256, None)), 2.0**-49),
}


def check_not_held(what: str, by_rows=False, kernels=pack_halves) -> None:
    """The flag of the unit is set, and no other: of a panel's second block of 256 k, rows 32 to 63."""
    x = np.ones((1, 48, 260), np.float32)
    NOT_HELD[what](x)
    flags = pack(lying(x, by_rows), np.ones((1, 5, 260), np.float32), kernels=kernels, blk_k=256)[0].flags
    assert np.flatnonzero(flags).tolist() == [3] and flags.size == 4


@pytest.mark.parametrize(("what", "by_rows"), [(what, i % 2 == 0) for i, what in enumerate(NOT_HELD)])
def test_what_pairs_cannot_hold_is_flagged(what, by_rows):
    check_not_held(what, by_rows)


@pytest.mark.parametrize("value", [2.0**-20, 1 + 2.0**-23, 2.0**-28, 65519 / 2**14, 65535 / 2**15, 0.0, -1.5])
def test_what_pairs_hold_is_not_flagged(value):
    check_held(value)


def check_held(value, kernels=pack_halves) -> None:
    """Powers of two far below the largest element, all bits of a float32, what rounds to the next power."""
    x = np.ones((1, 16, 64), np.float32)
    x[0, 3, 5] = value
    packed, _ = pack(x, x, kernels=kernels)
    assert not packed.flags.any() and packed.values()[0, 3, 5] == np.float32(value)


def check(
    m=70,
    n=19,
    k=134,
    alpha=1.0,
    beta=0.0,
    batch=1,
    shared_b=False,
    blocks=2,
    gap=0,
    cluster=1,
    ordered=False,
    blk_k=BLK_K,
    kernels=product,
):
    """A product of normal numbers is within the bound of FP32's; padding of C and what is not read is NaN."""
    a, b = normal(batch, m, k), normal(1 if shared_b else batch, n, k, seed=4)
    memory = np.full((batch, n, m + gap), np.nan, np.float32)
    c, before = memory[:, :, :m], normal(batch, n, m, seed=5)
    if beta:
        c[...] = before
    packed = pack(a, b, blk_k=blk_k, panel=128 if ordered else PANEL)
    multiply(*packed, c, alpha, beta, blocks, kernels, cluster=cluster, ordered=ordered)
    exact = alpha * np.einsum("zik,zjk->zji", a.astype(float), b.astype(float))
    sizes = abs(alpha) * np.einsum("zik,zjk->zji", abs(a).astype(float), abs(b).astype(float))
    if beta:
        exact, sizes = exact + beta * before, sizes + abs(beta * before)
    assert (np.abs(c - exact) <= (k + 2) * U * sizes).all()
    assert np.isnan(memory[:, :, m:]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"n": 17},
        {"m": 65, "n": 9, "alpha": -2.5, "beta": 0.5, "gap": 3},
        {"m": 3, "n": 2, "k": 5},
        {"m": 66, "n": 33, "k": 64, "blocks": 4},
        {"m": 130, "n": 20, "k": 70, "cluster": 2},
        {"batch": 2, "shared_b": True, "m": 65, "n": 17, "k": 65},
        {"m": 130, "n": 20, "k": 70, "ordered": True, "blk_k": 32},
        {"m": 20, "k": 300, "blk_k": 256},
    ],
)
def test_products(options):
    check(**options)


def check_complex_scalars(kernels=product) -> None:
    """With a complex alpha and beta rows of C are real and imaginary parts in turn."""
    m, n, k, alpha, beta = 64, 32, 40, 1.5 - 0.5j, 2 + 1j
    a, b = (normal(1, rows, k) + 1j * normal(1, rows, k, seed=5) for rows in (m // 2, n))
    before = (normal(1, n, m // 2) + 1j * normal(1, n, m // 2, seed=7)).astype(np.complex64)
    c = before.copy()
    multiply(
        *pack(a.astype(np.complex64), b.astype(np.complex64)),
        c.view(np.float32),
        alpha,
        beta,
        kernels=kernels,
    )
    exact = alpha * np.einsum("zik,zjk->zji", a, b) + beta * before
    assert np.abs(c - exact).max() <= 400 * U


def test_complex_scalars():
    check_complex_scalars()


def check_flagged(cluster=1, kernels=product) -> None:
    """A tile of which an operand is flagged is left alone; the others are computed."""
    a, b = normal(1, 66, 66), normal(1, 66, 66, seed=4)
    a[0, 65, 65], b[0, 65, 1] = np.inf, np.nan
    c = np.full((1, 66, 66), 77, np.float32)
    multiply(*pack(a, b), c, kernels=kernels, cluster=cluster)
    left = np.zeros((66, 66), bool)
    left[:, 64:] = left[64:] = True
    assert (c[0][left] == 77).all() and (c[0][~left] != 77).all()


@pytest.mark.parametrize("cluster", [1, 2])
def test_flagged_tiles_are_left(cluster):
    check_flagged(cluster)


def check_guarded(trans_a=False, trans_b=False, kernels=guarded) -> None:
    """All of a product with NaN, Inf, and rows of any range is what FP32 makes of it, componentwise."""
    a, b = normal(1, 70, 66), normal(1, 67, 66, seed=4)
    a[0, 68] *= np.float32(10) ** np.linspace(-30, 30, 66).astype(np.float32)
    a[0, 69, 5], b[0, 66, 1] = np.inf, np.nan
    c = np.full((1, 67, 70), np.nan, np.float32)
    packed = pack(a, b)
    multiply(*packed, c, 2.0)
    left = a if trans_a else a.transpose(0, 2, 1).copy()
    right = b.transpose(0, 2, 1).copy() if trans_b else b
    multiply_flagged(
        tuple(x.flags for x in packed), left, right, c, 2.0, kernels=kernels, trans=(trans_a, trans_b)
    )
    with np.errstate(invalid="ignore"):
        exact = 2 * np.einsum("zik,zjk->zji", a.astype(float), b.astype(float))
        sizes = 2 * np.einsum("zik,zjk->zji", abs(a).astype(float), abs(b).astype(float))
        within = (np.abs(c - exact) <= 68 * U * sizes) | (c == exact) | (np.isnan(c) & np.isnan(exact))
    assert within.all() and np.isnan(c[0, 66]).all() and np.isinf(np.delete(c[0, :, 69], 66)).all()


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_flagged_tiles_are_multiplied_by_fmas(trans_a, trans_b):
    check_guarded(trans_a, trans_b)


def test_equal_operands_give_equal_bits_whatever_runs_first():
    a, b = pack(normal(1, 70, 70), normal(1, 30, 70))
    results = []
    for seed, blocks in enumerate((1, 3, 4)):
        simulator.reseed(seed)
        c = np.full((1, 30, 70), np.nan, np.float32)
        multiply(a, b, c, blocks=blocks, stages=2 + seed)
        results.append(c)
    assert all((c == results[0]).all() for c in results)
