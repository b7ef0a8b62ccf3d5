"""The binding of cuBLAS against a library that is NumPy: order of arguments, strides, batches."""

from __future__ import annotations

import ctypes
import re
import sys
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from pyblasgpu.operands import Operand
from pyblasgpu.testing.cublas import Cublas
from pyblasgpu.testing.problems import Arrays, Problem
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.testing.symmetric_cases import RANK_K, SYMMETRIC, SymmetricCase, SymmetricData, data, exact
from pyblasgpu.tuning import worker_bench
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo


class Library:
    """What of cuBLAS is asked for; pointers are the host's."""

    def __init__(self):
        self.called = []

    def cublasCreate_v2(self, handle):
        return 0

    def cublasGetVersion_v2(self, handle, version):
        return 0

    def cublasSetStream_v2(self, handle, stream):
        return 0

    def __getattr__(self, name):
        routine = re.fullmatch("cublas[SDCZ](symm|hemm|syrk|herk|syr2k|her2k)_v2", name)
        if routine:
            return partial(self.symmetric, name, routine[1])
        if name.endswith("trsmBatched"):
            return partial(self.solve, name)
        if name.endswith("trsv_v2"):
            return partial(self.solve_one, name)
        if "gemm" not in name:
            raise AttributeError(name)

        def run(handle, *arguments):
            self.called.append(name)
            dtype = DTYPES[name[len("cublas")].lower()].name
            flags, (m, n, k), alpha, *rest = arguments[:2], arguments[2:5], *arguments[5:]
            shapes = ((k, m) if flags[0] else (m, k), (n, k) if flags[1] else (k, n), (m, n))
            if name.endswith("gemmStridedBatched"):
                a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, batch = rest
                steps = tuple(step.value for step in (step_a, step_b, step_c))
            else:
                a, lda, b, ldb, beta, c, ldc = rest
                steps, batch = (0, 0, 0), 1
            places = zip((a, b, c), steps, (lda, ldb, ldc), shapes, strict=True)
            left, right, out = (placed(x, dtype, batch, step, lead, shape) for x, step, lead, shape in places)
            left, right = (
                x.swapaxes(1, 2) if flag else x for x, flag in zip((left, right), flags, strict=True)
            )
            alpha, beta = (np.frombuffer(bytes(x), dtype)[0] for x in (alpha, beta))
            out[...] = alpha * (left @ right) + beta * out
            return 0

        return run

    def solve_one(self, name, handle, uplo, trans, diag, n, a, lda, x, step):
        self.called.append(name)
        dtype = DTYPES[name[len("cublas")].lower()].name
        (t,), (column,) = placed(a, dtype, 1, 0, lda, (n, n)), placed(x, dtype, 1, 0, n, (n, 1))
        t = np.triu(t) if uplo else np.tril(t)
        if diag:
            np.fill_diagonal(t, 1)
        assert step == 1
        column[...] = np.linalg.solve((t, t.T, t.conj().T)[trans], column)
        return 0

    def solve(self, name, handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, count):
        """Lower triangles from the left; `a` and `b` are arrays of addresses."""
        self.called.append(name)
        assert (side, uplo, trans, diag) == (0, 0, 0, 0)
        dtype = DTYPES[name[len("cublas")].lower()].name
        factor = np.frombuffer(bytes(alpha), dtype)[0]
        for left, right in zip(
            *((ctypes.c_void_p * count).from_address(x.value) for x in (a, b)), strict=True
        ):
            (t,) = placed(ctypes.c_void_p(left), dtype, 1, 0, lda, (m, m))
            (x,) = placed(ctypes.c_void_p(right), dtype, 1, 0, ldb, (m, n))
            x[...] = np.linalg.solve(np.tril(t), factor * x)
        return 0

    def symmetric(self, name, routine, handle, *arguments):
        """SYMM or a rank-k update; alpha and beta that are real must come as reals."""
        self.called.append(name)
        dtype = DTYPES[name[len("cublas")].lower()]
        first, second, rows, cols, alpha, *matrices = arguments
        *inputs, beta, c, ldc = matrices
        count = {"herk": (1, 1), "her2k": (2, 1)}.get(routine, (2, 2)) if dtype.is_complex else (1, 1)
        assert (len(alpha), len(beta)) == count
        alpha, beta = (complex(*x) if dtype.is_complex else x[0] for x in (alpha, beta))
        if routine in ("symm", "hemm"):
            flags = {"side": Side("LR"[first]), "uplo": Uplo("LU"[second])}
            order = rows if flags["side"] is Side.LEFT else cols
            case = SymmetricCase(routine, dtype, cols, m=rows, alpha=alpha, beta=beta, **flags)
            assert case.order == order
        else:
            flags = {"uplo": Uplo("LU"[first]), "trans": Trans("NTC"[second])}
            case = SymmetricCase(routine, dtype, rows, k=cols, alpha=alpha, beta=beta, **flags)
        *shapes, shape = case.shapes
        operands = [
            placed(inputs[2 * i], dtype.name, 1, 0, inputs[2 * i + 1], stored)[0]
            for i, stored in enumerate(shapes)
        ]
        out = placed(c, dtype.name, 1, 0, ldc, shape)[0]
        out[...] = exact(case, SymmetricData(tuple(operands), out.copy()))
        return 0


def placed(pointer: ctypes.c_void_p, dtype: str, batch: int, step: int, lead: int, shape: tuple[int, int]):
    """The matrices at `pointer`, each column-major."""
    size = np.dtype(dtype).itemsize
    count = (batch - 1) * step + lead * (shape[1] - 1) + shape[0]
    memory = (ctypes.c_char * (count * size)).from_address(pointer.value)
    return np.ndarray((batch, *shape), dtype, memory, 0, (step * size, size, lead * size))


def on_device(x: np.ndarray) -> SimpleNamespace:
    strides = None if x.flags.c_contiguous else x.strides
    interface = {"data": (x.ctypes.data, False), "strides": strides}
    return SimpleNamespace(shape=x.shape, dtype=x.dtype, __cuda_array_interface__=interface)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("batch", [(), (1,), (3,)])
def test_gemm_and_its_batches(letter, batch):
    rng, dtype, library = np.random.default_rng(3), DTYPES[letter], Library()
    for trans_a, trans_b in ((Trans.NO, Trans.NO), (Trans.TRANS, Trans.NO), (Trans.NO, Trans.TRANS)):
        stored = (5, 4) if trans_a is Trans.NO else (4, 5), (4, 3) if trans_b is Trans.NO else (3, 4), (5, 3)
        operands = [integers(rng, (*batch, *shape), dtype) for shape in stored]
        (a, _), (b, _), (c, unharmed) = (fenced(x, "F") for x in operands)
        left = operands[0] if trans_a is Trans.NO else operands[0].swapaxes(-1, -2)
        right = operands[1] if trans_b is Trans.NO else operands[1].swapaxes(-1, -2)
        Cublas(library).gemm(2, *map(on_device, (a, b)), -1, on_device(c), trans_a, trans_b)
        np.testing.assert_array_equal(c, 2 * (left @ right) - operands[2])
        assert unharmed()
    kind = "gemmStridedBatched" if batch else "gemm_v2"
    assert set(library.called) == {f"cublas{letter.upper()}{kind}"}


@pytest.mark.parametrize("letter", "cz")
def test_gemm_by_three_products(letter):
    rng, dtype, library = np.random.default_rng(3), DTYPES[letter], Library()
    a, b, c = (np.asfortranarray(integers(rng, shape, dtype)) for shape in ((5, 4), (4, 3), (5, 3)))
    expected = 2 * (a @ b) - c
    Cublas(library).gemm3m(2, *map(on_device, (a, b)), -1, on_device(c))
    np.testing.assert_array_equal(c, expected)
    assert library.called == [f"cublas{letter.upper()}gemm3m"]


def test_batches_of_systems(monkeypatch):
    """By addresses in memory of the device, which are made once."""
    made = []

    def arange(*arguments, **options):
        made.append(np.arange(*arguments, **options))
        return Addresses(made[-1])

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(arange=arange, uint64=np.uint64))
    t = fenced(np.tril(np.ones((7, 3, 3))) + np.eye(3), "F")[0]
    b, unharmed = fenced(np.arange(42.0).reshape(7, 3, 2), "F")
    expected = np.linalg.solve(t, 2 * b)
    library = Library()
    cublas = Cublas(library)
    flags = Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT
    cublas.trsm(2, on_device(t), on_device(b), *flags)
    np.testing.assert_allclose(b, expected)
    cublas.trsm(1, on_device(t), on_device(b), *flags)
    assert unharmed() and library.called == ["cublasDtrsmBatched"] * 2 and len(made) == 2


def test_a_routine_without_batches_takes_none():
    """Rather than the first matrix of one."""
    t, b, library = np.ones((7, 3, 3)), np.ones((7, 3, 2)), Library()
    operands = [on_device(fenced(x, "F")[0]) for x in (t, b)]
    with pytest.raises(ValueError, match=r"one matrix.*\(7, 3, 3\)"):
        Cublas(library).trmm(1, *operands, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)
    assert not library.called


@pytest.mark.parametrize("uplo, trans, diag", list(product(Uplo, Trans, Diag)))
def test_one_right_hand_side(uplo, trans, diag):
    """A TRSM with one is set beside the routine that is made for it, where that can do it."""
    problem = Problem.triangle("trsm", DTYPES["z"], f"L{uplo.value}{trans.value}{diag.value}", 6, 1)
    arrays, library = problem.data(), Library()
    solved, unharmed = fenced(arrays.out, "F")
    problem.cublas(Cublas(library), Arrays(on_device(arrays.a), None, on_device(solved)))
    assert library.called == ["cublasZtrsv_v2"] and unharmed()
    assert problem.error(arrays, solved) < 1


@pytest.mark.parametrize(
    "variant, n, alpha, batch",
    [("LLNN", 2, 1, ()), ("RLNN", 1, 1, ()), ("LLNN", 1, 2, ()), ("LLNN", 1, 1, (3,))],
)
def test_others_are_no_vector(variant, n, alpha, batch):
    assert not Problem.triangle("trsm", DTYPES["d"], variant, 5, n, alpha, batch).is_vector


class Addresses(SimpleNamespace):
    """Attributes of a CuPy array, as far as they are needed."""

    def __init__(self, values):
        super().__init__(values=values, data=SimpleNamespace(ptr=values.ctypes.data))

    def __mul__(self, factor):
        return Addresses(self.values * np.uint64(factor))

    def __add__(self, offset):
        return Addresses(self.values + np.uint64(offset))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", [name for name in (*SYMMETRIC, *RANK_K) if name != "gemmtr"])
def test_symmetric_routines(routine, letter):
    dtype, library = DTYPES[letter], Library()
    trans = Trans.CONJ if routine.startswith("he") and dtype.is_complex else Trans.TRANS
    for uplo, side, op in ((Uplo.LOWER, Side.LEFT, Trans.NO), (Uplo.UPPER, Side.RIGHT, trans)):
        case = SymmetricCase(routine, dtype, 5, m=4, k=3, uplo=uplo, side=side, trans=op, alpha=2, beta=-1)
        operands = data(np.random.default_rng(5), case)
        inputs = [fenced(x, "F")[0] for x in operands.inputs]
        c, unharmed = fenced(operands.c, "F")
        call = getattr(Cublas(library), routine)
        call(case.alpha, *map(on_device, inputs), case.beta, on_device(c), *case.flags)
        np.testing.assert_array_equal(c, exact(case, operands))
        assert unharmed()
    assert set(library.called) == {f"cublas{letter.upper()}{routine}_v2"}


def test_a_batch_may_share_an_operand_and_be_contiguous():
    a, b, c = np.arange(4.0).reshape(4, 1), np.ones((3, 1, 2)), np.zeros((3, 2, 4)).swapaxes(1, 2)
    shared = np.broadcast_to(a, (3, 4, 1))
    Cublas(Library()).gemm(
        1, on_device(shared), on_device(b.swapaxes(1, 2).copy().swapaxes(1, 2)), 0, on_device(c)
    )
    np.testing.assert_array_equal(c, np.broadcast_to(a * [1.0, 1.0], (3, 4, 2)))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_the_tuner_calls_it_as_it_calls_ours(layout, batch):
    rng, dtype = np.random.default_rng(4), DTYPES["z"]
    operands = [integers(rng, (batch, *shape), dtype) for shape in ((9, 5), (5, 7), (9, 7))]
    orders = ("F" if layout[0] == "n" else "C", "F" if layout[1] == "n" else "C", "F")
    (a, _), (b, _), (c, unharmed) = (fenced(x, order) for x, order in zip(operands, orders, strict=True))
    gemm = worker_bench.vendor_gemm(Cublas(Library()))
    gemm(2, operand(a, dtype), operand(b, dtype), -1, operand(c, dtype), 0)
    np.testing.assert_array_equal(c, 2 * (operands[0] @ operands[1]) - operands[2])
    assert unharmed()


def operand(x: np.ndarray, dtype) -> Operand:
    step, row, col = (stride // x.itemsize for stride in x.strides)
    return Operand(x.ctypes.data, *x.shape[1:], row, col, dtype, batch=len(x), batch_stride=step)
