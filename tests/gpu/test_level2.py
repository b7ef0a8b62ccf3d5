"""Level 2 on a device: exact on integers, every flag and layout, the same bits always."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import empty_sums
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .running import NAN, Placed, cupy, reals, same

SHAPES = ((1, 1), (7, 300), (300, 7), (257, 260), (1000, 1000), (2048, 640), (5000, 16), (16, 5000))
ORDERS = (1, 5, 64, 257, 1000, 2048)


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    """The kernels are compiled many at a time."""

    def find() -> Iterator:
        for stem, letter in product(("gemv", "symv", "symv_small", "symv_sum", "ger"), DTYPES):
            family = family_of(stem)
            for layout in family.layouts:
                config = select(stem, DTYPES[letter], layout, (1000, 1000), current()).config
                yield from family.plain_sources(config)
                if family.is_tuned:
                    for other in family.untuned(letter, layout):
                        yield from family.plain_sources(other)

    compile_once("level2", find)


def vector(values: np.ndarray, step: int = 1):
    """`values` on the device, every element `step` from the last, NaN between."""
    room = np.full(values.size * abs(step), NAN, values.dtype)
    room[:: abs(step)][:: -1 if step < 0 else 1] = values
    return cupy.asarray(room)[:: abs(step)][:: -1 if step < 0 else 1]


def triangle(a: np.ndarray, lower: bool) -> np.ndarray:
    kept = np.tri(len(a), dtype=bool)
    return np.where(kept if lower else kept.T, a, NAN).astype(a.dtype)


@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("letter", DTYPES)
def test_gemv(letter, trans):
    rng, dtype = np.random.default_rng(1), DTYPES[letter]
    for (m, n), order, aligned in product(SHAPES, "FC", (True, False)):
        a = integers(rng, (m, n), dtype)
        op = {"N": a, "T": a.T, "C": a.conj().T}[trans]
        x, y = integers(rng, op.shape[1], dtype), integers(rng, op.shape[0], dtype)
        out = Placed(y[:, None], "F", aligned)
        held, step = Placed(a, order, aligned).array, 1 if aligned else -2
        pyblasgpu.gemv(held, vector(x, step), alpha=2, beta=-3, trans=trans, out=out.array[:, 0])
        same(out.fetch()[:, 0], (2 * op @ x - 3 * y).astype(dtype.name), f"gemv {trans} {m} {n} {order}")
        assert out.unharmed()


@pytest.mark.parametrize("stem", ["symv", "symv_small"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_symv_and_hemv(letter, lower, stem):
    rng, dtype = np.random.default_rng(2), DTYPES[letter]
    for n, order, name, aligned in product(ORDERS, "FC", ("symv", "hemv"), (True, False)):
        a, x, y = (integers(rng, shape, dtype) for shape in ((n, n), n, n))
        hermitian = name == "hemv" and dtype.is_complex
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        full = half + (half.conj() if hermitian else half).T
        full += np.diag(np.diagonal(a).real if hermitian else np.diagonal(a))
        a = triangle(a, lower)
        if hermitian:
            a.imag[np.diag_indices(n)] = NAN
        held, out = Placed(a, order, aligned).array, vector(y, 2)
        with override(stem, family_of(stem).fixed_config(letter)):
            getattr(pyblasgpu, name)(held, vector(x, -1), beta=2, lower=lower, out=out)
        same(out.get(), (full @ x + 2 * y).astype(dtype.name), f"{name} {n} {order} {aligned}")


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_trmv_and_trsv(letter, unit):
    rng, dtype = np.random.default_rng(3), DTYPES[letter]
    for n, order, lower, trans in product(ORDERS, "FC", (False, True), "NTC"):
        a, x = integers(rng, (n, n), dtype, 1), integers(rng, n, dtype)
        meant = np.tril(a) if lower else np.triu(a)
        a = triangle(a, lower)
        if unit:
            np.fill_diagonal(meant, 1)
            np.fill_diagonal(a, NAN)
        meant = {"N": meant, "T": meant.T, "C": meant.conj().T}[trans]
        held, flags = Placed(a, order, n % 2 == 0).array, {"lower": lower, "trans": trans, "unit_diag": unit}
        result, inside = pyblasgpu.trmv(held, vector(x, -2), **flags), vector(x, -2)
        same(result.get(), (meant @ x).astype(dtype.name), f"trmv {n} {order} {flags}")
        pyblasgpu.trmv(held, inside, out=inside, **flags)
        same(inside.get(), (meant @ x).astype(dtype.name), f"trmv in place {n} {order} {flags}")
        if n <= 64 and unit:
            solved = pyblasgpu.trsv(held, vector((meant @ x).astype(dtype.name)), **flags)
            same(solved.get(), x, f"trsv {n} {order} {flags}")


@pytest.mark.parametrize("letter", DTYPES)
def test_ger(letter):
    rng, dtype = np.random.default_rng(4), DTYPES[letter]
    alpha = 2 - 1j if dtype.is_complex else 2
    for (m, n), order, conj, aligned in product(SHAPES, "FC", (False, True), (True, False)):
        x, y, a = integers(rng, m, dtype), integers(rng, n, dtype), integers(rng, (m, n), dtype)
        update = alpha * np.outer(x, y.conj() if conj else y)
        out = Placed(a, order, aligned)
        pyblasgpu.ger(vector(x, 2), vector(y, -1), alpha=alpha, conj=conj, out=out.array)
        same(out.fetch(), (a + update).astype(dtype.name), f"ger {m} {n} {order} {conj} {aligned}")
        assert out.unharmed()
        new = pyblasgpu.ger(vector(x), vector(y), alpha=alpha, conj=conj)
        same(new.get(), update.astype(dtype.name), f"new ger {m} {n}")


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("which", ["syr", "her", "syr2", "her2"])
@pytest.mark.parametrize("letter", DTYPES)
def test_rank_1_and_2(letter, which, lower):
    rng, dtype = np.random.default_rng(5), DTYPES[letter]
    hermitian = which.startswith("her") and dtype.is_complex
    alpha = 3 - 1j if dtype.is_complex and which != "her" else 3
    for n, order, aligned in product(ORDERS, "FC", (True, False)):
        x, y, a = (integers(rng, shape, dtype) for shape in (n, n, (n, n)))
        vectors = (x, y) if which.endswith("2") else (x,)
        full = alpha * np.outer(x, vectors[-1].conj() if hermitian else vectors[-1])
        if len(vectors) == 2:
            full = full + (full.conj() if hermitian else full).T
        start, diagonal = triangle(a, lower), np.diag_indices(n)
        expected = (start + full).astype(dtype.name)
        if hermitian:
            expected[diagonal] = (a + full)[diagonal].real
            start.imag[diagonal] = NAN
        out = Placed(start, order, aligned)
        getattr(pyblasgpu, which)(*map(vector, vectors), alpha=alpha, lower=lower, out=out.array)
        same(out.fetch(), expected, f"{which} {n} {order} {aligned}")
        assert out.unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits_every_time(letter):
    """Slices of sums are added in their order, whichever block comes last; flags are left as they were."""
    dtype, n = DTYPES[letter], 3000
    a, x = cupy.asarray(reals(dtype, n, n), order="F"), cupy.asarray(reals(dtype, n, 1)[:, 0])
    for run in (
        lambda: pyblasgpu.gemv(a, x),
        lambda: pyblasgpu.gemv(a, x, trans="T"),
        lambda: pyblasgpu.gemv(a[:, :64], x, trans="T"),
        lambda: pyblasgpu.gemv(a[:64], x),
        lambda: pyblasgpu.symv(a, x),
        lambda: pyblasgpu.trmv(a, x),
    ):
        results = [run() for _ in range(50)]
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
        for stream in streams:
            with stream:
                results += [run() for _ in range(10)]
        cupy.cuda.Device().synchronize()
        assert all((result == results[0]).all() for result in results)


@pytest.mark.parametrize("letter", DTYPES)
def test_batches(letter):
    rng, dtype = np.random.default_rng(6), DTYPES[letter]
    a, x = integers(rng, (300, 20, 24), dtype), integers(rng, (300, 24), dtype)
    result = pyblasgpu.gemv(cupy.asarray(a), cupy.asarray(x))
    same(result.get(), np.einsum("zij,zj->zi", a, x), "gemv of a batch")
    turned = pyblasgpu.gemv(cupy.asarray(a), cupy.asarray(x[:, :20]), trans="T")
    same(turned.get(), np.einsum("zji,zj->zi", a, x[:, :20]), "gemv of a batch, transposed")
    for order in "CF":  # one vector for all, matrices that vectors of no type fit
        one = pyblasgpu.gemv(cupy.asarray(a[:, 1:, 1:], order=order), cupy.asarray(x[0, 1:]))
        same(one.get(), np.einsum("zij,j->zi", a[:, 1:, 1:], x[0, 1:]), f"gemv, one vector, {order}")


def test_within_bounds():
    """|error| <= (n + 2) u |A| |x|, of long sums."""
    for letter in "sd":
        dtype, n = DTYPES[letter], 5000
        a, x = reals(dtype, n, n), reals(dtype, n, 1)[:, 0]
        exact = a.astype(np.longdouble) @ x.astype(np.longdouble)
        bound = (n + 2) * dtype.unit_roundoff * (abs(a).astype(np.float64) @ abs(x).astype(np.float64))
        for order in "FC":
            result = pyblasgpu.gemv(cupy.asarray(a, order=order), cupy.asarray(x)).get()
            assert (abs(result - exact) <= bound).all()


@pytest.mark.parametrize(("alpha", "beta"), empty_sums.FACTORS)
def test_sums_without_terms_scale_what_is_there(alpha, beta):
    empty_sums.check(alpha, beta, cupy.asarray, cupy.asnumpy)
