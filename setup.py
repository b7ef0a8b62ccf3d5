"""The wheel's one file next to the package: a line that Python runs at its start, for ``PYBLASGPU_PATCH``."""

from __future__ import annotations

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithStart(build_py):
    """Copy ``pyblasgpu.pth`` next to the package."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_file("pyblasgpu.pth", self.build_lib)


setup(cmdclass={"build_py": BuildWithStart})
