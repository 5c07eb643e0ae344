"""The requests of the gate to one condition's worker, and to the reference's, where a difference has to be explained.
They are trials, the first of them again, and a probe of behaviour that trials do not show.

A condition makes ``LEAST_TRIALS`` trials and the first of them again. Where a difference is too large, the reference
repeats that trial, with weights rounded another way or in the other lane, until that explains it. Where rounding
explains a difference in every trial, more trials are made, until there are no more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import compare, samples
from benchlib.equivalence.compare import Differences, Own
from benchlib.equivalence.tolerances import tolerances
from benchlib.errors import Failure
from benchlib.progress import say
from benchlib.runner import recording
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.worker.check import units

STEPS = 3  # of all trials but the first: momentum shows from the second on
LEAST_TRIALS = 2

MOVED = 32
"""Times that the reference makes a trial again, at most, from weights that are moved in the last digit, at random. So
many meet, by chance, a ReLU or a pooling window that rounding sends another way. In trials of ``googlenet`` 24 draws by
8 units met each way at least twice. A move beyond the tolerance of a condition's outputs explains nothing.
"""

ZERO_MOVED = 5  # times that both make a trial again from moved weights: is a gradient 0 but for rounding?

ROUNDINGS = [("default", number) for number in range(1, MOVED + 1)]  # lane and number, in the order of trying
ROUNDINGS.insert(2, ("tuned", 0))

RECORDS = (1, 2, 3, 10, 30, 99, 105)
"""Steps of the probe of an optimizer after which weights are compared; more where a learning rate changes later."""

Arrays = dict[str, np.ndarray]
Computed = Arrays | Failure  # a condition's results, arrays by name; or its failure


def run_trials(
    worker: WorkerProcess,
    condition: Condition,
    job: Job,
    reference: Condition,
    expected: Callable[[], Computed | None],
    rounded: Rounded,
) -> tuple[Arrays, dict[str, Own]]:
    """Run a gated ``condition``: trial after trial, the first again, and the probe. Return its arrays, and how much the
    ``reference``'s differ from themselves. ``expected`` waits for the reference's results, see ``gate``.
    """
    workload = workloads.load(condition.workload)
    recording.require_inputs(worker, job, worker.ask("build", **job.document()))
    arrays = _trial(worker, job, 0)
    beside = _Beside(condition, reference, expected(), rounded, lambda *which: _trial(worker, job, *which))
    beside.add(arrays)
    for trial in range(1, workload.gate.trials or samples.BATCHES):
        if trial >= LEAST_TRIALS and not beside.has_unseen_array():
            break
        arrays |= beside.add(_trial(worker, job, trial), trial)
    if workload.kind != "training":  # a result kept of a batch, for the next time, is wrong for other weights
        met = samples.batches(job)  # the number of a trial that takes the first batch again, with larger weights
        arrays |= beside.add(_trial(worker, job, met), met)
    if "repetition" in tolerances(condition):
        repeated = _trial(worker, job, 0, again=True)
        arrays |= {name.replace("0/", f"{compare.AGAIN}/", 1): array for name, array in repeated.items()}
    if workload.kind == "training" and condition.world_size == 1:
        arrays |= _probe(worker, condition, job)
    return arrays, beside.own


class _Beside:
    """The results of a condition so far beside its reference's, unless it is the reference, or that failed."""

    def __init__(
        self,
        condition: Condition,
        reference: Condition,
        expected: Computed | None,
        rounded: Rounded,
        moved: Callable[[int, int], Arrays],
    ) -> None:
        self.own: dict[str, Own] = {}
        self._reference, self._rounded, self._moved = reference, rounded, moved
        self._expected = None if isinstance(expected, Failure) else expected
        self._differences: Differences = {}
        self._allowed = tolerances(condition)

    def add(self, arrays: Arrays, trial: int = 0) -> Arrays:
        """Add and return the condition's results of ``trial``."""
        if self._expected is None:
            return arrays
        self._rounded.run_missing_trial(self._reference, trial, self._expected)
        differences = compare.differences(arrays, self._expected, self._allowed)
        for quantity, by_array in differences.items():
            self._differences.setdefault(quantity, {}).update(by_array)
        for number in compare.to_explain(differences, self._allowed, self.own):
            if compare.small_gradients(arrays, self._expected):
                self.own |= self._zeros(number, arrays, differences)
        self.own = self._rounded.explain(self._reference, differences, self._expected, self._allowed, self.own)
        return arrays

    def _zeros(self, trial: int, arrays: Arrays, differences: Differences) -> dict[str, Own]:
        """The arrays that count as 0 in ``trial``."""
        its = self._rounded.run_moved_trials(self._reference, trial)
        if its is None:
            return {}
        ours = [self._moved(trial, number) for number in range(1, len(its) + 1)]
        roundings = compare.rounding(arrays, ours), compare.rounding(self._expected, its)
        return compare.zeros(arrays, self._expected, roundings, differences)

    def has_unseen_array(self) -> bool:
        """Is there an array that only rounding explains, in every trial so far?"""
        return any(one.unseen for one in compare.compare(self._differences, self._allowed, self.own))


class Rounded:
    """The references again, from weights that are rounded another way, or in their other lane, whose sums have another
    order. Each has a process of its own, started at its first request.
    """

    def __init__(self, start: Callable[[Condition], WorkerProcess], prepare: Callable[[Condition], Job]) -> None:
        self._start, self._prepare = start, prepare
        self._lock = threading.Lock()
        self._at_work: dict[tuple[str, str], tuple[WorkerProcess, Condition | None]] = {}  # and the one built there
        self._own: dict[tuple[Condition, int, str], dict[str, Own]] = {}

    def explain(
        self,
        reference: Condition,
        differences: Differences,
        expected: Arrays,
        allowed: Mapping[str, float],
        own: Mapping[str, Own],
    ) -> dict[str, Own]:
        """``own``, and how much the reference's arrays differ from themselves in trials with a difference that is
        neither ``allowed`` nor explained by ``own``. No more is tried than explains it.
        """
        nearest = dict(own)
        with self._lock:
            for lane, moved in ROUNDINGS:
                for trial in sorted(compare.to_explain(differences, allowed, nearest)):
                    found = self._find(reference, trial, expected, lane, moved)
                    if found is None:
                        return nearest
                    nearest = compare.nearest_differences(differences, nearest, found)
        return nearest

    def run_moved_trials(self, reference: Condition, trial: int) -> list[Arrays] | None:
        """A trial of the reference from weights that are moved, ``ZERO_MOVED`` times; None: it could not be asked."""
        with self._lock, suppress(WorkerFailed):  # which explains nothing, as below, and is said there
            return [self._run_trial(reference, trial, number) for number in range(1, ZERO_MOVED + 1)]
        return None

    def run_missing_trial(self, reference: Condition, trial: int, expected: Arrays) -> None:
        """Have the reference make a trial that it has not made so far."""
        with self._lock:
            if not any(name.startswith(f"{trial}/") for name in expected):
                expected |= self._run_trial(reference, trial)

    def _find(self, reference: Condition, trial: int, expected: Arrays, lane: str, moved: int) -> dict[str, Own] | None:
        """The reference's own differences; empty where outputs differ too much; None: its worker failed."""
        by = describe_rounding(lane, moved)
        if (reference, trial, by) not in self._own:
            try:
                arrays = self._run_trial(reference.but(lane=lane), trial, moved)
            except WorkerFailed as failure:  # it explains nothing, and is not the condition's failure
                say(f"The reference {reference}, {by}, could not show the effect of rounding: {failure}")
                return None
            allowed = tolerances(reference)
            own = compare.own_differences(arrays, expected, allowed, by)
            outputs = [one.difference for name, one in own.items() if f"{trial}/outputs" in name]
            close = max(outputs, default=0.0) <= allowed["outputs"]
            self._own[reference, trial, by] = own if close else {}
        return self._own[reference, trial, by]

    def _run_trial(self, reference: Condition, trial: int, moved: int = 0) -> Arrays:
        """A worker that fails is no place to build the next in."""
        try:
            return _trial(*self._reference_worker(reference), trial, moved)
        except WorkerFailed:
            self._at_work.pop((reference.implementation, reference.lane), None)
            raise

    def _reference_worker(self, reference: Condition) -> tuple[WorkerProcess, Job]:
        """A worker in which the reference is built."""
        place = (reference.implementation, reference.lane)
        worker, built = self._at_work.get(place, (None, None))
        if worker is None:
            worker = self._start(reference)
            worker.finish_open()
        job = self._prepare(reference)
        if built != reference:
            recording.require_inputs(worker, job, worker.ask("build", **job.document()))
        self._at_work[place] = worker, reference
        return worker, job


def describe_rounding(lane: str, moved: int) -> str:
    """The change that makes the reference differ from itself, in words."""
    if not moved:
        return f"its lane {lane}"
    return f"moved by {units(moved)}" + (f", the {moved - 1}. time" if moved > 2 else "")


def _trial(worker: WorkerProcess, job: Job, trial: int, moved: int = 0, again: bool = False) -> Arrays:
    """The first is the shorter one: made again behind the others, it shows in one step the traces that they left. A
    model that makes rounding grow from step to step takes one in all of them: the probe shows the effect of more.
    """
    file = worker.scratch / "computed.npz"
    longer = trial >= min(1, samples.batches(job) - 1) and not workloads.load(job.condition.workload).gate.fed
    steps = STEPS if longer else 1
    worker.ask("check", steps=steps, trial=trial, moved=moved, again=again, file=str(file))
    return _read(worker, file, worker.condition.world_size)


def _probe(worker: WorkerProcess, condition: Condition, job: Job) -> Arrays:
    """Probe with the hyperparameters that the condition is measured with. Mixed precision has the optimizer of fp32."""
    usual = replace(job, condition=compare.with_usual_rate(condition))
    recording.require_inputs(worker, usual, worker.ask("build", **usual.document()))
    workload = workloads.load(condition.workload)
    changes = workload.schedule(usual.condition.hyperparameters)
    records = sorted({*RECORDS, *(changes + beyond for beyond in (-1, 1, 30) if changes > 1)})
    records = records if condition.precision == "fp32" else []
    file = worker.scratch / "probed.npz"
    worker.ask("probe", records=records, file=str(file))
    return worker.arrays(file)


def _read(worker: WorkerProcess, file: Path, world_size: int) -> dict[str, np.ndarray]:
    """Read the results. Of a group they are the outputs of all parts of the batch, and the mean of their losses.
    Gradients and state are those of the first process, and must be the whole batch's. A gradient or trained weight
    that differs in another process is nan.
    """
    if world_size == 1:
        return worker.arrays(file)
    parts = [worker.arrays(Path(f"{file}.{rank}.npz")) for rank in range(world_size)]
    shapes = [{name: array.shape for name, array in part.items()} for part in parts]
    if unlike := sorted({name for shape in shapes for name, _ in shape.items() ^ shapes[0].items()}):
        raise worker.give_up(f"wrote unusable results: its processes differ in {', '.join(unlike[:3])}")
    made = dict(parts[0])
    for name in made:
        quantity = name.partition("/")[2].partition(":")[0]
        if quantity in {"outputs", "evaluation outputs", "predictions"}:
            made[name] = np.concatenate([part[name] for part in parts])
        elif quantity in {"losses", "first loss"}:
            made[name] = np.mean([part[name] for part in parts], axis=0)
        elif quantity in {"gradient", "update"} and not _are_equal(part[name] for part in parts):
            made[name] = np.full_like(made[name], np.nan)
    return made


def _are_equal(arrays: Iterable[np.ndarray]) -> bool:
    first, *others = arrays
    return all(np.array_equal(first, other, equal_nan=True) for other in others)
