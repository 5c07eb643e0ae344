"""The equivalence gate's measuring half: the results of two workers from the same weights and batches, in fresh
processes, before any ratio.

Conditions that differ in no setting of a process share one. On the CPU two processes are at work at a time, each on its
half of the cores: nothing is timed. The references come first. Where no other process is left to start, a second one
takes a part of another's conditions. The requests to each are in ``benchlib.equivalence.trials``.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from benchlib import environments, frameworks, workloads
from benchlib.condition import Condition
from benchlib.env_vars import Surroundings
from benchlib.equivalence import compare, samples, trials
from benchlib.equivalence.certificate import Certificate, Whose
from benchlib.equivalence.compare import Own
from benchlib.equivalence.trials import Computed, Rounded
from benchlib.errors import Failure
from benchlib.provenance import fingerprint, knobs, machine
from benchlib.runner import availability, recording
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.worker import check, files

BATCH_SIZE = 4  # at most, unless the workload says otherwise; most trials then meet no kink (see ``equivalence``)

AT_ONCE = 2  # processes: most of their work keeps one core busy. On an accelerator, which one may take whole, one

FED_EVERY = 2
"""Steps of a longer training after which both are given the same weights, where rounding has parted them. The loss of
the second shows the effect of the first.
"""

MOVED_TRAININGS = 16  # times that the reference is trained again, at most: which ReLU parts two is a matter of chance

REASONS = {
    "batch_size": "few samples meet few kinks, where rounding decides which way a gradient goes",
    "learning_rate": (
        "another than the probe's, which is the workload's own, so that a rate that is built in shows; small in a deep "
        "model, which rounding would else carry across kinks"
    ),
}
"""Why a gated condition's own differ from the condition's."""


def adapt(condition: Condition) -> Condition:
    """The condition as the gate runs it: a small batch, and half the workload's own learning rate unless it says
    otherwise for this.
    """
    workload = workloads.load(condition.workload)
    return condition.but(
        batch_size=workload.gate.batch_size or min(condition.batch_size, max(BATCH_SIZE, 2 * condition.world_size)),
        learning_rate=workload.gate.learning_rate or (workload.learning_rate and workload.learning_rate / 2),
        threads=condition.threads if condition.world_size > 1 else None,
        communication=True,
        without=[],
    )


def prerequisites(condition: Condition) -> list[Condition]:
    """The conditions that must be certified first: mixed precision in fp32, several processes in one."""
    one = {"world_size": 1, "threads": None, "communication": True} if condition.world_size > 1 else {}
    exact = {"precision": "fp32"} if condition.precision != "fp32" else {}
    changes = [{**one, **exact}, one, exact]
    return list(dict.fromkeys(condition.but(**some) for some in changes if some))


def reason(condition: Condition, name: str) -> str:
    """Why the gate sets a hyperparameter, or a knob, of a condition."""
    settings = workloads.load(condition.workload).gate.settings
    return settings[name][1] if name in settings else knobs.neutralising_reasons(condition).get(name, knobs.OLD[0])


def reference(condition: Condition) -> Condition:
    """The reference of a gated condition: PyTorch, or the first framework that is there, eager if it has that. It runs
    in one process on the CPU, in the default lane. Its environment is the default one, or the first that offers one of
    the workload's frameworks. All conditions of a workload share it: two that are the same as it are the same.
    """
    environment, framework = _choose_reference(frameworks.of_workload(workloads.load(condition.workload)))
    modes = frameworks.modes(framework)
    mode = "eager" if "eager" in modes else modes[0]
    alone = {"world_size": 1, "threads": None, "communication": True}
    chosen = {"mode": mode, "device": "cpu", "lane": "default", "precision": "fp32"}
    return condition.but(framework=framework, environment=environment, **chosen, **alone)


def _choose_reference(offered: Iterable[str]) -> tuple[str, str]:
    """Environment and framework of the reference, of the frameworks that a workload has a file for."""
    by_rank = sorted(offered, key=frameworks.rank)
    usable = (
        (environment, framework)
        for environment in environments.names()
        for framework in by_rank
        if availability.why_absent(framework, "cpu", environment) is None
    )
    return next(usable, (environments.DEFAULT, by_rank[0]))  # a missing one will be refused as such


@dataclass(frozen=True)
class Trained:
    """A longer training, see ``compare.with_training``; None: that was not done. Where the two part on their own ways,
    ``moved`` has losses (steps,) of the reference from weights moved in the last digit, by the move.
    """

    own: np.ndarray | None = None
    fed: np.ndarray | None = None
    moved: Mapping[str, np.ndarray] = field(default_factory=dict)


def train(condition: Condition, inputs: Path, patience_s: float, steps: int) -> Trained | tuple[Failure, Whose]:
    """A gated condition and its reference in a longer training, side by side; or the failure, and whose it is. They
    take batches of the data in its own order, with the workload's usual rate, but without dropout.

    Each goes its own way. Where they part, the reference is trained again from moved weights, ``MOVED_TRAININGS`` times
    at most, until one training parts as soon and as far. Later steps then say nothing, so both are trained once again.
    Every second step starts from the reference's weights with a fresh optimizer; the next step's loss shows its effect.
    A workload that makes rounding grow (``Gate.fed``) is trained in that way only, with every step from given weights.
    The losses of ``resnet50`` are 0.06 apart after a single step.
    """
    pair: dict[Whose, tuple[WorkerProcess, Job]] = {}
    whose: Whose = "condition"

    def side_by_side(fed_every: int) -> np.ndarray:
        nonlocal whose
        given, seen = str(pair["reference"][0].scratch / "weights.npz"), np.empty((2, steps, 2))
        for step in range(steps):
            weights = given if fed_every and step % fed_every == 0 else None
            for row, whose in ((1, "reference"), (0, "condition")):
                asked = {"step": step, "weights": weights, "leads": whose == "reference", "restarts": True}
                answer = pair[whose][0].ask("train_on", **asked)
                seen[row, step] = answer["loss"], answer["moved"]
        for whose in pair:
            worker, job = pair[whose]
            recording.require_hashed(worker, fingerprint.files(job.condition, "gate"))
        return seen

    try:
        for whose, one in (("condition", condition), ("reference", reference(condition))):
            job = prepare_job(compare.without_dropout(one), INITIAL_SEED, inputs)
            pair[whose] = WorkerProcess(one, INITIAL_SEED, patience_s, knobs.of_gate(one)), job
            pair[whose][0].finish_open()
            _build(*pair[whose])
        if workloads.load(condition.workload).gate.fed:
            return Trained(fed=side_by_side(1))
        own, moved = side_by_side(0)[..., 0], dict[str, np.ndarray]()
        whose = "reference"
        while not (seen := compare.training_check(condition, own, moved)).ok and len(moved) < MOVED_TRAININGS:
            number = len(moved) + 1
            moved[trials.describe_rounding("default", number)] = _retrain_reference(*pair["reference"], number, steps)
        if not seen.ok or not seen.forgiven:
            return Trained(own, moved=moved)
        for whose in pair:
            _build(*pair[whose])
        return Trained(own, side_by_side(FED_EVERY), moved)
    except WorkerFailed as failure:
        return failure.failure, whose
    finally:
        for worker, _ in pair.values():
            worker.end()


def _build(worker: WorkerProcess, job: Job) -> None:
    recording.require_inputs(worker, job, worker.ask("build", **job.document()))


def _retrain_reference(worker: WorkerProcess, job: Job, number: int, steps: int) -> np.ndarray:
    """The losses of a reference from weights that are moved in the last digit, see ``check.roundings``."""
    _build(worker, job)
    weights = worker.scratch / "moved.npz"
    np.savez(weights, **check.roundings(dict(files.arrays(Path(job.document()["weights"]))), number))
    given = [str(weights), *[None] * (steps - 1)]
    answers = (
        worker.ask("train_on", step=step, weights=one, leads=False, restarts=True) for step, one in enumerate(given)
    )
    return np.array([answer["loss"] for answer in answers])


class Gated(NamedTuple):
    """A condition with its results and its reference's."""

    condition: Condition
    computed: Computed
    expected: Computed
    own: dict[str, Own]  # differences of the reference's arrays from themselves, where that was asked
    surroundings: Surroundings
    job: Job  # of the trials


def certify(gated: Gated, set_for_it: Mapping[str, str] = MappingProxyType({})) -> Certificate:
    """The certificate of a gated condition; ``set_for_it`` are environment variables that were set for the gate."""
    condition, its = gated.condition, reference(gated.condition)
    certificate = compare.certify(
        condition, its, gated.computed, gated.expected, set_for_it, gated.job.hashes(), gated.own
    )
    origin = {
        "code": fingerprint.digest(condition, "gate"),
        "commit": fingerprint.commit(),
        "versions": recording.versions(condition),
        "reference_versions": recording.versions(its),
        "machine": machine.identity(condition.device),
    }
    certificate = certificate.model_copy(update=origin)
    if not certificate.checks:
        return certificate
    fed = workloads.load(condition.workload).gate.fed
    batches = certificate.trials if fed else max(certificate.trials, trials.STEPS)  # which are trained with
    return certificate.model_copy(update={"exercised": samples.exercised_values(gated.job, batches)})


def run(conditions: Iterable[Condition], inputs: Path, patience_s: float) -> Generator[Gated, None, None]:
    """Each of ``conditions``, once, as soon as it and its reference have computed."""
    workers = _Workers()
    conditions = list(dict.fromkeys(conditions))
    awaited = Counter(map(reference, conditions))  # by how many: arrays that nothing waits for are freed
    preparing = threading.Lock()  # a file that two conditions share is made once

    @functools.cache
    def prepared(condition: Condition) -> Job:
        return samples.prepare(condition, inputs)

    def prepare(condition: Condition) -> Job:
        with preparing:
            return prepared(condition)

    rounded = Rounded(lambda its: workers.start(its, patience_s), prepare)
    expected = _Expected(rounded)
    unpaired: dict[Condition, Computed] = {}
    with closing(_compute_groups(_groups(conditions, awaited), workers, expected, prepare, patience_s)) as made:
        for condition, computed in made:
            if condition in awaited:
                expected.put(condition, computed)
            if condition in conditions:
                unpaired[condition] = computed
            for one in [one for one in unpaired if reference(one) in expected.found]:
                its, own = reference(one), expected.own.get(one, {})
                surroundings = workers.surroundings.get(one, Surroundings())
                yield Gated(one, unpaired.pop(one), expected.found[its], own, surroundings, prepare(one))
                awaited[its] -= 1
                if not awaited[its]:
                    del expected.found[its]


def _groups(conditions: list[Condition], references: Iterable[Condition]) -> list[list[Condition]]:
    """All conditions by the process that they share. References come first, in the order in which they are looked for.
    Conditions that compile follow, which one core does. Last come the largest groups, which can be shared.
    """
    others = _group_alike(one for one in conditions if one not in references)
    others.sort(key=lambda group: (group[0].mode == "eager", len(group)))
    asked = (reference(one) for group in others for one in group)
    # In the order in which references are looked for: no condition then comes before its own, which it would wait for.
    places = list(environments.names())
    first = sorted(
        dict.fromkeys([*(one for one in asked if one in references), *references]),
        key=lambda one: (places.index(one.environment), frameworks.rank(one.framework)),
    )
    return _group_alike([*first, *(one for group in others for one in group)])  # a reference's process does others, too


def _group_alike(conditions: Iterable[Condition]) -> list[list[Condition]]:
    """Group conditions that can share a process."""
    groups: dict[tuple, list[Condition]] = {}
    for condition in conditions:
        alike = (
            condition.framework,
            condition.environment,
            condition.mode,
            condition.precision,
            condition.device,
            frozenset(knobs.find(condition).items()),
            condition.world_size,
            condition.threads,
        )
        groups.setdefault(alike, []).append(condition)
    return list(groups.values())


class _Expected:
    """The results of the references, for which other threads may have to wait."""

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

    def wait_for(self, condition: Condition) -> Computed | None:
        """The results of the condition's reference, once they are there; None: the condition is the reference."""
        its = reference(condition)
        if condition == its:
            return None
        with self._changed:
            self._changed.wait_for(lambda: its in self.found or self._closed)
            return Failure(sentence="the gate was ended") if self._closed else self.found[its]

    def close(self) -> None:
        """Release the threads that wait: no more results will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class _Group:
    """Conditions that one process can do, or two that share them: each takes the next, in order."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._left = deque(conditions)
        self.first = self._left[0]

    def __len__(self) -> int:
        return len(self._left)

    def take(self) -> Condition | None:
        """The next condition that no worker has taken."""
        try:
            return self._left.popleft()
        except IndexError:
            return None


def _compute_groups(
    conditions: list[list[Condition]],
    workers: _Workers,
    expected: _Expected,
    prepare: Callable[[Condition], Job],
    patience_s: float,
) -> Generator[tuple[Condition, Computed], None, None]:
    """The results of ``conditions``, in groups, ``AT_ONCE`` processes at a time. A group starts no sooner than those
    before it: all that it waits for is at work, or done.
    """
    results: SimpleQueue[tuple[Condition, Computed] | BaseException | None] = SimpleQueue()
    on_all_cores = threading.Lock()  # data-parallel processes are bound to the first cores, and look for a free port
    on_cpu = all(condition.device == "cpu" for group in conditions for condition in group)
    at_once = AT_ONCE if on_cpu else 1
    shares: SimpleQueue[list[int]] = SimpleQueue()  # of the cores, one for each process that is at work at a time
    for cores in np.array_split(sorted(os.sched_getaffinity(0)), at_once):
        shares.put(cores.tolist())
    groups = [_Group(some) for some in conditions]

    def work(group: _Group) -> None:
        with on_all_cores if group.first.world_size > 1 else _share_of_cores(shares):
            while group and not workers.closed:  # a condition that fails takes its process with it, not the others
                for result in _compute_group(group, prepare, expected, patience_s, workers):
                    results.put(result)

    def share() -> None:
        """A process costs a start: it is worth that where more than one condition is left to take."""
        alone = [group for group in groups if group.first.world_size == 1]
        while alone and len(most := max(alone, key=len)) > 1 and not workers.closed:
            work(most)

    def run_guarded(do: Callable[[], None]) -> None:
        try:
            do()
            results.put(None)
        except BaseException as error:
            results.put(error)

    tasks = [*(functools.partial(work, group) for group in groups), *[share] * (at_once - 1)]
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for task in tasks:
                pool.submit(run_guarded, task)
            working = len(tasks)
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


@contextmanager
def _share_of_cores(shares: SimpleQueue[list[int]]) -> Iterator[None]:
    """Bind the processes of this thread to a share of the cores, so that their threads do not compete."""
    every, share = os.sched_getaffinity(0), shares.get()
    try:
        os.sched_setaffinity(0, share or every)
        yield
    finally:
        os.sched_setaffinity(0, every)
        shares.put(share)


class _Workers:
    """Workers of other threads, which this thread can end all at once."""

    def __init__(self) -> None:
        self.closed = False
        self.surroundings: dict[Condition, Surroundings] = {}  # with which the last worker of each was started
        self._started: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def start(self, condition: Condition, patience_s: float) -> WorkerProcess:
        """One for ``condition``, which others may share."""
        with self._lock:
            if self.closed:
                raise WorkerFailed("worker was not started: the gate was ended")
            worker = WorkerProcess(condition, INITIAL_SEED, patience_s, knobs.of_gate(condition))
            self._started.append(worker)
            return worker

    def close(self) -> None:
        """End all, and start no more."""
        with self._lock, ExitStack() as stack:  # an interrupt while one ends does not spare the others
            self.closed = True
            for worker in self._started:
                stack.callback(worker.end)


def _compute_group(
    group: _Group, prepare: Callable[[Condition], Job], expected: _Expected, patience_s: float, workers: _Workers
) -> Iterator[tuple[Condition, Computed]]:
    """The results of a group's conditions in one process, one after another, up to the first failure."""
    condition, worker, opened = group.take(), None, False
    known: dict[str, Path] = {}
    try:
        while condition is not None:
            if worker is None:
                worker = workers.start(condition, patience_s)
            workers.surroundings[condition] = worker.surroundings
            if not opened:
                worker.finish_open()
                opened = True
            its = functools.partial(expected.wait_for, condition)
            computed, expected.own[condition] = trials.run_trials(
                worker, condition, prepare(condition), reference(condition), its, expected.rounded
            )
            known |= fingerprint.files(condition, "gate")
            recording.require_hashed(worker, known)
            yield condition, computed
            condition = group.take()
    except WorkerFailed as failure:
        # A process that cannot even open fails for all that is left: a start for each would take for ever.
        while condition is not None:
            if worker is not None:
                workers.surroundings[condition] = worker.surroundings
            yield condition, failure.failure
            condition = None if opened else group.take()
    finally:
        if worker is not None:
            worker.end()
