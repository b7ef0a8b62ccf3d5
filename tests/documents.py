"""The Python code of pages, run from the top to the bottom in one namespace.

A block after a line ``<!-- needs a GPU: REASON -->`` is run where there is one, and skipped elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: Made pages: those of the gallery are examples, which have tests of their own.
MADE = {"_build", "gallery", "generated"}
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not MADE & set(page.parts)),
]
BLOCK = re.compile(
    r"^(?:<!-- needs a GPU: (?P<reason>[^\n]+) -->\n)?```python\n(?P<code>.*?)^```", re.M | re.S
)


class Block(NamedTuple):
    """Code, the lines before it, and why it needs a GPU; empty where it does not."""

    code: str
    line: int
    reason: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of Python code of a page."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        yield Block(match["code"], line, match["reason"] or "")


def with_code() -> list[Path]:
    """The pages that have Python code."""
    return [page for page in DOCUMENTS if any(blocks(page))]


def run(page: Path, gpu: bool) -> list[str]:
    """Run a page; returns the reasons for which blocks were skipped."""
    namespace: dict[str, Any] = {"__name__": "document"}
    skipped = []
    for code, line, reason in blocks(page):
        if reason and not gpu:
            skipped.append(reason)
        else:  # errors name the page and its line
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
    return skipped
