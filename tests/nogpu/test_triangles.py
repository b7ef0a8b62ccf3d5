"""Parts of tiles of which a call writes a triangle: what comes and goes leaves the rest as it was."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.engine import triangles
from pyblasgpu.gpu.transfers import Block


def covered(parts, order, pitch):
    """How often each element is in the parts of a tile at address 0, a line a row."""
    count = np.zeros(order * pitch, int)
    for part in parts:
        for line in range(part.lines):
            first = part.address + line * part.pitch
            count[first : first + part.width] += 1
    count = count.reshape(order, pitch)
    assert not count[:, order:].any(), "beyond the tile"
    return count[:, :order]


@pytest.mark.parametrize("has_tails", [True, False])
@pytest.mark.parametrize("strip", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("order, pitch", [(1, 1), (8, 8), (13, 16)])
def test_the_triangle_goes_home_and_what_goes_with_it_was_brought(
    monkeypatch, has_tails, strip, order, pitch
):
    monkeypatch.setattr(triangles, "STRIP", strip)
    tile = Block(0, order, order, pitch, 0)
    written = covered(triangles.written(tile, 1, has_tails), order, pitch)
    kept = covered(triangles.kept(tile, 1, has_tails), order, pitch)
    triangle = np.tri(order, dtype=bool).T if has_tails else np.tri(order, dtype=bool)
    assert (written <= 1).all() and (kept <= 1).all()
    assert written[triangle].all() and kept[~triangle & (written > 0)].all()
    assert kept.sum() <= order * strip
