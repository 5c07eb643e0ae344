"""What shows itself: as HTML at the end of a notebook's cell, as text in a script, as a figure by ``plot()``.

How, is the matter of the suite's floor, which the floors below do not import. They have its name, as pandas has the
name of what draws for it. The module of that name is an extension of IPython: in a notebook it is loaded with the first
class of benchlib that shows itself, elsewhere when the first figure is asked for.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISPLAY = "benchlib.suite.display"


class Shown:
    """A result that is shown and drawn by :data:`DISPLAY`."""

    def plot(self) -> Figure:
        """It as a figure, which a notebook shows with its caption; a BenchlibError without the suite's packages."""
        return importlib.import_module(DISPLAY).figure(self)

    def __repr__(self) -> str:
        """A few lines for a terminal or a log; the data are in its fields."""
        return importlib.import_module(DISPLAY).text(self)

    __str__ = __repr__


if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
    shell.extension_manager.load_extension(DISPLAY)
