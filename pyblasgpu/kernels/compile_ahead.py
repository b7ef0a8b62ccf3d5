"""Compile at once the kernels of a call that nobody has built, on several cores."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from ..gpu import backend, device
from ..gpu.build.compile import (
    Compiled,
    KernelSource,
    architecture,
    archives_for,
    compile_here,
    compile_source,
    kept,
    remember,
    seconds_of,
)

if TYPE_CHECKING:
    import subprocess
    from multiprocessing.connection import Connection

__all__ = ["WORKER", "compile_missing", "ensure_compiled", "noticed", "worker_main"]

_log = logging.getLogger("pyblasgpu")
noticed: set[str] = set()  # architectures of which a notice was printed

#: Program of a worker process. A process of multiprocessing would run the caller's script once more.
WORKER = """
import sys
sys.path[:] = {path!r}
from pyblasgpu.kernels.compile_ahead import worker_main
worker_main()
"""


def ensure_compiled(sources: Sequence[KernelSource], ordinal: int) -> None:
    """Compile what of `sources` is kept nowhere for the device `ordinal`."""
    if backend.SIMULATED:
        return
    cc = device.current(ordinal).cc
    if any(kept(source, cc) is None for source in sources):
        compile_missing(sources, cc)


def compile_missing(sources: Iterable[KernelSource], cc: tuple[int, int]) -> None:
    """Compile what is kept nowhere, each kernel in a process of its own where there are cores.

    What fails in another process is compiled in this one when it is loaded, and raises there.

    Raises
    ------
    CompileError
        With the compiler's log.
    """
    missing = [source for source in dict.fromkeys(sources) if kept(source, cc) is None]
    if not missing or backend.why_unavailable():
        return
    from ..processes import cores  # where nothing is compiled nothing is imported

    shares = min(cores(), len(missing))
    _announce(len(missing), shares, cc)
    mine, *others = (missing[first::shares] for first in range(shares))
    with _workers(others, cc) as processes:
        for source in mine:
            compile_source(source, cc)
        for share, process in zip(others, processes, strict=False):
            for source, compiled in zip(share, _answer(process), strict=False):
                if compiled is not None:
                    remember(source, cc, compiled)


def _announce(count: int, shares: int, cc: tuple[int, int]) -> None:
    """Log what is compiled and how long it takes; print it once, with the command that does it ahead."""
    from ..terminal import duration, notice  # where nothing is compiled nothing is imported

    name = architecture(cc)
    what = "1 kernel" if count == 1 else f"{count} kernels in {shares} processes"
    text = f"compiling {what} for {name}, about {duration(seconds_of(count, shares))}"
    _log.info("%s", text)
    if name in noticed:
        return
    noticed.add(name)
    advice = "`pyblasgpu build` compiles the kernels of all calls ahead"
    notice(f"{text}; {'the archive lacks what an override names' if archives_for(cc) else advice}")


@contextmanager
def _workers(
    shares: Sequence[Sequence[KernelSource]], cc: tuple[int, int]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A process for each share, at work; none is left behind."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with suppress(OSError):  # where no interpreter can be started, as in one that is embedded
            for share in shares:
                processes.append(_started(share, cc))
        yield processes
    finally:
        for process in processes:
            process.kill()
            with process:  # closes its pipes, and waits
                pass


def _started(share: Sequence[KernelSource], cc: tuple[int, int]) -> subprocess.Popen[bytes]:
    import subprocess  # where nothing is compiled nothing is imported

    program = WORKER.format(path=sys.path)
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    jobs = [(source.name, source.config, source.flags) for source in share]
    with suppress(BrokenPipeError):  # of a process that is dead already
        assert process.stdin
        with process.stdin as pipe, _channel(pipe, writable=True) as channel:
            channel.send((jobs, cc))
    return process


def _answer(process: subprocess.Popen[bytes]) -> list[Compiled | None]:
    """Return the kernels that a worker has compiled, None for each failure; empty if it died."""
    assert process.stdout
    answer: list[Compiled | None] = []
    # one that dies on the way ends its message
    with suppress(EOFError, OSError), _channel(process.stdout, writable=False) as channel:
        answer = channel.recv()
    return answer if process.wait() == 0 else []


def _channel(pipe: IO[bytes], writable: bool) -> Connection:
    """Return a connection that sends objects through a pipe, or receives them."""
    from multiprocessing.connection import Connection  # where nothing is compiled nothing is imported

    return Connection(os.dup(pipe.fileno()), readable=not writable, writable=writable)


def worker_main() -> None:
    """Compile the kernels from standard input, and write them to standard output."""
    import signal

    from .registry import source_of

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits, which ends this one
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    with _channel(sys.stdin.buffer, writable=False) as channel:
        jobs, cc = channel.recv()
    with _channel(stdout, writable=True) as channel:
        channel.send([_compiled(source_of(*job), cc) for job in jobs])


def _compiled(source: KernelSource, cc: tuple[int, int]) -> Compiled | None:
    try:
        return compile_here(source, cc)
    except Exception:
        return None  # it is raised where the kernel is needed
