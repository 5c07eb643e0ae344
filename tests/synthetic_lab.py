"""A lab that measures nothing: it makes up measurements, so that what follows from them can be tested."""

import math
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchlib.cache import Block, Epoch, Measurement, Sample, Store
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.equivalence.compare import Results, certify
from benchlib.errors import Failure
from benchlib.provenance import knobs
from benchlib.runner.roofline import Ceiling
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.planner import PILOT
from benchlib.stats.training_runs import TrainingRuns
from benchlib.worker.warmup import STEADY
from benchlib.workloads import load

NO_KERNEL = Failure(
    sentence="worker failed in 'check': TypeError: \n------\n- Kernel select failed:\n-----\nno bf16",
    printed="x",
    request="check",
    exception="TypeError",
    message="\n------\n- Kernel select failed:\n-----\nno bf16",
)
"""As MindSpore refuses."""

INPUTS = tempfile.TemporaryDirectory()
"""Where all these labs have prepared data, by names that tell it apart: it takes longer to make than all else."""


def step_seconds(condition: Condition) -> float:
    """MindSpore takes three times as long as PyTorch, one thread twice as long as all, a GPU a tenth."""
    seconds = 0.01 + 0.001 * condition.batch_size
    seconds *= 3 if condition.framework == "mindspore" else 1
    seconds *= 2 if condition.threads == 1 else 1
    return seconds * (0.1 if condition.device != "cpu" else 1)


def accuracy(condition: Condition, seed: int, epoch: int) -> float:
    """Rises with the epoch, best near a learning rate of 0.01 and a batch of 64."""
    off = abs(math.log10((condition.learning_rate or 0.01) / 0.01)) + 0.3 * abs(math.log2(condition.batch_size / 64))
    return (0.85 - 0.2 * off) * (1 - math.exp(-epoch / (2 + 3 * off))) + 0.005 * seed


class SyntheticLab:
    """In place of ``benchlib.lab.Lab``. ``spread`` is the sd of the logarithms of process means; ``cannot`` may say how
    the gate's worker fails.
    """

    def __init__(
        self,
        folder: Path,
        step: Callable[[Condition], float] = step_seconds,
        metric: Callable[[Condition, int, int], float] = accuracy,
        spread: float = 0.01,
        fails: Callable[[Condition], bool] = lambda condition: False,
        differs: Callable[[Condition], bool] = lambda condition: False,
        loss: Callable[[Condition, int, int], float] = lambda condition, seed, epoch: 2.3 / epoch,
        first: Callable[[Condition], float] = lambda condition: 1.0,
        cannot: Callable[[Condition], bool | Failure] = lambda condition: False,
        unrounded: Callable[[Condition], bool] = lambda condition: False,
        disturbed: Callable[[Condition], bool] = lambda condition: False,
    ) -> None:
        self.folder, self.inputs, self.store = folder, Path(INPUTS.name), Store(folder / "measurements")
        self.step, self.metric, self.loss = step, metric, loss
        self.first, self.cannot = first, cannot
        self.spread, self.fails, self.differs = spread, fails, differs
        self.unrounded, self.disturbed = unrounded, disturbed
        self.random = np.random.default_rng(0)
        self.asked: list[tuple] = []
        self.comparisons: dict[str, object] = {}

    def compare(
        self,
        conditions: list[Condition],
        *,
        precision: float,
        budget_s: float,
        block_s: float,
        pilot: int = PILOT,
        margin: float = MARGIN,
    ) -> Comparison:
        """As the lab's, but for the plan: 5 repetitions of 5 rounds."""
        self.asked.append(("compare", conditions, precision, budget_s, block_s))
        made = Comparison(conditions, [], self._certificates(conditions), precision, budget_s, pilot, margin)
        for repetition in range(5 * bool(made.timed)):
            file = f"{conditions[0].key}-{repetition}"
            together = [self._process(c, role, repetition, 5, file) for role, c in self._roles(made.timed)]
            self.store.save(together)
            made.measurements.extend(together)
        return made

    def compare_each(self, groups: list[list[Condition]], **asked: float) -> list[Comparison]:
        """As the lab's, one after the other."""
        return [self.compare(conditions, **asked) for conditions in groups]

    def ceiling(self, device: str, within: Iterable[str]) -> Ceiling:
        """As the lab's: a step of ``cnn`` at batch 32 on images of 16x16 reaches some percent of this."""
        best = {"multiply_adds": "a product", "least_bytes": "a copy"}
        told = {"device": device, "precision": "fp32", "best": best}
        return Ceiling(multiply_adds_per_s=1e11, bytes_per_s=1e10, **told)

    def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
        """As the lab's: MindSpore's timer sees but half of the work."""
        seen_s = {"mindspore": 0.1}
        return [SyncCheck(condition=c, known_s=0.2, timed_s=seen_s.get(c.framework, 0.2)) for c in conditions]

    def train(
        self,
        conditions: list[Condition],
        *,
        seeds: list[int],
        epochs: int,
        threshold: float | None = None,
        most_epochs: int | None = None,
        on_epoch: object = None,
    ) -> TrainingRuns:
        """As the lab's: a run goes on from ``epochs`` until it is at the threshold, for ``most_epochs`` at most."""
        self.asked.append(("train", conditions, seeds, epochs, threshold, most_epochs))
        runs = [self._run(c, seed, epochs, threshold, most_epochs or epochs) for c in conditions for seed in seeds]
        for run in runs:
            self.store.save([run])
        return TrainingRuns(conditions, runs, self._certificates(conditions), epochs, threshold)

    def certify(self, conditions: list[Condition], training_steps: int = 0) -> dict[str, Certificate]:
        made = self._certificates(conditions)
        return {key: c.model_copy(update={"file": self.certificate_path(c.condition).stem}) for key, c in made.items()}

    def certificate_path(self, condition: Condition) -> Path:
        return self.folder / "certificates" / f"{condition.key}.json"

    def _roles(self, conditions: list[Condition]) -> list[tuple[str, Condition]]:
        return [("baseline", conditions[0]), ("control", conditions[0]), *(("condition", c) for c in conditions[1:])]

    def _measurement(self, condition: Condition, **values: object) -> Measurement:
        on_gpu = condition.device != "cpu"
        told = {"percent": 55.0, "memory_mib": 900.0, "power_w": 70.0, "temperature_c": 60.0, "clock_mhz": 1400.0}
        sample = {f"accelerator_{name}": value for name, value in told.items()} if on_gpu else {}
        return Measurement(
            condition=condition,
            started_utc="2026-01-01T00:00:00+00:00",
            machine={"cores": 2, "cpu": "synthetic", "memory_gib": 8.0, "gpus": [], "cann": ""},
            versions={condition.framework: "1.0"},
            commit="benchlib 0",
            knobs=knobs.find(condition),
            settings={"threads": 2},
            memory={
                "peak": 400.0 + 2 * condition.batch_size,
                "steady": 390.0 + 2 * condition.batch_size,
                "private": 350.0,
                "after_import": 300.0,
                "children": 0.0,
            },
            first_step_s=self.first(condition),
            warm_up_s=0.5,
            steady=STEADY,
            trace=[Sample(at_s=0.0, machine_cpu_percent=90.0, worker_cores=1.8, rss_mib=500.0, **sample)],
            failure="the worker died" if self.fails(condition) else None,
            **values,
        )

    def _process(self, condition: Condition, role: str, repetition: int, rounds: int, file: str) -> Measurement:
        seconds = self.step(condition) * math.exp(self.random.normal(0, self.spread))
        blocks = [
            Block(
                round=number,
                position=0,
                steps=1,
                samples=condition.batch_size,
                started_s=0.0,
                wall_s=seconds,
                cpu_s=(condition.threads or 2) * 0.9 * seconds,
                parent_cpu_s=0.005 * seconds,
                disturbed=self.disturbed(condition),
            )
            for number in range(rounds)
        ]
        more = {"kind": "comparison", "file": file, "repetition": repetition, "role": role, "seed": 0, "blocks": blocks}
        more |= {"group": file.split("-")[0], "repetition_s": 20.0, "rounds_s": 2.0}
        return self._measurement(condition, **more)

    def _run(self, condition: Condition, seed: int, epochs: int, threshold: float | None, most: int) -> Measurement:
        made: list[Epoch] = []
        for number in range(1, most + 1):
            metric = min(1.0, max(0.1, self.metric(condition, seed, number)))
            wall = 20 * self.step(condition) * math.exp(self.random.normal(0, self.spread))
            made.append(Epoch(epoch=number, wall_s=wall, loss=self.loss(condition, seed, number), metric=metric))
            reached = threshold is not None and any(epoch.metric >= threshold for epoch in made)
            if number >= epochs and (threshold is None or reached):
                break
        made = [] if self.fails(condition) else made
        more = {
            "kind": "training",
            "file": f"{condition.key}-{seed}",
            "repetition": 0,
            "role": "condition",
            "seed": seed,
            "blocks": [_block(condition, epoch, self.disturbed(condition)) for epoch in made],
        }
        more["group"] = more["file"]
        return self._measurement(condition, epochs=made, **more)

    def _certificates(self, conditions: list[Condition]) -> dict[str, Certificate]:
        found = {}
        for condition in conditions:
            if cannot := self.cannot(condition):
                failure = cannot if isinstance(cannot, Failure) else NO_KERNEL
                found[condition.key] = certify(condition, conditions[0], Results(failure, {}, {}), {}, {})
                continue
            mixed = condition.precision != "fp32"
            tolerance = 0.06 if mixed else 1e-5
            difference = 0.1 if self.differs(condition) else 1e-3 if mixed and not self.unrounded(condition) else 1e-7
            check = Check(name="outputs", difference=difference, worst=difference, at="outputs", tolerance=tolerance)
            words = Check(name="predictions", difference=0.0, worst=0.0, at="predictions", tolerance=0.0)
            neutralised = load(condition.workload).gate.hyperparameters
            told = {"condition": condition, "reference": conditions[0], "neutralised": neutralised}
            told["knobs"] = {**knobs.find(condition), **knobs.of_gate(condition)}
            told |= {"versions": {condition.framework: "1.0"}, "reference_versions": {conditions[0].framework: "1.0"}}
            told["commit"] = "benchlib 1.0 synthetic"
            found[condition.key] = Certificate(**told, trials=2, checks=[check, words])
        return found


def _block(condition: Condition, epoch: Epoch, disturbed: bool) -> Block:
    """All of an epoch: 20 steps."""
    return Block(
        round=-1,
        position=0,
        epoch=epoch.epoch,
        steps=20,
        samples=20 * condition.batch_size,
        started_s=0.0,
        wall_s=epoch.wall_s,
        cpu_s=epoch.wall_s,
        parent_cpu_s=0.0,
        disturbed=disturbed,
    )
