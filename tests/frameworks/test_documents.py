"""Examples of docstrings and the code of the guide, which need PyTorch or JAX."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from importlib.util import find_spec

import documents
import pytest

MODULES = {name: import_module(f"pyblasgpu.{name}") for name in ("torch", "jax") if find_spec(name)}
DOCUMENTED = {
    f"{library} {name}": getattr(each, name) for library, each in MODULES.items() for name in each.__all__
}
if "torch" in MODULES:
    import pyblasgpu
    from pyblasgpu.torch_patch.switch import TorchPatch

    patches = pyblasgpu.patch_torch, pyblasgpu.unpatch_torch, TorchPatch
    DOCUMENTED |= {f"torch {each.__name__}": each for each in patches}


@pytest.fixture(autouse=True)
def precisions():
    """JAX's own at first, and after a test those of before."""
    if "jax" not in MODULES:
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_of_docstrings_run(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    (example,) = finder.find(DOCUMENTED[name], name)
    assert example.examples or issubclass(DOCUMENTED[name], tuple)
    assert not runner.run(example).failed


PAGES = [
    (library, page)
    for library in MODULES
    for page in documents.with_code()
    if f"import {library}\n" in page.read_text()
]


@pytest.mark.parametrize(("library", "page"), PAGES, ids=[f"{each}-{page.stem}" for each, page in PAGES])
def test_code_of_pages_runs(library, page):
    documents.run(page, gpu=False)


@pytest.mark.parametrize("library", MODULES)
def test_the_page_of_the_api_has_the_functions(library):
    text = (documents.ROOT / "docs" / "api" / f"{library}.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)[`(]", row.split("|")[1])]
    assert sorted(named) == sorted(MODULES[library].__all__)
