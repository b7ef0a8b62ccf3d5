"""How else a product might be run: with every winner, and with the likeliest of the space."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from pyblasgpu.database import families_of
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.dispatch.overrides import KernelChoice
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.device import Device
from pyblasgpu.processes import cores
from pyblasgpu.testing.problems import Problem
from pyblasgpu.tuning.compile_pool import judge
from pyblasgpu.tuning.prune import best_few, candidates

from .kernels import choice_of, compiled

EFFORT = "normal"
SPACE = "space"  # the origin of what no file has
ALIKE = 2  # of the best by score, those with the same block of C

Extents = tuple[int, int, int]


class Case(NamedTuple):
    """One product, how the library would run it, and how else it might be run."""

    problem: Problem
    chosen: KernelChoice
    alternatives: tuple[KernelChoice, ...]


def layout_of(problem: Problem) -> str:
    """The layout of A and B of a product, as `select` calls it."""
    return problem.variant.lower()


def extents_of(problem: Problem) -> Extents:
    """m, n and k."""
    return problem.case.m, problem.case.n, problem.case.k


def spaces(problems: Iterable[Problem], device: Device) -> dict[tuple[str, str], list[Any]]:
    """The candidates of all families at the extents of `problems`, by dtype and layout."""
    extents: dict[tuple[str, str], list[Extents]] = {}
    for problem in problems:
        extents.setdefault((problem.dtype.letter, layout_of(problem)), []).append(extents_of(problem))
    jobs = [
        (stem, dtype, layout, device, of_layout)
        for (dtype, layout), of_layout in extents.items()
        for stem in families_of("gemm", dtype)
    ]
    left: dict[tuple[str, str], list[Any]] = {}
    workers = min(cores(), len(jobs))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for (_, dtype, layout, *_), configs in zip(jobs, pool.map(_space, jobs), strict=True):
            left.setdefault((dtype, layout), []).extend(configs)
    return left


def _space(job: tuple[str, str, str, Device, list[Extents]]) -> list[Any]:
    stem, dtype, layout, device, extents = job
    return candidates(stem, dtype, layout, device, EFFORT, problems=extents).left


def cases_of(problems: Sequence[Problem], top: int, splits: Sequence[int], device: Device) -> list[Case]:
    """A case of each product, as `case_of`."""
    configs = spaces(problems, device)
    return [case_of(p, configs[p.dtype.letter, layout_of(p)], top, splits, device) for p in problems]


def case_of(problem: Problem, space: Iterable[Any], top: int, splits: Sequence[int], device: Device) -> Case:
    """The alternatives: all winners and the `top` best of `space`.

    k is uncut, as cut as chosen, and in `splits`; of packed operands what was chosen alone.
    """
    layout, shape = layout_of(problem), extents_of(problem)
    chosen = choice_of(problem.dtype, layout, shape, device)
    configs = tuned_configs("gemm", problem.dtype, layout, device)
    configs.setdefault(chosen.config, chosen.origin)
    for config in best_few(space, shape, device, top, ALIKE):
        configs.setdefault(config, SPACE)
    counts = dict.fromkeys((1, chosen.splits, *splits))
    alternatives = [
        KernelChoice(config, origin, count)
        for config, origin in configs.items()
        for count in counts
        if not config.packed
    ]
    others = (alternative for alternative in alternatives if _run(alternative) != _run(chosen))
    return Case(problem, chosen, tuple(others))


def _run(choice: KernelChoice) -> tuple[Any, int]:
    return choice.config, choice.splits


def compile_kernels(cases: Sequence[Case], device: Device) -> list[Case]:
    """Put the kernels of `cases` into the store of cubins.

    Returns the cases without those alternatives from the space that the compiler's report speaks against.
    """
    configs = dict.fromkeys(run.config for case in cases for run in (case.chosen, *case.alternatives))
    print(f"{len(configs)} kernels, {len(cases)} products, {_count(cases)} alternatives", file=sys.stderr)
    reports = compiled(configs, device, "compiling")
    dropped = {config for config, report in reports.items() if judge(config, report, device).outcome != "ok"}

    def stays(case: Case, run: KernelChoice) -> bool:
        kernel = run.config
        if run.origin != SPACE and isinstance(reports[kernel], str):
            raise PyblasgpuError(f"{kernel} does not compile: {reports[kernel]}")
        return run.origin != SPACE or kernel not in dropped

    left = [
        case._replace(
            alternatives=tuple(alternative for alternative in case.alternatives if stays(case, alternative))
        )
        for case in cases
        if stays(case, case.chosen)
    ]
    print(f"compiled; {_count(cases) - _count(left)} alternatives are dropped", file=sys.stderr)
    return left


def _count(cases: Iterable[Case]) -> int:
    return sum(len(case.alternatives) for case in cases)
