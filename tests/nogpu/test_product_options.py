"""Products that read C and ask L2 for it, and their raster: an override's, a tuned value, or the kernels'."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu import override
from pyblasgpu.database import Document, difference, dumps, parse, read
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.gemm import prefetches_c, raster_of
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.common.options import PREFETCH_C, options_of
from pyblasgpu.tuning.tuned_file_writer import merge
from pyblasgpu.tuning.wisdom import forget
from pyblasgpu.types import DTYPES

H200 = known("h200")


@pytest.fixture(autouse=True)
def fresh():
    choose.reload()
    yield
    choose.reload()


def test_what_is_tuned_comes_before_what_the_kernels_have():
    assert raster_of(DTYPES["d"], H200) == 0
    merge(Document(H200.name, rasters={"d": 16}))
    choose.reload()
    assert (raster_of(DTYPES["d"], H200), raster_of(DTYPES["s"], H200)) == (16, 0)
    assert raster_of(DTYPES["d"], known("a100")) == 0
    with override("raster", 0):
        assert raster_of(DTYPES["d"], H200) == 0
    with override("raster", 3):
        assert raster_of(DTYPES["s"], H200) == 3


def test_rasters_are_written_merged_and_forgotten():
    document = parse(dumps(Document(H200.name, rasters={"s": 4, "d": 16})).encode())
    assert document.rasters == {"s": 4, "d": 16} and len(document) == 2
    assert difference(document, Document("sm_90", rasters={"s": 4})).rasters == {"d": 16}
    merge(document)
    merge(Document(H200.name, rasters={"d": 2}))
    path = tuned_files.user_file(H200.name)
    assert read(path).rasters == {"s": 4, "d": 2}
    assert forget(H200.name, dtypes=("d",)) == 1 and read(path).rasters == {"s": 4}
    assert forget(H200.name) == 1 and not path.exists()


def chosen(letter, layout, extents, adds):
    return select("gemm", DTYPES[letter], layout, extents, H200, adds=adds).config


@pytest.mark.parametrize("layout", ["nn", "nt"])
@pytest.mark.parametrize("k", [32, 64, 128])
def test_updates_of_low_rank_have_several_blocks_a_multiprocessor(layout, k):
    assert chosen("d", layout, (8192, 8192 - k, k), True).min_blocks > 1


@pytest.mark.parametrize("n", [2048, 8192])
def test_long_sums_are_chosen_as_if_c_were_not_read(n):
    assert chosen("d", "nn", (n, n, n), True) == chosen("d", "nn", (n, n, n), False)


@pytest.mark.parametrize("letter", "scz")
def test_other_types_are_not_judged_by_it(letter):
    extents = 4096, 4032, 64
    assert chosen(letter, "nn", extents, True) == chosen(letter, "nn", extents, False)


@pytest.mark.parametrize("prefetch", [False, True])
def test_an_override_decides(prefetch):
    with override("prefetch_c", prefetch):
        assert [prefetches_c(k, True, H200) for k in (1, 64, 10000)] == 3 * [prefetch]
        assert not prefetches_c(64, False, H200)


def test_short_sums_ask_where_c_is_read():
    assert [prefetches_c(k, True, H200) for k in (1, 64, 512, 513, 1 << 16)] == [True] * 3 + [False] * 2
    assert not prefetches_c(64, False, H200)


def test_it_is_a_bit_of_its_own():
    others = options_of(conj=True, unit=True, zero=True, mirrored=True, by_rows=True, raster=256)
    assert options_of(prefetch_c=True) == PREFETCH_C and not others & PREFETCH_C
    assert np.int32(options_of(prefetch_c=True, raster=256)) > 0
