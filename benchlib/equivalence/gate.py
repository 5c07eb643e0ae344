"""The equivalence gate's measuring half: the results of two workers from the same weights and batches, in fresh
processes, before any ratio.

Conditions that differ in no setting of a process share one. Two processes are at work at a time, those of the CPU each
on its half of the cores, one at most on an accelerator: nothing is timed. The references come first. Where no other
process is left to start, a second one takes a part of another's conditions. The requests to each are in
``benchlib.equivalence.trials``.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from benchlib import environments, frameworks, workloads
from benchlib.condition import Condition
from benchlib.env_vars import Surroundings
from benchlib.equivalence import compare, samples, trials
from benchlib.equivalence.certificate import Certificate, Whose
from benchlib.equivalence.trials import Computed
from benchlib.errors import Failure
from benchlib.provenance import fingerprint, knobs, machine
from benchlib.runner import availability, recording
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

BATCH_SIZE = 4  # at most, unless the workload says otherwise; most trials then meet no kink (see ``equivalence``)

AT_ONCE = 2  # processes: most of their work keeps one core busy

FED_EVERY = 2
"""Steps of a longer training after which both are given the same weights, where rounding has parted them. The loss of
the second shows the effect of the first.
"""

REASONS = {
    "batch_size": "few samples meet few kinks, where rounding decides which way a gradient goes",
    "learning_rate": "another than the probe's, the workload's own, so that a rate that is built in shows; small in a "
    "deep model, which rounding would else carry across kinks",
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


def largest_batches(conditions: Iterable[Condition]) -> dict[Condition, int]:
    """The gated conditions, and their prerequisites, that ``conditions`` need, with the largest batch of each."""
    wanted: dict[Condition, int] = {}  # no set: the same order in every run
    for condition in conditions:
        for one in (gated := adapt(condition), *prerequisites(gated)):
            wanted[one] = max(wanted.get(one, 0), condition.batch_size)
    return wanted


def prerequisites(condition: Condition) -> list[Condition]:
    """The conditions that must be certified first: several processes in one, mixed precision in fp32, and fp32 in
    double precision, in which two frameworks can be shown to be one model.
    """
    one = {"world_size": 1, "threads": None, "communication": True} if condition.world_size > 1 else {}
    exact = {"precision": "fp32"} if condition.precision not in ("fp32", "fp64") else {}
    changes = [{**one, **exact}, one, exact]
    return list(dict.fromkeys([*_in_double(condition), *(condition.but(**some) for some in changes if some)]))


def _in_double(condition: Condition) -> list[Condition]:
    """The condition's framework and mode in double precision, in the reference's lane; none where it has no double
    precision, or is the reference's, which is the truth.
    """
    its = truth(condition)
    if condition.precision == "fp64" or its is None or condition.framework == its.framework:
        return []
    if "fp64" not in frameworks.precisions(condition.framework):
        return []
    return [its.but(framework=condition.framework, environment=condition.environment, mode=condition.mode)]


def judge(first: Sequence[Certificate], own: Certificate) -> Certificate:
    """The first prerequisite that is not the same, or else ``own``. A file that fails or rounds in double precision is
    held against the truth in fp32 alone, as all are of a framework that has none; the certificate names that.
    """
    failed = [one for one in first if one.condition.precision == "fp64" and (one.refused or _rounds(one))]
    wrong = next((one for one in first if not one.same and one not in failed), own)
    why = (_rounds(one) or f"fails ({one.failure.exception})" for one in failed)
    named = {f"double precision, in which its file {one}": False for one in why}
    return wrong.model_copy(update={"exercised": {**wrong.exercised, **named}}) if wrong.checks else wrong


def _rounds(certificate: Certificate) -> str:
    """Does a framework's own operator round in double precision, of a user's model (``Gate.rounds``)? Then, how."""
    most = workloads.load(certificate.condition.workload).gate.rounds
    outputs = [check for check in certificate.checks if check.name == "outputs" and not check.ok]
    return "rounds some numbers to fp32" if any(one.worst <= most for one in outputs) else ""


def can_train(condition: Condition) -> bool:
    """Is a longer training of a gated condition compared?"""
    alone = condition.precision == "fp32" and condition.world_size == 1
    return alone and workloads.load(condition.workload).kind == "training"


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
    alone = {"world_size": 1, "threads": None, "communication": True}
    mode = min(frameworks.modes(framework), key=lambda one: one != "eager")
    chosen = {"mode": mode, "device": "cpu", "lane": "default", "precision": "fp32"}
    return condition.but(framework=framework, environment=environment, **chosen, **alone)


def truth(condition: Condition) -> Condition | None:
    """The reference in double precision, or None where its framework has none."""
    its = reference(condition)
    return its.but(precision="fp64") if "fp64" in frameworks.precisions(its.framework) else None


def compared(condition: Condition) -> list[Condition]:
    """A gated condition, its reference, and the truth: the reference itself where its framework has none."""
    its = reference(condition)
    return [condition, its, truth(condition) or its]


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
    """A longer training, see ``compare.with_training``; None: that was not done."""

    own: np.ndarray | None = None
    fed: np.ndarray | None = None


def train(condition: Condition, inputs: Path, patience_s: float, steps: int) -> Trained | tuple[Failure, Whose]:
    """A gated condition, its reference and the truth in a longer training, side by side; or the failure, and whose it
    is. They take batches of the data in its own order, with the workload's usual rate, but without dropout.

    Each goes its own way. Where rounding parts the reference from the truth, later steps say nothing, so condition and
    reference are trained once again. Every second step starts from the reference's weights with a fresh optimizer; the
    next step's loss shows its effect. A workload that makes rounding grow (``Gate.fed``) is trained in that way only,
    with every step from given weights. The losses of ``resnet50`` are 0.06 apart after a single step.
    """
    pair: dict[Condition, tuple[Whose, WorkerProcess, Job]] = {}
    its, exact = compared(condition)[1:]
    whose: Whose = "condition"

    def side_by_side(fed_every: int, places: Sequence[Condition]) -> np.ndarray:
        nonlocal whose
        given, seen = str(pair[its][1].scratch / "weights.npz"), {one: np.empty((steps, 2)) for one in places}
        for step in range(steps):
            weights = given if fed_every and step % fed_every == 0 else None
            for one in sorted(seen, key=lambda one: one != its):
                whose, worker, _ = pair[one]
                asked = {"step": step, "weights": weights, "leads": one == its, "restarts": True}
                answer = worker.ask("train_on", **asked)
                seen[one][step] = answer["loss"], answer["moved"]
        for _, worker, job in pair.values():
            recording.require_hashed(worker, fingerprint.files(job.condition, "gate"))
        return np.stack([seen[one] for one in places])

    try:
        fed = workloads.load(condition.workload).gate.fed
        for one in dict.fromkeys((condition, its) if fed else (condition, its, exact)):
            whose = "condition" if one == condition else "reference"
            job = prepare_job(compare.without_dropout(one), INITIAL_SEED, inputs)
            pair[one] = whose, WorkerProcess(one, INITIAL_SEED, patience_s, knobs.of_gate(one)), job
            pair[one][1].finish_open()
            trials.build(*pair[one][1:])
        if fed:
            return Trained(fed=side_by_side(1, [condition, its]))
        own = side_by_side(0, [condition, its, exact])[..., 0]
        if compare.steps_compared(condition, own) == steps or not compare.training_check(condition, own).ok:
            return Trained(own)
        for one in (condition, its):
            trials.build(*pair[one][1:])
        return Trained(own, side_by_side(FED_EVERY, [condition, its]))
    except WorkerFailed as failure:
        return failure.failure, whose
    finally:
        for _, worker, _ in pair.values():
            worker.end()


class Gated(NamedTuple):
    """A condition with its results, its reference's and the truth's."""

    condition: Condition
    results: compare.Results
    surroundings: Surroundings
    job: Job  # of the small trials
    batch_size: int  # of the largest


def certify(gated: Gated) -> Certificate:
    """The certificate of a gated condition."""
    condition, its = gated.condition, reference(gated.condition)
    sets = knobs.neutralising_reasons(condition)
    set_for_it = {name: value for name, value in gated.surroundings.knobs.items() if name in sets}
    certificate = compare.certify(condition, its, gated.results, set_for_it, gated.job.hashes())
    origin = {
        **asdict(gated.surroundings),
        "batch_size": gated.batch_size,
        "code": fingerprint.digest(condition, "gate"),
        "commit": fingerprint.commit(),
        "versions": recording.versions(condition),
        "reference_versions": recording.versions(its),
        "reference_knobs": {**knobs.find(its), **knobs.of_gate(its)},
        "machine": machine.identity(condition.device),
    }
    certificate = certificate.model_copy(update=origin)
    if not certificate.checks:
        return certificate
    exercised = samples.exercised_values(gated.job, max(certificate.trials, trials.STEPS))  # batches, trained with
    return certificate.model_copy(update={"exercised": {**exercised, **frameworks.cuts(condition.framework)}})


def run(sizes: Mapping[Condition, int], inputs: Path, patience_s: float) -> Generator[Gated, None, None]:
    """Each of the gated conditions in ``sizes``, as soon as it, its reference and the truth have computed. By condition
    they have the largest batch to be compared.
    """
    workers = _Workers()
    beside = {one: compared(one)[1:] for one in sizes}
    largest: dict[Condition, int] = {}
    for one, some in beside.items():  # the sizes of what it is compared with, too
        for its in (one, *some):
            largest[its] = max(largest.get(its, 0), sizes[one])
    # One size of all of a workload that share a reference: their arrays are compared.
    for one, some in beside.items():
        largest[one] = max(largest[its] for its in some)
    awaited = Counter(its for some in beside.values() for its in some)  # arrays that nothing waits for are freed
    preparing = threading.Lock()  # a file that two conditions share is made once

    @functools.cache
    def prepared(condition: Condition) -> tuple[Job, Job]:
        return samples.prepare(condition, inputs), samples.prepare_large(condition, inputs, largest[condition])

    def prepare(condition: Condition) -> tuple[Job, Job]:
        with preparing:
            return prepared(condition)

    computed: dict[Condition, Computed] = {}
    left = list(sizes)
    with closing(_compute_groups(_groups(list(sizes), awaited), workers, prepare, patience_s)) as made:
        for condition, arrays in made:
            computed[condition] = arrays
            for one in [one for one in left if computed.keys() >= {one, *beside[one]}]:
                left.remove(one)
                results = compare.Results(*(computed[its] for its in (one, *beside[one])))
                surroundings = workers.surroundings.get(one, Surroundings())
                yield Gated(one, results, surroundings, prepare(one)[0], largest[one])
                awaited.subtract(beside[one])
                for its in (one, *beside[one]):
                    if its not in left and not awaited[its]:
                        computed.pop(its, None)


def _groups(conditions: list[Condition], references: Iterable[Condition]) -> list[list[Condition]]:
    """All conditions by the process that they share. References come first. Conditions that compile follow, which one
    core does. Last come the largest groups, which can be shared.
    """
    others = _group_alike(one for one in conditions if one not in references)
    others.sort(key=lambda group: (group[0].mode == "eager", len(group)))
    first = sorted(references, key=lambda one: (one.environment, frameworks.rank(one.framework), one.precision))
    return _group_alike([*first, *(one for group in others for one in group)])  # a reference's process does others, too


def _group_alike(conditions: Iterable[Condition]) -> list[list[Condition]]:
    """Group conditions that can share a process."""
    groups: dict[tuple, list[Condition]] = {}
    shared = ("framework", "environment", "mode", "precision", "device", "world_size", "threads")
    for condition in conditions:
        alike = (*(getattr(condition, name) for name in shared), frozenset(knobs.find(condition).items()))
        groups.setdefault(alike, []).append(condition)
    return list(groups.values())


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
    prepare: Callable[[Condition], tuple[Job, Job]],
    patience_s: float,
) -> Generator[tuple[Condition, Computed], None, None]:
    """The results of ``conditions``, in groups, ``AT_ONCE`` processes at a time."""
    results: SimpleQueue[tuple[Condition, Computed] | BaseException | None] = SimpleQueue()
    # Data-parallel processes are bound to the first cores, and look for a free port; one may take a whole accelerator.
    on_all_cores = threading.Lock()
    shares: SimpleQueue[list[int]] = SimpleQueue()  # of the cores, one for each process that is at work at a time
    for cores in np.array_split(sorted(os.sched_getaffinity(0)), AT_ONCE):
        shares.put(cores.tolist())
    groups = [_Group(some) for some in conditions]

    def work(group: _Group) -> None:
        singly = group.first.world_size > 1 or group.first.device != "cpu"
        with on_all_cores if singly else _share_of_cores(shares):
            while group and not workers.closed:  # a condition that fails takes its process with it, not the others
                for result in _compute_group(group, prepare, patience_s, workers):
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

    tasks = [*(functools.partial(work, group) for group in groups), *[share] * (AT_ONCE - 1)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
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
            workers.close()


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
    group: _Group, prepare: Callable[[Condition], tuple[Job, Job]], patience_s: float, workers: _Workers
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
            computed = trials.run_trials(worker, condition, *prepare(condition))
            known |= fingerprint.files(condition, "gate")
            recording.require_hashed(worker, known)
            yield condition, computed
            condition = group.take()
            if computed.get(f"{compare.WORK}/beside", np.zeros(0)).size:  # what it has set is no ground for others
                worker.end()
                worker, opened = None, False
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
