"""Factors with lookahead: what they are, whatever the order of the two lanes, and on two streams."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from unittest.mock import patch
from weakref import finalize

import numpy as np
import pytest
import scipy.linalg.lapack as scipys
from fake_kernels import install, operand
from launch_orders import at_random, extremes, in_order
from matrices import uniform

from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch.algorithms import lookahead_width
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.gpu import events, lanes, workspace
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.routines import copies, launch_list
from pyblasgpu.routines.joined_lists import joined
from pyblasgpu.routines.lapack import (
    block_interchanges,
    geqrf,
    getrf,
    lq,
    orgqr,
    ormqr,
    potrf,
    potrf_panels,
    reflectors_in_turn,
    reverse_potrf,
)
from pyblasgpu.routines.launch_list import BESIDE, CALL
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES, Side, Trans, Uplo

BLOCK = 128  # columns
S, D = DTYPES["s"], DTYPES["d"]


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


def definite(letter: str, n: int) -> np.ndarray:
    a = uniform(letter, n, n)
    return (a @ a.conj().T / n + 2 * np.eye(n)).astype(a.dtype)


class Problem:
    """One factorization of `matrix`, whose launches can be run in other orders."""

    def __init__(self, routine, matrix: np.ndarray, order: str = "F"):
        self.matrix, dtype = matrix, next(x for x in DTYPES.values() if x.name == matrix.dtype.name)
        a, info = np.array(matrix, order=order), np.zeros((1, 1), matrix.dtype)
        column = np.zeros((min(a.shape), 1), a.dtype)  # pivots, or factors of reflectors
        self.arrays = {getrf: (column, info, a), geqrf: (column, a), potrf: (info, a)}[routine]
        flags = {"uplo": Uplo.LOWER} if routine is potrf else {}
        launch_list.cache.clear()
        self.launches = routine.launch_list(*(operand(x, dtype) for x in self.arrays), **flags)

    def run(self, edit=lambda entries: entries) -> tuple[np.ndarray, ...]:
        """What the launches leave, in the order in which ``edit(entries)`` puts them."""
        launches = copy(self.launches)
        launches.entries = edit(launches.entries)
        for each in self.arrays:
            each[...] = 0
        self.arrays[-1][...] = self.matrix
        launches.run([each.ctypes.data for each in self.arrays], 1.0, stream=7)
        return tuple(each.copy() for each in self.arrays)


class Product(Problem):
    """Q of 4 blocks of reflectors, or a product with it; all arrays are as before each run."""

    def __init__(self, make, *right: np.ndarray, letter: str = "d", by_rows: bool = False, **flags):
        qr, tau, _, _ = getattr(scipys, f"{letter}geqrf")(uniform(letter, 450, 400))
        self.before = (tau[:, None], qr.conj().T if by_rows else qr, *right)
        self.arrays = tuple(np.array(each, order="F") for each in self.before)
        launch_list.cache.clear()
        self.launches = make(*(operand(x, DTYPES[letter]) for x in self.arrays), **flags)

    def run(self, edit=lambda entries: entries) -> tuple[np.ndarray, ...]:
        launches = copy(self.launches)
        launches.entries = edit(launches.entries)
        for each, before in zip(self.arrays, self.before, strict=True):
            each[...] = before
        launches.run([each.ctypes.data for each in self.arrays], 1.0, stream=7)
        return tuple(each.copy() for each in self.arrays)


class Reverse(Product):
    """The reverse mode of Cholesky by four leaves, whose factors the other lane inverts."""

    def __init__(self, letter: str = "d", n: int = 120):
        factor = np.linalg.cholesky(definite(letter, n))
        self.before = factor, uniform(letter, n, n), np.zeros_like(factor)
        self.arrays = tuple(np.array(each, order="F") for each in self.before)
        launch_list.cache.clear()
        with patch.multiple(reverse_potrf, LEAST=32, LEAF=32, INVERSE=range(200)):
            self.launches = reverse_potrf.launch_list(
                *(operand(x, DTYPES[letter]) for x in self.arrays), uplo=Uplo.LOWER
            )


def same(actual, expected) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(actual, expected, strict=True))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "m, n, order, inner, first, least",
    [
        (300, 300, "F", 32, 32, 10**4),
        (257, 400, "C", BLOCK, BLOCK, 0),
        (600, 200, "F", 64, 64, 0),
        (400, 450, "F", 64, 64, 0),
        (129, 129, "C", 1, 1, 0),
    ],
)
def test_lu_factors(kernels, letter, m, n, order, inner, first, least):
    a = uniform(letter, m, n)
    expected, pivots, _ = getattr(scipys, f"{letter}getrf")(a)
    decided = {"getrf_inner_columns": inner, "getrf_first_columns": first, "getrf_permuted_min_order": least}
    with override("lookahead", BLOCK), deciding_by(**decided):
        problem = Problem(getrf, a, order)
        piv, info, got = problem.run()
    names = {entry.source.name for entry in problem.launches.entries}
    assert problem.launches.has_graphs
    assert ("permute_rows" in names) == (least == 0 and order == "F")
    assert info.view(np.int32)[0, 0] == 0
    if letter in "dz":
        np.testing.assert_array_equal(piv.view(np.int32)[:, 0], pivots)
        np.testing.assert_allclose(got, expected, atol=1e-9)


@pytest.mark.parametrize("letter, least", [("s", 0), ("d", 0)])
def test_lu_panels_become_wider_where_rows_are_fewer(kernels, letter, least):
    """Blocks of many rows have panels of 16 columns in double precision, later ones of 32."""
    a = uniform(letter, 8300, 260)
    expected, pivots, _ = getattr(scipys, f"{letter}getrf")(a)
    with override("lookahead", BLOCK), deciding_by(getrf_permuted_min_order=least):
        problem = Problem(getrf, a)
        piv, _, got = problem.run()
    widths = {
        entry.source.config.COLS for entry in problem.launches.entries if entry.source.name == "getrf_panel"
    }
    assert widths == ({32} if letter == "s" else {16, 32})
    if letter == "d":
        np.testing.assert_array_equal(piv.view(np.int32)[:, 0], pivots)
    np.testing.assert_allclose(got, expected, atol=5e-4 if letter == "s" else 1e-12)


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("m, n, order", [(900, 390, "F"), (300, 400, "C")])
def test_qr_factors(kernels, letter, m, n, order):
    a = uniform(letter, m, n)
    expected, factors, _, _ = getattr(scipys, f"{letter}geqrf")(a)
    with override("lookahead", BLOCK):
        problem = Problem(geqrf, a, order)
        tau, got = problem.run()
    assert {entry.lane for entry in problem.launches.entries} == {CALL, BESIDE}
    atol = 1e-5 if letter in "sc" else 1e-14
    np.testing.assert_allclose(got, expected, atol=atol * np.sqrt(m))
    np.testing.assert_allclose(tau[:, 0], factors, atol=atol)


@pytest.mark.parametrize(
    "letter, mode, shape, lanes_used",
    [
        ("s", "tensor", (1000, 900), {CALL, BESIDE}),
        ("c", "tensor", (900, 1000), {CALL, BESIDE}),
        ("s", None, (1000, 900), {CALL}),  # too few blocks by FMAs
        ("d", None, (1940, 1930), {CALL, BESIDE}),
        ("d", "tensor", (1000, 900), {CALL}),  # no product of residues
        ("s", "tensor", (1000, 800), {CALL}),  # too few blocks
    ],
)
def test_qr_factors_look_ahead_on_tensor_cores(kernels, letter, mode, shape, lanes_used):
    a = uniform(letter, *shape)
    with set_math_mode(mode):
        problem = Problem(geqrf, a)
        tau, got = problem.run()
    assert {entry.lane for entry in problem.launches.entries} == lanes_used
    assert problem.launches.has_graphs == (lanes_used == {CALL})
    expected, factors, _, _ = getattr(scipys, f"{letter}geqrf")(a)
    atol = 4e-3 if letter in "sc" else 1e-11
    np.testing.assert_allclose(got, expected, atol=atol)
    np.testing.assert_allclose(tau[:, 0], factors, atol=atol)


@pytest.mark.parametrize(
    "letter, count, is_ahead", [("d", 1, False), ("d", 2, True), ("s", 66, True), ("s", 67, False)]
)
def test_qr_factors_of_stacks_look_ahead(kernels, letter, count, is_ahead):
    a, dtype = np.zeros((count, 900, 900), DTYPES[letter].name).swapaxes(1, 2), DTYPES[letter]
    operands = [operand(each, dtype) for each in (np.zeros((count, 900, 1), a.dtype), a)]
    lanes = {entry.lane for entry in geqrf.launch_list(*operands).entries}
    assert lanes == ({CALL, BESIDE} if is_ahead else {CALL})


def test_qr_factors_look_ahead_where_there_are_such_tensor_cores(kernels, monkeypatch):
    """The mode changes no product of other devices."""
    monkeypatch.setattr(geqrf, "runs", lambda stem, device: False)
    with set_math_mode("tensor"):
        problem = Problem(geqrf, uniform("s", 1000, 900))
    assert {entry.lane for entry in problem.launches.entries} == {CALL}


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [300])
def test_cholesky_factors(kernels, letter, n):
    a = definite(letter, n)
    with override("lookahead", BLOCK):
        info, got = Problem(potrf, a).run()
    assert info.view(np.int32)[0, 0] == 0
    expected = np.linalg.cholesky(a.astype(complex if letter in "cz" else float))
    np.testing.assert_allclose(np.tril(got), expected, atol=1e-4 if letter in "sc" else 1e-12)
    np.testing.assert_array_equal(np.triu(got, 1), np.triu(a, 1))


def by_recursion(first: int = BLOCK) -> Problem:
    """Blocks whose recursion ends at a quarter of their columns."""
    with deciding_by(getrf_inner_columns=32, getrf_first_columns=first):
        return Problem(getrf, uniform("d", 420, 450))


def by_permutations() -> Problem:
    """Blocks whose rows are interchanged by whole columns, and on the left once."""
    with deciding_by(getrf_permuted_min_order=0):
        return in_two_parts()


def by_large_groups() -> Problem:
    """Blocks whose interchanges are made anew in large groups, as those of long columns."""
    with patch.multiple(block_interchanges, COLUMN_BYTES=0, LARGE_GROUPS=32):
        return by_permutations()


def in_two_parts() -> Problem:
    """Blocks whose second part is updated while the first one is factored."""
    return by_recursion(64)


def by_blocks(*arguments, **options) -> Product:
    """V and T of a block after the other, though there are few of them."""
    with patch.object(reflectors_in_turn, "SMALL", 0):
        return Product(*arguments, **options)


PROBLEMS = [
    by_recursion,
    in_two_parts,
    by_permutations,
    by_large_groups,
    lambda: Problem(getrf, uniform("d", 500, 500)),
    lambda: Problem(getrf, uniform("d", 390, 420)),
    lambda: Problem(getrf, uniform("d", 600, 300)),
    lambda: Problem(potrf, definite("d", 500)),
    lambda: Problem(geqrf, uniform("d", 400, 500)),
    lambda: Problem(geqrf, uniform("d", 900, 390)),
    Reverse,
    lambda: by_blocks(orgqr.launch_list),
    lambda: by_blocks(lq.rows_launch_list, letter="z", by_rows=True),
    lambda: by_blocks(ormqr.launch_list, uniform("d", 450, 20), side=Side.LEFT, trans=Trans.CONJ),
]


@pytest.mark.parametrize("make", PROBLEMS)
def test_any_order_of_the_lanes_gives_the_same_bits(kernels, make):
    with override("lookahead", BLOCK):
        problem = make()
        expected = problem.run()
        orders = {}
        for choose in (*extremes(), *map(at_random, range(4))):
            actual = problem.run(lambda entries, choose=choose: in_order(entries, choose))
            orders[tuple(name for name, *_ in kernels.launches)] = same(actual, expected)
            kernels.launches.clear()
    assert len(orders) >= 3 and all(orders.values())


@pytest.mark.parametrize("make", PROBLEMS)
def test_every_wait_is_needed(kernels, make):
    """Planted: without any one of them some order of the lanes computes something else."""
    with override("lookahead", BLOCK):
        problem = make()
        expected = problem.run()
        waits = [number for number, entry in enumerate(problem.launches.entries) if entry.after]
        assert len(waits) >= 3
        for number in waits:

            def without(entries, choose, number=number):
                entries = [*entries]
                entries[number] = entries[number]._replace(after=())
                return in_order(entries, choose)

            runs = (problem.run(lambda e, choose=c: without(e, choose)) for c in extremes())
            assert not all(same(actual, expected) for actual in runs), number


@pytest.mark.parametrize("tiles, share, blocks", [(1, 1, 2000), (1, 4, 500), (2, 4, 250), (100, 4, 132)])
def test_products_on_tensor_cores_give_multiprocessors_back(kernels, tiles, share, blocks):
    launches, config = launch_list.LaunchList(D, 0), GemmInt8()
    assert config.cluster == 2 and current(0).sm_count == 132
    assert launches.persistent_blocks(config, 1000, share) == 132
    with launches.yielding(tiles):
        assert launches.persistent_blocks(config, 1000, share) == blocks


class Streams:
    """Events and a second stream that are none, and what was asked of them."""

    def __init__(self, monkeypatch, kernels):
        self.log, self.kernels = [], kernels
        monkeypatch.setattr(lanes, "side_stream", lambda device, stream: SimpleNamespace(handle=stream + 1))
        monkeypatch.setattr(events, "record", self.record)

    def record(self, stream):
        at = len(self.kernels.launches)
        self.log.append(("record", stream, at))
        return SimpleNamespace(hold_back=lambda other: self.log.append(("wait", other, stream, at)))


class Beside:
    """A stream that is none."""

    def __init__(self, handle):
        self.handle = handle


def test_a_stream_lives_until_it_is_joined(kernels, monkeypatch):
    """Other threads may bring so many streams meanwhile that it is kept no longer."""
    ended = []

    def side_stream(device, stream):
        made = Beside(stream + 1)
        finalize(made, ended.append, len(kernels.launches))
        return made

    streams = Streams(monkeypatch, kernels)
    monkeypatch.setattr(lanes, "side_stream", side_stream)
    record = events.record

    def recorded(stream):
        assert not ended
        return record(stream)

    monkeypatch.setattr(events, "record", recorded)
    with override("lookahead", BLOCK):
        Problem(getrf, uniform("d", 500, 500)).run()
    assert len(ended) == 1 and streams.log[-1][0] == "wait"


def test_lanes_are_two_streams_that_fork_and_join(kernels, monkeypatch):
    streams = Streams(monkeypatch, kernels)
    with override("lookahead", BLOCK):
        problem = Problem(getrf, uniform("d", 500, 500))
        entries = problem.launches.entries
        problem.run()
    assert [stream for *_, stream in kernels.launches] == [7 + entry.lane for entry in entries]
    assert streams.log[:2] == [("record", 7, 0), ("wait", 8, 7, 0)]  # the fork
    assert streams.log[-2:] == [("record", 8, len(entries)), ("wait", 7, 8, len(entries))]
    waited = {(8 - other + 7, at) for kind, other, _, at in (x for x in streams.log if x[0] == "wait")}
    assert waited >= {(7 + entries[each].lane, each + 1) for entry in entries for each in entry.after}


def test_a_failing_launch_joins_the_streams(kernels, monkeypatch):
    streams = Streams(monkeypatch, kernels)
    monkeypatch.setattr("fake_kernels.FakeKernel.gemm_mma", lambda *_: 1 / 0)
    with override("lookahead", BLOCK), pytest.raises(ZeroDivisionError):
        Problem(getrf, uniform("d", 500, 500)).run()
    assert streams.log[-1][:3] == ("wait", 7, 8)


def test_a_join_that_fails_waits_before_others_have_the_workspace(kernels, monkeypatch):
    streams = Streams(monkeypatch, kernels)
    driver = SimpleNamespace(cuStreamSynchronize=lambda stream: streams.log.append(("done", stream)))
    monkeypatch.setattr(events, "load", lambda: driver)
    give = workspace.give
    monkeypatch.setattr(workspace, "give", lambda taken: streams.log.append(("given",)) or give(taken))
    with override("lookahead", BLOCK):
        problem = Problem(getrf, uniform("d", 500, 500))

        def record(stream):
            if stream == 8 and len(kernels.launches) == len(problem.launches.entries):
                raise MemoryError
            return streams.record(stream)

        monkeypatch.setattr(events, "record", record)
        with pytest.raises(MemoryError):
            problem.run()
    assert streams.log[-2:] == [("done", 8), ("given",)]


def test_scratch_and_flags_of_the_lanes_are_apart(kernels):
    with override("lookahead", BLOCK):
        launches = Problem(getrf, uniform("d", 500, 500)).launches
    places = {lane: set() for lane in (CALL, BESIDE)}
    for entry in launches.entries:
        places[entry.lane] |= {address for address in entry.addresses if address[0] > 2}
    moves = [each for each in places[BESIDE] if each[0] == launch_list.WORKSPACE_SLOT and each[1] >= 0]
    assert moves, "made by panels, read by both"
    assert not (places[CALL] & places[BESIDE]) - set(moves)


@pytest.mark.parametrize("letter", "sz")
def test_a_copy_before_is_over_for_both_lanes(kernels, letter):
    """In one list with the factorization, whose output it fills, in any order that keeps the lanes."""
    with override("lookahead", BLOCK):
        problem = Problem(getrf, uniform(letter, 500, 500))
    expected, source = problem.run(), np.array(problem.matrix, order="C")
    arrays = (*problem.arrays[:-1], source, problem.arrays[-1])
    operands = [operand(each, DTYPES[letter]) for each in arrays]
    problem.launches.has_graphs = False
    both = joined(copies.launch_list(1, *operands[-2:]), problem.launches, operands)
    assert not both.has_graphs and len(both.entries) == 1 + len(problem.launches.entries)
    for choose in (*extremes(), at_random(3)):
        ordered = copy(both)
        ordered.entries = in_order(both.entries, choose)
        for each in problem.arrays:
            each[...] = 0
        ordered.run([each.ctypes.data for each in arrays], 1.0, stream=7)
        assert same(problem.arrays, expected)


def test_launches_after_those_of_the_other_lane_have_no_pdl(kernels):
    with override("lookahead", BLOCK):
        launches = Problem(potrf, definite("d", 500)).launches
    assert any(entry.pdl for entry in launches.entries if entry.lane == BESIDE)
    assert not any(entry.pdl for entry in launches.entries if entry.after)


def test_where_it_begins():
    policy = reference()
    for routine in ("getrf", "potrf"):
        assert lookahead_width(routine, D, 512, policy) == 0 and lookahead_width(routine, D, 2048, policy) > 0
        assert lookahead_width(routine, D, 2048, policy, batch=2) == 0
        with override("lookahead", 0):
            assert lookahead_width(routine, D, 2048, policy) == 0
    assert lookahead_width("getrf", D, 16384, policy) > lookahead_width("getrf", D, 4096, policy)
    with set_math_mode("tensor"):
        assert lookahead_width("potrf", D, 2048, policy) == lookahead_width("potrf", S, 2048, policy) > 0
        most = int(policy.tensor_potrf_lookahead_max_order)
        assert lookahead_width("potrf", S, most - 1, policy) > 0 == lookahead_width("potrf", S, most, policy)
        for dtype, name in ((S, ""), (D, "_of_double"), (DTYPES["z"], "_of_double_complex")):
            before = 0
            for width, least in getattr(policy, "tensor_getrf_lookahead" + name).items():
                assert lookahead_width("getrf", dtype, int(least) - 1, policy) == before
                before = lookahead_width("getrf", dtype, int(least), policy)
                assert before == int(width)
    assert lookahead_width("potrf", S, 6144, policy) > lookahead_width("potrf", D, 6144, policy) == 0
    assert lookahead_width("potrf", D, 4096, policy) > lookahead_width("potrf", D, 2048, policy) > 0


@pytest.mark.parametrize("algorithm", ["panels", "recursion"])
def test_the_recursion_does_not_look_ahead(kernels, algorithm):
    with override("lookahead", BLOCK), override("potrf_algorithm", algorithm):
        lanes_used = {entry.lane for entry in Problem(potrf, definite("d", 500)).launches.entries}
    assert lanes_used == ({CALL, BESIDE} if algorithm == "panels" else {CALL})


@pytest.mark.parametrize("n, letter, rows", [(8448, "s", {64}), (8600, "s", {64, 128}), (8600, "d", {64})])
def test_panels_of_many_rows_have_wider_blocks(kernels, n, letter, rows):
    with override("lookahead", 0):
        info, a = (operand(np.empty((x, x), DTYPES[letter].name, "F"), DTYPES[letter]) for x in (1, n))
        entries = potrf.launch_list(info, a, uplo=Uplo.LOWER).entries
    panels = [entry.source for entry in entries if entry.source.name.startswith("potrf_panel")]
    assert {panel.config.ROWS for panel in panels} == rows


def test_blocks_of_more_rows_than_panels_have(kernels, monkeypatch):
    """They are factored by themselves, and the rows below solved."""
    a = definite("d", 600)
    monkeypatch.setattr(potrf_panels, "applies", lambda launches, rows, batch=1: rows <= 300)
    with override("lookahead", BLOCK):
        problem = Problem(potrf, a)
        expected = problem.run()
        np.testing.assert_allclose(np.tril(expected[1]), np.linalg.cholesky(a), atol=1e-12)
        for choose in extremes():
            assert same(problem.run(lambda entries, choose=choose: in_order(entries, choose)), expected)
