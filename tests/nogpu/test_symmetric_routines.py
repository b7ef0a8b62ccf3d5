"""The routines of SYMM, SYRK, SYR2K and GEMMTR on fake kernels: what they launch, and with which result."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from itertools import product

import fake_kernels
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import in_order, same

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.call import launch_list_of
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.form import Form
from pyblasgpu.kernels.gemm.mma import GemmMma
from pyblasgpu.operands import Operand
from pyblasgpu.routines import copies
from pyblasgpu.routines.level3.symm import batch_portions
from pyblasgpu.routines.level3.trmm_by_levels import diagonal, off_diagonal_blocks
from pyblasgpu.testing import reference
from pyblasgpu.testing.symmetric_cases import (
    RANK_K,
    ROUTINES,
    SYMMETRIC,
    SymmetricCase,
    algorithms,
    data,
    exact,
    symmetric_cases,
)
from pyblasgpu.types import DTYPES, Region, Side, Trans, Uplo

NAN = float("nan")
D, Z = DTYPES["d"], DTYPES["z"]
#: The routine that computes each.
ROUTINE_OF = {"hemm": "symm", "herk": "syrk", "her2k": "syr2k"}


@given(st.integers(1, 2000), st.integers(1, 300), st.sampled_from([1, 3]))
def test_blocks_cover_a_triangle_once(n, stop, batch):
    area = 0
    for first, rows, count in diagonal(n, stop, batch):
        area += count * rows * rows
        assert first % stop == 0 and rows <= stop and first + (count - 1) * stop + rows <= n
        assert count == 1 or batch == 1
    for height, first, rows, count in off_diagonal_blocks(n, stop, batch):
        area += 2 * count * rows * height
        assert first % height == 0 and rows <= height and first + (count - 1) * 2 * height + rows <= n
        assert count == 1 or batch == 1
    assert area == n * n


def test_portions_cover_a_batch(monkeypatch):
    monkeypatch.setattr(copies, "MOST_COPIED", 1000)
    assert list(batch_portions(7, 300)) == [(0, 2), (2, 2), (4, 3)]
    assert list(batch_portions(142, 7)) == [(0, 142)]
    assert list(batch_portions(143, 7)) == [(0, 71), (71, 72)]
    assert list(batch_portions(2, 5000)) == [(0, 1), (1, 1)]


def run(monkeypatch, case, stop=8, order="F", a_order="F", conj=False, algorithm=None):
    """The routine by fake kernels, compared bit for bit; the kernels.

    `algorithm`: that of SYR2K; by default as the library has it.
    """
    kernels = fake_kernels.install(monkeypatch)
    operands = data(np.random.default_rng(2), case)
    conj = conj and case.dtype.is_complex
    seen = operands._replace(inputs=tuple([x.conj() for x in operands.inputs])) if conj else operands
    expected = exact(case, seen)
    c, unharmed = reference.fenced(operands.c, order)
    inputs = [fake_kernels.operand(in_order(x, a_order), case.dtype, conj) for x in operands.inputs]
    if case.routine in RANK_K:
        transes = [case.trans] * len(inputs)
        if case.routine == "gemmtr":
            transes[1] = case.trans_b
        for number, trans in enumerate(transes):
            inputs[number] = inputs[number] if trans is Trans.NO else inputs[number].T
            inputs[number] = inputs[number].conjugate() if trans is Trans.CONJ else inputs[number]
    stem = ROUTINE_OF.get(case.routine, case.routine)
    flags = {} if case.routine == "gemmtr" else {"hermitian": case.hermitian}
    if case.routine in SYMMETRIC:
        flags["side"] = case.side
    target = fake_kernels.operand(c, case.dtype)
    with override("symm", stop), override("syr2k_algorithm", algorithm):
        launches = launch_list_of(stem)(case.alpha, *inputs, case.beta, target, uplo=case.uplo, **flags)
        idle = case.beta == 1 and (case.alpha == 0 or (case.routine in RANK_K and case.k == 0))
        assert (launches is None) == (idle or 0 in c.shape)
        if launches is not None:
            launches.run([x.pointer for x in (*inputs, target)], case.alpha, case.beta, stream=5)
    same(c, expected, case)
    assert unharmed()
    return kernels


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_all_cases_by_fake_kernels(monkeypatch, routine, batch):
    cases = enumerate(symmetric_cases(routine, (0, 1, 8, 9, 40), (37, 11)))
    for (number, case), algorithm in product(cases, algorithms(routine)):
        case = SymmetricCase(**{**vars(case), "batch": batch})
        orders = {"order": "CF"[number % 2], "a_order": "CF"[number // 2 % 2]}
        with pytest.MonkeyPatch.context() as patch:
            run(patch, case, **orders, conj=number % 3 == 0, algorithm=algorithm)


def names(kernels):
    return [name.partition("_")[0] for name, *_ in kernels.launches]


def test_what_is_launched_for_a_rank_k_update(monkeypatch):
    """A product each, in place, whatever the order of C; both triangles are one matter."""
    for routine, order, uplo in product(("syrk", "syr2k"), "CF", Uplo):
        case = SymmetricCase(routine, D, 37, k=9, beta=2, uplo=uplo)
        with pytest.MonkeyPatch.context() as patch:
            kernels = run(patch, case, order=order, algorithm="two_products")
        assert names(kernels) == ["gemm"] * (2 if "2" in routine else 1)
        assert {stream for *_, stream in kernels.launches} == {5}
        assert not kernels.sizes


@pytest.mark.parametrize(("routine", "letter"), [("syr2k", "s"), ("syr2k", "z"), ("her2k", "z")])
def test_what_is_launched_for_a_symmetrized_rank_2k_update(monkeypatch, routine, letter):
    """One product of all of W, and W with its mirror image, whatever the order of C."""
    dtype = DTYPES[letter]
    for order, uplo, beta in product("CF", Uplo, (0, 2)):
        case = SymmetricCase(routine, dtype, 37, k=10, alpha=2, beta=beta, uplo=uplo, batch=(3,))
        with pytest.MonkeyPatch.context() as patch:
            kernels = run(patch, case, order=order)
        assert names(kernels) == ["gemm", "symmetrize"]
        assert {stream for *_, stream in kernels.launches} == {5}
        assert kernels.pdl == [True, True]
        ((size,), lead) = kernels.sizes, -(-37 * dtype.itemsize // 16) * 16
        assert 3 * 37 * lead <= size < 3 * 37 * lead + 256


def test_when_a_rank_2k_update_is_one_product(monkeypatch):
    """Where W is small enough."""
    fake_kernels.install(monkeypatch)

    def launched(n, k, batch=1, algorithm=None, workspace=None):
        a, c = (Operand(0, n, cols, 1, n, D, False, batch, n * cols) for cols in (k, n))
        chosen = {"splits": 1, "packed": False, "syr2k_algorithm": algorithm, "workspace": workspace}
        with ExitStack() as held:
            for name, value in chosen.items():
                held.enter_context(override(name, value))
            launches = launch_list_of("syr2k")(1, a, a, 1, c, uplo=Uplo.LOWER)
        return [step.source.name.partition("_")[0] for step in launches.entries], launches.workspace_bytes

    one, two = ["gemm", "symmetrize"], ["gemm", "gemm"]
    assert launched(2048, 512) == launched(2048, 32) == launched(256, 64, batch=64) == (one, 32 << 20)
    assert launched(2049, 9000) == launched(256, 128, batch=65) == (two, 0)
    assert launched(2048, 1024, algorithm="two_products") == launched(2048, 512, workspace=99) == (two, 0)
    assert launched(3000, 9, algorithm="symmetrize") == (one, 3000 * 3000 * 8)


def test_a_rank_k_update_without_a_unit_stride(monkeypatch):
    """By way of scratch: the triangle alone is copied, there and back."""
    kernels = fake_kernels.install(monkeypatch)
    a, room = np.ones((20, 3)), np.full((40, 60), NAN)
    c = room[::2, ::3]
    c[...] = np.where(np.tri(20, dtype=bool), 1.0, NAN)
    operands = [fake_kernels.operand(x, D) for x in (a, c)]
    launch_list_of("syrk")(2, *operands[:1], 3, operands[1], uplo=Uplo.LOWER).run(
        [x.pointer for x in operands], 2, 3, stream=0
    )
    same(c, np.where(np.tri(20, dtype=bool), 9.0, NAN), "strided")
    assert names(kernels) == ["copy", "gemm", "copy"]


def test_a_triangle_by_split_k(monkeypatch):
    case = SymmetricCase("herk", Z, 37, k=50, beta=2)
    with override("splits", 3):
        kernels = run(monkeypatch, case)
    assert names(kernels) == ["gemm", "split"]


def test_a_triangle_is_walked_over(monkeypatch):
    """By persistent blocks, which part its last tiles: 136 of 64 by 64 between 132 multiprocessors."""
    fake_kernels.install(monkeypatch)
    config = GemmMma(
        dtype="d",
        trans_a=False,
        trans_b=True,
        BLK_M=64,
        BLK_N=64,
        BLK_K=16,
        DIM_XA=32,
        DIM_YA=4,
        DIM_XB=32,
        DIM_YB=4,
        VEC_A=2,
        VEC_B=2,
        PAD_A=4,
        PAD_B=4,
        stages=3,
        persistent=True,
        WARP_M=32,
        WARP_N=32,
    )
    a, c = (fake_kernels.operand(np.ones((999, 999), order="F"), D) for _ in range(2))
    with override(config.STEM, config), override("splits", 0):
        launches = launch_list_of("syrk")(2, a, 3, c, uplo=Uplo.UPPER)
    (step,) = launches.entries
    assert step.source.name == "gemm_mma" and dict(step.source.flags)["form"] is Form.TRIANGLE
    assert step.integers[3:5] == (options_of(Region.UPPER), 16 * 17 // 2)


def test_what_is_launched_for_a_symmetric_product(monkeypatch):
    kernels = run(monkeypatch, SymmetricCase("hemm", Z, 5, m=37, alpha=2))
    assert names(kernels) == 2 * ["copy", "gemm"] + 6 * ["gemm"]


@pytest.mark.parametrize("routine", SYMMETRIC)
def test_scratch_is_taken_in_portions(monkeypatch, routine):
    monkeypatch.setattr(copies, "MOST_COPIED", 2 * 8 * 8 * 16)
    for batch in ((), (5,)):
        case = SymmetricCase(routine, Z, 33, m=33, k=9, alpha=2, beta=-1, batch=batch)
        with pytest.MonkeyPatch.context() as patch:
            kernels = run(patch, case)
        assert max(kernels.sizes) <= 2 * 8 * 8 * 16


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize(("n", "k", "conj"), [(1000, 50_000, True), (3000, 3001, False)])
def test_inputs_are_not_copied_beyond_the_workspace(monkeypatch, uplo, n, k, conj):
    """Though products of such layouts would be faster of copies."""
    fake_kernels.install(monkeypatch)
    a = Operand(1 << 20, n, k, k, 1, DTYPES["c"], conj)
    c = Operand(1 << 50, n, n, 1, n, DTYPES["c"])
    launches = launch_list_of("syrk")(2, a, 3, c, uplo=uplo)
    assert n * k * c.dtype.itemsize > copies.most_workspace(c) >= launches.workspace_bytes


def test_one_symmetric_matrix_for_a_batch_is_completed_once(monkeypatch):
    kernels = fake_kernels.install(monkeypatch)
    rng = np.random.default_rng(3)
    case = SymmetricCase("symm", D, 4, m=20, batch=(6,))
    operands = data(rng, SymmetricCase("symm", D, 4, m=20))
    b, c = reference.integers(rng, (6, 20, 4), D), np.full((6, 20, 4), NAN)
    a = fake_kernels.operand(operands.inputs[0], D)._replace(batch=6)
    right, target = (fake_kernels.operand(x, D) for x in (b, c))
    launches = launch_list_of("symm")(1, a, right, 0, target, side=Side.LEFT, uplo=Uplo.LOWER)
    launches.run([x.pointer for x in (a, right, target)], 1, 0, stream=0)
    same(c, exact(case, operands._replace(inputs=(operands.inputs[0], b), c=c * 0)), "shared")
    assert [grid[2] for name, grid, _ in kernels.launches if name == "copy_scaled"] == [1]


@pytest.mark.parametrize(
    ("routine", "algorithm"), [("syrk", None), ("syr2k", "two_products"), ("syr2k", "symmetrize")]
)
@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize(("shape", "order"), [((20,), "C"), ((20,), "F"), ((2, 20), "C"), ((2, 70), "C")])
def test_a_new_c_is_filled(monkeypatch, routine, algorithm, uplo, shape, order):
    kernels = fake_kernels.install(monkeypatch)
    a, c = np.ones((*shape, 3)), np.full((*shape, shape[-1]), NAN, order=order)
    inputs = [fake_kernels.operand(a, D)] * (2 if "2" in routine else 1)
    target = fake_kernels.operand(c, D)
    for alpha in (2, 0):
        c[...] = NAN
        with override("syr2k_algorithm", algorithm):
            launches = launch_list_of(routine)(alpha, *inputs, 0, target, uplo=uplo, is_new_output=True)
        launches.run([x.pointer for x in (*inputs, target)], alpha, 0, stream=0)
        whole = np.full(c.shape, 3.0 * alpha * len(inputs))
        same(c, np.tril(whole) if uplo is Uplo.LOWER else np.triu(whole), uplo)
    assert kernels.launches


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("routine", ROUTINES)
def test_the_workspace_stays_small(monkeypatch, routine, letter):
    """32 MiB at most for a symmetric matrix, or a rank-2k update in one product, else none; the products are
    uncut here.
    """
    fake_kernels.install(monkeypatch)
    dtype, stem = DTYPES[letter], ROUTINE_OF.get(routine, routine)
    hermitian = routine.startswith("he") and dtype.is_complex
    flags = {} if routine == "gemmtr" else {"hermitian": hermitian}
    flags |= {"side": Side.LEFT} if routine in SYMMETRIC else {}

    def dense(rows, cols, batch):
        return Operand(0, rows, cols, 1, rows, dtype, False, batch, rows * cols)

    for n, batch in ((500, 1), (4096, 1), (8192, 1), (40000, 1), (100, 3000), (3000, 7)):
        if routine in SYMMETRIC:
            operands = dense(n, n, batch), dense(n, 64, batch), dense(n, 64, batch)
        else:
            operands = dense(n, 64, batch), dense(64, n, batch), dense(n, n, batch)
            operands = (operands[0], *operands[2:]) if "rk" in routine else operands
            operands = (operands[0], operands[0], operands[-1]) if "2" in routine else operands
        with override("splits", 1), override("packed", False):
            launches = launch_list_of(stem)(1, *operands[:-1], 1, operands[-1], uplo=Uplo.LOWER, **flags)
        is_mirrored = any("symmetrize" in step.source.name for step in launches.entries)
        takes_any = routine in SYMMETRIC or is_mirrored
        assert takes_any <= launches.workspace_bytes <= (32 << 20) * takes_any, (n, batch)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_products_part_their_tiles_within_the_workspace(monkeypatch, routine, letter):
    """On an H200 the squares of these orders would take persistent blocks, and 16 MiB beside the copies."""
    fake_kernels.install(monkeypatch)
    flags = {"side": Side.LEFT} if routine in SYMMETRIC else {}
    for n in (1024, 2048, 4096):
        x = Operand(0, n, n, 1, n, DTYPES[letter])
        operands = (x, x) if "rk" in routine else (x, x, x)
        launches = launch_list_of(ROUTINE_OF.get(routine, routine))(
            1, *operands[:-1], 1, x, uplo=Uplo.LOWER, **flags
        )
        assert launches.workspace_bytes <= 32 << 20, n


@pytest.mark.parametrize("routine", ROUTINES)
def test_explain_tells_of_the_blocks_and_products(monkeypatch, routine):
    fake_kernels.install(monkeypatch)
    explaining = import_module("pyblasgpu.api.explain")
    products = explaining.explain(routine, "z", 3000, 3000, *[500] * (routine in RANK_K))
    if "2k" in routine:
        assert products.pop(0) == ("algorithm", "two_products", "computed")
    others = {family for family, *_ in products if not family.startswith("gemm")}
    assert products and others <= {"splits of k", "policy"}
    if routine in RANK_K:
        with pytest.raises(ValueError, match=f"the result of {routine} is square, not 3 by 4"):
            explaining.explain(routine, "z", 3, 4)
