"""Workers seen from the parent: started fresh, asked, ended. One that fails costs its own measurement only."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from benchlib import env_vars, environments, plugins, scratch
from benchlib.condition import Condition
from benchlib.errors import Failure
from benchlib.provenance import installed, knobs
from benchlib.runner import process_group
from benchlib.worker import PLUGINS, files
from benchlib.worker.channel import Channel, ChannelClosed, ChannelGarbage, ChannelSilent

PATIENCE_S = 900.0  # silence after which a worker counts as hung: longer than the slowest compilation seen
TAIL_CHARACTERS = 2000
Tick = Callable[[], None]


class WorkerFailed(Exception):
    """A worker died, hung or failed; the text says which, and ends with its last output."""

    def __init__(self, failure: Failure | str) -> None:
        self.failure = Failure(sentence=failure) if isinstance(failure, str) else failure
        super().__init__(str(self.failure))


class WorkerProcess:
    """One fresh process, or group of them, for one condition; ``extra``: variables for untimed work, beside knobs."""

    def __init__(
        self, condition: Condition, seed: int, patience_s: float = PATIENCE_S, extra: Mapping[str, str] | None = None
    ) -> None:
        self.condition, self.patience_s = condition, patience_s
        self._group, self._ended = condition.world_size > 1, False
        self.held = False
        self.restless = False  # has been seen at work when it was another's turn
        self.unasked_s, self.watched_s = 0.0, 0.0  # CPU time of such work, of the time in which there should be none
        self.children_seen: tuple[float, float] | None = None  # CPU time of those that it has started, and when
        try:
            self.scratch = scratch.make("worker")
        except OSError as error:
            raise WorkerFailed(f"worker could not be started: {error}") from error
        self.log = self.scratch / "printed.txt"
        try:
            started = {**environment(condition, self.scratch), **(extra or {})}
            set_here = {**knobs.find(condition), **(extra or {})}
            inherited = {**env_vars.for_key(condition, started), **env_vars.devices(started)}
            left_out = env_vars.omissions(started, os.environ)
            self.surroundings = env_vars.Surroundings(set_here, inherited, left_out)
            self._start_group(started) if self._group else self._start_one(started)
        except BaseException as error:
            scratch.remove(self.scratch)
            if isinstance(error, OSError):
                raise WorkerFailed(f"worker could not be started: {error}") from error
            raise
        try:
            named = {"framework", "device", "mode", "precision", "world_size", "communication"}
            asked = {"seed": seed, "cpus": condition.threads, "knobs": knobs.for_session(condition)}
            self._request({"do": "open", **condition.model_dump(include=named), **asked})
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def finish_open(self) -> dict[str, Any]:
        """Wait for the import; a BenchlibError if the versions are not those that keys are made of."""
        answer = self.finish("open")
        installed.require_versions(self.condition.framework, self.condition.environment, answer["versions"])
        return answer

    def ask(
        self, do: str, tick: Tick | None = None, each: Callable[[dict], None] = lambda block: None, **details: Any
    ) -> dict:
        """Call do_NAME of ``worker.service.Worker``; ``tick`` is called meanwhile, ``each`` gets earlier blocks."""
        self.begin(do, **details)
        while "block" in (answer := self.finish(do, tick)):
            each(answer["block"])
        return answer

    def begin(self, do: str, **details: Any) -> None:
        """Send a request and do not wait: several workers can do untimed work at once. See :meth:`finish`."""
        self.release()
        self._request({"do": do, **details})

    def finish(self, do: str, tick: Tick | None = None) -> dict[str, Any]:
        """Wait for the answer to the request that was begun."""
        try:
            answer = self.channel.receive(self.patience_s, tick)
        except ChannelClosed as error:
            who = f" ({error})" if self._group else ""
            raise self.give_up(f"died in {do!r}{who}") from None
        except ChannelSilent:
            raise self.give_up(f"hung in {do!r}: silent for {self.patience_s:g} s") from None
        except ChannelGarbage as error:
            raise self.give_up(f"talked rubbish in {do!r}: {error}") from None
        if "error" in answer:
            exception, message, traceback = (str(answer.get(name, "")) for name in ("exception", "error", "traceback"))
            process = f"{answer['of']}: " if "of" in answer else ""
            refusal = {"request": do, "exception": exception, "message": message}
            raise self.give_up(f"failed in {do!r}: {process}{exception}: {message}", traceback, **refusal)
        return answer

    def arrays(self, file: Path, read: Callable[[Path], Any] = files.unpack) -> Any:
        """The arrays by name that it packed in ``file``, or the result of ``read``."""
        try:
            return read(file)
        except Exception as error:  # a broken file can make numpy and zipfile raise an error of any type
            said = f"{file.name} cannot be read: {type(error).__name__}: {error}"
            raise self.give_up(f"wrote unusable results: {said}") from error

    def pids(self) -> list[int]:
        """The numbers of the processes that compute."""
        return self.channel.pids if self._group else [self.process.pid]

    def map_children(self, do: Callable[[psutil.Process], Any]) -> list[Any]:
        """Call ``do`` for each running process that the worker has started; return the results."""
        given = []
        with contextlib.suppress(psutil.Error):
            for child in self.cpu.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    given.append(do(child))
        return given

    def hold(self) -> None:
        """Stop the process and its children until it is asked again; not a group, which would miss signs of life."""
        if not self._group:
            self.held = True
            self._signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let the process go on, if it was held."""
        if self.held:
            self.held = False
            self._signal(signal.SIGCONT)

    def end(self) -> None:
        """End the process and its children, whatever it is doing, and remove its scratch directory."""
        if self._ended:
            return
        self._ended = True
        self.release()
        started = self._descendants()
        try:
            with contextlib.suppress(ChannelClosed, subprocess.TimeoutExpired):
                self.channel.send({"do": "end"})
                self.process.wait(timeout=2)
        finally:  # an interrupt, too
            self._kill(started)
            self.channel.close()
            scratch.remove(self.scratch)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.map_children(lambda child: child.send_signal(number))  # those of another session, too

    def _start_group(self, environment: Mapping[str, str]) -> None:
        self.channel = process_group.GroupChannel(self.scratch, self.condition.world_size)
        with self.log.open("wb") as log:
            self.process = process_group.launch(self.condition, self.scratch, environment, log)
        self.channel.launcher = self.process
        self.cpu = process_group.GroupUsage(psutil.Process(self.process.pid), self.channel)

    def _start_one(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        python = environments.find(self.condition.environment).python
        command = [python, process_group.WORKER, str(theirs.fileno()), str(os.getpid())]
        with self.log.open("wb") as log:
            own = {"cwd": self.scratch, "env": environment, "pass_fds": [theirs.fileno()], "start_new_session": True}
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.process = subprocess.Popen(command, **own, **pipes)  # Ctrl-C reaches the parent only
        theirs.close()
        self.channel = Channel(ours)
        self.cpu = psutil.Process(self.process.pid)

    def _request(self, message: dict[str, Any]) -> None:
        try:
            self.channel.send(message)
        except ChannelClosed:
            raise self.give_up(f"died before {message['do']!r}") from None

    def give_up(self, what: str, said: str = "", **refusal: str) -> WorkerFailed:
        """End the worker, and return an error that says ``what`` is wrong with it."""
        self._kill(self._descendants())
        code = self.process.returncode
        how = f" (signal {signal.Signals(-code).name})" if code is not None and code < 0 and "died" in what else ""
        printed = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        texts = {"sentence": f"worker {what}{how}", "printed": (printed + said)[-TAIL_CHARACTERS:].strip(), **refusal}
        # JSON can say halves of characters, no file can.
        return WorkerFailed(Failure(**{name: text.encode(errors="replace").decode() for name, text in texts.items()}))

    def _descendants(self) -> list[psutil.Process]:
        """All below the process, some in sessions of their own, which a signal to its session misses."""
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def _kill(self, started: list[psutil.Process]) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.2)  # one that died by itself: keep its own exit code
        for child in started:
            with contextlib.suppress(psutil.Error):
                child.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def environment(condition: Condition, place: Path) -> dict[str, str]:
    """A worker's variables. PYTHONPATH has links: beside the real benchlib lie the parent's own packages."""
    folder = place / "path" / "benchlib"
    folder.parent.mkdir(parents=True)
    # A link, so that files lie below a folder of the path: MindSpore's rewriting of networks tells modules by that.
    folder.symlink_to(plugins.OWN, target_is_directory=True)
    inherited = knobs.environment(condition, place)
    path = [str(folder.parent), *filter(None, [inherited.get("PYTHONPATH")])]
    given = {**inherited, "PYTHONPATH": os.pathsep.join(path)}
    beside = [folder.with_name(f"plugin{number}") for number in range(len(plugins.folders()))]
    for link, target in zip(beside, plugins.folders(), strict=True):
        link.symlink_to(target, target_is_directory=True)
    return given | ({PLUGINS: os.pathsep.join(map(str, beside))} if beside else {})
