"""Figures in sentences of the papers' pages are those of the committed results, or of the papers."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from itertools import chain

import pytest
from paper_results import H100, H200, ROOT, study
from paper_sentences import PAGES, THEIRS

from tuning.papers import recorded

SENTENCES = [pytest.param(page, made, id=made.__name__) for page, each in PAGES.items() for made in each]
FIGURE = re.compile(r"\d[\d,]*\.\d+|\d+ (?:%|(?:[TG]FLOP/s|[TGM]B(?:/s)?|m?s|µs|times|of \d+)\b)")
MADE = re.compile(r"<!-- docs/make_papers\.py: \w+ -->.*?<!-- end -->", re.DOTALL)


@cache
def sentences_of(made):
    return list(made())


def page_text(page: str) -> str:
    return (ROOT / "docs" / "papers" / f"{page}.md").read_text()


@pytest.mark.parametrize("page, made", SENTENCES)
def test_sentences_have_the_figures_of_the_results(page, made):
    text = " ".join(page_text(page).split())
    expected = sentences_of(made)
    assert expected and [sentence for sentence in expected if sentence not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_figure_is_recomputed_or_the_papers_own(page):
    """Tables between markers are `test_papers_pages`'; code and links are no claims."""
    text = " ".join(MADE.sub("", page_text(page)).split())
    sentences = chain(*map(sentences_of, PAGES[page]), THEIRS[page])
    for sentence in sorted(sentences, key=len, reverse=True):
        text = text.replace(sentence, "")
    text = re.sub(r"\]\([^)]*\)", "", re.sub(r"`[^`]*`", "", text))
    left = [text[max(found.start() - 40, 0) : found.end() + 20] for found in FIGURE.finditer(text)]
    assert left == []


@pytest.mark.parametrize("card", [H200, H100])
def test_what_sweeps_answer_is_of_the_packaged_sweeps(card):
    """`python tuning/papers/recorded.py --out tuning/papers/results` after a new sweep."""
    made = study("recorded", card)
    assert made["sha256"] == sha256((recorded.SWEEPS / made["sweep"]).read_bytes()).hexdigest()
