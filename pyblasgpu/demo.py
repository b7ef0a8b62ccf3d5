"""``pyblasgpu demo``: GEMM, TRMM and TRSM in s, d, c, z at sizes that matter, timed, and checked.

``python -m pyblasgpu.demo --simulated`` runs one small tile of each kernel in Numba's simulator and prints
its rows as lines of JSON; the demo starts it as a process of its own, because Numba decides on the simulator
when it is first imported.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import terminal
from .api.explain import sources_of
from .cpu.numba import device as processor
from .cpu.numba import tuned_gemm
from .errors import BackendUnavailable, PyblasgpuError, lacking
from .frontend.backend_status import backend_status
from .gpu import backend as gpu
from .kernels.compile_ahead import compile_missing
from .testing.clocks import device_clock, host_clock, median_seconds
from .testing.cublas import Cublas
from .testing.cublas import load as load_cublas
from .testing.problems import ROUTINES, Arrays, Problem
from .types import DTYPES

__all__ = ["DemoResult", "collect", "compile_kernels", "show", "simulated", "with_data"]

SIZES = {"cuda": 4096, "cpu": 1024, "numba": 1024, "sim": 33}
REPEATS = 3
PREPARED = 4  # problems whose data are drawn at a time


@dataclass(frozen=True)
class DemoResult:
    """One line of the demo.

    Attributes
    ----------
    routine, dtype : str
        'gemm', 'trmm' or 'trsm', and the letter.
    n : int
        Order of all matrices.
    where : str
        The backend: 'cuda', 'cpu' or 'sim'.
    seconds, tflops : float
        Median of a few calls, data in place; TFLOP/s count 2n³ (gemm) or n³, four times that if complex.
    error : float
        Largest sampled error over its bound; the check holds up to 1.
    configs : list of (str, str, str)
        Kernel, its Config, and its level of the database.
    cublas_seconds : float or None
        cuBLAS on the same data in the same process.
    """

    routine: str
    dtype: str
    n: int
    where: str
    seconds: float
    tflops: float
    error: float
    configs: list[tuple[str, str, str]] = field(default_factory=list)
    cublas_seconds: float | None = None

    @property
    def passed(self) -> bool:
        return self.error <= 1


def _problems(n: int) -> Iterator[Problem]:
    for dtype in DTYPES.values():
        for routine in ROUTINES:
            variant = "NN" if routine == "gemm" else "LLNN"
            yield Problem.square(routine, dtype, variant, n, alpha=0.75, beta=-0.5)


def with_data(problems: Iterable[Problem]) -> Iterator[tuple[Problem, Arrays]]:
    """Problems and their data, which threads draw ahead: random numbers take longer than the device."""
    ready: deque[tuple[Problem, Future[Arrays]]] = deque()
    with ThreadPoolExecutor(PREPARED) as pool:
        for problem in problems:
            ready.append((problem, pool.submit(problem.data)))
            if len(ready) == PREPARED:
                first, data = ready.popleft()
                yield first, data.result()
        for last, data in ready:
            yield last, data.result()


def compile_kernels(problems: Iterable[Problem]) -> None:
    """Have the kernels of all problems compiled at once, those that nobody has built."""
    compiled_for = [
        sources_of(problem.routine, problem.dtype.letter, problem.case.m, problem.case.n)
        for problem in problems
    ]
    compile_missing([source for _, sources in compiled_for for source in sources], compiled_for[0][0].cc)


class _Host:
    """Memory and clock of the CPU; the simulator's too."""

    @staticmethod
    def put(x: np.ndarray) -> np.ndarray:
        return x.copy(order="F")

    @staticmethod
    def get(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def copy(target: np.ndarray, source: np.ndarray) -> None:
        target[...] = source

    clock = staticmethod(host_clock)


class _Gpu:
    """Memory of the current device, and events of its default stream."""

    def __init__(self) -> None:
        self.put, self.clock = gpu.cuda.to_device, device_clock(device=gpu.cuda.get_current_device().id)

    @staticmethod
    def get(x: Any) -> np.ndarray:
        return x.copy_to_host()

    @staticmethod
    def copy(target: Any, source: Any) -> None:
        target.copy_to_device(source)


def _time(machine: Any, x: Arrays, original: Any, call: Callable[[], None], repeats: int) -> float:
    """Median seconds of `call`, each on the original data; with `repeats`, the first call is not counted."""
    return median_seconds(call, machine.clock, lambda: machine.copy(x.out, original), repeats)


def _measure(
    problem: Problem,
    data: Arrays,
    machine: Any,
    where: str,
    repeats: int = REPEATS,
    cublas: Cublas | None = None,
) -> DemoResult:
    x, original = data.map(machine.put), machine.put(data.out)
    seconds = _time(machine, x, original, lambda: problem.ours(x, where), repeats)
    error = problem.error(data, machine.get(x.out))
    cublas_seconds = None
    if cublas is not None:
        cublas_seconds = _time(machine, x, original, lambda: problem.cublas(cublas, x), repeats)
    configs = _configs(problem, where)
    tflops = problem.flops / seconds / 1e12
    return DemoResult(
        problem.routine,
        problem.dtype.letter,
        problem.case.n,
        where,
        seconds,
        tflops,
        error,
        configs,
        cublas_seconds,
    )


def _configs(problem: Problem, where: str) -> list[tuple[str, str, str]]:
    """Kernel, Config and origin of what runs there."""
    if where == "cpu":
        return [("scipy.linalg.blas", "", "cpu backend")]
    if where == "numba":
        config, origin = tuned_gemm.choose(problem.dtype.letter, processor.current())
        return [(config.STEM, str(config), origin)]
    return problem.explain()


def collect(
    n: int | None = None, progress: Callable[[str], None] = lambda text: None
) -> Iterator[DemoResult]:
    """The rows of the demo, one after another: on the device if there is one, else on CPU and simulator.

    Parameters
    ----------
    n : int, optional
        Order of the matrices, instead of 4096 on a device, 1024 on the CPU.
    progress : callable
        Receives the name of the next step.
    """
    where = backend_status().backend
    machine = _Gpu() if where == "cuda" else _Host()
    cublas = _cublas() if where == "cuda" else None
    problems = list(_problems(n or SIZES[where]))
    prepared: Iterator[tuple[Problem, Arrays]] = ((problem, problem.data()) for problem in problems)
    if where == "cuda":
        progress("kernels")
        compile_kernels(problems)
        prepared = with_data(problems)  # on a processor threads would disturb what is timed
    for problem, data in prepared:
        progress(f"{problem.dtype.letter}{problem.routine} on {where}")
        yield _measure(problem, data, machine, where, cublas=cublas)
    if where == "cpu":
        progress("one tile of each kernel in Numba's simulator")
        yield from simulated()


def _cublas() -> Cublas | None:
    try:
        return load_cublas()
    except BackendUnavailable:
        return None


def simulated() -> Iterator[DemoResult]:
    """The rows of a process in which Numba simulates; none where it cannot."""
    if _why_not_simulated():
        return
    environment = dict(os.environ, NUMBA_ENABLE_CUDASIM="1", PYBLASGPU_BACKEND="sim")
    command = [sys.executable, "-m", "pyblasgpu.demo", "--simulated"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout
        for line in process.stdout:
            yield DemoResult(**json.loads(line))
    if process.returncode:
        raise PyblasgpuError(f"the simulator's process ended with exit code {process.returncode}")


def _why_not_simulated() -> str:
    """Return why the simulator is unavailable, and how to install it."""
    reason = gpu.why_unavailable()
    if reason and find_spec("numba_cuda") is not None:  # else Numba's own simulator serves
        return reason
    try:
        import_module("greenlet")
    except ImportError as missing:
        return lacking(missing, "sim")
    return ""


def show(rows: list[DemoResult], console: Console, verbose: bool = False) -> None:
    """Print the table of results, where they were computed, and how many passed; Configs if `verbose`."""
    with_cublas = any(row.cublas_seconds for row in rows)
    table = Table(title="pyblasgpu demo")
    for name in (
        "routine",
        "n",
        "on",
        "seconds",
        "TFLOP/s",
        *(["cuBLAS s"] if with_cublas else []),
        "error/bound",
    ):
        table.add_column(name, justify="left" if name in ("routine", "on") else "right", no_wrap=True)
    table.add_column("kernel (Config from)")
    for row in rows:
        table.add_row(*_cells(row, with_cublas))
    console.print(table)
    if verbose:
        _show_configs(rows, console)
    console.print(_where(rows), highlight=False, soft_wrap=True)
    passed = sum(row.passed for row in rows)
    console.print(f"{passed} of {len(rows)} results within their error bound")


def _cells(row: DemoResult, with_cublas: bool) -> list[str | Text]:
    """A line of the table, with a column for cuBLAS if `with_cublas`."""
    speed = "" if row.where == "sim" else f"{row.tflops:.3g}"
    cells = [f"{row.dtype}{row.routine}", str(row.n), row.where, f"{row.seconds:.2e}", speed]
    if with_cublas:
        cells.append(f"{row.cublas_seconds:.2e}" if row.cublas_seconds else "")
    error = Text(f"{row.error:.2g}", style="green" if row.passed else "bold red")
    kernels = dict.fromkeys(
        f"{config if stem == 'algorithm' else stem} ({origin})" for stem, config, origin in row.configs
    )
    return [*cells, error, ", ".join(kernels)]


def _where(rows: list[DemoResult]) -> str:
    """The backend and its reason, and why the kernels were not simulated where they were not."""
    backend, reason = backend_status()
    missing = _why_not_simulated() if any(row.where == "cpu" for row in rows) else ""
    return f"backend {backend}: {reason}" + (f"; no kernel was run: {missing}" if missing else "")


def _show_configs(rows: list[DemoResult], console: Console) -> None:
    configs = dict.fromkeys(
        (row.dtype, stem, config, origin) for row in rows for stem, config, origin in row.configs if config
    )
    if configs:
        table = Table("dtype", "kernel", "Config", "from", title="Configs")
        for config in configs:
            table.add_row(*config)
        console.print(table)


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pyblasgpu.demo", description=__doc__)
    parser.add_argument("--simulated", action="store_true", required=True)
    parser.parse_args()
    for problem in _problems(SIZES["sim"]):
        row = _measure(problem, problem.data(), _Host(), "sim", repeats=0)
        print(json.dumps(asdict(row)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(terminal.guarded(["pyblasgpu.demo"], _main))
