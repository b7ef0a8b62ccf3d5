"""L D L^H end to end on the simulator: panels of one block of threads and of several, and what they leave."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from ldl_cases import KINDS, symmetric

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current, stand_ins
from pyblasgpu.kernels.factor.ldl.sytrf_panel import SytrfPanel
from pyblasgpu.routines.lapack import sytrf, sytrs
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES, Uplo

from .test_qr import run
from .test_routines import small_kernels
from .test_sytrf_panel import assert_lapacks, lapacks


@contextmanager
def small_panels(letter: str, threads: int):
    """Panels of eight columns, with a row a block for four threads, and products of small tiles."""
    with ExitStack() as stack:
        stack.enter_context(small_kernels(letter))
        stack.enter_context(override("sytrf_panel", SytrfPanel(letter, 8, threads)))
        yield


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """A device with room for the blocks of a panel."""
    monkeypatch.setitem(stand_ins, 0, replace(current(0), sm_count=8))


def check(letter="d", n=21, order="F", uplo="L", hermitian=False, batch=1, threads=32, seed=0) -> None:
    start = symmetric(letter, batch, n, hermitian=hermitian, seed=seed)
    a, unharmed = fenced(start, order)
    integers = [np.full((batch, count, 1), np.nan, a.dtype) for count in (n, 1)]
    with small_panels(letter, threads):
        run(sytrf, *integers, a, uplo=Uplo(uplo), hermitian=hermitian)
    piv, info = (np.ascontiguousarray(each).view(np.int32)[:, :, 0] for each in integers)
    assert_lapacks(start, a, piv, info[:, 0], uplo, hermitian)
    assert unharmed()


@pytest.mark.parametrize(
    "letter, hermitian, uplo, batch, threads", [("s", False, "L", 1, 32), ("z", True, "U", 2, 128)]
)
def test_panels(letter, hermitian, uplo, batch, threads):
    check(letter, 27, "C", uplo, hermitian, batch, threads, seed=1)


@pytest.mark.parametrize("letter, hermitian", KINDS)
def test_solutions(letter, hermitian):
    for uplo, order in ("LF", "UC"):
        check_solution(letter, 9, 3, order, uplo, hermitian, 2)


def check_solution(letter="d", n=13, r=2, order="F", uplo="L", hermitian=False, batch=1) -> None:
    """X from LAPACK's factors; the residual is a small multiple of what rounding may leave."""
    a = symmetric(letter, batch, n, hermitian=hermitian)
    factors, pivots, _ = zip(*(lapacks(matrix, uplo, hermitian) for matrix in a))
    piv = np.zeros((batch, n, 1), a.dtype)
    piv.view(np.int32)[:, :, 0] = pivots
    ldu, unharmed_factors = fenced(np.stack(factors).astype(a.dtype), order)
    b = symmetric(letter, batch, n, seed=5)[..., :r]
    x, unharmed = fenced(b, order)
    with small_panels(letter, 32):
        run(sytrs, piv, ldu, x, uplo=Uplo(uplo), hermitian=hermitian)
    for z in range(batch):
        size = np.abs(a[z]).sum(axis=1).max() * np.abs(x[z]).max()
        assert np.abs(a[z] @ x[z] - b[z]).max() <= 40 * n * size * DTYPES[letter].unit_roundoff
    assert unharmed() and unharmed_factors()
