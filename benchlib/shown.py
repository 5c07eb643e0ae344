"""Results that show themselves: HTML in a notebook, text in a script, a figure by ``plot()``.

What draws is imported only then: a lab measures without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchlib.errors import require_package

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown:
    """A result that shows itself."""

    def plot(self) -> Figure:
        """Draw it, as a figure that a notebook shows with its caption."""
        require_package("matplotlib", "suite", "plot()")
        from benchlib.plotting import plots

        return plots.draw(self)

    def _repr_html_(self) -> str:
        from benchlib import reprs

        return reprs.html(self)

    def __repr__(self) -> str:
        """A few lines for a terminal or a log; the data are in its fields."""
        from benchlib import reprs

        return reprs.text(self)

    __str__ = __repr__
