"""The place where measurements are made and kept: one outputs folder."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from benchlib import cache, environments, scratch
from benchlib.cache import Measurement, Store, frame
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.equivalence import compare, gate, parting, samples
from benchlib.equivalence.certificate import Certificate
from benchlib.equivalence.tolerances import tolerances
from benchlib.errors import BenchlibError
from benchlib.plugins import use as use_plugins
from benchlib.progress import Progress, say, variable
from benchlib.provenance import knobs
from benchlib.provenance.fingerprint import Unchanged
from benchlib.runner import epochs as epochs_procedure
from benchlib.runner import preflight, roofline, rounds, scheduler, timer_check
from benchlib.runner.interrupt import one_interrupt
from benchlib.runner.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.runner.processes import PATIENCE_S
from benchlib.runner.roofline import Ceiling
from benchlib.runner.scheduler import Asked
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import planner
from benchlib.stats.comparison import MARGIN, Comparison, describe_widest, most_urgent
from benchlib.stats.training_runs import TrainingRuns
from benchlib.workloads import load

MEASURES_VARIABLE = "BENCHLIB_MEASURES"  # how much a lab measures where its caller does not say: see :class:`Measures`


class Measures(Enum):
    """The part that a lab measures of the requests without a result."""

    BUDGET = "budget"  # each comparison up to its precision, or its own budget
    LATER = "later"  # of comparisons nothing yet: see :meth:`Lab.pilots` and :meth:`Lab.sharpen`
    NOTHING = "nothing"


class NotMeasured(BenchlibError):
    """A result is missing, and a lab that measures nothing was asked for it, or no host has measured it."""

    def __init__(self, what: str, why: str = "nothing is to be measured now; run again with more time") -> None:
        super().__init__(f"{what}: not measured so far: {why}")


def kernels_measure(how: Measures) -> AbstractContextManager[None]:
    """Have labs of kernels that are started meanwhile measure so much."""
    return variable(MEASURES_VARIABLE, how.value)


Cached = TypeVar("Cached", Measurement, Certificate, Ceiling, SyncCheck)


class Lab:
    """Measures missing results into ``outputs/PROFILE`` of the checkout (or ``outputs``, a folder).

    A crash is in the cache to be shown, and another lab measures it again; a framework's refusal is a result. A worker
    that is silent for longer than ``patience_s`` counts as hung; ``after_keeping`` is called whenever measurements have
    been written. ``plugins`` are folders of plug-ins, for all of this process from then on.
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
        self.folder = environments.root() / "outputs" / profile if outputs is None else Path(outputs).resolve()
        self.inputs = self.folder / "inputs"
        self.store = Store(self.folder / "measurements")
        self.patience_s = patience_s
        self.measures = measures or Measures(os.environ.get(MEASURES_VARIABLE, Measures.BUDGET.value))
        self.comparisons: dict[str, Asked] = {}
        self.ended: Collection[str] = ()  # files of comparisons that are taken as they are, once they have their pilots
        self.waited_s = 0.0  # for others that measured on this machine
        self._after_keeping = after_keeping
        self._own: set[str] = set()  # this lab's measurements, by the keys of files: it tries no failure again
        scratch.remove_stale()

    def compare(self, conditions: list[Condition], **asked: Any) -> Comparison:
        """Measure one comparison: see :meth:`compare_each`."""
        return self.compare_each([conditions], **asked)[0]

    @one_interrupt()
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
        """Measure each group of conditions together; its first is the baseline, also measured against itself (A/A).

        A repetition has a fresh process per condition and blocks of about ``block_s`` seconds. After ``pilot`` of them
        at least, a comparison ends when the 95 % interval of every ratio is no wider than ``precision`` (relative half-
        width). It also ends when the next would take more than ``budget_s`` seconds in all: see
        ``benchlib.stats.planner``. A ratio whose interval lies within ``margin`` of 1 is "the same within" that.
        """
        for conditions in groups:
            preflight.require_distinct(conditions)
            planner.require(precision, budget_s, block_s, pilot, margin)
        every = [condition for conditions in groups for condition in conditions]
        preflight.require(every)
        codes = [_code(conditions, "rounds") for conditions in groups]  # before it is certified
        certificates = self.certify(every)
        budget_s = math.inf if self.measures is not Measures.BUDGET else budget_s
        asked = []
        for conditions, code in zip(groups, codes, strict=True):
            comparison = Comparison(conditions, [], certificates, precision, budget_s, pilot, margin)
            jobs = [prepare_job(one, INITIAL_SEED, self.inputs) for one in (*comparison.timed[:1], *comparison.timed)]
            asked.append(Asked.create(comparison, jobs, rounds.RoundSettings(block_s=block_s), code))
            asked[-1].read(self.store)
        timed = [one for one in asked if one.members]
        for one in timed:
            one.code.require()
            self._add(one)
        if self.measures is Measures.BUDGET:
            for one in timed:
                self._measure(one)
            if any(one.comparison.plan.ended is None for one in timed):
                say("shown as the last run left it; another precision, budget_s or more minutes measure more")
        elif self.measures is Measures.NOTHING and timed and not any(one.comparison.measurements for one in timed):
            raise NotMeasured(f"{asked[0].comparison.title}{' and others' * (len(asked) > 1)}")
        return [one.comparison for one in asked]

    def pilots(self) -> bool:
        """Bring the comparisons that have been asked for to their pilots. Was anything missing?"""
        return sum(self._measure(one) for one in self.comparisons.values()) > 0

    def sharpen(self, until: float, tell: Callable[[str], None] = say) -> None:
        """Give the comparisons asked for more processes, until all have their precision or the time is up.

        Each goes where it narrows the widest interval most for its cost, if it fits before ``until``.
        """
        asked = list(self.comparisons.values())
        comparisons = [one.comparison for one in asked]
        while (place := most_urgent(comparisons, until - time.monotonic())) is not None:
            with self._hold_machine(tell) as waited_s:
                until += waited_s
                measured = asked[place].repeat(self.store, self.patience_s, self._keep)
                tell(f"{comparisons[place].title}: {scheduler.line(measured)}")
            tell(describe_widest(comparisons, max(0.0, until - time.monotonic())))

    @one_interrupt()
    def train(
        self,
        conditions: list[Condition],
        *,
        seeds: list[int],
        epochs: int,
        threshold: float | None = None,
        most_epochs: int | None = None,
        on_epoch: epochs_procedure.AfterEpoch = lambda run: None,
    ) -> TrainingRuns:
        """Train each condition from each seed for ``epochs``, and on to ``threshold`` or ``most_epochs``.

        ``on_epoch`` is called with each run after each of its epochs.
        """
        preflight.require_trainable(conditions, seeds, epochs, threshold, most_epochs)
        most = max(epochs, most_epochs or epochs)
        settings = epochs_procedure.TrainingSettings(epochs=epochs, threshold=threshold, most_epochs=most)
        preflight.require(conditions)
        code = _code(conditions, "epochs")
        certificates = self.certify(conditions)
        jobs = [prepare_job(condition, seed, self.inputs) for condition in conditions for seed in seeds]
        kept = {"kind": "training", "settings": settings.model_dump()}
        asked = {key(**kept, job=job.depends_on("epochs")): job for job in jobs}
        measured = {file: run for file in asked if (run := self._training_run(file))}
        missing = [(file, job) for file, job in asked.items() if file not in measured]
        if missing and self.measures is Measures.NOTHING:
            raise NotMeasured(f"{len(missing)} of {len(jobs)} training runs of {conditions[0].workload}")
        random.Random(0).shuffle(missing)  # so that the machine's drift does not favour the first ones
        measured |= {run.file: run for run in self._train_missing(dict(missing), settings, code, on_epoch)}
        return TrainingRuns(conditions, [measured[file] for file in asked], certificates, epochs, threshold)

    def _training_run(self, file: str) -> Measurement | None:
        return self._drop_if_retried(file, next(iter(self.store.load_or_set_aside(file) or ()), None))

    def _train_missing(
        self,
        missing: dict[str, Job],
        settings: epochs_procedure.TrainingSettings,
        code: Unchanged,
        after_epoch: epochs_procedure.AfterEpoch,
    ) -> Iterator[Measurement]:
        """Training runs that are not there, each as soon as it is kept."""
        if not missing:
            return
        workload = next(iter(missing.values())).condition.workload

        def keep(runs: list[Measurement]) -> None:
            if not all(run.epochs for run in runs):
                code.require()
            self._keep(runs)

        def after(run: Measurement) -> None:
            if len(run.epochs) == 1:  # all is imported: later changes are none of this run's code
                code.require()
            after_epoch(run)

        with Progress(len(missing) * settings.most_epochs, f"training {workload}") as progress:
            for together in epochs_procedure.startable_together(missing):
                trained = epochs_procedure.train_runs(
                    together, settings, self._training_run, self.patience_s, keep, progress, after
                )
                with self._hold_machine(progress.tell) as waited_s, closing(trained):
                    progress.stood_still(waited_s)
                    code.require()
                    yield from trained

    def ceiling(self, device: str, precision: str = "fp32", within: Iterable[str] = (DEFAULT,)) -> Ceiling:
        """The machine's limits on a device, as far as the frameworks of some environments reach them."""
        within = sorted(set(within))
        timed = roofline.conditions(device, precision, within)
        code = Unchanged((one, "ceiling") for one in timed)
        jobs = [prepare_job(one, INITIAL_SEED, self.inputs) for one in timed]
        path = self.folder / "ceilings" / f"{key(ceiling=[job.depends_on('ceiling') for job in jobs])}.json"
        measure = partial(roofline.measure, device, precision, within, self.inputs, self.patience_s)
        return self._load_or_measure(Ceiling, path, code, f"the machine's limits on {device}", measure)

    def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
        """Does the timer of each framework, environment, mode and device see work of known duration?"""
        training = (one for one in conditions if load(one.workload).kind == "training")
        alike = {(one.implementation, one.mode, one.device, one.lane): one for one in training}
        preflight.require(alike.values())
        checks = []
        for condition in alike.values():
            code = Unchanged([(condition, "contract")])
            depends_on = prepare_job(condition, INITIAL_SEED, self.inputs).depends_on("contract")
            path = self.folder / "timers" / f"{key(timer=depends_on)}.json"
            measure = partial(timer_check.check, condition, self.inputs, self.patience_s)
            checks.append(self._load_or_measure(SyncCheck, path, code, f"the timer of {condition}", measure))
        return checks

    def certify(self, conditions: Collection[Condition], training_steps: int = 0) -> dict[str, Certificate]:
        """Certificates by condition key: is each condition's model the reference's?

        Double precision has to pass first, then fp32, then mixed precision, and one process before several: where that
        does not, its certificate is given. With ``training_steps``, models that train are compared over these, too.
        """
        gated = {condition.key: gate.adapt(condition) for condition in conditions}
        first = {name: gate.prerequisites(condition) for name, condition in gated.items()}
        wanted = gate.largest_batches(conditions)
        code = _code(wanted, "gate")
        paths = {condition: self.certificate_path(condition) for condition in wanted}
        known = {one.key: self._certificate(paths[one], size) for one, size in wanted.items()}
        missing = {one: size for one, size in wanted.items() if known[one.key] is None}
        if missing and self.measures is Measures.NOTHING:
            raise NotMeasured(f"whether {next(iter(missing))} is the same model as the reference")
        if missing:
            self._certify(missing, paths, code)
            known |= {one.key: self._certificate(paths[one], 0) for one in missing}
        for name, found in list(known.items()) if training_steps else ():
            if found and found.same and gate.can_train(found.condition):
                known[name] = self._with_training(found, training_steps, code)
        judged = ((name, [known[one.key] for one in first[name]], known[one.key]) for name, one in gated.items())
        return {name: gate.judge(some, own) for name, some, own in judged}

    def _with_training(self, certificate: Certificate, steps: int, code: Unchanged) -> Certificate:
        """The certificate with a longer comparison of training, in a file of its own.

        Where that shows another model, it takes the shorter one's place, too.
        """
        condition = certificate.condition
        path, shorter = self.certificate_path(condition, steps), self.certificate_path(condition)
        known = self._certificate(path, certificate.batch_size)
        if self.measures is Measures.NOTHING or (known and known.same):
            return known or certificate
        with self._hold_machine(say):
            known = self._certificate(path, certificate.batch_size)  # by another process, meanwhile
            trained = None if known else gate.train(condition, self.inputs, self.patience_s, steps)
            code.require()
            if isinstance(trained, tuple):  # it failed, which is not kept
                return compare.without_training(certificate, *trained)
            longer = known or compare.with_training(certificate, trained.own, trained.fed)
            if not longer.same:  # first: whatever comes between, nothing is to say "the same"
                self._save(shorter, longer.model_copy(update={"file": shorter.stem}))
            if known is None:
                self._save(path, longer := longer.model_copy(update={"file": path.stem}))
        return longer

    def measurements(self, files: Iterable[str] | None = None) -> pd.DataFrame:
        """Every measurement in this folder, or in the files with these keys: a row a process."""
        return frame(self.store.all(files))

    def _certify(self, sizes: dict[Condition, int], paths: Mapping[Condition, Path], code: Unchanged) -> None:
        """Write the certificates of gated conditions to ``paths``, each as soon as it can be."""
        with (
            Progress(len(sizes), "checking that the models are the same") as progress,
            self._hold_machine(progress.tell) as waited_s,
        ):
            progress.stood_still(waited_s)
            missing = {one: size for one, size in sizes.items() if self._certificate(paths[one], size) is None}
            with closing(gate.run(missing, self.inputs, self.patience_s)) as computed:
                for one in computed:
                    code.require()
                    path = paths[one.condition]
                    certificate = parting.with_parting(gate.certify(one), one, self.patience_s)
                    self._save(path, certificate.model_copy(update={"file": path.stem}))
                    progress.step(str(certificate))

    def _certificate(self, path: Path, batch_size: int) -> Certificate | None:
        """The certificate, unless a larger batch is asked for now."""
        found = self._cached(Certificate, path)
        return found if found and (found.batch_size >= batch_size or not found.checks) else None

    def _cached(self, kind: type[Cached], path: Path) -> Cached | None:
        """The cached result, unless it crashed in another lab and is measured again by this one."""
        return self._drop_if_retried(path.stem, cache.load_or_set_aside(kind, path))

    def _drop_if_retried(self, file: str, found: Cached | None) -> Cached | None:
        shown = self.measures is Measures.NOTHING or file in self._own
        return found if found is None or shown or not found.crashed else None

    def _save(self, path: Path, result: Certificate | Ceiling | SyncCheck) -> None:
        self._own.add(path.stem)
        cache.save(path, result)

    def certificate_path(self, condition: Condition, training_steps: int = 0) -> Path:
        """The file of a gated condition's certificate, with so many steps of training."""
        jobs = [samples.prepare(one, self.inputs) for one in gate.compared(condition)]
        name = key(
            asked=condition.hyperparameters,
            gate=[job.depends_on("gate") for job in jobs],
            set=[knobs.of_gate(job.condition) for job in jobs],
            tolerances=tolerances(condition),
            training=training_steps,
        )
        return self.folder / "certificates" / f"{name}.json"

    def _add(self, asked: Asked) -> None:
        """Ask for a comparison; one that two notebooks ask for is measured later, with the stricter settings."""
        before = self.comparisons.get(asked.group)
        if before is not None and self.measures is Measures.LATER:
            precision = min(before.comparison.precision, asked.comparison.precision)
            pilot = max(before.comparison.pilot, asked.comparison.pilot)
            asked.comparison = replace(asked.comparison, precision=precision, pilot=pilot)
        self.comparisons[asked.group] = asked

    def _measure(self, one: Asked) -> bool:
        """Bring a comparison to its precision, the end of its budget, or its pilot only. Was anything missing?"""
        if not self._is_unfinished(one):
            return False
        with Progress(one.repetitions_left, f"comparing {one.comparison.title}") as progress:
            while self._is_unfinished(one):
                with self._hold_machine(progress.tell) as waited_s:
                    progress.stood_still(waited_s)
                    measured = one.repeat(self.store, self.patience_s, self._keep)
                    progress.total = progress.done + 1 + (one.repetitions_left if self._is_unfinished(one) else 0)
                    progress.step(scheduler.line(measured))
        return True

    def _is_unfinished(self, one: Asked) -> bool:
        ended = self.measures is Measures.LATER or any(m.file in self.ended for m in one.comparison.measurements)
        enough = ended and one.repetitions >= one.comparison.pilot
        return one.comparison.lacks_pilot(self._own) or not (enough or one.comparison.plan.ended is not None)

    def _keep(self, measurements: list[Measurement]) -> None:
        self._own.add(measurements[0].file)
        self.store.save(measurements)
        self._after_keeping()

    @contextmanager
    def _hold_machine(self, tell: Callable[[str], None]) -> Iterator[float]:
        """Hold the machine, and count the seconds of waiting for others."""
        with hold_machine(tell) as waited_s:
            self.waited_s += waited_s
            yield waited_s

    def _load_or_measure(
        self, kind: type[Cached], path: Path, code: Unchanged, what: str, measure: Callable[[], Cached]
    ) -> Cached:
        """Load a result from a file, or measure it by ``code`` and write it there."""
        if known := self._cached(kind, path):
            return known
        if self.measures is Measures.NOTHING:
            raise NotMeasured(what)
        with self._hold_machine(say):
            if known := self._cached(kind, path):  # by another process, meanwhile
                return known
            measured = measure()
            code.require()
            self._save(path, measured)  # before a waiting process looks for it
        return measured


def _code(conditions: Iterable[Condition], procedure: str) -> Unchanged:
    """The code of ``procedure`` for these conditions, and of their certificates."""
    every = [(one, "gate") for condition in conditions for one in gate.compared(condition)]
    return Unchanged([*((one, procedure) for one in conditions), *every])
