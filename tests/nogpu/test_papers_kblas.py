"""KBLAS's Figure 7 from files of benchmarks, and Figure 9: the blocked algorithms with parts of SciPy's."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.linalg

from pyblasgpu.types import Side, Trans
from tuning.papers import kblas_figure7, kblas_figure9
from tuning.papers.kblas_figure7 import Call
from tuning.papers.kblas_figure9 import Parts


def triangle_of(t, trans):
    lower = np.tril(t)
    return {"N": lower, "T": lower.T, "C": lower.conj().T}[trans.value]


def trmm(alpha, t, b, side, trans) -> None:
    op = triangle_of(t, trans)
    b[...] = alpha * (op @ b if side is Side.LEFT else b @ op)


def trsm(alpha, t, b, side, trans) -> None:
    inverse = np.linalg.inv(triangle_of(t, trans))
    b[...] = alpha * (inverse @ b if side is Side.LEFT else b @ inverse)


def set_lower(a, values) -> None:
    a[np.tri(len(a), dtype=bool)] = values[np.tri(len(a), dtype=bool)]


def update(alpha, x, y, c, triangle) -> None:
    if triangle:
        set_lower(c, c + alpha * x @ x.conj().T)
    else:
        c += alpha * x @ y


PARTS = Parts(
    trmm,
    trsm,
    lambda a: set_lower(a, np.linalg.cholesky(np.tril(a) + np.tril(a, -1).conj().T)),
    lambda a: set_lower(a, np.linalg.inv(np.tril(a))),
    lambda a: set_lower(a, np.tril(a).conj().T @ np.tril(a)),
    update,
)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [3, 8, 21])
def test_the_algorithms(n, dtype, monkeypatch):
    monkeypatch.setattr(kblas_figure9, "BLK", 8)
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype is complex else 0)
    a = x @ x.conj().T + n * np.eye(n)
    factor, b = scipy.linalg.cholesky(a, lower=True), np.ones((n, 2), dtype)

    inverse = factor.copy()
    kblas_figure9.potri(PARTS, inverse)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(a)), atol=1e-12)

    whole = np.tril(a)
    kblas_figure9.inverse(PARTS, whole)
    np.testing.assert_allclose(np.tril(whole), np.tril(np.linalg.inv(a)), atol=1e-12)

    solution = b.copy()
    kblas_figure9.potrs(PARTS, factor, solution)
    np.testing.assert_allclose(a @ solution, b, atol=1e-10)

    matrix, solution = np.tril(a), b.copy()
    kblas_figure9.posv(PARTS, matrix, solution)
    np.testing.assert_allclose(np.tril(matrix), factor, atol=1e-10)
    np.testing.assert_allclose(a @ solution, b, atol=1e-10)


@pytest.mark.parametrize("side, trans", [("L", "N"), ("L", "C"), ("R", "N"), ("R", "C")])
@pytest.mark.parametrize("name, own", [("trmm", trmm), ("trsm", trsm)])
def test_routines_of_the_library(monkeypatch, name, own, side, trans):
    """On host arrays, in place."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    rng = np.random.default_rng(2)
    t, b = rng.normal(size=(9, 9)) + 9 * np.eye(9), np.asfortranarray(rng.normal(size=(9, 9)))
    expected = b.copy()
    own(2.0, t, expected, Side(side), Trans(trans))
    kblas_figure9.ours(name)(2.0, t, b, Side(side), Trans(trans))
    np.testing.assert_allclose(b, expected, atol=1e-12)


def record(tflops, vendor=None, **others):
    known = {"routine": "trmm", "dtype": "d", "variant": "LLNN", "m": 512, "n": 512, "tflops": tflops}
    return known | ({"cublas_tflops": vendor} if vendor else {}) | others


OLD = {
    "device": "a card",
    "date": "2026-11-23",
    "results": [record(1.0, 2.0), record(9.0, m=32)],
}
NEW = {
    "device": "a card",
    "date": "2026-11-25",
    "commit": "abcdef0123",
    "results": [record(3.0, 1.5, cublas_out_of_place_tflops=4.0), record(8.0, variant="RUNN")],
}
OTHER = {
    "device": "another",
    "date": "2026-11-24",
    "results": [record(4.0), record(7.0, routine="gemm")],
}


def test_the_newest_of_square_calls_counts():
    card, another = (Call("dtrmm", name, 512) for name in ("a card", "another"))
    rates = kblas_figure7.rates([NEW, OLD, OTHER, {"device": "x", "results": [[1.0]]}])
    assert rates == {card: (3.0, 1.5, 4.0, "abcdef0"), another: (4.0, None, None, "?")}


def test_table_and_figures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for number, document in enumerate((OLD, NEW, OTHER)):
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
    files = map(str, sorted(tmp_path.glob("*.json")))
    assert kblas_figure7.main([*files, "--dtype", "d", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "3.0 (2.00, 0.75)" in text and "abcdef0" in text and "another" in text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kblas_figure7_dtrmm.svg"]
