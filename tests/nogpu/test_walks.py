"""The functions that calls on device arrays enter: few for a call that is kept, and for a first one."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import fake_device
import fake_kernels
import numpy as np
import pytest
from library_cases import CASES, NumPy, Operands, Routines, fetched
from walk import TESTS, walk

import pyblasgpu
from pyblasgpu import blas, lapack, linalg

NAMES: dict[str, Any] = {"pyblasgpu": pyblasgpu, "linalg": linalg}
NAMES |= {"blas": Routines(blas, "d"), "lapack": Routines(lapack, "d")}
#: Most functions and modules of a repeated call.
FUNCTIONS, MODULES = 30, 11
#: Most functions of repeated calls that are checked anew, or that consist of several calls.
MORE = {
    "lapack.getrf(g)": 80,
    "lapack.potrs(t, c, lower=1)": 80,
    "lapack.potrf(p)": 80,
    "linalg.multi_dot([a, b, c])": 90,
    "linalg.matrix_power(a, 3)": 90,
    "blas.gemm(1, a, b, beta=2, c=p, trans_b=1)": 50,
    "linalg.slogdet(g)": 100,
    "linalg.lu_factor(g)": 100,
    "lapack.posv(p, c)": 100,
    "lapack.posv(p, x)": 110,
    "linalg.cholesky(q)": 110,
    "linalg.det(q)": 110,
    "linalg.lu(g, p_indices=True)": 110,
    "lapack.getrs(*lapack.getrf(g)[:2], c)": 90,
    "linalg.cho_solve(linalg.cho_factor(p), x)": 120,
    "blas.trsv(t, x, lower=1)": 110,
    "linalg.solve(g, c)": 130,
    "linalg.solve(q, x)": 130,
    "blas.gemv(1, a, x)": 120,
    "blas.gemv(1, a, u)": 120,
    "blas.gemm(1, a, x)": 130,
    "linalg.vdot(a, b)": 160,
    "blas.symm(1, p, x)": 140,
    "blas.trmm(1, t, x, lower=1, overwrite_b=1)": 140,
    "linalg.tensordot(k, m, axes=([0], [0]))": 160,
    "blas.trsm(1, t, x, lower=1)": 140,
    "linalg.vecdot(k, m)": 170,
    'linalg.einsum("ij,jk->ki", a, b, out=p)': 150,
    "lapack.gesv(q, c)": 170,
    "linalg.lu_solve(linalg.lu_factor(q), c, trans=1)": 200,
    "linalg.lu_solve(linalg.lu_factor(g), c)": 190,
    "lapack.gesv(g, c)": 180,
}
#: Calls whose kernels have no stand-in.
WITHOUT_KERNEL = re.compile(
    r"(pyblasgpu|blas)\.(axpy|copy|swap|rot|dot|nrm2|asum|amax|iamax|scal|ger|trmv)\("
    r"|(potri|trtri|lauum|trtrs|getri|inv)\(|trans=1"
)
CALLS = [case for case in CASES.strip().split("\n") if not WITHOUT_KERNEL.search(case) or case in MORE]


class FakeLibrary:
    @staticmethod
    def put(array: np.ndarray) -> fake_device.Array:
        """An array of the fake device, aligned as a device's."""
        placed = fake_device.aligned(array.shape[::-1], array.dtype).T
        placed[...] = array
        return fake_device.Array(placed)

    get = staticmethod(fake_device.Array.get)


@pytest.fixture
def card(fake, monkeypatch):
    fake_kernels.install_below(monkeypatch)


def repeated(library: Any, case: str) -> Callable[[], Any]:
    """A function that evaluates `case` on the same operands of a library each time."""
    operands, code = Operands(library, "d", "F"), compile(case, case, "eval")

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(code, NAMES, operands)  # noqa: S307  # of the table

    return run


@pytest.mark.parametrize("case", CALLS)
def test_a_repeated_call(card, case):
    """It gives what it gives on the host, and enters few functions."""
    on_device, on_host = repeated(FakeLibrary, case), repeated(NumPy, case)
    for _ in range(2):
        results = [each if isinstance(each, tuple) else (each,) for each in (on_device(), on_host())]
        for ours, expected in zip(*results, strict=True):
            np.testing.assert_allclose(fetched(FakeLibrary, ours), expected, 1e-9, 1e-9)
    found = walk(on_device)
    assert len(found.steps) <= MORE.get(case, FUNCTIONS), found.steps
    assert len(found.modules) <= MODULES or case in MORE, found.modules


#: First calls, and the most modules, modules of `dispatch` and changes of package of each.
FIRST = {"pyblasgpu.gemm(a, b, out=c)": (60, 9, 126), "blas.dtrsm(1.0, t, b, lower=1)": (66, 9, 120)}


@pytest.mark.parametrize("case", FIRST)
def test_a_first_call(case):
    """In a process of its own, where nothing was chosen before."""
    program = ("import first_walk", f"print(first_walk.counts({case!r}))")
    run = subprocess.run(
        [sys.executable, "-c", ";".join(program)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = ast.literal_eval(run.stdout)
    assert all(count <= most for count, most in zip(found, FIRST[case], strict=True)), found
