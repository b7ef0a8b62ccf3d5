"""Tiles sampled by residues in the simulator, by which a large DGEMM is refused before it is packed."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.int8 import guarded, product, sample_pairs

from .int8_launching import multiply, pack
from .launching import run, strides
from .test_gemm_int8 import LOADS, TILE, lying, normal


def check_verdicts(
    by_rows=False, gap=0, k=450, m=400, n=50, chosen=slice(None), kernels=sample_pairs
) -> None:
    """None for normal data, all for data of a wide range, else those with such a row, or with NaN; of these
    cases the `chosen`.
    """
    places = np.arange(8)  # blocks, the first ones
    rows = places * (m - kernels.EDGE) // (kernels.BLOCKS - 1)
    cols = places * kernels.SCATTER % kernels.BLOCKS * (n - kernels.EDGE) // (kernels.BLOCKS - 1)
    a, b = normal(m, k), normal(n, k, seed=2)
    a[:, kernels.DEPTH : 2 * kernels.DEPTH] = b[:, kernels.DEPTH : 2 * kernels.DEPTH] = np.nan  # not sampled
    wide = a.copy()
    wide[30] = np.exp(6 * a[30])
    late = np.where(np.arange(k) % kernels.DEPTH > kernels.DEPTH // 2, a, 0)
    unread = a.copy()
    unread[30, 5] = np.nan
    bad = b.copy()
    bad[11, 5] = np.nan
    everywhere = a * np.exp(8 * normal(m, k, seed=5))
    cases = (
        (late, b, places < 0),
        (everywhere, b, places >= 0),
        (wide, b, (rows <= 30) & (rows + kernels.EDGE > 30)),
        (unread, b, (rows <= 30) & (rows + kernels.EDGE > 30)),
        (a, bad, (cols <= 11) & (cols + kernels.EDGE > 11)),
    )
    config = kernels.SamplePairs(every=3, sample=1)
    for left, right, expected in cases[chosen]:
        x, y = lying(left, by_rows, gap), lying(right, not by_rows, gap)
        verdicts = np.full(len(places), -1, np.int32)
        options = (options_of(by_rows=abs(strides(each)[0]) < abs(strides(each)[1])) for each in (x, y))
        integers = m, n, k, *options, *strides(x), *strides(y)
        run(kernels.source(config), len(places), (x, y, verdicts), integers, ())
        np.testing.assert_array_equal(verdicts, expected)


@pytest.mark.parametrize(("by_rows", "gap", "k"), [(False, 0, 450), (True, 3, 520)])
def test_verdicts(by_rows, gap, k):
    check_verdicts(by_rows, gap, k)


# ------------------------------------------------------------------------------ what hopeless data are spared


def check_hopeless(kernels=product) -> None:
    """Where all verdicts are 1, digits are not read: all tiles have flags, and nothing is multiplied."""
    a, b = pack(np.ones((100, 20)), np.ones((20, 20)), moduli=1)
    assert (multiply(a, b, verdicts=[1] * 64, kernels=kernels).flags == 1).all()
    free = np.zeros((2, 4), np.int32)
    assert (multiply(a, b, free, verdicts=[1] * 64, kernels=kernels).residues == -1).all()
    others = multiply(a, b, verdicts=[1] * 63 + [0], kernels=kernels).flags
    np.testing.assert_array_equal(others, multiply(a, b, kernels=kernels).flags)
    assert (others == 0).any()


def test_nothing_is_multiplied_where_samples_serve_nothing():
    check_hopeless()


def check_shared(blocks=5, kernels=guarded) -> None:
    """Where all verdicts are 1, blocks after the others share the first tiles; each is computed once."""
    m, n, k = 70, 40, 100
    a, b, c = normal(k, m), normal(n, k, seed=2), normal(n, m, seed=3)
    config = kernels.GemmInt8Guarded(dtype="d", FLAG_M=64, FLAG_N=32, **TILE, **LOADS)
    tiles, k_tiles, before = config.grid(m, n), -(-k // config.BLK_K), c.copy()
    shared = tiles - 2
    flags, verdicts = np.ones((4, 4), np.int32), np.ones(64, np.int32)
    partials, ready = np.full((blocks, config.BLK_M * config.BLK_N), np.nan), np.zeros(blocks)
    schedule = 64, blocks, shared, *divmod(shared * k_tiles, blocks)
    integers = m, n, k, 0, 0, *schedule, strides(a)[0], strides(b)[0], strides(c)[0]
    arrays = flags, verdicts, a, b, c, partials, ready
    run(kernels.source(config), tiles + blocks, arrays, integers, (2.0, -1.0))
    np.testing.assert_allclose(c, 2 * (b @ a) - before, rtol=0, atol=1e-11)
    assert (ready == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [5, 2])
def test_tiles_are_shared(blocks):
    check_shared(blocks)
