"""May a process measure one condition after another? Does it then give the throughput that it gives alone?

    .venv/bin/python benchmarks/hosting.py [--minutes 60] [--workloads cnn gcn]

Every workload in the small size of parameters/quick/equivalence.yaml, in PyTorch (eager) and MindSpore (graph; eager
where that compiles for long), tuned. A fresh process measures a condition, which is then as alone as in a process of
its own; then one of another workload, drawn at random from those that it can host; and then the first one again, built
anew. Both times it is measured in rounds together with a second process, which goes on with that condition and nothing
else. So the ratio of throughput, hosted over alone, is free of both processes' own speed and of the machine's drift,
either of which is some percent. Its 95 % interval is over such pairs of processes, with the variance moderated by those
of the framework's other workloads.

It should lie within 0.98 to 1.02: then ``hosted=True`` in the workload's file lets its processes host it. The next
repetition goes to the widest interval. What has been measured is kept in outputs/benchmarks/hosting, so the study can
be stopped and goes on; for it to mean something the machine must be quiet. ``--minutes`` ends it after the repetition
in which they are over.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchlib import experiments, knobs, workloads
from benchlib.condition import Condition
from benchlib.lab import require
from benchlib.measure import record, rounds
from benchlib.measure.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.measure.length import LEAST_ROUNDS
from benchlib.measure.moderation import Spread, moderated_interval
from benchlib.measure.processes import PATIENCE_S
from benchlib.measure.statistics import Interval, rounds_of
from benchlib.measure.turn import turn
from benchlib.progress import say
from benchlib.results import Measurement, Store, seconds_by_round

ROOT = Path(__file__).resolve().parent.parent
SIZES = ROOT / "parameters" / "quick" / "equivalence.yaml"
FOLDER = ROOT / "outputs" / "benchmarks" / "hosting"

MARGIN = 0.02
PILOT = 5  # repetitions of each, before the widest comes first and any can be done
MOST = 60  # repetitions of each: what has no interval by then gets none
TOGETHER = 2  # conditions whose processes start side by side, to be measured one after the other
SETTINGS = rounds.Settings(block_s=0.1)
ROUNDS = 16

SAME, NOT_SHOWN = f"same within {MARGIN:.0%}", "not shown"

BATCH_SIZES = {  # for which a step of either framework takes some milliseconds to some tenths of a second
    "resnet50": 4,
    "googlenet": 4,
    "lstm": 32,
    "gru": 16,
    "seq2seq": 32,
    "bert": 4,
    "resnet50_inference": 4,
    "conv2d": 8,
    "linear": 1024,
    "batchnorm2d": 128,
}
EAGER = ("resnet50", "googlenet", "resnet50_inference", "gru", "seq2seq", "bert")  # MindSpore compiles them for long

ALONE, HOSTED, REFERENCE = "baseline", "control", "condition"
"""The roles of a condition first in its process, of the same after another, and in the process that stays with it."""


@dataclass(eq=False)
class Subject:
    """A condition, and what pairs of processes have measured of it."""

    condition: Condition
    job: Job
    group: str
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
    def logs(self) -> list[list[float]]:
        """Of each repetition the logarithms, by round, of throughput hosted over alone, both over the reference."""
        found = []
        for number in range(self.repetitions):
            by_role = {m.role: m for m in self.measurements if m.repetition == number}
            if len(by_role) == 3 and all(m.ok for m in by_role.values()):
                reference = seconds_by_round(by_role[REFERENCE])
                alone, hosted = (rounds_of(reference, seconds_by_round(by_role[role])) for role in (ALONE, HOSTED))
                found.append([b - a for a, b in zip(alone, hosted, strict=False)])
        return [rounds for rounds in found if rounds]

    def verdict(self, ratio: Interval) -> str:
        same = ratio.low >= 1 - MARGIN and ratio.high <= 1 + MARGIN
        return SAME if same and ratio.processes >= PILOT else NOT_SHOWN


@dataclass(frozen=True)
class Together:
    """Who is measured together: see ``benchlib.measure.record.Together``."""

    group: str
    repetition: int
    file: str
    number: int = 0


class Study:
    """Subjects, what there is of them in ``folder``, and what to measure next."""

    def __init__(self, folder: Path, conditions: Iterable[Condition], asked: Iterable[str]) -> None:
        """``asked`` are the workloads that are measured; the others' conditions may be hosted between."""
        self._inputs, self._asked = folder / "inputs", set(asked)
        self._store = Store(folder / "measurements")
        self.subjects = [self._subject(condition) for condition in conditions]

    def next(self) -> list[Subject]:
        """What is measured next, in order; nothing: there is no more to do."""
        due = [one for one in self.subjects if self._is_due(one)]
        return sorted(due, key=self._urgency, reverse=True)[:TOGETHER]

    def repeat(self, compared: list[Subject]) -> None:
        """Measure each of ``compared`` in two processes of its own; keep what they gave as soon as it is done."""
        parts, of_group = [], {one.group: one for one in compared}
        for number, one in enumerate(compared):
            mine = self._together(one, one.repetitions)
            alone, hosted, reference = (
                record.begin("comparison", "rounds", mine, role, one.job, mine.repetition)
                for role in (ALONE, HOSTED, REFERENCE)
            )
            between = random.Random(mine.file).choice(self._beside(one))
            theirs = Together(between.group, mine.repetition, key(between=between.group, of=mine.file))
            other = record.begin("comparison", "rounds", theirs, ALONE, between.job, theirs.repetition)
            one_place, other_place = 2 * number, 2 * number + 1
            both = {"settings": SETTINGS, "rounds": ROUNDS, "places": [one_place, other_place]}
            parts += [
                rounds.Part([alone, reference], [one.job, one.job], **both),
                rounds.Part([other], [between.job], SETTINGS, LEAST_ROUNDS, places=[one_place]),
                rounds.Part([hosted, reference], [one.job, None], **both),
            ]
        done: dict[str, list[Measurement]] = {}
        with closing(rounds.measure_repetition(parts, PATIENCE_S)) as repetition:
            for part in repetition:
                first = part.measurements[0]
                of_file = done.setdefault(first.file, [])
                of_file += [m for m in part.measurements if m not in of_file]
                if first.role == HOSTED:
                    self._store.save(of_file)
                    of_group[first.group].measurements += of_file
                if not first.ok:
                    say(f"{first.condition}: {first.failure}")

    def ratio(self, one: Subject) -> Interval:
        """Throughput hosted over alone."""
        others = [other for other in self.subjects if other.condition.framework == one.condition.framework]
        lent = [Spread.of(other.logs) for other in others if other is not one and len(other.logs) > 1]
        return moderated_interval(one.logs, lent)

    def table(self) -> pd.DataFrame:
        """A row for each subject."""
        return pd.DataFrame([self._row(one) for one in self.subjects if one.condition.workload in self._asked])

    def _row(self, one: Subject) -> dict[str, object]:
        ratio = self.ratio(one)
        known = math.isfinite(ratio.low)
        return {
            "workload": one.condition.workload,
            "framework": f"{one.condition.framework} {one.condition.mode}",
            "hosted / alone": f"{ratio.estimate:.4f}" if ratio.processes else "-",
            "95 % interval": f"[{ratio.low:.4f}, {ratio.high:.4f}]" if known else "-",
            "half-width %": f"{100 * ratio.half_width:.1f}" if known else "-",
            "pairs of processes": ratio.processes,
            "failed": sum(not m.ok for m in one.measurements),
            "verdict": one.verdict(ratio),
            "declared": "hosted" if workloads.load(one.condition.workload).hosted else "alone",
        }

    def _subject(self, condition: Condition) -> Subject:
        job = prepare_job(condition, INITIAL_SEED, self._inputs)
        group = key(hosted_and_alone=job.depends_on("rounds"), settings=SETTINGS.model_dump(), rounds=ROUNDS)
        subject = Subject(condition, job, group)
        for repetition in itertools.count():
            stored = self._store.usable(self._together(subject, repetition).file)
            if stored is None:
                return subject
            subject.measurements += stored

    def _is_due(self, one: Subject) -> bool:
        asked = one.condition.workload in self._asked
        return asked and one.repetitions < MOST and bool(self._beside(one)) and self._shown(one) != SAME

    def _shown(self, one: Subject) -> str:
        return one.verdict(self.ratio(one))

    def _urgency(self, one: Subject) -> tuple[int, float]:
        """Who has the greatest is measured next: the pilots, then the widest, at last what has no interval."""
        if one.repetitions < PILOT:
            return 2, -one.repetitions
        half_width = self.ratio(one).half_width
        return (1, half_width) if math.isfinite(half_width) else (0, -one.repetitions)

    def _beside(self, one: Subject) -> list[Subject]:
        return [other for other in self.subjects if other is not one and other.process == one.process]

    @staticmethod
    def _together(one: Subject, repetition: int) -> Together:
        return Together(one.group, repetition, key(hosting=one.group, repetition=repetition))


def main() -> None:
    """Print the table."""
    models = {model.workload: model for model in experiments.load("equivalence", SIZES).models}
    parser = argparse.ArgumentParser(description="Do processes that host others give the throughput of those alone?")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no new repetition begins")
    parser.add_argument("--workloads", nargs="+", choices=models, default=list(models), help="that are measured")
    arguments = parser.parse_args()
    conditions = every_condition()
    require(conditions)
    end = time.monotonic() + 60 * arguments.minutes
    study = Study(FOLDER, conditions, arguments.workloads)
    while time.monotonic() < end and (compared := study.next()):
        with turn(say):
            study.repeat(compared)
        for one in compared:
            say(f"{name(one.condition)}: {study.ratio(one)} after {one.repetitions}")
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
            hyperparameters=model.hyperparameters,
            batch_size=BATCH_SIZES.get(model.workload),
        )
        for framework in ("pytorch", "mindspore")
        for model in experiments.load("equivalence", SIZES).models
    ]


def name(condition: Condition) -> str:
    """In a line of progress."""
    return f"{condition.workload} {condition.framework} {condition.mode}"


if __name__ == "__main__":
    main()
