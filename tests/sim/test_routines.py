"""GEMM, TRMM and TRSM end to end on the simulator: recursion, packing, tiles and leaves, exactly.

The kernels have small tiles, so that small matrices have several tiles, blocks and levels of recursion.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product

import numpy as np
import pytest
from covering import of_precision
from hypothesis import given, settings
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls import call
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.copy.copy_scaled import CopyScaled
from pyblasgpu.kernels.copy.split_k_reduce import SplitKReduce
from pyblasgpu.kernels.copy.symmetrize import Symmetrize
from pyblasgpu.operands import Operand
from pyblasgpu.testing.cases import GemmCase, TriangularCase, gemm_cases, triangular_cases
from pyblasgpu.testing.reference import apply, exact_gemm, exact_triangular, fenced, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .launching import strides
from .test_gemm_simt import config
from .test_leaves import small

copy, gemm, trmm, trsm = map(call.routine, ("copies", "gemm", "trmm", "trsm"))
SIZES = (0, 1, 8, 17)
STOPS = (8, 16, 256)
NAN = float("nan")
ORDERS = list(enumerate(product(Trans, Trans, "CF")))


@contextmanager
def small_kernels(letter: str, stop: int = 8, stages: int = 2):
    """16 x 8 x 4 tiles, leaves of 8 x 8 blocks, triangles of more than `stop` rows split."""
    with ExitStack() as stack:
        for trans_a, trans_b in product((False, True), repeat=2):
            tile = config(letter, trans_a, trans_b, stages=stages)
            stack.enter_context(override("gemm_simt", tile))
        stack.enter_context(override("copy_scaled", CopyScaled(letter, 8, 16, 8, 4)))
        stack.enter_context(
            override("split_k_reduce", SplitKReduce(dtype=letter, DIM=32, SLICES=4, UNROLL=2))
        )
        stack.enter_context(override("symmetrize", Symmetrize(letter, BLK=8, DIM=32)))
        stack.enter_context(override("trmm_leaf", small("trmm", letter)))
        for routine in ("trmm", "trsm"):
            stack.enter_context(override(routine, stop))
        yield


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


def of(letter: str, cases) -> list:
    return [case for case in cases if case.dtype.letter == letter]


def same(actual, expected, what) -> None:
    np.testing.assert_array_equal(actual, expected, err_msg=str(what))


# -------------------------------------------------------------------------- through the public functions


@pytest.mark.parametrize("letter", DTYPES)
def test_gemm(letter):
    rng = np.random.default_rng(1)
    for number, case in of_precision(letter, list(enumerate(of(letter, gemm_cases(SIZES, (19, 9, 5)))))):
        a, b, start = (integers(rng, shape, case.dtype) for shape in case.shapes)
        expected = exact_gemm(case, a, b, start)
        if case.alpha == 0:
            a[...] = b[...] = NAN
        if case.beta == 0:
            start[...] = NAN
        c, unharmed = fenced(start, "CF"[number // 2 % 2])
        options = {"trans_a": case.trans_a, "trans_b": case.trans_b, "alpha": case.alpha, "beta": case.beta}
        with small_kernels(letter, stages=1 + number % 2):
            result = pyblasgpu.gemm(np.asfortranarray(a), b, out=c, **options)
        assert result is c
        same(c, expected, case)
        assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", [pyblasgpu.trmm, pyblasgpu.trsm])
def test_triangles(routine, letter):
    rng = np.random.default_rng(2)
    cases = of(letter, triangular_cases(SIZES, (21, 11)))
    for number, case in enumerate(of_precision(letter, cases)):
        a, x = triangle(rng, case), integers(rng, (case.m, case.n), case.dtype)
        initial, expected = x, exact_triangular(case, a, x)
        if routine is pyblasgpu.trsm:
            initial, expected = exact_triangular(case, a, x, alpha=1), (case.alpha * x).astype(x.dtype)
        if case.alpha == 0:
            a[...] = initial[...] = NAN
        b, unharmed = fenced(initial, "CF"[number // 2 % 2])
        flags = {"side": case.side, "lower": case.uplo, "trans": case.trans, "unit_diag": case.diag}
        with small_kernels(letter, STOPS[number % len(STOPS)]):
            result = routine(np.asfortranarray(a), b, alpha=case.alpha, out=b, **flags)
        assert result is b
        same(b, expected, case)
        assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_gemm_by_split_k(letter):
    """Chunks of whole tiles and of parts of them; k that they divide, and k that leaves something over."""
    rng, dtype = np.random.default_rng(7), DTYPES[letter]
    for number, (trans_a, trans_b, order) in of_precision(letter, ORDERS):
        k = (28, 29)[number // 2 % 2]
        case = GemmCase(dtype, 17, 9, k, trans_a, trans_b, 2, (0, -1)[number % 2])
        a, b, start = (integers(rng, shape, dtype) for shape in case.shapes)
        expected = exact_gemm(case, a, b, start)
        c, unharmed = fenced(start if case.beta else np.full_like(start, NAN), order)
        options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": case.alpha, "beta": case.beta}
        splits = (2, 3, 7)[(number + number // 6) % 3]
        with small_kernels(letter, stages=1 + number % 2), override("splits", splits):
            pyblasgpu.gemm(np.asfortranarray(a), b, out=c, **options)
        same(c, expected, case)
        assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_gemm_of_packed_operands(letter):
    """All flags and orders, whole tiles and parts of them; blocks that walk over tiles, and part them."""
    rng, dtype = np.random.default_rng(9), DTYPES[letter]
    walks = {"persistent": True, "min_blocks": 2}
    for number, (trans_a, trans_b, order) in of_precision(letter, ORDERS):
        m, n, k = ((32, 16, 12), (35, 19, 27))[number % 2]
        case = GemmCase(dtype, m, n, k, trans_a, trans_b, 2, (0, -1)[number // 2 % 2])
        a, b, start = (integers(rng, shape, dtype) for shape in case.shapes)
        expected = exact_gemm(case, a, b, start)
        c, unharmed = fenced(start if case.beta else np.full_like(start, NAN), order)
        options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": case.alpha, "beta": case.beta}
        tile = config(letter, stages=2, **(walks if number // 4 % 2 else {})).for_packed()
        with small_kernels(letter), override("gemm_simt", tile), override("splits", number // 8 % 2):
            pyblasgpu.gemm(np.asfortranarray(a), b, out=c, **options)
        same(c, expected, case)
        assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_packing_changes_no_bit(letter):
    """Conjugation in packing included: the same sums in the same order."""
    rng, dtype = np.random.default_rng(11), DTYPES[letter]
    a, b = (rng.standard_normal((*shape, dtype.reals_per_element)) for shape in ((27, 35), (27, 19)))
    a, b = (x.astype(dtype.real).view(dtype.name)[..., 0] for x in (a, b))
    tile, products = config(letter, trans_b=True, stages=2), []
    for chosen in (tile, tile.for_packed()):
        with override("gemm_simt", chosen):
            products.append(pyblasgpu.gemm(np.ascontiguousarray(a).T, b, trans_b="N", alpha=0.7))
            products.append(pyblasgpu.gemm(a, b, trans_a="C", alpha=0.7))
    assert products[0].tobytes() == products[2].tobytes() and products[1].tobytes() == products[3].tobytes()


@pytest.mark.parametrize(("name", "value", "seed"), [("packed", True, 10), ("splits", 3, 8)])
def test_triangles_whose_updates_are_packed_or_split(name, value, seed):
    rng = np.random.default_rng(seed)
    for routine, letter, side in product((trmm, trsm), "sz", Side):
        case = TriangularCase(DTYPES[letter], 33, 21, side, Uplo.UPPER)
        t, x = triangle(rng, case, batch_shape=(1,)), integers(rng, (1, 33, 21), case.dtype)
        product_ = exact_triangular(case, t, x)
        b, expected = (x, product_) if routine is trmm else (product_, x)
        b = b.copy()
        with small_kernels(letter), override(name, value):
            routine(1, operand(t), operand(b), 0, side=side, uplo=Uplo.UPPER, diag=Diag.NON_UNIT)
        same(b, expected, case)


def test_stacks_are_one_batch_or_several():
    rng, dtype = np.random.default_rng(3), DTYPES["s"]
    a, b = integers(rng, (3, 1, 18, 5), dtype), integers(rng, (2, 5, 9), dtype)
    with small_kernels("s"):
        same(pyblasgpu.gemm(a, b), a @ b, "broadcast")
        same(pyblasgpu.linalg.matmul(a.swapaxes(0, 3).copy().swapaxes(0, 3), b), a @ b, "batch innermost")


def test_blas_and_solve_triangular():
    rng, dtype = np.random.default_rng(4), DTYPES["z"]
    case = TriangularCase(dtype, 19, 5, trans=Trans.CONJ)
    a, x = triangle(rng, case), integers(rng, (19, 5), dtype)
    b = exact_triangular(case, a, x)
    with small_kernels("z"):
        same(pyblasgpu.blas.ztrmm(1, a, x, lower=1, trans_a=2), b, "ztrmm")
        solved = pyblasgpu.linalg.solve_triangular(a, b, trans="C", lower=True, check_finite=False)
    same(solved, x, "solve_triangular")


# ------------------------------------------------------------------------------- operands as they lie


def operand(array: np.ndarray, conj: bool = False) -> Operand:
    """`array`, of shape (batch, rows, cols), with its strides, in place."""
    steps = strides(array)
    batch, rows, cols = array.shape
    dtype = next(known for known in DTYPES.values() if known.name == array.dtype.name)
    return Operand(simulator.adopt(array), rows, cols, *steps[1:], dtype, conj, batch, steps[0])


@st.composite
def stored(draw, batch: bool = False):
    """How a matrix lies: transposed, steps of any sign, elements before it, the batch repeated."""
    step = st.sampled_from([1, 1, 1, -1, 2, -3])
    steps = draw(step), draw(step)
    return draw(st.booleans()), steps, draw(st.integers(0, 3)), batch and draw(st.booleans())


def lay(values: np.ndarray, how) -> np.ndarray:
    """`values` (batch, rows, cols) as a view of memory full of NaN."""
    transposed, steps, before, repeated = how
    if repeated:
        values = values[:1]
    inner = values.swapaxes(1, 2) if transposed else values
    extents = [extent * abs(step) for extent, step in zip(inner.shape[1:], steps)]
    pitch = extents[1] + before
    memory = np.full(before + len(inner) * extents[0] * pitch, NAN, values.dtype)
    rooms = memory[before:].reshape(len(inner), extents[0], pitch)[:, :, : extents[1]]
    first = [0 if step > 0 else -1 for step in steps]
    view = rooms[:, first[0] :: steps[0], first[1] :: steps[1]]
    view[...] = inner
    return view.swapaxes(1, 2) if transposed else view


def outside(view: np.ndarray) -> bytes:
    """The memory that `view` is of, but for its elements."""
    memory = view.base.copy()
    dense = np.ndarray(view.shape, view.dtype, memory, view.ctypes.data - view.base.ctypes.data, view.strides)
    dense[...] = 0
    return memory.tobytes()


SOME = settings(max_examples=40)


@SOME
@given(st.data())
def test_gemm_on_any_strides(data):
    draw = data.draw
    letter = draw(st.sampled_from("sdcz"))
    dtype, rng = DTYPES[letter], np.random.default_rng(draw(st.integers(0, 99)))
    m, n, k, batch = (draw(st.integers(1, limit)) for limit in (34, 18, 10, 2))
    scalar = st.sampled_from([1, -1, 2, 0.5 - 1j] if dtype.is_complex else [1, -1, 2])
    alpha, beta = draw(scalar), draw(st.one_of(st.just(0), scalar))
    conj_a, conj_b = (dtype.is_complex and draw(st.booleans()) for _ in "ab")
    case = GemmCase(dtype, m, n, k, alpha=alpha, beta=beta)
    a = lay(integers(rng, (batch, m, k), dtype), draw(stored(batch=True)))
    b = lay(integers(rng, (batch, k, n), dtype), draw(stored(batch=True)))
    old = integers(rng, (batch, m, n), dtype)
    c = lay(old if beta else np.full_like(old, NAN), draw(stored()))
    expected = exact_gemm(case, a.conj() if conj_a else a, b.conj() if conj_b else b, old)
    before = outside(c)
    repeated = [operand(x, conj)._replace(batch=batch) for x, conj in ((a, conj_a), (b, conj_b))]
    left, right = (x._replace(batch_stride=0) if len(y) == 1 else x for x, y in zip(repeated, (a, b)))
    is_packed, splits = draw(st.booleans()), draw(st.integers(1, 3))  # an override acts at once: none before
    with small_kernels(letter), override("splits", splits), override("packed", is_packed):
        gemm(alpha, left, right, beta, operand(c), 0)
    same(c, np.broadcast_to(expected, c.shape), case)
    assert outside(c) == before


@SOME
@given(st.data())
def test_triangles_on_any_strides(data):
    draw = data.draw
    routine = draw(st.sampled_from([trmm, trsm]))
    letter = draw(st.sampled_from("sdcz"))
    dtype, rng = DTYPES[letter], np.random.default_rng(draw(st.integers(0, 99)))
    m, n, batch = (draw(st.integers(1, limit)) for limit in (34, 12, 2))
    flags = (draw(st.sampled_from(kind)) for kind in (Side, Uplo, Diag))
    side, uplo, diag = flags
    case = TriangularCase(dtype, m, n, side, uplo, diag=diag, alpha=draw(st.sampled_from([1, 2, -1])))
    conj = dtype.is_complex and draw(st.booleans())
    t = lay(triangle(rng, case, batch_shape=(batch,)), draw(stored(batch=True)))
    x = integers(rng, (batch, m, n), dtype)
    seen = t.conj() if conj else t
    initial, expected = x, exact_triangular(case, seen, x)
    if routine is trsm:
        initial, expected = exact_triangular(case, seen, x, alpha=1), (case.alpha * x).astype(x.dtype)
    b = lay(initial, draw(stored()))
    before = outside(b)
    left = operand(t, conj)._replace(batch=batch)
    left = left._replace(batch_stride=0) if len(t) == 1 else left
    with small_kernels(letter, draw(st.sampled_from(STOPS))):
        routine(case.alpha, left, operand(b), 0, side=side, uplo=uplo, diag=diag)
    same(b, expected, case)
    assert outside(b) == before


@SOME
@given(st.data())
def test_copy_on_any_strides(data):
    letter = data.draw(st.sampled_from("sdcz"))
    shape = tuple(data.draw(st.integers(1, limit)) for limit in (3, 20, 20))
    values = integers(np.random.default_rng(5), shape, DTYPES[letter])
    source, target = lay(values, data.draw(stored())), lay(np.full_like(values, NAN), data.draw(stored()))
    before = outside(target)
    with small_kernels(letter):
        copy(2, operand(source), operand(target), 0)
    same(target, 2 * values, "copy")
    assert outside(target) == before


@pytest.mark.parametrize("misplaced", ["c", "z"])
def test_complex_elements_at_addresses_of_reals(misplaced):
    """A complex matrix may begin at any real; vector loads cannot, so that it is packed."""
    dtype = DTYPES[misplaced]
    rng, case = np.random.default_rng(6), TriangularCase(dtype, 19, 5)

    def shifted(values):
        room = np.full(2 * values.size + 1, NAN, dtype.real)
        view = room[1:].view(dtype.name).reshape(values.shape)
        view[...] = values
        return view

    t, x = shifted(triangle(rng, case, batch_shape=(1,))), integers(rng, (1, 19, 5), dtype)
    b, c = shifted(x), shifted(np.full_like(x, NAN))
    a = shifted(integers(rng, (1, 19, 19), dtype))
    with small_kernels(misplaced):
        for packed in (False, True):
            with override("packed", packed):
                gemm(1, operand(a), operand(b), 0, operand(c), 0)
            same(c, a @ b, "gemm")
            c[...] = NAN
        trmm(1, operand(t), operand(b), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
        same(b, exact_triangular(case, t, x), "trmm")
        trsm(1, operand(t), operand(b), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
        same(b, x, "trsm")


# ------------------------------------------------------------------------------------------ special values


def test_nothing_tests_data_for_zero():
    a, b = np.zeros((17, 9), order="F"), np.ones((9, 10), order="F")
    b[8, 3] = NAN
    for splits, packed in ((1, False), (2, False), (1, True)):
        with small_kernels("d"), override("splits", splits), override("packed", packed):
            c = pyblasgpu.gemm(a, b)
        assert np.isnan(c[:, 3]).all()
        assert not np.delete(c, 3, axis=1).any()


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("routine", [pyblasgpu.trmm, pyblasgpu.trsm])
def test_a_nan_reaches_what_depends_on_it_and_no_more(routine, uplo):
    """An element of a triangle spoils its row of the product; of the solution, what follows that row too."""
    n, row, col = 21, 12, 5
    kept = np.tri(n, dtype=bool)
    t, b = np.where(kept, 1.0, NAN), np.ones((n, 9))
    spoilt = np.zeros((n, 9), bool)
    t[row, col], b[row, 7] = NAN, np.inf
    if routine is pyblasgpu.trmm:
        spoilt[row] = spoilt[row:, 7] = True
    else:
        spoilt[row:] = True
    if uplo is Uplo.UPPER:
        t, b, spoilt = t[::-1, ::-1], b[::-1], spoilt[::-1]
    with small_kernels("d"):
        result = routine(t, b, lower=uplo)
    same(~np.isfinite(result), spoilt, routine)


def test_the_oracle_conjugates():
    """The tests above stand on `apply`."""
    a = np.array([[1j, 2]])
    assert apply(a, Trans.CONJ).tolist() == [[-1j], [2]]
