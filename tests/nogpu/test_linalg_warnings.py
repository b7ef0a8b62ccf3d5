"""Warnings and errors of floating-point numbers beside NumPy's and SciPy's for the same call."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack

import pyblasgpu
from pyblasgpu import blas, lapack, linalg

NAN, INF = float("nan"), float("inf")
MODES = ("over", "under", "divide", "invalid")
PRODUCTS = {"matmul", "dot", "tensordot", "multi_dot", "matrix_power"}  # of matrices, which BLAS multiplies


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def matrices(dtype: str, n: int = 4) -> dict[str, np.ndarray]:
    """What may overflow, underflow or become NaN, by what is in it."""
    limits, rng = np.finfo(dtype), np.random.default_rng(0)
    plain = (rng.uniform(1, 2, (n, n)) + 4 * np.eye(n)).astype(dtype)
    if dtype in "FD":
        plain = (plain + 1j * rng.uniform(1, 2, (n, n))).astype(dtype)
    made = {name: plain.copy() for name in ("plain", "inf", "inf and zero", "both inf", "nan", "singular")}
    made["inf"][1, 1] = INF
    made["inf and zero"][1], made["inf and zero"][0, 1] = 0, INF
    made["both inf"][0, :2] = INF, -INF
    made["nan"][1, 2] = NAN
    made["singular"][0] = 0
    scales = {"huge": limits.max / 16, "tiny": limits.tiny * 4, "subnormal": limits.smallest_subnormal * 8}
    made |= {name: (plain * scale).astype(dtype) for name, scale in scales.items()}
    made["mixed"] = plain * np.array([limits.max / 64, limits.tiny * 8, 1, 1], dtype)
    return made | {"zero": np.zeros_like(plain)}


def multiplies_padding(dtype: str) -> bool:
    """Whether NumPy's BLAS multiplies more than the matrices on this processor, Inf by zeros among it.

    Not seen of complex matrices, whose products with Inf have NaN anyway.
    """
    if dtype in "FD":
        return False
    with np.errstate(all="ignore", invalid="raise"):
        try:
            product = np.matmul(*2 * [matrices(dtype)["inf"]])
        except FloatingPointError:
            return True
    assert not np.isnan(product).any()
    return False


def outcome(call: Any, modes: tuple[str, ...]) -> list[Any]:
    """The texts of NumPy's warnings, and what is raised where one kind of error is to be an exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = [_error(call)]
    result.append(sorted({str(each.message) for each in caught if each.category is RuntimeWarning}))
    for mode in modes:
        with warnings.catch_warnings(), np.errstate(all="ignore"), np.errstate(**{mode: "raise"}):
            warnings.simplefilter("ignore")
            result.append((mode, _error(call)))
    return result


def _error(call: Any) -> str | None:
    try:
        call()
    except FloatingPointError as error:
        return str(error)
    except np.linalg.LinAlgError:
        return "LinAlgError"
    return None


# ---------------------------------------------------------------------------------------- NumPy's functions

NUMPYS = {
    "matmul": lambda xp, a: xp.matmul(a, a),
    "matmul of a transpose": lambda xp, a: xp.matmul(a, a.T),
    "matmul of a vector": lambda xp, a: xp.matmul(a, a[0]),
    "matmul of a stack": lambda xp, a: xp.matmul(np.stack([a, a]), a),
    "matmul into out": lambda xp, a: xp.matmul(a, a, out=np.empty_like(a)),
    "matmul in single": lambda xp, a: xp.matmul(a, a, dtype="F", casting="unsafe"),
    "matmul into single": lambda xp, a: xp.matmul(a, a, out=np.empty(a.shape, "F")),
    "dot": lambda xp, a: xp.dot(a, a),
    "dot of vectors": lambda xp, a: xp.dot(a[0], a[1]),
    "dot with a vector": lambda xp, a: xp.dot(a, a[1]),
    "dot with a number": lambda xp, a: xp.dot(a, 3.0),
    "dot into out": lambda xp, a: xp.dot(a, a, np.empty_like(a)),
    "vdot": lambda xp, a: xp.vdot(a[0], a[1]),
    "inner": lambda xp, a: xp.inner(a, a),
    "inner with a number": lambda xp, a: xp.inner(a.dtype.type(30), a),
    "outer": lambda xp, a: xp.outer(a[0], a[1]),
    "tensordot": lambda xp, a: xp.tensordot(a, a, 1),
    "tensordot over nothing": lambda xp, a: xp.tensordot(a, a, 0),
    "einsum": lambda xp, a: xp.einsum("ij,jk", a, a),
    "einsum, summed": lambda xp, a: xp.einsum("ij,kl->", a, a),
    "einsum of a diagonal": lambda xp, a: xp.einsum("ii,jk->k", a, a),
    "einsum of elements": lambda xp, a: xp.einsum("ij,ij->ij", a, a),
    "einsum of stacks": lambda xp, a: xp.einsum("bij,bjk->bk", np.stack([a, a]), np.stack([a, a])),
    "multi_dot": lambda xp, a: xp.multi_dot([a, a, a]),
    "matrix_power": lambda xp, a: xp.matrix_power(a, 3),
    "matvec": lambda xp, a: xp.matvec(a, a[0]),
    "vecmat": lambda xp, a: xp.vecmat(a[0], a),
    "vecdot": lambda xp, a: xp.vecdot(a, a),
    "slogdet": lambda xp, a: xp.slogdet(a),
    "inverse power": lambda xp, a: xp.matrix_power(a, -1),
}


class NumPy:
    """NumPy's functions and those of its linalg."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name, None) or getattr(np.linalg, name)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", NUMPYS)
def test_numpys_warnings(name, dtype):
    call = NUMPYS[name]
    if name in ("matvec", "vecmat", "vecdot") and not hasattr(np, name):
        pytest.skip("NumPy is older")
    for kind, a in matrices(dtype).items():
        modes = MODES
        if kind == "mixed" or name in ("slogdet", "inverse power"):
            modes = ("over", "divide", "invalid")  # parts that underflow beside larger ones leave no trace
        if name == "slogdet" and kind in ("inf and zero", "both inf"):
            continue  # no factor is NaN
        has_inf = kind.startswith("inf") or (name == "matrix_power" and kind in ("huge", "mixed"))
        if has_inf and name.partition(" ")[0] in PRODUCTS and multiplies_padding(dtype):
            continue  # NumPy warns of what is not in the product
        if name == "inverse power" and kind == "subnormal":
            continue  # NumPy inverts in double precision, and warns of the cast
        actual = outcome(lambda call=call, a=a: call(linalg, a), modes)
        assert actual == outcome(lambda call=call, a=a: call(NumPy(), a), modes), kind


def test_a_warning_names_the_line_of_the_call():
    with pytest.warns(RuntimeWarning, match="overflow encountered in matmul") as caught:
        linalg.matmul(np.full((2, 2), 1e300), np.full((2, 2), 1e300))
    assert caught[0].filename == __file__


def test_what_errstate_makes_of_an_error(capfd):
    big, calls, log = np.full((2, 2), 1e300), [], io.StringIO()
    for xp in (linalg, np):
        before = np.seterrcall(lambda kind, flag: calls.append((kind, flag)))
        with np.errstate(all="call"):
            xp.dot(big, big)
        np.seterrcall(log)
        with np.errstate(all="log"):
            xp.dot(big, big)
        np.seterrcall(before)
        with np.errstate(all="print"):
            xp.dot(big, big)
    assert calls[0] == calls[1] == ("overflow", 2)
    for text in (log.getvalue(), capfd.readouterr().err):
        assert text.splitlines() == ["Warning: overflow encountered in dot"] * 2


def test_out_holds_the_result_where_an_error_is_raised():
    out = np.zeros((2, 2))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        linalg.matmul(np.full((2, 2), 1e300), np.full((2, 2), 1e300), out=out)
    assert (out == INF).all()


def test_other_libraries_arrays_give_no_warning():
    torch = pytest.importorskip("torch")
    a = torch.full((2, 2), 1e300, dtype=torch.float64)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for function in (linalg.matmul, linalg.dot, linalg.inner, linalg.outer):
            function(a, a)
        linalg.det(a), linalg.slogdet(a)


# ---------------------------------------------------------------------------------------- SciPy's functions

PIVOTS = np.arange(4)
SCIPYS = {
    "det": lambda xp, a: xp.det(a, check_finite=False),
    "inv": lambda xp, a: xp.inv(a, check_finite=False),
    "solve": lambda xp, a: xp.solve(a, a[0], check_finite=False),
    "solve_triangular": lambda xp, a: xp.solve_triangular(a, a, check_finite=False),
    "cho_solve": lambda xp, a: xp.cho_solve((a, True), a, check_finite=False),
    "lu": lambda xp, a: xp.lu(a, check_finite=False),
    "lu_factor": lambda xp, a: xp.lu_factor(a, check_finite=False),
    "lu_solve": lambda xp, a: xp.lu_solve((a, PIVOTS), a, check_finite=False),
} | {
    f"{name}, {structure}": (
        lambda xp, a, name=name, structure=structure: getattr(xp, name)(
            a, *([a] * (name == "solve")), assume_a=structure, check_finite=False
        )
    )
    for name in ("inv", "solve")
    for structure in ("gen", "diagonal", "upper triangular", "lower triangular")
}
#: NaN is no positive pivot, of which OpenBLAS knows nothing; symmetric matrices are factored otherwise.
DEFINITE = {
    "cholesky": lambda xp, a: xp.cholesky(a, check_finite=False),
    "cho_factor": lambda xp, a: xp.cho_factor(a, check_finite=False),
    "solve": lambda xp, a: xp.solve(a, a, assume_a="pos", check_finite=False),
    "inv": lambda xp, a: xp.inv(a, assume_a="pos", check_finite=False),
    "solve, symmetric": lambda xp, a: xp.solve(a, a, assume_a="sym", check_finite=False),
    "inv, Hermitian": lambda xp, a: xp.inv(a, assume_a="her", check_finite=False),
}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", SCIPYS)
def test_scipys_functions_warn_of_no_errors_of_numbers(name, dtype):
    call = SCIPYS[name]
    for kind, a in matrices(dtype).items():
        actual = outcome(lambda call=call, a=a: call(linalg, a), MODES)
        assert actual == outcome(lambda call=call, a=a: call(scipy.linalg, a), MODES), kind


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", DEFINITE)
def test_definite_matrices_warn_of_no_errors_of_numbers(name, dtype):
    for a in matrices(dtype).values():
        error, texts, *raised = outcome(lambda a=a: DEFINITE[name](linalg, a), MODES)
        assert not texts and {each for _, each in raised} == {error} <= {None, "LinAlgError"}


def test_determinants_beyond_the_range_warn_of_nothing():
    for a in (1e200 * np.eye(3), 1e-200 * np.eye(3), 1e200 * (1 + 1j) * np.eye(3), np.diag([NAN, 0, INF])):
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            linalg.det(a, check_finite=False)
            linalg.det(np.stack([a, a]), check_finite=False)


# --------------------------------------------------------------------------------- names of BLAS and LAPACK

NORMS = {"s": "s", "d": "d", "c": "sc", "z": "dz"}
BLAS = {
    "gemm": lambda f, a: f(2.0, a, a),
    "symm": lambda f, a: f(2.0, a, a),
    "syrk": lambda f, a: f(2.0, a),
    "syr2k": lambda f, a: f(2.0, a, a),
    "trmm": lambda f, a: f(2.0, a, a),
    "trsm": lambda f, a: f(2.0, a, a),
    "gemv": lambda f, a: f(2.0, a, a[0]),
    "trsv": lambda f, a: f(a, a[0]),
    "trmv": lambda f, a: f(a, a[0]),
    "axpy": lambda f, a: f(a[0], a[1].copy(), a=1e30),
    "scal": lambda f, a: f(1e30, a[0].copy()),
    "ger": lambda f, a: f(2.0, a[0], a[1]),
    "dot": lambda f, a: f(a[0], a[1]),
    "nrm2": lambda f, a: f(a[0]),
    "asum": lambda f, a: f(a[0]),
}
LAPACK = {
    "potrf": lambda f, a: f(a),
    "potri": lambda f, a: f(a),
    "potrs": lambda f, a: f(a, a),
    "posv": lambda f, a: f(a, a),
    "trtri": lambda f, a: f(a),
    "trtrs": lambda f, a: f(a, a),
    "lauum": lambda f, a: f(a),
    "getrf": lambda f, a: f(a),
    "getrs": lambda f, a: f(a, PIVOTS, a),
    "getri": lambda f, a: f(a, PIVOTS),
    "gesv": lambda f, a: f(a, a),
}


def routine_name(routine: str, letter: str) -> str:
    if routine in ("nrm2", "asum"):
        return NORMS[letter] + routine
    return letter + routine + ("u" if routine in ("ger", "dot") and letter in "cz" else "")


@pytest.mark.parametrize(
    "letter, dtype", [("s", "f"), ("s", "d"), ("d", "d"), ("c", "F"), ("c", "D"), ("z", "D")]
)
@pytest.mark.parametrize("routine", [*BLAS, *LAPACK])
def test_routines_warn_of_casts_alone(routine, letter, dtype):
    """Casts to single precision warn of what it does not hold, as SciPy's do."""
    ours, theirs = (blas, scipy.linalg.blas) if routine in BLAS else (lapack, scipy.linalg.lapack)
    call = (BLAS | LAPACK)[routine]
    functions = [getattr(module, routine_name(routine, letter)) for module in (ours, theirs)]
    for kind, a in matrices(dtype).items():
        actual, expected = (outcome(lambda f=f, a=a: call(f, a), MODES) for f in functions)
        assert actual == expected, kind


def test_vectors_of_the_keyword_functions_warn_of_nothing():
    calls = [
        lambda a: pyblasgpu.gemv(a, a[0]),
        lambda a: pyblasgpu.ger(a[0], a[1]),
        lambda a: pyblasgpu.symv(a, a[0]),
        lambda a: pyblasgpu.trmv(a, a[0]),
        lambda a: pyblasgpu.trsv(a, a[0]),
        lambda a: pyblasgpu.syr(a[0]),
        lambda a: pyblasgpu.syr2(a[0], a[1]),
        lambda a: pyblasgpu.axpy(a, a.copy(), alpha=1e30),
        lambda a: pyblasgpu.scal(a.copy(), alpha=1e30),
        lambda a: pyblasgpu.dot(a, a),
        lambda a: pyblasgpu.nrm2(a),
        lambda a: pyblasgpu.asum(a),
        lambda a: pyblasgpu.iamax(a[0]),
    ]
    for dtype in "fdFD":
        for a in matrices(dtype).values():
            for call in calls:
                assert outcome(lambda call=call, a=a: call(a), MODES) == [
                    None,
                    [],
                    *((m, None) for m in MODES),
                ]
