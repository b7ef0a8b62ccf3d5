"""SciPy's own tests of scipy.linalg, run with our functions in the place of SciPy's: which fail, and why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# not imported: its marks are those of SciPy's settings
pytestmark = pytest.mark.skipif(
    not find_spec("scipy.linalg.tests"), reason="this SciPy is installed without its tests"
)

ROOT = Path(__file__).resolve().parents[2]
#: Of the tests that fail the names, or the words of the error, each with the reason that the guide gives.
KNOWN = [
    r"TestOverwrite::.* _FakeMatrix is not an array",  # has __array__ alone
    r"dtype .* of [ab] is none of float32",  # long double, objects, text and times
    r"TestInv::test_wrong_assume_a",  # ValueError, and not KeyError
    r"TestDet::test_overwrite_a",  # may, and does not
    r"TestDet::test_incompatible_dtype_input",  # TypeError in other words
]


@pytest.mark.parametrize(
    ("files", "options", "least"),
    [
        (("test_decomp_cholesky", "test_decomp_lu"), (), 140),
        (("test_decomp_cholesky", "test_decomp_lu"), ("--patched",), 140),
        (("test_basic",), ("-k", "TestInv or TestDet or TestSolveTriangular or TestOverwrite"), 110),
    ],
    ids=["factors", "factors under the patch", "basic"],
)
def test_scipys_own_tests(files, options, least):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "tools" / "scipy_tests.py"), *options, *files]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    report = run.stdout[run.stdout.index(f"\n{files[0]}: ") :]
    passed = sum(map(int, re.findall(r"^test_\w+:.*?(\d+) passed", report, re.MULTILINE)))
    assert passed >= least
    failures = [line for line in report.splitlines() if line.startswith("    ")]
    unknown = [line for line in failures if not any(re.search(known, line) for known in KNOWN)]
    assert not unknown
    if "--patched" in options:
        assert not failures
    assert re.search(r"'(cholesky|inv)': \d\d", report)
