"""Compile the kernels that the tests will need, many at a time: one by one they would take half an hour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pyblasgpu.database import FAMILIES, FIXED, families_of
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.gpu.build.compile import KernelSource, compile_source, kept
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.copy import copy_scaled
from pyblasgpu.kernels.registry import family_of, source_of
from pyblasgpu.processes import cores
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.types import DTYPES


def sources_of(calls: Iterable) -> list[KernelSource]:
    """The kernels that `calls` would launch; none is loaded or run."""
    sources: dict[KernelSource, None] = {}

    def note(launches: LaunchList, *_):
        sources.update((step.source, None) for step in launches.entries)
        return lambda bases, stream: None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaunchList, "bound", note)
        call_cache.clear()
        for call in calls:
            call()
    call_cache.clear()  # what was kept runs nothing
    return list(sources)


def every_variant(letter: str, m: int, n: int, k: int) -> list[KernelSource]:
    """The kernels for products of this size with operands that lie in any way."""
    sources = [copy_scaled.source(FIXED[copy_scaled.STEM].config(letter, "", {}))]
    for stem in families_of("gemm", letter):
        for layout in FAMILIES[stem].layouts:
            sources += of_products(select(stem, DTYPES[letter], layout, (m, n, k), current()).config)
    return sources


def of_products(config: Any) -> list[KernelSource]:
    """The kernels of a Config of GEMM, those with conjugates too."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    return [family_of(config.STEM).source(config, conj=conj) for conj in conjs]


def asked_for(
    name: str, runs: Callable[[str], Iterable], algorithm: str, *others: str
) -> tuple[Callable, Callable]:
    """Fixtures of a module whose tests run with the override `name` for an `algorithm`: the kernels of
    ``runs(letter)`` of all dtypes are compiled, also for `others`, and it is in force.
    """

    def start(run, value):
        with override(name, value):
            return run.start()

    @pytest.fixture(scope="module", autouse=True)
    def compiled(compile_once, request) -> None:
        ways = product(DTYPES, (algorithm, *others))
        calls = (partial(start, run, value) for letter, value in ways for run in runs(letter))
        compile_once(request.module.__name__, lambda: sources_of(calls))

    @pytest.fixture(autouse=True)
    def in_force() -> Iterator[None]:
        with override(name, algorithm):
            yield

    return compiled, in_force


class Once:
    """Compiles what a module of tests needs, in the first worker that comes to it; others wait meanwhile.

    Parameters
    ----------
    folder : Path
        That the workers of a test run share, and no other run.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def __call__(self, name: str, find: Callable[[], Iterable[KernelSource]]) -> None:
        """Put the kernels of `find`, which go by `name`, into the store of cubins."""
        done = self._folder / f"{name}.compiled"
        if done.exists():  # whatever is compiled for others now
            return
        with FileLock(self._folder / "compiling.lock"):
            if not done.exists():
                compile_all(list(dict.fromkeys(find())), current().cc)
                done.touch()


def compile_all(sources: list[KernelSource], cc: tuple[int, int]) -> None:
    """Compile into the store of cubins what of `sources` it lacks, in processes of their own."""
    missing = [source for source in sources if kept(source, cc) is None]
    if missing:
        jobs = [(source.name, source.config, source.flags, cc) for source in missing]
        with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
            list(pool.map(_compile, jobs))


def _compile(job: tuple) -> None:
    name, config, flags, cc = job
    compile_source(source_of(name, config, flags), cc)  # a source does not go to another process
