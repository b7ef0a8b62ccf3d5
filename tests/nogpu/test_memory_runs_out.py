"""No memory at any step of a call on host arrays: nothing is written or kept; patched calls are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import pyblasgpu
from pyblasgpu import lapack, linalg, patch_scipy
from pyblasgpu.errors import TileReport
from pyblasgpu.routine_table import ROUTINES

N = 6
STEPS = ("allocate", "to_device", "to_host", "copy")


def arrays(order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    made = rng.uniform(1, 2, (3, N, N))
    made[0] = np.tril(made[0]) + N * np.eye(N)
    return tuple(np.array(each, order=order) for each in made)


CALLS = {
    "gemm": lambda a, b, out: pyblasgpu.gemm(a, b, out=out, beta=0.5, backend="cuda"),
    "gemm of a part": lambda a, b, out: pyblasgpu.gemm(a[::2], b, out=out[::2], beta=1, backend="cuda"),
    "trmm": lambda a, b, out: pyblasgpu.trmm(a, b, lower=True, out=out, backend="cuda"),
    "trsm in place": lambda a, b, out: pyblasgpu.trsm(a, out, lower=True, out=out, backend="cuda"),
    "symm": lambda a, b, out: pyblasgpu.symm(a, b, lower=True, out=out, backend="cuda"),
    "syrk": lambda a, b, out: pyblasgpu.syrk(a, out=out, beta=1, backend="cuda"),
    "syr2k": lambda a, b, out: pyblasgpu.syr2k(a, b, out=out, beta=1, backend="cuda"),
    "gemmtr": lambda a, b, out: pyblasgpu.gemmtr(a, b, out=out, beta=1, backend="cuda"),
    "a new result": lambda a, b, out: pyblasgpu.trsm(a, b, lower=True, backend="cuda"),
    "potrf": lambda a, b, out: lapack.dpotrf(out, lower=1, overwrite_a=1),
    "getrf": lambda a, b, out: lapack.dgetrf(out, overwrite_a=1),
    "getrs": lambda a, b, out: lapack.dgetrs(a, np.arange(N), out, overwrite_b=1),
    "solve": lambda a, b, out: linalg.solve(a, b),
    "inv": lambda a, b, out: linalg.inv(a),
    "solve in place": lambda a, b, out: linalg.solve(a, out, overwrite_a=True, overwrite_b=True),
    "inv in place": lambda a, b, out: linalg.inv(a, overwrite_a=True),
    "det in place": lambda a, b, out: linalg.det(a, overwrite_a=True),
}


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_written(fake, monkeypatch, name, order):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    memory, failures = fake[1], 0
    for step in STEPS:
        for number in range(20):
            operands, start = arrays(order), arrays(order)
            if not _fails_at(memory, step, number, lambda operands=operands: CALLS[name](*operands)):
                break
            failures += 1
            for one, other in zip(operands, start, strict=True):
                np.testing.assert_array_equal(one, other)
            assert not memory.held
        else:
            pytest.fail(f"{step} is called without end")
    assert failures >= 3


def _fails_at(memory, step: str, number: int, call) -> bool:
    """Whether a call comes to this step for this time, and there fails."""
    whole, left = getattr(memory, step), [number]

    def failing(*arguments):
        if left[0] == 0:
            raise MemoryError("out of memory")
        left[0] -= 1
        return whole(*arguments)

    setattr(memory, step, failing)
    try:
        call()
    except MemoryError:
        return True
    finally:
        setattr(memory, step, whole)
    return False


def definite() -> np.ndarray:
    a = np.random.default_rng(1).uniform(-1, 1, (N, N))
    return np.asfortranarray(a @ a.T + N * np.eye(N))


def later(*arguments, **options):
    raise MemoryError("for a later step")


@pytest.fixture
def steps(monkeypatch):
    """Calls take the steps that a test replaces, and not one function of SciPy's."""

    def forget() -> None:
        for routine in ROUTINES.values():
            vars(routine).pop("cpu_function", None)

    for module in ("frontend.calls.direct", "api.linalg.host"):
        monkeypatch.setattr(f"pyblasgpu.{module}.order_on_processor", lambda *arguments: 0)
    forget()
    yield
    forget()


B = np.ones((N, 2))
CALLS_IN_STEPS = {
    "gesv": lambda a, overwrite: scipy.linalg.lapack.dgesv(a, B, overwrite_a=overwrite)[2],
    "posv": lambda a, overwrite: scipy.linalg.lapack.dposv(a, B, overwrite_a=overwrite)[1],
    "solve": lambda a, overwrite: scipy.linalg.solve(a, B, assume_a="gen", overwrite_a=overwrite),
    "solve, definite": lambda a, overwrite: scipy.linalg.solve(a, B, overwrite_a=overwrite),
    "inv": lambda a, overwrite: scipy.linalg.inv(a, overwrite_a=overwrite),
    "inv, definite": lambda a, overwrite: scipy.linalg.inv(a, overwrite_a=overwrite, assume_a="pos"),
    "det": lambda a, overwrite: scipy.linalg.det(a.T, overwrite_a=overwrite),
    "lu": lambda a, overwrite: scipy.linalg.lu(a.T, overwrite_a=overwrite)[2],
}


@pytest.mark.parametrize(
    ("name", "step", "is_gone"),
    [
        ("gesv", "cpu.scipy.lu.getrf", False),
        ("gesv", "cpu.scipy.lu.getrs", True),
        ("posv", "cpu.scipy.cholesky.potrf", False),
        ("posv", "cpu.scipy.cholesky.potrs", True),
        ("solve", "api.linalg.solve.solve_general", False),
        ("solve", "api.linalg.host.InverseNorms.estimate", True),
        ("solve, definite", "cpu.scipy.cholesky.potrs", True),
        ("inv", "api.linalg.inverse.invert_general", False),
        ("inv", "cpu.scipy.lu.getri", True),
        ("inv", "api.linalg.condition.Conditions.keep", True),
        ("inv, definite", "cpu.scipy.cholesky.potri", True),
        ("det", "api.linalg.determinant.lapack.getrf", False),
        ("det", "api.linalg.determinant._product_of_few", True),
        ("det", "api.linalg.determinant._determinants", True),
        ("lu", "api.linalg.lu.host_values", False),
    ],
)
def test_what_a_step_overwrote_does_not_go_to_scipy(steps, monkeypatch, name, step, is_gone):
    call, a = CALLS_IN_STEPS[name], definite()
    expected = call(a, False)
    monkeypatch.setattr(f"pyblasgpu.{step}", later)
    with patch_scipy(backend="cpu", thresholds=0) as patch:
        np.testing.assert_array_equal(call(a, False), expected)
        if is_gone:
            with pytest.raises(MemoryError, match="for a later step"):
                call(a, True)
        else:
            np.testing.assert_array_equal(call(a, True), expected)
        assert not patch.calls


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_was_written_in_part_does_not_go_to_scipy(monkeypatch, overwrite):
    def fails(*arguments, **options):
        error = MemoryError("for the last tiles")
        error.tiles = TileReport("potrf", ((slice(0, 2), slice(0, 2)),), (), 9)
        raise error

    monkeypatch.setattr("pyblasgpu.api.linalg.cholesky.lapack.potrf", fails)
    a = definite()
    expected = scipy.linalg.cholesky(a)
    with patch_scipy(backend="cpu", thresholds=0):
        if overwrite:
            with pytest.raises(MemoryError, match="for the last tiles"):
                scipy.linalg.cholesky(a, overwrite_a=True)
        else:
            np.testing.assert_array_equal(scipy.linalg.cholesky(a), expected)
