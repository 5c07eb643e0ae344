"""One clock for all that a report measures. Checks, pilots and training runs of every notebook come first; then each
minute that is left goes where it does most. A later run goes on from the time that ``clock.json`` has.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchlib import manifest, progress
from benchlib.cluster.lab import Lab, Measures
from benchlib.errors import BenchlibError
from benchlib.stats import planner
from benchlib.study import Study

NOTEBOOK_S = 4.5  # to execute one when all is measured, about, two at once; and its part of the report's pages


class Clock:
    """The seconds that the results in ``folder``, made ``of`` some inputs, have had and may still have.

    A run may take the ``minutes`` of its profile, less those spent before, or ``more`` minutes from now on. The time to
    execute so many ``notebooks`` is taken off. With neither, each comparison has its own budget.
    """

    def __init__(self, folder: Path, of: str, minutes: float | None, more: float | None, notebooks: int) -> None:
        self._file, self.kept = folder / "clock.json", read(folder, of)
        self.minutes = minutes if more is None else None
        self._started = time.monotonic()
        self.measures = more != 0
        self.lab: Lab | None = None  # while it waits for others that measure on this machine, the clock stands still
        self.broke_off = False  # has something ended the measuring before its time?
        allowed = more if more is not None else minutes
        self._seconds = math.inf if allowed is None else 60 * allowed - NOTEBOOK_S * notebooks
        if more is None:
            self._seconds -= self.kept["seconds"]
            if minutes is not None and minutes <= self.kept["enough"]:
                self._seconds = 0.0

    @property
    def shared(self) -> bool:
        """Is there one time for all comparisons?"""
        return self._seconds != math.inf

    @property
    def left_s(self) -> float:
        """Seconds in which may still be measured."""
        return self._seconds - self._run_s

    def keep(self) -> None:
        """Write down the time spent; time that cannot be written is counted again."""
        try:
            manifest.write(self._file, self.kept | {"seconds": round(self.kept["seconds"] + self._run_s, 1)})
        except OSError as error:
            progress.say(f"{self._file}: could not be written: {error.strerror}")

    @property
    def _run_s(self) -> float:
        return time.monotonic() - self._started - (self.lab.waited_s if self.lab else 0.0)


def measure(studies: Mapping[str, Study], folder: Path, clock: Clock) -> list[str]:
    """Measure all that these notebooks' studies ask for. Return the names of those that failed, which must say why."""
    measures = Measures.LATER if clock.shared else Measures.BUDGET
    clock.lab = lab = Lab(outputs=folder, measures=measures, after_keeping=clock.keep)
    wrong, every = [], [condition for study in studies.values() for condition in study.every]
    try:
        with contextlib.suppress(Exception):  # a notebook's wrong conditions are reported when it is measured
            lab.certify(every)  # all at once: notebook by notebook, every process would import its framework again
        for name, study in studies.items():
            try:
                study.measure(lab)
            except Exception as error:  # whatever it is: it must not stop the others
                progress.say(f"{name}: not measured, and tried again by itself: {type(error).__name__}: {error}")
                wrong.append(name)
            clock.keep()
        if clock.shared:
            _share(lab, clock, whole=not wrong)
    except Exception as error:  # as above; the measurements so far are there, and make a report
        clock.broke_off = True
        progress.say(f"not all is measured: {type(error).__name__}: {error}")
    finally:
        clock.keep()
    return wrong


def _share(lab: Lab, clock: Clock, whole: bool) -> None:
    """Measure the pilots of all comparisons, and share the rest of the time. Is that the ``whole`` profile?"""
    were_missing = lab.pilots()
    if whole:
        clock.kept["piloted"] = True
    clock.keep()
    if clock.left_s < 0 and were_missing:
        progress.say(f"the pilots took {progress.duration(-clock.left_s)} more than there was; no time is left")
    lab.sharpen(time.monotonic() + clock.left_s)
    if whole:
        # More than the profile's minutes is of no use: nothing is wanted, or nothing fits into the rest.
        clock.kept["enough"] = max(clock.kept["enough"], clock.minutes or 0.0)


def require(minutes: float, missing: Sequence[Study], notebooks: int = 0) -> None:
    """Refuse minutes that are too few for the pilots of the ``missing`` studies and for so many notebooks."""
    every = [condition for study in missing for condition in study.every]
    starts = len({(one.implementation, one.mode, one.precision, one.device) for one in every})  # those of the gate
    starts += sum(study.least_runs for study in missing)
    least = sum(map(pilots_s, missing)) + planner.LEAST_START_S * starts
    executed_s = NOTEBOOK_S * notebooks
    if 60 * minutes < least + executed_s:
        takes = f"checks, training runs and first processes take {progress.duration(least)} at the very least, and "
        takes += f"notebooks about {progress.duration(executed_s)}"
        enough = f"give {math.ceil((least + executed_s) / 60)} or more, or 0 to report the present results"
        raise BenchlibError(f"minutes {minutes:g}: {takes}: {enough}")


def pilots_s(study: Study) -> float:
    """Seconds of the pilots of a study's comparisons, at the very least. Each has a control."""
    processes = sum(1 + len(group) for group in study.groups)
    return planner.least_s(study.settings["pilot"], study.settings["block_s"], processes) if processes else 0.0


def read(folder: Path, of: str) -> dict[str, Any]:
    """The time that results have had; ``enough`` are profile's minutes beyond which nothing more came."""
    nothing = {"of": of, "seconds": 0.0, "piloted": False, "enough": 0.0}
    try:
        kept = json.loads((folder / "clock.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return nothing
    return kept if isinstance(kept, dict) and kept.keys() == nothing.keys() and kept["of"] == of else nothing
