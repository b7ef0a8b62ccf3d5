"""`gemv_n` and `gemv_t` with small blocks: every layout, triangle and flag, exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pyblasgpu.database import FIXED
from pyblasgpu.kernels.level2 import gemv
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run, strides

NAN = float("nan")
SMALL = {"n": {"DIM_O": 8, "DIM_R": 4, "THR_R": 2}, "t": {"DIM_O": 2, "DIM_R": 16, "THR_R": 1, "THR_O": 2}}


def config(letter="d", form="n", kernels=gemv, **changes):
    """Blocks of 32 outputs (of 4, the matrix transposed), added up by 32 threads."""
    made = {"n": kernels.GemvN, "t": kernels.GemvT}[form]
    return made(letter, **{**SMALL[form], "MIN_STEPS": 1, **changes})


def inside(outputs: int, terms: int, which: int) -> np.ndarray:
    """Which terms of each output there are."""
    o, k = np.ogrid[:outputs, :terms]
    return np.broadcast_to(
        {gemv.ALL: o == o, gemv.BEFORE: k <= o, gemv.AFTER: k >= o}[which], (outputs, terms)
    )


def check(
    letter="d", form="n", outputs=44, terms=24, which=gemv.ALL, bits=0, inc=(1, 1), slices=1, batch=1,
    beta=-1, vectors=True, spread=1, kernels=gemv, **changes,
):  # fmt: skip
    """Integers, NaN where it must not read, between fences; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(outputs + 100 * terms)
    a = integers(rng, (batch, outputs, terms), dtype)
    x, y = integers(rng, (batch, terms), dtype), integers(rng, (batch, outputs), dtype)
    kept = inside(outputs, terms, which)
    meant = np.where(kept, a, 0)
    a = np.where(kept, a, NAN).astype(dtype.name)
    if bits & gemv.UNIT:
        diagonal = ..., *np.diag_indices(min(outputs, terms))
        meant[diagonal], a[diagonal] = 1, a[diagonal] * NAN  # both parts
    conj = meant.conj() if bits & gemv.CONJ_A else meant
    alpha = 2 - 1j if dtype.is_complex else 2
    expected = alpha * np.einsum("zij,zj->zi", conj, x.conj() if bits & gemv.CONJ_X else x) + beta * y
    if beta == 0:
        y = np.full_like(y, NAN)
    small = config(letter, form, kernels, **changes)
    small = small if vectors else small.with_alignment(1)
    a, x, y = laid(a, form, spread, small), stepped(x, inc[0]), stepped(y, inc[1])
    blocks, per = small.tiles(outputs), small.terms_per_slice(terms, slices)
    ldw = -(-outputs // 4) * 4
    w, flags = np.full((batch * slices, ldw), NAN, dtype.name), np.zeros(batch * blocks + 1, dtype.real)
    steps = (*strides(a)[1:], strides(x)[1], ldw, strides(y)[1], *(strides(v)[0] for v in (a, x, y)))
    numbers = outputs, terms, slices, per, which, bits, *steps
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


@pytest.mark.parametrize("form", "nt")
@pytest.mark.parametrize("letter", DTYPES)
def test_every_triangle_and_flag(letter, form):
    flags = (0, gemv.CONJ_A | gemv.CONJ_X, gemv.UNIT) if letter in "cz" else (0, gemv.UNIT)
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


@pytest.mark.parametrize(
    "outputs, terms", [(1, 1), (20, 24), (24, 5000), (800, 300), (5000, 40), (30000, 30)]
)
@pytest.mark.parametrize("letter", DTYPES)
def test_forms(letter, outputs, terms):
    """Every form is a Config, and what serves a shape is one of the forms that the catalogue lists."""
    for stem in ("gemv_n", "gemv_t"):
        chosen = FIXED[stem].fixed_config(letter)
        assert chosen.serving(outputs, terms) in chosen.forms()
        listed = {source.config for source in FIXED[stem].plain_sources(chosen)}
        for size in (1, 16):
            config = chosen.serving(outputs, terms).with_alignment(size)
            assert gemv.source(config).config in listed


@pytest.mark.parametrize("form", "nt")
def test_batches_have_flags_and_sums_of_their_own(form):
    check("d", form, 36, 40, slices=2, batch=3)
    check("z", form, 10, 40, gemv.AFTER, slices=1, batch=2)
