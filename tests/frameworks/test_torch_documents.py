"""Examples of docstrings and the code of the guide, which need PyTorch."""

from __future__ import annotations

import doctest
import re

import documents
import pytest

import pyblasgpu
import pyblasgpu.torch as ours
from pyblasgpu.torch_patch.switch import TorchPatch

DOCUMENTED = {
    **{name: getattr(ours, name) for name in ours.__all__},
    **{each.__name__: each for each in (pyblasgpu.patch_torch, pyblasgpu.unpatch_torch, TorchPatch)},
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_of_docstrings_run(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    (example,) = finder.find(DOCUMENTED[name], name)
    assert example.examples
    assert not runner.run(example).failed


@pytest.mark.parametrize(
    "page", [page for page in documents.with_code() if "import torch" in page.read_text()]
)
def test_code_of_pages_runs(page):
    documents.run(page, gpu=False)


def test_the_page_of_the_api_has_the_functions():
    text = (documents.ROOT / "docs" / "api" / "torch.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)[`(]", row.split("|")[1])]
    assert sorted(named) == ours.__all__
