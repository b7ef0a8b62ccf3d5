"""The papers' pages hold what was recorded."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from rich.table import Table

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "papers").glob("*.md"))


@pytest.fixture(scope="module")
def papers():
    spec = spec_from_file_location("make_papers", DOCS / "make_papers.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_tables_are_those_of_the_results(papers, path):
    """`python docs/make_papers.py` after new results."""
    text = path.read_text()
    assert papers.page(text) == text


def test_each_table_has_a_place_on_one_page(papers):
    names = [name for path in PAGES for _, name, _ in papers.MARKED.findall(path.read_text())]
    assert sorted(names) == sorted([*papers.STUDIES, *papers.FILES])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_figures_are_there(path):
    for name in re.findall(r"!\[\w+\]\(\.\./(images/papers/\w+\.svg)\)", path.read_text()):
        assert (DOCS / name).exists()


def test_a_table_becomes_markdown(papers):
    table = Table("n", "rate")
    table.add_row("1", "2.0")
    assert list(papers.markdown(table)) == ["| n | rate |", "|---|---|", "| 1 | 2.0 |"]
