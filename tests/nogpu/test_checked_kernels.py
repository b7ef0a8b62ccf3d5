"""When `make check-kernels` is due: not before text or Configs change, and not for another compiler."""

from __future__ import annotations

import checked_kernels
import pytest

from pyblasgpu.gpu.build import compile


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(checked_kernels, "RECORD", tmp_path / "checked.json")
    assert checked_kernels.is_due(), "without a record"
    assert checked_kernels.main("record") == 0


@pytest.fixture
def due(recorded):
    assert checked_kernels.main("due") == checked_kernels.NOT_DUE
    return lambda: checked_kernels.main("due") == 0


def test_it_is_due_when_a_text_changes(due, monkeypatch):
    monkeypatch.setattr(checked_kernels, "digest_of_all", lambda: "another")
    assert due()


@pytest.mark.parametrize("kind", ["CHOSEN", "packed", "of_triangles"])
def test_it_is_due_when_a_config_changes(due, monkeypatch, kind):
    chosen = getattr(checked_kernels, kind)
    fewer = chosen[1:] if isinstance(chosen, list) else lambda: chosen()[1:]
    monkeypatch.setattr(checked_kernels, kind, fewer)
    assert due()


def test_it_is_not_due_for_another_compiler(due, monkeypatch):
    others = dict.fromkeys(compile.versions(), "another")
    monkeypatch.setattr(compile, "versions", lambda: others)
    assert not due()
