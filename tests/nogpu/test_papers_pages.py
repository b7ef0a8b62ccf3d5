"""The papers' pages hold what was recorded."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
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


def test_verdicts_are_counted_as_the_pages_have_them():
    counted = re.compile(r"\(papers/(\w+)\.md\).*\| ([\d, ]+) \|$", re.M)
    verdict = re.compile(r"^\| [A-Z]\d+ [^|]*\| ([^|]*) \|", re.M)
    found = {path.stem: Counter(verdict.findall(path.read_text())) for path in PAGES}
    ways = "works", "partly", "out of reach"
    listed = {name: ", ".join(str(of[way]) for way in ways) for name, of in found.items()}
    assert dict(counted.findall((DOCS / "papers.md").read_text())) == listed
    assert (
        sum(of[way] for of in found.values() for way in ways)
        == 94
        == sum(of.total() for of in found.values())
    )


def test_what_rows_lack_is_listed_for_each():
    """A row that works partly says on one page what it would work with."""
    section = (DOCS / "papers.md").read_text().partition("partly lack\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| ((?:[A-Z]\d+(?:, )?)+) \|", section, re.M)
    partly = re.compile(r"^\| ([A-Z]\d+) [^|]*\| partly \|", re.M)
    rows = [name for path in PAGES for name in partly.findall(path.read_text())]
    assert sorted(", ".join(listed).split(", ")) == sorted(rows)


FILE = re.compile(r"`(?:python )?((?:tests|tuning|benchmarks|pyblasgpu)/[\w/]+\.py)")
MODULE = re.compile(r"`python -m ([\w.]+)")
OTHERS = re.compile(r"`pyblasgpu \w|\]\((?!http)|^the same|^the table above$")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_row_names_a_test_a_script_or_a_page(path):
    rows = re.findall(r"^\| ([A-Z]\d+) [^|]*\| ([^|]*) \| (.*) \|$", path.read_text(), re.M)
    for name, verdict, how in rows:
        files = FILE.findall(how) + [f"{module.replace('.', '/')}.py" for module in MODULE.findall(how)]
        assert files or OTHERS.search(how) or verdict == "out of reach", name
        assert [file for file in files if not (DOCS.parent / file).exists()] == [], name


def test_a_table_becomes_markdown(papers):
    table = Table("n", "rate")
    table.add_row("1", "2.0")
    assert list(papers.markdown(table)) == ["| n | rate |", "|---|---|", "| 1 | 2.0 |"]


def rates(**of_case):
    return [
        {"dtype": x, "routine": "inverse", "n": 64, "ours": rate, "cublas": 1.0}
        for x, rate in of_case.items()
    ]


def test_new_results_take_the_place_of_those_of_the_same_cases(papers, tmp_path, monkeypatch):
    """Rows that stay name their commit; files of benchmarks are named by theirs, and others left alone."""
    monkeypatch.setattr(papers, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(papers.paper_tables, "BENCHMARKS", tmp_path / "benchmarks")
    l1_size = {"device": "A card", "date": "2026-01-01T08:00", "commit": "abcdef0123", "results": []}
    (tmp_path / "l1_size.json").write_text(json.dumps(l1_size))
    (tmp_path / "cpu.json").write_text(
        json.dumps({"processor": "A CPU", "cores": 16, "commit": "abcdef0123"})
    )
    facts = {"paper": "kblas_figure9", "device": "A card", "date": "2026-01-01"}
    for commit, results in (("aaa", rates(s=1.0, d=2.0)), ("bbb", rates(d=3.0, z=4.0))):
        (tmp_path / "kblas_figure9.json").write_text(
            json.dumps({**facts, "commit": commit, "results": results})
        )
        (tmp_path / "bench.json").write_text('{"device": "A card"}')
        papers.add(tmp_path)
    (path,) = (tmp_path / "results" / "a_card").glob("*.json")
    made = json.loads(path.read_text())
    assert [(row["dtype"], row["ours"], row.get("commit")) for row in made["results"]] == [
        ("s", 1.0, "aaa"),
        ("d", 3.0, None),
        ("z", 4.0, None),
    ]
    assert [part["commit"] for part in papers.by_commit(made)] == ["aaa", "bbb"]
    (path,) = (tmp_path / "benchmarks").glob("*/*.json")
    assert path.relative_to(tmp_path).as_posix() == "benchmarks/a-card/2026-01-01-abcdef0-l1-size.json"
    assert (tmp_path / "results" / "a_cpu_16" / "cpu.json").exists()


def test_variants_beside_gemm(papers, tmp_path, monkeypatch):
    tables = sys.modules["paper_tables"]
    monkeypatch.setattr(tables, "BENCHMARKS", tmp_path)
    (tmp_path / "a-card").mkdir()
    row = {"dtype": "d", "n": 64, "variant": "NN", "routine": "gemm", "tflops": 10.0}
    others = [
        {**row, "routine": "trsm", "variant": x, "tflops": rate} for x, rate in (("LL", 8.0), ("RU", 9.0))
    ]
    run = {"device": "A card", "commit": "abcdef0123+", "results": [row, *others]}
    (tmp_path / "a-card" / "2026-01-01-abcdef0-variants.json").write_text(json.dumps(run))
    lines = list(papers.lines_of("variants"))
    assert "| TRSM | LL | 8.0 (80%) |" in lines and "| GEMM | NN | 10.0 |" in lines
    assert any("abcdef0+" in line for line in lines)


def test_operations_of_the_processor(papers, tmp_path, monkeypatch):
    tables = sys.modules["paper_tables"]
    monkeypatch.setattr(tables, "STUDIES", tmp_path)
    (tmp_path / "a_cpu").mkdir()
    row = {"dtype": "d", "routine": "gemm", "n": 64, "peak": 4.0, "numba": 2.0, "scipy": 1.0}
    results = [row, {**row, "layout": "nn", "n": 128}, {**row, "layout": "tn", "numba": 3.0}]
    made = {"processor": "A CPU", "cores": 16, "commit": "abcdef0123", "results": results}
    (tmp_path / "a_cpu" / "cpu.json").write_text(json.dumps(made))
    lines = list(papers.lines_of("processor"))
    assert "A CPU, 16 cores, at abcdef0:" in lines
    assert "| dgemm | 0.50, 2.00 | 0.50, 2.00 |" in lines and "| dgemm TN | 0.75, 3.00 |  |" in lines


def test_the_size_of_l1(papers, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["paper_tables"], "BENCHMARKS", tmp_path)
    (tmp_path / "a-card").mkdir()
    results = [{"kib": kib, "cycles": cycles} for kib, cycles in ((64, 33.4), (128, 34.0), (256, 200.0))]
    run = {"device": "A card", "commit": "abcdef0123", "shared_kib": 228, "results": results}
    (tmp_path / "a-card" / "2026-01-01-abcdef0-l1-size.json").write_text(json.dumps(run))
    lines = list(papers.lines_of("l1_size"))
    assert "| cycles | 33 | 34 | 200 |" in lines and any("128 KiB found" in line for line in lines)


def test_products_that_the_host_shares(papers, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["paper_tables"], "BENCHMARKS", tmp_path)
    (tmp_path / "a-card").mkdir()
    results = [{"dtype": "d", "n": 9, "columns": columns, "ms": ms} for columns, ms in ((0, 6.0), (2, 4.0))]
    run = {"device": "A card", "commit": "abcdef0123", "results": results}
    (tmp_path / "a-card" / "2026-01-01-abcdef0-host-share.json").write_text(json.dumps(run))
    assert "| d 9 | 6.00 (1.00) | 4.00 (1.50) |" in papers.lines_of("host_share")


def test_bytes_of_a_run_without_trmm(papers, tmp_path, monkeypatch):
    tables = sys.modules["paper_tables"]
    monkeypatch.setattr(tables, "BENCHMARKS", tmp_path)
    (tmp_path / "a-card").mkdir()
    counted = {tables.READ: 20e6, tables.WRITTEN: 4e6}
    row = {"dtype": "d", "of": "ours", "n": 64, "counted": counted}
    results = [{**row, "routine": name} for name in ("trsm", "gemm")]
    run = {"device": "A card", "date": "2026-01-01", "commit": "abcdef0123", "results": results}
    (tmp_path / "a-card" / "2026-01-01-abcdef0-counters.json").write_text(json.dumps(run))
    lines = list(papers.lines_of("kblas_traffic"))
    assert (
        "| d | TRSM, this library | 20 + 4.0 |" in lines
        and "| d | TRSM of GEMM, this library | 1.00 |" in lines
    )
    assert not any("TRMM" in line for line in lines)


def test_the_fastest_schemes_of_a_run_that_was_cut_off(papers, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["paper_tables"], "STUDIES", tmp_path)
    (tmp_path / "a_card").mkdir()

    def schemes(**rates):
        return {name: {"best": {"64": {"tflops": rate}, "128": None}} for name, rate in rates.items()}

    row = {
        "dtype": "d",
        "layout": "nn",
        "ours": {"64": 9.0, "128": 9.0},
        "schemes": schemes(none=1.0, both=2.0),
    }
    results = [row, {**row, "layout": "tn", "ours": {}, "schemes": schemes(none=3.0)}]
    results.append({**row, "figure": "larger sample", "schemes": schemes(none=5.0)})
    (tmp_path / "a_card" / "steinsland.json").write_text(json.dumps({"device": "A card", "results": results}))
    lines = list(papers.lines_of("scheme_winners"))
    assert [line for line in lines if "dgemm" in line] == [
        "| dgemm nn | both 2.0 |  |",
        "| dgemm tn | none 3.0 |  |",
        "| dgemm nn, larger sample | none 5.0 |  |",
    ]
