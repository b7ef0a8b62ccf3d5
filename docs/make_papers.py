"""Write the tables and figures of the papers' pages from the results of studies and of benchmarks.

``python docs/make_papers.py [FOLDER]`` after new results; the figures need Matplotlib. Results in the
folder are added first: rows of studies take the place of those of the same cases. Markers of a page surround
the tables of one script of `tuning/papers`, or of a table of `paper_tables`, of all devices with results.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent / "figures"))

import paper_tables
from paper_tables import FILES, NOTHING, markdown

from pyblasgpu.bench.command import slug
from pyblasgpu.bench.machine import short_commit
from pyblasgpu.types import DTYPES
from tuning.papers import (
    atlas,
    cache_edge,
    kblas,
    kblas_figure9,
    kurzak_timed,
    li,
    matsumoto,
    plasma,
    reads,
    steinsland,
    three_products,
)
from tuning.papers.study import Study, draw

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "tuning" / "papers" / "results"
PAGES, IMAGES = DOCS / "papers", DOCS / "images" / "papers"
STUDIES = {
    each.STUDY.name: each.STUDY
    for each in (
        kurzak_timed,
        reads,
        three_products,
        steinsland,
        matsumoto,
        atlas,
        plasma,
        cache_edge,
        li,
        kblas,
        kblas_figure9,
    )
}
#: Figures of which others show the same.
LEFT_OUT = re.compile(r"atlas|plasma|steinsland_.*_tn|steinsland_[cz].*")
#: Files of benchmarks that pages of papers alone show.
BENCHMARKS = ("variants", "l1_size", "counters", "host_share")
#: Names of the facts that distinguish rows of a study.
CASE = ("routine", "dtype", "layout", "figure", "who", "algorithm", "raster", "extents", "n")
MARKED = re.compile(r"(<!-- docs/make_papers\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def results_of(study: Study) -> list[dict[str, Any]]:
    """What was recorded, a device each, the newest last."""
    records = [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"*/{study.name}.json"))]
    return sorted(records, key=lambda made: (made.get("date") or "", made["device"]))


def page(text: str) -> str:
    """A page with its tables as they are now."""
    return MARKED.sub(lambda match: match[1] + "\n".join(lines_of(match[2])) + match[3], text)


def lines_of(name: str) -> Iterator[str]:
    """The lines between the markers of this name."""
    yield from section(STUDIES[name]) if name in STUDIES else (*FILES[name](), "")


def section(study: Study) -> Iterator[str]:
    """The lines between two markers: tables of each device and commit, then the figures of the newest."""
    recorded = results_of(study)
    if not recorded:
        yield from ("", NOTHING, "")
    for part in (part for made in recorded for part in by_commit(made)):
        options = study.parse(["--dtype", ",".join(DTYPES)])
        for table in study.tables(part, options):
            yield from ("", f"{table.title}, at {short_commit(part['commit'])}:", "", *markdown(table))
    names = [figure.name for figure in _figures(study, recorded)]
    yield from ("", *(f"![{name}](../images/papers/{name}.svg)" for name in names)) if names else ()
    yield from ("", "")


def by_commit(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The results of each commit: a row of an older run has its own."""
    commits = [row.get("commit", made["commit"]) for row in made["results"]]
    for commit in dict.fromkeys(commits):
        rows = [row for row, of in zip(made["results"], commits, strict=True) if of == commit]
        yield {**made, "commit": commit, "results": rows}


def _figures(study: Study, recorded: list[dict[str, Any]]) -> list[Any]:
    """Return the figures with curves that are shown."""
    figures = study.figures(recorded[-1], study.parse(["--dtype", ",".join(DTYPES)])) if recorded else []
    shown = (figure for figure in figures if not LEFT_OUT.fullmatch(figure.name))
    return [figure for figure in shown if any(figure.curves.values())]


def case_of(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a row is of, not what was measured."""
    return tuple((name, str(row[name])) for name in CASE if name in row)


def joined(before: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """A newer run of a study with the rows of an older one that it lacks; each of these names its commit."""
    merged = dict(made)
    for name, rows in before.items():
        if isinstance(rows, list):
            newer = made.get(name, [])
            cases = {case_of(row) for row in newer}
            kept = [{"commit": before["commit"], **row} for row in rows if case_of(row) not in cases]
            merged[name] = [*kept, *newer]
    return merged


def add(folder: Path) -> None:
    """Add results in a folder to those of their devices: of studies, and of benchmarks that pages show.

    Those of a processor go by its number of cores.

    A run of a tree without history names no commit: then ``PYBLASGPU_COMMIT`` does.
    """
    for file in sorted(folder.glob("*.json")):
        made = json.loads(file.read_text())
        made["commit"] = made.get("commit") or os.environ.get("PYBLASGPU_COMMIT")
        if made.get("paper") in STUDIES:
            path = RESULTS / made["device"].lower().replace(" ", "_") / f"{made['paper']}.json"
            made = joined(json.loads(path.read_text()), made) if path.exists() else made
        elif file.stem == "cpu":
            name = f"{slug(made['processor'])}-{made['cores']}".replace("-", "_")
            path = RESULTS / name / file.name
        elif file.stem in BENCHMARKS:
            name = f"{made['date'][:10]}-{made['commit'][:7]}-{file.stem.replace('_', '-')}.json"
            path = paper_tables.BENCHMARKS / slug(made["device"]) / name
        else:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    """Write pages and figures; returns the exit code."""
    for folder in arguments:
        add(Path(folder))
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for study in STUDIES.values():
        for figure in _figures(study, results_of(study)):
            draw(IMAGES, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
