"""A data-parallel group of processes, seen from the parent as one worker: torchrun or msrun starts them, each connects
to the parent, gets every request and answers it; answers are put together (:func:`merged`). One process that dies,
fails or falls silent ends the group at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from benchlib import environments, frameworks
from benchlib.condition import Condition
from benchlib.provenance import fingerprint
from benchlib.worker.channel import Channel, ChannelClosed, ChannelGarbage, ChannelSilent

RANK = fingerprint.PACKAGE / "worker" / "rank.py"

LONGEST_FOLDER = 107 - len("/benchlib-worker-12345678/group")
"""Characters of the folder for temporary files: the system's limit of a socket's path, less a scratch directory's."""

SUMS = frozenset({"cpu_s", "samples", "rss_mib", "peak", "steady", "private"})
LONGEST, EARLIEST = frozenset({"wall_s", "device_s"}), frozenset({"started_s"})
EQUAL = frozenset({"steps", "parameters", "weights_sha256", "data_sha256", "order_sha256"})
MEANS = frozenset({"loss"})  # each has that of its part of the batch
"""How answers are put together, by name; of what is not named, the first process's counts."""


def merged(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """One answer of several; what must be equal is a ChannelGarbage if it is not."""
    together = dict(answers[0])
    for name in together:
        values = [answer[name] for answer in answers]
        if name in LONGEST:
            together[name] = max(values)
        elif name in SUMS or name.startswith("device_"):  # memory
            together[name] = sum(values)
        elif name in EARLIEST:
            together[name] = min(values)
        elif name in MEANS:
            together[name] = sum(values) / len(values)
        elif name == "files":  # by module: what any of them has imported
            together[name] = {module: file for one in values for module, file in one.items()}
        elif name in EQUAL and any(one != values[0] for one in values):
            raise ChannelGarbage(f"the processes of the group do not have the same {name}: {values}")
        elif name == "block":
            together[name] = merged(values)
    return together


def launch(condition: Condition, scratch: Path, environment: Mapping[str, str], log: Any) -> subprocess.Popen:
    """Start the group's processes by the framework's own launcher; they look for the socket in ``scratch``."""
    python = environments.find(condition.environment).python
    places = {"world_size": condition.world_size, "port": _free_port(), "scratch": scratch}
    options = [option.format(**places) for option in frameworks.launcher(condition.framework)]
    environment = {
        **environment,
        "PATH": os.pathsep.join([str(Path(python).parent), environment.get("PATH", "")]),  # msrun starts ``python``
        "PYTHONSAFEPATH": "1",  # or modules beside the script would stand in for the standard library's
    }
    command = [python, *options, str(RANK), str(socket_path(scratch)), condition.framework]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    return subprocess.Popen(command, cwd=scratch, env=environment, **pipes, start_new_session=True)


def socket_path(scratch: Path) -> Path:
    """Where the parent listens for the group's processes."""
    return scratch / "group"


class GroupChannel:
    """The parent's end of the channels to all processes of a group, with the methods of a ``Channel``."""

    def __init__(self, scratch: Path, world_size: int, launcher: Callable[[], int | None]) -> None:
        self._world_size, self._launcher = world_size, launcher
        self._channels: dict[int, Channel] = {}
        self._sockets: dict[int, socket.socket] = {}
        self.pids: list[int] = []
        self._launched: psutil.Process | None = None
        self._started: dict[int, psutil.Process] = {}
        self._unsent: list[dict[str, Any]] = []  # what was asked before they were there
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path(scratch)))
        self._listener.listen(world_size)

    def watch(self, launcher: int) -> None:
        """Notice when a process is gone that the launcher with this number has started, as msrun's scheduler: the
        launcher may go on, and the others wait for it.
        """
        with contextlib.suppress(psutil.Error):  # it has ended already, which others notice
            self._launched = psutil.Process(launcher)

    def send(self, message: dict[str, Any]) -> None:
        """Send to each; before they have connected it waits for that."""
        if len(self._channels) < self._world_size:
            self._unsent.append(message)
            return
        for channel in self._channels.values():
            channel.send(message)

    def receive(
        self, patience_s: float | None = None, tick: Callable[[], None] | None = None, tick_s: float = 0.25
    ) -> dict[str, Any]:
        """The next answer of all; an error of one process at once, without waiting for the others."""
        deadline = time.monotonic() + (patience_s if patience_s is not None else float("inf"))
        if len(self._channels) < self._world_size:
            self._connect(deadline)
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < self._world_size:
            waiting = {self._sockets[rank]: rank for rank in self._channels if rank not in answers}
            if not (readable := self._ready(list(waiting), deadline, tick, tick_s)):
                raise ChannelSilent("no message in time")
            for ready in readable:
                rank = waiting[ready]
                try:
                    answer = self._channels[rank].receive(max(0.1, deadline - time.monotonic()))
                except ChannelClosed:
                    raise ChannelClosed(f"process {rank} of {self._world_size} is gone") from None
                if "error" in answer:
                    return {**answer, "of": f"process {rank} of {self._world_size}"}
                answers[rank] = answer
        return merged([answers[rank] for rank in sorted(answers)])

    def close(self) -> None:
        """Close all ends."""
        self._listener.close()
        for channel in self._channels.values():
            channel.close()

    def _connect(self, deadline: float) -> None:
        """Wait until every process has connected and said its number; then send what has waited for that."""
        while len(self._channels) < self._world_size:
            if self._launcher() is not None:
                raise ChannelClosed("the launcher ended before all processes had started")
            if not self._ready([self._listener], min(deadline, time.monotonic() + 0.5), None, 0.5):
                if time.monotonic() >= deadline:
                    raise ChannelSilent(f"{len(self._channels)} of {self._world_size} processes came")
                continue
            end, _ = self._listener.accept()
            channel = Channel(end)
            hello = channel.receive(max(0.1, deadline - time.monotonic()))
            self._channels[hello["rank"]], self._sockets[hello["rank"]] = channel, end
            self.pids.append(hello["pid"])
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            self.send(message)

    def _ready(
        self, sockets: list[socket.socket], deadline: float, tick: Callable[[], None] | None, tick_s: float
    ) -> list[socket.socket]:
        """Those that have something to read, none after the ``deadline``; calls ``tick`` while there are none."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            if ready := select.select(sockets, [], [], min(left, tick_s))[0]:
                return ready
            if gone := self._gone():
                if ready := select.select(sockets, [], [], 0)[0]:  # what it said last, or that its end is closed
                    return ready
                raise ChannelClosed(gone)
            if tick:
                tick()

    def _gone(self) -> str | None:
        """Which process that the launcher has started is gone."""
        if self._launched is None:
            return None
        if len(self._channels) < self._world_size:  # later there are no new ones
            with contextlib.suppress(psutil.Error):
                for child in self._launched.children():
                    # Between fork and exec a child has the launcher's command, whatever it is going to be.
                    if str(RANK) in child.cmdline() and child.cmdline() != self._launched.cmdline():
                        self._started[child.pid] = child
        gone = [str(process.pid) for process in self._started.values() if not _lives(process)]
        return f"process {gone[0]}, which the launcher had started, is gone" if gone else None


@dataclass
class GroupUsage:
    """CPU time and memory of a launcher and its processes together, with the names that ``psutil.Process`` has."""

    launcher: psutil.Process
    channel: GroupChannel

    def cpu_times(self) -> Any:
        """User and system seconds of all."""
        times = [process.cpu_times() for process in self._all()]
        return SimpleNamespace(user=sum(one.user for one in times), system=sum(one.system for one in times))

    def memory_info(self) -> Any:
        """Resident bytes of the ranks."""
        return SimpleNamespace(rss=sum(process.memory_info().rss for process in self._all()[1:]))

    def children(self, recursive: bool = True) -> list[psutil.Process]:
        """What the ranks have started."""
        return [child for rank in self._all()[1:] for child in rank.children(recursive)]

    def _all(self) -> list[psutil.Process]:
        return [self.launcher, *(psutil.Process(pid) for pid in self.channel.pids)]


def kill(launcher: subprocess.Popen) -> None:
    """Everything that the launcher has started, which is in sessions of its own."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(launcher.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
