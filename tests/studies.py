"""Studies of the project's notebooks, with quick's parameters and measurements that are made up."""

from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import notebooks
from benchlib.study import Study

ROOT = Path(__file__).parents[1]


def planned(notebook: str, profile: str = "quick", **changes: Any) -> Study:
    """The study of a notebook, with some parameters changed."""
    path = ROOT / "notebooks" / f"{notebook}.ipynb"
    return notebooks.design(path, ROOT / "parameters" / profile / f"{notebook}.yaml", **changes)


def measured(notebook: str, lab: Any, **changes: Any) -> Study:
    """As :func:`planned`, measured in a lab."""
    made = planned(notebook, **changes)
    made.measure(lab)
    return made


def shown(made: Study, drawn: bool = True) -> dict[str, pd.DataFrame]:
    """Execute what a measured study's notebook shows, figures if ``drawn``; its tables by name."""
    made.figure = made.figure if drawn else lambda name, picture: None
    variables = {**made.parameters, "outputs": made.folder}
    every = [one for one in notebooks.cells(ROOT / "notebooks" / f"{made.name}.ipynb") if one.kind == "code"]
    exec(next(one.source for one in every if "design" in one.tags), variables)
    variables["study"] = made
    for cell in every[[one.source for one in every].index("study.measure()") + 1 : -1]:
        exec(cell.source, variables)
    return {name: frame for name, (_, frame) in made._tables.items()}
