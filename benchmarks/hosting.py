"""May a process measure one condition after another? Does it then give the throughput that it gives alone?

    .venv/bin/python benchmarks/hosting.py [--minutes 60] [--workloads cnn gcn] [--frameworks pytorch]

Every workload that quick compares in a size of its comparisons, every other one in the small size of
parameters/quick/equivalence.yaml, in PyTorch (eager) and MindSpore (graph; eager where that compiles for long), tuned.
In a repetition one process measures a condition of another workload, drawn at random from those that it can host, and
then up to three conditions in random order, each of them in rounds together with a fresh process that measures nothing
else. The ratio is throughput hosted over alone, within rounds, its 95 % interval over such pairs of processes, with the
variance moderated by those of the framework's other workloads. It should lie within 0.98 to 1.02: then the workload's
file names the framework among those in which it is ``hosted``, and its processes measure it after others. It takes
hours: pairs of processes differ by some 5 %, so that it takes some 25 of them for a condition. Two designs in which a
process was measured before and after, alone and relative to one beside it, had more spread, not less.

The next repetition goes to the widest interval. What has been measured is kept in outputs/benchmarks/hosting, so the
study can be stopped and goes on; for it to mean something the machine must be quiet. ``--minutes`` ends it after the
repetition in which they are over.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchlib import knobs
from benchlib.analysis.comparison import Comparison
from benchlib.analysis.length import LEAST_ROUNDS
from benchlib.analysis.moderation import Spread
from benchlib.analysis.peers import Peers, host_of, kind
from benchlib.analysis.statistics import Interval
from benchlib.condition import Condition
from benchlib.measure import machine, record, rounds
from benchlib.measure.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.measure.processes import PATIENCE_S
from benchlib.measure.refusals import require
from benchlib.measure.turn import turn
from benchlib.progress import say
from benchlib.store import Measurement, Store
from benchlib.suite import experiments

ROOT = Path(__file__).resolve().parent.parent
SIZES = ROOT / "parameters" / "quick" / "equivalence.yaml"
FOLDER = ROOT / "outputs" / "benchmarks" / "hosting"

FRAMEWORKS = ("pytorch", "mindspore")
MARGIN = 0.02
PILOT = 5  # repetitions of each, before the widest comes first and any can be done
MOST = 60  # repetitions of each: what has no interval by then gets none
TOGETHER = 3  # conditions that are compared in a repetition
SETTINGS = rounds.Settings(block_s=0.1)

SAME, NOT_SHOWN = f"same within {MARGIN:.0%}", "not shown"

BATCH_SIZES = {  # for which a step of either framework takes some milliseconds to some tenths of a second
    "resnet50": 4,
    "googlenet": 4,
    "lstm": 32,
    "gru": 16,
    "seq2seq": 32,
    "bert": 4,
    "resnet50_inference": 16,
    "cnn": 256,
    "conv2d": 64,
    "linear": 1024,
    "batchnorm2d": 64,
}
OF_COMPARISONS = {  # hyperparameters with which quick compares: steps that are more than their overhead
    "gcn": {"hidden": 512},
    "conv2d": {"in_channels": 64, "out_channels": 64, "image_size": 16},
    "batchnorm2d": {"channels": 64, "image_size": 32},
}
EAGER = ("resnet50", "googlenet", "resnet50_inference", "gru", "seq2seq", "bert")  # MindSpore compiles them for long


@dataclass(eq=False)
class Subject:
    """A condition, and the pairs of processes that have measured it: one alone, one that had hosted others."""

    condition: Condition
    job: Job
    group: str
    peers: Callable[[], Sequence[Spread]]  # the variances of its kind that the others have shown
    measurements: list[Measurement] = field(default_factory=list)

    @property
    def process(self) -> tuple:
        """What it must have in common with what its processes host."""
        of = self.condition
        return of.framework, of.mode, *sorted(knobs.of(of).items())

    @property
    def repetitions(self) -> int:
        return len({m.repetition for m in self.measurements})

    @property
    def comparison(self) -> Comparison:
        """The process that is alone as the baseline, the one that has hosted others as its control."""
        asked = {"precision": MARGIN, "budget_s": math.inf, "pilot": PILOT, "margin": MARGIN}
        return Comparison([self.condition], self.measurements, {}, **asked, peers=lambda *_: self.peers())

    @property
    def ratio(self) -> Interval:
        """Throughput hosted over alone."""
        return self.comparison.control

    @property
    def verdict(self) -> str:
        return verdict(self.ratio)

    @property
    def urgency(self) -> tuple[int, float]:
        """Who has the greatest is measured next: the pilots, then the widest, at last what has no interval."""
        if self.repetitions < PILOT:
            return 2, -self.repetitions
        half_width = self.ratio.half_width
        return (1, half_width) if math.isfinite(half_width) else (0, -self.repetitions)

    def together(self, repetition: int) -> Together:
        return Together(self.group, repetition, key(hosting=self.group, repetition=repetition))


@dataclass(frozen=True)
class Together:
    """Who is measured together: see ``benchlib.measure.record.Together``."""

    group: str
    repetition: int
    file: str
    number: int = 0


class Study:
    """Subjects, what there is of them in ``folder``, and what to measure next."""

    def __init__(
        self, folder: Path, conditions: Iterable[Condition], asked: Iterable[str], frameworks: Iterable[str]
    ) -> None:
        """``asked`` are the workloads that are measured, in these frameworks; the others' conditions may be hosted
        before them.
        """
        self._inputs, self._asked = folder / "inputs", set(itertools.product(asked, frameworks))
        self._store = Store(folder / "measurements")
        self._peers = Peers(self._store)
        self._machine = host_of(machine.describe())
        self.subjects = [self._subject(condition) for condition in conditions]
        self._peers.refresh()

    def next(self) -> tuple[Subject, list[Subject]] | None:
        """What is hosted before, and what is then compared, in order; None: there is no more to do."""
        due = [one for one in self.subjects if self._is_due(one)]
        if not due:
            return None
        neediest = max(due, key=lambda one: one.urgency)
        chance = random.Random(neediest.together(neediest.repetitions).file)
        before = chance.choice(self._beside(neediest))
        beside = [one for one in due if one.process == neediest.process and one is not before]
        compared = sorted(beside, key=lambda one: one.urgency, reverse=True)[:TOGETHER]
        return before, chance.sample(compared, len(compared))

    def repeat(self, before: Subject, compared: list[Subject]) -> None:
        """Measure each of ``compared`` in a process that has hosted ``before`` and those that precede it, and in one of
        its own; keep each pair as soon as it is done.
        """
        pairs, of_group = [self._pair(one) for one in compared], {one.group: one for one in compared}
        together = Together(before.group, 0, key(before=before.group, pairs=[pair[0].file for pair in pairs]))
        first = record.begin("comparison", "rounds", together, "condition", before.job, together.repetition)
        parts = [rounds.Part([first], [before.job], SETTINGS, LEAST_ROUNDS, places=[0])]
        for place, (one, pair) in enumerate(zip(compared, pairs, strict=True), start=1):
            jobs = [one.job, one.job]
            parts.append(rounds.Part(pair, jobs, SETTINGS, one.comparison.plan.rounds, places=[place, 0]))
        with closing(rounds.measure_repetition(parts, PATIENCE_S)) as measured:
            for part in itertools.islice(measured, 1, None):
                self._store.save(part.measurements)
                of_group[part.measurements[0].group].measurements += part.measurements
                self._peers.refresh()
                for failed in [m for m in part.measurements if not m.ok]:
                    say(f"{failed.condition}: {failed.failure}")

    def table(self) -> pd.DataFrame:
        """A row for each subject."""
        return pd.DataFrame([row(one) for one in self._of_asked()])

    def _of_asked(self) -> list[Subject]:
        return [one for one in self.subjects if (one.condition.workload, one.condition.framework) in self._asked]

    def _subject(self, condition: Condition) -> Subject:
        job = prepare_job(condition, INITIAL_SEED, self._inputs)
        group = key(hosting=job.depends_on("rounds"), settings=SETTINGS.model_dump())
        of = kind(condition, condition, True, self._machine)
        subject = Subject(condition, job, group, lambda: self._peers.of(group, of))
        for repetition in itertools.count():
            stored = self._store.usable(subject.together(repetition).file)
            if stored is None:
                return subject
            subject.measurements += stored

    def _is_due(self, one: Subject) -> bool:
        shown = one.verdict == SAME and one.repetitions >= PILOT
        asked = (one.condition.workload, one.condition.framework) in self._asked
        return asked and not shown and one.repetitions < MOST and bool(self._beside(one))

    def _beside(self, one: Subject) -> list[Subject]:
        return [other for other in self.subjects if other is not one and other.process == one.process]

    @staticmethod
    def _pair(one: Subject) -> list[Measurement]:
        """Empty measurements: alone, and hosted."""
        together = one.together(one.repetitions)
        roles = ("baseline", "control")
        return [record.begin("comparison", "rounds", together, role, one.job, together.repetition) for role in roles]


def main() -> None:
    """Print the table."""
    models = {model.workload: model for model in experiments.load("equivalence", SIZES).models}
    parser = argparse.ArgumentParser(description="Do processes that host others give the throughput of those alone?")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no new repetition begins")
    parser.add_argument("--workloads", nargs="+", choices=models, default=list(models), help="that are measured")
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS, help="that are measured")
    arguments = parser.parse_args()
    conditions = every_condition()
    require(conditions)
    end = time.monotonic() + 60 * arguments.minutes
    study = Study(FOLDER, conditions, arguments.workloads, arguments.frameworks)
    while time.monotonic() < end and (chosen := study.next()):
        before, compared = chosen
        with turn(say):
            study.repeat(before, compared)
        for one in compared:
            say(f"{name(one.condition)}: {one.ratio} after {one.repetitions}, {one.verdict}")
    print(study.table().to_string(index=False))


def every_condition() -> list[Condition]:
    """Of all workloads in both frameworks."""
    return [
        Condition(
            workload=model.workload,
            framework=framework,
            mode="eager" if framework == "pytorch" or model.workload in EAGER else "graph",
            lane="tuned",
            data=model.data,
            hyperparameters={**model.hyperparameters, **OF_COMPARISONS.get(model.workload, {})},
            batch_size=BATCH_SIZES.get(model.workload),
        )
        for framework in FRAMEWORKS
        for model in experiments.load("equivalence", SIZES).models
    ]


def verdict(ratio: Interval) -> str:
    """Is it shown that hosting changes nothing that matters?"""
    return SAME if ratio.low >= 1 - MARGIN and ratio.high <= 1 + MARGIN else NOT_SHOWN


def row(one: Subject) -> dict[str, object]:
    """Of the table."""
    ratio, known = one.ratio, math.isfinite(one.ratio.low)
    return {
        "workload": one.condition.workload,
        "framework": f"{one.condition.framework} {one.condition.mode}",
        "hosted / alone": f"{ratio.estimate:.4f}" if ratio.processes else "-",
        "95 % interval": f"[{ratio.low:.4f}, {ratio.high:.4f}]" if known else "-",
        "half-width %": f"{100 * ratio.half_width:.1f}" if known else "-",
        "processes": ratio.processes,
        "failed": sum(not m.ok for m in one.measurements),
        "verdict": one.verdict,
        "declared": "alone" if rounds.stays_alone(one.condition) else "hosted",
    }


def name(condition: Condition) -> str:
    """In a line of progress."""
    return f"{condition.workload} {condition.framework} {condition.mode}"


if __name__ == "__main__":
    main()
