"""scipy.linalg.blas, name for name; see `pyblasgpu.api.blas.names`."""

from .api.blas.names import *  # noqa: F403
from .api.blas.names import __all__, __doc__  # noqa: F401
from .graph_breaks import break_graphs

for _name in __all__:
    break_graphs(globals()[_name])


def __dir__() -> list[str]:
    return sorted(__all__)
