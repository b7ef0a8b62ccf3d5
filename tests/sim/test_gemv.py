"""`gemv` with small blocks: every layout, triangle and flag, exactly."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu.gpu.backend import cuda, ptx
from pyblasgpu.kernels.common import options
from pyblasgpu.kernels.level2 import gemv
from pyblasgpu.kernels.level2.gemv_terms import stepper, term_ranges
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .simulated import device, once

NAN = float("nan")
SMALL = {"n": {"DIM_R": 4, "THR_R": 2}, "t": {"DIM_R": 16, "THR_R": 1, "THR_O": 2}}


def config(letter="d", form="n", kernels=gemv, **changes):
    """Blocks of 32 outputs (of 4, the matrix transposed), added up by 32 threads."""
    return kernels.Gemv(letter, transposed=form == "t", **{"WARPS": 1, **SMALL[form], **changes})


def inside(outputs: int, terms: int, which: int) -> np.ndarray:
    """Which terms of each output there are."""
    o, k = np.ogrid[:outputs, :terms]
    return np.broadcast_to(
        {gemv.ALL: o == o, gemv.BEFORE: k <= o, gemv.AFTER: k >= o}[which], (outputs, terms)
    )


def check(
    letter="d", form="n", outputs=44, terms=24, which=gemv.ALL, bits=0, inc=(1, 1), slices=1, batch=1,
    beta=-1, vectors=True, spread=1, x_vectors=False, kernels=gemv, **changes,
):  # fmt: skip
    """Integers, NaN where it must not read, between fences; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(outputs + 100 * terms)
    a = integers(rng, (batch, outputs, terms), dtype)
    x, y = integers(rng, (batch, terms), dtype), integers(rng, (batch, outputs), dtype)
    kept = inside(outputs, terms, which)
    meant = np.where(kept, a, 0)
    a = np.where(kept, a, NAN).astype(dtype.name)
    if bits & options.UNIT:
        diagonal = ..., *np.diag_indices(min(outputs, terms))
        meant[diagonal], a[diagonal] = 1, a[diagonal] * NAN  # both parts
    conj = meant.conj() if bits & options.CONJUGATE else meant
    alpha = 2 - 1j if dtype.is_complex else 2
    expected = (
        alpha * np.einsum("zij,zj->zi", conj, x.conj() if bits & options.CONJUGATE_SECOND else x) + beta * y
    )
    if beta == 0:
        y = np.full_like(y, NAN)
    small = config(letter, form, kernels, **changes)
    small = small if vectors else replace(small, BYTES=dtype.real_size)
    bits |= options.VECTORS * x_vectors
    a, x, y = laid(a, form, spread, small), stepped(x, inc[0]), stepped(y, inc[1])
    blocks, per = small.grid(outputs), small.terms_per_slice(terms, slices)
    ldw = -(-outputs // 4) * 4
    w, flags = np.full((batch * slices, ldw), NAN, dtype.name), np.zeros(batch * blocks + 1, dtype.real)
    steps = (*strides(a)[1:], strides(x)[1], ldw, strides(y)[1], *(strides(v)[0] for v in (a, x, y)))
    numbers = outputs, terms, slices, per, small.LOG_R, which, bits, *steps
    run(small_source(kernels, small), blocks * slices, (a, x, w, flags, y), numbers, (alpha, beta), batch)
    assert np.array_equal(y, expected.astype(dtype.name)) and not flags.any()


def small_source(kernels, small):
    return kernels.source(small)


def laid(a: np.ndarray, form: str, spread: int, small) -> np.ndarray:
    """`a` with its vectors at neighbouring addresses, `spread` elements apart; columns are padded by NaN."""
    grain = small.VEC
    a = a if form == "n" else a.swapaxes(1, 2)
    batch, rows, cols = a.shape
    room = np.full((batch, cols, -(-rows // grain) * grain + grain, spread), NAN, a.dtype)
    view = room[:, :, :rows, 0].swapaxes(1, 2)
    view[...] = a
    return view if form == "n" else view.swapaxes(1, 2)


def stepped(x: np.ndarray, inc: int) -> np.ndarray:
    """`x` with every element `inc` from the last; backwards if that is negative."""
    room = np.full((x.shape[0], x.shape[1] * abs(inc) + 1), NAN, x.dtype)
    view = room[:, : x.shape[1] * abs(inc) : abs(inc)][:, :: -1 if inc < 0 else 1]
    view[...] = x
    return view


@pytest.mark.parametrize("form, dim_r, thr_o", [("n", 128, 4), ("t", 512, 2)])
def test_blocks_of_sixteen_warps(form, dim_r, thr_o):
    """Such blocks serve where nothing is tuned."""
    shape = {"WARPS": 16, "DIM_R": dim_r, "THR_O": thr_o, "THR_R": 4}
    check("d", form, 20, 1100, slices=2, x_vectors=form == "t", **shape)
    check("d", form, 40, 40, gemv.AFTER, options.UNIT, batch=2, **shape)


@pytest.mark.parametrize("form", "nt")
@pytest.mark.parametrize("letter", DTYPES)
def test_every_triangle_and_flag(letter, form):
    flags = (
        (0, options.CONJUGATE | options.CONJUGATE_SECOND, options.UNIT)
        if letter in "cz"
        else (0, options.UNIT)
    )
    for which, bits in product((gemv.BEFORE, gemv.AFTER), flags):
        check(letter, form, 36, 36, which, bits, slices=2)


@pytest.mark.parametrize("form", "nt")
@pytest.mark.parametrize("letter", DTYPES)
def test_any_strides(letter, form):
    check(letter, form, 37, 19, inc=(2, -3), vectors=False, spread=2, beta=0)
    check(letter, form, 36, 24, inc=(-1, 2), slices=3)


@pytest.mark.parametrize("outputs, terms", [(1, 1), (1, 70), (70, 1), (33, 5), (4, 64)])
@pytest.mark.parametrize("form", "nt")
def test_edges(form, outputs, terms):
    check("d", form, outputs, terms, vectors=False, slices=2)
    check("s", form, outputs, terms, gemv.BEFORE, vectors=False, beta=0)


@pytest.mark.parametrize("dim_r", [1, 2, 16, 64])
@pytest.mark.parametrize("form", "nt")
def test_threads_lie_as_they_are_told(form, dim_r):
    """Sums of lanes, of warps and of slices, whatever threads there are along each dimension."""
    check("s", form, 36, 72, WARPS=2, DIM_R=dim_r, slices=2)
    check("z", form, 18, 40, WARPS=2, DIM_R=dim_r)
    check("d", form, 36, 36, gemv.AFTER, WARPS=2, DIM_R=dim_r)


@pytest.mark.parametrize("letter", DTYPES)
def test_x_by_vectors(letter):
    check(letter, "t", 10, 72, x_vectors=True)
    check(letter, "t", 36, 36, gemv.BEFORE, x_vectors=True, DIM_R=32, THR_O=1)


def test_many_slices_are_shared_by_the_threads():
    check("d", "n", 36, 200, slices=20, DIM_R=16, THR_R=1)
    check("s", "t", 3, 1600, slices=20)


@given(st.sampled_from("sdcz"), st.sampled_from("nt"), st.booleans(), st.data())
@settings(max_examples=30, deadline=None)
def test_any_call(letter, form, vectors, data):
    """Shapes, slices, threads, triangles, options and increments, in any combination."""
    draw, grain = data.draw, 4
    outputs, terms = draw(st.integers(1, 12)) * grain, draw(st.integers(1, 20)) * grain
    if not vectors:
        outputs, terms = outputs - draw(st.integers(0, 3)), terms - draw(st.integers(0, 3))
    which = draw(st.sampled_from((gemv.ALL, gemv.BEFORE, gemv.AFTER)))
    offered = (options.CONJUGATE, options.CONJUGATE_SECOND) if letter in "cz" else ()
    bits = sum(draw(st.sets(st.sampled_from((*offered, options.UNIT if which else 0)))))
    warps = draw(st.sampled_from((1, 2)))
    inc, batch = (draw(st.sampled_from((1, 2, -1))), draw(st.sampled_from((1, -3)))), draw(st.integers(1, 2))
    check(
        letter,
        form,
        outputs,
        terms,
        which,
        bits,
        inc,
        draw(st.integers(1, 4)),
        batch,
        draw(st.sampled_from((-1, 0))),
        vectors,
        WARPS=warps,
        DIM_R=1 << draw(st.integers(0, 4 + warps)),
        THR_R=draw(st.integers(1, 3)),
        x_vectors=vectors and inc[0] == 1 and batch == 1 and form == "t",
    )


@pytest.mark.parametrize("form", "nt")
def test_batches_have_flags_and_sums_of_their_own(form):
    check("d", form, 36, 40, slices=2, batch=3)
    check("z", form, 10, 40, gemv.AFTER, slices=1, batch=2)


@pytest.mark.parametrize("form", "nt")
def test_as_many_terms_as_an_int32_counts(form):
    """The simulator refuses an int32 beyond 2^31."""
    small = replace(config("s", form), BYTES=4)
    (_, a), (_, x), last, sums = device([2]), device([5]), 2**31 - 1, []
    add, ranges = stepper(small, False), term_ranges(small)

    def kernel():
        acc, held, x_held = (cuda.local.array(32, ptx.types.float32) for _ in range(3))
        ptx.fill(32)(acc, np.float32(0))
        add(acc, held, x_held, a, x, 0, 0, 0, 1, 1, 0, 0, last - 3, last, 1, gemv.ALL, 0, False, 1, 1)
        sums.append(acc[0])

    once(kernel)
    assert sums == [30]
    assert ranges(0, 32, 1, last, 2**30 + 8, gemv.ALL)[:2] == (2**30 + 8, last)
    assert ranges(0, 32, 2, last, 2**30 + 8, gemv.ALL)[:2] == (last, last)
    assert ranges(last - 3, 32, 0, last, 8, gemv.AFTER)[3] == last
