"""The lab of notebooks and of the command line: it measures under the name of its host, or has other hosts measure."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchlib import lab as here
from benchlib.cluster import hosts, jobs
from benchlib.cluster.engines import VARIABLE
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.lab import Measures, NotMeasured
from benchlib.progress import say
from benchlib.runner import availability, preflight
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import planner
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.training_runs import TrainingRuns

NO_HOST = "no host has; where one was asked, it was said why"


def why_absent(framework: str, device: str, environment: str) -> str | None:
    """As ``availability.why_absent``; of a device on other machines only they can tell."""
    return availability.why_absent(framework, "cpu" if os.environ.get(VARIABLE) else device, environment)


def require(conditions: Iterable[Condition]) -> None:
    """As ``preflight.require``; a machine that an engine chooses asks it itself."""
    if not os.environ.get(VARIABLE):
        preflight.require(conditions)


class Lab(here.Lab):
    """As :class:`benchlib.lab.Lab`; ``on`` an engine such as ``slurm`` (or by BENCHLIB_ON) other hosts measure."""

    def __init__(self, *given: Any, on: str | None = None, **more: Any) -> None:
        super().__init__(*given, **more)
        on = os.environ.get(VARIABLE, "") if on is None else on
        self.executor = jobs.Executor(on, self.folder) if on.strip() else None
        if self.executor and self.measures is not Measures.NOTHING:
            self.executor.engine.states()  # an engine that does not answer is refused before anything starts
        self._sent: list[tuple[jobs.Document, Comparison]] = []  # what was asked for

    @contextmanager
    def _hold_machine(self, tell: Callable[[str], None]) -> Iterator[float]:
        with hosts.hold_name(self.folder), super()._hold_machine(tell) as waited_s:
            yield waited_s

    def compare_each(self, groups: Sequence[list[Condition]], **asked: Any) -> list[Comparison]:
        if not self.executor:
            return super().compare_each(groups, **asked)
        plan = {"precision": 0.03, "budget_s": 600.0, "block_s": 0.25, "pilot": planner.PILOT, "margin": MARGIN} | asked
        planner.require(**plan)
        settings, made = {"block_s": plan.pop("block_s")}, []
        budget_s = plan["budget_s"] if self.measures is Measures.BUDGET else math.inf
        for conditions in groups:
            preflight.require_distinct(conditions)
            own = Comparison(conditions, [], {}, plan["precision"], budget_s, plan["pilot"], plan["margin"])
            made.append((jobs.document("compare", conditions, settings, plan), own))
        self._sent += made
        self._measure_all(made if self.measures is Measures.BUDGET else [])
        if self.measures is not Measures.LATER and made and not any(i.measurements or i.certificates for _, i in made):
            raise NotMeasured(f"{made[0][1].title}{' and others' * (len(made) > 1)}", NO_HOST)
        return [one for _, one in made]

    def sharpen(self, until: float, tell: Callable[[str], None] = say) -> None:
        """As the base's; on an engine each comparison gets as much of the time: minutes are those of one machine."""
        if not self.executor:
            return super().sharpen(until, tell)
        budget_s = max(1.0, (until - time.monotonic()) / max(1, len(self._sent)))
        self._measure_all([(one | {"plan": one["plan"] | {"budget_s": budget_s}}, own) for one, own in self._sent])

    def train(self, conditions: list[Condition], *, seeds: list[int], epochs: int, **more: Any) -> TrainingRuns:
        if not self.executor:
            return super().train(conditions, seeds=seeds, epochs=epochs, **more)
        limits = {name: more.get(name) for name in ("threshold", "most_epochs")}
        preflight.require_trainable(conditions, seeds, epochs, **limits)
        found = self._result("train", conditions, {"seeds": seeds, "epochs": epochs, **limits})
        runs = {(m.condition, m.seed): m for m in self.store.all(found["files"])}
        every = [runs[one, seed] for one in conditions for seed in seeds]
        return TrainingRuns(conditions, every, _proofs(found), epochs, limits["threshold"])

    def certify(self, conditions: Collection[Condition], training_steps: int = 0) -> dict[str, Certificate]:
        if not self.executor:
            return super().certify(conditions, training_steps)
        groups = itertools.groupby(sorted(set(conditions), key=str), lambda one: one.workload)
        every, settings = [list(own) for _, own in groups], {"training_steps": training_steps}
        self._run([jobs.document("certify", own, settings) for own in every])
        found = [self._result("certify", own, settings) for own in every]
        return {name: proof for one in found for name, proof in _proofs(one).items()}

    def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
        if not (conditions := list(conditions)) or not self.executor:
            return super().check_timers(conditions)
        return [SyncCheck.model_validate(one) for one in self._result("check_timers", conditions, {})["timers"]]

    def ceiling(self, *given: Any, **more: Any) -> Any:
        return None if self.executor else super().ceiling(*given, **more)  # what a host reaches says nothing of another

    def _run(self, sent: Sequence[jobs.Document]) -> None:
        if self.executor and sent and self.measures is not Measures.NOTHING:
            self.executor.run(sent)

    def _result(self, do: str, conditions: list[Condition], settings: jobs.Document) -> jobs.Document:
        self._run([sent := jobs.document(do, conditions, settings)])
        if not jobs.is_done(found := jobs.result(self.folder, sent["name"]), sent, self.folder):
            raise NotMeasured(f"{do} {conditions[0].workload}", found.get("why") or NO_HOST)
        return found

    def _measure_all(self, asked: Sequence[tuple[jobs.Document, Comparison]]) -> None:
        """Have comparisons measured, and read what the one host of each has measured so far."""
        self._run([sent for sent, _ in asked])
        for sent, comparison in self._sent:
            found = jobs.result(self.folder, sent["name"])
            comparison.certificates.update(_proofs(found))
            comparison.measurements[:] = self.store.all(found.get("files", []))


def _proofs(found: jobs.Document) -> dict[str, Certificate]:
    return {name: Certificate.model_validate(one) for name, one in found.get("certificates", {}).items()}
