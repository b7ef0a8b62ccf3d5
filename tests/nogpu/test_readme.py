"""README's examples run, and links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
#: The notebook keeps the links of its time.
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "history" not in page.parts),
]


def test_examples_run(monkeypatch):
    """On the CPU backend: NumPy stands in for CuPy, whose names README's example uses."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setitem(sys.modules, "cupy", np)
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        exec(example, {})


def test_it_is_short():
    assert len(README.read_text().splitlines()) < 120


def test_it_names_the_commands_of_the_makefile():
    """CI calls what README says."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^make (\S+)", README.read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not _leads_somewhere(page, link)]
    assert not missing


def _leads_somewhere(page: Path, link: str) -> bool:
    if "/gallery/" in f"/{link}":  # made from examples/ when the site is built
        return (ROOT / "examples" / f"{link.rsplit('/', 1)[1]}.py").exists()
    return (page.parent / link).exists()
