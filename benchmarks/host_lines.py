"""Rates of copies between page-locked memory and a card, by bytes of a line and from one line to the next.

    python -m benchmarks.host_lines --out DIR [--gib 4] [--widths 8 16 32 64] [--pitches 32 64 128]

Each copy takes other memory than the ones before, so that caches of the host hold none of it. Memory is that
of the system on small pages or on huge ones, locked by cuMemHostRegister, or allocated by cuMemHostAlloc.
"""

from __future__ import annotations

import argparse
import mmap
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import cupy
import cupyx
import numpy as np

from benchmarks.host_problems import page_locked, write
from pyblasgpu.gpu import memory
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.transfers import Block, Stream, copy_down, copy_up

__all__ = ["Lines", "main"]

COPY = 32 << 20  # bytes of a copy
MOVED = 512 << 20  # bytes of a measurement


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
        # lines of a whole region, the next lines beside them, as tiles of a matrix lie
        places = [
            host.ctypes.data + first + column
            for first in range(0, host.nbytes - step + 1, step)
            for column in range(0, pitch - width + 1, width)
        ]
        self._places = cycle(places)

    def block(self) -> Block:
        return Block(next(self._places), self.width, self.lines, self.pitch, -1)


def rate(run: Callable[[], None], streams: list[Stream]) -> float:
    """GB/s of copies in a row."""
    count = MOVED // COPY
    times = []
    for _ in range(2):
        start = time.perf_counter()
        for _ in range(count):
            run()
        for stream in streams:
            memory.synchronize(stream.handle)
        times.append(time.perf_counter() - start)
    return MOVED / min(times) / 1e9


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


def _by_kernel(source: Block, address: int, stream: Stream) -> None:
    """A kernel that reads the lines where they lie in memory of the host."""
    there, here = (
        cupy.ndarray(
            (source.lines, source.width // 8),
            np.float64,
            cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(at, 1 << 40, source, 0), 0),
            strides=(pitch, 8),
        )
        for at, pitch in ((source.address, source.pitch), (address, source.width))
    )
    with cupy.cuda.ExternalStream(stream.handle):
        here[...] = there


def regions(nbytes: int) -> Iterator[tuple[str, np.ndarray]]:
    """Page-locked memory of each kind; one at a time."""
    for kind, advice in (("huge pages", mmap.MADV_HUGEPAGE), ("small pages", mmap.MADV_NOHUGEPAGE)):
        yield kind, np.frombuffer(page_locked(nbytes, advice), np.uint8)
    yield "cuMemHostAlloc", cupyx.empty_pinned(nbytes, np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--widths", type=int, nargs="+", default=(8, 16, 32, 64), help="KiB")
    parser.add_argument("--pitches", type=int, nargs="+", default=(32, 64, 128), help="KiB")
    given = parser.parse_args()
    cupy.cuda.Device(0).use()
    rows: list[dict[str, Any]] = []
    with current_context(0):
        streams = [Stream(0) for _ in range(3)]
        device = [memory.allocate(COPY, 0, 0) for _ in range(2)]
        for kind, host in regions(given.gib << 30):
            host[:: 1 << 12] = 1
            for pitch in given.pitches:
                for width in (each for each in given.widths if each <= pitch):
                    lines = Lines(host, width << 10, pitch << 10)
                    row = {"memory": kind, "width": width, "pitch": pitch}
                    rows.append({**row, **dict(measured(lines, streams, device))})
                    print({k: round(x, 1) if isinstance(x, float) else x for k, x in rows[-1].items()})
            write(given.out, "host_lines", {"gib": given.gib}, rows)


if __name__ == "__main__":
    main()
