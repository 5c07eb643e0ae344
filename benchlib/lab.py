"""The place where measurements are made and kept: one outputs folder, and the three things to ask of it.

>>> lab = Lab(profile="quick")  # doctest: +SKIP
>>> conditions = [Condition(workload="cnn"), Condition(workload="cnn", framework="mindspore")]  # doctest: +SKIP
>>> lab.compare(conditions, precision=0.03, budget_s=300, block_s=0.25)  # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import environments, knobs, limits, metrics, scratch
from benchlib.analysis import equivalence, planner
from benchlib.analysis.comparison import MARGIN, Comparison
from benchlib.analysis.equivalence import Certificate
from benchlib.analysis.moderation import Spread
from benchlib.analysis.peers import Peers, host_of, kind
from benchlib.analysis.training import TrainingRuns
from benchlib.condition import Condition
from benchlib.data.prepare import require as require_data
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.measure import ceiling, contract, gate, machine, memory, record, samples
from benchlib.measure import epochs as epochs_procedure
from benchlib.measure import rounds as rounds_procedure
from benchlib.measure.ceiling import Ceiling
from benchlib.measure.contract import SyncCheck
from benchlib.measure.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.measure.processes import PATIENCE_S
from benchlib.measure.turn import turn
from benchlib.plugins import use as use_plugins
from benchlib.progress import Progress, duration, say
from benchlib.store import ATTEMPTS, Measurement, Store, frame
from benchlib.workloads import load

RUNS_TOGETHER = 2
"""Training runs whose processes start side by side: two cores import a framework twice in about the time of once, and
more processes would hold more memory for longer. On an accelerator, whose memory a framework may take as a whole, one.
"""

MEASURES_VARIABLE = "BENCHLIB_MEASURES"
"""Says how much a lab measures where its caller does not: see :class:`Measures`."""


class Measures(Enum):
    """How much a lab measures of what it is asked for and is not there."""

    BUDGET = "budget"  # each comparison up to its precision, or its own budget
    LATER = "later"  # of comparisons nothing yet: see :meth:`Lab.pilots` and :meth:`Lab.sharpen`
    NOTHING = "nothing"


class NotMeasured(BenchlibError):
    """A lab that measures nothing was asked for what is not there."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: not measured so far, and nothing is to be measured now; run again with more time")


@contextmanager
def measuring(how: Measures) -> Iterator[None]:
    """Have labs of kernels that are started meanwhile measure so much."""
    before = os.environ.get(MEASURES_VARIABLE)
    os.environ[MEASURES_VARIABLE] = how.value
    try:
        yield
    finally:
        os.environ.pop(MEASURES_VARIABLE)
        if before is not None:
            os.environ[MEASURES_VARIABLE] = before


RUN_VARIABLE = "BENCHLIB_RUN"
"""Names the run of the suite that a lab belongs to; a lab without one is a run of its own."""


class Lab:
    """Measures into ``outputs/<profile>`` (or ``outputs``, a folder), and measures nothing that is already there.
    ``outputs`` is that of the checkout that benchlib is imported from; where it is installed without one, that of the
    working directory, and a line says so.

    What failed is tried once more the next time it is asked for, together with its baseline; what went well beside it
    stays. ``patience_s`` is how long a worker may be silent before it counts as hung; ``after_keeping`` is called
    whenever measurements have been written. ``plugins`` are folders of frameworks, workloads and data sets of others,
    which have names from then on, for all of this process.
    """

    def __init__(
        self,
        profile: str = "quick",
        outputs: Path | str | None = None,
        patience_s: float = PATIENCE_S,
        measures: Measures | None = None,
        after_keeping: Callable[[], None] = lambda: None,
        plugins: Iterable[Path | str] = (),
    ) -> None:
        use_plugins(plugins)
        self.folder = Path(outputs).resolve() if outputs is not None else _root() / "outputs" / profile
        self.inputs = self.folder / "inputs"
        self.store = Store(self.folder / "measurements")
        self.patience_s = patience_s
        self.measures = measures or Measures(os.environ.get(MEASURES_VARIABLE, Measures.BUDGET.value))
        self.peers = Peers(self.store)
        self.comparisons: dict[str, _Asked] = {}
        self.waited_s = 0.0  # for others that measured on this machine
        self._after_keeping = after_keeping
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
        margin: float = MARGIN,
    ) -> Comparison:
        """Measure ``conditions`` together; the first is the baseline, which is also measured against itself.

        Repetitions, each with a fresh process per condition and blocks of about ``block_s`` seconds, go on until the
        95 % interval of every ratio is no wider than ``precision`` (relative half-width), or the next would take more
        than ``budget_s`` seconds in all, but ``pilot`` of them at least: see ``benchlib.analysis.planner``. A ratio
        whose interval lies within ``margin`` of 1 is "the same within" that.
        """
        asked = {"precision": precision, "budget_s": budget_s, "block_s": block_s, "pilot": pilot, "margin": margin}
        return self.compare_each([conditions], **asked)[0]

    def compare_each(
        self,
        groups: Sequence[list[Condition]],
        *,
        precision: float = 0.03,
        budget_s: float = 600.0,
        block_s: float = 0.25,
        pilot: int = planner.PILOT,
        margin: float = MARGIN,
    ) -> list[Comparison]:
        """As :meth:`compare`, of several comparisons: those whose processes can host each other's conditions are
        measured in the same ones, one after the other, which saves their starts.
        """
        for conditions in groups:
            _require_distinct(conditions)
            planner.require(precision, budget_s, block_s, pilot, margin, processes=1 + len(conditions))
            memory.require_together(conditions)
        every = [condition for conditions in groups for condition in conditions]
        require(every)
        certificates = self.certify(every)
        budget_s = math.inf if self.measures is not Measures.BUDGET else budget_s
        asked = [
            self._asked(Comparison(conditions, [], certificates, precision, budget_s, pilot, margin), block_s)
            for conditions in groups
        ]
        for one in asked:
            self._add(one)
        if self.measures is Measures.BUDGET:
            for together in _in_shares(asked):
                self._measure(together)
        elif self.measures is Measures.NOTHING and not any(one.comparison.measurements for one in asked):
            raise NotMeasured(f"{asked[0].comparison.title}{' and others' * (len(asked) > 1)}")
        return [one.comparison for one in asked]

    def pilots(self) -> bool:
        """Bring the comparisons that have been asked for to their pilots, whatever notebook asked, as many in the same
        processes as can be, but no more than each can come first once. Was anything missing?
        """
        measured = [self._measure(together) for together in _in_shares(self.comparisons.values())]
        return any(measured)

    def sharpen(self, until: float, tell: Callable[[str], None] = say) -> None:
        """Give the comparisons that have been asked for more processes, each time where they narrow the widest interval
        most for what they cost, until all have the precision asked for or the time (of ``time.monotonic``) is up. What
        a repetition should take is looked at before it starts.
        """
        hosts = _hosted_together(self.comparisons.values())
        while True:
            left_s = until - time.monotonic()
            best = [_best(together, left_s) for together in hosts]
            asked, _ = max(best, key=lambda choice: choice[1].gain_per_s, default=([], None))
            if not asked:
                return
            with self._turn(tell) as waited_s:
                until += waited_s
                for one, done in self._repeated(asked):
                    tell(f"{one.comparison.title}: {_told(done)}")
            tell(self._standing(until))

    def _standing(self, until: float) -> str:
        """The widest interval now, which ratio has it, and what the time left should bring."""
        standing = [one.comparison for one in self.comparisons.values() if one.comparison.widest[0] > 0]
        if not standing:
            return "no ratio has an interval yet"
        left_s = max(0.0, until - time.monotonic())
        width, whose = max(comparison.widest for comparison in standing)
        then = _projected(standing, left_s)
        return (
            f"widest half-width {100 * width:.2g} % ({whose}); the {duration(left_s)} left should make that "
            f"{100 * then:.2g} %"
        )

    def _add(self, asked: _Asked) -> None:
        """A comparison that two notebooks ask for is measured, later, as whoever asks for more of it would have it."""
        before = self.comparisons.get(asked.group)
        if before is not None and self.measures is Measures.LATER:
            precision = min(before.comparison.precision, asked.comparison.precision)
            pilot = max(before.comparison.pilot, asked.comparison.pilot)
            asked.comparison = replace(asked.comparison, precision=precision, pilot=pilot)
        self.comparisons[asked.group] = asked

    @contextmanager
    def _turn(self, tell: Callable[[str], None]) -> Iterator[float]:
        """As :func:`turn`; the seconds that it was waited for others are counted."""
        with turn(tell) as waited_s:
            self.waited_s += waited_s
            yield waited_s

    def _asked(self, comparison: Comparison, block_s: float) -> _Asked:
        """What is on disk of a comparison, and what is missing."""
        settings = rounds_procedure.Settings(block_s=block_s)
        baseline, *others = comparison.conditions
        jobs = [prepare_job(condition, INITIAL_SEED, self.inputs) for condition in [baseline, baseline, *others]]
        group = key(
            kind="comparison",
            settings=settings.model_dump(),
            members=[job.depends_on("rounds") for job in jobs],
        )
        host = host_of(machine.describe())

        def peers(one: Condition, other: Condition, control: bool) -> Sequence[Spread]:
            return self.peers.of(group, kind(one, other, control, host))

        roles = ["baseline", "control", *["condition"] * len(others)]
        asked = _Asked(replace(comparison, peers=peers), group, list(zip(roles, jobs, strict=True)), settings)
        for repetition in itertools.count():
            stored, attempt = self._stored(group, repetition, asked.members)
            asked.comparison.measurements.extend(stored)
            if attempt is None:
                continue
            if not attempt.number:
                asked.repetitions = repetition
                break
            asked.again.append(attempt)
        self.peers.refresh()
        return asked

    def _measure(self, together: list[_Asked]) -> bool:
        """Bring comparisons to the precision asked for, or to the end of their budgets; or to their pilots only. Was
        anything missing?
        """

        def ended(one: _Asked) -> bool:
            enough = self.measures is Measures.LATER and one.repetitions >= one.comparison.pilot
            return not one.again and (enough or one.comparison.plan.ended is not None)

        due = [one for one in together if not ended(one)]
        if not due:
            return False
        with Progress(sum(map(_left, due)), _title(due)) as progress:
            while due:
                with self._turn(progress.tell) as waited_s:
                    progress.stood_still(waited_s)
                    for _, done in self._repeated(due):
                        left = sum(_left(one) for one in due if not ended(one))
                        progress.total = progress.done + 1 + left
                        progress.step(_told(done))
                due = [one for one in due if not ended(one)]
        return True

    def _repeated(self, due: list[_Asked]) -> Iterator[tuple[_Asked, list[Measurement]]]:
        """Measure a repetition of each comparison in the same processes; what has failed before, in processes of its
        own. Each is kept as soon as it is done; what another lab has measured meanwhile is read.
        """
        failed = [one for one in due if one.again]
        for one in failed:
            yield from self._batch([(one, one.again.pop(0))])
        fresh = [(one, _Attempt(one.group, one.repetitions, 0, one.members)) for one in due if one not in failed]
        if fresh:
            # Whose turn it is to come first in the processes; the others in an order that is drawn for these files, so
            # that it is the same if it is done again.
            random.Random(min(attempt.file for _, attempt in fresh)).shuffle(fresh)
            first = min(fresh, key=lambda pair: pair[0].came_first)
            yield from self._batch([first, *(pair for pair in fresh if pair is not first)])

    def _batch(self, batch: list[tuple[_Asked, _Attempt]]) -> Iterator[tuple[_Asked, list[Measurement]]]:
        parts: dict[str, tuple[_Asked, _Attempt, rounds_procedure.Part]] = {}
        for one, attempt in batch:
            stored = self.store.usable(attempt.file)
            if stored:
                one.add(stored, attempt)
                yield one, stored
                continue
            empty = [
                record.begin("comparison", "rounds", attempt, role, job, attempt.repetition)
                for role, job in attempt.members
            ]
            places = _places(attempt.members, before=[part for *_, part in parts.values()])
            rounds = one.comparison.plan.rounds
            part = rounds_procedure.Part(empty, [job for _, job in attempt.members], one.settings, rounds, places)
            parts[attempt.file] = one, attempt, part
        if parts:
            measured = rounds_procedure.measure_repetition([part for *_, part in parts.values()], self.patience_s)
            with closing(measured):
                for part in measured:
                    one, attempt, _ = parts[part.measurements[0].file]
                    one.add(self._kept(part.measurements), attempt)
                    self.peers.refresh()
                    yield one, part.measurements

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
        if self.measures is Measures.NOTHING:  # a run that has failed once is there, too
            if absent := sum(group not in measured for group in groups):
                raise NotMeasured(f"{absent} of {len(jobs)} training runs of {conditions[0].workload}")
            missing = []
        random.Random(0).shuffle(missing)  # so that the machine's drift does not favour whoever comes first
        if missing:
            with Progress(len(missing) * settings.most_epochs, f"training {conditions[0].workload}") as progress:
                number = RUNS_TOGETHER if all(condition.device == "cpu" for condition in conditions) else 1
                while missing:
                    together, missing = missing[:number], missing[number:]
                    runs = self._trained(together, settings, progress)
                    with self._turn(progress.tell) as waited_s, closing(runs):
                        progress.stood_still(waited_s)
                        for attempt, run in runs:
                            measured[attempt.group] = run
        return TrainingRuns(conditions, [measured[group] for group in groups], certificates, epochs, threshold)

    def ceiling(self, device: str, precision: str = "fp32", within: Iterable[str] = (DEFAULT,)) -> Ceiling:
        """The machine's limits on a device, as far as the frameworks of some environments reach them; measured once for
        all that they depend on.
        """
        within = sorted(set(within))
        timed = ceiling.conditions(device, precision, within)
        jobs = [prepare_job(one, INITIAL_SEED, self.inputs) for one in timed]
        name = key(ceiling=[job.depends_on("ceiling") for job in jobs])
        path = self.folder / "ceilings" / f"{name}.json"
        before = _known_ceiling(path)
        if before and self._is_settled(before, bool(before.failures)):
            return before
        if self.measures is Measures.NOTHING:
            raise NotMeasured(f"the machine's limits on {device}")
        with self._turn(say):
            before = _known_ceiling(path)
            if before and self._is_settled(before, bool(before.failures)):  # by another process, meanwhile
                return before
            limits = ceiling.measure(device, precision, within, self.inputs, self.patience_s)
        limits = limits.model_copy(update=self._origin(before))
        _write(path, limits.model_dump_json(indent=2))
        return limits

    def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
        """Does the timer see work of known duration? A check for each framework, environment, mode and device of
        ``conditions``, made once for all that it depends on.
        """
        alike = {(one.implementation, one.mode, one.device, one.lane): one for one in conditions if _trains(one)}
        require(alike.values())
        checks = []
        for condition in alike.values():
            job = prepare_job(condition, INITIAL_SEED, self.inputs)
            path = self.folder / "timers" / f"{key(timer=job.depends_on('contract'))}.json"
            check = before = _known_check(path, condition)
            if before is None or not self._is_settled(before, bool(before.failure)):
                if self.measures is Measures.NOTHING:
                    raise NotMeasured(f"the timer of {condition}")
                with self._turn(say):
                    check = contract.check(condition, self.inputs, self.patience_s)
                check = replace(check, **self._origin(before))
                _write(path, json.dumps(check.document(), indent=2))
            checks.append(check)
        return checks

    def certify(self, conditions: Iterable[Condition], training_steps: int = 0) -> dict[str, Certificate]:
        """Certificates by condition key: is each condition's model the reference's? Made once, for all that the
        outcome depends on. Mixed precision has to pass in fp32 first: where it does not, that certificate is given.

        With ``training_steps``, what trains and is the same is compared over so many steps of training, too.
        """
        gated = {condition.key: gate.gated(condition) for condition in conditions}
        exact = {name: condition.but(precision="fp32") for name, condition in gated.items()}
        wanted = dict.fromkeys([*gated.values(), *exact.values()])  # no set: the same order in every run
        known = {condition.key: self._known_certificate(condition) for condition in wanted}
        missing = [condition for condition in wanted if known[condition.key] is None]
        if missing and self.measures is Measures.NOTHING:
            raise NotMeasured(f"whether {missing[0]} is the same model as the reference")
        if missing:
            told = "checking that the models are the same"
            with Progress(len(missing), told) as progress, closing(self._certify(missing, progress)) as made:
                for certificate in made:
                    known[certificate.condition.key] = certificate
                    progress.step(f"{certificate.condition}: {certificate.verdict}")
            for condition in missing:  # the others another process has made, while this one waited
                known[condition.key] = known[condition.key] or self._known_certificate(condition)
        for certificate in [one for one in known.values() if one and self._has_to_train(one, training_steps)]:
            known[certificate.condition.key] = self._with_training(certificate, training_steps)
        proved = {name: known[condition.key].same for name, condition in exact.items()}
        return {name: known[(one if proved[name] else exact[name]).key] for name, one in gated.items()}

    def _has_to_train(self, certificate: Certificate, steps: int) -> bool:
        trains = load(certificate.condition.workload).kind == "training"
        wanted = certificate.same and trains and certificate.condition.precision == "fp32"
        return wanted and certificate.training < steps and self.measures is not Measures.NOTHING

    def _with_training(self, certificate: Certificate, steps: int) -> Certificate:
        """The certificate with a longer comparison of training, which stands in it from now on."""
        condition = certificate.condition
        with self._turn(say):
            losses = gate.train(condition, self.inputs, self.patience_s, steps)
        longer = equivalence.with_training(certificate, losses)
        _write(self.certificate_path(condition), longer.sealed())
        return longer

    def measurements(self, files: Iterable[str] | None = None) -> pd.DataFrame:
        """Every measurement in this outputs folder, or in the files with these keys: a row a process, with what it
        takes to do it again.
        """
        return frame(self.store.all(files))

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
        self._after_keeping()
        return measurements

    def _known_certificate(self, condition: Condition) -> Certificate | None:
        """The certificate on disk; None where there is none, and where a failure is to be tried again."""
        known = self._certificate(condition)
        return known if known and self._is_settled(known, not known.checks) else None

    def _certificate(self, condition: Condition) -> Certificate | None:
        path = self.certificate_path(condition)
        try:
            return equivalence.unsealed(path.read_text(encoding="utf-8"), path)
        except FileNotFoundError:
            return None
        except BenchlibError as error:
            if self.measures is Measures.NOTHING:
                say(str(error))
                return None
            with suppress(FileNotFoundError):  # another process that reads the folder was first
                path.replace(path.with_suffix(".damaged"))
                say(f"{error} It is now {path.with_suffix('.damaged')}")
            return None

    def _certify(self, conditions: list[Condition], progress: Progress) -> Iterator[Certificate]:
        """Certify gated conditions, each as soon as it can be; what could not be checked is tried once more by the next
        run.
        """
        missing = (one for one in conditions if self._known_certificate(one) is None)  # once it is this one's turn
        computed = gate.run(missing, self.inputs, self.patience_s)
        with self._turn(progress.tell) as waited_s, closing(computed):
            progress.stood_still(waited_s)
            for one in computed:
                sets = knobs.neutralising(one.condition)
                exact = {name: value for name, value in one.surroundings.knobs.items() if name in sets}
                certificate = gate.certify(one, self.inputs, exact)
                path = self.certificate_path(one.condition)
                origin = {**self._origin(self._certificate(one.condition)), **asdict(one.surroundings)}
                certificate = certificate.model_copy(update={**origin, "file": path.stem})
                _write(path, certificate.sealed())
                yield certificate

    def _is_settled(self, kept: Certificate | Ceiling | SyncCheck, failed: bool) -> bool:
        """Is it taken as it is? What has failed is tried again by another run, where anything is measured."""
        tried = kept.attempts >= ATTEMPTS or kept.run == self._run
        return not failed or tried or self.measures is Measures.NOTHING

    def _origin(self, before: Certificate | Ceiling | SyncCheck | None) -> dict[str, Any]:
        """In which attempt and run something is made of which there was this ``before``."""
        return {"attempts": 1 + (before.attempts if before else 0), "run": self._run}

    def certificate_path(self, condition: Condition) -> Path:
        """Where the certificate of a gated condition lies: under a key of all that it depends on."""
        both = (condition, gate.reference(condition))
        name = key(
            gate=[samples.prepare(one, self.inputs).depends_on("gate") for one in both],
            set=[knobs.of_gate(one) for one in both],
            tolerances=equivalence.tolerances(condition),
        )
        return self.folder / "certificates" / f"{name}.json"


@dataclass(eq=False)
class _Asked:
    """A comparison that has been asked for: what is there of it, and what may come."""

    comparison: Comparison
    group: str
    members: list[tuple[str, Job]]
    settings: rounds_procedure.Settings
    repetitions: int = 0  # that are there, whatever came of them
    again: list[_Attempt] = field(default_factory=list)  # of what has failed once

    def add(self, measurements: list[Measurement], attempt: _Attempt) -> None:
        self.comparison.measurements.extend(measurements)
        self.repetitions = max(self.repetitions, attempt.repetition + 1)

    @property
    def came_first(self) -> int:
        """In so many repetitions its conditions were the first of their processes."""
        every = {m.file for m in self.comparison.measurements}
        return len(every - {m.file for m in self.comparison.measurements if m.hosted_after})

    @property
    def hosts(self) -> tuple[str | None, ...]:
        """What the processes of its conditions have once, in order; None for one that stays alone."""
        return tuple(rounds_procedure.host(job.condition) for _, job in self.members)


def _places(members: list[tuple[str, Job]], before: list[rounds_procedure.Part]) -> list[int]:
    """The processes that measure ``members`` after comparisons of the same hosts: theirs, but for what stays alone."""
    taken = {place for part in before for place, *_ in part.placed}
    unused = itertools.count(len(taken))
    alone = [rounds_procedure.stays_alone(job.condition) for _, job in members]
    return [next(unused) if taken and alone[place] else place for place in range(len(members))]


def _hosted_together(asked: Iterable[_Asked]) -> list[list[_Asked]]:
    """Comparisons of which processes can host each other's conditions, in order; beside them such that stay alone."""
    together: dict[tuple[str | None, ...] | str, list[_Asked]] = {}
    for one in asked:
        together.setdefault(one.hosts if any(one.hosts) else one.group, []).append(one)
    return list(together.values())


def _in_shares(asked: Iterable[_Asked]) -> Iterator[list[_Asked]]:
    """Those that are measured in the same processes: no more than each can come first once in the pilot."""
    for together in _hosted_together(asked):
        parts = math.ceil(len(together) / min(one.comparison.pilot for one in together))
        for part in range(parts):
            yield together[part * len(together) // parts : (part + 1) * len(together) // parts]


def _best(together: list[_Asked], left_s: float) -> tuple[list[_Asked], planner.Choice]:
    """Of comparisons that can be repeated in the same processes in the time left those for which it is worth most."""
    due = [one for one in together if one.comparison.measurements and not one.comparison.settled]
    worth = [planner.Worth(one.comparison.gain, *one.comparison.costs) for one in due]
    best = planner.best_together(worth, left_s)
    return [due[place] for place in best.members], best


def _projected(comparisons: list[Comparison], left_s: float) -> float:
    """The widest half-width (relative) after so many seconds, if intervals narrow with the root of the processes, and
    no comparison shares its processes with others.
    """
    widths = [one.widest[0] for one in comparisons]
    processes = [len({m.repetition for m in one.measurements}) for one in comparisons]
    costs = [sum(one.costs) for one in comparisons]
    while True:
        gains = [
            width * (1 - math.sqrt(n / (n + 1))) / cost if cost <= left_s and width > one.precision else 0.0
            for one, width, n, cost in zip(comparisons, widths, processes, costs, strict=True)
        ]
        best = max(range(len(gains)), key=gains.__getitem__)
        if not gains[best]:
            return max(widths)
        widths[best] *= math.sqrt(processes[best] / (processes[best] + 1))
        processes[best] += 1
        left_s -= costs[best]


def _title(due: list[_Asked]) -> str:
    return f"comparing {'; '.join(dict.fromkeys(one.comparison.title for one in due))}"


def _left(one: _Asked) -> int:
    return len(one.again) + max(1, one.comparison.plan.more_processes)


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
    if checkout := environments.checkout():
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
    """Raise a BenchlibError if a condition asks for an environment, framework, device, threads or data that is not
    there, or for more memory than there is.
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
        name = "A/A" if m.role == "control" else m.condition.subject
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


def _known_check(path: Path, condition: Condition) -> SyncCheck | None:
    try:
        return SyncCheck.of(condition, json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # not made yet, or cut
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
    workload = load(condition.workload)
    if workload.metric is None:
        raise BenchlibError(f"workload {condition.workload!r} has no metric: it can be compared, but not trained")
    metrics.require(workload)
    low, high = metrics.limits(workload)
    if threshold is not None and not low <= threshold <= high:
        raise BenchlibError(
            f"threshold {threshold!r}: {workload.metric} is between {low:g} and {high:g}, no run can reach it"
        )
