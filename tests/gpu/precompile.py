"""Compile the kernels that the tests will need, many at a time: one by one they would take half an hour."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

import pytest

from pyblasgpu.gpu.compile import KernelSource, compile_source
from pyblasgpu.kernels.triangle import Variant
from pyblasgpu.routines.tape import Tape


def sources_of(calls: Iterable) -> list[KernelSource]:
    """The kernels that `calls` would launch; none is loaded or run."""
    found: dict[KernelSource, None] = {}

    def note(tape: Tape, *_) -> None:
        found.update((step.source, None) for step in tape._steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tape, "run", note)
        for call in calls:
            call()
    return list(found)


def compile_all(sources: list[KernelSource], cc: tuple[int, int]) -> None:
    """Compile `sources` into the store of cubins, in processes of their own."""
    jobs = [(source.name, source.config, source.flags, cc) for source in sources]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        list(pool.map(_compile, jobs))


def _compile(job: tuple) -> None:
    name, config, flags, cc = job
    module = import_module(f"pyblasgpu.kernels.{name}")
    # a source holds a function, and does not go to another process
    if name.endswith("_leaf"):
        source = module.source(config, Variant(**dict(flags)))
    else:
        source = module.source(config, **dict(flags))
    compile_source(source, cc)
