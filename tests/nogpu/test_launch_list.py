"""Launch lists: made once for a layout, replayed for any addresses and numbers."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import fake_kernels
import numpy as np
import pytest
from fake_kernels import operand

from pyblasgpu.dispatch import choose
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.copy.copy_scaled import CopyScaled
from pyblasgpu.kernels.trsm.mma import TrsmMma
from pyblasgpu.operands import SECTOR, Operand
from pyblasgpu.routines import launch_list
from pyblasgpu.routines.lapack.new_results import solution
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.routines.level3.gemm import alignments
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

S, D, C, Z = DTYPES.values()
copy, gemm, trsm = map(routine, ("copies", "gemm", "trsm"))


@pytest.fixture
def kernels(monkeypatch):
    log = fake_kernels.install(monkeypatch)
    yield log
    assert not log.held  # workspaces


@pytest.fixture
def recordings(monkeypatch):
    """The launch lists made from now on."""
    made = []

    class Counted(LaunchList):
        def __init__(self, *facts):
            made.append(self)
            super().__init__(*facts)

    monkeypatch.setattr(launch_list, "LaunchList", Counted)
    return made


def matrices(dtype, *shapes, order="F"):
    """Return matrices of integers, which begin with a sector of memory."""
    rng = np.random.default_rng(3)
    drawn = []
    for shape in shapes:
        values = integers(rng, shape, dtype)
        room = np.empty(values.nbytes + SECTOR, np.uint8)
        begin = -room.ctypes.data % SECTOR
        drawn.append(room[begin : begin + values.nbytes].view(values.dtype).reshape(shape, order=order))
        drawn[-1][...] = values
    return drawn


def multiply(a, b, c, dtype=D, alpha=1, beta=0, stream=0):
    gemm(alpha, operand(a, dtype), operand(b, dtype), beta, operand(c, dtype), stream)


# ---------------------------------------------------------------------------------------------- replaying


@pytest.mark.parametrize("odd", [False, True])
def test_leaves_read_t_ahead_where_no_launch_before_them_writes_it(kernels, odd):
    """Not the first, as somebody else's launch may just have written T; nor one whose T was packed."""
    n, (b,) = 48, matrices(Z, (48, 5))
    reals = np.zeros(2 * n * n + odd)  # odd: complex elements at addresses that a kernel cannot read
    t = reals[odd:].view(complex).reshape(n, n, order="F")
    np.fill_diagonal(t, 1)
    with override("trsm_mma", TrsmMma("z", ORDER=16, BLK=16, WARPS=1, MMA_K=4)), override("trsm", 16):
        trsm(1.0, operand(t, Z), operand(b, Z), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
    with_pdl = [(name, pdl) for (name, *_), pdl in zip(kernels.launches, kernels.pdl, strict=True)]
    leaves = [pdl for name, pdl in with_pdl if name == "trsm_mma"]
    assert leaves == ([False] * 3 if odd else [False, True, True])
    assert all(pdl for name, pdl in with_pdl if name != "trsm_mma")


def test_leaves_wait_for_a_triangle_that_their_list_writes(kernels):
    """A list of several outputs, not the last of which is the factor."""
    a, b, piv, info, factors, x = matrices(D, (48, 48), (48, 5), (48, 1), (1, 1), (48, 48), (48, 5))
    a[...] = 4 * np.eye(48)
    operands = [operand(each, D) for each in (a, b, piv, info, factors, x)]
    with override("trsm_mma", TrsmMma("d", ORDER=16, BLK=16, WARPS=1, MMA_K=4)), override("trsm", 16):
        solution(*operands, left=True).run([each.pointer for each in operands], 1, stream=0)
    leaves = [
        pdl for (name, *_), pdl in zip(kernels.launches, kernels.pdl, strict=True) if name == "trsm_mma"
    ]
    assert leaves and not any(leaves)
    np.testing.assert_array_equal(x, b / 4)


def test_a_launch_list_serves_other_addresses_numbers_and_streams(kernels, recordings):
    for alpha, beta, stream in ((1, 2, 0), (-2.5, 3, 7), (np.float64(0.5), np.int8(-1), 9)):
        a, b, c = matrices(D, (65, 31), (31, 33), (65, 33))
        a *= stream + 1
        expected = alpha * (a @ b) + beta * c
        multiply(a, b, c, alpha=alpha, beta=beta, stream=stream)
        np.testing.assert_array_equal(c, expected)
    assert len(recordings) == 1
    assert [stream for *_, stream in kernels.launches] == [0, 7, 9]


@pytest.mark.parametrize("change", ["shape", "stride", "alignment", "dtype", "conj", "beta", "batch"])
def test_another_layout_has_another_launch_list(kernels, recordings, change):
    (memory,) = matrices(D, (4000,))
    plain = Operand(memory.ctypes.data, 8, 8, 1, 8, D)
    assert plain.pointer % SECTOR == 0
    x = plain if change != "conj" else plain._replace(dtype=Z)
    y = {
        "shape": plain._replace(cols=9),
        "stride": plain._replace(col_stride=9),
        "alignment": plain._replace(pointer=plain.pointer + 8),
        "dtype": plain._replace(dtype=S),
        "conj": x.conjugate(),
        "beta": plain,
        "batch": plain._replace(batch=2, batch_stride=64),
    }[change]
    for a, beta in ((x, 0), (y, 1 if change == "beta" else 0), (x, 0)):
        b = a._replace(rows=a.cols, cols=3, col_stride=10, conj=False)
        c = a._replace(cols=3, conj=False, pointer=plain.pointer + 16000)
        gemm(1, a, b, beta, c, 0)
    assert len(recordings) == 2


def test_numbers_of_single_precision_overflow_to_infinity(kernels):
    a, b, c = matrices(S, (3, 2), (2, 3), (3, 3))
    a[...] = b[...] = 1
    large = np.float32(1e38)
    for alpha, expected in (
        (1e39, np.inf),
        (-1e300, -np.inf),
        (3.4e38, np.inf),
        (1e38, 2 * large),
    ):
        multiply(a, b, c, S, alpha=alpha)
        np.testing.assert_array_equal(c, np.full((3, 3), expected, np.float32))
    a, b, c = matrices(C, (3, 2), (2, 3), (3, 3))
    a[...] = b[...] = 1
    multiply(a, b, c, C, alpha=complex(0, 1e300))
    assert np.isinf(c.imag).all()


def test_complex_numbers(kernels):
    a, b, c = matrices(Z, (5, 4), (4, 6), (5, 6))
    expected = (1 - 2j) * (a @ b) + 3j * c
    multiply(a, b, c, Z, alpha=1 - 2j, beta=3j)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("count", [65535, 65536, 140_000])
def test_batches_beyond_the_grid_are_split(kernels, count):
    a, b = matrices(S, (count, 1, 2), (1, 2, 1), order="C")
    c = np.full((count, 1, 1), np.nan, np.float32)
    shared = operand(b, S)._replace(batch=count, batch_stride=0)
    gemm(2, operand(a, S), shared, 0, operand(c, S), 0)
    np.testing.assert_array_equal(c, 2 * (a @ b))
    depths = [grid[2] for _, grid, _ in kernels.launches]
    assert sum(depths) == count and len(depths) == -(-count // 65535)


def test_copied_operands_live_in_one_workspace(kernels):
    a, b, c = (matrix[::2, ::-3] for matrix in matrices(C, (34, 60), (40, 30), (34, 30)))
    expected = a @ b + c
    for _ in range(2):
        before = c.copy()
        with override("packed", False):
            multiply(a, b, c, C, beta=1)
        np.testing.assert_array_equal(c, expected)
        c[...] = before
    assert len(kernels.sizes) == 2 and len(set(kernels.sizes)) == 1
    assert [name for name, *_ in kernels.launches] == 2 * (3 * ["copy_scaled"] + ["gemm_simt", "copy_scaled"])


def test_a_failing_launch_gives_the_workspace_back(kernels, monkeypatch):
    a, b, c = (matrix[::2, ::2] for matrix in matrices(S, (8, 8), (8, 8), (8, 8)))
    monkeypatch.setattr(fake_kernels.FakeKernel, "gemm_simt", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        multiply(a, b, c, S)
    assert kernels.sizes and not kernels.held


# ------------------------------------------------------------------------------------------ what is chosen


def test_an_override_makes_its_own_launch_list_and_leaves_the_other(kernels, recordings):
    a, b, c = matrices(S, (20, 20), (20, 20), (20, 20))
    chosen = choose.select("gemm", S, "nn", (20, 20, 20), known("h200"))
    forced = replace(chosen.config, UNROLL=chosen.config.UNROLL // 2)
    multiply(a, b, c, S)
    with override("gemm_simt", forced):
        multiply(a, b, c, S)
    with override("gemm_simt", forced):
        multiply(a, b, c, S)
    multiply(a, b, c, S)
    assert [launches.choices for launches in recordings] == [
        [chosen],
        [choose.KernelChoice(forced, "override")],
    ]


def test_new_tuned_values_make_a_new_launch_list(kernels, recordings):
    a, b, c = matrices(D, (20, 20), (20, 20), (20, 20))
    multiply(a, b, c)
    choose.reload()
    multiply(a, b, c)
    assert len(recordings) == 2


def test_a_stop_size_decides_the_recursion(kernels):
    t, b = np.asfortranarray(np.eye(64)), np.ones((64, 4), order="F")
    for stop, launches in ((64, 1), (32, 3), (16, 7)):
        kernels.launches.clear()
        with override("trsm", stop):
            trsm(1, operand(t, D), operand(b, D), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
        assert len(kernels.launches) == launches


def test_launch_lists_do_not_grow_for_ever(kernels, monkeypatch):
    monkeypatch.setattr(launch_list, "MAX_CACHED", 4)
    with override("copy_scaled", CopyScaled("d")):
        for n in range(1, 12):
            x, y = matrices(D, (n, 3), (n, 3))
            copy(1, operand(x, D), operand(y, D), 0)
            assert 1 <= len(launch_list.cache) <= 4
            np.testing.assert_array_equal(y, x)


# ------------------------------------------------------------------------------------------- split-K


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("k, splits", [(640, 4), (641, 4), (1003, 7)])
@pytest.mark.parametrize("order", "CF")
def test_splits_are_one_batch_and_a_sum(kernels, letter, k, splits, order):
    """The last slice has what the others leave of k."""
    dtype = DTYPES[letter]
    a, b, c = matrices(dtype, (21, k), (k, 10), (21, 10), order=order)
    expected = 2 * (a @ b) - c
    with override("splits", splits):
        multiply(a, b, c, dtype, alpha=2, beta=-1)
    np.testing.assert_array_equal(c, expected)
    names = [name for name, *_ in kernels.launches]
    assert names == [names[0], "split_k_reduce"] and names[0].startswith("gemm")
    assert [grid[2] for _, grid, _ in kernels.launches] == [splits, 1]


def test_a_long_k_is_cut_of_itself_and_a_batch_is_not(kernels):
    a, b, c = matrices(S, (2, 5, 20_000), (2, 20_000, 3), (2, 5, 3), order="C")
    expected = a @ b
    multiply(a, b, c, S)
    np.testing.assert_array_equal(c, expected)
    names = [name for name, *_ in kernels.launches]
    assert names[-1] == "gemm_simt" and set(names[:-1]) <= {"copy_scaled"}
    c[...] = np.nan
    kernels.launches.clear()
    multiply(a[1], b[1], c[1], S)
    np.testing.assert_array_equal(c[1], expected[1])
    assert [name for name, *_ in kernels.launches] in (
        ["gemm_simt"],  # by persistent blocks, which part its tiles
        ["gemm_simt", "split_k_reduce"],
    )


def test_splits_of_conjugated_flipped_and_packed_operands(kernels):
    a, b, c = matrices(Z, (17, 3 * 50), (2 * 50, 11), (2 * 17, 11))
    a, b, c = a[::-1, ::-3], b[::-2], c[::2]
    expected = 1j * (a.conj() @ b) + 2 * c
    with override("splits", 3):
        gemm(1j, operand(a, Z).conjugate(), operand(b, Z), 2, operand(c, Z), 0)
    np.testing.assert_array_equal(c, expected)


def test_the_sum_does_not_read_c_where_beta_is_zero(kernels):
    a, b, c = matrices(D, (8, 99), (99, 8), (8, 8))
    expected = a @ b
    c[...] = np.nan
    with override("splits", 3):
        multiply(a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_explain_tells_of_splits(kernels, monkeypatch):
    explaining = import_module("pyblasgpu.api.explain")
    gemm_line, splits_line, *costs = explaining.explain("gemm", "s", 64, 64, 65536)
    assert gemm_line[0] == "gemm_simt"
    assert splits_line[0] == "splits of k" and int(splits_line[1]) >= 8 and splits_line[2] == gemm_line[2]
    names = [value.partition(":")[0] for _, value, _ in costs]
    assert names == ["launch_seconds", "sum_seconds", "host_seconds"]
    assert len(explaining.explain("gemm", "s", 4096, 4096, 4096)) == 1


def test_a_recursion_needs_the_partials_of_one_update(kernels, recordings):
    """However many of its updates are cut."""
    t, b = np.asfortranarray(np.eye(512)), np.ones((512, 3), order="F")
    with override("splits", 4), override("trsm", 32):
        trsm(1, operand(t, D), operand(b, D), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
    np.testing.assert_array_equal(b, np.ones((512, 3)))
    assert [name for name, *_ in kernels.launches].count("split_k_reduce") == 15
    (launches,) = recordings
    assert launches.workspace_bytes == 4 * 256 * 3 * 8


# -------------------------------------------------------------------------------------------- quick returns


@pytest.mark.parametrize(
    ("alpha", "k", "beta", "expected"),
    [(0, 4, 0, 0.0), (0, 4, 1, 5.0), (0, 4, 2, 10.0), (3, 0, 0, 0.0), (3, 0, 1, 5.0), (3, 0, -1, -5.0)],
)
def test_a_product_that_vanishes_only_scales(kernels, alpha, k, beta, expected):
    a, b, c = np.full((6, k), np.nan), np.full((k, 7), np.nan), np.full((6, 7), 5.0)
    if beta == 0:
        c[...] = np.nan
    multiply(a, b, c, alpha=alpha, beta=beta)
    np.testing.assert_array_equal(c, np.full((6, 7), expected))
    assert len(kernels.launches) == (beta != 1)


def test_nothing_is_launched_for_nothing(kernels):
    for m, n, k, batch in ((0, 3, 2, 1), (3, 0, 2, 1), (3, 3, 2, 0)):
        a, b, c = (np.ones((batch, *shape)) for shape in ((m, k), (k, n), (m, n)))
        multiply(a, b, c, beta=2)
    assert not kernels.launches


def test_how_far_columns_are_aligned():
    """Rows of transposed matrices count; copies are for the widest loads, and begin with sectors."""
    size = S.itemsize

    def lines(pointer, apart, batch_stride=0):
        return Operand(pointer, 8, 8, 1, apart, S, batch=2, batch_stride=batch_stride)

    wide, even, odd = lines(1024, 12), lines(1024, 10), lines(1024 + size, 12)
    assert alignments("nn", wide, even) == (16, 8)
    assert alignments("nn", lines(1024, 24), lines(1024 + 4 * size, 24)) == (32, 16)
    assert alignments("nt", odd, even.T) == (4, 8)
    assert alignments("tn", lines(1024, 16, 6).T, odd) == (8, 4)
    assert alignments("nn", odd._replace(row_stride=2), odd) == (32, 4)
