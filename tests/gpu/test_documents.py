"""The code of pages, of README and of docstrings runs on a card, with CuPy."""

from __future__ import annotations

import documents
import pytest
from public import PUBLIC, failures_of_examples


@pytest.mark.parametrize(
    "page", documents.with_code(), ids=lambda page: page.relative_to(documents.ROOT).as_posix()
)
def test_code_runs_from_the_top_to_the_bottom(page):
    if "import dask" in page.read_text():
        pytest.importorskip("dask", reason="needs the extra dask")
    for package in ("torch", "jax"):
        if f"import {package}\n" in page.read_text():
            pytest.importorskip(package)
    assert not documents.run(page, gpu=True)


@pytest.mark.parametrize("name", [name for name in PUBLIC if "+SKIP" in str(PUBLIC[name].__doc__)])
def test_examples_of_docstrings_that_need_a_card(name):
    pytest.importorskip("cupy")
    assert not failures_of_examples(name, gpu=True)
