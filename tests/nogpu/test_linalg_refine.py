"""``linalg.solve(..., method="tensor")``: float64's accuracy by factors in float32, else in float64."""

from __future__ import annotations

import logging
from importlib import import_module
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu import linalg
from pyblasgpu.api.lapack import names as lapack
from pyblasgpu.api.linalg import refine
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.algorithms import refinement_pays
from pyblasgpu.dispatch.overrides import method_of
from pyblasgpu.frontend.engine_options import ambient_options

EPS = 2.0**-53


@pytest.fixture(autouse=True)
def every_order_is_refined(monkeypatch, decide_by):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    decide_by(getrf_refined_min_order=2, potrf_refined_min_order=2, refined_max_rhs_share=4)


@pytest.fixture
def messages(caplog):
    """What the calls tell of their steps."""
    caplog.set_level(logging.DEBUG, "pyblasgpu")
    return lambda: [record.getMessage() for record in caplog.records]


def general(n: int, condition: float = 10.0, seed: int = 0) -> np.ndarray:
    """Return a matrix with a condition number, in the 2-norm."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return left * np.geomspace(1, 1 / condition, n) @ right


def nearly_singular(n: int, condition: float = 1e10, seed: int = 0) -> np.ndarray:
    """Return a matrix with a condition number, which three directions make."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return left * np.where(np.arange(n) < n - 3, 1, 1 / condition) @ right


def definite(n: int, condition: float = 10.0, seed: int = 0) -> np.ndarray:
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    a = q * np.geomspace(1, 1 / condition, n) @ q.T
    return (a + a.T) / 2


def excess(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """The residual in units of what dsgesv allows."""
    sizes = abs(a).sum(axis=-1).max() * abs(x).max(axis=0)
    return float((abs(b - a @ x).max(axis=0) / (len(a) ** 0.5 * EPS * sizes)).max())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_solutions_are_scipys(data):
    """Matrices have any shape, order and structure; what is not read is NaN, and nothing is written."""
    n, batch = data.draw(st.integers(2, 12)), data.draw(st.sampled_from([(), (2,), (2, 3)]))
    structure = data.draw(st.sampled_from(["gen", "sym", "pos"]))
    lower = data.draw(st.booleans())
    make = general if structure == "gen" else definite
    count = int(np.prod(batch))
    whole = np.reshape([make(n, seed=i) for i in range(count)], (*batch, n, n))
    swapped = structure == "gen" and data.draw(st.booleans())
    a = whole.copy(data.draw(st.sampled_from("CF")))
    if structure != "gen":
        other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
        a[..., other[0], other[1]] = np.nan
    shape = data.draw(st.sampled_from([(n,), (n, 1), (n, 4)]))
    b = np.random.default_rng(1).standard_normal(shape)
    before = a.copy(), b.copy()
    options = {"assume_a": structure, "lower": lower, "transposed": swapped, "check_finite": False}
    actual = linalg.solve(a, b, method="tensor", **options)
    expected = linalg.solve(whole, b, assume_a="gen", transposed=swapped)
    assert actual.shape == expected.shape and actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)
    for given_, kept in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(given_, kept)


@pytest.mark.parametrize("make", [general, definite])
@pytest.mark.parametrize("condition", [1e1, 1e4, 1e6])
def test_the_residual_is_that_of_dsgesv(make, condition, messages):
    a, b = make(200, condition), np.random.default_rng(1).standard_normal((200, 3))
    b[:, 1] = 0
    x = linalg.solve(a, b, method="tensor", assume_a="pos" if make is definite else "gen")
    assert excess(a, x[:, ::2], b[:, ::2]) <= 1 and not x[:, 1].any()
    assert [message.split(" by ")[0] for message in messages()] == ["solve: refined"]


@pytest.mark.parametrize("condition", [1e8, 1e10, 1e12])
@pytest.mark.parametrize("columns", [(), (3,)], ids=str)
def test_few_directions_beyond_float32_are_left_to_gmres(condition, columns, messages, monkeypatch):
    made = (nearly_singular(120, condition, seed) for seed in count())
    a = next(
        each for each in made if not scipy.linalg.lapack.sgetrf(each.astype("f4"))[2]
    )  # a pivot may round to 0
    b = np.random.default_rng(1).standard_normal((120, *columns))
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    assert messages()[-1].endswith("of GMRES") and excess(a, x, b) <= 1
    y = linalg.solve(a, b, method="tensor", assume_a="gen", transposed=True)
    assert messages()[-1].endswith("of GMRES") and excess(a.T, y, b) <= 2  # the norm is that of columns
    monkeypatch.setattr(refine, "CYCLES", 0)
    linalg.solve(a, b, method="tensor", assume_a="gen")
    assert messages()[-1].endswith("factors in float64 follow")


@pytest.mark.parametrize(("make", "structure"), [(general, "gen"), (definite, "pos")])
@pytest.mark.parametrize("condition", [1e10, 1e14])
def test_what_float32_cannot_solve_is_solved_in_float64(make, structure, condition, messages):
    a, b = make(100, condition), np.random.default_rng(1).standard_normal((100, 2))
    x = linalg.solve(a, b, method="tensor", assume_a=structure)
    np.testing.assert_array_equal(x, linalg.solve(a, b, assume_a=structure))
    assert not any("refined" in message for message in messages())


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e150])
def test_right_hand_sides_of_any_size(scale, messages):
    """A residual is scaled before it becomes float32."""
    a, b = general(50), np.random.default_rng(1).standard_normal((50, 2))
    b[:, 1] *= scale
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    np.testing.assert_allclose(x, np.linalg.solve(a, b), 1e-12)
    assert "refined" in messages()[-1]


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_matrices_beyond_float32(factor, messages):
    a, b = general(50) * factor, np.ones((50, 1))
    np.testing.assert_array_equal(
        linalg.solve(a, b, method="tensor", assume_a="gen"), linalg.solve(a, b, assume_a="gen")
    )
    assert not any("refined" in message for message in messages())


@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_one_element_beyond_float32(structure, messages):
    """What has become Inf is no bound of anything."""
    a = np.diag([1e300, 1.0, 2.0])
    with pytest.warns(scipy.linalg.LinAlgWarning, match="rcond = 1e-300"):
        x = linalg.solve(a, np.ones(3), method="tensor", assume_a=structure)
    np.testing.assert_allclose(x, [1e-300, 1, 0.5], 1e-15)
    assert not any("refined" in message for message in messages())


def test_sums_beyond_float32(messages):
    a, b = general(50) * 1e38, np.ones((50, 1))
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    assert excess(a, x, b) <= 1


def test_what_is_found_is_told():
    with pytest.raises(np.linalg.LinAlgError, match="A singular matrix detected"):
        linalg.solve(np.ones((3, 3)), np.ones(3), assume_a="gen", method="tensor")
    with pytest.raises(np.linalg.LinAlgError, match="A singular matrix detected"):
        linalg.solve(-definite(5), np.ones(5), assume_a="pos", method="tensor")
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.solve(np.full((3, 3), np.nan), np.ones(3), method="tensor")
    with pytest.warns(scipy.linalg.LinAlgWarning, match="ill-conditioned"):
        linalg.solve(scipy.linalg.hilbert(14), np.ones(14), assume_a="gen", method="tensor")
    spoilt = np.where(np.eye(3) == 1, np.nan, 1.0)
    with pytest.warns(scipy.linalg.LinAlgWarning, match="rcond = nan"):
        actual = linalg.solve(spoilt, np.ones(3), assume_a="gen", method="tensor", check_finite=False)
    assert np.isnan(actual).all()


def test_one_of_a_stack_that_does_not_converge():
    a = np.stack([general(40), general(40, 1e12)])
    b = np.ones((40, 1))
    np.testing.assert_array_equal(
        linalg.solve(a, b, method="tensor", assume_a="gen"), linalg.solve(a, b, assume_a="gen")
    )


def test_other_structures_and_dtypes(decide_by, monkeypatch):
    """float32 has nothing to refine, substitution and division need no factors, small orders do not pay."""
    triangle, b = np.tril(general(6)) + np.eye(6), np.ones((6, 2))
    for structure in ("lower triangular", "diagonal", None):
        a = np.diag(np.arange(1.0, 7)) if structure == "diagonal" else triangle
        actual = linalg.solve(a, b, assume_a=structure, method="tensor")
        np.testing.assert_array_equal(actual, linalg.solve(a, b, assume_a=structure))
    single = general(6).astype(np.float32)
    actual = linalg.solve(single, b.astype(np.float32), method="tensor")
    np.testing.assert_array_equal(actual, linalg.solve(single, b.astype(np.float32)), strict=True)
    np.testing.assert_array_equal(linalg.solve(np.eye(2) * 1j, np.ones(2), method="tensor"), [-1j, -1j])
    decide_by(getrf_refined_min_order=7, potrf_refined_min_order=7)
    monkeypatch.setattr(lapack, "getrf", None)  # host matrices are SciPy's
    linalg.solve(general(6), b, assume_a="gen", method="tensor")


def test_large_systems_of_few_columns_are_refined():
    policy = tuned_files.reference_policy()
    assert refinement_pays("getrf", 1000, 1, policy) and refinement_pays("getrf", 100, 400, policy)
    assert not refinement_pays("getrf", 1, 1, policy)
    assert not refinement_pays("potrf", 100, 401, policy)


@pytest.mark.parametrize(
    ("structure", "shape", "device", "pays"),
    [
        ("definite", (300, 300), 0, False),
        ("definite", (200, 200), 0, True),
        ("definite", (2, 300, 300), 0, True),
        ("definite", (300, 300), None, True),
        ("general", (300, 300), 0, True),
        ("general", (1, 1), 0, False),
    ],
)
def test_definite_factors_that_keep_residues_are_not_refined(structure, shape, device, pays, monkeypatch):
    module = import_module("pyblasgpu.api.linalg.solve")
    monkeypatch.setattr(module, "policy_at", lambda device: tuned_files.reference_policy())
    monkeypatch.setattr(module, "keeps_residues", lambda letter, order, device: (letter, order) >= ("d", 250))
    arrays, matrix = SimpleNamespace(device=device), SimpleNamespace(shape=shape)
    assert module._refinement_pays(arrays, matrix, SimpleNamespace(shape=(*shape[:-1], 1)), structure) == pays


@pytest.mark.parametrize(("structure", "routine"), [("gen", "getrf"), ("pos", "potrf")])
def test_several_devices_factor_alone(structure, routine, monkeypatch):
    """What `use_devices` sets holds for the factors, and not for steps of few columns."""
    seen: dict[str, list[bool]] = {}
    for module, name in ((refine, "gemm"), (refine, "symv"), (lapack, routine)):
        run = getattr(module, name)

        def probe(*args, run=run, name=name, **options):
            seen.setdefault(name, []).append(ambient_options() is not None)
            return run(*args, **options)

        monkeypatch.setattr(module, name, probe)
    with pyblasgpu.use_devices(max_device_memory=1 << 30):
        linalg.solve(definite(9), np.ones(9), assume_a=structure, method="tensor")
    factors, steps = seen.pop(routine), [each for of_one in seen.values() for each in of_one]
    assert factors == [True] and len(steps) > 1 and not any(steps[structure == "pos" :])


def test_corrections_end(monkeypatch, messages):
    """After `MAX_STEPS` GMRES follows, and after that factors in float64 where the bound is out of reach."""
    a, b = general(50, 1e6), np.ones((50, 1))
    monkeypatch.setattr(refine, "MAX_STEPS", 0)
    linalg.solve(a, b, method="tensor", assume_a="gen")
    assert messages()[-1] == "solve: refined by 1 cycles of GMRES"
    monkeypatch.setattr(refine, "MAX_STEPS", 30)
    monkeypatch.setattr(refine, "EPS", 1e-30)
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    assert messages()[-1].startswith("solve: GMRES leaves")
    np.testing.assert_array_equal(x, linalg.solve(a, b, assume_a="gen"))


A, B = general(6) @ general(6).T + np.eye(6), np.ones((6, 2))
CALLS = {
    "solve": lambda **options: linalg.solve(A, B, **options),
    "inv": lambda **options: linalg.inv(A, **options),
    "cho_solve": lambda **options: linalg.cho_solve((A, True), B, **options),
    "lstsq": lambda **options: linalg.lstsq(A, B, **options)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_methods_of_functions(name, decide_by, monkeypatch):
    """They change nothing on the processor, and others than that for tensor cores are refused."""
    decide_by(getrf_refined_min_order=7, potrf_refined_min_order=7)
    np.testing.assert_array_equal(CALLS[name](method="tensor"), CALLS[name]())
    with pytest.raises(ValueError, match=f"{name}: method='fast' is neither 'tensor' nor None"):
        CALLS[name](method="fast")


@pytest.mark.parametrize(
    ("name", "routine"),
    [
        ("solve", "pyblasgpu.api.linalg.solve.solve_general"),
        ("inv", "pyblasgpu.api.linalg.inverse.invert_general"),
        ("cho_solve", "pyblasgpu.api.lapack.names.potrs"),
    ],
)
@pytest.mark.parametrize("method", ["tensor", None])
def test_routines_run_in_the_mode_of_the_method(name, routine, method, decide_by, monkeypatch):
    decide_by(getrf_refined_min_order=7, potrf_refined_min_order=7)
    module, _, attribute = routine.rpartition(".")
    original, modes = getattr(import_module(module), attribute), []

    def probe(*arguments, **options):
        modes.append(method_of(None))
        return original(*arguments, **options)

    monkeypatch.setattr(routine, probe)
    options = {"assume_a": "gen"} if name != "cho_solve" else {}
    CALLS[name](method=method, **options)
    assert modes == [method] and method_of(None) is None
