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
import numpy as np
import pytest
from library_cases import CASES, MORE_CASES, NumPy, Operands, Routines, fetched
from walk import TESTS, walk

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.gpu.kept_graphs import REPEATS

NAMES: dict[str, Any] = {"pyblasgpu": pyblasgpu, "linalg": linalg}
NAMES |= {"blas": Routines(blas, "d"), "lapack": Routines(lapack, "d")}
#: Most functions and modules of a repeated call.
FUNCTIONS, MODULES = 30, 12
#: Most functions of repeated calls that are checked anew, consist of several calls, or enter more modules.
MORE = {
    "lapack.potrf(p)": 30,
    "lapack.potri(p)": 30,
    "lapack.trtri(p)": 30,
    "lapack.trtrs(t, c, lower=1)": 30,
    "lapack.getri(*lapack.getrf(g)[:2])": 36,
    "lapack.getrs(*lapack.getrf(g)[:2], c)": 32,
    "lapack.posv(p, c)": 60,
    "lapack.posv(p, x)": 60,
    "lapack.gesv(g, c)": 60,
    "lapack.gels(g, c)[1]": 60,
    "lapack.gesv(q, c)": 150,
    "lapack.sytrf(q)": 30,
    "lapack.sytrs(*lapack.sytrf(p)[:2], c)": 36,
    "lapack.sytri(*lapack.sytrf(p)[:2])": 36,
    "linalg.ldl(q)": 63,
    "lapack.sysv(p, c, lower=1)": 60,
    "linalg.solve(g, c, overwrite_b=True)": 31,
    'linalg.inv(p, assume_a="pos")': 33,
    "linalg.lu(g, p_indices=True)": 70,
    "linalg.qr_multiply(c, x)": 68,
    'linalg.qr(c, mode="reduced", pivoting=True)': 36,
    'linalg.lstsq(g, x, lapack_driver="gels")[0]': 34,
    "lapack.syevd(q)[0]": 32,
    "lapack.gesdd(m)[1]": 40,
    "linalg.eigvalsh(p)": 30,
    "linalg.eigvalsh(q, p)": 85,
    "linalg.svdvals(k)": 30,
    "linalg.pinv(c)": 160,
    "linalg.pinvh(q)": 160,
    "linalg.matrix_norm(k, ord=1)": 30,
    "linalg.norm(x)": 40,
    "linalg.cond(g)": 70,
    "linalg.multi_dot([a, b, c])": 50,
    "linalg.matrix_power(a, 3)": 50,
    "linalg.vdot(a, b)": 140,
    "linalg.tensordot(k, m, axes=([0], [0]))": 140,
    "linalg.vecdot(k, m)": 140,
    'linalg.einsum("ij,jk->ki", a, b, out=p)': 150,
}
#: Calls whose kernels have no stand-in.
WITHOUT_KERNEL = re.compile(r"(pyblasgpu|blas)\.(axpy|copy|swap|rot|dot|nrm2|asum|amax|iamax|scal)\(")
CALLS = [
    case for case in f"{CASES.strip()}{MORE_CASES}".strip().split("\n") if not WITHOUT_KERNEL.search(case)
]


class FakeLibrary:
    @staticmethod
    def put(array: np.ndarray) -> fake_device.Array:
        """An array of the fake device, aligned as a device's."""
        placed = fake_device.aligned(array.shape[::-1], array.dtype).T
        placed[...] = array
        return fake_device.Array(placed)

    get = staticmethod(fake_device.Array.get)


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
    for _ in range(1 + REPEATS):  # launches of later ones are a graph
        results = [each if isinstance(each, tuple) else (each,) for each in (on_device(), on_host())]
        for ours, expected in zip(*results, strict=True):
            np.testing.assert_allclose(fetched(FakeLibrary, ours), expected, 1e-9, 1e-9)
    found = walk(on_device)
    assert len(found.steps) <= MORE.get(case, FUNCTIONS), found.steps
    assert len(found.modules) <= MODULES or case in MORE, found.modules


#: First calls, and the most modules, modules of `dispatch` and changes of package of each.
FIRST = {"pyblasgpu.gemm(a, b, out=c)": (54, 9, 114), "blas.dtrsm(1.0, t, b, lower=1)": (59, 8, 101)}


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
