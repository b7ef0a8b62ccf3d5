"""Whether L2 is asked for C ahead: as an override says, and as kernels are told."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu import override
from pyblasgpu.dispatch.gemm import prefetches_c
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.common.options import PREFETCH_C, options_of

H200 = known("h200")


@pytest.mark.parametrize("prefetch", [False, True])
def test_an_override_decides(prefetch):
    with override("prefetch_c", prefetch):
        assert [prefetches_c(k, True, H200) for k in (1, 64, 10000)] == 3 * [prefetch]
        assert not prefetches_c(64, False, H200)


def test_short_sums_ask_where_c_is_read():
    assert [prefetches_c(k, True, H200) for k in (1, 64, 512, 513, 1 << 16)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not prefetches_c(64, False, H200)


def test_it_is_a_bit_of_its_own():
    others = options_of(conj=True, unit=True, zero=True, mirrored=True, by_rows=True, raster=256)
    assert options_of(prefetch_c=True) == PREFETCH_C and not others & PREFETCH_C
    assert np.int32(options_of(prefetch_c=True, raster=256)) > 0
