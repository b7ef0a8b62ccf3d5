"""The committed results of the papers' studies and benchmarks, and spans of their figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "figures"))

import paper_tables  # noqa: E402 - the pages' own reading of counters

H200, H100 = "nvidia_h200", "nvidia_h100_80gb_hbm3"


def study(name: str, card: str = H200) -> dict[str, Any]:
    return json.loads((ROOT / "tuning/papers/results" / card / f"{name}.json").read_text())


def span(ratios: Iterable[float], digits: int = 1, falling: bool = False) -> str:
    """The least and the greatest."""
    ends = sorted(ratios, reverse=falling)
    return f"{ends[0]:.{digits}f} to {ends[-1]:.{digits}f}"


def percent(ratios: Iterable[float]) -> list[str]:
    return [f"{100 * ratio:.0f}" for ratio in ratios]


def newest(kind: str) -> dict[str, Any]:
    """The newest file of a benchmark on the H200."""
    return json.loads(
        sorted((paper_tables.BENCHMARKS / "nvidia-h200").glob(f"*-{kind}.json"))[-1].read_text()
    )
