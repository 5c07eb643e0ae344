"""Results that show themselves: HTML in a notebook, text in a script, a figure by ``plot()``.

``benchlib.reprs`` renders them, and registers itself here: code that measures imports none that shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RENDERERS: dict[str, Callable[..., Any]] = {}
"""By form: ``html``, ``text``, ``figure``; empty until ``from benchlib import Lab``, or another public name."""


class Shown:
    """A result that shows itself."""

    def plot(self) -> Any:
        """Draw it, as a figure of matplotlib that a notebook shows with its caption."""
        return RENDERERS["figure"](self)

    def to_latex(self) -> str:
        """The ratios as a LaTeX table."""
        return RENDERERS["latex"](self)

    def save(self, folder: Any) -> Any:
        """Write table and figure to ``folder``; return the paths."""
        return RENDERERS["save"](self, folder)

    def _repr_html_(self) -> str:
        return RENDERERS["html"](self)

    def __repr__(self) -> str:
        """A few lines for a terminal or a log; the data are in its fields."""
        return RENDERERS.get("text", object.__repr__)(self)

    __str__ = __repr__
