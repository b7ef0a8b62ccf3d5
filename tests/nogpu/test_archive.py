"""Archives of kernels built ahead: what is damaged, foreign, newer or unreadable is set aside."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import fake_driver
import pytest

from pyblasgpu.errors import ArchiveWarning
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.build import archive, compile
from pyblasgpu.gpu.build.archive import Archive, ArchiveError, Record, archive_name, archives, write
from pyblasgpu.gpu.build.compile import Compiled, Resources
from pyblasgpu.gpu.build.kernel_digest import digest_of_all
from pyblasgpu.kernels.copy import copy_scaled

ARCH, SOURCE = "sm_90a", "5" * 64
TOOLS = {"nvidia-nvjitlink": "13.5.37"}
KEYS = [f"{number:064x}" for number in range(3)]
RECORDS = {
    key: Record({"kernel": {"family": "toy"}, "entry": f"entry{at}", "resources": {}}, bytes([at]) * 5000)
    for at, key in enumerate(KEYS)
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, and no archives remembered."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    archive.forget()
    yield archive.user_folder()
    archive.forget()


def written(folder, architecture=ARCH, source=SOURCE, records=RECORDS):
    """The path of an archive."""
    path = folder / archive_name(architecture, source)
    write(path, architecture, source, TOOLS, records.items())
    return path


def warnings_of(recwarn) -> list[str]:
    return [str(warned.message) for warned in recwarn if warned.category is ArchiveWarning]


def test_what_is_written_is_read(tmp_path):
    opened = Archive(written(tmp_path), ARCH, SOURCE)
    assert sorted(opened) == KEYS and len(opened) == 3 and KEYS[0] in opened
    for key, record in RECORDS.items():
        facts, cubin = opened.get(key)
        assert cubin == record.cubin and facts["entry"] == record.facts["entry"]
    assert opened.get("f" * 64) is None
    assert opened.used == set(KEYS) and opened.toolchain == TOOLS


def test_a_person_can_read_header_and_index(tmp_path):
    header, index = written(tmp_path).read_bytes().split(b"\n")[:2]
    facts = json.loads(header)
    assert (facts["architecture"], facts["source"], facts["kernels"]) == (ARCH, SOURCE, 3)
    assert json.loads(index)[KEYS[1]]["kernel"] == {"family": "toy"}


def test_a_kernel_is_loaded_quickly(tmp_path):
    """Machine code of 100 KB, compressed as such is, takes a millisecond, the best of ten."""
    words = [os.urandom(16) for _ in range(700)]
    cubin = b"".join(words[(7 * i) % 700] + bytes(10) for i in range(4000))
    opened = Archive(
        written(tmp_path, records={KEYS[0]: RECORDS[KEYS[0]]._replace(cubin=cubin)}), ARCH, SOURCE
    )
    times = []
    for _ in range(10):
        start = time.perf_counter()
        assert opened.get(KEYS[0])
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-3


# ------------------------------------------------------------------------------------ what is set aside


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"pyblasgpu kernels": 2}, "newer version"),
        ({"architecture": "sm_80"}, "is of sm_80, not of sm_90a"),
        ({"source": "6" * 64}, "another version"),
        ({"bytes": 17}, "parts of it are missing"),
        ({"index": None}, "damaged"),
        ({"toolchain": 3}, "damaged"),
    ],
)
def test_a_header_of_others_is_told(tmp_path, header, reason):
    path = written(tmp_path)
    line, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(line), **header}).encode() + b"\n" + rest)
    with pytest.raises(ArchiveError, match=reason):
        Archive(path, ARCH, SOURCE)


@pytest.mark.parametrize("keep", [0, 1, 100, 300, 1000, -1])
def test_a_truncated_archive_is_told(tmp_path, keep):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArchiveError, match="damaged"):
        Archive(path, ARCH, SOURCE)


def test_no_flipped_bit_gives_another_kernel(home, recwarn):
    path = written(home)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        archive.forget()
        for opened in archives(ARCH, SOURCE):
            cubins = {key: opened.get(key) for key in KEYS}
            assert all(not got or got.cubin == RECORDS[key].cubin for key, got in cubins.items())


class _Trap:
    def __reduce__(self):
        return os.abort, ()


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / archive_name(ARCH, SOURCE)
    path.write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(ArchiveError):
        Archive(path, ARCH, SOURCE)


@pytest.mark.parametrize("damage", ["truncated", "unreadable", "one kernel"])
def test_what_is_set_aside_is_told_once_with_advice(home, recwarn, damage):
    path = written(home)
    if damage == "unreadable":
        path.unlink()
        path.mkdir()
    else:
        content = path.read_bytes()
        path.write_bytes(content[:-10] + (b"" if damage == "truncated" else bytes(10)))
    for _ in range(2):
        assert not any(opened.get(key) for opened in archives(ARCH, SOURCE) for key in KEYS[2:])
    (message,) = warnings_of(recwarn)
    assert str(path) in message and "is not used" in message and "`pyblasgpu build --arch sm_90`" in message


def test_versions_lie_side_by_side(home, recwarn):
    ours, other = "a" * 64, "b" * 64
    written(home, source=ours), written(home, source=other, records={KEYS[0]: RECORDS[KEYS[0]]})
    assert [len(*archives(ARCH, source)) for source in (ours, other)] == [3, 1]
    assert not warnings_of(recwarn)


def test_one_of_another_version_alone_is_reported(home, recwarn):
    written(home, source="b" * 64)
    assert archives(ARCH, SOURCE) == archives(ARCH, SOURCE) == ()
    (message,) = warnings_of(recwarn)
    assert "another version" in message and "pyblasgpu build" in message


@pytest.mark.parametrize("zipped", [False, True], ids=["in a folder", "in a zip"])
def test_a_package_of_kernels_serves_after_the_users(home, tmp_path, monkeypatch, zipped):
    package = tmp_path / "site" / "pyblasgpu_kernels_sm90"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    packaged, own = written(package), written(home, records={KEYS[0]: RECORDS[KEYS[0]]})
    site = package.parent
    if zipped:
        site = Path(shutil.make_archive(tmp_path / "kernels", "zip", site))
        shutil.rmtree(package)
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    first, second = archives(ARCH, SOURCE)
    assert first.path == own and str(second.path) == str(site / packaged.relative_to(package.parent))
    assert second.get(KEYS[1]).cubin == RECORDS[KEYS[1]].cubin
    assert package.name not in sys.modules


# --------------------------------------------------------------------------------------------- writing


def test_the_environment_switches_archives_off(home, monkeypatch):
    written(home)
    assert len(archives(ARCH, SOURCE)) == 1
    monkeypatch.setenv("PYBLASGPU_ARCHIVES", "0")
    archive.forget()
    assert archives(ARCH, SOURCE) == ()


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = written(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, ARCH, SOURCE, TOOLS, [])
    assert len(Archive(path, ARCH, SOURCE)) == 3 and list(tmp_path.iterdir()) == [path]


def test_a_reader_keeps_what_it_has_opened(tmp_path):
    path = written(tmp_path)
    opened = Archive(path, ARCH, SOURCE)
    write(path, ARCH, SOURCE, TOOLS, [])
    assert opened.get(KEYS[2]).cubin == RECORDS[KEYS[2]].cubin
    assert len(Archive(path, ARCH, SOURCE)) == 0


# ------------------------------------------------------------------------------------ kernels from there

KERNEL = copy_scaled.source(copy_scaled.CopyScaled("s"))
COMPILED = Compiled(b"\x7fELF built ahead", "entry", Resources(40, 0, 0, 0, 0))


@pytest.fixture
def built(home, monkeypatch):
    """An archive with KERNEL in it."""
    monkeypatch.setattr(compile, "in_memory", {})
    key, record = compile.archive_key(KERNEL, (9, 0)), compile.record_of(KERNEL, COMPILED)
    return written(home, source=digest_of_all(), records={key: record})


def test_a_kernel_built_ahead_is_not_compiled(built):
    compiled = compile.compile_source(KERNEL, (9, 0))
    assert compiled == COMPILED and compiled.archive.path == built
    assert compile.kernels_at_hand((9, 0))


def test_the_toolchain_of_this_machine_is_no_matter(built, monkeypatch):
    monkeypatch.setattr(compile, "versions", lambda: {"numba": "absent"})
    assert compile.kept(KERNEL, (9, 0)) == COMPILED


def test_another_text_of_the_kernels_is(built, monkeypatch):
    monkeypatch.setattr(compile, "digest_of_all", lambda: "6" * 64)
    with pytest.warns(ArchiveWarning, match="another version"):
        assert compile.kept(KERNEL, (9, 0)) is None


def test_keys_are_the_same_in_every_process():
    """None of an object's address, or of the order of a set."""
    facts = compile.record_of(KERNEL, COMPILED).facts
    assert json.loads(json.dumps(facts)) == facts
    assert facts["kernel"]["family"] == "copy_scaled" and facts["kernel"]["config"]["dtype"] == "s"


def test_what_the_driver_refuses_is_compiled_here(built, monkeypatch, recwarn, request):
    request.addfinalizer(fake_driver.forget)
    driver = fake_driver.Driver(monkeypatch)
    fresh = SimpleNamespace(cubin=b"of the installed linker", entry="k", archive=None)
    monkeypatch.setattr(compile, "compile_kernel", lambda *_: fresh)
    monkeypatch.setattr(compile, "record_of", None)
    taken = []

    def compile_source(source, cc):
        taken.append(compile.kept(source, cc) or fresh)
        return taken[-1]

    monkeypatch.setattr(launch, "compile_source", compile_source)
    load = driver.real.cuLibraryLoadData

    def picky(cubin, *others):
        invalid = driver.result.CUDA_ERROR_INVALID_IMAGE
        return (invalid, None) if cubin == COMPILED.cubin else load(cubin, *others)

    monkeypatch.setattr(driver.real, "cuLibraryLoadData", picky)
    launch.kernel(KERNEL, 0)
    assert [each.cubin for each in taken] == [COMPILED.cubin, fresh.cubin]
    (message,) = warnings_of(recwarn)
    assert "the driver of CUDA" in message and "refuses" in message and "pyblasgpu build" in message
    launch.kernel(copy_scaled.source(copy_scaled.CopyScaled("d")), 0)
    assert len(warnings_of(recwarn)) == 1
