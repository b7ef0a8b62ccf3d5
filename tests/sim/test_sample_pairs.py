"""Tiles sampled by residues in the simulator, by which a large DGEMM is refused before it is packed."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.int8 import sample_pairs

from .launching import run, strides
from .test_gemm_int8 import lying, normal


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
