"""Results of patched functions and of the originals: order in memory, what is overwritten, warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack
from patched import nothing_is_left_behind, taken  # noqa: F401 - the fixture

from pyblasgpu import linalg, patch_scipy

N, K = 5, 3
SCIPY = tuple(map(int, scipy.__version__.split(".")[:2]))
takes_stacks = pytest.mark.skipif(SCIPY < (1, 17), reason="this SciPy takes no stacks, or structures of inv")


def definite(dtype="d", stack=()):
    rng = np.random.default_rng(4)
    a = rng.standard_normal((*stack, N, N)) + (1j if dtype in "FD" else 0) * rng.standard_normal((N, N))
    return (a @ a.conj().swapaxes(-1, -2) + N * np.eye(N)).astype(dtype)


def general(dtype="d", stack=()):
    a = definite(dtype, stack)
    a[..., 0, 1] += 1
    return a


def right(*shape, dtype="d"):
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


def by_columns(a):
    return a.copy() if a.ndim < 2 else a.swapaxes(-1, -2).copy("C").swapaxes(-1, -2)


def padded(a):
    whole = np.zeros([extent + 2 for extent in a.shape], a.dtype)
    part = whole[tuple(slice(1, -1) for _ in a.shape)] if a.ndim > 1 else np.repeat(a, 2)[::2]
    part[...] = a
    return part


LAYOUTS = {"C": lambda a: a.copy("C"), "F": by_columns, "padded": padded}


def laid(value, layout):
    """An argument with its arrays in a layout."""
    if isinstance(value, tuple):
        return tuple(laid(each, layout) for each in value)
    return LAYOUTS[layout](value) if isinstance(value, np.ndarray) else value


def arrays_in(values):
    """The arrays in what a function returned, or in its arguments, in their order."""
    if isinstance(values, (tuple, list)):
        return [array for value in values for array in arrays_in(value)]
    return [values] if isinstance(values, np.ndarray) and values.ndim else []


def memory_of(function, layout, arguments, options):
    """Return the order of each result, the arguments that share its memory, and which arguments changed."""
    arguments = [laid(each, layout) for each in arguments]
    given = arrays_in(arguments)
    before = [array.copy() for array in given]
    results = arrays_in(function(*arguments, **options))
    return (
        [(x.flags.c_contiguous, x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous) for x in results],
        [[np.shares_memory(x, array) for array in given] for x in results],
        [not np.array_equal(array, old) for array, old in zip(given, before, strict=True)],
    )


PIVOTS = np.arange(N, dtype=np.int32)
RIGHTS = {"a vector": (N,), "a column": (N, 1), "columns": (N, K)}
#: By name: the function, its arguments but right-hand sides for a stack and a dtype, whether there are any.
CALLS = {
    "cholesky": ("cholesky", lambda *a: [definite(*a)], False),
    "cho_factor": ("cho_factor", lambda *a: [definite(*a)], False),
    "lu_factor": ("lu_factor", lambda *a: [general(*a)], False),
    "lu": ("lu", lambda *a: [general(*a)], False),
    "lu of tall matrices": ("lu", lambda *a: [general(*a)[..., :-2]], False),
    "lu of wide matrices": ("lu", lambda *a: [general(*a)[..., :-2, :]], False),
    "qr": ("qr", lambda *a: [general(*a)], False),
    "qr of tall matrices": ("qr", lambda *a: [general(*a)[..., :-2]], False),
    "qr of wide matrices": ("qr", lambda *a: [general(*a)[..., :-2, :]], False),
    "det": ("det", lambda *a: [general(*a)], False),
    "inv": ("inv", lambda *a: [general(*a)], False),
    "solve": ("solve", lambda *a: [general(*a)], True),
    "solve, definite": ("solve", lambda *a: [definite(*a)], True),
    "solve, upper": ("solve", lambda *a: [np.triu(general(*a))], True),
    "solve, diagonal": ("solve", lambda *a: [general(*a) * np.eye(N)], True),
    "solve_triangular": ("solve_triangular", lambda *a: [general(*a)], True),
    "cho_solve": ("cho_solve", lambda *a: [(definite(*a), False)], True),
    "lu_solve": ("lu_solve", lambda d, s: [(general(d, s), np.broadcast_to(PIVOTS, (*s, N)))], True),
}


def check_memory(module, layout, cases, backend="cpu"):
    """Compare each case, a function's name, its arguments and its options, with the original function."""
    facts = slice(0, 3 if backend == "cpu" else 2)  # a device factors its copy of a matrix
    expected = [memory_of(getattr(module, name), layout, *rest)[facts] for name, *rest in cases]
    with patch_scipy(backend=backend, thresholds=0, numpy=True) as patch:
        for (name, arguments, options), original in zip(cases, expected, strict=True):
            ours = memory_of(getattr(module, name), layout, arguments, options)
            assert ours[facts] == original, (name, options)
        assert sum(patch.calls.values()) == len(cases)


@takes_stacks
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stack", [(), (2, 3)])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_placed_as_scipys(name, stack, layout):
    check_memory(scipy.linalg, layout, cases_of(name, stack))


@takes_stacks
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_results_of_a_device_are_placed_as_scipys(name, layout, fake):
    for stack in ((), (2, 3)):
        check_memory(scipy.linalg, layout, cases_of(name, stack), backend="cuda")


def cases_of(name, stack):
    function, arguments, is_solve = CALLS[name]
    if name == "cho_factor" and stack:
        return []  # SciPy returns an array of flags
    cases, flag = [], "overwrite_b" if is_solve else "overwrite_a"
    overwrites_alike = name != "det" and function != "lu" if SCIPY >= (1, 18) else True
    for dtype in "dF":
        for shape in RIGHTS.values() if is_solve else [None]:
            given = arguments(dtype, stack) + ([] if shape is None else [right(*shape, dtype=dtype)])
            cases.append((function, given, {}))
            # SciPy overwrites other stacks for nothing
            if overwrites_alike and (not stack or name in ("det", "lu", "solve", "inv")):
                cases.append((function, given, {flag: True}))
                if function == "solve":
                    cases.append((function, given, {flag: True, "overwrite_a": True}))
    return cases


KEPT = {"upper triangular": np.triu, "lower triangular": np.tril}


@takes_stacks
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("structure", ["gen", "pos", "sym", "her", *KEPT, "diagonal"])
def test_results_for_a_structure_are_placed_as_scipys(structure, layout):
    cases = []
    for dtype in "dF":
        a = KEPT.get(structure, np.asarray)(definite(dtype))
        for overwrite in (False, True):
            flags = {"assume_a": structure, "overwrite_a": overwrite}
            cases.append(("inv", [a], flags))
            for shape in RIGHTS.values() if structure != "diagonal" else ():  # such systems stay with SciPy
                cases.append(("solve", [a, right(*shape, dtype=dtype)], {"overwrite_b": overwrite, **flags}))
    check_memory(scipy.linalg, layout, cases)


@takes_stacks
@pytest.mark.parametrize("layout", LAYOUTS)
def test_solutions_of_diagonal_matrices_and_of_numbers_are_placed_as_scipys(layout, monkeypatch):
    """Call `linalg` itself: these calls stay with SciPy under a patch, or are divisions."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    for a, options in ((definite(), {"assume_a": "diagonal"}), (np.full((1, 1), 2.0), {})):
        for shape in ((len(a),), (len(a), 1), (len(a), K)):
            for overwrite in (False, True):
                case = layout, [a, right(*shape)], {"overwrite_b": overwrite, **options}
                assert memory_of(linalg.solve, *case) == memory_of(scipy.linalg.solve, *case)


@pytest.mark.parametrize("structure", ["gen", "pos", "sym", "her", *KEPT, "diagonal"])
@pytest.mark.parametrize("n", [N, 150])
def test_an_inverse_in_place(structure, n, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    a = np.random.default_rng(6).standard_normal((n, n)) * (1 + 0.5j) + 2 * n * np.eye(n)
    a = a if structure == "gen" else a + (a.T if structure == "sym" else a.conj().T)
    for lower in (False, True):
        new = linalg.inv(a, assume_a=structure, lower=lower)
        written = by_columns(a)
        assert linalg.inv(written, overwrite_a=True, assume_a=structure, lower=lower) is written
        np.testing.assert_allclose(written, new, 1e-12, 1e-15)
        kept = KEPT.get(structure, np.asarray)(a if structure != "diagonal" else a * np.eye(n))
        np.testing.assert_allclose(new, np.linalg.inv(kept), 1e-9, 1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stack", [(), (2,), (2, 3)])
def test_results_are_placed_as_numpys(stack, layout):
    cases = []
    for dtype in "dF":
        a = [definite(dtype, stack)]
        cases += [("cholesky", a, {}), ("cholesky", a, {"upper": True}), ("inv", a, {})]
        cases += [("det", a, {}), ("slogdet", a, {})]
        for shape in (*RIGHTS.values(), (*stack, N, K), (2, 1, N, K)):
            cases.append(("solve", [general(dtype, stack), right(*shape)], {}))
    check_memory(np.linalg, layout, cases)


@pytest.mark.parametrize("name", ["inv", "cholesky", "solve"])
def test_results_by_numpy_are_read_as_bytes(name):
    arguments = (definite(), right(N, 4)) if name == "solve" else (definite(),)
    a = getattr(np.linalg, name)(*arguments)
    with taken(numpy=True):
        ours = getattr(np.linalg, name)(*arguments)
    assert len(memoryview(ours).cast("B")) == len(memoryview(a).cast("B")) == a.nbytes
    assert ours.view("S8").shape == a.view("S8").shape
    np.testing.assert_allclose(ours, a, 1e-12, 1e-12)


#: By routine of BLAS or LAPACK: its arguments, and what it may overwrite.
ROUTINES = {
    "blas.{}gemm": (lambda d: [2.0, general(d), right(N, K, dtype=d), 1.0, right(N, K, dtype=d)], "c"),
    "blas.{}symm": (lambda d: [2.0, general(d), right(N, K, dtype=d), 1.0, right(N, K, dtype=d)], "c"),
    "blas.{}syrk": (lambda d: [2.0, general(d), 1.0, general(d)], "c"),
    "blas.{}syr2k": (lambda d: [2.0, general(d), general(d), 1.0, general(d)], "c"),
    "blas.{}trmm": (lambda d: [2.0, general(d), right(N, K, dtype=d)], "b"),
    "blas.{}trsm": (lambda d: [2.0, general(d), right(N, K, dtype=d)], "b"),
    "lapack.{}potrf": (lambda d: [definite(d)], "a"),
    "lapack.{}potri": (lambda d: [definite(d)], "c"),
    "lapack.{}potrs": (lambda d: [definite(d), right(N, K, dtype=d)], "b"),
    "lapack.{}trtri": (lambda d: [definite(d)], "c"),
    "lapack.{}trtrs": (lambda d: [definite(d), right(N, dtype=d)], "b"),
    "lapack.{}lauum": (lambda d: [definite(d)], "c"),
    "lapack.{}getrf": (lambda d: [general(d)[:, 1:]], "a"),
    "lapack.{}getrs": (lambda d: [general(d), PIVOTS, right(N, dtype=d)], "b"),
    "lapack.{}getri": (lambda d: [general(d), PIVOTS], "lu"),
    "lapack.{}posv": (lambda d: [definite(d), right(N, K, dtype=d)], "ab"),
    "lapack.{}gesv": (lambda d: [general(d), right(N, K, dtype=d)], "ab"),
}


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_of_routines_are_placed_as_scipys(routine, layout):
    module, _, name = routine.partition(".")
    arguments, overwritten = ROUTINES[routine]
    names = list(overwritten) if overwritten == "ab" else [overwritten]
    cases = [
        (name.format(letter), arguments(dtype), {f"overwrite_{each}": True for each in chosen})
        for letter, dtype in zip("sdcz", "fdFD", strict=True)
        for chosen in ([], names[:1], names)
    ]
    check_memory(getattr(scipy.linalg, module), layout, cases)


def test_an_indefinite_matrix_that_may_be_overwritten():
    """Try its Cholesky factor in place, and solve by LU factors of the restored matrix."""
    a = by_columns(definite() + 40 * (np.eye(N, k=1) + np.eye(N, k=-1)))
    assert (np.diagonal(a) > 0).all() and np.linalg.eigvalsh(a)[0] < 0
    for dtype in "dD":
        matrix, b = np.asfortranarray(a, dtype), right(N, K, dtype=dtype)
        with taken():
            x = scipy.linalg.solve(matrix.copy("F"), np.asfortranarray(b), overwrite_a=True, overwrite_b=True)
        np.testing.assert_allclose(a @ x, b, 1e-12, 1e-12)


# ------------------------------------------------------------------------------------------------ warnings

HILBERT, TRIANGLE = scipy.linalg.hilbert(14), np.diag(np.geomspace(1, 1e-20, 14))
BANDED = np.diag(np.geomspace(1, 1e-20, 14)) + 1e-21 * np.eye(14, k=1) + 1e-21 * np.eye(14, k=-1)
ILL_CONDITIONED = {
    "solve": lambda home: home.solve(HILBERT, np.ones(14)),
    "solve, general": lambda home: home.solve(HILBERT, np.ones(14), assume_a="gen"),
    "solve, upper": lambda home: home.solve(TRIANGLE, np.ones(14), assume_a="upper triangular"),
    "solve, tridiagonal": lambda home: home.solve(BANDED, np.ones(14), assume_a="tridiagonal"),
    "solve, stacks": lambda home: home.solve(np.stack([HILBERT, HILBERT]), np.ones(14)),
    "inv": lambda home: home.inv(HILBERT),
    "inv, upper": lambda home: home.inv(TRIANGLE, assume_a="upper triangular"),
    "lu_factor": lambda home: home.lu_factor(np.zeros((3, 3))),
}


def places_of(call, home):
    """The file and the line that the warnings of a call name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(home)
    assert caught and all(each.category is scipy.linalg.LinAlgWarning for each in caught)
    return {(each.filename, each.lineno) for each in caught}


@pytest.mark.parametrize("name", ILL_CONDITIONED)
def test_warnings_name_the_line_of_the_caller(name):
    call = ILL_CONDITIONED[name]
    here = {(__file__, call.__code__.co_firstlineno)}
    assert places_of(call, linalg) == here
    with taken() as patch:
        assert places_of(call, scipy.linalg) == here
        assert sum(patch.calls.values()) == (name != "solve, tridiagonal")
    if name != "lu_factor":  # SciPy's own names a file of SciPy's
        with patch_scipy(backend="cpu", thresholds=100) as patch:
            assert places_of(call, scipy.linalg) == here and not patch.calls


def test_numpys_functions_do_not_warn_of_conditions():
    with taken(numpy=True) as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (12, 14):
            hilbert = scipy.linalg.hilbert(n)
            np.linalg.inv(hilbert), np.linalg.solve(hilbert, np.ones(n)), np.linalg.det(hilbert)
            np.linalg.inv(np.stack([hilbert, hilbert]))
            np.linalg.solve(hilbert, np.full((n, 2), np.inf))
            linalg.matrix_power(hilbert, -1)
        assert patch.calls == {"inv": 4, "solve": 4, "det": 2}


def test_overflow_is_no_warning():
    """LAPACK gives none."""
    large = 1e200 * np.eye(3)
    with taken() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scipy.linalg.det(large) == np.inf
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of the norm, which is Inf
        scipy.linalg.solve(np.array([[1e308, 1e307], [1e308, -1e307]]), np.ones(2), assume_a="gen")
        assert np.isinf(linalg.solve(1e-200 * np.eye(2), np.full(2, 1e200), assume_a="diagonal")).all()
        assert patch.calls == {"det": 1, "solve": 1}
