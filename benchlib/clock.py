"""One clock for all that a report measures: every notebook's checks, pilots and training runs first, and then each
minute that is left goes to the comparison where it does most.

How much time the present results have had is kept in ``clock.json`` beside them, so that a run that was stopped, or is
started again, goes on from there.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

from benchlib import progress
from benchlib.errors import BenchlibError
from benchlib.experiments import least_s, module, require_time
from benchlib.experiments.parameters import Compared, Parameters
from benchlib.lab import Lab, Measures

NOTEBOOK_S = 4.5
"""What a notebook takes, about, two being executed at once, when all is measured; of the report's pages, too."""


class Clock:
    """Counts the seconds that the results in ``folder`` have had. They are those ``of`` some inputs: others start at 0.

    A run may take the ``minutes`` of its profile, less what was spent before; or ``more`` minutes from now on; less
    what it takes to execute so many ``notebooks`` afterwards. With neither it is not limited, and each comparison has
    its own budget. With 0 ``more`` nothing is measured.
    """

    def __init__(self, folder: Path, of: str, minutes: float | None, more: float | None, notebooks: int) -> None:
        self._file, self._of = folder / "clock.json", of
        self._before = _spent(self._file, of)
        self._started = time.monotonic()
        self.measures = more != 0
        allowed = more if more is not None else minutes
        self._seconds = math.inf if allowed is None else 60 * allowed - NOTEBOOK_S * notebooks
        if more is None:
            self._seconds -= self._before

    @property
    def shared(self) -> bool:
        """Is there one time for all comparisons?"""
        return self._seconds != math.inf

    @property
    def left_s(self) -> float:
        """Seconds in which may still be measured."""
        return self._started + self._seconds - time.monotonic()

    def end(self) -> None:
        """What is left is of no use: nothing is wanted, or nothing fits into it. It counts as spent."""
        self._started -= max(0.0, self.left_s)

    def keep(self) -> None:
        """Write down what has been spent; what cannot be written is counted again."""
        spent = self._before + time.monotonic() - self._started
        partial = self._file.with_suffix(".partial")
        try:
            partial.write_text(json.dumps({"of": self._of, "seconds": round(spent, 1)}) + "\n", encoding="utf-8")
            os.replace(partial, self._file)
        except OSError as error:
            progress.say(f"{self._file}: could not be written: {error.strerror}")


def measure(notebooks: Mapping[str, Parameters], folder: Path, clock: Clock) -> list[str]:
    """Measure what these notebooks will ask for, in the order given; the names of those that could not be measured,
    which find out themselves what is wrong.
    """
    lab = Lab(outputs=folder, measures=Measures.LATER if clock.shared else Measures.BUDGET)
    wrong = []
    try:
        for name, parameters in notebooks.items():
            try:
                require_time(name, parameters)
                module(name).measure(parameters, lab)
            except Exception as error:  # whatever it is: it must not stop the others
                progress.say(f"{name}: not measured, and tried again by itself: {type(error).__name__}: {error}")
                wrong.append(name)
            clock.keep()
        if clock.shared:
            try:
                lab.pilots()
            except Exception as error:  # as above: each notebook then shows what is wrong
                progress.say(f"not measured, and tried again notebook by notebook: {type(error).__name__}: {error}")
                return list(notebooks)
            clock.keep()
            late_s = -clock.left_s
            if late_s > 0:
                progress.say(f"the pilots took {progress.duration(late_s)} more than there was; no time is left")
            lab.sharpen(time.monotonic() + clock.left_s)
            if not wrong:
                clock.end()
    finally:
        clock.keep()
    return wrong


def require(minutes: float, missing: Mapping[str, Parameters]) -> None:
    """Refuse a time in which the pilots of the notebooks that are ``missing`` cannot be measured, whatever else there
    is, with a BenchlibError that says how much would do.
    """
    least = sum(least_s(name, one) for name, one in missing.items() if isinstance(one, Compared))
    if 60 * minutes < least:
        raise BenchlibError(
            f"minutes {minutes:g}: the first processes of all comparisons take {progress.duration(least)} at the very "
            f"least: give {math.ceil(least / 60)} or more, or 0 to make the report of what is there"
        )


def _spent(file: Path, of: str) -> float:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return float(kept["seconds"]) if kept["of"] == of else 0.0
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
