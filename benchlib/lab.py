"""The place where measurements are made and kept: one outputs folder, and the three things to ask of it.

>>> lab = Lab(profile="quick")  # doctest: +SKIP
>>> conditions = [Condition(workload="cnn"), Condition(workload="cnn", framework="mindspore")]  # doctest: +SKIP
>>> lab.compare(conditions, precision=0.03, budget_s=300, block_s=0.25)  # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import os
import random
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from benchlib import equivalence, knobs, limits, scratch
from benchlib.condition import Condition
from benchlib.data.prepare import require as require_data
from benchlib.equivalence import Certificate
from benchlib.errors import BenchlibError
from benchlib.measure import ceiling, contract, gate, machine, memory, planner, record
from benchlib.measure import epochs as epochs_procedure
from benchlib.measure import rounds as rounds_procedure
from benchlib.measure.ceiling import Ceiling
from benchlib.measure.comparison import Comparison
from benchlib.measure.contract import SyncCheck
from benchlib.measure.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.measure.processes import PATIENCE_S
from benchlib.measure.training import TrainingRuns
from benchlib.measure.turn import turn
from benchlib.metrics import RANGES
from benchlib.progress import Progress, say
from benchlib.results import ATTEMPTS, Measurement, Store, frame
from benchlib.workloads import load

RUNS_TOGETHER = 2
"""Training runs whose processes start side by side: two cores import a framework twice in about the time of once, and
more processes would hold more memory for longer. On an accelerator, whose memory a framework may take as a whole, one.
"""

RUN_VARIABLE = "BENCHLIB_RUN"
"""Names the run of the suite that a lab belongs to; a lab without one is a run of its own."""


class Lab:
    """Measures into ``outputs/<profile>`` (or ``outputs``, a folder), and measures nothing that is already there.
    ``outputs`` is that of the checkout that benchlib is imported from; where it is installed without one, that of the
    working directory, and a line says so.

    What failed is tried once more the next time it is asked for, together with its baseline; what went well beside it
    stays. ``patience_s`` is how long a worker may be silent before it counts as hung.
    """

    def __init__(
        self, profile: str = "quick", outputs: Path | str | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        self.folder = Path(outputs).resolve() if outputs is not None else _root() / "outputs" / profile
        self.inputs = self.folder / "inputs"
        self.store = Store(self.folder / "measurements")
        self.patience_s = patience_s
        self._run = os.environ.get(RUN_VARIABLE) or uuid.uuid4().hex
        scratch.remove_stale()

    def compare(
        self,
        conditions: list[Condition],
        *,
        precision: float = 0.03,
        budget_s: float = 600.0,
        block_s: float = 0.25,
        pilot: int = planner.PILOT,
    ) -> Comparison:
        """Measure ``conditions`` together; the first is the baseline, which is also measured against itself.

        Repetitions, each with a fresh process per condition and blocks of about ``block_s`` seconds, go on until the
        95 % interval of every ratio is no wider than ``precision`` (relative half-width), or the next would take more
        than ``budget_s`` seconds in all, but ``pilot`` of them at least: see ``benchlib.measure.planner``.
        """
        _require_distinct(conditions)
        settings = rounds_procedure.Settings(block_s=block_s)
        planner.require(precision, budget_s, block_s, pilot, processes=1 + len(conditions))
        require(conditions)
        memory.require_together(conditions)
        certificates = self.certify(conditions)
        jobs = [prepare_job(condition, INITIAL_SEED, self.inputs) for condition in [conditions[0], *conditions]]
        roles = ["baseline", "control", *["condition"] * (len(conditions) - 1)]
        group = key(
            kind="comparison",
            settings=settings.model_dump(),
            members=[job.depends_on("rounds") for job in jobs],
        )
        measured: list[Measurement] = []
        comparison = Comparison(conditions, measured, certificates, precision, budget_s, pilot)
        members = list(zip(roles, jobs, strict=True))
        title = f"comparing {len(conditions)} at {conditions[0].workload} batch {conditions[0].batch_size}"
        with ExitStack() as stack:
            progress = None  # nothing is said where nothing is measured
            for repetition in itertools.count():
                planned = comparison.plan
                if planned.ended:
                    break
                stored, attempt = self._stored(group, repetition, members)
                measured += stored
                if attempt:
                    progress = progress or stack.enter_context(Progress(planned.more_processes, title))
                    with turn(progress.tell) as waited_s:
                        progress.stood_still(waited_s)
                        done = self.store.usable(attempt.file)
                        done = done or self._kept(self._compared(attempt, settings, planned.rounds))
                    measured += done
                    left = 0 if comparison.plan.ended else comparison.plan.more_processes
                    progress.total = progress.done + 1 + left
                    progress.step(_told(done))
        return comparison

    def train(
        self,
        conditions: list[Condition],
        *,
        seeds: list[int],
        epochs: int,
        threshold: float | None = None,
        most_epochs: int | None = None,
    ) -> TrainingRuns:
        """Train each condition from each seed (of weights, order and dropout) for ``epochs``, and on to ``threshold``
        or ``most_epochs``.
        """
        _require_distinct(conditions)
        limits.Training(seeds=list(seeds), epochs=epochs, most_epochs=most_epochs)
        for condition in conditions:
            _require_reachable(condition, threshold)
            if condition.world_size > 1:
                raise BenchlibError(f"{condition}: training runs are of one process; compare a group's steps")
        settings = epochs_procedure.Settings(
            epochs=epochs, threshold=threshold, most_epochs=max(epochs, most_epochs or epochs)
        )
        require(conditions)
        certificates = self.certify(conditions)
        jobs = [prepare_job(condition, seed, self.inputs) for condition in conditions for seed in seeds]
        groups = [key(kind="training", settings=settings.model_dump(), job=job.depends_on("epochs")) for job in jobs]
        measured: dict[str, Measurement] = {}
        missing: list[_Attempt] = []
        for group, job in zip(groups, jobs, strict=True):
            stored, attempt = self._stored(group, 0, [("condition", job)])
            if stored:
                measured[group] = stored[-1]  # the last attempt counts
            if attempt:
                missing.append(attempt)
        random.Random(0).shuffle(missing)  # so that the machine's drift does not favour whoever comes first
        if missing:
            with Progress(len(missing) * settings.most_epochs, f"training {conditions[0].workload}") as progress:
                number = RUNS_TOGETHER if all(condition.device == "cpu" for condition in conditions) else 1
                while missing:
                    together, missing = missing[:number], missing[number:]
                    runs = self._trained(together, settings, progress)
                    with turn(progress.tell) as waited_s, closing(runs):
                        progress.stood_still(waited_s)
                        for attempt, run in runs:
                            measured[attempt.group] = run
        return TrainingRuns(conditions, [measured[group] for group in groups], certificates, epochs, threshold)

    def ceiling(self, device: str, precision: str = "fp32") -> Ceiling:
        """The machine's limits on a device, measured once for all that they depend on."""
        jobs = [prepare_job(one, INITIAL_SEED, self.inputs) for one in ceiling.conditions(device, precision)]
        name = key(ceiling=[job.depends_on("ceiling") for job in jobs])
        path = self.folder / "ceilings" / f"{name}.json"
        if found := _known_ceiling(path):
            return found
        with turn(say):
            if found := _known_ceiling(path):  # by another process, while this one waited
                return found
            found = ceiling.measure(device, precision, self.inputs, self.patience_s)
        if not found.failures:
            _write(path, found.model_dump_json(indent=2))
        return found

    def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
        """Does the timer see work of known duration? A check for each framework, mode and device of ``conditions``."""
        alike = {(one.framework, one.mode, one.device, one.lane): one for one in conditions if _trains(one)}
        require(alike.values())
        found = []
        for condition in alike.values():
            with turn(say):
                found.append(contract.check(condition, self.inputs, self.patience_s))
        return found

    def certify(self, conditions: Iterable[Condition]) -> dict[str, Certificate]:
        """Certificates by condition key: is each condition's model the reference's? Made once, for all that the
        outcome depends on. Mixed precision has to pass in fp32 first: where it does not, that certificate is given.
        """
        gated = {condition.key: gate.gated(condition) for condition in conditions}
        exact = {name: condition.but(precision="fp32") for name, condition in gated.items()}
        wanted = dict.fromkeys([*gated.values(), *exact.values()])  # no set: the same order in every run
        known = {condition.key: self._known_certificate(condition) for condition in wanted}
        missing = [condition for condition in wanted if known[condition.key] is None]
        if missing:
            told = "checking that the models are the same"
            with Progress(len(missing), told) as progress, closing(self._certify(missing, progress)) as made:
                for certificate in made:
                    known[certificate.condition.key] = certificate
                    progress.step(f"{certificate.condition}: {certificate.verdict}")
            for condition in missing:  # the others another process has made, while this one waited
                known[condition.key] = known[condition.key] or self._known_certificate(condition)
        proved = {name: known[condition.key].same for name, condition in exact.items()}
        return {name: known[(one if proved[name] else exact[name]).key] for name, one in gated.items()}

    def measurements(self, files: Iterable[str] | None = None) -> pd.DataFrame:
        """Every measurement in this outputs folder, or in the files with these keys: a row a process, with what it
        takes to do it again.
        """
        return frame(self.store.all(files))

    def _compared(self, attempt: _Attempt, settings: rounds_procedure.Settings, rounds: int) -> list[Measurement]:
        empty = [
            record.begin("comparison", "rounds", attempt, role, job, attempt.repetition)
            for role, job in attempt.members
        ]
        jobs = [job for _, job in attempt.members]
        return rounds_procedure.measure_repetition(empty, jobs, settings, rounds, self.patience_s)

    def _trained(
        self, attempts: list[_Attempt], settings: epochs_procedure.Settings, progress: Progress
    ) -> Iterator[tuple[_Attempt, Measurement]]:
        """Each run, kept as soon as it is done; what another process has measured meanwhile is read."""
        missing = []
        for attempt in attempts:
            if stored := self.store.usable(attempt.file):
                progress.total -= settings.most_epochs
                yield attempt, *stored
            else:
                missing.append((attempt, *attempt.members[0]))
        empty = [record.begin("training", "epochs", attempt, role, job, job.seed) for attempt, role, job in missing]
        jobs = [job for _, _, job in missing]
        runs = epochs_procedure.measure_runs(empty, jobs, settings, self.patience_s, progress.step)
        with closing(runs):
            for (attempt, _, _), run in zip(missing, runs, strict=True):
                self._kept([run])
                progress.total -= settings.most_epochs - len(run.epochs)
                yield attempt, run

    def _stored(
        self, group: str, repetition: int, members: list[tuple[str, Job]]
    ) -> tuple[list[Measurement], _Attempt | None]:
        """What is on disk of a repetition, and the attempt that is missing (None: none is, or all have failed)."""
        found: list[Measurement] = []
        for number in range(ATTEMPTS):
            attempt = _Attempt(group, repetition, number, members)
            stored = self.store.usable(attempt.file)
            if stored is None:
                # Of an attempt that failed the file may have been cleaned away, and the next one's be there.
                if number + 1 < ATTEMPTS and self.store.path(replace(attempt, number=number + 1).file).exists():
                    continue
                return found, attempt
            found += stored
            members = _to_try_again(members, stored)
            if not members:
                break
        return found, None

    def _kept(self, measurements: list[Measurement]) -> list[Measurement]:
        self.store.save(measurements)
        return measurements

    def _known_certificate(self, condition: Condition) -> Certificate | None:
        """The certificate on disk; None where there is none, and where a failure is to be tried again."""
        found = self._certificate(condition)
        settled = found is not None and (found.checks or found.attempts >= ATTEMPTS or found.run == self._run)
        return found if settled else None

    def _certificate(self, condition: Condition) -> Certificate | None:
        try:
            return Certificate.model_validate_json(self.certificate_path(condition).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # not made yet, or cut: made again in seconds
            return None

    def _certify(self, conditions: list[Condition], progress: Progress) -> Iterator[Certificate]:
        """Certify gated conditions, each as soon as it can be; what could not be checked is tried once more by the next
        run.
        """
        missing = (one for one in conditions if self._known_certificate(one) is None)  # once it is this one's turn
        computed = gate.run(missing, self.inputs, self.patience_s)
        with turn(progress.tell) as waited_s, closing(computed):
            progress.stood_still(waited_s)
            for condition, found, expected, surroundings in computed:
                exact = {name: value for name, value in surroundings.knobs.items() if name == gate.EXACT}
                certificate = equivalence.certify(
                    condition,
                    gate.reference(condition),
                    found,
                    expected,
                    exact,
                    prepare_job(condition, INITIAL_SEED, self.inputs).hashes(),
                )
                before = self._certificate(condition)
                attempts = 1 + (before.attempts if before else 0)
                origin = {"attempts": attempts, "run": self._run, **asdict(surroundings)}
                certificate = certificate.model_copy(update=origin)
                _write(self.certificate_path(condition), certificate.model_dump_json(indent=2))
                yield certificate

    def certificate_path(self, condition: Condition) -> Path:
        """Where the certificate of a gated condition lies: under a key of all that it depends on."""
        both = (condition, gate.reference(condition))
        name = key(
            gate=[prepare_job(one, INITIAL_SEED, self.inputs).depends_on("gate") for one in both],
            set=[knobs.of_gate(one) for one in both],
            tolerances=equivalence.tolerances(condition),
        )
        return self.folder / "certificates" / f"{name}.json"


@dataclass(frozen=True)
class _Attempt:
    """Processes that are measured together: by role and job."""

    group: str
    repetition: int
    number: int  # 0; or 1, of those that failed
    members: list[tuple[str, Job]]

    @property
    def file(self) -> str:
        """Key of the file that their measurements go to."""
        members = [(role, job.condition.key) for role, job in self.members]
        return key(group=self.group, repetition=self.repetition, attempt=self.number, members=members)


def _root() -> Path:
    """Where ``outputs`` is, unless somebody says it."""
    checkout = machine.PACKAGE.parent
    if (checkout / "notebooks" / "report.ipynb").is_file():
        return checkout
    here = Path.cwd()
    say(f"benchlib is installed apart from its notebooks: results go to outputs/ of the working directory, {here}")
    return here


def _to_try_again(members: list[tuple[str, Job]], stored: list[Measurement]) -> list[tuple[str, Job]]:
    """Of ``members`` those whose measurement failed, and the baseline that they are compared with; all, if it is the
    baseline that failed.
    """
    failed = [not m.ok for m in stored]
    lost = any(bad and m.role == "baseline" for bad, m in zip(failed, stored, strict=True))
    if not any(failed) or lost:
        return members if lost else []
    pairs = zip(members, stored, failed, strict=True)
    return [member for member, m, bad in pairs if bad or m.role == "baseline"]


def require(conditions: Iterable[Condition]) -> None:
    """Raise a BenchlibError if a condition asks for a framework, device, threads or data that is not there, or for more
    memory than there is.
    """
    conditions = list(conditions)
    machine.require(conditions)
    for condition in conditions:
        require_data(condition)
        memory.require(condition)


def _told(measured: list[Measurement]) -> str:
    """A repetition in a line: the first few conditions' step times, or that they failed."""
    parts = []
    for m in measured:
        name = "A/A" if m.role == "control" else f"{m.condition.framework} {m.condition.mode} {m.condition.lane}"
        if m.ok:
            block = min(m.blocks, key=lambda block: block.wall_s / block.steps)
            parts.append(f"{name} {1000 * block.wall_s / block.steps:.3g} ms")
        else:
            parts.append(f"{name} failed")
    return ", ".join(parts)


def _known_ceiling(path: Path) -> Ceiling | None:
    try:
        return Ceiling.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not measured yet, or cut
        return None


def _write(path: Path, text: str) -> None:
    """At once or not at all. Where it cannot be kept (a full disk), it has to be made again next time."""
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        say(f"{path}: it could not be kept, and will be made again: {error.strerror}")


def _trains(condition: Condition) -> bool:
    return load(condition.workload).kind == "training"


def _require_distinct(conditions: list[Condition]) -> None:
    if not conditions:
        raise BenchlibError("no condition to measure: the grid is empty; give at least one value for every key")
    if len(set(conditions)) < len(conditions):
        twice = next(condition for condition in conditions if conditions.count(condition) > 1)
        raise BenchlibError(f"the same condition twice: {twice}; the baseline is measured against itself anyway")


def _require_reachable(condition: Condition, threshold: float | None) -> None:
    metric = load(condition.workload).metric
    if metric is None:
        raise BenchlibError(f"workload {condition.workload!r} has no metric: it can be compared, but not trained")
    low, high = RANGES[metric]
    if threshold is not None and not low <= threshold <= high:
        raise BenchlibError(f"threshold {threshold!r}: {metric} is between {low:g} and {high:g}, no run can reach it")
