"""The equivalence gate's measuring half: what two workers compute from the same weights and batches, in fresh
processes, before any ratio.

Conditions that differ in nothing that a process has once (framework, environment, mode, precision, device, knobs,
cores) share one here, and on the CPU two processes are at work at a time: nothing is timed. The references come first;
a condition then makes trials until every quantity has agreed with its reference in one, ``LEAST_TRIALS`` at least, or
until there are no more.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from benchlib import environments, frameworks, knobs, workloads
from benchlib.analysis import equivalence
from benchlib.analysis.failure import Failure
from benchlib.condition import Condition
from benchlib.measure import availability, record
from benchlib.measure.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.measure.processes import WorkerFailed, WorkerProcess
from benchlib.variables import Surroundings

BATCH_SIZE = 4  # at most, unless the workload says otherwise; most trials then meet no kink (see ``equivalence``)
STEPS = 3  # of a trial: momentum shows from the second on
LEAST_TRIALS = 2
AT_ONCE = 2
"""Processes: most of what they do (dispatch in eager mode, compilation) keeps one core busy. On an accelerator, whose
memory a framework may take as a whole, one.
"""

REASONS = {
    "batch_size": "few samples meet few kinks, where rounding decides which way a gradient goes",
    "learning_rate": "small steps keep a deep model from kinks that rounding would carry it across",
}
"""Why a gated condition's own differ from the condition's."""


def gated(condition: Condition) -> Condition:
    """The condition as the gate runs it: what its workload has to neutralise neutralised, a small batch, the
    workload's own learning rate unless it says otherwise for this.
    """
    workload = workloads.load(condition.workload)
    return condition.but(
        hyperparameters={**condition.hyperparameters, **workload.gate.hyperparameters},
        batch_size=workload.gate.batch_size or min(condition.batch_size, max(BATCH_SIZE, 2 * condition.world_size)),
        learning_rate=workload.gate.learning_rate or workload.learning_rate,
        threads=condition.threads if condition.world_size > 1 else None,
        communication=True,
        without=[],
    )


def reason(condition: Condition, name: str) -> str:
    """Why the gate sets a hyperparameter, or a knob, of a condition."""
    settings = workloads.load(condition.workload).gate.settings
    return settings[name][1] if name in settings else knobs.neutralising(condition).get(name, knobs.OLD_REASON)


def reference(condition: Condition) -> Condition:
    """What a gated condition is compared with: PyTorch (a workload without it, or where it is not there: the first
    framework that is), eager if it has that, on the CPU, in the default environment (one that offers none of the
    workload's frameworks: the first by name that does) and lane, in one process, which gets the whole batch.

    It is the same for every condition of a workload, whatever its environment: two that are the same as it are the
    same as each other.
    """
    environment, framework = _referred_to(workloads.load(condition.workload).frameworks())
    modes = frameworks.modes(framework)
    mode = "eager" if "eager" in modes else modes[0]
    alone = {"world_size": 1, "threads": None, "communication": True}
    chosen = {"mode": mode, "device": "cpu", "lane": "default", "precision": "fp32"}
    return condition.but(framework=framework, environment=environment, **chosen, **alone)


def _referred_to(offered: Iterable[str]) -> tuple[str, str]:
    """Environment and framework of the reference, of the frameworks that a workload has a file for."""
    by_rank = sorted(offered, key=frameworks.rank)
    usable = (
        (environment, framework)
        for environment in environments.names()
        for framework in by_rank
        if availability.available(framework, "cpu", environment) is None
    )
    return next(usable, (environments.DEFAULT, by_rank[0]))  # what is not there will be refused as such


NOT_STARTED = Surroundings()
"""Of a condition whose worker could not be started."""

Computed = dict[str, np.ndarray] | Failure
"""What a condition computed, arrays by name; or why it failed."""


def run(
    conditions: Iterable[Condition], inputs: Path, patience_s: float
) -> Iterator[tuple[Condition, Computed, Computed, Surroundings]]:
    """Each of ``conditions``, once, with what it and what its reference computed, as soon as both have, and with what
    its worker was started. A reference makes every trial that its workload allows.
    """
    workers = _Workers()
    conditions = list(dict.fromkeys(conditions))
    awaited = Counter(map(reference, conditions))  # by how many: arrays that nobody waits for any more are let go
    expected = _Expected()
    unpaired: dict[Condition, Computed] = {}
    with closing(_made(_groups(conditions, awaited), workers, expected, inputs, patience_s)) as made:
        for condition, computed in made:
            if condition in awaited:
                expected.put(condition, computed)
            if condition in conditions:
                unpaired[condition] = computed
            for one in [one for one in unpaired if reference(one) in expected.found]:
                its = reference(one)
                yield one, unpaired.pop(one), expected.found[its], workers.surroundings.get(one, NOT_STARTED)
                awaited[its] -= 1
                if not awaited[its]:
                    del expected.found[its]


def _groups(conditions: list[Condition], references: Iterable[Condition]) -> list[list[Condition]]:
    """All of them by the process that they share: those of the references first, then, of the others, those that
    compile, which one core does, and those with most to do.
    """
    # In the order in which references are looked for: no condition then comes before its own, which it would wait for.
    places = list(environments.names())
    references = sorted(references, key=lambda one: (places.index(one.environment), frameworks.rank(one.framework)))
    alike: dict[tuple, list[Condition]] = {}
    for condition in [*references, *(one for one in conditions if one not in references)]:
        alike.setdefault(
            (
                condition.framework,
                condition.environment,
                condition.mode,
                condition.precision,
                condition.device,
                frozenset(knobs.of(condition).items()),
                condition.world_size,
                condition.threads,
            ),
            [],
        ).append(condition)
    of_references = [group for group in alike.values() if group[0] in references]
    others = [group for group in alike.values() if group[0] not in references]
    return [*of_references, *sorted(others, key=lambda group: (group[0].mode != "graph", -len(group)))]


class _Expected:
    """What the references computed, which other threads may have to wait for."""

    def __init__(self) -> None:
        self.found: dict[Condition, Computed] = {}
        self._changed = threading.Condition()
        self._closed = False

    def put(self, one: Condition, computed: Computed) -> None:
        with self._changed:
            self.found[one] = computed
            self._changed.notify_all()

    def of(self, condition: Condition) -> Computed | None:
        """What the condition's reference computed, once it has; None: the condition is the reference."""
        its = reference(condition)
        if condition == its:
            return None
        with self._changed:
            self._changed.wait_for(lambda: its in self.found or self._closed)
            return Failure(sentence="the gate was ended") if self._closed else self.found[its]

    def close(self) -> None:
        """Nobody will put any more: let go who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _made(
    groups: list[list[Condition]], workers: _Workers, expected: _Expected, inputs: Path, patience_s: float
) -> Iterator[tuple[Condition, Computed]]:
    """What the groups' conditions compute, as soon as each has, ``AT_ONCE`` processes at a time. A group starts no
    sooner than those before it: whatever it waits for is at work, or done.
    """
    results: SimpleQueue[tuple[Condition, Computed] | BaseException | None] = SimpleQueue()
    preparing = threading.Lock()  # a file that two conditions share is made once
    on_all_cores = threading.Lock()  # data-parallel processes are bound to the first cores, and look for a free port

    def work(group: list[Condition]) -> None:
        try:
            with preparing:
                jobs = [prepare_job(one, INITIAL_SEED, inputs) for one in group]
            with on_all_cores if group[0].world_size > 1 else nullcontext():
                while jobs and not workers.closed:  # a condition that fails takes its process with it, not the others
                    done = 0
                    for result in _computed(jobs, expected, patience_s, workers.start):
                        results.put(result)
                        done += 1
                    jobs = jobs[done:]
            results.put(None)
        except BaseException as error:
            results.put(error)

    on_cpu = all(condition.device == "cpu" for group in groups for condition in group)
    with ThreadPoolExecutor(AT_ONCE if on_cpu else 1) as pool:
        try:
            for group in groups:
                pool.submit(work, group)
            working = len(groups)
            while working:
                result = results.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    working -= 1
                else:
                    yield result
        finally:
            try:
                workers.close()  # first: who is let go then finds that there is nothing more to do
            finally:
                expected.close()


class _Workers:
    """Workers at work for other threads, which whoever ends them all can end from this one."""

    def __init__(self) -> None:
        self.closed = False
        self.surroundings: dict[Condition, Surroundings] = {}  # with which the last worker of each was started
        self._started: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def start(self, conditions: list[Condition], patience_s: float) -> WorkerProcess:
        """One for all of ``conditions``, which may share it."""
        with self._lock:
            if self.closed:
                raise WorkerFailed("worker was not started: the gate was ended")
            worker = WorkerProcess(conditions[0], INITIAL_SEED, patience_s, knobs.of_gate(conditions[0]))
            self._started.append(worker)
            self.surroundings |= dict.fromkeys(conditions, worker.surroundings)
            return worker

    def close(self) -> None:
        """End all, and start no more."""
        with self._lock, ExitStack() as stack:  # an interrupt while one ends does not spare the others
            self.closed = True
            for worker in self._started:
                stack.callback(worker.end)


def _computed(
    jobs: list[Job],
    expected: _Expected,
    patience_s: float,
    start: Callable[[list[Condition], float], WorkerProcess],
) -> Iterator[tuple[Condition, Computed]]:
    """What the jobs' conditions compute in one process, in order, up to the first that fails."""
    condition, worker, opened = jobs[0].condition, None, False
    try:
        worker = start([job.condition for job in jobs], patience_s)
        worker.opened()
        opened = True
        for job in jobs:
            condition = job.condition
            its = expected.of(condition)
            yield condition, _of_condition(worker, job, its)
    except WorkerFailed as failure:
        # One that does not even open fails for all that it was to do: starting it again for each would take for ever.
        for one in [condition] if opened else [job.condition for job in jobs]:
            yield one, failure.failure
    finally:
        if worker is not None:
            worker.end()


def _of_condition(worker: WorkerProcess, job: Job, expected: Computed | None) -> dict[str, np.ndarray]:
    """Trial after trial; ``expected`` is what the reference computed (None: this is the reference)."""
    record.require_inputs(worker, job, worker.ask("build", **job.document()))
    file = worker.scratch / "computed.npz"
    most = workloads.load(job.condition.workload).gate.trials or math.inf
    found: dict[str, np.ndarray] = {}
    for trial in itertools.count():
        answer = worker.ask("check", steps=STEPS, trial=trial, file=str(file))
        found |= _read(worker, file, job.condition.world_size)
        made = trial + 1
        if made >= min(most, answer["trials"]) or (made >= LEAST_TRIALS and _agree(job.condition, found, expected)):
            return found


def _read(worker: WorkerProcess, file: Path, world_size: int) -> dict[str, np.ndarray]:
    """What was computed; by a group: the outputs of all parts of the batch, the mean of their losses, and gradients and
    state of the first process, which must be those of the whole batch. A gradient or trained weight that another
    process has otherwise is nobody's: nan.
    """
    if world_size == 1:
        return worker.arrays(file)
    parts = [worker.arrays(Path(f"{file}.{rank}.npz")) for rank in range(world_size)]
    shapes = [{name: array.shape for name, array in part.items()} for part in parts]
    if unlike := sorted({name for shape in shapes for name, _ in shape.items() ^ shapes[0].items()}):
        raise worker.failed(f"wrote what cannot be used: its processes differ in {', '.join(unlike[:3])}")
    made = dict(parts[0])
    for name in made:
        quantity = name.partition("/")[2].partition(":")[0]
        if quantity in {"outputs", "evaluation outputs", "predictions"}:
            made[name] = np.concatenate([part[name] for part in parts])
        elif quantity == "losses":
            made[name] = np.mean([part[name] for part in parts], axis=0)
        elif name.replace("/state:", "/gradient:") in made and not _alike(part[name] for part in parts):
            made[name] = np.full_like(made[name], np.nan)
    return made


def _alike(arrays: Iterable[np.ndarray]) -> bool:
    first, *others = arrays
    return all(np.array_equal(first, other, equal_nan=True) for other in others)


def _agree(condition: Condition, found: dict[str, np.ndarray], expected: Computed | None) -> bool:
    """Has all that the certificate will ask for been seen? A reference that failed will not be agreed with."""
    if expected is None or isinstance(expected, Failure):
        return expected is not None
    return all(check.ok for check in equivalence.compare(found, expected, equivalence.tolerances(condition)))
