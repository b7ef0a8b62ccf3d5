"""Scripts that need a card, from options to files: arrays are NumPy's, and the processor computes.

It tells nothing of times. It finds calls that fit no signature, names that are gone, and files that are not
written, before a card is there to wait for them.
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

from pyblasgpu.engine import cards as engine_cards
from pyblasgpu.engine import tile_size
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.testing.fake_cards import FakeDriver

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the vendor's results are not computed

FLUSHES = {"lu": {"BUSY": 1, "FLUSH": 64}, "lapack": {"BUSY": 64, "ROUNDS": 1}}
LU = {
    **FLUSHES["lu"],
    "SIZES": (16,),
    "PANEL_ROWS": (64,),
    "BATCH_ORDERS": (4,),
    "MOST_BATCH": 9,
    "CONFIG_ORDERS": (8,),
}
TENSOR = {
    "ORDERS": (32,),
    "COMPLEX_ORDERS": (128,),
    "RANKS": ((32, 32, 16),),
    "PART_ORDERS": (32,),
    "ERROR_ORDERS": (32,),
    "PASSES": 1,
}
INT8 = {
    "ORDERS": (32,),
    "COMPLEX_ORDERS": (32,),
    "SHAPES": ((32, 32, 16),),
    "PART_ORDERS": (32,),
    "COMPLEX_PART_ORDERS": (32,),
    "CONFIG_ORDERS": (32,),
    "ERROR_ORDERS": (32,),
    "MODE_ORDERS": (24, 32),
    "PASSES": 1,
}
LEVEL1 = {"DELAY": 1024, "MOST_SETS": 1, "ROUNDS": 2}
#: Script, its options, constants that make it short, and its files.
RUNS = (
    ("gemm_tensor", "--kinds sgemm,cgemm,errors,ranks,parts", TENSOR, "gemm_tensor"),
    ("gemm_int8", "--seconds 99", INT8, "gemm_int8"),
    ("tensor_level3", "--sizes 24", {}, "tensor_level3"),
    (
        "tensor_level3",
        "--sizes 24 --routines ctrmm ctrsm cgetrf csyrk csymm --columns 4",
        {},
        "tensor_level3",
    ),
    ("lu", "--kinds squares,solves,batches,configs --letters sz", LU, "lu_squares lu_solves lu_configs"),
    ("lookahead", "--sizes 24 --letters sz --shared 1", {"FLUSH": 64}, "lookahead"),
    ("level1", "--sizes 64", LEVEL1, "level1"),
    ("level1", "--sizes 64 --dtypes s --configs", LEVEL1, "level1-configs"),
    ("programs", "--quick --backend cpu", {"POINTS": (40,), "SIZES": (16,)}, "programs"),
    ("static_flags", "", {"SIZES": (8, 9), "ORDERS": (8,)}, "static_flags"),
)


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
    """Runs a script with options; what its files hold, by their names. No row tells of an error."""

    def run(name: str, options: str, **constants):
        module = scripts(name, **constants)
        arguments = [*options.split(), "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        assert not (module.main(arguments) if module.main.__code__.co_argcount else module.main())
        texts = {path.stem: path.read_text() for path in tmp_path.glob("*.json")}
        assert not [text for text in texts.values() if '"problem"' in text or '"error": "' in text]
        return {name: json.loads(text) for name, text in texts.items()}

    return run


@pytest.mark.parametrize("name, options, constants, files", RUNS)
def test_a_script_from_options_to_files(run, name, options, constants, files):
    assert {*files.split()} <= run(name, options, **constants).keys()


def test_configs_of_products_on_tensor_cores(scripts):
    """They break no rule, and the choice is what it was afterwards."""
    script = scripts("gemm_tensor", PASSES=1)
    before = script.dispatch.block_of
    operands = script.Operands(16, 16, 16)
    for fields in {str(each): each for all_fields in script.CONFIGS.values() for each in all_fields}.values():
        (row,) = script.in_turn(operands, [fields], script.configured)
        assert row["seconds"] > 0
    assert script.dispatch.block_of is before


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
    constants = {"RIGHT_HAND_SIDES": (1, 0), "BATCHES": ((8, 3),), **FLUSHES["lapack"]}
    options = "--sizes 40 --dtypes sz --batches --panels 16 --algorithms recursion --leaves 64,64,8"
    rows = run("lapack", options, **constants)["lapack"]["results"]
    assert {row["routine"] for row in rows} == {"potrf", "potrs", "posv", "potri", "trtri", "lauum"}
    assert all(
        row["error_over_bound"] <= 1
        for row in rows
        if row["routine"] == "potrf" and row["batch"] == 1 and row["letter"] == "s"
    )


@pytest.mark.parametrize("options", ["", "--sweep"])
def test_lists_of_launches_of_level_2(run, kernels, options):
    constants = {"COPIED": 64, "MEMORY": 1 << 19, "MOST_MEMORY": 1 << 19, "OBLONG": ((64, 8),), "PASSES": 1}
    memory = np.zeros(1 << 20, np.uint8)
    owned = SimpleNamespace(address=memory.ctypes.data)
    constants |= {"OwnedWorkspace": lambda nbytes, device: owned}
    results = run("level2", f"--sizes 24 --dtype sz {options}", **constants)
    rows = results["level2-results"]["results"]
    assert len({(row["routine"], row["dtype"]) for row in rows}) == 2 * 6


def test_launches_of_an_lu_by_kernel(run, kernels):
    constants = {**FLUSHES["lu"], "KERNEL_ORDERS": (8, 8, 8, 40)}
    rows = run("lu", "--kinds kernels --letters sd", **constants)["lu_kernels"]["kernels"]
    assert len(rows) == 8 and all(len(row) > 2 for row in rows)


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
    rows = results["host_resident"]["rows"]
    assert [row.get("tiles") for row in rows if "tiles" in row] == ["32,64"]
    assert any("WANTED" in row for row in rows)
    assert all(hasattr(module, name) for module, name, *_ in scripts("host_resident").CONSTANTS)


def test_host_matrices_on_several_cards(cards, run):
    options = "--sizes 100 --letters d --where host --cards 1 2 --vendor --kept 1 --routines trsm potrf getrf"
    results = run("several_cards", options)
    rows = results["several_cards"]["rows"]
    assert {row["routine"] for row in rows} == {"trsm", "potrf", "getrf"}
    assert {row["cards"] for row in rows} == {1, 2} and all(
        row["difference"] < 1e-12 for row in rows if row["where"] == "host"
    )


def test_a_trace_of_the_engine(cards, run):
    options = "--sizes 100 --letters d --routines gemm potrf --devices 0 1 --pageable"
    rows = run("engine_trace", options)["engine_trace"]["rows"]
    assert [row["routine"] for row in rows] == ["gemm", "potrf"]
    assert {"0 compute", "0 up", "0 down"} <= rows[0]["gaps"].keys()


def test_copies_of_lines(cards, run, scripts, monkeypatch):
    def locked(nbytes, kind):
        return cards.lock_pages(np.zeros(1 << 20, np.uint8))

    monkeypatch.setattr(scripts("host_lines"), "page_locked", locked)
    constants = {"COPY": 1 << 16, "MOVED": 1 << 18, "ORDER": 8}
    rows = run("host_lines", "--kinds shared huge --widths 8 --pitches 32", **constants)["host_lines"]["rows"]
    assert [row["memory"] for row in rows] == ["shared", "huge"]
    assert all(rows[0][way] > 0 for way in ("both", "up, kernel", "up, beside products"))


def test_threads_that_call_at_once(scripts, monkeypatch):
    host_cupy.anywhere(monkeypatch, "gemm", "syrk", "trmm", "trsm")
    monkeypatch.setattr(sys, "argv", ["", "--threads=3", "--seconds=0.3", "--n=20"])
    assert scripts("engine_threads").main() == 0


def test_small_host_matrices(run, monkeypatch):
    host_cupy.anywhere(monkeypatch, "gemm", "symm", "syrk", "trmm", "trsm")
    options = "--sizes 4 --letters s --routines gemm trsm syrk trmm symm"
    rows = run("host_small", options)["host_small"]["rows"]
    assert len(rows) == 5 and all(row["cuda"] > 0 for row in rows)


def test_dask_beside_the_engine(run, scripts, monkeypatch):
    pytest.importorskip("distributed")
    script = scripts("dask_cards")
    signature = inspect.signature(script.measured)
    monkeypatch.setattr(script, "measured", lambda *args: signature.bind(*args) and [{"seconds": 1.0}])
    monkeypatch.setattr(script, "Pinned", lambda count, nbytes: None)
    options = "--n 24 --chunk 12 --cards 1 --chunks numpy --repeats 1"
    rows = run("dask_cards", options)["dask_cards"]["rows"]
    assert [row["by"] for row in rows] == ["dask, numpy"] * 3 + ["engine"] * 3
    assert all(row["error"] < 1e-10 for row in rows[:3])


# -------------------------------------------------------------------------------------------------- others


def test_host_seconds_of_a_call(scripts, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["", "--out", str(tmp_path / "x.json")])
    assert scripts("overhead", CALLS=2, LONG=2).main() == 0
    names = json.loads((tmp_path / "x.json").read_text())["microseconds"]
    assert "pyblasgpu plan, other arrays, cupy float32" in names


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
    worst = run("error_bounds", "--letters sz", **constants)["error_bounds"]["worst"]
    assert len(worst) >= 19 + 7 and all(row["over"] <= 1 for row in worst)


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
    monkeypatch.setattr("pyblasgpu.gpu.device.current", lambda ordinal: host_cupy.CARD)
    needed = calls.kernels(small)
    assert needed["count"] == 0 and len(needed["products"]) == len(small)


def test_rates_of_papers_on_cupys_arrays(scripts):
    scripts("tuning.papers.device_time", BUSY=64, REPEATS=1)
    figure9 = scripts("tuning.papers.kblas_figure9", BLK=8)
    for routine in figure9.ROUTINES:
        for triangular in (figure9.ours, figure9.theirs):
            assert figure9.rate(routine, "s", 20, triangular) >= 0
    atlas, kblas, li_lu = (scripts(f"tuning.papers.{name}") for name in ("atlas", "kblas", "li_lu"))
    assert atlas.factor_rate("potrf", "d", 20, [("potrf", 8)]) >= 0
    assert atlas.factor_rate("getrf", "z", 20, []) >= 0
    run = scripts("tuning.papers.experiment").Experiment(known("h100"), None, None)
    assert [row["figure"] for row in kblas.inverted(run, "d", [20])] == ["trsm", f"trsm {kblas.FEW}"]
    assert [row["columns"] for row in li_lu.rows(["s"], [20], [4, 8])] == [4, 8]
