"""The examples run on what is there: host arrays and the simulator, and a GPU where there is one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyblasgpu import backend_status
from pyblasgpu.errors import BackendUnavailable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: What each prints at its end where there is a GPU, and where there is none.
LAST_LINE = {
    "scipy_program": ("a Gaussian process of 4000 points", "a Gaussian process of 500 points"),
    "gaussian_process": ("a Gaussian process of 400 points", "a Gaussian process of 400 points"),
    "whitening": ("whitened 20000 samples", "whitened 20000 samples"),
    "kalman_update": ("updated 200 filters", "updated 200 filters"),
    "batched_solves": ("solved 1000 systems", "solved 1000 systems"),
    "dask_cluster": ("a covariance of 900 points on a cluster",) * 2,
    "cupy_views": ("products of views", "products of views"),
    "torch_stream": ("solved 500 x 500 in place", "solved 500 x 500 in place"),
    "plan_in_graph": ("a graph of two plans was replayed", "skipped: a plan needs a GPU"),
    "scipy_dropin": ("a Cholesky factorization of order 300", "a Cholesky factorization of order 300"),
    "tune_and_explain": ("", "skipped the rest: tuning needs a GPU"),
    "write_a_kernel": ("dgmm of 45 x 13 in the simulator", "dgmm of 45 x 13 in the simulator"),
}
#: The library without which an example has one line to say.
LIBRARY = {"dask_cluster": "Dask", "torch_stream": "PyTorch", "whitening": "PyTorch", "plan_in_graph": "CuPy"}


def has_gpu() -> bool:
    try:
        return backend_status("cuda").backend == "cuda"
    except BackendUnavailable:
        return False


def test_each_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(LAST_LINE)


@pytest.mark.parametrize("name", LAST_LINE)
def test_it_runs(name, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(EXAMPLES.parent),
        "PYTHONWARNINGS": "error::DeprecationWarning",
    }
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    last = run.stdout.strip().splitlines()[-1]
    if name in LIBRARY and f"needs {LIBRARY[name]}" in last:
        pytest.skip(last)
    assert last.startswith(LAST_LINE[name][not has_gpu()])
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


@pytest.mark.parametrize("name", LAST_LINE)
def test_its_header_is_what_the_gallery_needs(name):
    """A title, underlined, then a summary."""
    doc = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
    title, line, blank, summary, *_ = doc.splitlines()
    assert (line == "=" * len(title) and not blank and summary.endswith((".", ","))) or len(summary) > 60
