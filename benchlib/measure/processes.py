"""Workers seen from the parent: started fresh, asked, watched, ended. The parent sleeps while it waits.

A worker that dies, falls silent or talks rubbish raises :class:`WorkerFailed` with the end of what it said; it costs
its own measurement, and nothing else. Its scratch directory goes with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import psutil

from benchlib import knobs
from benchlib.condition import Condition
from benchlib.measure import group, machine
from benchlib.measure.channel import Channel, ChannelClosed, ChannelGarbage, ChannelSilent

PATIENCE_S = 900.0
"""Silence after which a worker counts as hung: longer than the slowest step or compilation seen (MindSpore's
reference convolution, batch 1024).
"""

TAIL_CHARACTERS = 2000


class WorkerFailed(Exception):
    """A worker died, hung, failed or talked rubbish; the text says which, and ends with what it printed last."""


class WorkerProcess:
    """One fresh process for one condition; a group of them, if it is data-parallel. Construction returns at once;
    :meth:`opened` waits until it has imported its framework. ``extra`` are environment variables beside the condition's
    knobs, for what is not timed.
    """

    def __init__(
        self,
        condition: Condition,
        seed: int,
        patience_s: float = PATIENCE_S,
        extra: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.condition = condition
        self.patience_s = patience_s
        self._ended = False
        self.scratch = Path(tempfile.mkdtemp(prefix="benchlib-worker-"))
        self.log = self.scratch / "printed.txt"
        package_root = str(machine.PACKAGE.parent)
        environment = {
            **knobs.environment(condition, self.scratch),
            "PYTHONPATH": os.pathsep.join([package_root, *filter(None, [os.environ.get("PYTHONPATH")])]),
            **extra,
        }
        self._group = condition.world_size > 1
        try:
            self._start_group(environment) if self._group else self._start_one(environment)
        except OSError:
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise
        self.held = False
        self.restless = False  # has been seen at work when it was another's turn
        self.unasked_s, self.watched_s = 0.0, 0.0  # CPU time of such work, of the time in which there should be none
        try:
            self._request_open(seed)
        except WorkerFailed:
            self.end()
            raise

    def opened(self) -> dict[str, Any]:
        """Wait for the import; versions, settings, memory after import."""
        return self.finish("open")

    def ask(
        self,
        do: str,
        tick: Callable[[], None] | None = None,
        each: Callable[[dict], None] | None = None,
        **details: Any,
    ) -> dict:
        """Send a request and return its answer. ``tick`` is called while waiting; ``each`` gets the blocks that come
        before the answer.
        """
        self.begin(do, **details)
        while "block" in (answer := self._answer(do, tick)):
            if each:
                each(answer["block"])
        return answer

    def begin(self, do: str, **details: Any) -> None:
        """Send a request and do not wait: several workers can do at once what is not timed. See :meth:`finish`."""
        self.release()
        self._request({"do": do, **details})

    def finish(self, do: str) -> dict[str, Any]:
        """Wait for the answer to what was begun."""
        return self._answer(do)

    def pids(self) -> list[int]:
        """The numbers of the processes that compute."""
        return self.channel.pids if self._group else [self.process.pid]

    def children_mib(self) -> float:
        """Resident memory of the processes that the worker has started and that still run."""
        total = 0.0
        with contextlib.suppress(psutil.Error):
            for child in self.cpu.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    total += child.memory_info().rss / 2**20
        return total

    def hold(self) -> None:
        """Stop the process and its children until it is asked again: for one that works without being asked. A group is
        left alone: its processes would miss each other's signs of life.
        """
        if self._group:
            return
        self.held = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGSTOP)

    def release(self) -> None:
        """Let the process go on, if it was held."""
        if self.held:
            self.held = False
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGCONT)

    def end(self) -> None:
        """End the process and its children, whatever it is doing, and remove its scratch directory; once is enough."""
        if self._ended:
            return
        self._ended = True
        self.release()
        try:
            with contextlib.suppress(ChannelClosed, subprocess.TimeoutExpired):
                self.channel.send({"do": "end"})
                self.process.wait(timeout=2)
        finally:  # an interrupt, too
            self._kill()
            self.channel.close()
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _request_open(self, seed: int) -> None:
        condition = self.condition
        self._request(
            {
                "do": "open",
                "framework": condition.framework,
                "device": condition.device,
                "mode": condition.mode,
                "precision": condition.precision,
                "seed": seed,
                "cpus": condition.threads,
                "world_size": condition.world_size,
                "communication": condition.communication,
                "knobs": knobs.for_session(condition),
            }
        )

    def _start_group(self, environment: Mapping[str, str]) -> None:
        self.channel = group.GroupChannel(self.scratch, self.condition.world_size, lambda: self.process.poll())
        with self.log.open("wb") as log:
            self.process = group.launch(self.condition, self.scratch, environment, log)
        self.channel.watch(self.process.pid)
        self.cpu = group.GroupUsage(psutil.Process(self.process.pid), self.channel)

    def _start_one(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    machine.interpreter(self.condition.framework),
                    "-m",
                    "benchlib.measure.worker",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                cwd=self.scratch,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the parent only, which can end the worker's children too
            )
        theirs.close()
        self.channel = Channel(ours)
        self.cpu = psutil.Process(self.process.pid)

    def _request(self, message: dict[str, Any]) -> None:
        try:
            self.channel.send(message)
        except ChannelClosed:
            raise self.failed(f"died before {message['do']!r}") from None

    def _answer(self, do: str, tick: Callable[[], None] | None = None) -> dict[str, Any]:
        try:
            answer = self.channel.receive(self.patience_s, tick)
        except ChannelClosed as error:
            who = f" ({error})" if self._group else ""
            raise self.failed(f"died in {do!r}{who}") from None
        except ChannelSilent:
            raise self.failed(f"hung in {do!r}: silent for {self.patience_s:g} s") from None
        except ChannelGarbage as error:
            raise self.failed(f"talked rubbish in {do!r}: {error}") from None
        if "error" in answer:
            raise self.failed(f"failed in {do!r}: {answer['error']}", answer.get("traceback", ""))
        return answer

    def failed(self, what: str, said: str = "") -> WorkerFailed:
        self._kill()
        code = self.process.returncode
        how = f" (signal {signal.Signals(-code).name})" if code is not None and code < 0 and "died" in what else ""
        printed = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        tail = (printed + said)[-TAIL_CHARACTERS:].strip()
        return WorkerFailed(f"worker {what}{how}. The end of what it said:\n{tail or '(nothing)'}")

    def _kill(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.2)  # one that died by itself: keep its own exit code
        if self._group:
            group.kill(self.process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def faults(worker: WorkerProcess | None) -> Iterator[None]:
    """What a worker answered in good JSON may still lack a key, or be of the wrong kind, a file that it wrote may not
    be one, and a process of a group may be gone: that is its failure, too.
    """
    try:
        yield
    except psutil.Error as error:  # of a group's process, which its launcher has already reaped
        if worker is None:
            raise WorkerFailed(f"worker could not be started: {error}") from error
        raise worker.failed(f"died: {error}") from error
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        OSError,
        EOFError,
        BadZipFile,
    ) as error:
        what = f"{type(error).__name__}: {error}"
        if worker is None:
            raise WorkerFailed(f"worker could not be started: {what}") from error
        raise worker.failed(f"answered what cannot be used: {what}") from error


STALE_S = 600.0  # a younger scratch directory may belong to a worker that is just being started


def remove_stale_scratch() -> None:
    """Remove what workers left whose parent was killed: old scratch directories that no process works in."""
    used = set()
    for process in psutil.process_iter():
        try:
            used.add(process.cwd())
        except psutil.Error:
            continue
    for folder in Path(tempfile.gettempdir()).glob("benchlib-worker-*"):
        try:
            told = folder.stat()
        except FileNotFoundError:
            continue  # its worker ended meanwhile
        old = time.time() - told.st_mtime > STALE_S
        if old and str(folder.resolve()) not in used and told.st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)
