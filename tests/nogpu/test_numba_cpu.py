"""The backend 'numba': threads, Configs, and where they come from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import fields, replace

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import backend_status, cli, demo
from pyblasgpu.cpu.numba import backend, device, space, tuned_gemm
from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.numba.config import CpuGemm
from pyblasgpu.cpu.numba.device import Processor
from pyblasgpu.errors import BackendUnavailable, ConfigError, DatabaseWarning
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES, Trans

KiB = 1 << 10
CARD = Processor("a processor", 4, 32 * KiB, 512 * KiB, 8192 * KiB, 32, 16, 3000.0)


@pytest.fixture
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    tuned_gemm.forget()
    yield tmp_path
    tuned_gemm.forget()


def test_calls_run_on_it_where_it_is_asked_for(rng):
    assert backend_status("numba") == ("numba", "named by the call")
    a, b = (reference.reals(rng, shape, DTYPES["d"]) for shape in ((2, 70, 80), (80, 90)))
    c = pyblasgpu.gemm(a, b, backend="numba")
    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)
    t = np.tril(a[0][:, :70]) + 9 * np.eye(70)
    x = pyblasgpu.trsm(t, b[:70], lower=True, backend="numba")
    np.testing.assert_allclose(
        pyblasgpu.trmm(t, x, lower=True, backend="numba"), b[:70], rtol=1e-11, atol=1e-11
    )
    symmetric = pyblasgpu.symm(t, b[:70], lower=True, backend="numba")  # by SciPy's BLAS
    np.testing.assert_allclose(symmetric, (t + np.tril(t, -1).T) @ b[:70], rtol=1e-11, atol=1e-11)


def test_the_demo_runs_on_it(monkeypatch, capsys):
    # Numba compiles for each dtype
    monkeypatch.setattr(demo, "DTYPES", {letter: DTYPES[letter] for letter in "dz"})
    monkeypatch.setenv("PYBLASGPU_BACKEND", "numba")
    assert cli.main(["demo", "--n", "40", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["where"] for row in rows} == {"numba"}
    assert {config[0] for row in rows for config in row["configs"]} == {"cpu_gemm"}


def test_several_threads_give_the_bits_of_one(monkeypatch, rng):
    a, b = (reference.reals(rng, shape, DTYPES["s"]) for shape in ((300, 200), (200, 500)))
    results = []
    for count in ("1", "2", "5", "none"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", count)
        results.append(np.empty((300, 500), "f4"))
        numba_cpu.gemm(1, a, b, 0, results[-1], Trans.NO, Trans.NO)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_all_parts_are_over_where_one_fails(error, monkeypatch):
    """Who catches the error may write into the arrays."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    begun, ended = threading.Event(), []

    def multiply(*_):
        if not begun.is_set():
            begun.set()
            raise error("the first part")
        time.sleep(0.1)
        ended.append(True)

    monkeypatch.setattr(numba_cpu, "multiply", multiply)
    with pytest.raises(error, match="the first part"):
        pyblasgpu.gemm(np.ones((200, 200)), np.ones((200, 200)), backend="numba")
    assert ended == [True]


@pytest.mark.parametrize(
    ("problem", "is_computed"),
    [("cannot schedule new futures after interpreter shutdown", True), ("can't start new thread", False)],
)
def test_a_pool_that_takes_no_task(problem, is_computed, monkeypatch):
    """Without a pool that has ended the caller computes; other errors are raised, and nothing runs twice."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    parts = []
    monkeypatch.setattr(numba_cpu, "multiply", lambda *_: parts.append(threading.get_ident()))

    def submit(pool, task):
        raise RuntimeError(problem)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    a = np.ones((200, 200))
    with nullcontext() if is_computed else pytest.raises(RuntimeError, match=problem):
        pyblasgpu.gemm(a, a, backend="numba")
    assert parts == [threading.get_ident()] * 2 * is_computed


def test_an_error_of_a_task_that_the_caller_computes(monkeypatch):
    """It is the task's own, also where it reads as one of the pool."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    parts = []

    def fail(*_):
        parts.append(threading.get_ident())
        raise RuntimeError("cannot schedule a part")

    def submit(pool, task):
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(numba_cpu, "multiply", fail)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    with pytest.raises(RuntimeError, match="cannot schedule a part"):
        pyblasgpu.gemm(np.ones((200, 200)), np.ones((200, 200)), backend="numba")
    assert len(parts) == 1


def test_a_thread_computes_on_where_the_main_one_has_ended():
    program = """
import threading
import numpy as np
import pyblasgpu
a = np.ones((200, 200))

def work():
    threading.main_thread().join()
    print(pyblasgpu.gemm(a, a, backend="numba")[0, 0])

pyblasgpu.gemm(a, a, backend="numba")
threading.Thread(target=work).start()
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (run.stdout, run.returncode) == ("200.0\n", 0), run.stderr


def test_numba_is_imported_where_the_backend_is_asked_for():
    program = (
        "import sys, numpy, pyblasgpu; a = numpy.eye(3); pyblasgpu.gemm(a, a, backend='cpu'); "
        "assert 'numba' not in sys.modules; pyblasgpu.backend_status('numba'); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_numba_the_backend_is_refused(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyblasgpu.cpu.numba.intrinsics", raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(BackendUnavailable, match="cannot be built here"):
        backend_status("numba")
    with pytest.raises(BackendUnavailable):
        backend.require()


def test_the_processor_is_described():
    here = device.current()
    assert here.name and here.cores >= 1 and here.vector_bytes in (16, 32, 64)
    assert here.l1_bytes <= here.l2_bytes <= here.l3_bytes


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("letter", "sdcz")
def test_default_and_candidates_fit_the_processor(letter, vector_bytes, registers):
    card = replace(CARD, vector_bytes=vector_bytes, vector_registers=registers)
    start = space.default(letter, card)
    candidates = [start, *space.tiles(letter, card), *space.blocks(start, card)]
    assert len(set(candidates)) > 20
    for config in candidates:
        packed_a_bytes = config.BLK_M * config.BLK_K * config.dtype_facts.itemsize
        assert config.registers <= registers and packed_a_bytes <= card.l2_bytes
        assert config.VEC * config.dtype_facts.real_size == vector_bytes


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"THR_M": 23}, "whole_vectors"),
        ({"BLK_M": 25}, "tile_m"),
        ({"BLK_N": 0}, "tile_n"),
        ({"BLK_K": 0}, "positive"),
        ({"UNROLL": 0}, "positive"),
    ],
)
def test_rules(change, rule):
    good = CpuGemm(dtype="d", BLK_M=48, BLK_N=64, BLK_K=32, THR_M=24, THR_N=8, VEC=8)
    assert good.reuse == 6
    with pytest.raises(ConfigError) as broken:
        replace(good, **change)
    assert broken.value.rule == rule


def test_any_register_tile_and_block_computes_the_same(rng):
    a, b = (reference.integers(rng, shape, DTYPES["z"]) for shape in ((37, 45), (45, 29)))
    start = space.default("z", device.current())
    lanes = start.VEC // 2
    tile = {"THR_M": 2 * lanes, "THR_N": 3, "BLK_M": 4 * lanes, "BLK_N": 9}
    for depth in (7, 16, 64):
        config = replace(start, BLK_K=depth, UNROLL=3, **tile)
        c = np.full((37, 29), np.nan + 0j)
        numba_cpu.multiply(config, 1, numba_cpu.Operand(a), numba_cpu.Operand(b, True), 0, c)
        np.testing.assert_array_equal(c, a @ b.conj())


def document(config, name):
    values = {field.name: getattr(config, field.name) for field in fields(config) if field.name != "dtype"}
    return {"processor": name, "configs": {config.dtype: values}}


def test_tuned_values_are_read(own_folder):
    tuned = replace(space.default("d", CARD), BLK_K=96)
    file = tuned_gemm.tuned_file(CARD.name)
    assert tuned_gemm.choose("d", CARD) == (space.default("d", CARD), "computed")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document(tuned, CARD.name)))
    tuned_gemm.forget()
    assert tuned_gemm.choose("d", CARD) == (tuned, f"tuned here, {file}")
    assert tuned_gemm.choose("s", CARD) == (space.default("s", CARD), "computed")


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: "{",
        lambda good: "[]",
        lambda good: json.dumps(good | {"processor": "another"}),
        lambda good: json.dumps(good | {"configs": {"d": {"BLK_M": 1}}}),
        lambda good: json.dumps(good).replace("96", "-96"),
        lambda good: json.dumps(good).replace("96", "true"),
        lambda good: json.dumps(good).replace('"THR_M": 12', '"THR_M": 11'),
        lambda good: json.dumps(good) + " " * (1 << 16),
    ],
)
def test_a_damaged_file_is_passed_over(damage, own_folder):
    file = tuned_gemm.tuned_file(CARD.name)
    file.parent.mkdir(parents=True)
    file.write_text(damage(document(replace(space.default("d", CARD), BLK_K=96), CARD.name)))
    with pytest.warns(DatabaseWarning, match="is passed over"):
        assert tuned_gemm.choose("d", CARD)[1] == "computed" or tuned_gemm.read(file, CARD.name) is None
