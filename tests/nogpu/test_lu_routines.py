"""LU factors and solutions as launch lists, by kernels computed with NumPy: any size, batches, layouts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg.lapack as scipys
from fake_kernels import install, operand, run
from matrices import uniform

from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.lazy_routines import after_copy
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.routines import copies
from pyblasgpu.routines.joined_lists import joined
from pyblasgpu.routines.lapack import gesv, getrf, getrs, laswp, new_results, potrf, potrs, trtri, unless
from pyblasgpu.types import DTYPES, Diag, Region, Trans, Uplo


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


def words(integers: np.ndarray) -> np.ndarray:
    """The int32 in the first bytes of each element of a C-contiguous array."""
    return integers.view(np.int32)[..., :: integers.itemsize // 4][..., 0]


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", [(64, 64), (65, 65), (300, 700), (1500, 200), (500, 500)])
def test_factors(kernels, letter, m, n):
    a = uniform(letter, m, n)
    expected, pivots, _ = getattr(scipys, f"{letter}getrf")(a)
    for order in "FC":
        got, piv = np.array(a, order=order), np.empty((min(m, n), 1), a.dtype)
        info = np.empty((1, 1), a.dtype)
        run(getrf, piv, info, got)
        if letter in "dz":
            np.testing.assert_array_equal(words(piv), pivots)
            np.testing.assert_allclose(got, expected, atol=1e-9)
        assert words(info)[0] == 0


def test_four_launches_a_panel(kernels):
    """A panel, its interchanges, a triangle and a product; the first or last of them may be two."""
    a, piv, info = np.asfortranarray(uniform("d", 1024, 1024)), np.empty((1024, 1)), np.empty((1, 1))
    with override("lookahead", 0):
        run(getrf, piv, info, a)
    names = [name for name, _, _ in kernels.launches]
    panels = names.count("getrf_panel")
    assert panels == 32 and names.count("laswp") == panels
    assert len(names) <= 5 * panels


def test_a_batch_of_panels_of_one_cluster_is_one_list_of_launches(kernels):
    """Else the matrices come one after the other."""
    for rows, panels in ((100, 2), (900, 2), (8300, 3), (16400, 6)):
        kernels.launches.clear()
        stack = uniform("d", 3, rows, 40)
        expected = [scipys.dgetrf(a) for a in stack]
        piv, info = np.empty((3, 40, 1)), np.empty((3, 1, 1))
        run(getrf, piv, info, stack)
        for got, got_piv, (lu, pivots, _) in zip(stack, words(piv), expected, strict=True):
            np.testing.assert_allclose(got, lu, atol=1e-9)
            np.testing.assert_array_equal(got_piv, pivots)
        assert [name for name, _, _ in kernels.launches].count("getrf_panel") == panels


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("trans", Trans)
def test_solutions(kernels, letter, trans):
    a, b = uniform(letter, 150, 150) + 4 * np.eye(150), uniform(letter, 150, 7)
    lu, piv, _ = getattr(scipys, f"{letter}getrf")(a.astype(b.dtype))
    integers = np.empty((150, 1), b.dtype)
    integers.view(np.int32)[:, 0] = piv
    x = np.asfortranarray(b)
    run(getrs, integers, np.asfortranarray(lu), x, trans=trans)
    op = {Trans.NO: a, Trans.TRANS: a.T, Trans.CONJ: a.conj().T}[trans]
    np.testing.assert_allclose(op @ x, b, atol=2e-3 if letter in "sc" else 1e-10)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 7), (32, 32), (9, 30)])
def test_small_matrices_are_one_launch(kernels, letter, m, n):
    stack = uniform(letter, 70, m, n)
    expected = [getattr(scipys, f"{letter}getrf")(a) for a in stack]
    piv, info = np.empty((70, min(m, n), 1), stack.dtype), np.empty((70, 1, 1), stack.dtype)
    run(getrf, piv, info, stack)
    assert [name for name, _, _ in kernels.launches] == ["getrf_small"]
    for got, got_piv, (lu, pivots, _) in zip(stack, words(piv), expected, strict=True):
        np.testing.assert_array_equal(got_piv, pivots)
        np.testing.assert_allclose(got, lu, atol=1e-4 if letter in "sc" else 1e-12)


@pytest.mark.parametrize("trans", Trans)
@pytest.mark.parametrize(
    "n, r, batch, at_once",
    [
        (1, 1, 3, True),
        (7, 5, 70, True),
        (32, 16, 2, True),
        (32, 17, 2, False),
        (20, 1, 1, True),
        (33, 4, 528, True),
        (33, 4, 527, False),
        (33, 5, 528, False),
        (65, 1, 528, False),
    ],
)
def test_solutions_of_small_matrices(kernels, trans, n, r, batch, at_once):
    """Few right-hand sides take one launch; groups of lanes share them where there are few. Of more than 32
    rows matrices must be many.
    """
    a, b = uniform("z", batch, n, n) + 4 * np.eye(n), uniform("z", batch, n, r)
    factors = [scipys.zgetrf(each) for each in a]
    integers = np.empty((batch, n, 1), complex)
    words(integers)[...] = [piv for _, piv, _ in factors]
    x = b.copy()
    run(getrs, integers, np.stack([lu for lu, _, _ in factors]), x, trans=trans)
    op = {Trans.NO: a, Trans.TRANS: a.swapaxes(1, 2), Trans.CONJ: a.conj().swapaxes(1, 2)}[trans]
    np.testing.assert_allclose(op @ x, b, atol=1e-10)
    assert (len(kernels.launches) == 1) == at_once


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, last", [(7, "getrs_small"), (40, "restore")])
def test_what_is_not_solved_stays(kernels, letter, n, last):
    """Systems are a batch, with right-hand sides in any order. Small ones need no copy of these."""
    dtype = DTYPES[letter].name
    a = (uniform(letter, 3, n, n) + 4 * np.eye(n)).astype(dtype)
    b = uniform(letter, 3, n, 7)
    info, piv = np.zeros((3, 1, 1), dtype), np.zeros((3, n, 1), dtype)
    words(info)[1] = 5
    words(piv)[...] = np.arange(n)
    for x in (b.copy(), b.swapaxes(1, 2).copy().swapaxes(1, 2)):
        run(unless.getrs_launch_list, info, piv, a, x)
        lower, upper = np.tril(a, -1) + np.eye(n), np.triu(a)
        expected = np.linalg.solve(upper, np.linalg.solve(lower, b))
        expected[1] = b[1]
        tolerance = 1e-3 if letter in "sc" else 1e-10
        np.testing.assert_allclose(x, expected, rtol=tolerance, atol=tolerance / 10)
        np.testing.assert_array_equal(x[1], b[1])
        x = b.copy()
        run(unless.potrs_launch_list, info, a, x, uplo=Uplo.LOWER)
        np.testing.assert_array_equal(x[1], b[1])
        assert not np.allclose(x[[0, 2]], b[[0, 2]])
        names = [name for name, *_ in kernels.launches]
        assert names[-1] == last and (set(names) == {last}) == (n == 7)


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize(
    "letter, n, r, batch, at_once",
    [
        ("z", 1, 1, 3, True),
        ("z", 7, 5, 70, True),
        ("z", 32, 16, 2, True),
        ("d", 33, 1, 528, True),
        ("z", 33, 1, 528, False),
    ],
)
def test_definite_systems_of_small_matrices(kernels, uplo, letter, n, r, batch, at_once):
    """One launch, which reads one triangle, where it takes less than TRSMs."""
    a, b = uniform(letter, batch, n, n), uniform(letter, batch, n, r)
    a = a @ a.conj().swapaxes(1, 2) + np.eye(n)
    lower = np.linalg.cholesky(a)
    factor = lower if uplo is Uplo.LOWER else lower.conj().swapaxes(1, 2).copy()
    factor[:, ~np.tri(n, dtype=bool) if uplo is Uplo.LOWER else ~np.tri(n, dtype=bool).T] = np.nan
    x = b.copy()
    run(potrs, factor, x, uplo=uplo)
    np.testing.assert_allclose(a @ x, b, atol=1e-9)
    assert ([name for name, _, _ in kernels.launches] == ["getrs_small"]) == at_once


def test_interchanges_there_and_back(kernels):
    a, piv = uniform("d", 300, 20), np.random.default_rng(1).integers(0, 300, 100)
    integers = np.empty((100, 1))
    integers.view(np.int32)[:, 0] = piv
    start, rows = a.copy(), np.arange(300)
    for i, pivot in enumerate(piv):
        rows[[i + 5, pivot]] = rows[[pivot, i + 5]]
    # the stand-in takes pivots below their group alone
    integers.view(np.int32)[:, 0] = np.maximum(piv, np.arange(100) + 5)
    rows = np.arange(300)
    for i, pivot in enumerate(integers.view(np.int32)[:, 0]):
        rows[[i + 5, pivot]] = rows[[pivot, i + 5]]
    run(laswp, integers, a, backwards=False, first=5)
    np.testing.assert_array_equal(a, start[rows])
    run(laswp, integers, a, backwards=True, first=5)
    np.testing.assert_array_equal(a, start)


@pytest.mark.parametrize("order", "CF")
def test_interchanges_walk_along_the_lines_of_memory(kernels, order):
    a = operand(np.zeros((300, 20), order=order), DTYPES["d"])
    launches = laswp.launch_list(operand(np.zeros((9, 1)), DTYPES["d"]), a, backwards=False, first=5)
    (entry,) = [each for each in launches.entries if each.source.name == "laswp"]
    assert entry.integers[6:8] == (int(order == "C"), 0)


def test_more_rows_than_a_device_has_threads(kernels):
    """A panel goes by a launch a column."""
    device, best = known("h200"), FIXED["getrf_panel"].fixed_config("s")
    largest = best.specialize(10**6, device)
    most = largest.resident(device) * largest.ROWS
    assert best.specialize(most, device).applies(most, device)
    assert not best.specialize(most + 1, device).applies(most + 1, device)
    a = uniform("s", most + 1, 40)
    expected, pivots, _ = scipys.sgetrf(a)
    piv, info, got = np.empty((40, 1), "f"), np.empty((1, 1), "f"), np.asfortranarray(a)
    run(getrf, piv, info, got)
    names = [name for name, _, _ in kernels.launches]
    assert names.count("getrf_column") == 40 + 2 and "getrf_panel" not in names
    assert words(info)[0] == 0
    np.testing.assert_array_equal(words(piv), pivots)
    np.testing.assert_allclose(got, expected, atol=2e-2)


@pytest.mark.parametrize(
    "n, batch, stem",
    [(4, 5000, "potrf_small"), (16, 5000, "potrf_small"), (4, 100, "potrf_leaf"), (17, 5000, "potrf_leaf")],
)
def test_small_triangles_of_a_batch(kernels, n, batch, stem):
    """Several a warp where there are more of them than blocks at a time, each triangle, zeros beyond it."""
    x = uniform("d", n, n)
    a = np.stack([x @ x.T + (1 + z % 7) * np.eye(n) for z in range(batch)])
    expected = np.linalg.cholesky(a)
    for uplo, clean in ((Uplo.LOWER, True), (Uplo.UPPER, True), (Uplo.LOWER, False)):
        got, info = a.copy(), np.full((batch, 1, 1), np.nan)
        run(potrf, info, got, uplo=uplo, clean=clean)
        beyond = 0 if clean else np.triu(a, 1)
        factors = expected if uplo is Uplo.LOWER else expected.swapaxes(1, 2)
        np.testing.assert_allclose(got, factors + beyond, atol=1e-12)
        assert not words(info).any()
    assert {name for name, *_ in kernels.launches} == {stem}


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    "routine, n, uplo",
    [(getrf, 6, None), *product([potrf], [6, 20], Uplo)],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_small_factors_without_a_copy(kernels, routine, n, uplo, order):
    """One launch reads the source where it has the strides of the output, that of Cholesky's any; the source
    stays.
    """
    x, flags = uniform("d", n, n), {"uplo": uplo, "clean": True} if uplo else {}
    source = np.stack([x @ x.T + (1 + z) * np.eye(n) for z in range(3)])
    if uplo:  # what is beyond is not read
        source[:, *(np.triu_indices(n, 1) if uplo is Uplo.LOWER else np.tril_indices(n, -1))] = np.nan
    before, out = source.copy(), np.empty((3, n, n))
    out = out if order == "C" else out.swapaxes(1, 2)
    counts = (1,) if uplo else (n, 1)
    arrays = [*(np.empty((3, count, 1)) for count in counts), source, out]
    operands = [operand(each, DTYPES["d"]) for each in arrays]
    copied, rest = (
        copies.launch_list(1, *operands[-2:]),
        routine.launch_list(*operands[:-2], operands[-1], **flags),
    )
    joined(copied, rest, operands).run([each.pointer for each in operands], 1.0, stream=0)
    assert len(kernels.launches) == (1 if uplo or order == "C" else 2) and not words(arrays[-3]).any()
    np.testing.assert_array_equal(source, before)
    run(routine, *arrays[:-2], source, **flags)
    np.testing.assert_array_equal(out, source)
    kept = routine.launch_list(*operands[:-2], operands[-1], **(flags | {"clean": False} if flags else flags))
    assert kept.source_pointer == (None if flags else 0)  # what is beyond a triangle stays


@pytest.mark.parametrize(
    "n, launched", [(7, [1, 4, 1, 2, 1, 1]), (40, [2, 4, 5, 7, 1, 2]), (70, [11, 9, 5, 16, 1, 2])]
)
def test_new_results_of_small_matrices_without_a_copy(kernels, n, launched):
    """A launch each of LU factors, solutions by them, Cholesky factors, two of both; inverses by factors take
    a triangle's, its solution, and interchanges. What is read stays.
    """
    x, b = uniform("d", n, n), uniform("d", 3, n, 2)
    a = np.stack([x @ x.T + (1 + z) * np.eye(n) for z in range(3)])
    before, piv, info = (a.copy(), b.copy()), np.empty((3, n, 1)), np.empty((3, 1, 1))
    factors, solution, counts = np.empty_like(a), np.empty_like(b), []
    inverse, again = np.full_like(a, np.nan).swapaxes(1, 2), np.full((3, 2, n), np.nan).swapaxes(1, 2)
    for routine, arrays, flags in (
        (new_results.lu, (a, piv, info, factors), {}),
        (new_results.lu_inverse, (piv, factors, inverse), {}),
        (new_results.lu_solution, (factors, piv, b, solution), {"left": True, "adjoint": False}),
        (new_results.solution, (a, b, piv, info, factors, solution), {"left": True}),
        (new_results.cholesky, (a, info, factors), {"uplo": Uplo.LOWER}),
        (new_results.factored_solution, (factors, b, again), {"uplo": Uplo.LOWER}),
    ):
        operands = [operand(each, DTYPES["d"]) for each in arrays]
        launches = routine(*operands, **flags)
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        counts.append(len(launches.entries))
        assert not words(info).any() and (a == before[0]).all() and (b == before[1]).all()
    np.testing.assert_allclose(solution, np.linalg.solve(a, b), atol=1e-9)
    np.testing.assert_allclose(inverse, np.linalg.inv(a), atol=1e-9)
    np.testing.assert_allclose(again, solution, atol=1e-9)
    np.testing.assert_allclose(factors, np.linalg.cholesky(a), atol=1e-9)
    assert counts == launched


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("n, launched", [(5, 1), (40, None)])
def test_new_solutions_from_the_right(kernels, n, launched, adjoint):
    """X op(A) = B, of small matrices by one launch, which reads B with its own strides."""
    a, b = uniform("z", 3, n, n), uniform("z", 3, 2, n)
    a += n * np.eye(n)
    before, x = b.copy(), np.full((3, n, 2), np.nan + 0j).swapaxes(1, 2)
    piv, info, factors = (np.empty(shape, complex) for shape in ((3, n, 1), (3, 1, 1), (3, n, n)))
    for routine, arrays, flags in (
        (new_results.lu, (a, piv, info, factors), {}),
        (new_results.lu_solution, (factors, piv, b, x), {"left": False, "adjoint": adjoint}),
    ):
        operands = [operand(each, DTYPES["z"]) for each in arrays]
        launches = routine(*operands, **flags)
        launches.run([each.pointer for each in operands], 1.0, stream=0)
    assert (b == before).all() and launched in (None, len(launches.entries))
    np.testing.assert_allclose(x @ (a.conj().swapaxes(1, 2) if adjoint else a), b, atol=1e-12)


@pytest.mark.parametrize("uplo", Uplo)
def test_a_triangle_is_copied_and_factored_in_few_launches(kernels, uplo):
    """What is beyond it is not read, of stacks of single precision too large for a leaf."""
    x, source = uniform("s", 512, 512), np.full((2, 512, 512), np.nan, np.float32)
    below = np.tril(np.ones((512, 512), bool)) if uplo is Uplo.LOWER else np.triu(np.ones((512, 512), bool))
    source[:, below] = (x @ x.T + 512 * np.eye(512))[below]
    info, out = np.empty((2, 1, 1), np.float32), np.empty_like(source).swapaxes(1, 2)
    operands = [operand(each, DTYPES["s"]) for each in (info, source, out)]

    def prepare(_, operands):
        return potrf.launch_list(*operands, uplo=uplo, clean=True)

    both = after_copy(prepare)((1,), operands)
    assert both.entries[0].integers[2] == options_of(Region.of(uplo))
    both.run([each.pointer for each in operands], 1.0, stream=0)
    expected = np.linalg.cholesky(x @ x.T + 512 * np.eye(512))
    np.testing.assert_allclose(out[1], expected if uplo is Uplo.LOWER else expected.T, atol=5e-5)
    assert not words(info).any() and len(kernels.launches) == 9


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("uplo", Uplo)
def test_diagonal_blocks_are_inverted_by_one_launch(kernels, uplo, batch):
    """Blocks are of all triangles of a stack, of which the last has fewer rows; a singular one stays."""
    a = np.tril(uniform("d", batch, 200, 200)) / 200 + 2 * np.eye(200)
    a = a if uplo is Uplo.LOWER else a.swapaxes(1, 2).copy()
    expected = np.linalg.inv(a)
    if batch > 1:
        a[1, 150, 150] = 0
        expected[1] = a[1]
    info, before = np.empty((batch, 1, 1)), a.copy()
    run(trtri, info, a, uplo=uplo, diag=Diag.NON_UNIT)
    np.testing.assert_allclose(a, expected, atol=1e-12)
    assert list(words(info).ravel()) == [0, 151, 0][:batch] and (batch == 1 or (a[1] == before[1]).all())
    assert [name for name, *_ in kernels.launches].count("trtri_leaf") == 1


@pytest.mark.parametrize(
    "n, conj, device",
    [(20, False, "h200"), (40, False, "h200"), (7, True, "h200"), (20, False, "a100"), (33, True, "a100")],
)
@pytest.mark.parametrize("letter", "dz")
def test_solutions_and_inverses_out_of_place(kernels, monkeypatch, letter, n, conj, device):
    """One launch where the kernel takes the matrices, else copies, factors and solutions; A and B stay."""
    monkeypatch.setitem(stand_ins, 0, known(device))
    a, b = uniform(letter, 3, n, n) + 2 * np.eye(n), uniform(letter, 3, n, 5)
    dtype, conj = DTYPES[letter], conj and letter == "z"
    at_once = n <= (16 if device == "a100" and letter == "z" else 32) and not conj
    is_singular = at_once or n > 32  # the stand-in of `getrs_small` takes no singular triangle
    a[1, :, 2] *= not is_singular
    before = a.copy(), b.copy()
    matrix, right, good = a.conj() if conj else a, b.conj() if conj else b, [0, 2]
    for inverts in (False, True):
        info, x = np.empty((3, 1, 1), a.dtype), np.full((3, n, n if inverts else 5), np.nan, a.dtype)
        operands = [operand(info, dtype), operand(a, dtype, conj), operand(x, dtype)]
        if not inverts:
            operands.insert(2, operand(b, dtype, conj))
        launches = (gesv.inverse_launch_list if inverts else gesv.solution_launch_list)(*operands)
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        expected = np.linalg.inv(matrix[good]) if inverts else np.linalg.solve(matrix[good], right[good])
        np.testing.assert_allclose(x[good], expected, atol=1e-10)
        np.testing.assert_array_equal(words(info).ravel(), [0, 3 * is_singular, 0])
    assert (a == before[0]).all() and (b == before[1]).all()
    assert ([name for name, *_ in kernels.launches] == ["gesv_small"] * 2) == at_once
