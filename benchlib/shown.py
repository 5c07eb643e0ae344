"""Results that show themselves: HTML in a notebook, text in a script, a figure by ``plot()``.

What draws is imported only then: a lab measures without it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchlib.errors import BenchlibError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown:
    """A result that shows itself."""

    def plot(self) -> Figure:
        """Draw it, as a figure that a notebook shows with its caption."""
        try:
            from benchlib.plotting import plots
        except ModuleNotFoundError as error:
            raise BenchlibError(
                f"plot(): {sys.executable} has no {error.name}, and draws nothing without; "
                f"install the suite's packages: {sys.executable} -m pip install 'benchlib[suite]'"
            ) from error
        return plots.draw(self)

    def _repr_html_(self) -> str:
        from benchlib import reprs

        return reprs.html(self)

    def __repr__(self) -> str:
        """A few lines for a terminal or a log; the data are in its fields."""
        from benchlib import reprs

        return reprs.text(self)

    __str__ = __repr__
