"""KBLAS's Figure 7 from files of benchmarks."""

from __future__ import annotations

import json

import pytest

from tuning.papers import kblas_figure7
from tuning.papers.kblas_figure7 import Call


def record(tflops, vendor=None, **others):
    known = {"routine": "trmm", "dtype": "d", "variant": "LLNN", "m": 512, "n": 512, "tflops": tflops}
    return known | ({"cublas_tflops": vendor} if vendor else {}) | others


OLD = {"device": "a card", "date": "2026-11-23", "results": [record(1.0, 2.0), record(9.0, m=32)]}
NEW = {"device": "a card", "date": "2026-11-25", "results": [record(3.0, 1.5), record(8.0, variant="RUNN")]}
OTHER = {"device": "another", "date": "2026-11-24", "results": [record(4.0), record(7.0, routine="gemm")]}


def test_the_newest_of_square_calls_counts():
    rates = kblas_figure7.rates([NEW, OLD, OTHER, {"device": "x", "results": [[1.0]]}])
    assert rates == {Call("dtrmm", "a card", 512): (3.0, 1.5), Call("dtrmm", "another", 512): (4.0, None)}


def test_table_and_figures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for number, document in enumerate((OLD, NEW, OTHER)):
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
    files = map(str, sorted(tmp_path.glob("*.json")))
    assert kblas_figure7.main([*files, "--dtype", "d", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "3.0 (2.00)" in text and "another" in text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kblas_figure7_dtrmm.svg"]
