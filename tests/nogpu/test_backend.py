"""The one door to Numba: what may befall its import, and what the simulator's switch means."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyblasgpu.gpu import backend

needs_numba_cuda = pytest.mark.skipif(bool(backend.why_unavailable()), reason=str(backend.why_unavailable()))

#: NumPy 2.5 has no `row_stack`; an older one without it is as good.
WITHOUT_ROW_STACK = """
import numpy as np
if hasattr(np, "row_stack"):
    del np.row_stack
"""

#: The import of a package raises what is named, wherever it stands.
RAISING = """
import sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name.startswith({package!r}):
            raise {error}

sys.meta_path.insert(0, Finder())
"""

#: The first call of a process on a machine without a GPU, and what the package says of its backends.
FIRST_CALL = """
import pyblasgpu
print(pyblasgpu.gemm([[1.0, 2.0]], [[3.0], [4.0]]).item())
print(pyblasgpu.backend_status().backend)
print(str(__import__("pyblasgpu.gpu.backend").gpu.backend.why_unavailable()))
try:
    from pyblasgpu.kernels.copy import copy_scaled
    from pyblasgpu.gpu.build.compile import compile_kernel
    compile_kernel(copy_scaled.source(copy_scaled.CopyScaled("s")), (9, 0))
except pyblasgpu.errors.BackendUnavailable as reason:
    print(reason)
"""


def lines(program: str, **environment: str) -> list[str]:
    """What a process of its own prints."""
    process = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, text=True, capture_output=True
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout.splitlines()


@needs_numba_cuda
@pytest.mark.parametrize("simulated", ["0", "1"])
def test_numba_is_imported_beside_a_numpy_without_row_stack(simulated):
    program = """
from pyblasgpu.gpu import backend
print(backend.why_unavailable(), backend.SIMULATED, hasattr(np, "row_stack"))
"""
    expected = f"None {simulated == '1'} False"
    assert lines(WITHOUT_ROW_STACK + program, NUMBA_ENABLE_CUDASIM=simulated) == [expected]


@needs_numba_cuda
def test_row_stack_is_left_where_numpy_has_it():
    program = """
import numpy as np
mine = np.row_stack = lambda arrays: arrays
from pyblasgpu.gpu import backend
print(backend.why_unavailable(), np.row_stack is mine)
"""
    assert lines(program) == ["None True"]


@needs_numba_cuda
def test_new_arrays_of_numba_come_through_the_same_door():
    """For an exporter of DLPack they are made before a kernel is; where no device is, they cannot be."""
    program = """
import sys
from pyblasgpu.frontend.arrays.protocols import NUMBA
from pyblasgpu.types import DTYPES
try:
    NUMBA.empty((2, 3), DTYPES["d"], 0, None)
except AttributeError:
    raise
except Exception as error:
    assert "CUDA" in str(error) or "cuInit" in str(error), error
print("numba.cuda.np.arrayobj" in sys.modules, hasattr(np, "row_stack"))
"""
    assert lines(WITHOUT_ROW_STACK + program, NUMBA_ENABLE_CUDASIM="0") == ["True False"]


@needs_numba_cuda
def test_warnings_of_its_import_stay_there():
    """A caller whose warnings are errors gets kernels all the same, and the filters that he had."""
    program = """
import warnings
import numpy
warnings.simplefilter("error")
filters = list(warnings.filters)
from pyblasgpu.gpu import backend
print(backend.why_unavailable(), warnings.filters == filters)
"""
    assert lines(program) == ["None True"]


@pytest.mark.parametrize(
    ("package", "error"),
    [
        ("numba", "ImportError('broken')"),
        ("numba", "SystemError('broken')"),
        ("numba.cuda.np.arrayobj", "AttributeError('broken')"),
        ("llvmlite", "ImportError('broken')"),
        ("llvmlite", "OSError('broken')"),
    ],
)
def test_any_failure_of_the_import_is_a_reason(package, error):
    """Host arrays are computed by SciPy's BLAS; only what needs a kernel says why there is none."""
    result, served, unavailable, reason = lines(
        RAISING.format(package=package, error=error) + FIRST_CALL, NUMBA_ENABLE_CUDASIM="0"
    )
    assert (result, served) == ("11.0", "cpu")
    assert unavailable == reason
    assert reason.startswith("kernels cannot be built here: ") and "broken" in reason
    assert error.startswith("ImportError") or error.partition("(")[0] in reason


@pytest.mark.parametrize(
    ("package", "simulated", "extra"),
    [("numba.cuda.np", "0", "cu13"), ("cuda", "0", "cu13"), ("greenlet", "1", "sim")],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package, simulated, extra):
    error = f"ModuleNotFoundError('No module named {package}', name={package!r})"
    _, _, unavailable, _ = lines(
        RAISING.format(package=package, error=error) + FIRST_CALL, NUMBA_ENABLE_CUDASIM=simulated
    )
    assert package in unavailable and f"pyblasgpu[{extra}]" in unavailable


def test_the_simulator_without_greenlet_says_what_to_install():
    error = "ModuleNotFoundError('No module named greenlet', name='greenlet')"
    program = """
import pyblasgpu
try:
    pyblasgpu.gemm([[1.0]], [[2.0]], backend="sim")
except pyblasgpu.errors.BackendUnavailable as reason:
    print(reason)
"""
    (reason,) = lines(RAISING.format(package="greenlet", error=error) + program, NUMBA_ENABLE_CUDASIM="1")
    assert "greenlet" in reason and "pyblasgpu[sim]" in reason


@needs_numba_cuda
def test_the_switch_of_the_simulator_means_what_numba_reads():
    """Whether Numba is imported after the package, which reads the switch then, or before."""
    values = ["0", "", "False", "false", "no", "off", "true", "1", " 1 ", "2"]
    program = f"""
import os, sys
from importlib import reload
import numba.core.config
from numba.cuda.core import config
from pyblasgpu.gpu import backend
for value in {values}:
    os.environ["NUMBA_ENABLE_CUDASIM"] = value
    config.reload_config()
    numba.core.config.reload_config()
    reload(backend)
    before = backend.SIMULATED
    del sys.modules["numba.core.config"]
    reload(backend)
    sys.modules["numba.core.config"] = numba.core.config
    print(before, backend.SIMULATED, bool(config.ENABLE_CUDASIM), backend.ptx.fill.__module__)
"""
    expected = []
    for on in (value.strip() in ("1", "2") for value in values):
        module = f"pyblasgpu.gpu.{'simulator' if on else 'intrinsics'}.register_tile"
        expected.append(f"{on} {on} {on} {module}")
    assert lines(program, NUMBA_ENABLE_CUDASIM="0") == expected


@needs_numba_cuda
def test_kernels_are_described_without_numba():
    """Only building one imports it."""
    program = """
import sys
from pyblasgpu.database import FAMILIES, FIXED
from pyblasgpu.kernels.copy import copy_scaled
for family in (FAMILIES | FIXED).values():
    family.module
source = copy_scaled.source(copy_scaled.CopyScaled("s"))
print("numba" in sys.modules)
source.build()
print("numba" in sys.modules)
"""
    assert lines(program, NUMBA_ENABLE_CUDASIM="0") == ["False", "True"]


@needs_numba_cuda
def test_without_the_switch_nothing_is_simulated(monkeypatch):
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    assert lines("from pyblasgpu.gpu import backend; print(backend.SIMULATED)") == ["False"]
