"""README is short, its commands exist, and links of all pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import documents
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [*documents.DOCUMENTS, ROOT / "CHANGELOG.md"]


def test_it_is_short():
    assert len(README.read_text().splitlines()) <= 120


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", ".github/workflows/ci.yml"])
def test_commands_are_those_of_the_makefile(page):
    """CI calls what README and CONTRIBUTING say: `make test` is lint and both suites."""
    makefile, text = (ROOT / "Makefile").read_text(), (ROOT / page).read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`|run: )make ([\w-]+)", text, re.MULTILINE))
    if "test-" in named:  # completed by CI's matrix
        (suites,) = re.findall(r"suite: \[(.*)\]", text)
        named = named - {"test-"} | {f"test-{suite}" for suite in suites.split(", ")}
    assert named and named <= targets
    if page.endswith("ci.yml"):
        (parts,) = re.findall(r"^test: (.*)", makefile, re.MULTILINE)
        assert set(parts.split()) <= named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not _leads_somewhere(page, link)]
    assert not missing


def _leads_somewhere(page: Path, link: str) -> bool:
    if "/gallery/" in f"/{link}":  # made from examples/ when the site is built
        return (ROOT / "examples" / f"{link.rsplit('/', 1)[1]}.py").exists()
    return (page.parent / link).exists()
