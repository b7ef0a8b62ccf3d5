"""SciPy's own tests of its BLAS, run with pyblasgpu.blas in the place of SciPy's functions."""

from __future__ import annotations

import importlib.util

import pytest
import scipy.linalg

from pyblasgpu import blas

pytest.importorskip("scipy.linalg.tests.test_blas")

#: It asks for the functions of long double, which SciPy rounds in silence and we refuse.
_REFUSED = {"test_get_blas_funcs"}


class _Substitute:
    """SciPy's module of BLAS functions, with ours where there are any of the name."""

    def __init__(self, original):
        self._original = original

    def __getattr__(self, name):
        return getattr(blas if name in blas.__all__ else self._original, name)


def _with_our_functions():
    """The module of SciPy's tests, imported afresh while its functions are ours."""
    spec = importlib.util.find_spec("scipy.linalg.tests.test_blas")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_fblas", "_cblas"):
            if hasattr(scipy.linalg, name):
                patch.setattr(scipy.linalg, name, _Substitute(getattr(scipy.linalg, name)))
        for name in ("get_blas_funcs", "find_best_blas_type"):
            patch.setattr(scipy.linalg, name, getattr(blas, name))
        spec.loader.exec_module(module)
    return module


_MODULE = _with_our_functions()
#: What pytest collects.
_TESTS = {name: each for name, each in vars(_MODULE).items() if name.lower().startswith("test")}
globals().update({name: each for name, each in _TESTS.items() if name not in _REFUSED})


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def test_the_functions_are_ours():
    assert _MODULE.fblas.dgemm is blas.dgemm and _MODULE.get_blas_funcs is blas.get_blas_funcs
    (mark,) = _MODULE.TestTRMM.test_ab.pytestmark
    assert [parameter.values[0] for parameter in mark.args[1]] == [
        blas.strmm,
        blas.dtrmm,
        blas.ctrmm,
        blas.ztrmm,
    ]
    assert _MODULE.fblas.saxpy is blas.saxpy and _MODULE.TestFBLAS1Simple
    assert _MODULE.TestFBLAS3Simple and _MODULE.TestSyHe and _MODULE.test_trsm
