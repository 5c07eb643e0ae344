"""May a process measure one condition after another? Does it then give the throughput that it gives alone?

    .venv/bin/python benchmarks/hosting.py [--minutes 60] [--workloads cnn gcn]

Every workload in the small size of parameters/quick/equivalence.yaml, in PyTorch (eager) and MindSpore (graph; eager
where that compiles for long), tuned. A fresh process measures a condition, which is then as alone as in a process of
its own; then one of another workload, drawn at random from those that it can host; and then the first one again, built
anew. The ratio is throughput hosted over alone within the process, whose own speed (processes differ by some 5 %)
thereby cancels; its 95 % interval is over processes, with the variance moderated by those of the framework's other
workloads. It should lie within 0.98 to 1.02: where it does not, ``hosted=False`` in the workload's file keeps its
processes alone.

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

from benchlib import experiments, workloads
from benchlib.condition import Condition
from benchlib.lab import require
from benchlib.measure import machine, record, rounds
from benchlib.measure.comparison import Comparison
from benchlib.measure.jobs import INITIAL_SEED, Job, key, prepare_job
from benchlib.measure.length import LEAST_ROUNDS
from benchlib.measure.moderation import Spread
from benchlib.measure.peers import Peers, host_of, kind
from benchlib.measure.processes import PATIENCE_S
from benchlib.measure.statistics import Interval
from benchlib.measure.turn import turn
from benchlib.progress import say
from benchlib.results import Measurement, Store

ROOT = Path(__file__).resolve().parent.parent
SIZES = ROOT / "parameters" / "quick" / "equivalence.yaml"
FOLDER = ROOT / "outputs" / "benchmarks" / "hosting"

MARGIN = 0.02
PILOT = 5  # repetitions of each, before the widest comes first and any can be done
MOST = 60  # repetitions of each: what has no interval by then gets none
TOGETHER = 3  # processes that start side by side, to be measured one after the other
ROUNDS = 20  # of a block each
SETTINGS = rounds.Settings(block_s=0.1)

SAME, NOT_SHOWN, ALONE = f"same within {MARGIN:.0%}", "not shown", "stays alone"

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


@dataclass(eq=False)
class Subject:
    """A condition, and what processes have measured of it, twice each: alone, and after another."""

    condition: Condition
    job: Job
    group: str
    peers: Callable[[], Sequence[Spread]]  # the variances of its kind that the others have shown
    measurements: list[Measurement] = field(default_factory=list)

    @property
    def host(self) -> str:
        return rounds.host(self.condition)

    @property
    def hosted(self) -> bool:
        return workloads.load(self.condition.workload).hosted

    @property
    def repetitions(self) -> int:
        return len({m.repetition for m in self.measurements})

    @property
    def comparison(self) -> Comparison:
        """Alone as the baseline, hosted as its control."""
        asked = {"precision": MARGIN, "budget_s": math.inf, "pilot": PILOT, "margin": MARGIN}
        return Comparison([self.condition], self.measurements, {}, **asked, peers=lambda *_: self.peers())

    @property
    def ratio(self) -> Interval:
        """Throughput hosted over alone."""
        return self.comparison.control

    @property
    def verdict(self) -> str:
        return ALONE if not self.hosted else verdict(self.ratio)

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

    def __init__(self, folder: Path, conditions: Iterable[Condition], asked: Iterable[str]) -> None:
        """``asked`` are the workloads that are measured; the others' conditions may be hosted before them."""
        self._inputs, self._asked = folder / "inputs", set(asked)
        self._store = Store(folder / "measurements")
        self._peers = Peers(self._store)
        self._machine = host_of(machine.describe())
        self.subjects = [self._subject(condition) for condition in conditions]
        self._peers.refresh()

    def next(self) -> list[Subject]:
        """What is measured next, in order; nothing: there is no more to do."""
        due = [one for one in self.subjects if self._is_due(one)]
        return sorted(due, key=lambda one: one.urgency, reverse=True)[:TOGETHER]

    def repeat(self, compared: list[Subject]) -> None:
        """Measure each of ``compared`` in a process of its own: first, and again after another; keep both as soon as
        they are done.
        """
        parts, of_group = [], {one.group: one for one in compared}
        for place, one in enumerate(compared):
            alone, hosted = self._pair(one)
            between = random.Random(alone.file).choice(self._beside(one))
            together = Together(between.group, one.repetitions, key(between=between.group, of=alone.file))
            other = record.begin("comparison", "rounds", together, "condition", between.job, together.repetition)
            measured = ((alone, one.job, ROUNDS), (other, between.job, LEAST_ROUNDS), (hosted, one.job, ROUNDS))
            parts += [rounds.Part([m], [job], SETTINGS, number, places=[place]) for m, job, number in measured]
        done: dict[str, list[Measurement]] = {}
        with closing(rounds.measure_repetition(parts, PATIENCE_S)) as repetition:
            for (measurement,) in (part.measurements for part in repetition):
                pair = done.setdefault(measurement.file, [])
                pair.append(measurement)
                if len(pair) == 2:
                    self._store.save(pair)
                    of_group[measurement.group].measurements += pair
                    self._peers.refresh()
                if not measurement.ok:
                    say(f"{measurement.condition}: {measurement.failure}")

    def table(self) -> pd.DataFrame:
        """A row for each subject."""
        asked = [one for one in self.subjects if one.condition.workload in self._asked]
        return pd.DataFrame([row(one) for one in asked])

    def _subject(self, condition: Condition) -> Subject:
        job = prepare_job(condition, INITIAL_SEED, self._inputs)
        group = key(hosted_and_alone=job.depends_on("rounds"), settings=SETTINGS.model_dump())
        of = kind(condition, condition, True, self._machine)
        subject = Subject(condition, job, group, lambda: self._peers.of(group, of))
        for repetition in itertools.count():
            stored = self._store.usable(subject.together(repetition).file)
            if stored is None:
                return subject
            subject.measurements += stored

    def _is_due(self, one: Subject) -> bool:
        shown = one.verdict == ALONE or (one.verdict == SAME and one.repetitions >= PILOT)
        asked = one.condition.workload in self._asked
        return asked and not shown and one.repetitions < MOST and bool(self._beside(one))

    def _beside(self, one: Subject) -> list[Subject]:
        return [other for other in self.subjects if other is not one and other.host == one.host]

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
    arguments = parser.parse_args()
    conditions = every_condition()
    require(conditions)
    end = time.monotonic() + 60 * arguments.minutes
    study = Study(FOLDER, conditions, arguments.workloads)
    while time.monotonic() < end and (compared := study.next()):
        with turn(say):
            study.repeat(compared)
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
            hyperparameters=model.hyperparameters,
            batch_size=BATCH_SIZES.get(model.workload),
        )
        for framework in ("pytorch", "mindspore")
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
    }


def name(condition: Condition) -> str:
    """In a line of progress."""
    return f"{condition.workload} {condition.framework} {condition.mode}"


if __name__ == "__main__":
    main()
