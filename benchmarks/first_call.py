"""What a first result costs, each in a fresh process: ours with an archive of kernels, without, and others'.

``python -m benchmarks.first_call [--out DIR] [--calls NAME ...]`` times, from the start of the interpreter to
a finished result and its second call: CuPy's ``matmul``, ``torch.mm``, and calls of this package on CuPy
arrays, with the archive that serves, and with empty caches and none. ``pyblasgpu build`` makes the archive.
The first process writes Python's bytecode and the others read it, as from an installed package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.study import Namespace, Option, Row, Rows, Study, main

ROUNDS = 3  # the least of so many processes counts; of such that compile one
LIMIT = 120.0  # seconds of a process

START = """
import sys, time
begun = float(sys.argv[1])
import cupy
def doubles(*shape):
    return cupy.asfortranarray(cupy.random.standard_normal(shape))
def singles(*shape):
    return cupy.asfortranarray(cupy.random.standard_normal(shape).astype("float32"))
def finish(call):
    call()
    cupy.cuda.Device().synchronize()
"""
END = """
finish(call)
first = time.time() - begun
then = time.time()
finish(call)
print(first, time.time() - then, flush=True)
"""
OURS = {
    "dgemm 1000": """
a, b, c = (doubles(1000, 1000) for _ in range(3))
call = lambda: pb.gemm(a, b, out=c)
""",
    "sgemm 3000, A transposed": """
a, c = singles(3000, 3000), singles(3000, 3000)
call = lambda: pb.gemm(a, a, trans_a="T", out=c)
""",
    "dtrsm 4096": """
t, b = doubles(4096, 4096), doubles(4096, 4096)
t = cupy.asfortranarray(cupy.tril(t) * 0.01 + 4 * cupy.eye(4096))
call = lambda: pb.trsm(t, b, lower=True, out=b)
""",
    "dtrmm 4096": """
t, b = doubles(4096, 4096), doubles(4096, 4096)
call = lambda: pb.trmm(t, b, lower=True, out=b)
""",
    "dsyrk 4096": """
a = doubles(4096, 4096)
call = lambda: pb.syrk(a, lower=True)
""",
    "ssymm 3000": """
a, b = singles(3000, 3000), singles(3000, 3000)
call = lambda: pb.symm(a, b, lower=True)
""",
    "30 dgemms of random orders": """
import numpy as np
orders = [int(n) for n in np.random.default_rng(0).integers(20, 2500, 30)]
pairs = [(doubles(n, n), doubles(n, n)) for n in orders]
call = lambda: [pb.gemm(a, b) for a, b in pairs]
""",
}
CALLS = {name: "import pyblasgpu as pb\n" + text for name, text in OURS.items()}
OTHERS = {
    "cupy matmul, 1000": """
a, b = doubles(1000, 1000), doubles(1000, 1000)
call = lambda: a @ b
""",
    "torch.mm, 1000": """
import torch
a, b = (torch.randn(1000, 1000, dtype=torch.float64, device="cuda") for _ in range(2))
def finish(call):
    call()
    torch.cuda.synchronize()
call = lambda: torch.mm(a, b)
""",
}


def seconds(program: str, rounds: int = ROUNDS, start: str = START, **variables: str) -> Row:
    """The least seconds to the first result, and of the second call, of several fresh processes.

    `program` makes ``call``, and ``finish(call)``, which returns when its result is there, where `start` does
    not.
    """
    times: list[tuple[float, float]] = []
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | variables
    for _ in range(rounds):
        command = [sys.executable, "-c", start + program + END, str(time.time())]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            return {"problem": done.stderr.strip().splitlines()[-1:]}
        first, second = map(float, done.stdout.split()[-2:])
        times.append((first, second))
    return {"first": min(first for first, _ in times), "second": min(second for _, second in times)}


def rows(options: Namespace) -> Rows:
    for name, program in {**OTHERS, **{name: CALLS[name] for name in options.calls}}.items():
        yield {"call": name, **seconds(program)}
    for name in options.calls:
        with tempfile.TemporaryDirectory() as home:  # empty caches
            times = seconds(CALLS[name], 1, PYBLASGPU_HOME=home, PYBLASGPU_ARCHIVES="0")
        yield {"call": f"{name}, no archive", **times}


def document(facts: Row, lists: dict[str, list[Row]]) -> dict[str, Any]:
    return {row["call"]: {k: v for k, v in row.items() if k != "call"} for row in lists["results"]}


STUDY = Study(
    "first_call",
    __doc__,
    rows,
    {"calls": Option(tuple(CALLS), CALLS)},
    lambda options: {},
    document=document,
    folder=Path(),
)

if __name__ == "__main__":
    main(STUDY)
