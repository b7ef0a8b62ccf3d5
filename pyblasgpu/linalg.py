"""NumPy's and scipy.linalg's functions; see `pyblasgpu.api.linalg.names`."""

from .api.linalg.names import *  # noqa: F403
from .api.linalg.names import __all__, __doc__  # noqa: F401
from .graph_breaks import break_graphs

for _name in __all__:
    break_graphs(globals()[_name])


def __dir__() -> list[str]:
    return sorted(__all__)
