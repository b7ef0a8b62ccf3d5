"""QR end to end on the simulator: recursion, blocks, panels of one block of threads and of several, Q."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product

import numpy as np
import pytest
from scipy.linalg import lapack

from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.factor.cholesky.potrf_leaf import PotrfLeaf
from pyblasgpu.kernels.factor.qr.geqp3 import Geqp3
from pyblasgpu.kernels.factor.qr.geqrf_panel import GeqrfPanel
from pyblasgpu.kernels.factor.qr.geqrf_small import GeqrfSmall
from pyblasgpu.kernels.factor.qr.geqrf_tall import GeqrfTall
from pyblasgpu.kernels.factor.qr.larft_leaf import LarftLeaf
from pyblasgpu.kernels.factor.qr.orhr_leaf import OrhrLeaf
from pyblasgpu.operands import Operand
from pyblasgpu.routines.lapack import gels, geqrf, lq, orgqr, ormqr
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES, Side, Trans

from .launching import strides
from .test_reflectors import random
from .test_routines import small_kernels

#: Rows and columns: blocks of 16 reflectors, panels of 8, of a block of 32 rows or more.
SHAPES = [(29, 19), (19, 30), (41, 21), (70, 9)]


@contextmanager
def small_panels(letter: str):
    """Panels of few columns, blocks of 16 reflectors, products of small tiles."""
    configs = {
        "geqrf_panel": GeqrfPanel(letter, 64, 1, 8),
        "geqrf_small": GeqrfSmall(letter, 32, 16, 16, 2),
        "geqrf_tall": GeqrfTall(letter, 32, 8),
        "larft_leaf": LarftLeaf(letter, 16, 32),
        "orhr_leaf": OrhrLeaf(letter, 16, 32),
        "potrf_leaf": PotrfLeaf(letter, 16, 32, 8),
        "geqp3": Geqp3(letter, 64),
    }
    with ExitStack() as stack:
        stack.enter_context(small_kernels(letter))
        for stem, config in configs.items():
            stack.enter_context(override(stem, config))
        yield


def operand(array: np.ndarray) -> Operand:
    """A batch of matrices."""
    batch, rows, cols = array.shape
    dtype = next(each for each in DTYPES.values() if each.name == array.dtype.name)
    step, row_step, col_step = strides(array)
    pointer = simulator.adopt(array)
    return Operand(pointer, rows, cols, row_step, col_step, dtype, False, batch, step)


def run(routine, *arrays: np.ndarray, **flags) -> None:
    """Run a routine's launch list on NumPy arrays."""
    operands = [operand(array) for array in arrays]
    launches = getattr(routine, "launch_list", routine)(*operands, **flags)
    launches.run([each.pointer for each in operands], 1.0, stream=0)


def factored(letter: str, order: str, shape: tuple[int, int], batch: int = 2):
    """A random batch, its factors and tau; LAPACK's are within the bound, and nothing beyond is written."""
    m, n = shape
    dtype, start = DTYPES[letter], random(np.random.default_rng(m), letter, batch, m, n)
    a, unharmed = fenced(start, order)
    tau = np.full((batch, min(m, n), 1), np.nan, dtype.name)
    with small_panels(letter):
        run(geqrf, tau, a)
    assert unharmed()
    wide = getattr(lapack, ("z" if dtype.is_complex else "d") + "geqrf")
    for z in range(batch):
        expected, scalars = wide(start[z])[:2]
        np.testing.assert_allclose(a[z], expected, rtol=0, atol=500 * dtype.unit_roundoff)
        np.testing.assert_allclose(tau[z, :, 0], scalars, rtol=0, atol=100 * dtype.unit_roundoff)
    return start, a, tau


@pytest.mark.parametrize(
    "letter, order, shape",
    [
        (letter, order, shape)
        for number, shape in enumerate(SHAPES)
        for letter, order in ((("s", "F"), ("z", "C")), (("d", "C"), ("c", "F")))[number % 2]
    ],
    ids=str,
)
def test_factors_and_q(letter, order, shape):
    """Q has orthonormal columns, also those beyond the reflectors; Q R is A. Real matrices are a batch."""
    m, n = shape
    dtype, k = DTYPES[letter], min(m, n)
    batch = 1 if dtype.is_complex else 2
    start, a, tau = factored(letter, order, shape, batch)
    for columns in {k, m}:
        q = np.zeros((batch, m, columns), dtype.name, order)
        q[:, :, :k] = a[:, :, :k]
        with small_panels(letter):
            run(orgqr, tau, q)
        identity = q.conj().swapaxes(1, 2) @ q
        np.testing.assert_allclose(
            identity, np.stack([np.eye(columns)] * batch), atol=100 * dtype.unit_roundoff
        )
        again = q[:, :, :k] @ np.triu(a[:, :k])
        np.testing.assert_allclose(again, start, rtol=0, atol=200 * dtype.unit_roundoff)


@pytest.mark.parametrize("mode", [None, "tensor"])
def test_lookahead(monkeypatch, mode):
    """Three blocks of one matrix in the mode alone; the simulated device counts as a large one."""
    ahead, emit_lookahead = [], geqrf.emit_lookahead

    def spy(*given):
        ahead.append(given)
        emit_lookahead(*given)

    monkeypatch.setattr(geqrf, "AHEAD", 3)
    monkeypatch.setattr(geqrf, "SHARE", 0)
    monkeypatch.setattr(geqrf, "runs", lambda stem, device: True)
    monkeypatch.setattr(geqrf, "emit_lookahead", spy)
    with set_math_mode(mode):
        factored("s", "F", (37, 35), batch=1)
    assert len(ahead) == (mode is not None)


def test_blocks_by_cholesky_factors(decide_by):
    """LAPACK's factors of a batch, of which a matrix fails: columns are zero, and no numbers."""
    decide_by(cholesky_panel_min_rows=32)
    m, n, dtype = 33, 16, DTYPES["s"]
    start = random(np.random.default_rng(m), "s", 2, m, n)
    start[1, :, 3], start[1, 5, 14] = 0, np.nan
    a, unharmed = fenced(start, "C")
    tau = np.full((2, n, 1), np.nan, dtype.name)
    with small_panels("s"):
        run(geqrf, tau, a)
    assert unharmed() and tau[1, 3] == 0 and np.isnan(a[1, :, 14]).any()
    for z, columns in enumerate((n, n - 2)):
        expected, scalars = lapack.dgeqrf(start[z, :, :columns])[:2]
        np.testing.assert_allclose(a[z, :, :columns], expected, rtol=0, atol=500 * dtype.unit_roundoff)
        np.testing.assert_allclose(tau[z, :columns, 0], scalars, rtol=0, atol=100 * dtype.unit_roundoff)


@pytest.mark.parametrize("letter", "sz")
def test_products_with_q(letter):
    start, a, tau = factored(letter, "F", (25, 21), batch=1)
    m, dtype = 25, DTYPES[letter]
    q = np.eye(m, dtype=dtype.name)[None].copy()
    with small_panels(letter):
        run(ormqr, tau, a, q, side=Side.LEFT, trans=Trans.NO)
    again = q[0, :, :21] @ np.triu(a[0, :21])
    np.testing.assert_allclose(again, start[0], rtol=0, atol=200 * dtype.unit_roundoff)
    for side, trans in product("LR", "NC"):
        c = random(np.random.default_rng(3), letter, 1, *((m, 7) if side == "L" else (7, m)))
        given, c = c.copy(), c.copy()
        with small_panels(letter):
            run(ormqr, tau, a, c, side=Side(side), trans=Trans(trans))
        op = q[0] if trans == "N" else q[0].conj().T
        expected = op @ given[0] if side == "L" else given[0] @ op
        np.testing.assert_allclose(
            c[0], expected, rtol=0, atol=200 * dtype.unit_roundoff, err_msg=f"{side} {trans}"
        )


@pytest.mark.parametrize("letter, shape", [("d", (25, 19)), ("z", (19, 25))])
def test_least_squares(letter, shape):
    """By QR factors, and by LQ factors; those of a matrix of zeros have an info."""
    dtype, (m, n), k = DTYPES[letter], shape, min(shape)
    a = random(np.random.default_rng(m), letter, 2, m, n) + 2 * np.eye(m, n, dtype=dtype.name)
    a[1] = 0
    b = random(np.random.default_rng(n), letter, 2, max(m, n), 3)
    x, expected = b.copy(), getattr(lapack, f"{letter}gels")(a[0], b[0])[1]
    tau, info = np.zeros((2, k, 1), dtype.name), np.full((2, 1, 1), -1, dtype.name)
    with small_panels(letter):
        run(geqrf if m > n else lq.factors_launch_list, tau, a)
        run(gels.solution_launch_list, info, tau, a, x, trans=Trans.NO)
    np.testing.assert_allclose(x[0], expected, rtol=0, atol=1e4 * dtype.unit_roundoff)
    assert info.view(np.int32).reshape(2, -1)[:, 0].tolist() == [0, 1]
