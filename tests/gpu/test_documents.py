"""The code of pages and of README runs on a card, with CuPy."""

from __future__ import annotations

import documents
import pytest


@pytest.mark.parametrize(
    "page", documents.with_code(), ids=lambda page: page.relative_to(documents.ROOT).as_posix()
)
def test_code_runs_from_the_top_to_the_bottom(page):
    if "import dask" in page.read_text():
        pytest.importorskip("dask", reason="needs the extra dask")
    assert not documents.run(page, gpu=True)
