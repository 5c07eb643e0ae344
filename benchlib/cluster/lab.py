"""The lab of notebooks and of the command line: it measures under the name of its host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchlib import lab as here
from benchlib.cluster import hosts
from benchlib.lab import Measures as Measures


class Lab(here.Lab):
    """As :class:`benchlib.lab.Lab`; while it measures, no other machine may measure under its name in its folder."""

    @contextmanager
    def _hold_machine(self, tell: Callable[[str], None]) -> Iterator[float]:
        with hosts.hold_name(self.folder), super()._hold_machine(tell) as waited_s:
            yield waited_s
