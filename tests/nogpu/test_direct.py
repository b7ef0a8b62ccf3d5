"""NumPy arrays that SciPy takes as they are: the results, errors and writes of the checked calls."""

from __future__ import annotations

import inspect
import zlib
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import fake_device
import numpy as np
import pytest
from direct_calls import entered, outcome, same_outcome

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.frontend import backend_status
from pyblasgpu.frontend.calls.attempts import attempt_of
from pyblasgpu.gpu import context
from pyblasgpu.gpu.device import known
from pyblasgpu.routine_table import typed_names

#: Functions of which SciPy's serve some calls, by name.
DIRECT = {
    name: getattr(module, name)
    for module in (blas, lapack)
    for name in module.__all__
    if hasattr(getattr(module, name), "typecode") and hasattr(getattr(module, name), "__wrapped__")
}
BLAS = typed_names("level1", "level2", "level3")
#: What makes a number of an array special, and how frequent it is.
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, 1e-310)


class Arguments:
    """Random arguments of a function: most fit one another, and some are refused."""

    def __init__(self, rng: np.random.Generator, function: Any) -> None:
        self.rng, self.function = rng, function
        self.n, self.other = (int(rng.integers(1, 5)) for _ in range(2))
        self.special = rng.random() < 0.3
        self.is_odd = rng.random() < 0.3

    def drawn(self) -> dict[str, Any]:
        parameters = inspect.signature(self.function).parameters.values()
        needed = {p.name for p in parameters if p.default is inspect.Parameter.empty}
        names = [p.name for p in parameters if p.name != "method"]
        return {name: self.value(name) for name in names if name in needed or self.rng.random() < 0.4}

    def pick(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def value(self, name: str) -> Any:
        parameters = inspect.signature(self.function).parameters
        is_level_1 = "x" in parameters and not {"alpha", "lower"} & {*parameters}
        if name in ("alpha", "beta", "s") or (name in "ac" and is_level_1):
            odd = (2j, np.float64(2), np.float32(3), "2", np.nan, True, 10**400)
            return self.pick(*odd) if self.is_odd else self.pick(1, 1.0, 0.5, 0, -2)
        if name in ("piv", "ipiv"):
            most, first = self.n + (self.is_odd and self.rng.random() < 0.2), int(name == "ipiv")
            return self.rng.integers(first, most + first, self.n, np.int32)
        if name in ("a", "b", "c", "lu"):
            return self.array(2)
        if name in ("x", "y", "tau"):
            return self.array(1)
        if "tau" in parameters and name in ("side", "trans", "lwork") and "c" in parameters:
            return (
                self.pick(64, 100, 2) if name == "lwork" else self.pick(*"LLR" if name == "side" else "NTC")
            )
        if name[:3] in ("inc", "off") or name in ("n", "lda", "lwork"):
            return self.pick(0, 1, 2, -1, None) if self.is_odd else int(name.startswith("inc"))
        return self.pick(2, 3, -1, 1.0, True, "T", None, 1) if self.is_odd else self.pick(0, 1)

    def array(self, dimensions: int) -> np.ndarray:
        shape = [self.n] * dimensions
        if (self.is_odd and self.rng.random() < 0.3) or self.rng.random() < 0.05:
            shape = self.pick([self.n, self.other], [self.other, self.n]) if dimensions == 2 else [self.other]
        if self.is_odd and self.rng.random() < 0.2:
            shape = self.pick([self.n], [0, 0], [self.n, self.n, 1], [])
        values = self.rng.uniform(-1, 1, shape)
        if len(shape) == 2 and shape[0] == shape[1]:
            values = values @ values.T + np.eye(len(values))
        dtype = self.function.dtype if not self.is_odd else self.pick("d", "f", "D", "i", self.function.dtype)
        array = np.array(values.astype(dtype), order=self.pick("C", "F", "F"))
        if np.dtype(dtype).kind == "c":
            array.imag = array.real / 8
        if self.special and array.size and np.dtype(dtype).kind != "i":
            array.flat[self.rng.integers(array.size)] = self.pick(*SPECIAL)
        if self.rng.random() < 0.1:
            array.flags.writeable = False
        return array


@pytest.mark.parametrize("name", sorted(DIRECT))
def test_direct_calls_are_checked_ones(name):
    """Results, their order in memory, what is overwritten, and errors, whatever is passed."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(60):
        given = Arguments(rng, DIRECT[name]).drawn()
        if "y" in given and rng.random() < 0.1:
            given["y"] = given["x"]
        direct, checked = (outcome(each, given) for each in (DIRECT[name], DIRECT[name].__wrapped__))
        same_outcome(direct, checked, given)


A, X = np.asfortranarray(np.eye(4) + 1), np.arange(4.0)
PIV = np.arange(4, dtype=np.int32)
#: A call of each function, and how many modules and functions of the package it enters at most.
CALLS = {
    "dgemm": (1.0, A, A),
    "dsymm": (1.0, A, A),
    "dsyrk": (1.0, A),
    "dsyr2k": (1.0, A, A),
    "dtrmm": (1.0, A, A),
    "dtrsm": (1.0, A, A),
    "dgemv": (1.0, A, X),
    "dsymv": (1.0, A, X),
    "dtrmv": (A, X),
    "dtrsv": (A, X),
    "dger": (1.0, X, X),
    "dsyr": (1.0, X),
    "daxpy": (X, X + 1),
    "dcopy": (X, X + 1),
    "dswap": (X, X + 1),
    "dscal": (2.0, X),
    "ddot": (X, X),
    "dnrm2": (X,),
    "dasum": (X,),
    "idamax": (X,),
    "drot": (X, X, 0.6, 0.8),
    "dpotrf": (A,),
    "dpotri": (A,),
    "dpotrs": (A, A),
    "dposv": (A, X),
    "dtrtri": (A,),
    "dtrtrs": (A, X),
    "dlauum": (A,),
    "dgetrf": (A,),
    "dgetrs": (A, PIV, X),
    "dgetri": (A, PIV),
    "dgesv": (A, X),
    "dgeqrf": (A,),
    "dsytrf": (A,),
    "dsysv": (A, X),
    "dsytrs": (A, PIV + 1, X),
    "dlaswp": (A, PIV),
    "dgeqp3": (A,),
    "dorgqr": (A, X),
    "dormqr": ("L", "T", A, X, A, 64),
    "dsyevd": (A,),
    "dgesdd": (A,),
    "dgels": (A, A),
    "zher2": (1.0, X + 0j, X + 1j),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_direct_call_enters_few_functions(name):
    modules, functions = entered(lambda: DIRECT[name](*CALLS[name]))
    assert len(modules) <= 8 and functions <= 14, (modules, functions)


@pytest.fixture
def from_ten(decide_by, fake):
    """There is a card, which has matrices of order 10 and more."""
    decide_by(host_min_order=dict.fromkeys("sdcz", 10))
    return fake[0].calls


@pytest.mark.parametrize("name", sorted({*DIRECT} & {*BLAS}))
def test_parameters_read_from_scipy_are_those_of_blas(name):
    """Keyword functions call SciPy's by its own parameters, arrays that may be None among them."""
    parameters = inspect.signature(DIRECT[name]).parameters
    row, dtype = BLAS[name]
    attempt = attempt_of(row, dtype.letter, name)
    assert attempt.parameters == tuple(each for each in parameters if each != "method")
    left_out = {each for each in attempt.facts.arrays if parameters[each].default is None}
    assert attempt.optional == left_out


@pytest.mark.parametrize("name", CALLS)
def test_small_arrays_stay_on_the_processor(from_ten, name):
    from_ten.clear()
    modules, _ = entered(lambda: DIRECT[name](*CALLS[name]))
    assert not from_ten and "pyblasgpu.frontend.calls.call" not in modules


@pytest.mark.parametrize("orders", [(10, 10), (10, 3)])
def test_what_all_devices_have_in_common_is_found_once(from_ten, monkeypatch, decide_by, orders):
    """Which device is current does not matter where their orders are one."""
    devices = [replace(known("h200"), ordinal=number) for number in range(2)]
    fake_device.described(monkeypatch, *devices)
    policies = {
        each: replace(tuned_files.rates_of(each), host_min_order=dict.fromkeys("sdcz", order))
        for each, order in zip(devices, orders, strict=True)
    }
    monkeypatch.setattr(tuned_files, "rates_of", policies.__getitem__)
    current = Mock(return_value=1)
    monkeypatch.setattr(context, "current_device", current)
    choose.reload()
    blas.dgemm(2, A, A)
    assert bool(from_ten) == (orders[1] < 4) and current.called == (len({*orders}) > 1)
    choose.reload()


def test_large_matrices_are_a_cards(from_ten):
    a = np.eye(10, order="F")
    np.testing.assert_array_equal(blas.dgemm(2, a, a), 2 * a)
    assert from_ten


def test_a_backend_that_is_named_computes(from_ten, monkeypatch):
    with backend_status.preferred_backend("cuda"):
        np.testing.assert_array_equal(blas.dgemm(2, A, A), 2 * A @ A)
    assert len(from_ten) == 1
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    np.testing.assert_array_equal(blas.dgemm(2, A, A), 2 * A @ A)
    assert len(from_ten) == 2


def test_devices_that_are_named_compute(from_ten):
    with pyblasgpu.use_devices([0]):
        np.testing.assert_array_equal(blas.dgemm(2, A, A), 2 * A @ A)
    assert from_ten


def test_a_wrong_backend_is_refused(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "gpu")
    for call in (lambda: blas.dgemm(1, A, A), lambda: blas.ddot(X, X), lambda: lapack.dpotrf(A)):
        with pytest.raises(ValueError, match="is none of"):
            call()


#: Functions of `linalg` on small arrays, and how many of the package's functions they enter at most.
LINALG = {
    "matmul": ((A, A), 22),
    "dot": ((X, X), 22),
    "vdot": ((X, X), 22),
    "inner": ((A, A), 22),
    "cholesky": ((A,), 40),
    "cho_factor": ((A,), 40),
    "cho_solve": (((A, True), X), 45),
    "solve": ((A, X), 90),
    "inv": ((A,), 70),
    "lu_factor": ((A,), 40),
    "lu_solve": (((A, PIV), X), 45),
    "solve_triangular": ((A, X), 20),
    "det": ((A,), 40),
    "slogdet": ((A,), 40),
    "qr": ((A,), 65),
}


@pytest.mark.parametrize("name", LINALG)
def test_linalg_enters_few_functions(name):
    arguments, most = LINALG[name]
    modules, functions = entered(lambda: getattr(linalg, name)(*arguments))
    assert "pyblasgpu.frontend.calls.call" not in modules and functions <= most, (modules, functions)


@pytest.mark.parametrize("name", LINALG)
def test_small_arrays_of_linalg_stay_on_the_processor(from_ten, name):
    from_ten.clear()
    getattr(linalg, name)(*LINALG[name][0])
    assert not from_ten
