"""Each wait of the engine is needed: without it the fake cards see a race, or a result is wrong."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path

import pytest
from tiled_runs import problem

from pyblasgpu.engine import executor
from pyblasgpu.engine.cards import wait_for
from pyblasgpu.engine.executor import TaskExecutor
from pyblasgpu.engine.host_traffic import HostTraffic
from pyblasgpu.engine.tile_cache import TileCache
from pyblasgpu.engine.uploads import Upload

#: Runs that need every wait between them: kind, devices, slots, what is page-locked, whether tasks are dealt
#: at random.
RUNS = [
    ("gemm_new", (0,), 4, "", False),
    ("gemm_new", (0, 1), 4, "abc", False),
    ("trsm", (0, 1), 5, "b", False),
    ("trsm", (0,), 3, "a", False),
    ("potrf", (0, 1, 2), 5, "", False),
    ("potrf", (0, 1), 3, "a", False),
    ("trmm", (0, 1, 2), 9, "", True),
    ("trmm", (0, 1, 2), 4, "a", True),
    ("chain", (0, 1, 2), 30, "", True),
]


LINES = Path(executor.__file__).read_text().splitlines()


def fails(fake_cards, runs=RUNS, seeds=range(3)) -> bool:
    """Whether any of the runs goes wrong."""
    for seed in seeds:
        for kind, devices, slots, locked, scattered in runs:
            p, driver = problem(kind, size=2, seed=seed), fake_cards(seed=seed, eagerness=0.2 * seed)
            try:
                p.run(driver, devices, slots=slots, locked=locked, scatter=seed if scattered else None)
                p.check()
            except (AssertionError, KeyError, MemoryError):
                return True
    return False


def sites(fake_cards, monkeypatch) -> list[str]:
    """The lines of the executor that wait, and for what: 'ready' or 'uses'."""
    waits = set()

    def note(stream, marks):
        line = sys._getframe(1).f_lineno
        waits.update((line, part) for part, kept in parts(marks).items() if kept)
        wait_for(stream, marks)

    monkeypatch.setattr(executor, "wait_for", note)
    assert not fails(fake_cards, seeds=(0,))
    monkeypatch.undo()
    return sorted(waits)


def parts(marks) -> dict[str, list]:
    marks = list(marks)
    return {"first": marks[:1], "others": marks[1:]}


def test_every_wait_is_needed(fake_cards, monkeypatch):
    """But that of a fetch for what the slot holds: that has been used, and the use waited for it."""
    left = []
    for line, part in sites(fake_cards, monkeypatch):
        if part == "first" and "copy.marks" in LINES[line - 1] and "compute" not in LINES[line - 1]:
            continue

        def without(stream, marks, line=line, part=part):
            here = sys._getframe(1).f_lineno == line
            wait_for(
                stream,
                [m for name, kept in parts(marks).items() if not (here and name == part) for m in kept],
            )

        with monkeypatch.context() as patch:
            patch.setattr(executor, "wait_for", without)
            if not fails(fake_cards):
                left.append((line, part))
    assert not left


#: What may go wrong elsewhere: the class, its method, the text and what stands there instead.
PLANTS = {
    "a free slot forgets who reads it": (TileCache, "drop", "dict(copy.uses)", "{}"),
    "a buffer is free at once": (
        Upload,
        "_send",
        "give(buffer, event)",
        "give(buffer)",
    ),
    "a thread writes before the download": (HostTraffic, "_write", "event.join()", "pass"),
    "a thread reads before the download": (Upload, "_send", "ready()", "pass"),
    "an upload overtakes the download": (HostTraffic, "upload", "job.hold_back(card.up)", "pass"),
    "an old copy counts as new": (
        TaskExecutor,
        "_newest_elsewhere",
        "copy.version == version",
        "copy.version >= 0",
    ),
    "an old copy goes home": (TaskExecutor, "_written", "cache.copies[tile].is_dirty = False", "pass"),
    "a tile is fetched before it is written": (
        TaskExecutor,
        "_request",
        "_unwritten.update(self.tasks[number].writes)",
        "_unwritten",
    ),
    "what was spilled is read from the source": (
        TaskExecutor,
        "_begin_fetch",
        "home_versions[copy.tile] > 0",
        "tasks is None",
    ),
    "an import is forgotten": (TaskExecutor, "_begin_import", "copy.pins += 1", "copy.pins += 0"),
    "what is requested gives way": (TileCache, "victim", "and not copy.pins", ""),
    "what nobody else has is dropped": (TaskExecutor, "_evict", "copy.is_dirty", "False"),
}


def plant(monkeypatch, owner, name: str, before: str, after: str) -> None:
    """Put `after` in place of `before` in the text of a method."""
    function = owner.__dict__[name]
    is_static = isinstance(function, staticmethod)
    text = textwrap.dedent(inspect.getsource(function.__func__ if is_static else function))
    assert text.count(before) == 1
    scope = {}
    text = text.replace(before, after).replace("@staticmethod\n", "")
    exec(text, vars(sys.modules[owner.__module__]), scope)
    monkeypatch.setattr(owner, name, staticmethod(scope[name]) if is_static else scope[name])


#: Makes threads that write late.
LATE = (HostTraffic, "_write", "event.join()", "__import__('time').sleep(0.003), event.join()")


@pytest.mark.parametrize("defect", PLANTS)
def test_a_defect_is_seen(fake_cards, monkeypatch, defect):
    plant(monkeypatch, *PLANTS[defect])
    if "reads before" in defect:
        plant(monkeypatch, *LATE)
    assert fails(fake_cards)
