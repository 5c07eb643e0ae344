"""How results show themselves in a notebook, as an extension of IPython (``benchlib.shown`` says who loads it).

Imports neither the results nor what draws them before one is there: it is loaded while their modules are imported, and
matplotlib takes long.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchlib.errors import BenchlibError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib.figure import Figure

    from benchlib.shown import Shown


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Have ``shell`` show results as HTML at the end of a cell; IPython calls this."""
    shell.display_formatter.formatters["text/html"].for_type_by_name("benchlib.shown", "Shown", html)


def html(result: Shown) -> str:
    """What a notebook shows of ``result``."""
    from benchlib.suite import summaries

    return summaries.html(result)


def text(result: Shown) -> str:
    """What a script prints of ``result``."""
    from benchlib.suite import summaries

    return summaries.text(result)


def figure(result: Shown) -> Figure:
    """``result`` as a figure; a BenchlibError that says what to install where nothing can draw it."""
    try:
        from benchlib.suite import plots
    except ModuleNotFoundError as error:
        raise BenchlibError(
            f"plot(): {sys.executable} has no {error.name}, and draws nothing without; "
            f"install the suite's packages: {sys.executable} -m pip install 'benchlib[suite]'"
        ) from error
    return plots.draw(result)
