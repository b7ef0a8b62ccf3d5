"""`sytrf_panel`: LAPACK's factors and pivots of whole matrices and of panels, in any order."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from ldl_cases import KINDS, check_factors, special, symmetric
from scipy.linalg import lapack

from pyblasgpu.cpu.scipy import rook
from pyblasgpu.kernels.factor.ldl import sytrf_panel
from pyblasgpu.testing.reference import fenced

from .launching import run, strides


class Way(NamedTuple):
    """How `sytrf_panel` factors: whole matrices, or by panels of one block or of several."""

    kind: int
    kernels: ModuleType = sytrf_panel
    rook: bool = False

    def factor(self, a, piv, info, uplo: str, hermitian: bool) -> None:
        """Factor a batch in place."""
        batch, n, _ = a.shape
        letter = dict(zip("fdFD", "sdcz", strict=True))[a.dtype.char]
        config = self.kernels.SytrfPanel(letter, 8, 32, self.kind, self.rook)
        if self.kind == self.kernels.WHOLE:
            config = replace(config, ORDER=-(-n // 8) * 8, DIM=64)
        blocks = config.grid(n, 8) if self.kind == self.kernels.SPREAD else 1
        memory, rows = (
            np.full((batch, *shape), np.nan, a.dtype)
            for shape in ((config.columns, n), (config.rows(blocks),))
        )
        state, flags = np.full((batch, config.state(blocks)), 99, np.int32), np.zeros(2 * batch, np.int32)
        arrays, width = (piv, info, a, memory, rows, state, flags), config.width
        steps = n, strides(piv)[0], 1, *(strides(each)[0] for each in (a, memory, rows, state))
        for first in range(0, n, config.ORDER):
            done = min(first + config.ORDER, n)
            flags_of = n, first, done - first, int(uplo == "U"), int(hermitian)
            run(
                self.kernels.source(config),
                blocks,
                arrays,
                (*flags_of, 1, *strides(a)[1:], *steps),
                (),
                batch,
            )
            start = config.ORDER if uplo == "L" else 0
            left, right = (memory[:, at : at + width, start : start + n - done] for at in (0, width))
            product = left.swapaxes(1, 2) @ (right.conj() if hermitian else right)
            rest = a[:, done:, done:] if uplo == "L" else a[:, : n - done, : n - done]
            kept = np.tri(n - done, dtype=bool) if uplo == "L" else np.tri(n - done, dtype=bool).T
            np.copyto(rest, rest - product, where=kept)
        assert not flags.any()


WAYS = {name: Way(kind) for kind, name in enumerate(("whole", "panel", "spread"))}
BY_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
#: Of matrices by panels.
PANELS = [("d", False, "L", "panel"), ("z", True, "U", "panel"), ("s", False, "L", "spread"),
          ("c", True, "U", "spread"), ("z", False, "L", "spread")]  # fmt: skip


def lapacks(a, uplo: str, hermitian: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """LAPACK's factors of a matrix, pivots and info, in double precision."""
    stem = "hetrf" if hermitian else "sytrf"
    return getattr(lapack, "dz"[np.iscomplexobj(a)] + stem)(a, lower=uplo == "L")


def by_rook_pivots(a, uplo: str, hermitian: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """The CPU backend's factors with rook pivots, pivots and info, in double precision."""
    return rook.factor(a.astype("dD"[np.iscomplexobj(a)]), uplo == "L", hermitian)


def assert_lapacks(start, a, piv, info, uplo, hermitian, reference=lapacks) -> None:
    """The factors of a batch, pivots and info are LAPACK's in double precision; the other triangle stays."""
    n = a.shape[-1]
    keep = np.tri(n, dtype=bool) if uplo == "L" else np.tri(n, dtype=bool).T
    for z in range(len(a)):
        expected, pivots, number = reference(start[z], uplo, hermitian)
        np.testing.assert_array_equal(piv[z], pivots)
        assert info[z] == number
        tolerance = np.abs(expected[keep]).max() * 50 * n * np.finfo(a.dtype).eps
        np.testing.assert_allclose(a[z][keep], expected[keep], rtol=0, atol=tolerance)
        np.testing.assert_array_equal(a[z][~keep], start[z][~keep])


def check(letter="d", n=13, order="F", uplo="L", hermitian=False, batch=1, seed=0, way=WAYS["whole"]) -> None:
    """LAPACK's factors, pivots and info of a random batch, between fences."""
    start = symmetric(letter, batch, n, hermitian=hermitian, seed=seed)
    if way.rook:
        start[:, range(n), range(n)] *= 0.01
    a, unharmed = fenced(start, order)
    piv, info = np.full((batch, n), 99, np.int32), np.full(batch, 99, np.int32)
    way.factor(a, piv, info, uplo, hermitian)
    reference = by_rook_pivots if way.rook else lapacks
    assert_lapacks(start, a, piv, info, uplo, hermitian, reference)
    assert unharmed()


@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("letter, hermitian", KINDS)
def test_whole_matrices(letter, hermitian, uplo):
    for n, order in ((1, "F"), (2, "C"), (13, "C" if hermitian else "F")):
        check(letter, n, order, uplo, hermitian)


@pytest.mark.parametrize("letter, hermitian, uplo, way", PANELS)
def test_panels(letter, hermitian, uplo, way):
    """Pivots of two columns across panels are among them."""
    check(letter, 27, "CF"[hermitian], uplo, hermitian, seed=1, way=WAYS[way])


@pytest.mark.parametrize(
    "letter, hermitian, uplo, kind, n, seed",
    [("d", False, "L", 0, 13, 3), ("z", True, "U", 1, 19, 0), ("s", False, "L", 2, 27, 120)],
)
def test_rook_pivots(letter, hermitian, uplo, kind, n, seed):
    """Both rows of a pivot of two columns are interchanged with any others, across panels too."""
    check(letter, n, "CF"[hermitian], uplo, hermitian, seed=seed, way=Way(kind, rook=True))


@BY_WAY
def test_batches(way):
    check("d", 11, batch=3, way=way)


def check_ties(uplo="L", way=WAYS["panel"]) -> None:
    """The first one in the matrix of equal elements is taken."""
    a = 1 - np.eye(19)[None]
    start, piv, info = a.copy(), np.zeros((1, 19), np.int32), np.zeros(1, np.int32)
    way.factor(a, piv, info, uplo, False)
    assert_lapacks(start, a, piv, info, uplo, False)


@BY_WAY
@pytest.mark.parametrize("uplo", "LU")
def test_ties(way, uplo):
    check_ties(uplo, way)


def check_special(letter="d", uplo="L", hermitian=False, way=WAYS["whole"]) -> None:
    """Singular and badly scaled matrices, and one that is not finite, have LAPACK's pivots and info."""
    start = special(letter)
    start[0, 2, 2] = np.nan
    a, piv, info = start.copy(), np.zeros(start.shape[:2], np.int32), np.zeros(len(start), np.int32)
    way.factor(a, piv, info, uplo, hermitian)
    (run_lapack,) = lapack.get_lapack_funcs(("hetrf" if hermitian else "sytrf",), (a,))
    for z, matrix in enumerate(start):
        expected, pivots, number = run_lapack(matrix, lower=uplo == "L")
        np.testing.assert_array_equal(piv[z], pivots)
        assert info[z] == number
        np.testing.assert_array_equal(np.isfinite(a[z]), np.isfinite(expected))
    check_factors(start[1:], a[1:], piv[1:], uplo == "L", hermitian)
    start[0, 2], start[0, :, 2] = np.nan, np.nan  # which stays in its row and column
    a = start[:1].copy()
    way.factor(a, piv[:1], info[:1], uplo, hermitian)
    assert info[0] and np.isnan(np.tril(a[0]) if uplo == "L" else np.triu(a[0])).sum() <= a.shape[-1]


@pytest.mark.parametrize("letter, hermitian", KINDS)
def test_special_matrices(letter, hermitian):
    check_special(letter, "LU"[hermitian], hermitian)


@pytest.mark.parametrize("letter, hermitian", [("s", False), ("z", True)])
def test_special_matrices_of_several_blocks(letter, hermitian):
    check_special(letter, "UL"[hermitian], hermitian, WAYS["spread"])
