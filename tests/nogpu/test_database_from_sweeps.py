"""The scripts that compute the packaged values from sweeps and that gather sweeps into one file a device."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyblasgpu.database import FAMILIES, FUSED_TRSM, RECURSION, TRSM_FUSED, parse
from pyblasgpu.dispatch import overrides
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import filing, portfolio, sweep_file
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.results import Record, winners
from pyblasgpu.tuning.sweep_file import read_sweep
from tuning import database_from_sweeps as script
from tuning import gather_calls as calls_of
from tuning import gather_sweeps as gather
from tuning import join_readings, time_products
from tuning.under_load import under_load

H200 = known("h200")
KEY = ("trsm_fma", "s", "any", "few")
SCRIPTS = Path(__file__).parents[2] / "tuning"

pytestmark = pytest.mark.usefixtures("home")


def test_packaged_values_are_computed_from_sweeps(home, monkeypatch):
    monkeypatch.setitem(portfolio.BUDGETS, "leaf", 3.0)
    full = FAMILIES["trsm_fma"].parameters_of(candidates("trsm_fma", "s", "any", H200).left[0])
    times = {"NVIDIA H200": {2: 1.0, 3: 1.2, 4: 9.0}, "NVIDIA H100": {2: 9.0, 3: 1.2, 4: 1.0}}
    for device, stages in times.items():
        for stage, seconds in stages.items():
            line = Record(device, "sm_90", *KEY, (128, 32), {**full, "stages": stage}, "ok", seconds, 1.0)
            sweep_file.append(home / f"{device}.jsonl", line)
    sweeps = [str(home / f"{device}.jsonl") for device in times]
    written = script.main(sweeps, home, lambda candidates: set())
    stages_of = {path.name: parse(path.read_bytes()).entries[KEY].parameters["stages"] for path in written}
    assert stages_of == {"nvidia_h200.json": 2, "nvidia_h100.json": 4, "sm_90.json": 3}
    # of several sweeps of a device the last one decides, if it has timed what was the best before
    (home / "x").mkdir()
    later = str(home / "later.jsonl")
    for stage, seconds, best in ((4, 5.0, 2), (2, 6.0, 4)):
        line = Record("NVIDIA H200", "sm_90", *KEY, (128, 32), {**full, "stages": stage}, "ok", seconds, 1.0)
        sweep_file.append(Path(later), line)
        (again, _) = script.main([sweeps[0], later], home / "x", lambda candidates: set())
        assert parse(again.read_bytes()).entries[KEY].parameters["stages"] == best
    # or something that is faster
    faster = Record("NVIDIA H200", "sm_90", *KEY, (128, 32), {**full, "stages": 3}, "ok", 0.5, 1.0)
    sweep_file.append(home / "faster.jsonl", faster)
    (again, _) = script.main([sweeps[0], str(home / "faster.jsonl")], home / "x", lambda candidates: set())
    assert parse(again.read_bytes()).entries[KEY].parameters["stages"] == 3
    # what spills gives way to the next, also where it was the leaf that suited its routine best
    both = {"stop": 512, **full, "stages": 3}
    whole = Record("NVIDIA H200", "sm_90", "trsm", *KEY[1:], (2048, 32), both, "ok", 1.0, 1.0)
    sweep_file.append(home / "NVIDIA H200.jsonl", whole)
    script.main(sweeps, home, lambda candidates: set())
    assert parse((home / "sm_90.json").read_bytes()).entries[KEY].parameters["stages"] == 3
    # and then another leaf that was tried within it says nothing
    few = replace(whole, parameters={"stop": 64, **full, "stages": 2}, seconds=2.0)
    sweep_file.append(home / "NVIDIA H200.jsonl", few)
    script.main(
        sweeps, home, lambda candidates: {candidate for candidate in candidates if candidate[1].stages == 3}
    )
    again = parse((home / "sm_90.json").read_bytes())
    assert again.entries[KEY].parameters["stages"] == 2


def test_a_device_gets_what_differs_from_its_architecture(home, monkeypatch):
    """The values of the only device of an architecture are that one's."""
    monkeypatch.setitem(portfolio.BUDGETS, "leaf", 3.0)
    sweep = written(home / "a.jsonl", [timed(2, 1.0), timed(3, 2.0)])
    own, others = script.main([sweep], home, lambda candidates: set())[::-1]
    assert not len(parse(own.read_bytes())) and len(parse(others.read_bytes())) == 1
    other = written(
        home / "b.jsonl", [timed(2, 5.0, device="NVIDIA H100"), timed(3, 2.0, device="NVIDIA H100")]
    )
    files = {path.name: path for path in script.main([sweep, other], home, lambda candidates: set())}
    stages = {
        name: [entry.parameters["stages"] for entry in parse(path.read_bytes()).entries.values()]
        for name, path in files.items()
    }
    assert stages == {"sm_90.json": [3], "nvidia_h200.json": [2], "nvidia_h100.json": []}


def test_packaged_rates_of_algorithms_are_computed_from_sweeps(home):
    """The last sweep that has timed both decides at a point, or all but one that has failed."""

    def computed(*sweeps):
        paths = []
        for index, sweep in enumerate(sweeps):
            paths.append(home / f"{index}.jsonl")
            paths[-1].unlink(missing_ok=True)
            for name, seconds in sweep.items():
                times = ("ok", seconds, 1 / seconds) if seconds else ("error", 0.0, 0.0)
                sweep_file.append(paths[-1], Record(*place, (512, 32), {name: 1}, *times))
        files = script.main([str(path) for path in paths], home, lambda candidates: set())
        assert [path.name for path in files] == ["sm_90.json", "nvidia_h200.json"]
        others, own = (parse(path.read_bytes()).trsm_rates for path in files)
        assert not own
        rates = others.get(("d", "512x32"), {})
        return max(rates, key=rates.__getitem__, default=None)

    place = "NVIDIA H200", "sm_90", "trsm", "d", "any", "512x32"
    fused, recursion = TRSM_FUSED, RECURSION
    assert computed({fused: 1.0, recursion: 2.0}) == fused
    assert computed({fused: 2.0, recursion: 1.0}) == recursion
    assert computed({recursion: 2.0}) is None and computed({fused: 1.0}) is None
    before = {fused: 1.0, recursion: 2.0}
    assert computed(before, {fused: 4.0, recursion: 3.0}) == recursion
    assert computed(before, {fused: 4.0}) == fused == computed(before, {recursion: 0.5})
    assert computed(before, {fused: 0.0, recursion: 3.0}) == recursion


# ------------------------------------------------------------------------------------------ runs in one sweep


def timed(stages, seconds, run="", **changes):
    """A time of a leaf, in `run`, by its stages."""
    full = FAMILIES["trsm_fma"].parameters_of(candidates("trsm_fma", "s", "any", H200).left[0])
    facts = {"toolchain": run, "when": "2026-11-25T01:02:03+00:00", "state": {"sm_mhz": 1980}}
    times = {**full, "stages": stages}, "ok", seconds, 1 / seconds
    return replace(Record("NVIDIA H200", "sm_90", *KEY, (128, 32), *times, **facts), **changes)


def written(path, records):
    for record in records:
        sweep_file.append(path, record)
    return str(path)


def packaged(folder, *sweeps):
    """The texts of the files that are computed from `sweeps`."""
    folder.mkdir(exist_ok=True)
    return [path.read_text() for path in script.main([*map(str, sweeps)], folder, lambda candidates: set())]


def test_the_last_run_in_a_sweep_decides(home):
    """Its times are not compared with those of an earlier run, which was faster."""
    sweep = written(home / "a.jsonl", [timed(2, 0.1, "x"), timed(3, 1.0, "y"), timed(4, 2.0, "y")])
    kept = script.decisive([read_sweep(Path(sweep))])
    assert [(record.parameters["stages"], record.seconds) for record in kept] == [(3, 1.0), (4, 2.0)]


def test_a_gathered_sweep_gives_the_values_of_those_that_it_was_gathered_from(home):
    """Also where the last sweep does not decide; and gathered once more it is the same."""
    sweeps = [
        written(home / "a.jsonl", [timed(2, 1.0), timed(3, 1.1), timed(4, 9.0)]),
        written(home / "b.jsonl", [timed(2, 3.0), timed(3, 2.0)]),
        written(home / "c.jsonl", [timed(4, 2.5)]),
    ]
    (path,) = gather.main(sweeps, home)
    assert path.name == "nvidia_h200.jsonl.gz"
    contents = packaged(home / "x", path)
    assert contents == packaged(home / "y", *sweeps)
    assert parse(contents[0].encode()).entries[KEY].parameters["stages"] == 3
    before = path.read_bytes()
    gather.main([str(path)], home)
    assert path.read_bytes() == before


def test_a_gathered_sweep_holds_the_best_rate_of_every_candidate(home):
    vendor = timed(2, 0.5, outcome="vendor", parameters={})
    spills = [replace(timed(5, 1.0), outcome="spills", seconds=0.0, tflops=0.0)] * 2
    reference = timed(2, 0.4, outcome="reference")
    first = [timed(2, 1 / 3), timed(3, 1.0), timed(4, 9.0), timed(4, 8.0), vendor, reference]
    sweeps = [
        written(home / "a.jsonl", [*first, *spills]),
        written(home / "b.jsonl", [timed(2, 2 / 3), timed(3, 0.9), replace(vendor, tflops=9.0), *spills]),
    ]
    (path,) = gather.main(sweeps, home)
    kept = [(r.outcome, r.parameters.get("stages"), r.seconds) for r in read_sweep(path)]
    assert kept == [
        ("spills", 5, 0.0),
        ("vendor", None, 0.5),
        ("ok", 2, 0.333333),
        ("ok", 4, 8.0),  # of the earlier run
        ("ok", 2, 2 / 3),
        ("ok", 3, 0.9),
    ]
    assert next(r.tflops for r in read_sweep(path) if r.outcome == "vendor") == 9.0


def test_a_gathered_record_names_its_run_once(home):
    sweep = written(home / "7ac45f1_dtrsm.jsonl", [timed(2, 1.0, "numba-cuda 0.30.4")])
    for _ in range(2):
        (path,) = gather.main([sweep], home)
        (record,) = read_sweep(path)
        assert record.toolchain == "numba-cuda 0.30.4, run 7ac45f1_dtrsm"
        assert record.when == "2026-11-25" and record.state == {}
        sweep = str(path)


def test_records_of_a_candidate_have_one_spelling(home):
    """Older runs left out parameters that are off; whoever reads the lines themselves sees one Config."""
    full = FAMILIES["gemm_simt"].parameters_of(candidates("gemm_simt", "s", "nn", H200).left[0])
    short = {name: value for name, value in full.items() if name != "through_l1"}
    other = {**full, "UNROLL": full["UNROLL"] + 1}

    def product(size, parameters, seconds):
        timing = timed(2, seconds, stem="gemm_simt", layout="nn", size=size, extents=(256, 256, 256))
        return replace(timing, parameters=parameters)

    first = [product("tiny", short, 1.0), product("small", full, 1.0)]
    later = [product(size, other, 0.5) for size in ("tiny", "small")]
    assert first[0].candidate == first[1].candidate != later[0].candidate
    (path,) = gather.main([written(home / "a.jsonl", first), written(home / "b.jsonl", later)], home)
    assert [record.parameters for record in read_sweep(path)] == [full, full, other, other]


@pytest.mark.parametrize(("rate", "kept"), [(0.94, {0, 4}), (0.96, {0})])
def test_what_is_best_for_updates_is_kept_beside(monkeypatch, rate, kept):
    """Where none of the others comes near."""
    monkeypatch.setattr(portfolio, "BUDGETS", {"gemm": 1.0})
    monkeypatch.setattr(portfolio, "FOR_CALLS", 0)
    records = products(1.0, 2.0) + products(1 / rate, 1.0, size="low_rank", extents=(4096, 4096, 64))
    assert {dict(candidate[3:])["PAD_A"] for candidate in portfolio.chosen(records)} == kept


def products(*times, size="large", extents=(4096,) * 3):
    """Records of Configs of SGEMM, told apart by `PAD_A`, 0, 4 and so on, with their seconds."""
    full = FAMILIES["gemm_simt"].parameters_of(candidates("gemm_simt", "s", "nn", H200).left[0])
    facts = "NVIDIA H200", "sm_90", "gemm_simt", "s", "nn", size, extents
    return [
        Record(*facts, {**full, "PAD_A": 4 * number}, "ok", seconds, 1 / seconds)
        for number, seconds in enumerate(times)
    ]


def call(records, *rates):
    each = [["gemm_simt", "nn", record.parameters, rate] for record, rate in zip(records, rates, strict=True)]
    return {"arch": "sm_90", "routine": "gemm", "dtype": "s", "rates": each}


@pytest.mark.parametrize(
    ("for_calls", "for_tail", "rate", "kept"),
    [(0, 0, 0.8, {0}), (1, 0, 0.8, {0, 4}), (0, 1, 0.94, {0, 4}), (0, 1, 0.96, {0})],
)
def test_what_calls_miss_is_kept_beside(monkeypatch, for_calls, for_tail, rate, kept):
    """What gains most, and for the tail what gains where none that is kept comes near."""
    monkeypatch.setattr(portfolio, "BUDGETS", {"gemm": 1.0})
    monkeypatch.setattr(portfolio, "FOR_CALLS", for_calls)
    monkeypatch.setattr(portfolio, "FOR_TAIL", for_tail)
    monkeypatch.setattr(portfolio, "CONFIGS_OF_CALL", 2)
    records = products(1.0, 2.0)
    calls = [call(records, rate, 1.0), {**call(records, 0.1, 1.0), "dtype": "d"}]  # of d nothing was timed
    assert {dict(candidate[3:])["PAD_A"] for candidate in portfolio.chosen(records, calls)} == kept


def test_each_product_is_filed():
    """One that wins no class has that of a winner with several at which it is nearest; the last one, which
    was timed in 'middle' alone, has that.
    """
    records = [
        *products(1.0, 2.0),
        *products(1.0, 1.25, 2.0, size="middle", extents=(1024,) * 3),
        *products(1.0, 1.2, size="small", extents=(512,) * 3)[:1],
    ]
    document = winners(records, "NVIDIA H200")
    filing.file_all(document, records)
    entries = {size: entry for (*_, size), entry in document.entries.items()}
    pads = {size: entry.parameters["PAD_A"] for size, entry in entries.items()}
    assert pads == {"large": 4, "middle": 8, "small": 0}
    assert entries["large"].elsewhere == {"middle": 0.8}
    assert entries["small"].elsewhere == {"large": 1.0, "middle": 1.0}


def test_calls_are_gathered_from_results_of_the_benchmark(home):
    first, second = ({"PAD_A": pad} for pad in (0, 4))
    case = {"list": "awkward", "routine": "gemm", "dtype": "s", "flags": "NN", "extents": [9, 9, 9], "pad": 1}
    case["shift"] = 0

    def timed_with(ratio, *new):
        of_each = {"old": [["gemm_simt", "nn", first]], "new": [["gemm_simt", "nn", each] for each in new]}
        return {**case, "ratio": ratio, "products": of_each}

    def gathered_from(*results, out="y"):
        (home / "x.json").write_text(json.dumps({"arch": "sm_90", "results": results}))
        return calls_of.read_calls(calls_of.main(str(home / f"{out}.calls.gz"), [str(home / "x.json")]))

    (gathered,) = gathered_from(*(timed_with(ratio, second) for ratio in (0.7, 0.9, 0.8)), out="x")
    rates = [["gemm_simt", "nn", first, 1.0], ["gemm_simt", "nn", second, 0.8]]
    of_case = {name: case[name] for name in ("routine", "dtype", "flags", "extents", "pad")}
    assert gathered == {"arch": "sm_90", **of_case, "rates": rates}
    # nothing where both ran alike, or a side ran several Configs, or one failed
    assert not gathered_from(timed_with(0.9, first), timed_with(1.0, second), timed_with(0.5, first, second))
    assert not gathered_from({**case, "error": "new: out of memory"})
    assert not gathered_from(timed_with(0.5, {**second, "packed": True}))
    # what the file has already is one of the readings
    (gathered,) = gathered_from(timed_with(0.9, {**second, "packed": False}), out="x")
    assert gathered["rates"] == [rates[0], [*rates[1][:3], 0.85]], "of a Config with what is not tuned, too"
    assert len(gathered_from({**timed_with(0.9, second), "pad": 2}, out="x")) == 2


def test_calls_count_for_all_that_have_the_same_tile(monkeypatch):
    """Whichever thread copies which elements; the one that was timed in most classes is kept."""
    monkeypatch.setattr(portfolio, "BUDGETS", {"gemm": 1.0})
    monkeypatch.setattr(portfolio, "FOR_CALLS", 1)
    monkeypatch.setattr(portfolio, "FOR_TAIL", 0)
    slow, fast = products(1.0, 2.0)
    fast = replace(fast, parameters={**fast.parameters, "stages": fast.parameters["stages"] + 1, "PAD_A": 0})
    like = replace(fast, parameters={**fast.parameters, "PAD_A": 4}, size="small", extents=(512,) * 3)
    also = replace(like, parameters=slow.parameters, seconds=like.seconds / 4)
    chosen = portfolio.chosen(
        [slow, like, fast, replace(like, parameters=fast.parameters), also],
        [{**call([slow, like], 0.5, 1.0)}],
    )
    assert {(dict(each[3:])["stages"], dict(each[3:])["PAD_A"]) for each in chosen} == {
        (slow.parameters["stages"], 0),
        (fast.parameters["stages"], 0),
    }


@pytest.mark.parametrize(
    ("seconds", "changed", "ratio"),
    [(1.0, {}, 0.8), (1e-5, {}, 0.5), (1.0, {"pad": 1}, 0.5), (1.0, {"flags": "NT"}, 0.5)],
)
def test_times_of_long_products_stand_to_each_other_as_under_load(seconds, changed, ratio):
    records = products(seconds, 2 * seconds)
    of_call = {**call(records, 1.0, 0.8), "flags": "NN", "extents": [4096] * 3, **changed}
    first, second = under_load(records, [of_call])
    assert first.seconds / second.seconds == pytest.approx(ratio)
    assert first.seconds * second.seconds == pytest.approx(2 * seconds**2)
    assert [each.tflops * each.seconds for each in (first, second)] == pytest.approx([1, 1])


def test_a_device_gives_way_to_what_was_faster_on_another_and_not_timed_on_it(home):
    """Fused TRSMs have few Configs at each point."""
    full = FUSED_TRSM["trsm_fused_simt"].parameters_of(candidates("gemm_simt", "s", "nn", H200).left[0])
    facts = "trsm_fused_simt", "s", "left_colmajor", "512x32", (512, 32)

    def record(device, stages, seconds):
        return Record(device, "sm_90", *facts, {**full, "stages": stages}, "ok", seconds, 1 / seconds)

    def own(*more):
        records = [record("NVIDIA H200", 2, 1.0), record("NVIDIA H100", 3, 0.9), *more]
        files = script.main([written(home / "a.jsonl", records)], home, lambda candidates: set())
        (path,) = (path for path in files if path.name == "nvidia_h200.json")
        return [entry.parameters["stages"] for entry in parse(path.read_bytes()).entries.values()]

    assert own() == []
    assert own(record("NVIDIA H200", 3, 1.1)) == [2], "here the other is slower"


# ---------------------------------------------------------------------------------------- what is packaged


@pytest.mark.slow
def test_the_packaged_values_are_those_of_the_gathered_sweeps(home):
    """Byte for byte, where none of the Configs spills."""
    files = script.main([*map(str, sorted(SCRIPTS.glob("sweeps/*.gz")))], home, lambda candidates: set())
    assert {path.name for path in files} == {"nvidia_h100_80gb_hbm3.json", "nvidia_h200.json", "sm_90.json"}
    for path in files:
        assert path.read_bytes() == (script.FOLDER / path.name).read_bytes()


def test_products_between_the_classes_are_timed_and_read(tmp_path, monkeypatch):
    """By each Config once or twice, in slices where these are likely; a second run adds to the file."""
    monkeypatch.setattr(time_products, "LAYOUTS", ("nt",))
    monkeypatch.setattr(time_products, "SHAPES", ((300, 300, 20000),))
    monkeypatch.setattr(time_products, "TRAPEZOIDS", ((900, 128, 128),))
    monkeypatch.setattr(time_products, "SQUARES", ((512, 512, 512),))
    monkeypatch.setattr(time_products, "STACKS", ((64, 64, 64, 9),))
    requested = []

    def timer(rotation, best):
        requested.append(overrides.active())
        return 1e-4 if rotation == (300, 300, 20000) else 1e-5

    workload = SimpleNamespace(products=lambda run, dtype, layout, extents: extents)
    out = tmp_path / "nvidia_h200.products.gz"
    for letters in "ds":
        time_products.main(out, letters, 2, timer, workload, None, H200)
    products = time_products.read(out)
    assert {key[:3] for key in products} == {("gemm_mma", "d", "nt"), ("gemm_simt", "s", "nt")}
    of_parts = [point for _, letter, _, point in products if letter == "s" and point.endswith("/lower")]
    assert of_parts == ["512x512x512/lower", "64x64x64x9/lower", "900x128x128/lower"] and len(products) == 12
    assert all(1 <= len(rates) <= time_products.MOST for rates in products.values())
    rates = products["gemm_mma", "d", "nt", "300x300x20000"]
    assert set(rates.values()) == {36.0} and any("*" in name for name in rates)
    assert len(requested) == sum(map(len, products.values())) and all(map(bool, requested))
    draws = [*time_products.drawn("s", "nt", 20)]
    assert draws == [*time_products.drawn("s", "nt", 20)] and any(m % 8 for m, *_ in draws)


def test_readings_join_the_run_that_decides(tmp_path):
    """A new Config has the time of cuBLAS in the sweep, times the ratio of the reading."""
    place = "gemm_mma", "d", "nn", "middle"
    known_config, new = ({"BLK_M": blk} for blk in (64, 96))
    sweep = [
        Record("H200", "sm_90", *place, (8, 8, 8), {}, "vendor", 2.0, 5.0),
        Record("H200", "sm_90", *place, (8, 8, 8), known_config, "ok", 4.0, 2.5, toolchain="run 1"),
    ]
    path, file = tmp_path / "h200.jsonl.gz", tmp_path / "readings.json"
    path.write_bytes(gzip.compress("".join(json.dumps(asdict(record)) + "\n" for record in sweep).encode()))
    reading = dict(zip(("stem", "dtype", "layout", "size"), place, strict=True)) | {"extents": (8, 8, 8)}
    reading |= {"parameters": new, "seconds": 0.9, "vendor_seconds": 1.0}
    file.write_text(json.dumps([reading, reading | {"size": "elsewhere"}]))
    assert join_readings.main(str(path), str(file)) == 1
    *before, joined = read_sweep(path)
    assert before == sweep
    assert (joined.parameters, joined.toolchain, joined.outcome) == (new, "run 1", "ok")
    assert joined.seconds == pytest.approx(1.8) and joined.tflops == pytest.approx(10 / 1.8)
