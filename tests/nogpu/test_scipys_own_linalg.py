"""SciPy's own tests of scipy.linalg, run with our functions in the place of SciPy's: which fail, and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import scipy

from tools import scipy_tests

# not imported: its marks are those of SciPy's settings
pytestmark = pytest.mark.skipif(
    not find_spec("scipy.linalg.tests"), reason="this SciPy is installed without its tests"
)

ROOT = scipy_tests.GUIDE.parents[2]


def columns():
    """The heading of the guide's table, and its two columns."""
    text = scipy_tests.GUIDE.read_text(encoding="utf-8").partition(scipy_tests.BEGIN)[2]
    rows = [line.strip("| ").split(" | ") for line in text.partition(scipy_tests.END)[0].strip().splitlines()]
    heading, _, *counts = rows
    numbers = [
        {row[0].removeprefix("fail: "): int(row[i].replace(",", "")) for row in counts} for i in (1, 2)
    ]
    return heading[0], numbers


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--patched"]], ids=["our names", "patched"])
def test_scipys_own_tests_end_as_the_guide_says(options):
    command = [sys.executable, str(ROOT / "tools" / "scipy_tests.py"), "--summary", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    *report, last = run.stdout.splitlines()
    found = json.loads(last)
    assert scipy_tests.OTHERS not in found, [line for line in report if line.startswith("    ")]
    assert not options or {"pass"} <= set(found) <= {"pass", scipy_tests.TEXTS}
    heading, numbers = columns()
    if heading.endswith(f"SciPy {scipy.__version__}"):
        expected = {reason: count for reason, count in numbers[bool(options)].items() if count}
        assert found == expected, "python tools/scipy_tests.py --guide writes the table"


def test_the_table_of_the_guide():
    own, patched = {"pass": 1200, "text and times are refused": 2, "others": 1}, {"pass": 1203}
    assert scipy_tests.table(own, patched)[2:] == [
        "| pass | 1,200 | 1,203 |",
        "| fail: text and times are refused | 2 | 0 |",
        "| fail: others | 1 | 0 |",
    ]
    long_double, _, array_like, *_ = scipy_tests.REASONS
    for name, error, reason in (
        ("TestInv::test_dtypes[float128]", "dtype float128 of a is none", long_double),
        ("TestOverwrite::test_inv", "a _FakeMatrix is not an array", array_like),
        ("TestInv::test_new", "is not a matrix", scipy_tests.OTHERS),
    ):
        assert scipy_tests.reason_of(name, error) == reason
