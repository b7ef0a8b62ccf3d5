"""``pyblasgpu build``: kernels compiled ahead, without a GPU, into an archive for each architecture.

A run takes over what an earlier one has built, also one that was killed. Runs at the same time wait for each
other, and then find the archive there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import terminal
from .dispatch import catalogue
from .errors import BackendUnavailable, PyblasgpuError
from .gpu import device
from .gpu.build import archive
from .gpu.build.archive import Archive, ArchiveError, Record
from .gpu.build.compile import (
    Compiled,
    KernelSource,
    architecture,
    archive_key,
    compile_here,
    kept_here,
    record_of,
    require_compiler,
    seconds_of,
    versions,
)
from .gpu.build.kernel_digest import digest_of_all
from .kernels.registry import source_of
from .processes import Pool, cores

__all__ = ["Built", "Compiler", "Progress", "Watcher", "build", "compile_job", "main"]

#: ``compiler(stem, config, flags, cc, *later)``: a kernel, or a complaint.
Compiler = Callable[..., Compiled | str]

CHECKPOINT = 300.0  # seconds of compilation after which what is ready is written
LOCK_SUFFIX = ".lock"


def compile_job(
    stem: str, config: Any, flags: tuple, cc: tuple[int, int], *later: tuple[int, int]
) -> Compiled | str:
    """The machine code of a kernel, or the compiler's complaint. It is made in a process of its own, where a
    `KernelSource`, which holds a function, does not go.

    The same kernel goes into the store of cubins for architectures that are built `later`: while Numba knows
    the types of all in it, that takes half the time or less.
    """
    try:
        source = source_of(stem, config, flags)
        kernel = compile_here(source, cc)
    except PyblasgpuError as problem:
        return str(problem)
    except Exception as problem:  # of whatever a Config does to its factory: the others go on
        return f"{type(problem).__name__}: {problem}"
    for other in later:
        with suppress(Exception):  # a complaint is that of its own build
            compile_here(source, other)
    return kernel


@dataclass
class Built:
    """Outcome of a build for one architecture.

    Attributes
    ----------
    architecture : str
    path : str
        The archive.
    kernels, bytes : int
        Number of kernels in it, and its size.
    compiled : int
        Kernels that this run has compiled; the others were there.
    seconds : float
        Time of the run, in which kernels of later ones may have been compiled.
    failed : list of (str, str)
        Kernels that the compiler refuses, and its complaints.
    """

    architecture: str
    path: str
    kernels: int = 0
    bytes: int = 0
    compiled: int = 0
    seconds: float = 0.0
    failed: list[tuple[str, str]] = field(default_factory=list)


class Watcher:
    """Progress display of a build; this one shows nothing."""

    def begin(self, architecture: str, total: int, ready: int, workers: int) -> None:
        """Begin an architecture of `total` kernels; `ready` are there, and `workers` compile the others."""

    def step(self) -> None:
        """Count one more kernel as compiled."""

    def say(self, text: str) -> None:
        """A line that stays."""


def build(
    sources: Iterable[KernelSource],
    cc: tuple[int, int],
    folder: Path | None = None,
    workers: int | None = None,
    watcher: Watcher | None = None,
    compiler: Compiler = compile_job,
    later: Mapping[tuple[int, int], Iterable[KernelSource]] | None = None,
) -> Built:
    """Put kernels into the archive of an architecture, those that are in it already too.

    Parameters
    ----------
    sources : iterable of KernelSource
    cc : (int, int)
    folder : Path, optional
        Folder of the archive; by default that of this user, where calls find it.
    workers : int, optional
        Number of processes that compile; by default one for each core.
    watcher : Watcher, optional
    compiler : callable
        The function that the processes run.
    later : mapping of (int, int) to iterable of KernelSource, optional
        Kernels that are built for other architectures next. Those in common are compiled at once, and found
        in the store of cubins then.

    Raises
    ------
    BackendUnavailable
        When something must be compiled and there is no compiler.
    NoFolder
        When this user has no folder, and `folder` names none.
    OSError
        When the archive cannot be written.
    """
    folder = archive.user_folder() if folder is None else folder
    path = folder / archive.archive_name(architecture(cc), digest_of_all())
    watcher = watcher or Watcher()
    begun = time.monotonic()
    with _alone(path, watcher):
        run = _Run(path, cc, watcher, workers or cores())
        try:
            run.take_over(sources)
            run.compile(compiler, later or {})
        finally:  # what is ready is not lost where the rest is interrupted
            run.write()
    archive.forget()
    run.built.seconds = time.monotonic() - begun
    return run.built


class _Run:
    """The archive of an architecture while it is built."""

    def __init__(self, path: Path, cc: tuple[int, int], watcher: Watcher, workers: int):
        self.built = Built(architecture(cc), str(path))
        self._path, self._cc, self._watcher, self._workers = path, cc, watcher, workers
        self._records = dict(_records_at(path, architecture(cc), digest_of_all()))
        self._missing: dict[str, KernelSource] = {}
        self._unwritten = False

    def take_over(self, sources: Iterable[KernelSource]) -> None:
        """Find what is ready: in the archive, in those of other versions, or in the store of cubins."""
        wanted = {archive_key(source, self._cc): source for source in sources}
        self._take_unchanged(wanted)
        for key, source in wanted.items():
            if key not in self._records:
                compiled = kept_here(source, self._cc)
                if compiled is None:
                    self._missing[key] = source
                else:
                    self._add(key, source, compiled)
        ready = len(wanted) - len(self._missing)
        self._watcher.begin(self.built.architecture, len(wanted), ready, self._workers)

    def _take_unchanged(self, wanted: Iterable[str]) -> None:
        """Take kernels over whose own text other versions of this package share."""
        arch, missing = self.built.architecture, set(wanted) - self._records.keys()
        for path in self._path.parent.glob(archive.archive_name(arch, "*")):
            for key, record in _records_at(path, arch) if missing else ():
                if key in missing:
                    missing.remove(key)
                    self._records[key] = record
                    self._unwritten = True

    def compile(self, compiler: Compiler, later: Mapping[tuple[int, int], Iterable[KernelSource]]) -> None:
        """Compile the rest, and what `later` builds have in common with it."""
        if not self._missing:
            return
        if compiler is compile_job:
            require_compiler()
        keys = {(s.name, s.config, s.flags): key for key, s in self._missing.items()}
        common: dict[tuple, list[tuple[int, int]]] = {}
        for cc, sources in later.items():
            for each in sources:
                common.setdefault((each.name, each.config, each.flags), []).append(cc)
        written = time.monotonic()
        with Pool(compiler, self._workers) as pool:
            for job in keys:
                pool.submit(*job, self._cc, *common.get(job, ()))
            while pool.pending:
                for job, report in pool.finished(timeout=1.0):
                    self._note(keys[job[:3]], report)
                if time.monotonic() - written > CHECKPOINT:
                    self.write()
                    written = time.monotonic()

    def write(self) -> None:
        """Write the archive where something is new."""
        if self._unwritten:
            arch, records = self.built.architecture, self._records.items()
            archive.write(self._path, arch, digest_of_all(), versions(), records)
            self._unwritten = False
        self.built.kernels = len(self._records)
        self.built.bytes = self._path.stat().st_size if self._records else 0

    def _note(self, key: str, report: Compiled | str) -> None:
        source = self._missing[key]
        if isinstance(report, str):
            self.built.failed.append((f"{source.name} {source.config} {dict(source.flags)}", report))
        else:
            self._add(key, source, report)
            self.built.compiled += 1
        self._watcher.step()

    def _add(self, key: str, source: KernelSource, compiled: Compiled) -> None:
        self._records[key] = record_of(source, compiled)
        self._unwritten = True


def _records_at(path: Path, arch: str, source: str | None = None) -> Iterator[tuple[str, Record]]:
    """Yield the kernels of an archive and their keys, if this toolchain and the text `source` made it."""
    try:
        archive = Archive(path, arch, source)
    except (OSError, ArchiveError):
        return
    if archive.toolchain == versions():
        for key in archive:
            record = archive.get(key)
            if record is not None:
                yield key, record


@contextmanager
def _alone(path: Path, watcher: Watcher) -> Iterator[None]:
    """One run at a time; a run that is killed leaves nothing that others wait for."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(path.with_name(f".{path.name}{LOCK_SUFFIX}"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        watcher.say(f"waiting for another process, which builds {path}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


# ------------------------------------------------------------------------------------------ command line


def main(options: Any) -> int:
    """Build the kernels that ``pyblasgpu build`` requests; return the exit code.

    Parameters
    ----------
    options : object
        An object with the attributes ``arch`` (names of architectures, or None: those of the devices here),
        ``jobs`` (processes or None), ``out`` (a folder or None) and ``json``.

    Raises
    ------
    BackendUnavailable
        When there is no device and no architecture is named, or no compiler.
    """
    done = []
    cards = _devices(options.arch)
    with Progress() as watcher:
        for number, card in enumerate(cards, 1):
            later = {other.cc: catalogue.kernels(other) for other in cards[number:]}
            kernels = catalogue.kernels(card)
            done.append(build(kernels, card.cc, options.out, options.jobs, watcher, later=later))
    if options.json:
        print(json.dumps([asdict(each) for each in done], indent=2))
    else:
        _show(done)
    return 1 if any(each.failed for each in done) else 0


def _devices(architectures: Iterable[str] | None) -> list[device.Device]:
    """A device of each architecture: of those here the devices themselves, with what is tuned for them."""
    if architectures:
        return [device.known(name) for name in architectures]
    cards = {card.cc: card for card in device.here()}
    if not cards:
        raise BackendUnavailable("no device is here: name architectures, as in --arch sm_90")
    return list(cards.values())


def _show(done: list[Built]) -> None:
    console = terminal.console(terminal.WIDTH)
    for each in done:
        counts = f"{each.kernels} kernels, {each.bytes / 2**20:.1f} MiB, {each.compiled} compiled now"
        console.print(f"{each.architecture}: {counts}: {each.path}", highlight=False, soft_wrap=True)
        for name, complaint in each.failed:
            console.print(f"failed: {name}: {complaint}", highlight=False, soft_wrap=True)


class Progress(terminal.ProgressBar, Watcher):
    """A bar on stderr: kernels ready of those wanted. Kernels that this run compiles give the time left."""

    def __init__(self) -> None:
        super().__init__(left="{task.fields[left]}")

    def begin(self, architecture: str, total: int, ready: int, workers: int) -> None:
        self._total, self._ready, self._workers = total, ready, workers
        self._compiled, self._begun = 0, time.monotonic()
        missing = total - ready
        text = f"{architecture}: {total} kernels, {ready} of them ready"
        if missing:
            workers = min(workers, missing)
            left = terminal.duration(seconds_of(missing, workers))
            text += f"; compiling {missing} in {workers} processes, about {left}"
        self.say(text)
        self._task = self.bar.add_task(architecture, total=total, completed=ready, left="unknown")

    def step(self) -> None:
        self._compiled += 1
        missing = self._total - self._ready - self._compiled
        if self._compiled >= self._workers or not missing:  # each process has compiled one, on average
            spent = time.monotonic() - self._begun
            self.bar.update(self._task, left=terminal.duration(spent / self._compiled * missing))
        self.bar.advance(self._task)
