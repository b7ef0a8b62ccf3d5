"""Li's template with his flag *trans*: stripes that are shared stay as stored, in all types.

`GemmSimt` keeps a stripe along k by several elements where both operands are shared. `Kept` reads it element
by element, so the other operand may be private, and an element may be as wide as a load.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pyblasgpu.kernels.gemm.simt import GemmSimt

__all__ = ["Kept", "as_stored"]


@dataclass(frozen=True, kw_only=True)
class Kept(GemmSimt):
    """Config of a `gemm_simt` kernel that transposes no stripe on the way to shared memory."""

    @property
    def keeps_k_major(self) -> bool:
        return True


def as_stored(config: GemmSimt) -> Kept:
    """The kernel with this Config's tile, loads and padding."""
    return Kept(**{each.name: getattr(config, each.name) for each in fields(config)})
