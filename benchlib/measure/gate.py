"""The equivalence gate's measuring half: what two workers compute from the same weights and batches, in fresh
processes, before any ratio.

Conditions that differ in nothing that a process has once (framework, environment, mode, precision, device, knobs,
cores) share one here, and on the CPU two processes are at work at a time: nothing is timed. The references come first.
What each is asked is in ``benchlib.measure.trials``.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from benchlib import environments, frameworks, knobs, variables, workloads
from benchlib.analysis import equivalence
from benchlib.analysis.equivalence import Certificate, Own
from benchlib.analysis.failure import Failure
from benchlib.condition import Condition
from benchlib.measure import availability, own_code, record, samples, trials
from benchlib.measure.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.measure.processes import WorkerFailed, WorkerProcess
from benchlib.measure.trials import Computed, Rounded
from benchlib.variables import Surroundings

BATCH_SIZE = 4  # at most, unless the workload says otherwise; most trials then meet no kink (see ``equivalence``)

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
    """The condition as the gate runs it: a small batch, and the workload's own learning rate unless it says otherwise
    for this. What its workload has to neutralise is, where trials are made of it (``equivalence.neutral``).
    """
    workload = workloads.load(condition.workload)
    return condition.but(
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
    environment, framework = _referred_to(frameworks.of(workloads.load(condition.workload)))
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


def train(
    condition: Condition, inputs: Path, patience_s: float, steps: int
) -> np.ndarray | tuple[Failure, equivalence.Whose]:
    """The losses (2, steps) of a gated condition and of its reference in a longer training, side by side, on batches of
    the data in its own order; or why there are none, and whose failure that is. See :class:`Gate` for whether each goes
    its own way. With the condition's own settings, but without dropout.
    """
    fed, losses = workloads.load(condition.workload).gate.fed, np.empty((2, steps))
    workers: list[WorkerProcess] = []
    whose: equivalence.Whose = "condition"
    try:
        for one in (condition, reference(condition)):
            whose = "reference" if workers else "condition"
            job = prepare_job(equivalence.undropped(one), INITIAL_SEED, inputs)
            workers.append(WorkerProcess(one, INITIAL_SEED, patience_s, knobs.of_gate(one)))
            workers[-1].opened()
            record.require_inputs(workers[-1], job, workers[-1].ask("build", **job.document()))
        ours, its = workers
        weights = str(its.scratch / "weights.npz") if fed else None
        for step in range(steps):
            whose = "reference"
            losses[1, step] = its.ask("train_on", step=step, weights=weights, leads=True)["loss"]
            whose = "condition"
            losses[0, step] = ours.ask("train_on", step=step, weights=weights, leads=False)["loss"]
    except WorkerFailed as failure:
        return failure.failure, whose
    finally:
        for worker in workers:
            worker.end()
    return losses


NOT_STARTED = Surroundings()
"""Of a condition whose worker could not be started."""


class Gated(NamedTuple):
    """A condition with what it and what its reference computed, by how much arrays of the reference differ from
    themselves where that was asked, and with what the condition's worker was started.
    """

    condition: Condition
    computed: Computed
    expected: Computed
    own: dict[str, Own]
    surroundings: Surroundings


def certify(gated: Gated, inputs: Path, set_for_it: Mapping[str, str] = MappingProxyType({})) -> Certificate:
    """The certificate of what was gated; ``set_for_it`` are environment variables that were set for the gate only."""
    job = samples.prepare(gated.condition, inputs)
    certificate = equivalence.certify(
        gated.condition,
        reference(gated.condition),
        gated.computed,
        gated.expected,
        set_for_it,
        job.hashes(),
        gated.own,
    )
    if not certificate.checks:
        return certificate
    batches = max(certificate.trials, trials.STEPS)  # which are trained with
    return certificate.model_copy(update={"exercised": samples.exercised(job, batches)})


def run(conditions: Iterable[Condition], inputs: Path, patience_s: float) -> Iterator[Gated]:
    """Each of ``conditions``, once, as soon as it and its reference have computed. A reference makes trials when they
    are asked for.
    """
    workers = _Workers()
    conditions = list(dict.fromkeys(conditions))
    awaited = Counter(map(reference, conditions))  # by how many: arrays that nobody waits for any more are let go
    rounded = Rounded(lambda its: workers.start([its], patience_s), inputs)
    expected = _Expected(rounded)
    unpaired: dict[Condition, Computed] = {}
    with closing(_made(_groups(conditions, awaited), workers, expected, inputs, patience_s)) as made:
        for condition, computed in made:
            if condition in awaited:
                expected.put(condition, computed)
            if condition in conditions:
                unpaired[condition] = computed
            for one in [one for one in unpaired if reference(one) in expected.found]:
                its, own = reference(one), expected.own.get(one, {})
                surroundings = workers.surroundings.get(one, NOT_STARTED)
                yield Gated(one, unpaired.pop(one), expected.found[its], own, surroundings)
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

    def __init__(self, rounded: Rounded) -> None:
        self.found: dict[Condition, Computed] = {}
        self.own: dict[Condition, dict[str, Own]] = {}  # of conditions: how much their references' arrays vary
        self.rounded = rounded
        self._changed = threading.Condition()
        self._closed = False

    def put(self, one: Condition, computed: Computed) -> None:
        """A copy: trials that are asked of the reference later are none of its own certificate."""
        with self._changed:
            self.found[one] = computed if isinstance(computed, Failure) else dict(computed)
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
                left = [(one, samples.prepare(one, inputs)) for one in group]
            with on_all_cores if group[0].world_size > 1 else nullcontext():
                while left and not workers.closed:  # a condition that fails takes its process with it, not the others
                    done = 0
                    for result in _computed(left, expected, patience_s, workers.start):
                        results.put(result)
                        done += 1
                    left = left[done:]
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
    group: list[tuple[Condition, Job]],
    expected: _Expected,
    patience_s: float,
    start: Callable[[list[Condition], float], WorkerProcess],
) -> Iterator[tuple[Condition, Computed]]:
    """What conditions compute in one process, each in its job, in order, up to the first that fails."""
    condition, worker, opened, known = group[0][0], None, False, set()
    try:
        worker = start([one for one, _ in group], patience_s)
        worker.opened()
        opened = True
        for condition, job in group:
            its = functools.partial(expected.of, condition)
            computed, expected.own[condition] = trials.of_condition(
                worker, condition, job, reference(condition), its, expected.rounded
            )
            known |= own_code.files(condition, "gate").keys()
            _require_known(worker, known)
            yield condition, computed
    except WorkerFailed as failure:
        # One that does not even open fails for all that it was to do: starting it again for each would take for ever.
        for one in [condition] if opened else [each for each, _ in group]:
            yield one, failure.failure
    finally:
        if worker is not None:
            worker.end()


def _require_known(worker: WorkerProcess, known: Collection[str]) -> None:
    """What a worker has imported has to be in the hash of its code, or a certificate would outlive its model."""
    if worker.condition.world_size > 1:
        return
    modules = worker.ask("imported", beside=variables.worker_folders(os.environ))["modules"]
    if unknown := [name for name in modules if name not in known]:
        raise worker.failed(
            f"imported {', '.join(unknown)}, which the hash of the code does not know: a model's file may import what "
            "lies in benchlib or in a plug-in, by a name that stands in its text"
        )
