"""Scripts that need a card, from options to files: arrays are NumPy's, and the processor computes.

It tells nothing of times. It finds calls that fit no signature, names that are gone, and files that are not
written. No card has to wait for that.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from types import SimpleNamespace

import fake_kernels
import host_cupy
import numpy as np
import pytest
from benchmark_runs import RUNS

from pyblasgpu.engine import cards as engine_cards
from pyblasgpu.engine import tile_size
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.testing.fake_cards import FakeDriver

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the vendor's results are not computed

#: Constants of `benchmarks.arrays`.
FLUSHES = {"BUSY": 1, "FLUSH": 64}


#: What scripts change in the package, as a process of their own may.
CONSTANTS = (
    (tile_size, "LINE"),
    (engine_cards, "KEPT"),
    (engine_cards, "KEPT_SHARE"),
)
SCRIPTS = re.compile(r"(benchmarks|tuning\.papers)\.")


@pytest.fixture
def scripts(monkeypatch):
    """Imports a script with the stand-ins, sets its constants: ``scripts("lu", BUSY=1)``."""
    before = set(sys.modules)
    for name in [name for name in before if SCRIPTS.match(name)]:
        parent, _, own = name.rpartition(".")
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(sys.modules[parent], own)
    host_cupy.install(monkeypatch)
    for module, name in CONSTANTS:
        monkeypatch.setattr(module, name, getattr(module, name))

    def load(name: str, **constants):
        module = import_module(name if "." in name else f"benchmarks.{name}")
        for each in [each for name, each in sys.modules.items() if SCRIPTS.match(name)]:
            host_cupy.replace_in(monkeypatch, each)
        for key, value in constants.items():
            monkeypatch.setattr(module, key, value)
        return module

    yield load
    for name in [name for name in sys.modules if SCRIPTS.match(name)]:
        parent, _, own = name.rpartition(".")
        del sys.modules[name]
        delattr(sys.modules[parent], own)


@pytest.fixture
def run(scripts, monkeypatch, tmp_path):
    """Runs a script with options; what its file holds. No row has a problem."""

    def run(name: str, options: str, **constants):
        module = scripts(name, **constants)
        for key, value in FLUSHES.items():
            monkeypatch.setattr(import_module("benchmarks.arrays"), key, value)
        run_study = import_module("benchmarks.study").run
        assert not run_study(module.STUDY, [*options.split(), "--out", str(tmp_path)])
        text = (tmp_path / f"{name}.json").read_text()
        assert '"problem"' not in text and "NaN" not in text and text.endswith("}\n")
        return json.loads(text)

    return run


@pytest.mark.parametrize("name, options, constants, lists", RUNS)
def test_a_script_from_options_to_its_file(run, name, options, constants, lists):
    document = run(name, options, **constants)
    assert all(document[each] for each in lists.split())


def test_the_rival_is_the_vendors_best_way(run):
    """TRMM in place and out of place, and complex products by three real ones."""
    (row,) = run("tensor_level3", "--sizes 24 --routines trmm")["cases"]
    ways = [row[f"vendor_{place}"]["seconds"] for place in ("in_place", "out_of_place")]
    assert row["vendor"]["seconds"] == min(ways)
    assert row["ratio"] == pytest.approx(min(ways) / row["mode"]["seconds"])
    for script, kind in (("gemm_int8", "zgemm"), ("gemm_tensor", "cgemm")):
        (row,) = run(script, f"--kinds {kind}", COMPLEX_ORDERS=(128,), PASSES=1)[kind]
        assert row["ratio"] == pytest.approx(min(row["cublas"], row["cublas_3m"]) / row["seconds"])
        assert row["cublas_3m_tflops"] == pytest.approx(8 * 128**3 / 1e12 / row["cublas_3m"])
    (row,) = run("gemm_int8", "--kinds dgemm", ORDERS=(32,), PASSES=1)["dgemm"]
    assert "cublas_3m" not in row and row["ratio"] == pytest.approx(row["cublas"] / row["seconds"])


# ------------------------------------------------------------------------------------- lists of launches


@pytest.fixture
def kernels(monkeypatch):
    """Launches are computed with NumPy; those that tests do not know compute nothing."""
    made = fake_kernels.install(monkeypatch)
    monkeypatch.setitem(stand_ins, 0, host_cupy.CARD)
    monkeypatch.setattr(
        fake_kernels.FakeKernel, "__getattr__", lambda kernel, name: lambda *_: None, raising=False
    )
    return made


def test_lists_of_launches_of_lapack(run, kernels):
    constants = {"RIGHT_HAND_SIDES": (1, 0), "BATCHES": ((8, 3),), "BUSY": 64, "ROUNDS": 1}
    rows = run("lapack", "--sizes 40 --dtypes sz --batches", **constants)["results"]
    names = "potrf potrs posv potri trtri lauum sytrf geqrf orgqr ormqr gels"
    assert {row["routine"] for row in rows} == set(names.split())
    assert all(
        row["error_over_bound"] <= 1
        for row in rows
        if row["routine"] == "potrf" and row["batch"] == 1 and row["letter"] == "s"
    )
    both = [row for row in rows if "cusolver_other_triangle_us" in row]
    assert {(row["routine"], row["batch"]) for row in both} == {("potrf", 1), ("posv", 1)}
    for row in both:
        best = min(row["cusolver_us"], row["cusolver_other_triangle_us"])
        assert row["ratio"] == pytest.approx(best / row["ours_us"], rel=0.02, abs=2e-3)


@pytest.mark.parametrize("options", ["", "--sweep"])
def test_lists_of_launches_of_level_2(run, kernels, options):
    constants = {"COPIED": 64, "MEMORY": 1 << 19, "MOST_MEMORY": 1 << 19, "OBLONG": ((64, 8),), "PASSES": 1}
    memory = np.zeros(1 << 20, np.uint8)
    owned = SimpleNamespace(address=memory.ctypes.data)
    constants |= {"OwnedWorkspace": lambda nbytes, device: owned}
    rows = run("level2", f"--sizes 24 --dtype sz {options}", **constants)["results"]
    assert len({(row["routine"], row["dtype"]) for row in rows}) == 2 * 6
    assert [len(row["candidates"]) > 3 for row in rows if row["routine"] == "symv" and options] == (
        [True, True] if options else []
    )


# ------------------------------------------------------------------------------------------ several cards


class Driver(FakeDriver):
    """The fake cards with a default stream each, and events that are half a millisecond apart."""

    LAST = {
        "cuEventRecord",
        "cuMemAllocFromPoolAsync",
        "cuMemFreeAsync",
        "cuStreamSynchronize",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpy2DAsync",
    }

    def __getattribute__(self, name):
        attribute = super().__getattribute__(name)
        if name not in Driver.LAST:
            return attribute
        return lambda *args: attribute(*args[:-1], int(args[-1]) or self.default_stream())

    def default_stream(self) -> int:
        made = self.__dict__.setdefault("default_streams", {})
        if self.current not in made:
            made[self.current] = self.add_stream(self.current)
        return made[self.current]

    def cuEventElapsedTime(self, start, end):
        return 0.5


@pytest.fixture
def cards(scripts, monkeypatch):
    """The script with fake cards, whose leaves the processor computes."""
    import fake_cards_install

    monkeypatch.delenv("PYBLASGPU_BACKEND")
    driver = fake_cards_install.install(monkeypatch, Driver(devices=2))
    runtime = sys.modules["cupy"].cuda.runtime
    runtime.hostRegister = driver.cuMemHostRegister
    runtime.getDeviceCount = lambda: 2
    yield driver
    fake_cards_install.forget()


def test_host_matrices_on_a_card(cards, run, scripts):
    tiles = "--tiles gemm:64,64,64 trsm:32,64 --constants WANTED --routines trsm"
    results = run("host_resident", f"--sizes 64 --letters d --no-pageable {tiles}", GIB=1 << 18)
    rows = results["rows"]
    assert [row.get("tiles") for row in rows if "tiles" in row] == ["32,64"]
    assert any("WANTED" in row for row in rows)
    assert all(hasattr(module, name) for module, name, *_ in scripts("host_resident").CONSTANTS)
    shares = dict.fromkeys(("least", "mean", "of_aim_least", "of_aim_mean"), 1.0)
    alone = {"GIB": 1 << 18, "one_by_one": lambda call, aim: {"calls": [aim], **shares}}
    (row,) = run("host_resident", "--sizes 64 --letters d --calls-only --routines gemm", **alone)["rows"]
    assert row["calls"] == [row["aim"]] and "streamed" not in row


def test_calls_one_after_the_other(cards, scripts):
    """The first call is no part of the mean; shares are those of the aim in the least and in the mean."""
    module, times = scripts("host_resident", CALLS=4), iter([0.9, 0.4, 0.2, 0.3])
    module.host_clock = lambda call: call()
    row = module.one_by_one(lambda: next(times), 0.1)
    assert row["calls"] == [0.9, 0.4, 0.2, 0.3] and row["least"] == 0.2
    assert row["of_aim_least"] == pytest.approx(0.5) and row["of_aim_mean"] == pytest.approx(1 / 3)
    (table,) = module.summary(
        [{"routine": "gemm"}, {**row, "routine": "syrk", "dtype": "d", "n": 8, "aim": 0.1}], None
    )
    assert table.row_count == 1


def test_host_matrices_on_several_cards(cards, run):
    options = "--sizes 100 --letters d --where host --cards 1 2 --vendor --kept 1 --routines trsm potrf getrf"
    results = run("several_cards", options)
    rows = results["rows"]
    assert {row["routine"] for row in rows} == {"trsm", "potrf", "getrf"}
    assert {row["cards"] for row in rows} == {1, 2} and all(
        row["difference"] < 1e-12 for row in rows if row["where"] == "host"
    )


def test_a_trace_of_the_engine(cards, run):
    options = "--sizes 100 --letters d --routines gemm potrf --devices 0 1 --pageable"
    rows = run("engine_trace", options)["rows"]
    assert [row["routine"] for row in rows] == ["gemm", "potrf"]
    assert {"0 compute", "0 up", "0 down"} <= rows[0]["gaps"].keys()


def test_copies_of_lines(cards, run):
    def locked(nbytes, kind):
        return cards.lock_pages(np.zeros(1 << 20, np.uint8))

    constants = {"page_locked": locked, "COPY": 1 << 16, "MOVED": 1 << 18, "ORDER": 8}
    rows = run("host_lines", "--kinds shared huge --widths 8 --pitches 32", **constants)["rows"]
    assert [row["memory"] for row in rows] == ["shared", "huge"]
    assert all(rows[0][way] > 0 for way in ("both", "up, kernel", "up, beside products"))


def test_small_host_matrices(run, monkeypatch):
    host_cupy.anywhere(monkeypatch, "gemm", "symm", "syrk", "trmm", "trsm")
    options = "--sizes 4 --letters s --routines gemm trsm syrk trmm symm"
    rows = run("host_small", options)["rows"]
    assert len(rows) == 5 and all(row["cuda"] > 0 for row in rows)


def test_the_host_takes_part_of_a_product(run, monkeypatch):
    host_cupy.anywhere(monkeypatch, "gemm")
    rows = run("host_share", "--letters dc --sizes 9 --columns 0 2")["results"]
    assert [row["columns"] for row in rows] == [0, 2] * 2 and all(row["difference"] < 1e-6 for row in rows)


def test_dask_beside_the_engine(run, scripts, monkeypatch):
    pytest.importorskip("distributed")
    script = scripts("dask_cards")
    signature = inspect.signature(script.measured)
    monkeypatch.setattr(script, "measured", lambda *args: signature.bind(*args) and [{"seconds": 1.0}])
    monkeypatch.setattr(script, "Pinned", lambda count, nbytes: None)
    options = "--n 24 --chunk 12 --cards 1 --chunks numpy --repeats 1"
    rows = run("dask_cards", options)["rows"]
    assert [row["by"] for row in rows] == ["dask, numpy"] * 3 + ["engine"] * 3
    assert all(row["error"] < 1e-10 for row in rows[:3])


# -------------------------------------------------------------------------------------------------- others


def test_host_seconds_of_a_call(run):
    names = run("overhead", "--only symm --dtypes float32", CALLS=2, LONG=2, BATCH=3)["microseconds"]
    assert "pyblasgpu.symm, new, cupy float32" in names and all("symm" in name for name in names)
    names = run("overhead", "", CALLS=2, LONG=2, BATCH=3)["microseconds"]
    assert "pyblasgpu plan, other arrays, cupy float32" in names
    assert {"linalg.inv, 3 of order 4, cupy float64", "blas.ger, new, cupy float32"} <= names.keys()
    assert {"pyblasgpu.blas.gemm float64", "scipy.linalg.blas.gemm float64"} <= names.keys()
    assert all(0 < each["least"] <= each["host"] for each in names.values())


def test_frameworks_that_are_not_installed(run, scripts, monkeypatch):
    """Each part has a row that says so."""
    script = scripts("frameworks")

    def version(name):
        raise script.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(script.metadata, "version", version)
    document = run("frameworks", "--device cpu")
    assert {row["skipped"] for part in script.PARTS for row in document[part]} >= {
        "torch is not installed",
        "jax is not installed",
    }


def test_programs_of_first_calls(scripts, monkeypatch):
    """They are texts, which other processes run."""
    script = scripts("first_call")
    monkeypatch.setattr(sys, "argv", ["", "0"])
    for name, program in script.CALLS.items():
        text = re.sub(r"\b\d{3,4}\b", "32", script.START + program + script.END)
        exec(compile(text, name, "exec"), {})


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")
def test_errors_of_arrays_of_a_card(scripts, run):
    level3 = scripts("error_bounds").level3
    constants = {"SIZES": dict.fromkeys("sz", (6,)), "level3": lambda dtype, n, _: level3(dtype, n, "cpu")}
    worst = run("error_bounds", "--letters sz", **constants)["worst"]
    assert len(worst) >= 19 + 7 + 5 and all(row["over"] <= 1 for row in worst)


def test_calls_that_are_profiled(scripts, monkeypatch):
    script, ran = scripts("counters"), []
    variants = ("NN", "LL", "LN", "LC", "LNN", "RUCU")
    problems = list(script.problems(script.ROUTINES, "dz", variants, (6,)))
    for kind in {type(problem) for problem in problems}:
        ours = kind.ours
        monkeypatch.setattr(kind, "ours", lambda self, x, _, ours=ours: ran.append(ours(self, x, "cpu")))
    sides = script.parse_sides("ours,cuBLAS,out-of-place,raster=2")
    script.run_profiled(problems, sides)
    products = [problem for problem in problems if problem.routine == "gemm"]
    assert len(ran) == 2 * (len(problems) + len(products))  # with and without the profiler; by two rasters


def test_calls_of_another_checkout(scripts, monkeypatch):
    """A case of each routine and its flags, small."""
    script = scripts("catalogue_loss")
    cases = {
        (case["routine"], case["flags"], case["shift"], "batch" in case): case
        for cases in script.LISTS.values()
        for case in cases()
    }
    calls = script.Calls()
    small = [
        {**case, "extents": [min(n, 12) for n in case["extents"]], **({"batch": 2} if key[3] else {})}
        for key, case in cases.items()
    ]
    assert all(calls.seconds(case) > 0 for case in small)
    monkeypatch.setitem(stand_ins, 0, host_cupy.CARD)
    needed = calls.kernels(small)
    assert needed["count"] == 0 and len(needed["products"]) == len(small)


def test_the_size_of_l1_is_where_loads_become_slower(scripts):
    """A chain goes through all lines, in no order."""
    script, at, seen = scripts("l1_size"), 0, []
    following = script.chain(40)
    for _ in range(40):
        seen.append(at // (script.LINE // 4))
        at = following[at]
    assert at == 0 and sorted(seen) == list(range(40)) != seen
    assert script.detected({16: 33.0, 64: 34.0, 192: 40.0, 256: 90.0, 512: 200.0}) == 192
    assert script.detected({16: 33.0, 64: 34.0}) is None


def test_rates_of_papers_on_cupys_arrays(scripts):
    scripts("tuning.papers.device_time", BUSY=64, REPEATS=1)
    figure9 = scripts("tuning.papers.kblas_figure9", BLK=8)
    for routine in figure9.ROUTINES:
        for triangular in (figure9.ours, figure9.theirs):
            assert figure9.rate(routine, "s", 20, triangular) >= 0
    plasma, kblas, li_lu = (scripts(f"tuning.papers.{name}") for name in ("plasma", "kblas", "li_lu"))
    for routine, rows in (("potrf", 20), ("getrf", 30), ("geqrf", 30)):
        assert (
            plasma.factor_rate(routine, "z", rows, 20, plasma.ROUTINES[routine].overrides("z", 64, 16)) >= 0
        )
    assert 0.5 < plasma.interchanged("d", 20) <= 1
    run = scripts("tuning.papers.experiment").Experiment(known("h100"), None, None)
    assert [row["figure"] for row in kblas.inverted(run, "d", [20])] == ["trsm", f"trsm {kblas.FEW}"]
    assert [row["columns"] for row in li_lu.rows(["s"], [20], [4, 8])] == [4, 8]
