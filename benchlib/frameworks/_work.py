"""The work of a model's file beside its model, as a worker sees it: calls that a step does not need, threads left at
work, settings of the framework that it changes. Nothing of it shows in the numbers that the gate compares.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from benchlib import workloads
from benchlib.errors import BenchlibError
from benchlib.frameworks import Session, changing

COPY = ("item", "tolist", "numpy", "asnumpy", "asscalar", "__array__", "__float__", "cpu", "device_get", "get_weights")
WAIT = ("synchronize", "block_until_ready", "effects_barrier", "waitall", "wait_to_read", "async_wait", "sync", "sleep")
WRITE = ("print", "write", "flush", "open", "save", "savez", "dump", "dumps")
NEEDLESS = frozenset({*COPY, *WAIT, *WRITE, "deepcopy", "collect"})
"""Functions that no step of a model has to call: they copy to the host, wait, write, or tidy up."""

ON_HOST = ("_callback", "debug_print", "EagerPyFunc", "PrintV2")
"""Ends of the names of operations of traced steps that leave the framework: JAX's and TensorFlow's."""

COMPILATIONS = "compilations"
"""The setting that counts how often steps were compiled."""


class Settings:
    """The settings of a session before the model's ``file`` is imported, and after its ``first`` step."""

    def __init__(self, session: Session, framework: str, workload: str) -> None:
        self._session, self._own = session, changing(framework)
        self.file = f"workloads/{workload}/{framework}.py"
        self.before = self.first = session.settings()

    def keep(self) -> None:
        """Take those of now for the ones after the first step."""
        self.first = self._session.settings()

    def change(self) -> str:
        """A sentence on a setting that is another than before; empty where there is none. A setting that the framework
        changes by itself is left out (``changing``), and so is one that is there only later.
        """
        now = self._session.settings()
        for was, when in ((self.first, "after the first step"), (self.before, f"before {self.file} was imported")):
            for name in sorted(was.keys() & now.keys() - {COMPILATIONS, *self._own}):
                if was[name] != now[name]:
                    said = f"the setting {name} was {was[name]!r} {when}, and is {now[name]!r} after the last one"
                    return (
                        f"{said}: {self.file} may build a model, and set nothing else; take it out, or declare a knob"
                    )
        counts = [one.get(COMPILATIONS, 0) for one in (self.first, now)]
        if counts[1] > counts[0]:
            said = f"the step was compiled {counts[0]} times in the first one, and {counts[1]} times after the last one"
            return f"{said}: see that nothing but the batch of {self.file} differs from step to step"
        return ""

    def require(self) -> dict[str, Any]:
        """The settings now; a BenchlibError where one has changed."""
        change = self.change()
        if change:
            raise BenchlibError(change)
        return self._session.settings()


def observe(session: Session, settings: Settings, batches: Sequence[Any], batch_size: int) -> dict[str, Any]:
    """The ``multiply_adds`` of a step for a sample (None: not counted), the ``calls`` in a step, with those that were
    traced, and ``beside``: sentences on what it does that it should not.
    """
    session.step(batches[0])  # the first may have to be compiled
    session.synchronize()
    settings.keep()

    def step() -> None:
        session.step(batches[-1])
        session.synchronize()

    folders = tuple(os.path.join(folder, "") for folder in workloads.__path__)
    (first, beside), (second, again) = calls(step, folders), calls(step, folders)  # some caches are filled late
    counted = getattr(session, "multiply_adds", lambda batch: None)(batches[0])
    traced = getattr(session, "operations", [])
    on_host = [
        f"{settings.file}: a step runs {name} on the host" for name in sorted({*traced}) if name.endswith(ON_HOST)
    ]
    return {
        "multiply_adds": None if counted is None else counted / batch_size,
        "calls": min(first, second) + len(traced),
        "beside": [*dict.fromkeys([*beside, *again]), *on_host, *filter(None, [settings.change()])],
    }


def calls(step: Callable[[], Any], folders: tuple[str, ...]) -> tuple[int, list[str]]:
    """Take a step. The number of calls in it that files in ``folders`` make, as Python sees them, and a sentence for
    each of their lines that calls a function of :data:`NEEDLESS`, or that another thread is at behind the step.
    """
    count = 0
    found = {}  # type: dict[str, None]

    def look(frame: FrameType, event: str, function: Any) -> None:
        nonlocal count
        caller = {"call": frame.f_back, "c_call": frame}.get(event)
        if caller is not None and caller.f_code.co_filename.startswith(folders):
            count += 1
            name = getattr(function, "__name__", "") if event == "c_call" else frame.f_code.co_name
            if name in NEEDLESS:
                found[f"{_place(caller)}: calls {name}() in a step"] = None

    threading.setprofile(look)  # of threads that the step starts
    sys.setprofile(look)
    try:
        step()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    for thread, frame in sys._current_frames().items():
        at = frame  # type: FrameType | None
        while at is not None and thread != threading.get_ident():
            if at.f_code.co_filename.startswith(folders):
                found[f"{_place(at)}: another thread is at work behind the step"] = None
            at = at.f_back
    return count, list(found)


def _place(frame: FrameType) -> str:
    """File, line and function."""
    path = "/".join(frame.f_code.co_filename.split(os.sep)[-3:])
    return f"{path}, line {frame.f_lineno}, {frame.f_code.co_name}"
