"""The raster of products: an override's, the user's tuned value, the packaged one, or the kernels'."""

from __future__ import annotations

import pytest

from pyblasgpu import override
from pyblasgpu.database import Document, difference, dumps, parse, read
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.gemm import raster_of
from pyblasgpu.gpu.device import known
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
