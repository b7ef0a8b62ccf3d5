"""Calls of Level 3 by tiles on fake cards: results, options, what is refused before anything starts."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from fake_cards_install import holds_nothing

import pyblasgpu
from pyblasgpu.dispatch.overrides import method_of
from pyblasgpu.engine import leaves, order, tile_size
from pyblasgpu.frontend.backend_status import backend_status, preferred_backend
from pyblasgpu.frontend.calls import engine_call, engine_lu, tiled_plan
from pyblasgpu.frontend.engine_options import ambient_options
from pyblasgpu.gpu import page_locked
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.kept_results import KeptResults
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("small_tiles")


def drawn(shape, letter="d", order="C", seed=0) -> np.ndarray:
    return np.asarray(integers(np.random.default_rng(seed), shape, DTYPES[letter]), order=order)


CALLS = {
    "gemm": lambda a, b, **options: pyblasgpu.gemm(a, b, trans_b="T", alpha=2, **options),
    "syrk": lambda a, b, **options: pyblasgpu.syrk(a, lower=True, **options),
    "herk": lambda a, b, **options: pyblasgpu.herk(a, trans="C", **options),
    "symm": lambda a, b, **options: pyblasgpu.symm(a[:, :19], b, lower=True, **options),
    "hemm": lambda a, b, **options: pyblasgpu.hemm(b @ b.T, b[:, :10], side="L", **options),
    "trmm": lambda a, b, **options: pyblasgpu.trmm(a[:, :19], b, trans="T", **options),
    "trsm": lambda a, b, **options: pyblasgpu.trsm(
        np.eye(19, dtype=a.dtype) + 0 * a[:, :19], b, side="L", lower=True, alpha=3, **options
    ),
}


@pytest.mark.parametrize("name", [*(name for name in CALLS if name != "hemm"), "trsm from the right"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("count", [4, 5])
def test_tiles_twice_as_long_along_the_inner_dimension(fake_cards, monkeypatch, name, order, count):
    monkeypatch.setattr(tile_size, "LARGEST", 16)
    monkeypatch.setattr(tile_size, "PARTS", 1)
    cuts, cut = set(), tile_size.tile_orders
    monkeypatch.setattr(tile_size, "tile_orders", lambda *args: cuts.add(orders := cut(*args)) or orders)
    driver, call = fake_cards(), CALLS.get(name, _trsm_from_the_right)
    a, b = drawn((19, 27), order=order), drawn((19, 27), order=order, seed=1)
    actual = call(a, b, devices=range(count))
    np.testing.assert_array_equal(actual, call(a, b, backend="cpu"))
    assert all(sorted(each)[-2:] == [8, 16] for each in cuts) and cuts
    assert holds_nothing(driver)


def _trsm_from_the_right(_: np.ndarray, b: np.ndarray, **options) -> np.ndarray:
    return pyblasgpu.trsm(np.eye(27) + 2 * np.eye(27, k=3) + np.eye(27, k=11), b, side="R", **options)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("name", ["gemm", "syrk", "symm", "trmm", "trsm"])
def test_tiles_are_made_by_the_method(fake_cards, monkeypatch, name, blocking):
    fake_cards()
    enqueue, methods = leaves.enqueue_leaf, set()

    def note(*arguments):
        methods.add(method_of(None))
        enqueue(*arguments)

    monkeypatch.setattr(leaves, "enqueue_leaf", note)
    a, b = drawn((19, 27), "s"), drawn((19, 27), "s", seed=1)
    actual = CALLS[name](a, b, devices="all", method="tensor", blocking=blocking)
    actual = actual if blocking else actual.wait()
    assert methods == {"tensor"}
    np.testing.assert_array_equal(actual, CALLS[name](a, b, backend="cpu"))


@pytest.mark.parametrize("letter", "scz")
def test_dtypes_and_special_layouts(fake_cards, letter):
    """Rows that run backwards, every other column, broadcast operands, read-only ones."""
    fake_cards(seed=2)
    a, b = drawn((40, 54), letter), drawn((27, 1), letter, seed=1)
    views = a[::-2, ::2], np.broadcast_to(b, (27, 21))
    for view in views:
        view.flags.writeable = False
    out = np.full((40, 63), np.nan, DTYPES[letter].name)[::2, ::-3]
    actual = pyblasgpu.gemm(*views, out=out, devices=[0, 2, 4])
    assert actual is out
    np.testing.assert_array_equal(out, views[0] @ views[1])


@pytest.mark.parametrize("devices", [[0], [0, 1, 2]], ids=str)
def test_few_pinned_buffers(fake_cards, monkeypatch, devices):
    """Whatever the strides of what is staged, with a buffer at a time."""
    driver = fake_cards(seed=5)
    monkeypatch.setitem(page_locked.shared_pools, "up", page_locked.PinnedPool(limit=1))
    a, b = drawn((40, 60))[::-1, ::2], drawn((30, 54), seed=1)[:, ::-2]
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=devices, max_device_memory=5000), a @ b)
    assert not driver.pageable
    spd = (a @ a.T + 900 * np.eye(40))[::-1, ::-1]
    with pyblasgpu.use_devices(devices, 5000):
        factor = pyblasgpu.linalg.cholesky(spd, lower=True)
    np.testing.assert_allclose(factor @ factor.T, spd, rtol=1e-12, atol=1e-9)


def test_a_mapped_file_and_page_locked_memory(fake_cards, tmp_path):
    driver = fake_cards(seed=3)
    mapped = np.memmap(tmp_path / "a", np.float64, "w+", shape=(20, 24))
    mapped[...] = drawn((20, 24))
    mapped.flush()
    a = np.memmap(tmp_path / "a", np.float64, "r", shape=(20, 24))
    b, out = driver.lock_pages(drawn((24, 30))), driver.lock_pages(np.empty((20, 30)))
    pyblasgpu.gemm(a, b, out=out, devices=[0, 1])
    np.testing.assert_array_equal(out, a @ b)
    assert not driver.pageable


def test_beta_reads_the_output_and_zero_does_not(fake_cards):
    fake_cards()
    a, b, c = drawn((20, 20)), drawn((20, 20), seed=1), drawn((20, 20), seed=2)
    expected = 2 * (a @ b) - 3 * c
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, alpha=2, beta=-3, out=c, devices=[0, 1]), expected)
    c[...] = np.nan
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, out=c, devices=[0, 1]), a @ b)


@pytest.mark.parametrize("devices", [[0], [0, 1]], ids=str)
def test_alpha_zero_reads_no_input(fake_cards, monkeypatch, devices):
    """So that nothing is made of tiles."""
    driver, whole, c = fake_cards(), [], drawn((20, 20), seed=2)
    monkeypatch.setattr(
        "pyblasgpu.frontend.calls.staging.run_staged", lambda *arguments: whole.append(arguments)
    )
    none = np.full((20, 20), np.nan)
    pyblasgpu.gemm(none, none, alpha=0, beta=2, out=c, devices=devices, max_device_memory=8192)
    pyblasgpu.trmm(none, none, alpha=0, devices=devices, max_device_memory=8192)
    assert len(whole) == 2 and not driver.copied


@pytest.mark.parametrize("backend", ["cpu", "numba"])
def test_what_is_for_cards_alone_changes_nothing_on_the_processor(fake_cards, monkeypatch, backend):
    driver, a = fake_cards(), drawn((20, 20), order="F")
    spd = a @ a.T + np.eye(20)
    np.testing.assert_array_equal(pyblasgpu.gemm(a, a, max_device_memory=64, backend=backend), a @ a)
    monkeypatch.setenv("PYBLASGPU_BACKEND", backend)
    with pyblasgpu.use_devices([1], max_device_memory=64):
        np.testing.assert_array_equal(pyblasgpu.gemm(a, a), a @ a)
        factor, info = pyblasgpu.lapack.dpotrf(spd, lower=1)
        lu, piv, _ = pyblasgpu.lapack.dgetrf(spd)
    assert info == 0 and not driver.copied
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(spd))
    np.testing.assert_allclose(pyblasgpu.lapack.dgetrs(lu, piv, spd)[0], np.eye(20), atol=1e-9)


@pytest.mark.parametrize("beta", [0, 2])
def test_the_other_triangle_of_an_output_stays(fake_cards, beta):
    fake_cards()
    a, c = drawn((20, 12)), drawn((20, 20), seed=2)
    c[np.triu_indices(20, 1)] = np.nan
    before = c.copy()
    pyblasgpu.syrk(a, lower=True, beta=beta, out=c, devices=[0, 1])
    np.testing.assert_array_equal(np.triu(c, 1), np.triu(before, 1))
    np.testing.assert_array_equal(np.tril(c), np.tril(a @ a.T + beta * np.tril(before)))


def test_a_matrix_that_is_not_to_be_read_may_hold_nan(fake_cards):
    fake_cards()
    a, b = np.tril(drawn((20, 20)), -1), drawn((20, 20), seed=2)
    poisoned = a + np.triu(np.full_like(a, np.nan))
    actual = pyblasgpu.trmm(poisoned, b, lower=True, unit_diag=True, devices=[0, 1])
    np.testing.assert_array_equal(actual, a @ b + b)


def test_in_place(fake_cards):
    fake_cards()
    a, b = np.tril(drawn((20, 20))), drawn((20, 20), seed=2)
    expected = a @ b
    assert pyblasgpu.trmm(a, b, lower=True, out=b, max_device_memory=4096) is b
    np.testing.assert_array_equal(b, expected)


def test_the_same_bits_on_any_number_of_cards(fake_cards):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(32, 32)), rng.normal(size=(32, 32))
    t = np.tril(a) + 40 * np.eye(32)
    results = []
    for devices in ([0], [0, 1], [5, 2, 7], "all"):
        fake_cards()
        options = {"devices": devices, "max_device_memory": 1 << 13}
        results.append((pyblasgpu.gemm(a, b, **options), pyblasgpu.trsm(t, b, lower=True, **options)))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


REFUSED = {
    "twice": ({"devices": [1, 1]}, ValueError, r"devices=\[1, 1\] names none, or one twice"),
    "none": ({"devices": []}, ValueError, "names none"),
    "both": ({"device": 0, "devices": [0]}, ValueError, "device=0 and devices=.* are both given"),
    "word": ({"devices": "some"}, ValueError, "neither 'all' nor"),
    "there is none": ({"devices": [0, 8]}, RuntimeError, "no CUDA device 8"),
    "no number": ({"device": 1.5}, TypeError, "device=1.5 is no integer"),
    "no bytes": ({"max_device_memory": 0}, ValueError, "max_device_memory=0"),
    "few bytes": ({"max_device_memory": 2000}, ValueError, "2000 bytes of device memory are too few"),
    "no function": ({"progress": 3}, TypeError, "progress=3"),
    "on the processor": ({"devices": [0], "backend": "cpu"}, ValueError, r"devices \[0\] are named"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_output(fake_cards, case):
    driver = fake_cards()
    options, error, message = REFUSED[case]
    out = np.full((20, 20), np.nan)
    with pytest.raises(error, match=message):
        pyblasgpu.gemm(drawn((20, 20)), drawn((20, 20)), out=out, **options)
    assert np.isnan(out).all() and not driver.copied


def test_a_stream_of_another_card_is_refused(fake_cards, monkeypatch):
    stream = fake_cards().add_stream(2)
    monkeypatch.setattr("pyblasgpu.gpu.context.stream_device", lambda handle: 2)
    with pytest.raises(ValueError, match=r"gemm: stream .* belongs to device 2, and the call runs on \[1\]"):
        pyblasgpu.gemm(np.eye(3), np.eye(3), stream=stream, device=1)
    a = drawn((20, 20))
    np.testing.assert_array_equal(pyblasgpu.gemm(a, a, stream=stream, devices=[2, 1]), a @ a)


def test_outputs_that_cannot_be_written(fake_cards):
    driver = fake_cards()
    a = drawn((20, 20))
    out = np.zeros((20, 20))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="gemm: out is read-only"):
        pyblasgpu.gemm(a, a, out=out, devices=[0, 1])
    with pytest.raises(pyblasgpu.errors.OverlapError, match="out shares memory with a"):
        pyblasgpu.gemm(a, a, out=a, devices=[0, 1])
    with pytest.raises(ValueError, match="stacks of matrices run on one device"):
        pyblasgpu.gemm(a[None], a, devices=[0, 1])
    assert not driver.copied


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("clean", [0, 1])
@pytest.mark.parametrize("overwrite", [0, 1])
@pytest.mark.parametrize(("locked", "devices"), [(False, [0, 2, 1]), (True, [0, 2, 1]), (True, [2])])
def test_a_factor(fake_cards, monkeypatch, lower, clean, overwrite, locked, devices):
    """Through functions that have no such keywords, by what is set around them. A card writes zeros to pages
    that are locked.
    """
    monkeypatch.setattr("pyblasgpu.frontend.calls.call.KEPT_FROM", 0)
    monkeypatch.setattr(KeptResults, "empty", lambda self, shape, dtype: np.full(shape, np.nan, dtype))
    factor = np.tril(drawn((27, 27)), -1) + 2 * np.eye(27)
    a = np.asfortranarray(factor @ factor.T)
    expected = pyblasgpu.lapack.potrf(a, lower, clean)  # by SciPy, as there is no device yet
    driver = fake_cards()
    if locked:
        monkeypatch.setattr("pyblasgpu.engine.matrices.is_page_locked", lambda *_: True)
    with pyblasgpu.use_devices(devices, max_device_memory=1 << 12):
        actual, info = pyblasgpu.lapack.potrf(a, lower, clean, overwrite)
    assert info == 0 and (actual is a) == overwrite and driver.copied[-1, 2]
    np.testing.assert_array_equal(actual, expected[0])


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("letter", "dz")
def test_solutions(fake_cards, lower, letter):
    """Both solves of a Cholesky factor are one list; and a system is solved by way of it."""
    driver = fake_cards()
    factor = np.tril(drawn((27, 27), letter), -1) + 2 * np.eye(27)
    stored, x = np.asfortranarray(factor if lower else factor.conj().T), drawn((27, 20), letter, seed=3)
    a = factor @ factor.conj().T
    with pyblasgpu.use_devices([0, 2], max_device_memory=1 << 14):
        actual, info = pyblasgpu.lapack.potrs(stored, a @ x, lower)
        assert info == 0 and driver.copied[-1, 2]
        np.testing.assert_allclose(actual, x, atol=1e-9)
        np.testing.assert_allclose(pyblasgpu.lapack.posv(a, a @ x, lower)[1], x, atol=1e-9)
        held = pyblasgpu.linalg.cho_factor(a, lower)
        np.testing.assert_allclose(pyblasgpu.linalg.cho_solve(held, a @ x), x, atol=1e-9)
        a[5, 5] = -1
        assert pyblasgpu.lapack.posv(a, x, lower)[2] == 6


def test_a_matrix_that_is_not_definite(fake_cards):
    fake_cards()
    a = np.eye(27) * 4
    a[20, 20] = a[25, 25] = -1
    with pyblasgpu.use_devices("all"):
        assert pyblasgpu.lapack.potrf(a)[1] == 21
        with pytest.raises(np.linalg.LinAlgError):
            pyblasgpu.linalg.cholesky(a)


def test_what_is_set_around_calls(fake_cards):
    driver = fake_cards()
    a, b = drawn((20, 20), order="F"), drawn((20, 20), order="F", seed=1)
    with pyblasgpu.use_devices([4, 6]):
        np.testing.assert_array_equal(pyblasgpu.blas.dgemm(1, a, b), a @ b)
        np.testing.assert_array_equal(pyblasgpu.gemm(a, b), a @ b)
        assert driver.copied[-1, 4] and driver.copied[-1, 6]
        np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=[1, 2]), a @ b)
        counts = []
        pyblasgpu.gemm(a, b, progress=lambda done, total: counts.append(total))
        assert counts and driver.copied[-1, 1]
        with pyblasgpu.use_devices(max_device_memory=1 << 20):
            assert ambient_options()[:2] == ((4, 6), 1 << 20)
        # what does not go with it runs as without
        np.testing.assert_array_equal(pyblasgpu.gemm(a, b, backend="cpu"), a @ b)
    assert {way for way in driver.copied if way[0] == -1} == {(-1, 1), (-1, 2), (-1, 4), (-1, 6)}
    with pytest.raises(ValueError, match="use_devices: devices='some'"), pyblasgpu.use_devices("some"):
        pass


@pytest.mark.parametrize("raises", [False, True])
def test_a_setting_ends_with_its_block(fake_cards, raises):
    fake_cards()
    before = ambient_options()
    with pyblasgpu.use_devices([1]):
        outer = ambient_options()
        ends = pytest.raises(OSError, match="of the block") if raises else nullcontext()
        with ends, pyblasgpu.use_devices([2]), preferred_backend("cpu"):
            assert ambient_options().devices == (2,) and backend_status().backend == "cpu"
            if raises:
                raise OSError("of the block")
        assert ambient_options() is outer and backend_status().backend == "cuda"
    assert ambient_options() is before is None


def test_cards_that_do_not_reach_each_other(fake_cards):
    driver = fake_cards(has_peers=False)
    a, b = drawn((20, 20)), drawn((20, 20), seed=1)
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=[0, 1]), a @ b)
    assert "cuCtxEnablePeerAccess" not in driver.calls


@pytest.mark.parametrize("shape", [(40, 40), (50, 24), (24, 50)])
@pytest.mark.parametrize("options", [{"devices": [0]}, {"devices": [0, 2, 1]}], ids=str)
def test_lu_factors(fake_cards, decide_by, monkeypatch, shape, options):
    decide_by(tiled_lu_columns=8)
    monkeypatch.setattr(engine_lu, "FEWEST", 8)
    a = np.asfortranarray(np.random.default_rng(7).normal(size=shape))
    factors, piv, info = pyblasgpu.lapack.getrf(a)  # by SciPy, as there is no device yet
    driver = fake_cards(seed=shape[0])
    with pyblasgpu.use_devices(**options, max_device_memory=9500):
        actual, pivots, actual_info = pyblasgpu.lapack.getrf(a)
        assert driver.copied[-1, 0]
        np.testing.assert_array_equal(pivots, piv)
        np.testing.assert_allclose(actual, factors, atol=1e-11)
        assert actual_info == info == 0 and pivots.dtype == np.int32
        a[:, 19] = 0
        assert pyblasgpu.lapack.getrf(a)[2] == 20
    assert holds_nothing(driver)


@pytest.mark.parametrize(
    ("devices", "memory", "panels_from", "goes_by_panels"),
    [
        ([0, 1], 1 << 20, 5, True),
        ([0, 1], 1 << 20, 6, False),
        ([0, 1], 9500, 1, False),
    ],
)
def test_lu_goes_by_panels_where_several_cards_hold_it(
    fake_cards, decide_by, monkeypatch, devices, memory, panels_from, goes_by_panels
):
    decide_by(tiled_lu_columns=8, tiled_lu_min_panels=panels_from)
    monkeypatch.setattr(engine_lu, "FEWEST", 8)
    ordered, by_panels = [], order.by_panels
    monkeypatch.setattr(order, "by_panels", lambda tasks: ordered.append(1) or by_panels(tasks))
    fake_cards()
    with pyblasgpu.use_devices(devices, memory):
        pyblasgpu.lapack.getrf(np.eye(40))
    assert bool(ordered) == goes_by_panels


@pytest.mark.parametrize(
    ("m", "n", "limit", "cards", "block"),
    [
        (9000, 9000, 64 << 30, 1, 1024),
        (100, 9000, 64 << 30, 1, 100),
        (9000, 100, 64 << 30, 1, 100),
        (9000, 8192, 64 << 30, 4, 1024),  # two block columns for each card
        (9000, 8191, 64 << 30, 4, 512),
        (9000, 2047, 64 << 30, 8, 128),
        (9000, 500, 64 << 30, 8, 128),
        (9000, 9000, 9000 * 1024 * 8 * 6, 1, 1024),  # six of them fit
        (9000, 9000, 9000 * 1024 * 8 * 6 - 1, 1, 512),
        (9000, 9000, 1 << 20, 1, 128),
    ],
)
def test_columns_of_a_block_column(m, n, limit, cards, block):
    assert engine_lu.columns_of_block(m, n, 8, limit, cards, 1024) == block
    assert engine_lu.columns_of_block(m, n, 8, limit, cards, 256) == min(block, 256)


@pytest.mark.parametrize("blocking", [True, False])
def test_streamed_host_matrices_follow_the_stream(fake_cards, decide_by, monkeypatch, blocking):
    """Threads read them when what the caller's stream writes there is over."""
    driver = fake_cards(eagerness=0)
    decide_by(streamed_min_bytes=0)
    monkeypatch.setattr("pyblasgpu.gpu.context.stream_device", lambda handle: 0)
    a, b = drawn((20, 20)), drawn((20, 20), seed=1)
    late, stream = np.full_like(a, np.nan), driver.add_stream(0)
    with current_context(0):
        driver.launch(stream, "writes late", [], lambda: np.copyto(late, a))
    actual = pyblasgpu.gemm(late, b, stream=stream, blocking=blocking)
    np.testing.assert_array_equal(actual if blocking else actual.wait(60), a @ b)


def test_large_host_matrices_are_streamed(fake_cards, decide_by, monkeypatch):
    """But for a product that tiles cannot serve."""
    driver, whole = fake_cards(), []
    decide_by(streamed_min_bytes=3 * 20 * 20 * 16)
    monkeypatch.setattr(
        "pyblasgpu.frontend.calls.staging.run_staged", lambda *arguments: whole.append(arguments)
    )
    a, b = drawn((20, 20), "z"), drawn((20, 20), "z", seed=1)
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b), a @ b)
    assert driver.copied[-1, 0] and not whole
    pyblasgpu.gemm(a, b, method="3m")
    pyblasgpu.gemm(a[:19], b)
    assert len(whole) == 2


@pytest.mark.parametrize(
    ("large", "limit", "is_streamed"), [(9599, 9599, True), (9599, 9600, False), (9600, 9599, False)]
)
def test_host_matrices_that_do_not_fit_are_streamed(fake_cards, monkeypatch, large, limit, is_streamed):
    """Matrices have 9600 bytes; a card's memory is read where there are more than `large`."""
    driver, whole = fake_cards(), []
    monkeypatch.setattr(engine_call, "LARGE", large)
    monkeypatch.setattr("pyblasgpu.engine.run.memory_limit", lambda devices, requested: limit)
    monkeypatch.setattr(
        "pyblasgpu.frontend.calls.staging.run_staged", lambda *arguments: whole.append(arguments)
    )
    a, b = drawn((20, 20)), drawn((20, 20), seed=1)
    result = pyblasgpu.gemm(a, b)
    assert bool(driver.copied[-1, 0]) == is_streamed != bool(whole)
    if is_streamed:
        np.testing.assert_array_equal(result, a @ b)


def test_a_repeated_call_makes_no_new_plan(fake_cards):
    """Unless flags, scalars, tiles or cards are others; results stay those of the call."""
    fake_cards()
    a, b = drawn((20, 20)), drawn((20, 20), seed=1)
    tiled_plan.made.cache_clear()
    for scale in (1, 2, 1):
        for trans in "NT":
            for devices in ([0, 1], [2]):
                options = {"devices": devices, "max_device_memory": 5000}
                actual = pyblasgpu.gemm(a, b, alpha=scale, trans_a=trans, **options)
                np.testing.assert_array_equal(actual, scale * ((a if trans == "N" else a.T) @ b))
    assert tiled_plan.made.cache_info().misses == 8


def test_factors_are_streamed_from_a_size_on(fake_cards, decide_by):
    driver = fake_cards()
    a = np.eye(20)
    decide_by(streamed_factor_min_bytes={"potrf": a.nbytes})
    for function in (pyblasgpu.lapack.potrf, pyblasgpu.lapack.dpotrf):
        driver.copied.clear()
        np.testing.assert_array_equal(function(4 * a, 1)[0], 2 * a)
        assert driver.copied[-1, 0]
