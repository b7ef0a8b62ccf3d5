"""The Config of the fused TRSM: what files say of it, and how the tuner finds that."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise, product, repeat

import pytest
from covering import pairs
from fake_worker import Sensor

from pyblasgpu.database import (
    FAMILIES,
    FUSED_STEMS,
    RECURSION,
    T_LAYOUTS,
    TRSM_FUSED,
    TRSM_POINTS,
    Document,
    Entry,
    dumps,
    parse,
    read,
)
from pyblasgpu.dispatch import product_kinds, trsm_fused_candidates, tuned_files
from pyblasgpu.dispatch import trsm_fused as dispatch_trsm_fused
from pyblasgpu.dispatch.choose import reload
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.gemm.fused import tile_orders
from pyblasgpu.model.trsm_fused import cycles
from pyblasgpu.tuning import routine_search
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.compile_pool import source_of
from pyblasgpu.tuning.results import Record, winners, with_current_algorithm
from pyblasgpu.tuning.runner import Runner
from pyblasgpu.tuning.signals import Interrupts
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.tuned_file_writer import merge, save
from pyblasgpu.tuning.worker import DONE
from pyblasgpu.tuning.worker_bench import Failed, Timing
from pyblasgpu.types import DTYPES, Triangle

H200 = known("h200")
POINT, EXTENTS = "2048x2048", TRSM_POINTS["2048x2048"]


def chosen(letter, order, others, triangle=Triangle.LOWER_LEFT, layout="nn"):
    m, n = (order, others) if triangle.on_left else (others, order)
    return dispatch_trsm_fused.choose(DTYPES[letter], layout, (m, n, order), triangle, H200)


def likeliest(letter, count, extents=EXTENTS, layout="left_colmajor"):
    """Return the likeliest Configs of different tiles."""
    return dispatch_trsm_fused.likeliest(DTYPES[letter], layout, *extents, H200, count)[:count]


def tile(config, triangle=Triangle.LOWER_LEFT):
    return *tile_orders(config, triangle), config.BLK_K, config.threads


def file_config(config, point=POINT, layout="left_colmajor", **changes):
    """Put it into the user's file; with `changes` to its parameters."""
    parameters = FAMILIES[config.STEM].parameters_of(config) | changes
    user_file(H200.name).parent.mkdir(parents=True, exist_ok=True)
    key = FUSED_STEMS[config.STEM], config.dtype, layout, point
    save(Document(H200.name, {key: Entry(parameters, 9.5)}), user_file(H200.name))
    reload()


@pytest.fixture(scope="module")
def of_products(tmp_path_factory):
    """A folder for packaged files, with the entries of products alone."""
    packaged = read(tuned_files.PACKAGED / "sm_90.json")
    folder = tmp_path_factory.mktemp("packaged")
    products = {key: entry for key, entry in packaged.entries.items() if key[0] in FAMILIES}
    save(replace(packaged, entries=products), folder / "sm_90.json")
    return folder


@pytest.fixture(autouse=True)
def no_packaged_entries(home, of_products, monkeypatch):
    monkeypatch.setattr(tuned_files, "PACKAGED", of_products)
    reload()
    yield
    reload()


# ----------------------------------------------------------------------------------------- at run time


@pytest.mark.parametrize("letter", DTYPES)
def test_what_was_the_fastest_at_a_point_serves_there_and_nearby(letter):
    usual, *others = likeliest(letter, 4)
    assert chosen(letter, *EXTENTS).config == usual and chosen(letter, *EXTENTS).origin == "computed"
    for tuned in others:
        file_config(tuned)
        choice = chosen(letter, *EXTENTS)
        assert choice.config == tuned
        assert choice.origin.startswith("tuned here") and choice.origin.endswith(POINT)
        assert tile(chosen(letter, 2050, 2050).config) == tile(tuned)
        assert chosen(letter, 512, 32).origin == "computed" == chosen(letter, 8192, 8192).origin


@pytest.mark.parametrize("letter", "sdc")  # z has none
@pytest.mark.parametrize(
    "triangle, layout",
    [(Triangle.LOWER_LEFT, "nn"), (Triangle.LOWER_LEFT, "tn"), (Triangle.UPPER_RIGHT, "nt")],
)
def test_narrow_tiles_are_asked_on_either_side(letter, triangle, layout):
    """With few right-hand sides of a block, as wide as T's side wants."""
    candidates = trsm_fused_candidates.candidates(DTYPES[letter], layout, triangle, H200)
    (stem,) = product_kinds.stems(DTYPES[letter], H200)
    narrow = {
        (m, n, trsm_fused_candidates.NARROW_DEPTH, x * y if stem == "gemm_simt" else 32 * (m // x) * (n // y))
        for m, n, x, y in trsm_fused_candidates.NARROW[stem, letter]
    }
    assert narrow <= {tile(config, triangle) for config in candidates}


@pytest.mark.parametrize("letter, triangle, layout", pairs("sz", Triangle, T_LAYOUTS))
def test_an_entry_serves_triangles_of_its_side_and_layout(letter, triangle, layout):
    tuned = likeliest(letter, 3, layout=layout)[2]
    file_config(tuned, layout=layout)
    side, _, lies = layout.partition("_")
    for product_layout in ("nn", "nt", "tn", "tt"):
        choice = chosen(letter, *EXTENTS, triangle, product_layout)
        on_left = triangle.on_left
        if on_left == (side == "left") and (product_layout[not on_left] == "n") == (lies == "colmajor"):
            assert tile(choice.config, triangle) == tile(tuned, triangle) and choice.origin != "computed"
            assert choice.config == tuned or product_layout != tuned.layout
        else:
            assert choice.origin == "computed"


def test_the_estimate_decides_farther_away():
    """A tuned's estimate is corrected by a factor: what is far better there by arithmetic comes first."""
    tuned = likeliest("s", 8)[7]
    file_config(tuned)
    nearby = [(1400, 2048), (2900, 2048), (2048, 900), (2048, 5000)]
    same_tiles = [tile(chosen("s", *extents).config) == tile(tuned) for extents in (EXTENTS, *nearby)]
    assert same_tiles[0] and not all(same_tiles)


def test_a_config_that_cannot_run_is_passed_over():
    usual, tuned = likeliest("s", 2)
    file_config(tuned, BLK_K=7)
    with pytest.warns(DatabaseWarning, match=f"trsm_fused_simt s left_colmajor {POINT} is passed over"):
        assert chosen("s", *EXTENTS).config == usual


def test_the_likeliest_are_the_chosen_one_and_then_others_of_other_tiles():
    configs = likeliest("d", 5)
    assert len({tile(config) for config in configs}) == 5
    file_config(configs[3])
    again = likeliest("d", 5)
    assert again[0] == configs[3] and set(map(tile, configs[1:])) <= set(map(tile, again))
    estimates = [cycles(config, (*EXTENTS, EXTENTS[0]), Triangle.LOWER_LEFT, H200) for config in again[1:]]
    assert all(one <= other * trsm_fused_candidates.UNCERTAINTY for one, other in pairwise(estimates))


@pytest.mark.parametrize("layout", T_LAYOUTS)
@pytest.mark.parametrize("letter", DTYPES)
def test_the_likeliest_are_tried_for_more_blocks(letter, layout):
    """The first half of them, where that leaves registers: the same but for that, two each."""
    every = dispatch_trsm_fused.likeliest(DTYPES[letter], layout, *EXTENTS, H200, 5)
    few, variants = every[:2], every[5:]
    assert bool(variants) == (letter in product_kinds.TIGHT) and all(
        variant.min_blocks > 1 for variant in variants
    )
    for config in few:
        own = [variant for variant in variants if replace(variant, min_blocks=1) == config]
        assert len(own) <= 2 and own == product_kinds.higher_occupancy(
            config, T_LAYOUTS[layout].triangle, H200
        )
    for variant in variants:
        left = H200.registers_per_sm // (variant.threads * variant.min_blocks)
        assert replace(variant, min_blocks=1) in few and left >= product_kinds.LEAST
        assert variant.registers + product_kinds.TIGHT[letter] <= left


@pytest.mark.parametrize("letter", "sc")
def test_a_tuned_for_more_blocks_serves(letter):
    """At its place, by an override, and for T by rows, for as many."""
    likeliest = dispatch_trsm_fused.likeliest(DTYPES[letter], "left_colmajor", *EXTENTS, H200, 8)
    tuned = next(config for config in likeliest if config.min_blocks > 1)
    with override(tuned.STEM, tuned):
        assert chosen(letter, *EXTENTS).config == tuned
    assert chosen(letter, *EXTENTS).config.min_blocks == 1
    file_config(tuned)
    assert chosen(letter, *EXTENTS).config == tuned
    for layout in ("nt", "nn"):
        served = chosen(letter, *EXTENTS, layout=layout).config
        assert tile(served) == tile(tuned) and served.min_blocks == tuned.min_blocks


def test_what_has_too_few_registers_for_its_blocks_solves_for_one():
    """The Config of a product may be such a one."""
    (config,) = likeliest("d", 1)
    with override(config.STEM, replace(config, min_blocks=2)):
        assert chosen("d", *EXTENTS).config == config


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("triangle", Triangle)
def test_in_s_tiles_have_variants_with_deeper_k_tiles(triangle, layout):
    """Variants have the same tile and threads, and one diagonal k-tile, not two; other dtypes have none."""
    candidates = trsm_fused_candidates.candidates(DTYPES["s"], layout, triangle, H200)
    deep = [config for config in candidates if config.BLK_K == trsm_fused_candidates.DEEP]
    assert deep and all(candidates[config] > 1 for config in deep)
    shapes = {(*tile_orders(config, triangle), config.threads) for config in candidates if config.BLK_K == 32}
    assert {(*tile_orders(config, triangle), config.threads) for config in deep} <= shapes
    assert all(tile_orders(config, triangle)[0] % trsm_fused_candidates.DEEP == 0 for config in deep)
    others = [trsm_fused_candidates.candidates(DTYPES[letter], layout, triangle, H200) for letter in "dcz"]
    assert all(config.BLK_K < trsm_fused_candidates.DEEP for configs in others for config in configs)


@pytest.mark.parametrize("letter", DTYPES)
def test_tiles_of_all_layouts_are_asked(letter):
    by_columns, by_rows = (
        trsm_fused_candidates.candidates(DTYPES[letter], layout, Triangle.LOWER_LEFT, H200)
        for layout in ("nn", "tn")
    )
    assert {config.layout for config in by_columns} == {"nn"}
    assert {config.layout for config in by_rows} == {"tn"}
    tiles, others = set(map(tile, by_columns)), set(map(tile, by_rows))
    assert len(tiles & others) > 0.8 * len(tiles | others)


def test_few_right_hand_sides_in_s_have_deep_k_tiles():
    assert (
        chosen("s", 2048, 32).config.BLK_K
        == trsm_fused_candidates.DEEP
        > chosen("s", 4096, 4096).config.BLK_K
    )


def test_the_kernel_that_is_compiled_is_the_one_that_solves():
    for layout, (_, triangle) in T_LAYOUTS.items():
        (config,) = likeliest("d", 1, layout=layout)
        flags = dict(source_of(triangle, config).flags)
        assert flags["solved"] and flags["triangle"].side is triangle.side
        assert "solved" not in dict(source_of(config.STEM, config).flags)


# ------------------------------------------------------------------------------------------ the search


class Played:
    """Stands for a worker: the second Config that is asked for at a place is the fastest, some fail."""

    busy = False

    def __init__(self):
        self.jobs, self.failing, self.counts = [], set(), {}

    def send(self, job, patience=None):
        self.jobs.append(job)
        algorithm, (stem, config) = job.overrides
        assert algorithm == ("trsm_algorithm", TRSM_FUSED)
        assert (stem, job.routine) == (config.STEM, "trsm")
        ((extents, _),) = job.problems
        place = job.dtype, job.layout, extents
        count = self.counts[place] = self.counts.get(place, 0) + 1
        failed = config in self.failing
        self.answers = [DONE, Failed("error", "planted") if failed else Timing(0, 1e-3 * abs(count - 2.25))]
        self.busy = True

    def receive(self, timeout):
        answer = self.answers.pop()
        self.busy = bool(self.answers)
        return answer


@pytest.fixture
def runner():
    return Runner(Played(), SweepLog(H200, "quick"), ClockMonitor(Sensor()), Interrupts())


def search(runner, dtypes="sz", count=3, times=10_000):
    compiled = []
    answers = chain(repeat(False, times), repeat(True))
    missing = routine_search.search_fused_trsm(
        runner, dtypes, H200, count, compiled.extend, lambda: next(answers)
    )
    return missing, compiled


def job_count(dtypes, count) -> int:
    """Times in a whole search."""
    points = product(dtypes, T_LAYOUTS, TRSM_POINTS.values())
    return sum(
        len(dispatch_trsm_fused.likeliest(DTYPES[x], layout, *at, H200, count)) for x, layout, at in points
    )


def test_the_fastest_of_the_likeliest_is_filed_at_each_point(runner):
    timings = job_count("sz", 3)
    assert timings > 3 * 2 * len(T_LAYOUTS) * len(TRSM_POINTS)  # variants, too
    missing, compiled = search(runner)
    assert missing == 0 and len(runner.worker.jobs) == timings
    assert {job.overrides[1][1] for job in runner.worker.jobs} == {config for _, config in compiled}
    document = winners(runner.log.records, H200.name)
    assert len(document.entries) == 2 * len(T_LAYOUTS) * len(TRSM_POINTS) and not document.trsm_rates
    for (letter, stem), layout in product((("s", "gemm_simt"), ("z", "gemm_mma")), T_LAYOUTS):
        second = likeliest(letter, 3, layout=layout)[1]
        assert second.layout == T_LAYOUTS[layout].product
        entry = document.entries[FUSED_STEMS[stem], letter, layout, POINT]
        assert entry.parameters == FAMILIES[stem].parameters_of(second)
    # a run that resumes this one, with the winners in the user's file, times variants; a later one nothing
    merge(document)
    reload()
    missing, compiled = search(runner)
    assert missing == 0 and any(config.min_blocks > 1 for _, config in compiled)
    search(runner)
    count = len(runner.worker.jobs)
    assert search(runner) == (0, []) and len(runner.worker.jobs) == count


def test_what_fails_serves_nowhere_it_was_tried(runner):
    runner.worker.failing = {likeliest("s", 3)[1]}
    search(runner, "s")
    entries = winners(runner.log.records, H200.name).entries
    failed = FAMILIES["gemm_simt"].parameters_of(*runner.worker.failing)
    assert entries["trsm_fused_simt", "s", "left_colmajor", POINT].parameters != failed


def test_a_search_that_is_late_says_how_many_are_missing(runner):
    assert search(runner, times=7)[0] == job_count("sz", 3) - 7
    assert {record.size for record in runner.log.records} == {POINT}


def test_the_algorithm_is_as_fast_as_with_its_fastest_config(runner):
    """Where Configs of it were timed; the recursion's time must be there, too."""
    search(runner, "s")
    facts = H200.name, H200.arch, "trsm", "s", "any"
    best = max(
        each.tflops for each in runner.log.records if each.size == POINT and each.layout == "left_colmajor"
    )
    record = Record(*facts, POINT, EXTENTS, {RECURSION: 1}, "ok", 1.0, 0.5, caches="cold")
    document = winners([*runner.log.records, record], H200.name)
    assert document.trsm_rates == {("s", POINT): {TRSM_FUSED: best, RECURSION: 0.5}}


def test_records_of_former_versions_are_of_a_family_now(runner):
    """Families had parameters and a switch; records of the switch alone are of an algorithm."""
    (config,) = likeliest("s", 1)
    parameters = FAMILIES[config.STEM].parameters_of(config)
    facts = H200.name, H200.arch, "trsm", "s"
    old = {"size": POINT, "extents": EXTENTS, "outcome": "ok", "seconds": 1.0, "tflops": 1.0}
    expected = {
        ("any", "one_launch", 1): ("trsm", "any", {TRSM_FUSED: 1}),
        ("any", "one_launch", 0): ("trsm", "any", {RECURSION: 1}),
        ("any", "one_launch", 512): ("trsm", "any", {f"{TRSM_FUSED}_512": 1}),
        ("any", "small_triangles", 1): ("trsm", "any", {"trsm_small": 1}),
    }
    for (layout, switch, value), (stem, lies, name) in expected.items():
        record = with_current_algorithm(Record(*facts, layout, parameters={switch: value}, **old))
        assert (record.stem, record.layout, record.parameters) == (stem, lies, name)
    del parameters["through_l1"]  # one that Configs have got since
    for layout, lies in (("any", "left_colmajor"), ("right_by_rows", "right_rowmajor")):
        record = with_current_algorithm(
            Record(*facts, layout, parameters={"one_launch": 1, **parameters}, **old)
        )
        assert (record.stem, record.layout, record.parameters) == ("trsm_fused_simt", lies, parameters)
    gone = Record(H200.name, H200.arch, "trmm", "s", "any", parameters={"in_place": 1}, **old)
    assert with_current_algorithm(gone) is None


def test_packaged_entries_can_solve(monkeypatch):
    """Each as it stands, at its point, with a flag for each strip; they serve where their point was timed."""
    monkeypatch.undo()
    entries = read(tuned_files.PACKAGED / "sm_90.json").entries
    reload()
    for letter, (point, extents) in product(DTYPES, TRSM_POINTS.items()):
        timed = any((stem, letter, "left_colmajor", point) in entries for stem in FUSED_STEMS.values())
        origin = chosen(letter, *extents).origin
        assert not timed or origin in (f"packaged for {H200.name}, {point}", f"packaged for sm_90, {point}")


def test_a_file_keeps_them():
    (config,) = likeliest("z", 1)
    file_config(config)
    document = parse(user_file(H200.name).read_bytes())
    (entry,) = document.entries.values()
    assert entry == Entry(FAMILIES[config.STEM].parameters_of(config), 9.5)
    assert parse(dumps(document).encode()) == document and len(document) == 1


def test_configs_that_were_just_tuned_are_asked():
    """Without a new process, once the files are read again."""
    before = trsm_fused_candidates.candidates(DTYPES["s"], "nn", Triangle.LOWER_LEFT, H200)
    config = max(before, key=lambda config: before[config])  # of the quick space alone
    assert before[config] == trsm_fused_candidates.UNCERTAINTY
    entry = Entry(FAMILIES[config.STEM].parameters_of(config), 9.5)
    file = user_file(H200.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(Document(H200.name, {(config.STEM, "s", "nn", "medium"): entry}), file)
    reload()
    assert trsm_fused_candidates.candidates(DTYPES["s"], "nn", Triangle.LOWER_LEFT, H200)[config] == 1.0
