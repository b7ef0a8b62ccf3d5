"""Which way TRMM, TRSM, SYR2K go: as is asked, as files say of the nearest place; and how it is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat

import fake_kernels
import pytest
from fake_worker import Sensor

from pyblasgpu import database
from pyblasgpu.api.explain import explain
from pyblasgpu.database import (
    FAMILIES,
    METHODS,
    METHODS_AT,
    RECURSION,
    SMALL,
    SMALL_AT,
    TWO,
    Document,
    nearest_places,
    nearest_small,
    switch_at,
    ways_at,
)
from pyblasgpu.dispatch import trsm_fused as dispatch_trsm_fused
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.choose import reload, select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import known
from pyblasgpu.operands import Operand
from pyblasgpu.routines import syr2k, trmm, trmm_in_place, trsm, trsm_one_launch
from pyblasgpu.routines.launch_list import Tape
from pyblasgpu.routines.recursion import lower_left
from pyblasgpu.tuning import routine_search
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.results import FATAL, Record, winners
from pyblasgpu.tuning.runner import Runner
from pyblasgpu.tuning.signals import Interrupts
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.tuned_file_writer import save
from pyblasgpu.tuning.worker import DONE
from pyblasgpu.tuning.worker_bench import Failed, Timing
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

H200 = known("h200")
MODULES = {"trmm": trmm_in_place, "trsm": trsm_one_launch}
#: Order, right-hand sides and dtype where the constants in the routines' files take the recursion.
RECURSING = ("trmm", 4096, 4096, "c"), ("trmm", 4096, 32, "s"), ("trsm", 256, 256, "s")

both = pytest.mark.parametrize("routine", MODULES)


@pytest.fixture(autouse=True)
def on_an_h200(monkeypatch, filed):
    for module in MODULES.values():
        monkeypatch.setattr(module, "current", lambda device: H200)
    filed()


@pytest.fixture
def filed(home, monkeypatch):
    """``filed({path: way}, ...)``: these methods are in the user's file, and in the packaged one."""
    packaged = database.read(tuned_files.PACKAGED / "nvidia_h200.json")
    monkeypatch.setattr(tuned_files, "PACKAGED", home / "packaged")

    def put(own=None, others=None):
        files = Document(H200.name, methods=own or {}), replace(packaged, methods=others or {})
        for level, document in zip(tuned_files.levels(H200), files, strict=False):
            level.path.parent.mkdir(parents=True, exist_ok=True)
            save(document, level.path)
        reload()

    return put


def planned(routine, order, others, letter="s", side=Side.LEFT):
    dtype = DTYPES[letter]

    def dense(rows: int, cols: int) -> Operand:
        return Operand(1 << 30, rows, cols, 1, rows, dtype, batch_stride=rows * cols)

    t, b = dense(order, order), dense(*((order, others) if side is Side.LEFT else (others, order)))
    tape = Tape(dtype, 0)
    operands = tape.place(t, 0), tape.place(b, 1)
    if routine == "trmm":
        return trmm_in_place.plan(tape, *operands, side, Uplo.LOWER)
    return trsm_one_launch.most_rows(tape, *lower_left(*operands, side, Uplo.LOWER)) or None


# ----------------------------------------------------------------------------------------- at run time


@pytest.mark.parametrize(("routine", "n", "r", "letter"), RECURSING)
def test_files_decide_against_the_constants(routine, n, r, letter, filed):
    """By the nearest place that was timed, of the first file that has it; of its own dtype and routine."""
    (other,) = set(MODULES) - {routine}
    assert planned(routine, 2048, 512, letter) is not None and planned(routine, n, r, letter) is None
    filed(
        {(routine, letter, "2048x2048"): RECURSION, (other, letter, "2048x512"): METHODS[other]},
        {(routine, letter, f"{n}x{r}"): METHODS[routine], (routine, letter, "2048x2048"): METHODS[routine]},
    )
    assert planned(routine, n, r, letter) is not None and planned(routine, n, r - 9, letter) is not None
    assert planned(routine, 2048, 512, letter) is None and planned(routine, 2048, 512, "d") is not None


@both
@pytest.mark.parametrize("side", Side)
def test_right_hand_sides_are_rows_from_the_right(routine, side, filed):
    filed({(routine, "s", "2048x512"): RECURSION, (routine, "s", "2048x2048"): METHODS[routine]})
    assert planned(routine, 2048, 512, side=side) is None
    assert planned(routine, 2048, 2048, side=side) is not None


@both
def test_a_place_says_nothing_of_what_is_far_away(routine, filed):
    """So that a run that ended with the first few does not decide everywhere; nor of a triangle of a leaf."""
    filed({(routine, "s", "2048x2048"): RECURSION})
    assert planned(routine, 1024, 550) is None and planned(routine, 1024, 450) is not None
    filed({(routine, "s", "256x256"): METHODS[routine]})
    assert planned(routine, 65, 256) is not None and planned(routine, 64, 256) is None


def test_every_place_is_its_own_nearest_one_and_most_shapes_have_one():
    for place, extents in METHODS_AT.items():
        assert nearest_places(*extents)[0] == place
    sizes = [2**i for i in range(8, 15)]
    assert all(nearest_places(n, n) for n in sizes)
    assert all(nearest_places(n, r) for n in sizes for r in (16, 32, 64, 128, 256, 512) if n > 256)
    assert nearest_places(256, 512)[0] == "256x256", "the order counts for more"
    assert not nearest_places(4096, 8) and not nearest_places(100, 16), "what is not like any of them"


@both
def test_what_is_asked_for_goes_before_what_files_say(routine, filed):
    method, leaf = METHODS[routine], select(routine, DTYPES["s"], "", (64, 64), H200).config
    filed({(routine, "s", place): method for place in METHODS_AT})
    for name, value in ((method, False), (routine, 64), (leaf.STEM, leaf)):
        with override(name, value):
            assert planned(routine, 1024, 1024) is None
    filed({(routine, "s", place): RECURSION for place in METHODS_AT})
    assert planned(routine, 1024, 1024) is None
    with override(method, True):
        assert planned(routine, 1024, 1024) is not None
        with override(routine, 64):
            assert planned(routine, 48, 48) is not None


def test_no_file_leads_into_what_cannot_run(filed, monkeypatch):
    filed({(routine, "s", place): METHODS[routine] for routine in MODULES for place in METHODS_AT})
    assert all(planned(routine, 1024, 1024) for routine in MODULES)
    monkeypatch.setattr(trmm_in_place, "most_workspace", lambda b: 1 << 16)
    monkeypatch.setattr(dispatch_trsm_fused, "FLAGS", 8)
    assert not any(planned(routine, 1025, 1024) for routine in MODULES)  # of 1024 the Config is known


@both
def test_explain_tells_what_has_decided(routine, filed, monkeypatch):
    fake_kernels.install(monkeypatch)
    monkeypatch.setattr("pyblasgpu.api.explain.current", lambda ordinal: H200)
    undecided = explain(routine, "s", 1024, 1024)
    assert all(name != "method" for name, *_ in undecided)
    filed({}, {(routine, "s", "1024x1024"): METHODS[routine]})
    origin = f"packaged for {H200.name}, 1024x1024"
    assert explain(routine, "s", 1024, 1024) == [("method", METHODS[routine], origin), *undecided]
    filed({}, {(routine, "s", "1024x1024"): RECURSION})
    first, *others = explain(routine, "s", 1024, 1024)
    assert first == ("method", RECURSION, origin) and others[0][0] == "stop size"
    with override(METHODS[routine], False):
        assert explain(routine, "s", 1024, 1024) == [("method", RECURSION, "override"), *others]


# ---------------------------------------------------------------------------------- SYR2K at run time


@pytest.fixture
def products(monkeypatch):
    """``products(n, k, ...)``: as how many products SYR2K is recorded."""
    fake_kernels.install(monkeypatch)

    def count(n, k, letter="s", batch=1):
        def dense(rows: int, cols: int) -> Operand:
            return Operand(1 << 30, rows, cols, 1, rows, DTYPES[letter], False, batch, rows * cols)

        tape = syr2k.tape(1, dense(n, k), dense(n, k), 0, dense(n, n), uplo=Uplo.LOWER)
        return 1 if any(step.source.name == "symmetrize" for step in tape._steps) else 2

    return count


def test_files_say_whether_syr2k_is_one_product(products, filed):
    """Against the bound, as near as they reach, and of each dtype."""
    assert products(1024, 900) == 1 and products(1024, 100) == 2
    filed({("syr2k", "s", "1024x1024"): TWO, ("syr2k", "s", "1024x32"): "one_product"})
    assert products(1024, 900) == 2 and products(1024, 40) == 1
    assert products(1024, 900, "d") == 1 and products(1024, 100, "d") == 2
    assert products(200, 900) == 1, "beyond the reach of any place"


def test_no_file_makes_syr2k_take_more_scratch_than_it_may(products, filed):
    filed({("syr2k", "z", "2048x2048"): "one_product"})
    assert products(1400, 2048, "z") == 1 and products(2048, 2048, "z") == 2


def test_of_batches_of_syr2k_no_place_tells(products, filed):
    filed({("syr2k", "s", "256x256"): TWO})
    assert products(256, 256) == 2 and products(256, 256, batch=3) == 1


def test_an_override_of_syr2k_comes_first(products, filed):
    filed({("syr2k", "s", "1024x1024"): TWO})
    with override("one_product", True):
        assert products(1024, 1024) == 1
    with override("one_product", False):
        assert products(1024, 100, "d") == products(1024, 900, "d") == 2


@pytest.mark.parametrize("routine", ["syr2k", "her2k"])
def test_explain_says_how_many_products(routine, products, filed, monkeypatch):
    monkeypatch.setattr("pyblasgpu.api.explain.current", lambda ordinal: H200)
    assert all(name != "method" for name, *_ in explain(routine, "c", 1024, 1024))
    filed({}, {("syr2k", "c", "1024x1024"): TWO})
    first, *others = explain(routine, "c", 1024, 1024)
    assert first == ("method", TWO, f"packaged for {H200.name}, 1024x1024") and others


def test_places_at_which_syr2k_is_timed():
    """Those where its scratch may be as large as it must, in s."""
    orders = {METHODS_AT[place][0] for place in METHODS_AT if ways_at("syr2k", place)}
    assert orders == {256, 512, 1024, 2048}
    assert all(set(ways_at("syr2k", place)) in (set(), {"one_product", TWO}) for place in METHODS_AT)


# --------------------------------------------------------------------- batches and leaves at run time


def stacked(rows: int, cols: int, batch: int, letter: str) -> Operand:
    return Operand(1 << 30, rows, cols, 1, rows, DTYPES[letter], False, batch, rows * cols)


@pytest.fixture
def parted(monkeypatch):
    """``parted(n, rhs, batch, ...)``: as how many launches of `trsm_small` TRSM is recorded."""
    fake_kernels.install(monkeypatch)

    def count(n, rhs, batch, letter="s"):
        flags = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
        tape = trsm.tape(1, stacked(n, n, batch, letter), stacked(n, rhs, batch, letter), **flags)
        return sum(step.source.name == "trsm_small" for step in tape._steps)

    return count


def test_files_say_whether_batches_are_parted(parted, filed):
    """Against the bound, as near as they reach, and of each dtype; whole triangles tell of whole ones."""
    assert parted(64, 64, 1000) == 1 and parted(128, 128, 1000) == 2 and parted(128, 128, 10) == 0
    filed({("trsm", "s", "128x128x1000"): RECURSION, ("trsm", "s", "128x128x10"): SMALL})
    assert parted(128, 128, 1000) == 0 and parted(100, 150, 700) == 0 and parted(128, 128, 12) == 2
    assert parted(128, 128, 1000, "d") == 2 and parted(16, 16, 10_000) == 1
    filed({("trsm", "s", "256x256"): RECURSION})
    assert parted(128, 128, 1000) == 2


def test_files_say_whether_a_leaf_is_a_small_triangle(parted, filed):
    assert parted(32, 400, 1) == 1 and parted(64, 400, 1) == 0
    filed({("trsm", "s", "32x512x1"): RECURSION, ("trsm", "s", "64x512x1"): SMALL})
    assert parted(32, 400, 1) == 0 and parted(64, 400, 1) == 1
    assert parted(65, 400, 1) == 0, "it is no leaf, of which no batch tells"


def test_an_override_of_small_triangles_comes_first(parted, filed):
    filed({("trsm", "s", place): RECURSION for place in SMALL_AT})
    assert parted(64, 64, 1000) == 0
    with override(SMALL, True):
        assert parted(64, 64, 1000) == 1 and parted(512, 64, 10) == 8
        leaf = select("trsm", DTYPES["s"], "", (64, 64), H200).config
        for name, value in (("trsm", 64), (leaf.STEM, leaf)):
            with override(name, value):
                assert parted(64, 64, 1000) == 0
    with override(SMALL, False):
        assert parted(16, 16, 10_000, "d") == 0


@pytest.mark.parametrize("routine, letter", [("trsm", "s"), ("trsm", "z"), ("trmm", "d")])
def test_leaves_of_a_batch_go_by_all_of_its_columns(monkeypatch, filed, routine, letter):
    """By the class of one triangle with as many, or, where these are many, by that of such batches."""
    fake_kernels.install(monkeypatch)
    filed({("trsm", letter, place): RECURSION for place in SMALL_AT})
    packaged = database.read(tuned_files.PACKAGED / "nvidia_h200.json")
    stem = "trmm_leaf" if routine == "trmm" else "trsm_leaf"
    config = select(stem, DTYPES[letter], "", (64, 1), H200).config
    rows = {"few": 1, "many": 2, "batch64": 3, "batch128": 4}  # which `min_blocks` tells
    entries = {
        (stem, letter, "any", size): database.Entry(
            {**FAMILIES[stem].parameters_of(config), "min_blocks": rows[size]}, 1e5
        )
        for size in rows
    }
    save(replace(packaged, entries=entries, methods={}), tuned_files.PACKAGED / "nvidia_h200.json")
    reload()

    def chosen(n: int, rhs: int, count: int) -> int:
        steps = {"trsm": trsm, "trmm": trmm}[routine].tape(
            1, stacked(n, n, count, letter), stacked(n, rhs, count, letter),
            side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT,
        )._steps  # fmt: skip
        (found,) = {step.source.config.min_blocks for step in steps if step.source.name == stem}
        return found

    with override(METHODS[routine], False):
        assert chosen(64, 40, 1) == chosen(64, 2, 20) == rows["few"]
        assert chosen(64, 2000, 1) == chosen(64, 64, 33) == rows["many"]
        assert chosen(64, 64, 34) == chosen(64, 1, 2113) == rows["batch64"]
    if routine == "trsm":  # the leaves of TRMM have 64 rows
        assert chosen(128, 64, 67) == rows["batch128"]


def test_explain_says_how_batches_go(parted, filed, monkeypatch):
    monkeypatch.setattr("pyblasgpu.api.explain.current", lambda ordinal: H200)
    bound = explain("trsm", "s", 128, 128, batch=1000)
    assert bound[0][0] == "trsm_small"
    filed({}, {("trsm", "s", "128x128x1000"): SMALL})
    origin = f"packaged for {H200.name}, 128x128x1000"
    assert explain("trsm", "s", 128, 128, batch=1000) == [("method", SMALL, origin), *bound]
    filed({}, {("trsm", "s", "128x128x1000"): RECURSION})
    first, second, *_ = explain("trsm", "s", 128, 128, batch=1000)
    assert first == ("method", RECURSION, origin) and second[0] == "stop size"


def test_every_small_place_is_its_own_nearest_one_and_most_batches_have_one():
    for place, extents in SMALL_AT.items():
        assert nearest_small(*extents)[0] == place
        assert ways_at("trsm", place) == {SMALL: True, RECURSION: False}
        assert not ways_at("trmm", place) and not ways_at("syr2k", place)
    assert all(nearest_small(n, n, count) for n in (16, 32, 64, 128, 256) for count in (10, 100, 1000))
    assert nearest_small(64, 1, 200)[0] == "64x64x100", "a triangle of one column takes a warp's time"
    assert not nearest_small(2048, 2048, 3)


# --------------------------------------------------------------------------------------- from records


def record(routine, place, is_on, seconds=1.0, outcome="ok", letter="d"):
    extents, switch = {**METHODS_AT, **SMALL_AT}[place], switch_at(routine, place)
    facts = extents, {switch: int(is_on)}, outcome, seconds if outcome == "ok" else 0.0
    return Record(H200.name, "sm_90", routine, letter, "any", place, *facts)


def test_the_faster_way_wins_at_each_place():
    records = [
        record(routine, place, is_on, 2.0 if is_on == (place == slow) else 1.0)
        for routine, slow in (("trmm", "512x32"), ("trsm", "256x256"))
        for place in ("512x32", "256x256") for is_on in (True, False)
    ]  # fmt: skip
    small = [record("trsm", place, place == "64x64x100", 1.0) for place in ("64x64x100", "128x128x10")]
    small += [record("trsm", place, place != "64x64x100", 2.0) for place in ("64x64x100", "128x128x10")]
    assert winners([*records, *small], "x").methods == {
        ("trsm", "d", "64x64x100"): SMALL, ("trsm", "d", "128x128x10"): RECURSION,
        ("trmm", "d", "512x32"): RECURSION, ("trmm", "d", "256x256"): "in_place",
        ("trsm", "d", "512x32"): "one_launch", ("trsm", "d", "256x256"): RECURSION,
    }  # fmt: skip


@both
def test_one_way_alone_says_nothing(routine):
    assert not winners([record(routine, "512x32", is_on=True)], "x")
    places = ("512x32", True), ("256x256", False)
    assert not winners([record(routine, place, is_on) for place, is_on in places], "x")


@both
def test_one_way_alone_says_nothing_beside_a_device_that_tried_both(routine):
    """For their architecture that device decides."""
    pair = [record(routine, "512x32", is_on, 2.0 if is_on else 1.0) for is_on in (True, False)]
    other = replace(record(routine, "512x32", True, 0.5), device="NVIDIA H100")
    assert winners([*pair, other], "sm_90").methods == {(routine, "d", "512x32"): RECURSION}


@both
@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("outcome", [*sorted(FATAL), "absent"])
def test_a_way_that_fails_is_out_at_its_place_alone(routine, is_on, outcome):
    """Where it was the faster one, and where it is still; the other way then serves."""
    records = [
        record(routine, place, way, 1.0 if way == is_on else 2.0)
        for place in ("512x32", "256x256") for way in (True, False)
    ]  # fmt: skip
    if outcome not in FATAL:  # it has no time then
        del records[0 if is_on else 1]
    found = winners([*records, record(routine, "512x32", is_on, outcome=outcome)], "x").methods
    method, recursion = METHODS[routine], RECURSION
    failed, other = (method, recursion) if is_on else (recursion, method)
    assert found == {(routine, "d", "512x32"): other, (routine, "d", "256x256"): failed}


def test_the_recursion_of_trsm_may_end_in_launches(filed):
    """As a file says of the nearest place; of no larger triangle than there is."""
    filed({("trsm", "s", "4096x4096"): "launches_of_2048", ("trsm", "s", "1024x1024"): "one_launch"})
    assert planned("trsm", 4096, 4096) == planned("trsm", 5000, 3000) == 2048
    assert planned("trsm", 1024, 900) == 1024
    filed({("trsm", "s", "2048x2048"): "launches_of_2048"})
    assert planned("trsm", 2049, 2048) == 2048 and planned("trsm", 1500, 1500) == 1500


def test_places_at_which_it_is_timed_where_it_ends_so():
    """Not with few right-hand sides, nor where nothing is left of the recursion."""
    everywhere = {METHODS["trsm"], RECURSION}
    ends = {place: set(ways_at("trsm", place)) - everywhere for place in METHODS_AT}
    assert ends["1024x1024"] == ends["1024x512"] == {"launches_of_512"}
    assert len(ends["8192x8192"]) == len(ends["3072x3072"]) == 3
    assert not any(ends[place] for place in ("512x512", "256x256", "8192x32"))
    assert all(everywhere <= set(ways_at("trsm", place)) for place in METHODS_AT)
    assert all(set(ways_at("trmm", place)) == {METHODS["trmm"], RECURSION} for place in METHODS_AT)


@both
def test_records_of_unknown_places_or_switches_say_nothing(routine):
    pair = [record(routine, "512x32", is_on) for is_on in (True, False)]
    for changes in (
        {"size": "few"},
        {"size": "7x7"},
        {"stem": "gemm"},
        {"parameters": {"fast": 1}},
        {"parameters": {METHODS[routine]: 7}},
        {"parameters": {SMALL: 1}},
        {"size": "64x64x100"},
    ):
        assert not winners([replace(each, **changes) for each in pair], "x")


# ------------------------------------------------------------------------------------------ the search


class Played:
    """Stands for a worker: all ways take equally long; what is in `broken` fails."""

    busy = False

    def __init__(self):
        self.jobs, self.broken = [], {}

    def send(self, job, patience=None):
        self.jobs.append(job)
        ((name, is_on),), ((extents, _),) = job.overrides, job.problems
        failure = self.broken.get((name, is_on, extents))
        self.answers, self.busy = [DONE, failure or Timing(0, 1e-3)], True

    def receive(self, timeout):
        answer = self.answers.pop()
        self.busy = bool(self.answers)
        return answer


@pytest.fixture
def runner(home):
    return Runner(Played(), SweepLog(H200, "quick"), ClockMonitor(Sensor()), Interrupts())


PAIRS = [("trmm", "s"), ("trsm", "s"), ("trsm", "z")]
PLACES = [*METHODS_AT, *SMALL_AT]


def after(count):
    """A function that says `count` times that it is not late."""
    said = chain(repeat(False, count), repeat(True))
    return lambda: next(said)


def test_a_search_that_is_cut_off_has_compared_all_routines_at_the_first_places(runner):
    first, second, *others = ([way for pair in PAIRS for way in ways_at(pair[0], at)] for at in PLACES)
    assert routine_search.search_methods(runner, PAIRS, after(len(first + second))) == sum(map(len, others))
    found = winners(runner.log.records, H200.name).methods
    assert found.keys() == {(*pair, place) for pair in PAIRS for place in list(METHODS_AT)[:2]}
    assert all(job.reload for job in runner.worker.jobs)
    # and goes on with the others
    assert routine_search.search_methods(runner, PAIRS, after(10_000)) == 0
    assert (
        len({(job.routine, job.dtype, job.overrides, job.problems) for job in runner.worker.jobs})
        == len(runner.worker.jobs)
        == sum(map(len, (first, second, *others)))
    )
    count = len(PAIRS) * len(METHODS_AT) + 2 * len(SMALL_AT)
    assert len(winners(runner.log.records, H200.name).methods) == count


@both
def test_what_has_failed_is_not_tried_again(runner, routine):
    method, place = METHODS[routine], "1024x32"
    runner.worker.broken[method, True, METHODS_AT[place]] = Failed("error", "planted")
    assert routine_search.search_methods(runner, [(routine, "c")], after(10_000)) == 0
    found = winners(runner.log.records, H200.name).methods
    count = len(METHODS_AT) + (routine == "trsm") * len(SMALL_AT)
    assert found[routine, "c", place] == RECURSION and len(found) == count
    count = len(runner.worker.jobs)
    assert (
        routine_search.search_methods(runner, [(routine, "c")], after(10_000)) == 0
        and len(runner.worker.jobs) == count
    )
