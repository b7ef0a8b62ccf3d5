"""Equal inputs give equal bits: again, on another stream, in other memory, in another process."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.types import DTYPES

from .running import Placed, cupy, reals

SIZE = 129


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def inputs(letter: str):
    """A well-conditioned triangle, and a matrix."""
    a = np.tril(reals(DTYPES[letter], SIZE, SIZE, seed=1)) / SIZE + np.eye(SIZE)
    return np.asfortranarray(a.astype(DTYPES[letter].name)), reals(DTYPES[letter], SIZE, SIZE, seed=2)


def on_device(*matrices: np.ndarray) -> list:
    return [cupy.asarray(matrix, order="F") for matrix in matrices]


def bits(routine: str, left, right, **options) -> str:
    """Digest of the result, of CuPy or NumPy arrays."""
    flags = {} if routine == "gemm" else {"lower": True}
    result = getattr(pyblasgpu, routine)(left, right, **flags, **options)
    cupy.cuda.Device().synchronize()
    return digest(cupy.asnumpy(result))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", ["gemm", "trmm", "trsm"])
def test_bits_depend_on_the_values_alone(routine, letter):
    a, b = inputs(letter)
    left, right = on_device(a, b)
    digests = {"first": bits(routine, left, right)}
    for repeat in range(100):
        digests[f"repeat {repeat}"] = bits(routine, left, right)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    digests["another stream"] = bits(routine, left, right, stream=stream)
    digests["other leading strides"] = bits(routine, Placed(a, "F").array, Placed(b, "F").array)
    digests["odd leading strides"] = bits(routine, Placed(a, "F", False).array, Placed(b, "F", False).array)
    digests["from the host"] = bits(routine, a, b, backend="cuda")
    different = [name for name, value in digests.items() if value != digests["first"]]
    assert not different


PROCESS = """
from tests.gpu.test_bits import bits, inputs, on_device
left, right = on_device(*inputs("z"))
print(*(bits(routine, left, right) for routine in ("gemm", "trmm", "trsm")))
"""


def test_two_processes(pytestconfig):
    processes = [
        subprocess.run(
            [sys.executable, "-c", PROCESS],
            cwd=pytestconfig.rootpath,
            text=True,
            capture_output=True,
            timeout=300,
        )
        for _ in range(2)
    ]
    assert [process.returncode for process in processes] == [0, 0], processes[0].stderr[-500:]
    left, right = on_device(*inputs("z"))
    here = " ".join(bits(routine, left, right) for routine in ("gemm", "trmm", "trsm"))
    assert [process.stdout.strip() for process in processes] == [here, here]
