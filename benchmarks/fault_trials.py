"""The trials of ``faults.py``: each does one thing to a run at a random moment. What it does not say is judged for all
alike.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import fault_judge as judge
import fault_places as places
import fault_subject as subject
import psutil

END_S = 60.0
"""Seconds that a run may take to end, beside ten times what it takes without a fault: this may be a busy machine."""

WORKERS_UNTIL = 0.75
"""Share of a run after which it may start no worker any more."""

BALLAST = "ballast"

MODULES = ("torch", "mindspore", "numpy", "json")

MEMORY_CONTROLLERS = (
    (Path("/sys/fs/cgroup/memory"), "memory", "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "", "memory.max"),
)
"""Where Linux keeps groups with a limit of memory, the controller's name in /proc/self/cgroup, and its file: the older
kind and the newer.
"""


@dataclass
class Run:
    """A run that a trial is made on."""

    place: places.Place
    template: places.Template
    chance: random.Random
    kept: judge.Kept
    undo: ExitStack = field(default_factory=ExitStack)  # the fault is over
    allowed: set[int] = field(default_factory=lambda: {0})  # exit codes
    deeds: list[str] = field(default_factory=list)  # what was done to it, in words
    wrong: list[str] = field(default_factory=list)  # what the trial itself has seen
    process: subprocess.Popen | None = None

    def start(self, file_limit: int | None = None, **environment: str | None) -> None:
        """Start what is disturbed."""
        self.process = self.place.start(environment, file_limit)

    def fill_outputs(self) -> None:
        """Put there what a trial of this kind starts with."""
        self.template.copy_to(self.place)
        self.kept.look()

    def pause(self, latest: float = 1.05) -> None:
        """Wait for a random moment of the run: ``latest`` is a share of how long it takes without a fault."""
        gate_done = "certificates" in places.STARTS_WITH.get(self.place.kind, ())  # half of the time, and more
        seconds = self.chance.uniform(0, latest * self.template.seconds * (0.5 if gate_done else 1.0))
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.deeds.append(f"after {seconds:.1f} s")

    def one_of(
        self, which: Callable[[subprocess.Popen], list[psutil.Process]], delay_s: float = 1.0
    ) -> psutil.Process | None:
        """A random one of these processes, a little after there is one; None if the run ends before."""
        while self.process.poll() is None:
            if which(self.process):
                time.sleep(self.chance.uniform(0, delay_s))
                if there := which(self.process):
                    return self.chance.choice(there)
            time.sleep(0.02)
        self.deeds.append("it was over before")
        return None

    @property
    def limit_s(self) -> float:
        return END_S + 10 * self.template.seconds


def end_parent(number: signal.Signals, run: Run) -> None:
    """The process that measures gets a signal; as in a terminal, an interrupt goes to its children as well, and half of
    the time is repeated at once.
    """
    run.fill_outputs()
    run.start()
    run.pause()
    _end(run, number)


def end_parent_printing(number: signal.Signals, run: Run) -> None:
    """The run gets a signal while Chromium prints the report."""
    run.fill_outputs()
    run.start()
    if run.one_of(places.browsers, 0.5):
        _end(run, number)
    if run.place.browser is None:
        run.deeds.append("of a stand-in for Chromium")


def end_worker(number: signal.Signals, run: Run) -> None:
    """A worker gets a signal; of a data-parallel group one of its processes, or their launcher."""
    run.fill_outputs()
    run.start()
    run.pause(WORKERS_UNTIL)
    run.allowed |= {1}
    if worker := run.one_of(places.workers):
        run.deeds.append(number.name)
        with suppress(psutil.Error):
            worker.send_signal(number)


def end_kernel(number: signal.Signals, run: Run) -> None:
    """The kernel of a notebook gets a signal."""
    run.fill_outputs()
    run.start()
    run.allowed |= {1}
    if run.one_of(places.kernels, 0.8 * run.template.seconds):
        for kernel in places.kernels(run.process):
            run.deeds.append(number.name)
            with suppress(psutil.Error):
                kernel.send_signal(number)


def stop_worker(run: Run) -> None:
    """A worker stands still for some seconds, as a paused container does. What such a block counts for is not asked
    here: it must break and hang nothing.
    """
    run.fill_outputs()
    run.start()
    run.pause(WORKERS_UNTIL)
    if worker := run.one_of(places.workers):
        seconds = run.chance.uniform(1, 4)
        with suppress(psutil.Error):
            worker.suspend()
            time.sleep(seconds)
            worker.resume()
        run.deeds.append(f"for {seconds:.1f} s")


def two_at_once(run: Run) -> None:
    """Another process asks for the same, on the same folder. Of two runs of the suite one may be refused."""
    run.fill_outputs()
    run.kept = judge.Kept(run.place.outputs, "certificates/*.json")
    run.start()
    first, delay_s = run.process, run.chance.uniform(0, 1.5)
    time.sleep(delay_s)
    run.start()
    end = time.monotonic() + run.limit_s
    while None in (first.poll(), run.process.poll()) and time.monotonic() < end:
        run.kept.look()
        time.sleep(0.05)
    code = places.wait(first, 1.0)
    run.deeds.append(f"the second after {delay_s:.1f} s, the first ended with {code}")
    refused = {2} if run.place.kind == subject.SUITE else set()
    run.wrong += judge.ended(code, {0} | refused)
    run.allowed |= refused if code == 0 else set()


def full_disk(run: Run) -> None:
    """The disk of the results is full from some moment on; where this user may not mount one, files of a process cannot
    become larger than a little.
    """
    run.allowed |= {1, 2}
    if not run.place.mount(run.place.outputs, mib=24):
        limit = run.chance.choice([1_000, 10_000, 50_000, 200_000])
        run.deeds.append(f"files of {limit} bytes at most")
        run.fill_outputs()
        run.start(file_limit=limit)
        return
    run.fill_outputs()
    run.start()
    run.pause()
    _fill(run, run.place.outputs)


def full_temporary(run: Run) -> None:
    """The disk of temporary files is full from some moment on."""
    run.fill_outputs()
    if not run.place.mount(run.place.temporary, mib=24):
        run.deeds.append("not tried: this user may mount nothing")
        return run.start()
    run.allowed |= {1, 2}
    run.start()
    run.pause()
    _fill(run, run.place.temporary)


def read_only(run: Run) -> None:
    """The folder of the results cannot be written to."""
    outputs, run.allowed = run.place.outputs, {1, 2}
    if run.place.mount(outputs, mib=24):
        run.fill_outputs()
        subprocess.run(["mount", "-o", "remount,ro", str(outputs)], check=True)
        run.undo.callback(subprocess.run, ["mount", "-o", "remount,rw", str(outputs)], check=True)
    else:
        run.fill_outputs()
        paths = [outputs, *outputs.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
            run.undo.callback(path.chmod, 0o755 if path.is_dir() else 0o644)
    run.start()


def memory_refused(run: Run) -> None:
    """A worker gets no more memory than it has and some: what it asks for fails (RLIMIT_AS)."""
    run.fill_outputs()
    run.start()
    run.pause(WORKERS_UNTIL)
    run.allowed |= {1}
    if worker := run.one_of(places.workers):
        with suppress(psutil.Error):
            limit = worker.memory_info().vms + run.chance.randrange(16 * 2**20)
            worker.rlimit(resource.RLIMIT_AS, (limit, limit))
            run.deeds.append(f"no more than {limit / 2**20:.0f} MiB")


def memory_killed(run: Run) -> None:
    """A worker is killed by the system because its memory is used up: in a group of processes with a limit, where this
    user may make one. Else it is a SIGKILL once it holds so much.
    """
    run.fill_outputs()
    run.start()
    run.pause(WORKERS_UNTIL)
    run.allowed |= {1}
    worker = run.one_of(places.workers, 0.3)
    if worker is None:
        return
    with suppress(psutil.Error):
        limit = worker.memory_info().rss + run.chance.randrange(1, 24) * 2**20
        if _limited(run, worker.pid, limit - worker.memory_info().rss):
            run.deeds.append("a limit set, beyond which the system kills it")
            return
        run.deeds.append("by a stand-in for the system's killer")
        while worker.memory_info().rss < limit:
            time.sleep(0.01)
        worker.kill()


def bare_environment(run: Run) -> None:
    """No HOME, and no language but C."""
    run.fill_outputs()
    run.start(HOME=None, LANG="C", LC_ALL="C", LANGUAGE=None)


def shadowing_modules(run: Run) -> None:
    """A user's PYTHONPATH has modules with the names of torch, numpy and json while workers start."""
    run.fill_outputs()
    run.start(**{subject.SHADOWED: str(_modules(run.place.folder / "shadows"))})


def shadowing_folder(run: Run) -> None:
    """There is a folder torch/ in the working directory."""
    run.fill_outputs()
    package = run.place.project / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not the torch you wanted')", encoding="utf-8")
    run.start()


@dataclass(frozen=True)
class Trial:
    """Something that is done to a kind of run."""

    name: str
    kind: str
    do: Callable[[Run], None]

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"


def _trials() -> Iterator[Trial]:
    toys = ("comparison", "training", "gate", "group")
    for number, name in (
        (signal.SIGKILL, "kill -9 of the parent"),
        (signal.SIGTERM, "SIGTERM to the parent"),
        (signal.SIGINT, "Ctrl-C"),
    ):
        for kind in (*toys, subject.SUITE, "pytorch_group", "mindspore_group"):
            yield Trial(name, kind, partial(end_parent, number))
        yield Trial(name, places.PDF, partial(end_parent_printing, number))
    for number, name in ((signal.SIGKILL, "kill -9 of a worker"), (signal.SIGTERM, "SIGTERM to a worker")):
        for kind in (*toys, subject.SUITE, "pytorch", "mindspore", "pytorch_group", "mindspore_group"):
            yield Trial(name, kind, partial(end_worker, number))
    yield Trial("kill -9 of the kernel", subject.SUITE, partial(end_kernel, signal.SIGKILL))
    for name, do, kinds in (
        ("a worker stands still", stop_worker, ("comparison", "training", "group")),
        ("two at once", two_at_once, ("comparison", "training", "gate", subject.SUITE)),
        ("a full disk for the results", full_disk, ("comparison", "training", "gate", subject.SUITE)),
        ("a full disk for temporary files", full_temporary, ("comparison", "training", "gate")),
        ("results that cannot be written", read_only, ("comparison", subject.SUITE)),
        ("a worker gets no more memory", memory_refused, ("comparison", "training", "gate", "pytorch")),
        ("a worker is killed for memory", memory_killed, ("comparison", "training", "gate", "pytorch")),
        ("HOME unset, LANG=C", bare_environment, ("comparison", "pytorch", "mindspore")),
        ("torch.py, numpy.py, json.py on PYTHONPATH", shadowing_modules, ("comparison", "pytorch", "mindspore")),
        ("a folder torch/ in the working directory", shadowing_folder, ("pytorch",)),
    ):
        for kind in kinds:
            yield Trial(name, kind, do)


TRIALS = list(_trials())


def _end(run: Run, number: signal.Signals) -> None:
    """A signal to the run; it then ends by it, by its own exit code for an interrupt, or was over before."""
    run.deeds.append(number.name)
    if number == signal.SIGINT:
        run.allowed |= {130}
        while run.process.poll() is None and not (run.place.folder / subject.BEGUN).exists():
            time.sleep(0.02)
        for _ in range(run.chance.choice([1, 2])):
            with suppress(ProcessLookupError):
                os.killpg(run.process.pid, number)
            time.sleep(0.2)
    else:
        run.allowed |= {-number}
        run.process.send_signal(number)


def _fill(run: Run, folder: Path) -> None:
    """Leave no byte free until the fault is over, whatever is deleted meanwhile."""
    over = threading.Event()

    def fill() -> None:
        with (folder / BALLAST).open("wb", buffering=0) as ballast:
            while not over.is_set():
                for size in (2**20, 2**12, 1):
                    with suppress(OSError):
                        while ballast.write(bytes(size)) == size and not over.is_set():
                            pass
                over.wait(0.05)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()

    def free() -> None:
        over.set()
        thread.join()
        (folder / BALLAST).unlink()

    run.undo.callback(free)


def _limited(run: Run, pid: int, more: int) -> bool:
    """Give a process ``more`` bytes in all that it is going to ask for; False where this user may not."""
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    own = {controller: path for _, controller, path in (line.split(":", 2) for line in lines)}
    for root, controller, file in MEMORY_CONTROLLERS:
        for parent in (root / own.get(controller, "/").lstrip("/"), root):
            group = parent / f"benchlib-faults-{pid}"
            try:
                group.mkdir()
                run.place.cleanup.callback(_rmdir, group)
                (group / file).write_text(str(more), encoding="utf-8")
                (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
            except OSError:
                continue
            return True
    return False


def _rmdir(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _modules(folder: Path) -> Path:
    folder.mkdir()
    for name in MODULES:
        text = f"raise ImportError('this is not the {name} you wanted')"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes that are started here can be interrupted, also where this one was started with interrupts ignored; and
    one that ends this process by SIGTERM has it end and unmount what it started, too.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
