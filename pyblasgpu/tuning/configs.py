"""Makes the Configs of a search; those that a family's rules do not distinguish are checked once."""

from __future__ import annotations

from typing import Any

from ..database import FAMILIES
from ..errors import ConfigError
from ..kernels.common.axes import Parameters
from ..model.occupancy import SHORTEST_PIPELINE, with_values

__all__ = ["ConfigBuilder"]

#: Parameters that no rule of a Config reads: they say how the compiler and the multiprocessors go about it.
UNREAD = ("min_blocks", "by_rows")


class ConfigBuilder:
    """Makes the Configs of a family, dtype and layout.

    Parameters
    ----------
    stem, dtype, layout : str
        Key, as in the database.
    """

    def __init__(self, stem: str, dtype: str, layout: str):
        family = FAMILIES[stem]
        self._family, self._dtype, self._layout = family, dtype, layout
        self._unread = {name: family.defaults[name] for name in UNREAD if name in family.defaults}
        self._is_product, self._has_stages = family.routine == "gemm", "stages" in family.parameters
        unchecked = {*self._unread, *(["stages"] if self._is_product else [])}
        self._read = [name for name in family.parameters if name not in unchecked]
        self._known: dict[tuple, Any] = {}

    def __call__(self, chosen: Parameters, before: Any = None, values: Parameters | None = None) -> Any:
        """The Config of the parameters `chosen`.

        Parameters
        ----------
        chosen : dict
        before, values : Config, dict, optional
            The Config without the last `values`, and these.

        Raises
        ------
        ConfigError
            Where they break a rule.
        """
        if before is not None and values and values.keys() <= self._unread.keys():
            return with_values(before, values)
        stages = chosen.get("stages", 1)
        stages_read = min(stages, SHORTEST_PIPELINE) if self._is_product else stages
        kind = (stages_read, *map(chosen.get, self._read))
        result = self._known.get(kind)
        if result is None:
            try:
                asked = {**chosen, **self._unread, **({"stages": stages_read} if self._has_stages else {})}
                result = self._family.config(self._dtype, self._layout, asked)
            except ConfigError as broken:
                result = broken.with_traceback(None)  # which would hold all that was at work here
            self._known[kind] = result
        if isinstance(result, ConfigError):
            raise ConfigError(result.rule, result.inequality, **result.values)
        own = {name: chosen.get(name, x) for name, x in self._unread.items()}
        return with_values(result, own if stages == stages_read else {**own, "stages": stages})
