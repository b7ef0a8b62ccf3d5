"""Kernels built ahead: runs resume, wait for each other, and lose nothing when they are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import fake_toolchain
import pytest
from fake_toolchain import LOG, REFUSED, SECONDS, kernels

from pyblasgpu import build, cli, processes, terminal
from pyblasgpu.dispatch import catalogue
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.build import archive, compile, kernel_store
from pyblasgpu.gpu.build.archive import Archive
from pyblasgpu.gpu.build.kernel_digest import digest_of_all
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.registry import source_of

CC, ARCH = (9, 0), "sm_90a"


class Threads(ThreadPoolExecutor):
    """In place of a pool of processes."""

    _processes = None


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, the fake compiler's log in it, and nothing remembered.

    Threads compile: a process takes a second to start; programs below start processes.
    """
    monkeypatch.setattr(processes, "ProcessPoolExecutor", lambda count, **_: Threads(count))
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setattr(kernel_store, "open_stores", {})
    monkeypatch.setattr(compile, "in_memory", {})
    archive.forget()
    yield tmp_path
    archive.forget()


def built(count: int, **options) -> build.Built:
    options = {"workers": 1, "compiler": fake_toolchain.compile_job, **options}
    return build.build(kernels(count), CC, **options)


def compiled(home) -> list[str]:
    """The keys of what was compiled, in order."""
    log = home / "log"
    return log.read_text().split() if log.exists() else []


def the_archive(count: int, path: str) -> None:
    """It holds so many kernels, and they are right."""
    opened = Archive(Path(path), ARCH, digest_of_all())
    assert len(opened) == count
    for source in kernels(count):
        facts, cubin = opened.get(compile.archive_key(source, CC))
        assert cubin == fake_toolchain.compiled(source, CC).cubin
        assert facts["kernel"]["flags"] == dict(source.flags) and facts["entry"]


def test_what_is_built_serves_calls(home):
    done = built(3)
    assert (done.kernels, done.compiled, done.failed) == (3, 3, [])
    the_archive(3, done.path)
    kernel = compile.kept(kernels(3)[1], CC)
    assert kernel == fake_toolchain.compiled(kernels(3)[1], CC) and str(kernel.archive.path) == done.path


def test_a_second_run_compiles_nothing_and_writes_nothing(home):
    first = built(3)
    before = os.stat(first.path).st_mtime_ns
    assert built(3).compiled == 0 and os.stat(first.path).st_mtime_ns == before


@pytest.mark.parametrize("lost", ["store", "archive"])
def test_more_is_added_to_what_is_there(home, lost):
    path = built(2).path
    if lost == "archive":
        os.unlink(path)
    else:
        (home / "cache").rename(home / "lost")
    done = built(4)
    assert (done.kernels, done.compiled) == (4, 2)
    the_archive(4, done.path)


def test_another_toolchain_compiles_anew(home, monkeypatch):
    built(2)
    monkeypatch.setattr(build, "versions", lambda: {"numba": "another"})
    monkeypatch.setattr(compile, "versions", lambda: {"numba": "another"})
    done = built(1)
    assert done.kernels == 1 and Archive(Path(done.path), ARCH, digest_of_all()).toolchain == {
        "numba": "another"
    }


def test_kernels_whose_text_is_unchanged_are_taken_from_another_version(home, monkeypatch):
    """The digest of all kernels names the archive; the key of a kernel holds the digest of its own text."""
    built(2)
    monkeypatch.setattr(build, "digest_of_all", lambda: "b" * 64)
    monkeypatch.setattr(compile, "in_memory", {})
    (home / "log").unlink()
    (home / "cache").rename(home / "lost")
    done = built(3)
    assert (done.kernels, done.compiled) == (3, 1) and len(compiled(home)) == 1
    opened = Archive(Path(done.path), ARCH, "b" * 64)
    assert set(opened) == {compile.archive_key(source, CC) for source in kernels(3)}


def test_a_damaged_archive_is_built_anew(home):
    path = Path(built(2).path)
    path.write_bytes(path.read_bytes()[:-1])
    (home / "cache").rename(home / "lost")
    assert built(2).compiled == 2
    the_archive(2, str(path))


def test_what_the_compiler_refuses_is_told(home, monkeypatch):
    monkeypatch.setenv(REFUSED, "d")
    done = built(18)
    assert (done.kernels, len(done.failed)) == (16, 2)
    name, complaint = done.failed[0]
    assert "copy_scaled" in name and "dtype='d'" in name and complaint == "the compiler refuses it"


def test_an_interrupted_run_keeps_what_is_ready(home):
    class Impatient:
        steps = 0

        def begin(self, architecture, total, ready, workers):
            assert (architecture, total, ready, workers) == (ARCH, 6, 0, 1)

        def step(self):
            self.steps += 1
            if self.steps == 3:
                raise KeyboardInterrupt

        def say(self, text):
            raise AssertionError(text)

    with pytest.raises(KeyboardInterrupt):
        built(6, watcher=Impatient())
    (path,) = archive.user_folder().glob("*.kernels")
    assert len(Archive(path, ARCH, digest_of_all())) == 3
    assert built(6).kernels == 6


def test_a_full_disk_is_told_and_nothing_half_written_stays(home, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            built(2)
    assert not [*archive.user_folder().glob("*.kernels"), *archive.user_folder().glob(".tmp*")]
    the_archive(2, built(2).path)


def test_a_folder_that_cannot_be_written_is_named_in_a_line(home, capsys, monkeypatch):
    monkeypatch.setattr(catalogue, "kernels", lambda card: iter(()))
    (home / "file").write_text("in the way")
    assert cli.main(["build", "--arch", "sm_90", "--out", str(home / "file" / "below")]) == 2
    text = capsys.readouterr().err
    assert str(home / "file") in text and "Traceback" not in text


# -------------------------------------------------------------------------------------------- processes

PROGRAM = """
import sys
import fake_toolchain
from pyblasgpu import build

if __name__ == "__main__":
    sources = fake_toolchain.kernels(int(sys.argv[1]))
    print(build.build(sources, (9, 0), workers=1, compiler=fake_toolchain.compile_job).path)
"""


def start(home, count: int, **environment) -> subprocess.Popen:
    program = home / "program.py"
    if not program.exists():  # a process may be reading it
        program.write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(fake_toolchain.__file__).parent)])
    return subprocess.Popen(
        [sys.executable, str(program), str(count)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_is_taken_up_where_it_stopped(home):
    """Its own processes end too, and its lock goes with it."""
    process = start(home, 60, **{SECONDS: "0.1"})
    deadline = time.monotonic() + 60
    while len(compiled(home)) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(1.0)
    before = compiled(home)
    assert 5 <= len(before) < 60
    done = built(60)
    assert len(before) - 1 <= 60 - done.compiled <= len(before) and done.kernels == 60
    after = compiled(home)
    assert len(after) - len(before) == done.compiled
    the_archive(60, done.path)


def test_processes_that_build_at_once_build_each_kernel_once(home):
    programs = [start(home, 12, **{SECONDS: "0.05"}) for _ in range(3)]
    outputs = [program.communicate(timeout=300) for program in programs]
    assert [program.returncode for program in programs] == [0] * 3, outputs[0][1][-2000:]
    keys = compiled(home)
    assert len(keys) == len(set(keys)) == 12
    (path,) = {out.strip() for out, _ in outputs}
    the_archive(12, path)


# --------------------------------------------------------------------------------------------- command


def test_the_command_says_what_it_built(home, capsys, monkeypatch):
    monkeypatch.setattr(catalogue, "kernels", lambda card: iter(kernels(2)))
    for source in kernels(2):
        fake_toolchain.compile_job(source.name, source.config, source.flags, CC)
    monkeypatch.setattr(backend, "require", None)
    assert cli.main(["build", "--arch", "sm_90", "--out", str(home / "out")]) == 0
    (path,) = (home / "out").glob("*.kernels")
    assert f"sm_90a: 2 kernels, 0.0 MiB, 0 compiled now: {path}" in capsys.readouterr().out
    assert cli.main(["build", "--json", "--arch", "sm_90", "--out", str(home / "out")]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert (facts["architecture"], facts["kernels"], facts["failed"]) == ("sm_90a", 2, [])


def test_a_process_compiles_a_kernel_for_all_architectures(home, capsys, monkeypatch):
    """One after the other, while types are known; the next architecture finds its own in the store."""

    def compile_here(source, cc):
        return fake_toolchain.compile_job(source.name, source.config, source.flags, cc)

    monkeypatch.setattr(catalogue, "kernels", lambda card: iter(kernels(2 if card.cc < CC else 3)))
    monkeypatch.setattr(compile, "find_spec", lambda name: True)
    monkeypatch.setattr(backend, "require", lambda: None)
    monkeypatch.setattr(build, "compile_here", compile_here)
    assert cli.main(["build", "--json", "--arch", "sm_80,sm_90", "--jobs", "1"]) == 0
    both = [compile.store_key(source, cc) for source in kernels(2) for cc in ((8, 0), CC)]
    assert compiled(home) == [*both, compile.store_key(kernels(3)[2], CC)]
    assert [each["compiled"] for each in json.loads(capsys.readouterr().out)] == [2, 1]


def test_progress_in_a_file(home, capsys, monkeypatch):
    """A line when the build begins, lines while it compiles, and one at the end."""
    monkeypatch.setattr(terminal, "INTERVAL", 0.01)
    monkeypatch.setattr(terminal, "SHARE", 0.0)
    built(2)
    seen = []

    class Watcher(build.Progress):
        def begin(self, *arguments):
            super().begin(*arguments)
            seen.append(capsys.readouterr().err)

        def step(self):
            super().step()
            capsys.readouterr()
            lines, deadline = "", time.monotonic() + 30
            while "left" not in lines and time.monotonic() < deadline:
                time.sleep(0.01)
                lines += capsys.readouterr().err
            seen.append(lines)

    with Watcher() as watcher:
        built(4, watcher=watcher)
    begun, first, _ = seen
    assert "sm_90a: 4 kernels, 2 of them ready; compiling 2 in 1 processes, about 14 s" in begun
    assert "3/4" in first and "4/4" in capsys.readouterr().err.splitlines()[-1]


def test_the_time_left_is_estimated_by_what_is_compiled(monkeypatch):
    """Not by kernels that were there; and not before each process has compiled one."""
    clock = iter([100.0, 108.0, 116.0, 116.0])
    monkeypatch.setattr(build, "time", SimpleNamespace(monotonic=clock.__next__))
    watcher, left = build.Progress(), []
    watcher.begin(ARCH, 600, ready=500, workers=2)
    for _ in range(4):
        watcher.step()
        left.append(watcher.bar.tasks[0].fields["left"])
    assert left == ["unknown", "7 min", "9 min", "7 min"]
    assert watcher.bar.tasks[0].completed == 504


def test_a_build_of_what_is_ready_needs_no_time(capsys):
    build.Progress().begin(ARCH, 600, ready=600, workers=2)
    assert capsys.readouterr().err.strip() == "sm_90a: 600 kernels, 600 of them ready"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.2, "1 s"), (89, "89 s"), (91, "2 min"), (3600, "60 min"), (7200, "2.0 h")],
)
def test_durations(seconds, words):
    assert terminal.duration(seconds) == words


def test_without_a_compiler_the_command_says_so(home, capsys, monkeypatch):
    def lacking():
        raise BackendUnavailable("kernels cannot be built here: install pyblasgpu[cu13]")

    monkeypatch.setattr(catalogue, "kernels", lambda card: iter(kernels(1)))
    monkeypatch.setattr(backend, "require", lacking)
    assert cli.main(["build", "--arch", "sm_90"]) == 2
    assert "pyblasgpu[cu13]" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["build --arch sm_90", "explain sscal 9 --device h200 --source"])
def test_numba_alone_is_no_compiler(command, home, capsys, monkeypatch):
    """It has an older `numba.cuda` of its own."""
    monkeypatch.setattr(catalogue, "kernels", lambda card: iter(kernels(1)))
    monkeypatch.setattr(compile, "find_spec", lambda name: None)
    assert cli.main(command.split()) == 2
    error = capsys.readouterr().err
    assert "No module named 'numba_cuda'" in error and "pyblasgpu[cu13]" in error


def test_without_a_device_architectures_are_named(capsys, monkeypatch):
    monkeypatch.setattr(build.device, "here", lambda: iter(()))
    assert cli.main(["build"]) == 2
    assert "--arch sm_90" in capsys.readouterr().err


def test_kernels_of_the_catalogue_can_be_made_again():
    """From what goes to another process."""
    sources = list(catalogue.kernels(known("sm_90")))
    assert len(sources) == len(set(sources)) > 100
    for source in sources:
        assert source_of(source.name, source.config, source.flags) == source
