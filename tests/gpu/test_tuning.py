"""The tuner on a device: the worker, its clock, its memory, and a short run from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import fake_worker
import pytest

from pyblasgpu.database import FAMILIES, read
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.nvml import Sensor
from pyblasgpu.tuning import sweep_file
from pyblasgpu.tuning.worker import DONE, Lost, Worker
from pyblasgpu.tuning.worker_bench import Bench, Failed, Job, Timing
from pyblasgpu.types import DTYPES

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))

SIZES = ((512, 512, 512), (1024, 2048, 1024))


answers = partial(fake_worker.answers, patience=120.0)


def job(dtype="s", **changes):
    choice = choose.select("gemm_simt", DTYPES[dtype], "nn", (4096,) * 3, current())
    problems = tuple((extents, float("inf")) for extents in SIZES)
    facts = {"overrides": (("gemm_simt", choice.config),), "problems": problems, "verify": ("aligned", "odd")}
    return Job("gemm", dtype, "nn", **{**facts, **changes})


@pytest.fixture(scope="module")
def worker():
    with Worker(Bench, (routine, 0)) as made:
        yield made


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_candidate_is_verified_and_timed(worker, dtype):
    small, large, done = answers(worker, job(dtype))
    assert done == DONE and isinstance(small, Timing) and isinstance(large, Timing)
    assert 1e-6 < small.seconds < large.seconds < 1e-1


@pytest.mark.parametrize("layout", ["n", "t"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_level_2_is_verified_and_timed(worker, dtype, layout):
    """Narrow blocks, whose warps add by shuffles, and wide ones; slices; vectors that fit or do not."""
    problems = tuple((extents, float("inf")) for extents in ((1024, 1024), (256, 65536)))
    family = FAMILIES["gemv"]
    timed = []
    for config in family.untuned(dtype, layout):
        gemv_job = Job("gemv", dtype, layout, (("gemv", config),), problems, ("aligned", "odd"))
        small, large, done = answers(worker, gemv_job)
        assert done == DONE and isinstance(small, Timing) and isinstance(large, Timing), (config, small)
        assert all(1e-6 < each.seconds < 1e-1 for each in (small, large))
        timed.append((small.seconds, large.seconds))
    least_small, least_large = map(min, zip(*timed, strict=True))  # others may use the device meanwhile
    assert least_small < least_large
    vendor = Job("gemv", dtype, layout, (), problems[:1], vendor=True)
    of_vendor = answers(worker, vendor)[0]
    assert isinstance(of_vendor, Timing) or of_vendor.outcome == "absent"


@pytest.mark.parametrize("dtype", DTYPES)
def test_ger_is_verified_and_timed(worker, dtype):
    problems = (((1024, 1024), float("inf")),)
    timed, done = answers(worker, Job("ger", dtype, "any", (), problems, ("aligned", "odd")))
    assert done == DONE and isinstance(timed, Timing)
    timed = answers(worker, Job("ger", dtype, "any", (), problems, vendor=True))[0]
    assert isinstance(timed, Timing) or timed.outcome == "absent"


def test_times_repeat_though_caches_are_cold(worker):
    """The clock leaves out the host, and what ran before."""
    least, second, *_ = sorted(answers(worker, job())[1].seconds for _ in range(8))
    assert second < 1.1 * least  # others may use the device meanwhile


def test_whole_routines_and_cublas_are_timed(worker):
    problem = (((1024, 512), float("inf")),)
    for name in ("trsm", "trmm", "syr2k"):
        assert isinstance(answers(worker, Job(name, "d", "any", (), problem))[0], Timing)
    timed = answers(worker, job(vendor=True, overrides=(), verify=()))[0]
    assert isinstance(timed, Timing) or timed.outcome == "absent"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "extents"), [("getrf", (1024, 1024)), ("potrf", (1024,)), ("getrs", (32, 16, 100))]
)
def test_factors_are_verified_and_timed_with_a_policy(worker, name, extents, dtype):
    """With widths of lookahead that small matrices have not otherwise, too."""
    for columns in (0, 128, 256, 512):
        steps = {str(columns): 0} if columns else {}
        policy = (("getrf_lookahead", steps), ("potrf_lookahead", steps))
        problems, verify = ((extents, float("inf")),), ("aligned", "odd")
        timed, done = answers(worker, Job(name, dtype, "any", (), problems, verify, policy=policy))
        assert done == DONE and isinstance(timed, Timing), timed
        assert 1e-6 < timed.seconds < 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_of_few_columns_are_verified_both_ways(worker, dtype):
    for bound in (0, 1 << 60):
        policy = ("trsv_min_order", bound), ("fused_trsm_min_order", dict.fromkeys(DTYPES, bound))
        verify = "aligned", "odd", (100, 1), (100, 8)
        assert answers(worker, Job("trsm", dtype, "any", verify=verify, policy=policy)) == [DONE]
        few = (("fused_trmm_min_rhs", bound),)
        assert answers(worker, Job("trmm", dtype, "any", verify=((100, 4),), policy=few)) == [DONE]


@pytest.mark.parametrize("order", [0, 1 << 20])
def test_products_of_host_matrices_are_timed(worker, order):
    policy = (("host_min_order", dict.fromkeys(DTYPES, order)),)
    problems = (((256,) * 3, float("inf")),)
    timed, done = answers(worker, Job("gemm", "d", "nn", (), problems, policy=policy, on_host=True))
    assert done == DONE and 1e-5 < timed.seconds < 1


@pytest.mark.slow
@pytest.mark.skipif(WORKERS > 4, reason="wants cores and the device for itself: run it alone")
def test_the_policy_is_measured_from_the_command_line(tmp_path):
    environment = {**os.environ, "PYBLASGPU_HOME": str(tmp_path)}
    options = ["--stage", "policy", "--dtype", "s,d", "--budget", "200s", "--json"]
    command = [sys.executable, "-m", "pyblasgpu", "tune", *options]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=environment, cwd=root, text=True, capture_output=True, timeout=590)
    assert done.returncode == 0, done.stderr
    name = current().name
    tuned = tmp_path / "data" / "tuned" / f"{tuned_files.slug(name)}.json"
    document = read(tuned, name)
    assert document is not None and document.policy and not document.entries
    values = {row["name"] for row in json.loads(done.stdout)["policy"]}
    assert values == set(document.policy) and values & {"launch_seconds", "trsv_min_order", "trsm_stop"}
    records = sweep_file.read_sweep(tmp_path / "data" / "sweeps" / f"{tuned_files.slug(name)}.jsonl")
    outcomes = {record.outcome for record in records}
    assert not outcomes & {"wrong", "crash", "hang", "spoils"}, [r for r in records if r.outcome != "ok"]


def test_after_an_illegal_address_the_worker_is_replaced():
    with Worker(Bench, (fake_worker.with_wild_pointer, 0)) as made:
        first, *_, last = answers(made, job(verify=()))
        assert isinstance(first, Failed) and first.outcome == "crash" and isinstance(last, Lost)
        assert answers(made, job(verify=()))[0].outcome == "crash"  # in a new process
        assert made.replaced == 2


def test_nvml_tells_the_state_of_the_device():
    state = Sensor(0).read()
    assert state.sm_mhz is None or 100 < state.sm_mhz < 5000
    assert state.celsius is None or 0 < state.celsius < 120
    assert state.watts is None or 1 < state.watts < 5000


@pytest.mark.slow
@pytest.mark.skipif(WORKERS > 4, reason="wants cores and the device for itself: run it alone")
def test_two_runs_at_once_from_the_command_line(tmp_path):
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYBLASGPU_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    command = [
        sys.executable,
        "-m",
        "pyblasgpu",
        "tune",
        "--routine",
        "gemm",
        "--effort",
        "quick",
        "--budget",
        "60s",
        "--json",
    ]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([*command, "--dtype", dtype], env=environment, text=True, stdout=pipe, stderr=pipe)
        for dtype in "sc"
    ]
    outputs = [process.communicate(timeout=400) for process in started]
    assert all(process.returncode == 0 for process in started), outputs
    won = [
        {(w["stem"], w["dtype"], w["layout"], w["size"]) for w in json.loads(out)["winners"]}
        for out, _ in outputs
    ]
    name = current().name
    tuned = tmp_path / "data" / "tuned" / f"{tuned_files.slug(name)}.json"
    document = read(tuned, name)
    assert document is not None
    assert set(document.entries) == won[0] | won[1] and {key[1] for key in document.entries} == {"s", "c"}
    for (stem, dtype, layout, _), entry in document.entries.items():
        FAMILIES[stem].config(dtype, layout, entry.parameters)
    records = sweep_file.read_sweep(tmp_path / "data" / "sweeps" / f"{tuned_files.slug(name)}.jsonl")
    assert all(record.caches == "cold" and record.toolchain for record in records)
