"""Rates of copies between page-locked memory and a card, by bytes of a line and from one line to the next.

    python -m benchmarks.host_lines --out DIR [--gib 2] [--widths 8 16 20 24 32 64] [--pitches 32 64 128]
                                   [--kinds shared allocated]

Each copy takes other memory than the ones before, so that caches of the host hold none of it. `KINDS` of
`benchmarks.host_problems` are the kinds of memory. Widths and pitches are KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import cupy
import numpy as np

from benchmarks.host_problems import KINDS, nested_document, page_locked
from benchmarks.study import Namespace, Option, Row, Rows, Study, device_facts, main
from pyblasgpu.frontend.arrays.libraries import cupy_stream
from pyblasgpu.gpu import memory
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.transfers import Block, Stream, copy_down, copy_up
from pyblasgpu.testing.clocks import host_clock

COPY = 32 << 20  # bytes of a copy
MOVED = 512 << 20  # bytes of a measurement
ORDER = 8192  # of the products next to which lines are copied


class Lines:
    """Copies of lines that walk through memory of the host.

    Parameters
    ----------
    host : numpy.ndarray
        Bytes, page-locked.
    width, pitch : int
        Bytes of a line, and from one to the next.
    """

    def __init__(self, host: np.ndarray, width: int, pitch: int):
        self.width, self.pitch, self.lines = width, pitch, COPY // width
        step = self.lines * pitch
        # lines of a whole region, the next lines after them, as tiles of a matrix are
        places = [
            host.ctypes.data + first + column
            for first in range(0, host.nbytes - step + 1, step)
            for column in range(0, pitch - width + 1, width)
        ]
        self._places = cycle(places)

    def block(self) -> Block:
        return Block(next(self._places), self.width, self.lines, self.pitch, -1)


def rate(run: Callable[[], None], streams: list[Stream], repeats: int = 2) -> float:
    """GB/s of copies in a row."""

    def copies() -> None:
        for _ in range(MOVED // COPY):
            run()
        for stream in streams:
            memory.synchronize(stream.handle)

    return MOVED / min(host_clock(copies) for _ in range(repeats)) / 1e9


def measured(lines: Lines, streams: list[Stream], device: list[int]) -> Iterator[tuple[str, float]]:
    """By way of copying the GB/s in each direction."""
    up, down, *more = streams
    here = [Block(address, lines.width, lines.lines, lines.width, 0) for address in device]
    yield "up", rate(lambda: copy_up(here[0], lines.block(), up.handle), [up])
    yield "down", rate(lambda: copy_down(lines.block(), here[1], down.handle), [down])

    def both() -> None:
        copy_up(here[0], lines.block(), up.handle)
        copy_down(lines.block(), here[1], down.handle)

    yield "both", rate(both, [up, down])

    def shared() -> None:
        source, half = lines.block(), lines.lines // 2
        for first, stream in ((0, up), (half, more[0])):
            copy_up(here[0].lines_from(first, half), source.lines_from(first, half), stream.handle)

    yield "up, 2 streams", rate(shared, [up, more[0]])
    yield "up, kernel", rate(lambda: _by_kernel(lines.block(), device[0], up), [up])
    yield "up, beside products", _beside_products(lines, up, here[0])


def _beside_products(lines: Lines, up: Stream, target: Block) -> float:
    """GB/s of copies while the multiprocessors compute."""
    factor = cupy.ones((ORDER, ORDER))
    work = cupy.cuda.Stream(non_blocking=True)
    with work:
        product = factor @ factor
        work.synchronize()
        for _ in range(3):
            cupy.matmul(factor, factor, out=product)
    beside = rate(lambda: copy_up(target, lines.block(), up.handle), [up], 1)
    work.synchronize()
    return beside


def _by_kernel(source: Block, address: int, stream: Stream) -> None:
    """A kernel that reads the lines in memory of the host."""
    there, here = (
        cupy.ndarray(
            (source.lines, source.width // 8),
            np.float64,
            cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(at, 1 << 40, source, 0), 0),
            strides=(pitch, 8),
        )
        for at, pitch in ((source.address, source.pitch), (address, source.width))
    )
    with cupy_stream(cupy.cuda, 0, stream.handle):
        here[...] = there


def rows(options: Namespace) -> Rows:
    cupy.cuda.Device(0).use()
    with current_context(0):
        streams = [Stream(0) for _ in range(3)]
        device = [memory.allocate(COPY, 0, 0) for _ in range(2)]
        memory.synchronize(0)  # other streams use it
        # all at once: the driver knows pages by their addresses
        memories = {kind: page_locked(options.gib << 30, kind) for kind in options.kinds}
        for kind, host in memories.items():
            host[:: 1 << 12] = 1
            for pitch in options.pitches:
                for width in (each for each in options.widths if each <= pitch):
                    lines = Lines(host, width << 10, pitch << 10)
                    row = {"memory": kind, "width": width, "pitch": pitch}
                    yield {**row, **dict(measured(lines, streams, device))}


def facts(options: Namespace) -> Row:
    """Add what the system says of huge pages, of private memory and of shared one."""
    folder = Path("/sys/kernel/mm/transparent_hugepage")
    files = (folder / name for name in ("enabled", "shmem_enabled"))
    pages = {file.name: file.read_text().strip() for file in files if file.exists()}
    return {**device_facts(options), "gib": options.gib, "huge_pages": pages}


STUDY = Study(
    "host_lines",
    __doc__,
    rows,
    {
        "gib": Option(2, help="of each kind"),
        "widths": (8, 16, 20, 24, 32, 64),
        "pitches": (32, 64, 128),
        "kinds": Option(tuple(KINDS), KINDS),
    },
    facts,
    key="rows",
    document=nested_document,
)

if __name__ == "__main__":
    main(STUDY)
