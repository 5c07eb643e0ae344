"""A data-parallel group, seen from the parent as one worker. Its launcher (torchrun, msrun) starts the processes; each
gets every request and answers it. One that dies, fails or falls silent ends the group.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import statistics
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

WORKER = str(fingerprint.PACKAGE / "worker" / "__main__.py")

TICK_S = 0.25
LONGEST_FOLDER = 107 - len("/benchlib-worker-12345678/group")  # of temporary files: a socket's path has a limit
EQUAL = frozenset({"steps", "parameters", "weights_sha256", "data_sha256", "order_sha256"})


def merge_answers(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """One answer of several; a ChannelGarbage if values that must be equal are not."""
    together = dict(answers[0])  # of values that are not named below, the first process's counts
    for name in together:
        values = [answer[name] for answer in answers]
        if name in EQUAL and any(one != values[0] for one in values):
            raise ChannelGarbage(f"the processes of the group do not have the same {name}: {values}")
        if name in MERGED or name.startswith("device_"):  # memory
            together[name] = MERGED.get(name, sum)(values)
    return together


MERGED: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(("cpu_s", "samples", "rss_mib", "peak", "steady", "private"), sum),
    **dict.fromkeys(("wall_s", "device_s"), max),
    "started_s": min,
    "loss": statistics.fmean,  # each has that of its part of the batch
    "files": lambda values: {module: file for one in values for module, file in one.items()},  # imported by any
    "block": merge_answers,
}


def launch(condition: Condition, scratch: Path, environment: Mapping[str, str], log: Any) -> subprocess.Popen:
    """Start the group's processes by the framework's own launcher; they connect to the socket ``scratch/group``."""
    python = environments.find(condition.environment).python
    places = {"world_size": condition.world_size, "port": _free_port(), "scratch": scratch}
    options = [option.format(**places) for option in frameworks.launcher(condition.framework)]
    path = os.pathsep.join([str(Path(python).parent), environment.get("PATH", "")])  # msrun starts ``python``
    environment = {**environment, "PATH": path}
    command = [python, *options, WORKER, str(scratch / "group"), condition.framework]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    return subprocess.Popen(command, cwd=scratch, env=environment, **pipes, start_new_session=True)


class GroupChannel:
    """The parent's end of the channels to all processes of a group, with the methods of a ``Channel``."""

    def __init__(self, scratch: Path, world_size: int) -> None:
        self.launcher: subprocess.Popen  # is started once there is a socket to connect to
        self.pids: list[int] = []
        self._world_size = world_size
        self._channels: dict[int, Channel] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._started: dict[int, psutil.Process] = {}
        self._unsent: list[dict[str, Any]] = []  # requests from before they were there
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(scratch / "group"))
        self._listener.listen(world_size)

    def send(self, message: dict[str, Any]) -> None:
        """Send to each; before they have connected it waits for that."""
        if len(self._channels) < self._world_size:
            self._unsent.append(message)
        else:
            for channel in self._channels.values():
                channel.send(message)

    def receive(self, patience_s: float, tick: Callable[[], None] | None = None) -> dict[str, Any]:
        """The next answer of all; an error of one process at once, without waiting for the others."""
        deadline = time.monotonic() + patience_s
        if len(self._channels) < self._world_size:
            self._connect(deadline)
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < self._world_size:
            waiting = {self._sockets[rank]: rank for rank in self._channels if rank not in answers}
            for ready in self._wait_readable(list(waiting), deadline, tick):
                rank = waiting[ready]
                try:
                    answer = self._channels[rank].receive(max(0.1, deadline - time.monotonic()))
                except ChannelClosed:
                    raise ChannelClosed(f"process {rank} of {self._world_size} is gone") from None
                if "error" in answer:
                    return {**answer, "of": f"process {rank} of {self._world_size}"}
                answers[rank] = answer
        return merge_answers([answers[rank] for rank in sorted(answers)])

    def close(self) -> None:
        """Close all ends."""
        self._listener.close()
        for channel in self._channels.values():
            channel.close()

    def _connect(self, deadline: float) -> None:
        """Wait until every process has connected and said its number; then send the requests that wait for that."""
        while len(self._channels) < self._world_size:
            self._wait_readable([self._listener], deadline)
            end, _ = self._listener.accept()
            channel = Channel(end)
            hello = channel.receive(max(0.1, deadline - time.monotonic()))
            self._channels[hello["rank"]], self._sockets[hello["rank"]] = channel, end
            self.pids.append(hello["pid"])
        while self._unsent:
            self.send(self._unsent.pop(0))

    def _wait_readable(
        self, sockets: list[socket.socket], deadline: float, tick: Callable[[], None] | None = None
    ) -> list[socket.socket]:
        """Those that have something to read, by the ``deadline``; calls ``tick`` while there are none."""
        while (left := deadline - time.monotonic()) > 0:
            if ready := select.select(sockets, [], [], min(left, TICK_S))[0]:
                return ready
            if gone := self._name_missing():
                if ready := select.select(sockets, [], [], 0)[0]:  # its last words, or the closing of its end
                    return ready
                raise ChannelClosed(gone)
            if tick:
                tick()
        raise ChannelSilent("no message in time")

    def _name_missing(self) -> str:
        """Name a lost process that the others wait for: the launcher, or one of its own, as msrun's scheduler."""
        if len(self._channels) < self._world_size:  # later there are no new ones
            if self.launcher.poll() is not None:
                return "the launcher ended before all processes had started"
            with contextlib.suppress(psutil.Error):
                launcher = psutil.Process(self.launcher.pid)
                for child in launcher.children():
                    # Between fork and exec a child has the launcher's command, whatever it is going to be.
                    if WORKER in child.cmdline() and child.cmdline() != launcher.cmdline():
                        self._started[child.pid] = child
        gone = next((number for number, process in self._started.items() if not _is_alive(process)), None)
        return f"process {gone}, which the launcher had started, is gone" if gone else ""


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
        """The processes that the ranks have started."""
        return [child for rank in self._all()[1:] for child in rank.children(recursive)]

    def _all(self) -> list[psutil.Process]:
        return [self.launcher, *(psutil.Process(pid) for pid in self.channel.pids)]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
