"""Plans of arrays that pass for CuPy's: graphs and workspaces that are none."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import fake_device
import fake_kernels
import numpy as np

from pyblasgpu.gpu import launch, workspace

__all__ = ["FakeWorkspace", "Graph", "installed"]


class Graph:
    """Stands for `launch.Graph`; it is refused while `busy`."""

    made: list[Graph]
    busy = False

    def __init__(self, enqueue, device, by_priority=False):
        self.enqueue, self.streams = enqueue, []
        Graph.made.append(self)

    def launch(self, stream):
        if not Graph.busy:
            self.streams.append(stream)
            self.enqueue(stream)
        return not Graph.busy


class FakeWorkspace:
    """Stands for `workspace.OwnedWorkspace`."""

    held: set[int]

    def __init__(self, nbytes, device):
        self.buffer = np.full(nbytes + 256, 0xFF, np.uint8)
        self.address = self.buffer.ctypes.data + -self.buffer.ctypes.data % 256
        FakeWorkspace.held.add(self.address)
        weakref.finalize(self, FakeWorkspace.held.discard, self.address)


@contextmanager
def installed(monkeypatch) -> Iterator[fake_kernels.Kernels]:
    """The stand-ins are in place, and at the end no plan's memory is held."""
    log = fake_kernels.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", fake_device.cupy)
    monkeypatch.setattr(launch, "Graph", Graph)
    monkeypatch.setattr(workspace, "OwnedWorkspace", FakeWorkspace)
    Graph.made, Graph.busy, FakeWorkspace.held = [], False, set()
    gc.freeze()  # what other tests left is not gone through
    yield log
    gc.collect()
    gc.unfreeze()
    assert not log.sizes, "a run allocated"
    assert not FakeWorkspace.held
