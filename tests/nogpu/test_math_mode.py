"""``method="tensor"`` and the mode, for each routine of products: what serves, what is refused."""

from __future__ import annotations

import fake_driver
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, linalg, set_math_mode
from pyblasgpu.api.explain import explain, launches_of
from pyblasgpu.dispatch.overrides import in_mode, method_of
from pyblasgpu.gpu.device import known, stand_in
from pyblasgpu.types import DTYPES

ROUTINES = ("gemm", "symm", "syrk", "syr2k", "trmm", "trsm")
HERMITIAN = ("hemm", "herk", "her2k")
LAPACK = ("potrf", "getrf")
SQUARE = np.eye(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    yield
    fake_driver.forget()


@pytest.mark.parametrize("routine", (*ROUTINES, *LAPACK))
def test_large_products_are_of_tensor_cores(routine):
    """`explain` says so by the method and by the mode; not without them, nor of float64 in the mode."""

    def kernels(dtype, **options):
        return {name for name, _, _ in explain(routine, dtype, 16384, device="h200", **options)}

    by_method = kernels("s", method="tensor")
    with set_math_mode("tensor"):
        assert kernels("s") == by_method
        assert "gemm_wgmma" not in kernels("d")
    assert "gemm_wgmma" in by_method and "gemm_wgmma" not in kernels("s")


def test_symm_completes_all_of_a_large_matrix():
    """For one product; a matrix with few columns is not copied whole, nor is one that is too large."""
    device = stand_in(known("h200")).ordinal
    for dtype, stem, order, n, products in (
        ("s", "gemm_wgmma", 8192, 8192, 1),
        ("s", "gemm_wgmma", 8192, 512, 6),
        ("d", "combine_residues", 8192, 8192, 1),
        ("z", "combine_residues", 16384, 4096, 46),
    ):
        launches = launches_of("symm", DTYPES[dtype], order, n, order, device, 1, "tensor")
        assert [entry.source.name for entry in launches.entries].count(stem) == products


@pytest.mark.parametrize("dtype", "sdcz")
@pytest.mark.parametrize("routine", ROUTINES)
def test_the_method_on_the_cpu_changes_nothing(routine, dtype):
    square = SQUARE.astype(DTYPES[dtype].name)
    inputs = (square,) if routine == "syrk" else (square, square)
    call, names = getattr(pyblasgpu, routine), getattr(blas, f"{dtype}{routine}")
    np.testing.assert_array_equal(call(*inputs, method="tensor"), call(*inputs))
    np.testing.assert_array_equal(names(1, *inputs, method="tensor"), names(1, *inputs))
    np.testing.assert_array_equal(linalg.matmul(SQUARE, SQUARE, method="tensor"), SQUARE)


@pytest.mark.parametrize("routine", ROUTINES)
def test_other_methods_are_refused(routine):
    out = np.full((3, 3), 7, np.float32)
    inputs = (SQUARE,) if routine == "syrk" else (SQUARE, SQUARE)
    for method in ("fast", 1, ["tensor"]):
        with pytest.raises(ValueError, match=rf"^{routine}: method=.* is n"):
            getattr(pyblasgpu, routine)(*inputs, out=out, method=method)
        with pytest.raises(ValueError, match=rf"^s{routine}: method=.* is n"):
            getattr(blas, f"s{routine}")(1, *inputs, method=method)
    assert (out == 7).all()


@pytest.mark.parametrize("dtype", "dz")
def test_products_in_double_precision_are_of_residues(dtype):
    """In the mode as by the method; so are those that other routines are made of."""

    def kernels(routine, **options):
        return {name for name, _, _ in explain(routine, dtype, 8192, device="h200", **options)}

    assert "gemm_int8" not in kernels("gemm")
    assert "gemm_int8" in kernels("gemm", method="tensor")
    with set_math_mode("tensor"):
        assert kernels("gemm") == kernels("gemm", method="tensor")
        assert all("gemm_int8" in kernels(routine) for routine in ("symm", "syrk", "syr2k"))
        expected = {routine: kernels(routine) for routine in ROUTINES}
    assert {routine: kernels(routine, method="tensor") for routine in ROUTINES} == expected
    with set_math_mode("tensor"), set_math_mode(None):
        assert "gemm_int8" not in kernels("gemm")


@pytest.mark.parametrize(("dtype", "stem"), [("c", "gemm_wgmma"), ("z", "gemm_int8")])
@pytest.mark.parametrize("routine", HERMITIAN)
def test_hermitian_routines_take_the_method(routine, dtype, stem):
    assert stem in {name for name, _, _ in explain(routine, dtype, 8192, device="h200", method="tensor")}
    square = SQUARE.astype(DTYPES[dtype].name)
    inputs = (square,) if routine == "herk" else (square, square)
    call, name = getattr(pyblasgpu, routine), getattr(blas, f"{dtype}{routine}")
    np.testing.assert_array_equal(call(*inputs, method="tensor"), call(*inputs))
    np.testing.assert_array_equal(name(1, *inputs, method="tensor"), name(1, *inputs))
    with pytest.raises(ValueError, match=rf"^{routine}: method='fast' is neither"):
        call(*inputs, method="fast")


@pytest.mark.parametrize("routine", LAPACK)
def test_factors_in_double_precision_look_ahead_in_the_mode_too(routine):
    def kernels():
        launches = explain(routine, "d", 4096, device="h200")
        return [each for each in launches if each[0] not in ("algorithm", "workspace", "policy")]

    plain = kernels()
    with set_math_mode("tensor"):
        assert kernels() == plain


def test_a_function_in_a_mode():
    def current_method() -> str | None:
        return method_of(None)

    assert in_mode("tensor", current_method)() == "tensor" and current_method() is None
    with set_math_mode("tensor"):
        assert in_mode(None, current_method)() == "tensor"
