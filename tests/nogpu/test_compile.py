"""Kernels compiled without a device: nothing spills, no float64 creeps in, nothing compiles twice."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from pyblasgpu import database
from pyblasgpu.database import FAMILIES, FIXED, sizes_of
from pyblasgpu.gpu import backend, compile
from pyblasgpu.gpu.compile import CompileError, KernelSource, Resources, compile_source, to_ptx
from pyblasgpu.gpu.device import known, names
from pyblasgpu.kernels import (
    copy_scaled,
    diagonal_blocks,
    gemm_mma,
    gemm_tile,
    pack,
    sum_partials,
    symmetrize,
    trsm_small,
    trsv,
)
from pyblasgpu.kernels.gemm_tile import GemmTile
from pyblasgpu.kernels.packing import Packing
from pyblasgpu.kernels.triangle import Variant
from pyblasgpu.tuning import by_class, packs, select
from pyblasgpu.tuning.build import complaint, source_of
from pyblasgpu.tuning.in_place import in_place_twin
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.skipif(bool(backend.UNAVAILABLE), reason=str(backend.UNAVAILABLE))

CC = (9, 0)


def packaged() -> Iterator[tuple]:
    """Every Config of the packaged files: device, family, Config, and where it stands."""
    devices = {device.name: device for device in map(known, names())}
    for path in sorted(Path(database.__file__).parent.glob("*.json")):
        if path.name == "schema.json":
            continue
        document = database.parse(path.read_bytes())
        for (stem, dtype, layout, size), entry in document.entries.items():
            config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            yield devices[document.device], stem, config, f"{path.stem}-{stem}-{dtype}-{layout}-{size}"


def computed(name: str) -> Iterator[tuple]:
    """The Configs computed for a device without a file, for a layout and a size class of each family."""
    for stem, family, dtype in ((stem, f, dtype) for stem, f in FAMILIES.items() for dtype in f.dtypes):
        layout, size = family.layouts[-1], sizes_of(stem)[-1]
        config = by_class.computed(stem, dtype, layout, size, known(name))
        yield known(name), stem, config, f"{name}-{stem}-{dtype}-{layout}-{size}"


def different(*chosen: Iterable[tuple]) -> list:
    """One of those that compile to the same: an architecture's Configs are often its device's."""
    found: dict = {}
    for device, stem, config, name in chain(*chosen):
        found.setdefault((device.cc, stem, config), pytest.param(device, stem, config, id=name))
    return list(found.values())


JOBS = different(packaged(), computed("a100"))


@pytest.mark.parametrize(("device", "stem", "config"), JOBS)
def test_a_chosen_config_keeps_everything_in_registers(device, stem, config):
    report = compile_source(source_of(stem, config), device.cc).resources
    assert report.registers > 0
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(config, report, device) == ("ok", "")


def packed(jobs: Iterable) -> list:
    """The kernels for packed operands that stand for those of layout `nt`."""
    found = {}
    for job in jobs:
        device, stem, config = job.values
        if FAMILIES[stem].routine == "gemm" and config.layout == packs.LAYOUT:
            twin = packs.packed_twin(config, device)
            found[device.cc, twin] = pytest.param(device, stem, twin, id=f"{job.id}-packed")
    return [job for (_, twin), job in found.items() if twin is not None]


@pytest.mark.parametrize(("device", "stem", "config"), packed(JOBS))
def test_so_does_its_twin_for_packed_operands(device, stem, config):
    report = compile_source(source_of(stem, config), device.cc).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(config, report, device) == ("ok", "")


def of_triangles(jobs: Iterable) -> list:
    """Those of layout `nt`, which SYRK and HERK take most often."""
    found = [
        job for job in jobs if FAMILIES[job.values[1]].routine == "gemm" and job.values[2].layout == "nt"
    ]
    return [pytest.param(*job.values, id=f"{job.id}-triangle") for job in found]


@pytest.mark.parametrize(("device", "stem", "config"), of_triangles(JOBS))
def test_the_kernel_of_a_triangle_hardly_spills(device, stem, config):
    """At most ten registers, of those that wait for the end of a tile: its masks cost a few more."""
    part = "hermitian" if config.dtype in "cz" else "lower"
    source = import_module(f"pyblasgpu.kernels.{stem}").source(config, part=part)
    report = compile_source(source, device.cc).resources
    assert report.stack_bytes <= 40 and report.spill_stores <= 44 and report.spill_loads <= 80


@pytest.mark.parametrize("layout", ["nn", "tn"])
@pytest.mark.parametrize("n", [64, 512, 2048, 8192])
def test_three_products_keep_everything_in_registers(n, layout):
    chosen = select.select("gemm", DTYPES["z"], layout, (n, n, n), known("h200"), three_m=True)
    assert chosen.config.three_m and chosen.origin.startswith("packaged")
    report = compile_source(gemm_mma.source(chosen.config), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("partials", [2, 128])
def test_sums_of_partials_keep_everything_in_registers(letter, partials):
    config = FIXED[sum_partials.STEM].config(letter, "", {}).serving(partials)
    report = compile_source(sum_partials.source(config), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("part", ["upper", "hermitian"])
@pytest.mark.parametrize("letter", DTYPES)
def test_mirror_images_are_added_in_registers(letter, part):
    config = FIXED[symmetrize.STEM].config(letter, "", {})
    report = compile_source(symmetrize.source(config, part), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("name, by_rows", [("h200", True), ("h200", False), ("a100", True)])
@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("letter", DTYPES)
def test_few_right_hand_sides_are_solved_in_registers(letter, columns, name, by_rows):
    device = known(name)
    config = FIXED[trsv.STEM].config(letter, "", {}).serving(columns, device.shared_per_block)
    report = compile_source(
        trsv.source(config, Variant(False, letter in "cz", by_rows, not by_rows)), device.cc
    ).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(config, report, device) == ("ok", "")


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("read_by_rows", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_packing_keeps_everything_in_registers(letter, read_by_rows, cc):
    for packing in (Packing("row", 96, 8), Packing("cbl", 128, 16, 4)):
        config = FIXED[pack.STEM].config(letter, "", {}).serving(packing)
        report = compile_source(pack.source(config, letter in "cz", read_by_rows), cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("part", ["strict", "hermitian"])
@pytest.mark.parametrize("letter", DTYPES)
def test_triangles_are_copied_in_registers(letter, part):
    config = FIXED[copy_scaled.STEM].config(letter, "", {})
    source = copy_scaled.source(config, letter in "cz", False, True, False, part)
    report = compile_source(source, CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    if letter in "sc":
        assert ".f64" not in to_ptx(source, CC)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("letter", DTYPES)
def test_small_triangles_keep_everything_in_registers(letter, cc):
    config = FIXED[trsm_small.STEM].config(letter, "", {})
    largest = config.serving(config.most_rows, 64)
    for by_rows in (False, True):
        variant = Variant(unit=by_rows, conj=letter in "cz", t_by_rows=by_rows, b_by_rows=not by_rows)
        report = compile_source(trsm_small.source(largest, variant), cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


def smallest(stem: str, letter: str) -> KernelSource:
    """A kernel of the family that compiles quickly: of the Configs above, that with the shortest text."""
    if stem == copy_scaled.STEM:
        return copy_scaled.source(FIXED[stem].config(letter, "", {}), True, False, True, False)
    if stem == sum_partials.STEM:
        return sum_partials.source(FIXED[stem].config(letter, "", {}))
    if stem == symmetrize.STEM:
        return symmetrize.source(FIXED[stem].config(letter, "", {}), "hermitian")
    if stem == trsm_small.STEM:
        return trsm_small.source(FIXED[stem].config(letter, "", {}), Variant(False, True, True, True))
    if stem == trsv.STEM:
        return trsv.source(FIXED[stem].config(letter, "", {}), Variant(False, letter in "cz", True, True))
    if stem == pack.STEM:
        return pack.source(FIXED[stem].config(letter, "", {}), True, False)
    if stem == diagonal_blocks.STEM:
        return diagonal_blocks.source(FIXED[stem].config(letter, "", {}), "lower", True, False)
    jobs = [job.values for job in JOBS]
    configs = [config for _, family, config in jobs if (family, config.dtype) == (stem, letter)]
    return source_of(stem, min(configs, key=lambda config: config.THR_M * config.THR_N * config.BLK_K))


def test_garbage_is_collected_afterwards():
    source = smallest(copy_scaled.STEM, "s")
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        to_ptx(source, CC)
        assert gc.isenabled() == enabled
    gc.enable()


TOUCHES = r"(ld|st)\.global|cp\.async\.c[ag]"


def in_turn(source: KernelSource) -> tuple[str, str]:
    """The PTX of a kernel before it waits for its turn, and after."""
    turn = "griddepcontrol.wait; griddepcontrol.launch_dependents;"
    before, waits, after = to_ptx(source, CC).partition(turn)
    assert waits and "griddepcontrol" not in after
    return before, after


@pytest.mark.parametrize(
    ("stem", "letter"), [(f.stem, f.dtypes[-1]) for f in (*FAMILIES.values(), *FIXED.values())]
)
def test_a_kernel_touches_memory_in_its_turn(stem, letter):
    """But for what it says it reads ahead; and no block ends before its turn."""
    source = smallest(stem, letter)
    before, after = in_turn(source)
    assert re.search(TOUCHES, after) and "ld.global.nc" not in after
    assert not re.search(TOUCHES.partition("|cp")[0] if source.ahead else TOUCHES, before)
    assert not re.search(r"\b(ret|exit);", before)


def test_the_read_only_path_knows_no_turn():
    """What it reads may be older than what the launch before has written: such a kernel waits for its end."""
    tile = GemmTile(
        dtype="s", trans_a=False, trans_b=False, BLK_M=16, BLK_N=8, BLK_K=4, DIM_X=8, DIM_Y=4,
        DIM_XA=16, DIM_YA=2, DIM_XB=4, DIM_YB=8, UNROLL=2, share_a=False,
    )  # fmt: skip
    for read_only in (False, True):
        made = gemm_tile.source(replace(tile, read_only=read_only))
        assert made.ahead == ((0, 1) if read_only else ())
        assert ("ld.global.nc" in to_ptx(made, CC)) == read_only


@pytest.mark.parametrize("stem", [stem for stem, family in FAMILIES.items() if family.routine == "gemm"])
def test_a_persistent_kernel_touches_memory_in_its_turn(stem):
    configs = [job.values[2] for job in JOBS if job.values[1] == stem and job.values[2].dtype == "d"]
    persistent = min((c for c in configs if c.persistent), key=lambda c: c.THR_M * c.THR_N * c.BLK_K)
    before, _ = in_turn(source_of(stem, persistent))
    assert not re.search(TOUCHES, before) and not re.search(r"\b(ret|exit);", before)


@pytest.mark.parametrize("solved", ["", "nonunit"])
@pytest.mark.parametrize(("stem", "letter"), [("gemm_tile", "s"), ("gemm_tile", "c"), ("gemm_mma", "z")])
def test_a_kernel_in_place_touches_memory_in_its_turn(stem, letter, solved):
    """What it does with the diagonal, too, is of the type."""
    configs = [job.values[2] for job in JOBS if job.values[1] == stem and job.values[2].dtype == letter]
    twins = (twin for config in configs if (twin := in_place_twin(config, "lower_a")))
    chosen = min(twins, key=lambda config: config.THR_M * config.THR_N * config.BLK_K)
    source = import_module(f"pyblasgpu.kernels.{stem}").source(
        chosen, True, triangle="lower_a", solved=solved
    )
    before, after = in_turn(source)
    assert re.search(TOUCHES, after) and not re.search(TOUCHES, before)
    assert not re.search(r"\b(ret|exit);", before)
    assert letter == "z" or not set(re.findall(r"\S*\.f64\S*", before + after))


def test_cards_before_hopper_have_no_turns():
    assert "griddepcontrol" not in to_ptx(smallest("gemm_tile", "s"), (8, 0))


SINGLE = [
    (f.stem, letter) for f in (*FAMILIES.values(), *FIXED.values()) for letter in "sc" if letter in f.dtypes
]


@pytest.mark.parametrize(("stem", "letter"), SINGLE)
def test_single_precision_has_no_double_arithmetic(stem, letter):
    """A Python number among float32 would turn the arithmetic around it into float64's."""
    ptx = to_ptx(smallest(stem, letter), CC)
    assert ".f32" in ptx
    assert not set(re.findall(r"\S*\.f64\S*", ptx))


# ------------------------------------------------------------------------------------------------ the store

PROCESS = """
import sys
from pyblasgpu.gpu import compile
from pyblasgpu.kernels import copy_scaled

if sys.argv[1] == "again":
    compile._compile = None
source = copy_scaled.source(copy_scaled.CopyScaled("s"), False, False, True, True)
found = compile.compile_source(source, (9, 0))
assert found is compile.compile_source(source, (9, 0))
print(len(found.cubin), found.entry, found.resources.registers)
"""


@pytest.fixture
def home(tmp_path):
    return {**os.environ, "PYBLASGPU_HOME": str(tmp_path)}


def process(home, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROCESS, *arguments], env=home, text=True, capture_output=True, timeout=120
    )


def test_a_second_process_compiles_nothing(home):
    cold = process(home, "again")
    assert cold.returncode and "NoneType" in cold.stderr, "without a cubin it would compile"
    first, second = process(home, "first"), process(home, "again")
    assert (first.returncode, second.returncode) == (0, 0), second.stderr[-500:]
    assert first.stdout == second.stdout


SOURCE = copy_scaled.source(copy_scaled.CopyScaled("s"), False, False, True, True)


@pytest.mark.parametrize(
    "other",
    [
        copy_scaled.source(copy_scaled.CopyScaled("s"), False, True, True, True),
        copy_scaled.source(copy_scaled.CopyScaled("d"), False, False, True, True),
        copy_scaled.source(copy_scaled.CopyScaled("s", DIM_Y=4), False, False, True, True),
        replace(SOURCE, threads=128),
        replace(SOURCE, min_blocks=2),
        replace(SOURCE, shared_bytes=64),
    ],
    ids=["flag", "dtype", "parameter", "threads", "min_blocks", "shared"],
)
def test_what_differs_has_another_key(other):
    assert compile._key(SOURCE, CC) != compile._key(other, CC)


def test_device_text_and_versions_are_in_the_key(monkeypatch):
    key = compile._key(SOURCE, CC)
    assert key == compile._key(SOURCE, CC) and re.fullmatch("[0-9a-f]{64}", key)
    keys = {key, compile._key(SOURCE, (8, 0))}
    monkeypatch.setattr(compile, "_versions", lambda: {"numba": "another"})
    keys.add(compile._key(SOURCE, CC))
    monkeypatch.setattr(compile, "_text_digest", lambda: "another")
    keys.add(compile._key(SOURCE, CC))
    assert len(keys) == 4


# ------------------------------------------------------------------------------------------- report, errors


def test_the_report_is_read():
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Function properties for kernel
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 484 bytes cmem[0]"""
    assert compile._parse_log(log.replace("Used", "used")) == Resources(255, 24, 16, 8, 1024)


def test_a_tile_too_large_for_the_registers_is_noticed(home, monkeypatch):
    """What the tests above look for can be seen: 16 blocks of 128 threads leave 32 registers to each."""
    monkeypatch.setenv("PYBLASGPU_HOME", home["PYBLASGPU_HOME"])
    config = GemmTile(
        dtype="s", trans_a=False, trans_b=False, BLK_M=32, BLK_N=32, BLK_K=4, DIM_X=8, DIM_Y=16,
        DIM_XA=32, DIM_YA=4, DIM_XB=4, DIM_YB=32, UNROLL=1, min_blocks=16,
    )  # fmt: skip
    report = compile_source(source_of("gemm_tile", config), CC).resources
    assert report.spill_stores and report.stack_bytes
    assert complaint(config, report, known("h200"))[0] == "spills"


def test_a_kernel_that_numba_refuses(home, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOME", home["PYBLASGPU_HOME"])

    def broken(s, d, m, n, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        d[0] = no_such_name  # noqa: F821

    with pytest.raises(CompileError, match="copy_scaled: Numba cannot compile"):
        compile_source(replace(SOURCE, build=lambda: broken, threads=96), CC)


def test_a_text_that_the_linker_refuses():
    with pytest.raises(CompileError, match="linker refuses"):
        compile._link(".version 8.0\n.target sm_90a\n.address_size 64\n.nonsense", CC)


def test_machine_code_is_kept_by_all_the_text_that_it_comes_from():
    """What kernels and intrinsics import of this package decides it, too, but for what no PTX is made of."""
    texts = compile._texts()
    imported = set()
    for file in texts:
        if file.parent.name == "kernels" or file.name.startswith("ptx"):
            pattern = (
                r"^from \.\.gpu\.(\w+) import" if file.parent.name == "kernels" else r"^from \.(\w+) import"
            )
            imported |= set(re.findall(pattern, file.read_text(), re.MULTILINE))
    assert {"backend", "compile", "mma"} <= imported
    assert imported <= {file.stem for file in texts}
