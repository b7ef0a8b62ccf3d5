"""Routines on lists of matrices of unequal sizes: on the CPU, and on a fake device."""

from __future__ import annotations

import fake_device
import grouped_cases
import memory_spaces
import numpy as np
import pytest
from fake_kernels import Kernels

import pyblasgpu
from pyblasgpu import gemm_grouped, potrf_grouped, trsm_grouped
from pyblasgpu.errors import OverlapError
from pyblasgpu.gpu import events, launch, memory, tables
from pyblasgpu.gpu.context import current_context
from pyblasgpu.types import DTYPES

SPACES = [memory_spaces.Host, memory_spaces.Staged, memory_spaces.Device]


@pytest.fixture(params=SPACES)
def space(request, card):
    return request.param


def put(space, arrays):
    return [space.put(array) for array in arrays]


def call(space, made, **changes):
    options = {**made.options, **space.options, **changes}
    options["out"] = options["out"] and put(space, options["out"])
    return gemm_grouped(put(space, made.a), put(space, made.b), **options)


@pytest.mark.parametrize("letter", DTYPES)
def test_layouts_flags_and_scalars_of_each(letter, space):
    for _ in range(4):  # a library's arrays are unknown to the first call, and the third one is repeated
        made = grouped_cases.products(DTYPES[letter])
        for result, expected, out in zip(call(space, made), made.expected, made.options["out"]):
            np.testing.assert_array_equal(out, expected)
            assert space.get(result) is out or space.get(result).base is out.base


def test_new_results(space, rng):
    a = [rng.integers(-3, 4, (m, 5)).astype("d") for m in (4, 1, 7)]
    b = [rng.integers(-3, 4, (5, n)).astype("d") for n in (2, 9, 0)]
    b[0] = np.asfortranarray(b[0])
    a[0] = np.asfortranarray(a[0])
    for _ in range(4):
        results = gemm_grouped(put(space, a), put(space, b), alpha=2, **space.options)
        for result, x, y in zip(results, a, b):
            np.testing.assert_array_equal(space.get(result), 2 * x @ y)
    assert [space.get(result).flags.f_contiguous for result in results[:2]] == [True, True]
    assert not space.get(results[0]).flags.c_contiguous
    assert gemm_grouped([], [], beta=[], **space.options) == []


def test_dtypes_and_strides_of_each(space, rng):
    """Entries that no kernel of groups takes as they are."""
    whole = rng.integers(-3, 4, (3, 12, 12))
    a = [whole[0, ::2, ::3], whole[1, ::-1].astype("f"), whole[2].astype("F"), np.ones((0, 2), "d")]
    b = [whole[1, :4, ::2].astype("f"), whole[0].astype("d"), whole[2, :, ::-1].astype("f"), np.ones((2, 3))]
    results = gemm_grouped(put(space, a), put(space, b), **space.options)
    for result, x, y in zip(results, a, b):
        np.testing.assert_array_equal(space.get(result), x @ y)
        assert space.get(result).dtype in ("d", "F")
    spread = np.zeros((8, 12))[::2, ::2]
    gemm_grouped(
        put(space, a[1:2]), put(space, b[1:2]), out=put(space, [np.zeros((12, 12))]), **space.options
    )
    gemm_grouped(
        put(space, [a[1][:4].astype("d")]),
        put(space, [b[1][:, :6]]),
        out=put(space, [spread]),
        **space.options,
    )
    np.testing.assert_array_equal(spread, a[1][:4] @ b[1][:, :6])


def test_special_values(space):
    """They are those of a call for each."""
    values = [np.nan, np.inf, -0.0, 1.0]
    a = [np.array([[x, 0.0]]) for x in values] + [np.full((1, 2), np.nan)] * 4
    b = [np.ones((2, 1))] * 8
    alpha, beta = [1.0] * 4 + [0.0, 0.0, 0.0, np.nan], [0.0] * 5 + [1.0, 2.0, 0.0]
    out = [np.full((1, 1), x) for x in (np.nan, np.nan, np.nan, np.nan, np.nan, -0.0, -0.0, 3.0)]
    singly = [x.copy() for x in out]
    with np.errstate(all="ignore"):
        gemm_grouped(
            put(space, a), put(space, b), alpha=alpha, beta=beta, out=put(space, out), **space.options
        )
        for x, y, c, scale, keep in zip(a, b, singly, alpha, beta):
            pyblasgpu.gemm(x, y, alpha=scale, beta=keep, out=c, backend="cpu")
    np.testing.assert_array_equal(np.ravel(out), np.ravel(singly))
    assert np.signbit(np.ravel(out)[5:7]).all()


ONE, ROW = np.ones((2, 2)), np.ones((1, 2))
WRONG = [
    ({"a": ONE}, TypeError, "a is of type .*; a list of matrices is needed"),
    ({"b": [ONE]}, ValueError, "a has 2 matrices and b 1"),
    ({"out": [ONE.copy()]}, ValueError, "a has 2 matrices and out 1"),
    ({"alpha": [1, 2, 3]}, ValueError, "alpha has 3 entries, and there are 2 of matrices"),
    ({"trans_a": ["N"]}, ValueError, "trans_a has 1 entries"),
    ({"trans_b": ["N", "X"]}, ValueError, "product 1: trans_b='X'"),
    ({"a": [ONE, ROW.T]}, ValueError, r"product 1: op\(a\) is 2 by 1 and op\(b\) 2 by 2 \(a has shape"),
    ({"a": [ONE, np.ones(2)]}, ValueError, r"product 1: a has shape \(2,\)"),
    ({"b": [ONE, np.ones((3, 2, 2))]}, ValueError, r"product 1: b has shape \(3, 2, 2\); a matrix is needed"),
    ({"b": [ONE, "text"]}, TypeError, "product 1: .*b"),
    ({"out": [ONE.copy(), np.ones((2, 3))]}, ValueError, r"product 1: out has shape \(2, 3\)"),
    ({"out": [ONE.copy(), np.ones((2, 2), "f")]}, TypeError, "product 1: out has dtype float32"),
    (
        {"out": [ONE.copy(), np.lib.stride_tricks.as_strided(ONE.copy(), (2, 2), (0, 8))]},
        ValueError,
        "product 1: out .* coincide",
    ),
    ({"beta": [0, 1]}, ValueError, "product 1: beta=1 needs out"),
    ({"alpha": 1j}, TypeError, "product 0: alpha=1j is complex"),
    ({"alpha": [1, "x"]}, TypeError, "product 1: alpha must be a number"),
]


@pytest.mark.parametrize(("changes", "error", "message"), WRONG)
def test_wrong_arguments_change_nothing(changes, error, message, space):
    gemm_grouped(put(space, [ONE]), put(space, [ONE]), **space.options)  # whose library is known from then on
    lists = {"a": [ONE, ONE], "b": [ONE, ONE], "out": None, **changes}
    kept = [np.array(out) for out in lists["out"] or ()]
    placed = {
        name: [space.put(x) if isinstance(x, np.ndarray) else x for x in value]
        if isinstance(value, list)
        else value
        for name, value in lists.items()
    }
    with pytest.raises(error, match=f"gemm_grouped: {message}"):
        gemm_grouped(**placed, **space.options)
    for out, before in zip(lists["out"] or (), kept):
        np.testing.assert_array_equal(out, before)


def test_outputs_share_no_memory(space):
    memory = np.zeros(64)
    square = memory[:16].reshape(4, 4)
    a, b = [np.ones((2, 2))] * 2, [np.ones((2, 2))] * 2
    for _ in range(3):  # so that calls on such arrays are kept
        gemm_grouped(
            put(space, a), put(space, b), out=[space.put(np.zeros((2, 2))) for _ in "ab"], **space.options
        )
    wrong = [
        (
            [memory[:4].reshape(2, 2), memory[3:7].reshape(2, 2)],
            a,
            r"out\[[01]\] shares memory with out\[[01]\]",
        ),
        ([square[:2, :2], square[:2, 1:3]], a, r"out\[[01]\] shares memory with out\[[01]\]"),
        (
            [square[:2, :2], square[2:, 2:]],
            [a[0], memory[13:17].reshape(2, 2)],
            r"out\[1\] shares memory with a\[1\]",
        ),
    ]
    for out, left, message in wrong:
        with pytest.raises(OverlapError, match=f"gemm_grouped: {message}"):
            gemm_grouped(put(space, left), put(space, b), out=put(space, out), **space.options)
    assert not memory.any()
    # interleaved blocks share none
    quarters = [square[:2, :2], square[:2, 2:]]
    gemm_grouped(put(space, a), put(space, b), out=put(space, quarters), **space.options)
    np.testing.assert_array_equal(memory[:16], [2.0] * 8 + [0.0] * 8)


def test_blocks_of_one_array(card, monkeypatch):
    """None is checked by itself, unless some meet."""
    memory = np.zeros((60, 40))
    grid = [memory[i : i + 20, j : j + 10] for i in (0, 20, 40) for j in (0, 10, 20, 30)]
    strips = [memory[:, j : j + w] for j, w in ((0, 7), (7, 3), (30, 10))]
    for blocks in (grid, [x.T for x in grid], strips):
        a = [fake_device.Array(np.ones((len(x), 1))) for x in blocks]
        b = [fake_device.Array(np.full((1, x.shape[1]), float(i))) for i, x in enumerate(blocks)]
        out = [*map(fake_device.Array, blocks)]
        gemm_grouped(a, b, out=out)
        with monkeypatch.context() as patch:
            patch.setattr("pyblasgpu.api.keyword.grouped.Call", None)
            gemm_grouped(a, b, out=out)
        assert [set(np.ravel(x)) for x in blocks] == [{i} for i in range(len(blocks))]
    meeting = [memory[:, :7], memory[5:9, 6:8]]
    with pytest.raises(OverlapError):
        ones = (
            [fake_device.Array(np.ones((len(x), 1))) for x in meeting],
            [fake_device.Array(np.ones((1, x.shape[1]))) for x in meeting],
        )
        gemm_grouped(*ones, out=[*map(fake_device.Array, meeting)])


def test_repeated_calls_check_addresses(card):
    """Complex numbers at odd multiples of their parts are for no kernel of groups."""
    memory = np.zeros(100, "F")
    for shift in (0, 0, 0, 4, 0):
        out = np.ndarray((2, 2), "F", memory.data, shift)
        a = [fake_device.Array(np.full((2, 2), 1j, "F"))] * 2
        outputs = [fake_device.Array(x) for x in (out, np.zeros((2, 2), "F"))]
        gemm_grouped(a, a, out=outputs, alpha=1, beta=0)
        np.testing.assert_array_equal(out, np.full((2, 2), -2))
        memory[:] = 0
    for value in (1, True, 2.5):
        for _ in range(2):
            (result,) = gemm_grouped(a[:1], a[:1], alpha=value)
            np.testing.assert_array_equal(result.host, -2 * value)


def test_one_launch_for_each_layout(card, monkeypatch):
    kernels = Kernels()
    monkeypatch.setattr(launch, "kernel", kernels)
    square = [np.ones((n, n), order=order) for n in range(1, 40) for order in "CF"]
    arrays = [fake_device.Array(x) for x in square]
    gemm_grouped(arrays[:1], arrays[:1])
    kernels.launches.clear()
    monkeypatch.setattr("pyblasgpu.api.keyword.grouped.Call", None)  # no product is checked by itself
    gemm_grouped(arrays, arrays)
    names = [name for name, *_ in kernels.launches]
    assert names == ["gemm_grouped"] * len(names) and len(names) <= 2


def test_large_products_have_large_tiles(card, monkeypatch):
    kernels = Kernels()
    monkeypatch.setattr(launch, "kernel", kernels)
    for order, count in ((64, 400), (20, 400), (64, 4)):
        arrays = [fake_device.Array(np.ones((order, order)))] * count
        gemm_grouped(arrays, arrays)
    assert [grid[0] for _, grid, _ in kernels.launches] == [400, 400, 16]


def test_arrays_of_several_libraries_or_devices(card):
    one = fake_device.Array(np.ones((2, 2)))
    with pytest.raises(TypeError, match=r"gemm_grouped: a\[0\] is a CuPy array and a\[1\] a NumPy array"):
        gemm_grouped([one, np.ones((2, 2))], [one, np.ones((2, 2))])
    other = fake_device.Array(np.ones((2, 2)), device=1)
    with pytest.raises(ValueError, match="device"):
        gemm_grouped([one, other], [one, other])


# ------------------------------------------------------------------------------------------------ triangles


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_systems_of_unequal_sizes(letter, in_place, space):
    for _ in range(4):  # a library's arrays are unknown to the first call, and the third one is repeated
        made = grouped_cases.systems(DTYPES[letter])
        b = put(space, made.b)
        out = b if in_place else None
        results = trsm_grouped(put(space, made.a), b, out=out, **made.options, **space.options)
        for result, expected, right in zip(results, made.expected, made.b):
            np.testing.assert_array_equal(space.get(result), expected)
            assert np.shares_memory(space.get(result), right) == (in_place and right.size > 0)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_factors_of_unequal_sizes(letter, in_place, space):
    for _ in range(4):
        matrices, lower, factors = grouped_cases.definite(DTYPES[letter])
        a = put(space, matrices)
        results, info = potrf_grouped(a, lower=lower, out=a if in_place else None, **space.options)
        assert space.get(info).tolist() == [int(i == grouped_cases.FAILED) for i in range(len(a))]
        for i, (result, factor) in enumerate(zip(results, factors)):
            if i != grouped_cases.FAILED:
                np.testing.assert_array_equal(space.get(result), factor)


@pytest.mark.parametrize("routine", [trsm_grouped, lambda a, b, out: potrf_grouped(b, out=out)[0]])
def test_repeated_calls_in_place_and_not(routine, card):
    """They are on arrays of the same layouts."""
    device = fake_device.Array
    for kind in "iiaiawia":  # in place, apart, or wrong
        a, b, c = ([device(np.eye(n) * 4) for n in (2, 3, 2)] for _ in "abc")
        out = {"i": b, "a": c, "w": [b[2], b[1], b[0]]}[kind]
        if kind == "w":
            with pytest.raises(OverlapError, match="shares memory"):
                routine(a, b, out=out)
            continue
        for result in routine(a, b, out=out):
            np.testing.assert_array_equal(
                result.host, np.eye(len(result.host)) * (1 if routine is trsm_grouped else 2)
            )
        assert kind == "i" or b[0].host[0, 0] == 4


def test_large_triangles_and_few_layouts(card, monkeypatch):
    """Large ones are calls of their own; the others are two copies, and a solution for each size."""
    a = [fake_device.Array(np.eye(n) * 2) for n in (600, *range(1, 33), *range(1, 33))]
    b = [fake_device.Array(np.ones((x.shape[0], 2))) for x in a]
    trsm_grouped(a[1:], b[1:])
    kernels = Kernels()
    monkeypatch.setattr(launch, "kernel", kernels)
    for x in trsm_grouped(a[1:], b[1:]):
        np.testing.assert_array_equal(x.host, 0 * x.host + 0.5)
    names = [name for name, *_ in kernels.launches]
    assert names[0] == names[-1] == "ragged_copy" and names.count("ragged_copy") == 2 and len(names) <= 6
    for x in trsm_grouped(a, b):
        np.testing.assert_array_equal(x.host, 0.5)
    c, info = potrf_grouped([fake_device.Array(np.eye(n) * 4) for n in (600, 3)])
    assert [x.host[0, 0] for x in c] == [2, 2] and info.host.tolist() == [0, 0]


def test_stacks_are_computed_as_memory_has_room(card, monkeypatch):
    monkeypatch.setattr("pyblasgpu.ragged.stacks.MOST_BYTES", 3000)
    made = grouped_cases.systems(DTYPES["d"])
    results = trsm_grouped(*([*map(fake_device.Array, x)] for x in (made.a, made.b)), **made.options)
    for result, expected in zip(results, made.expected):
        np.testing.assert_array_equal(result.host, expected)


SQUARE = np.eye(2)
WRONG_TRIANGLES = [
    ({"a": [SQUARE, np.ones((2, 3))]}, ValueError, r"system 1: a has shape \(2, 3\)"),
    ({"b": [SQUARE, np.ones((3, 1))]}, ValueError, r"system 1: a has shape \(2, 2\); \(3, 3\) is needed"),
    ({"side": ["L", "X"]}, ValueError, "system 1: side='X'"),
    ({"lower": [True] * 3}, ValueError, "lower has 3 entries"),
    ({"alpha": [1, 1j]}, TypeError, "system 1: alpha=1j is complex"),
    ({"out": [SQUARE.copy(), np.ones((2, 1))]}, ValueError, r"system 1: out has shape \(2, 1\)"),
]


@pytest.mark.parametrize(("changes", "error", "message"), WRONG_TRIANGLES)
def test_wrong_systems_change_nothing(changes, error, message, space):
    lists = {"a": [SQUARE] * 2, "b": [SQUARE.copy(), SQUARE.copy()], **changes}
    out = changes.get("out", lists["b"])
    before = [x.copy() for x in out]
    placed = {name: put(space, x) if name in ("a", "b", "out") else x for name, x in lists.items()}
    placed.setdefault("out", placed["b"])
    with pytest.raises(error, match=f"trsm_grouped: {message}"):
        trsm_grouped(**placed, **space.options)
    for x, y in zip(out, before):
        np.testing.assert_array_equal(x, y)


def test_wrong_factors_change_nothing(space):
    memory = np.stack([4 * np.eye(2)] * 2)
    with pytest.raises(ValueError, match=r"potrf_grouped: matrix 1: a has shape \(2, 1\)"):
        potrf_grouped(put(space, [memory[0], memory[1, :, :1]]), out=put(space, [*memory]), **space.options)
    with pytest.raises(OverlapError, match=r"potrf_grouped: out\[1\] shares memory with out\[0\]"):
        potrf_grouped(put(space, [*memory]), out=put(space, [memory[0], memory[0]]), **space.options)
    with pytest.raises(OverlapError, match=r"potrf_grouped: out\[\d\] shares memory with a\[\d\]"):
        potrf_grouped(put(space, [*memory]), out=put(space, [memory[1], memory[0]]), **space.options)
    np.testing.assert_array_equal(memory, np.stack([4 * np.eye(2)] * 2))
    c, info = potrf_grouped([], **space.options)
    assert c == [] and len(info) == 0


# ---------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("captured", [False, True])
def test_tables_are_copied_before_they_change(fake_cards, monkeypatch, captured):
    """Page-locked buffers are used again once the device has read them; those of a graph never are."""
    driver, relaxed = fake_cards(eagerness=0.1), []
    monkeypatch.setattr(events, "is_captured", lambda stream: captured)

    def exchange(mode):
        relaxed.append(mode)
        return "before"

    monkeypatch.setattr(driver, "cuThreadExchangeStreamCaptureMode", exchange, raising=False)
    with current_context(0):
        stream = driver.add_stream(0)
        places = [memory.allocate(4000, 0, stream) for _ in range(8)]
        for value, place in enumerate(places):
            table = np.full(1000, value, np.int32)
            tables.send(table, place, stream)
            table[:] = -1
        for value, place in enumerate(places):
            got = np.empty(1000, np.int32)
            memory.to_host(got, place, stream)
            np.testing.assert_array_equal(got, value)
            memory.release(place, stream)
    assert relaxed[1::2] == ["before"] * (8 * captured) and len(relaxed) == 16 * captured
    assert driver.calls["cuMemHostAlloc"] == 8 if captured else driver.calls["cuMemHostAlloc"] <= 8
