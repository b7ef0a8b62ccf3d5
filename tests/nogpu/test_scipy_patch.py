"""patch_scipy: what it replaces goes through pyblasgpu from a size on, and nothing of it is left behind."""

from __future__ import annotations

import threading
from contextlib import suppress

import numpy as np
import pytest
import scipy
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack
from patched import NUMPYS, ORIGINALS, nothing_is_left_behind, taken  # noqa: F401 - the fixture

import pyblasgpu
from pyblasgpu import patch_scipy, unpatch_scipy
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.scipy_patch import switch

#: SciPy 1.18 has other words for what a matrix is.
SCIPYS_WORDS_ARE_OURS = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18)


def definite(n=6, dtype="d"):
    a = np.random.default_rng(3).standard_normal((n, n)).astype(dtype)
    return a @ a.T + n * np.eye(n, dtype=dtype)


A, B = definite(), np.arange(12.0).reshape(6, 2)
LOWER = np.linalg.cholesky(A)
CALLS = {
    "cholesky": (A,),
    "cho_factor": (A,),
    "cho_solve": ((LOWER, True), B),
    "solve_triangular": (LOWER, B, 0, True),
    "solve": (A, B),
    "inv": (A,),
    "det": (A,),
    "lu_factor": (A,),
    "lu_solve": (ORIGINALS["lu_factor"](A), B),
    "lu": (A,),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_pass_through_us(name):
    arguments = CALLS[name]
    expected = ORIGINALS[name](*arguments)
    with taken() as patch:
        actual = getattr(scipy.linalg, name)(*arguments)
        assert patch.calls == {name: 1}
    for ours, scipys in zip(
        *((x if isinstance(x, tuple) else (x,)) for x in (actual, expected)), strict=True
    ):
        if name == "cho_factor" and np.ndim(ours):  # what else it holds is anything
            ours, scipys = np.triu(ours), np.triu(scipys)
        np.testing.assert_allclose(ours, scipys, 1e-12, 1e-12)
    getattr(scipy.linalg, name)(*arguments)
    assert patch.calls == {name: 1}


@pytest.mark.parametrize("options", [{"driver": "ev"}, {"overwrite_a": True}, {"b": A}, {"type": 1}])
def test_eigenproblems_with_options_stay_with_scipy(options):
    with taken() as patch:
        scipy.linalg.eigh(A.copy(), **options)
        assert not patch.calls
        w, v = scipy.linalg.eigh(A, lower=False, check_finite=False, subset_by_index=(1, 3))
        assert patch.calls == {"eigh_matrix": 1} and v.shape == (6, 3)
    np.testing.assert_allclose(A @ v, v * w, 1e-12, 1e-10)


def test_what_is_looked_up():
    with taken() as patch:
        gemm, gemv = scipy.linalg.get_blas_funcs(("gemm", "gemv"), (A,))
        (potrf,) = scipy.linalg.lapack.get_lapack_funcs(("potrf",), (A,))
        gemm(1.0, A, A)
        gemv(1.0, A, A[0])
        potrf(A)
        assert patch.calls == {"gemm": 1, "potrf": 1}
        assert (gemm.typecode, gemm.dtype, gemm.prefix) == ("d", np.dtype("d"), "d")
        assert scipy.linalg.get_blas_funcs("gemm", dtype="f").typecode == "s"
    gemm(1.0, A, A)  # kept beyond the patch, it is SciPy's
    assert patch.calls == {"gemm": 1, "potrf": 1}
    assert type(scipy.linalg.get_blas_funcs("gemm", (A,))).__name__ == "fortran"


# ---------------------------------------------------------------------------------------------- thresholds


def test_small_calls_stay_with_scipy():
    with patch_scipy(backend="cpu") as patch:
        scipy.linalg.cholesky(A)
        scipy.linalg.blas.dgemm(1.0, A, A)
        assert not patch.calls
        assert patch.thresholds["cholesky"] > 100


#: By routine a call, and the number of operations whose cube root is its size.
SIZES = {
    "cholesky": (lambda n: scipy.linalg.cholesky(np.eye(n)), lambda n: n**3),
    "cholesky of a stack": (lambda n: scipy.linalg.cholesky(a=np.stack([np.eye(n)] * 8)), lambda n: 8 * n**3),
    "gemm": (lambda n: scipy.linalg.blas.dgemm(1.0, np.ones((n, 4)), np.ones((4, 2))), lambda n: 8 * n),
    "gemm of a transpose": (
        lambda n: scipy.linalg.blas.dgemm(1.0, np.ones((4, n)), b=np.ones((4, 2)), trans_a=1),
        lambda n: 8 * n,
    ),
    "syrk": (lambda n: scipy.linalg.blas.dsyrk(alpha=1.0, a=np.ones((n, 3))), lambda n: 3 * n**2),
    "trsm": (lambda n: scipy.linalg.blas.dtrsm(1.0, np.eye(n), np.ones((n, 5))), lambda n: 5 * n**2),
    "cho_solve": (lambda n: scipy.linalg.cho_solve((np.eye(n), True), np.ones(n)), lambda n: n**2),
    "solve_triangular": (
        lambda n: scipy.linalg.solve_triangular(np.eye(n), b=np.ones((n, 3))),
        lambda n: 3 * n**2,
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_size_of_a_call(name):
    routine, (call, operations) = name.split()[0], SIZES[name]
    for n in (5, 9):
        for factor, count in ((0.99, 1), (1.01, 0)):
            size = operations(n) ** (1 / 3)
            with patch_scipy(backend="cpu", thresholds={routine: size * factor}) as patch:
                call(n)
            assert sum(patch.calls.values()) == count


def test_thresholds_name_routines():
    with pytest.raises(ValueError, match="thresholds names gemv"):
        patch_scipy(backend="cpu", thresholds={"gemv": 1})
    for wrong in ("100", "a", {"gemm": None}, {"gemm": "b"}, float("nan"), [1]):
        with pytest.raises(TypeError, match=r"thresholds has .* no number"):
            patch_scipy(backend="cpu", thresholds=wrong)


@pytest.mark.filterwarnings("ignore:Calling linalg.inv with arguments of dtype:DeprecationWarning")
@pytest.mark.parametrize(
    "a",
    [
        A.tolist(),
        A.astype(int),
        A.astype("f2"),
        A.astype("longdouble"),
        A.view(type("Own", (np.ndarray,), {})),
    ],
    ids=["list", "int", "half", "long double", "subclass"],
)
def test_other_arrays_are_scipys(a):
    with taken() as patch:
        scipy.linalg.inv(a)
        scipy.linalg.blas.dgemm(1.0, A.astype("f"), A.astype("f"))
        assert not patch.calls


# -------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cholesky", (-A,)),
        ("cholesky", (np.full((2, 2), np.nan),)),
        ("cholesky", (np.ones((2, 3)),)),
        ("cholesky", ()),
        ("solve", (np.zeros((2, 2)), np.ones(2))),
        ("solve", (A, np.ones(3))),
        ("cho_solve", ((A, True), np.ones(3))),
        ("cho_solve", ((), np.ones(3))),
        ("lu_solve", (None, np.ones(3))),
        ("solve", (A, np.ones(6), False, False, False, True, np.array(["gen", "pos"]))),
        ("inv", (np.ones((2, 3)),)),
    ],
)
def test_errors_are_scipys(name, arguments):
    with pytest.raises(Exception) as expected:
        ORIGINALS[name](*arguments)
    with pytest.raises(expected.type) as actual, taken():
        getattr(scipy.linalg, name)(*arguments)
    assert actual.value.__context__ is None or expected.value.__context__ is not None
    if SCIPYS_WORDS_ARE_OURS or expected.type is not np.linalg.LinAlgError:
        assert str(actual.value) == str(expected.value)


def test_what_a_matrix_is_is_not_asked_twice(monkeypatch):
    """The factorization has overwritten the matrix that SciPy would see, which fails earlier."""
    a = np.array([[100.0, 90, 0], [90, 82, 0], [0, 0, -1]], order="F")
    with taken() as patch, pytest.raises(np.linalg.LinAlgError, match="3-th leading minor"):
        monkeypatch.setattr(patch, "refusals", (Exception,))
        scipy.linalg.cholesky(a, overwrite_a=True)


@pytest.mark.parametrize("a", [A, -A, A[1:]], ids=["serves", "raises", "sends the call to SciPy"])
def test_a_call_leaves_no_trace(a, monkeypatch):
    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    before = pyblasgpu.backend_status()
    with suppress(ValueError), taken():
        scipy.linalg.cholesky(a)
    assert pyblasgpu.backend_status() == before != pyblasgpu.backend_status("cpu")
    with taken() as patch:
        scipy.linalg.cholesky(A)
        assert patch.calls == {"cholesky": 1}


class Interrupt(BaseException):
    """Interrupts a program at any time."""


@pytest.mark.parametrize("error", [RuntimeError, Interrupt])
@pytest.mark.parametrize("bound", ["nothing", "some of SciPy's", "some of NumPy's"])
@pytest.mark.parametrize("is_inner", [False, True])
def test_a_patch_whose_binding_fails_is_undone(error, bound, is_inner, monkeypatch):
    binds, outer, chosen = switch.rebind, [], []
    with taken(numpy=True):
        chosen += [scipy.linalg.cholesky, scipy.linalg.inv, np.linalg.cholesky, np.linalg.inv]
    if is_inner:
        outer.append(taken())

    def fails(replacements):
        whole = {key: new for key, new in replacements.items() if new in chosen}
        binds({} if bound == "nothing" else whole)
        monkeypatch.setattr(switch, "rebind", binds)
        raise error("while names are bound")

    def waits(replacements):
        binds(replacements)
        monkeypatch.setattr(switch, "rebind", fails)

    monkeypatch.setattr(switch, "rebind", waits if bound == "some of NumPy's" else fails)
    with pytest.raises(error, match="while names are bound"):
        taken(numpy=True)
    assert (scipy.linalg.cholesky is ORIGINALS["cholesky"]) != is_inner
    assert np.linalg.inv is NUMPYS["inv"]
    scipy.linalg.cholesky(A)
    assert [patch.calls for patch in outer] == [{"cholesky": 1}] * is_inner


def test_a_device_without_memory_sends_the_call_to_scipy(monkeypatch, caplog):
    def fails(*arguments, **options):
        raise MemoryError("of the device")

    expected = ORIGINALS["cholesky"](A)
    with taken() as patch:
        monkeypatch.setattr("pyblasgpu.api.linalg.cholesky.lapack.potrf", fails)
        np.testing.assert_array_equal(scipy.linalg.cholesky(A), expected)
        assert not patch.calls and "goes to the CPU: of the device" in caplog.text


# -------------------------------------------------------------------------------------- nesting and threads


def test_nested_patches():
    with taken() as outer:
        with taken(thresholds=100) as inner:
            scipy.linalg.cholesky(A)
        scipy.linalg.cholesky(A)
    assert not inner.calls and outer.calls == {"cholesky": 1}


def test_a_switch():
    first, second = taken(), taken()
    first.undo()
    first.undo()
    scipy.linalg.cholesky(A)
    assert not first.calls and second.calls == {"cholesky": 1}
    unpatch_scipy()
    assert scipy.linalg.cholesky is ORIGINALS["cholesky"]
    unpatch_scipy()
    second.undo()


def test_a_patch_is_applied_once_and_again():
    """It is undone once, however often it was applied; a block applies what was undone."""
    patch = taken()
    patch.apply()
    patch.undo()
    assert scipy.linalg.cholesky is ORIGINALS["cholesky"]
    for count in (1, 2):
        with patch:
            scipy.linalg.cholesky(A)
        assert patch.calls["cholesky"] == count and scipy.linalg.cholesky is ORIGINALS["cholesky"]


def test_threads():
    errors = []

    def work():
        try:
            for _ in range(5):
                with taken() as patch:
                    factor = scipy.linalg.cholesky(A, lower=True)
                    np.testing.assert_allclose(factor, LOWER)
                assert patch.calls["cholesky"] <= 8
        except Exception as error:
            errors.append(error)

    with taken() as patch:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        scipy.linalg.cholesky(A)
        for each in threads:
            each.join()
        assert not errors
        before = patch.calls["cholesky"]
        thread = threading.Thread(target=lambda: scipy.linalg.cholesky(A))  # patches hold for all threads
        thread.start()
        thread.join()
        assert patch.calls["cholesky"] == before + 1


def test_our_own_calls_stay_ours():
    with taken() as patch:
        np.testing.assert_array_equal(pyblasgpu.gemm(A, B, backend="cpu"), A @ B)
        assert set(patch.calls) <= {"gemm"}


# ------------------------------------------------------------------------------------------------ backends


def test_without_a_gpu_nothing_is_replaced(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    for backend in (None, "auto"):
        with patch_scipy(backend=backend, thresholds=0) as patch:
            if patch.backend == "cpu":
                assert scipy.linalg.cholesky is ORIGINALS["cholesky"]
                scipy.linalg.cholesky(A)
                assert not patch.calls


def test_a_backend_that_is_not_there(monkeypatch):
    monkeypatch.setattr("pyblasgpu.frontend.backend_status.why_no_device", lambda ordinal: "it is not here")
    with pytest.raises(BackendUnavailable, match="cannot run here: it is not here"):
        patch_scipy(backend="cuda")
    with pytest.raises(BackendUnavailable, match=r"NUMBA_ENABLE_CUDASIM|cannot be built here"):
        patch_scipy(backend="sim")
    with pytest.raises(ValueError, match="backend"):
        patch_scipy(backend="gpu")
    assert scipy.linalg.cholesky is ORIGINALS["cholesky"]
