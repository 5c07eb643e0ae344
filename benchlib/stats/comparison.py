"""Conditions measured together against a baseline, and the baseline against itself as a control (A/A)."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchlib.cache import Measurement, final_takes, identity, seconds_by_round
from benchlib.condition import Condition
from benchlib.progress import duration
from benchlib.stats import throughput
from benchlib.stats.intervals import Interval, geometric_interval, log_ratios
from benchlib.stats.measured import Frame, Measured
from benchlib.stats.planner import FAILED, Paired, Plan, best_rounds, gain, is_settled, means, plan, width
from benchlib.stats.validity import DIFFERENT, MOST, NOT_CHECKED, disturbed_rounds, slow_down

FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no difference shown"
SLOWS_DOWN, DISTURBED = "slows down", "disturbed"
MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED = "models differ", "models not checked", "not measured"
NO_RATIO = {MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED, SLOWS_DOWN, DISTURBED}  # verdicts: there is none

SHARED = "shared time spent"  # why a comparison ended that has no budget of its own: the report's clock went on

MARGIN = 0.05
PATIENCE = 4  # times its pilot: a ratio that is still disturbed then gets no more of the time that comparisons share


@dataclass(frozen=True, repr=False)
class Comparison(Measured):
    """Measurements of conditions, the first of which is the baseline."""

    precision: float  # relative half-width of the ratios' intervals that was asked for
    budget_s: float  # that was allowed for it; infinite, where a clock for several comparisons says when to end
    pilot: int  # processes of each condition at least
    margin: float  # a ratio whose interval lies within so much of 1 is "the same within" it

    @property
    def plan(self) -> Plan:
        """The state of the comparison: the next repetition, or why it ended and the cost of reaching the precision."""
        given = [] if self._is_lost else self._ratio_conditions()
        disturbed = any(self.disturbed(self.baseline, *pair) for pair in given)
        return plan(self._planner_pairs(given), self.precision, self.budget_s, self.pilot if given else 0, disturbed)

    @property
    def ended(self) -> str | None:
        """Why no more of it was measured; None: it is to go on."""
        if not self.timed:
            return FAILED
        return self.plan.ended or (SHARED if math.isinf(self.budget_s) else None)

    @property
    def timed(self) -> list[Condition]:
        """The conditions that are measured: those whose ratio can be given; none where of several only the baseline
        is left.
        """
        proved = [one for one in self.conditions if not self._no_proof(self.baseline, one)]
        return proved if len(proved) >= min(2, len(self.conditions)) else []

    @property
    def settled(self) -> bool:
        """Has every ratio the precision asked for, or is there none to be had?"""
        unclear = any(self.disturbed(self.baseline, *pair) for pair in self._hopeful_conditions())
        return not unclear and is_settled(self._wanted_pairs(), self.precision)

    def lacks_pilot(self, own: Container[str]) -> bool:
        """Has a ratio fewer processes than its pilot, and may get them? Not where a framework has refused, nor where it
        failed in both of the last repetitions of one's ``own`` (keys of files).
        """
        last = list(dict.fromkeys(m.file for m in self.measurements if m.file in own))[-2:]
        for condition, role in self._ratio_conditions():
            good = [m.file for _, m in self.pairs(self.baseline, condition, role)]
            refused = any(m.refused for m in self._history(self.baseline, "baseline") + self._history(condition, role))
            failing = len(last) == 2 and not any(file in good for file in last)
            needless = role == "control" and self._is_lost
            if len(good) < self.pilot and not refused and not failing and not needless:
                return True
        return False

    @property
    def gain(self) -> float:
        """The expected narrowing of the widest interval by another repetition (relative half-widths)."""
        return gain(self._wanted_pairs())

    @property
    def widest(self) -> tuple[float, str]:
        """The relative half-width of the widest interval, and whose it is; nan while there is none."""
        widths = {name: width(own) for name, own in means(self._wanted_pairs()).items()}
        return max(((half, name) for name, half in widths.items()), default=(math.nan, self.title))

    @property
    def cost_s(self) -> float:
        """Seconds that another repetition should take."""
        firsts = {m.file: m for m in self.measurements if m.repetition_s is not None}.values()
        start_s = float(np.median([m.repetition_s - m.rounds_s for m in firsts]))
        done = self._planner_pairs(self._ratio_conditions())
        return start_s + best_rounds(done) * float(np.median([paired.round_s for paired in done]))

    @property
    def title(self) -> str:
        """The comparison in a few words."""
        return f"{len(self.conditions)} at {self.baseline.workload} batch {self.baseline.batch_size}"

    @property
    def baseline(self) -> Condition:
        return self.conditions[0]

    @property
    def control(self) -> Interval:
        """The baseline's second process against its first (A/A): 1 but for noise; nan where it is disturbed."""
        return self.ratio(self.baseline, "control")

    def ratio(self, condition: Condition, role: str = "condition") -> Interval:
        """Throughput of ``condition`` over that of the baseline, with its 95 % interval over processes; nan where it
        is :meth:`disturbed`. Says nothing of equivalence.
        """
        return self.between(self.baseline, condition, role)

    def between(self, one: Condition, other: Condition, role: str | None = None) -> Interval:
        """The ratio of ``other`` to ``one``: see :meth:`ratio`."""
        pairs = self.pairs(one, other, role)
        if self.disturbed(one, other, role):
            return Interval(processes=sum(bool(disturbed_rounds(*pair)) for pair in pairs))
        logs = [log_ratios(seconds_by_round(one), seconds_by_round(other)) for one, other in pairs]
        return geometric_interval([float(np.mean(rounds)) for rounds in logs if rounds])

    def verdict(self, one: Condition, other: Condition, role: str | None = None) -> tuple[Interval, str]:
        """The ratio (:meth:`between`) and its verdict (see :func:`verdict_on`). There is no ratio of another model, nor
        of one that keeps slowing down, or is :meth:`disturbed`: nan where the verdict is one of :data:`NO_RATIO`.
        """
        ratio = self.between(one, other, role)
        unproved = None if role == "control" else self._no_proof(one, other)
        if unproved:
            verdict = unproved
        elif ratio.processes == 0:
            verdict = NOT_MEASURED
        elif self.disturbed(one, other, role):
            verdict = DISTURBED
        elif self.slows_down(one) or self.slows_down(other):
            verdict = SLOWS_DOWN
        else:
            return ratio, verdict_on(ratio, self.margin)
        return Interval(processes=ratio.processes), verdict

    def disturbed(self, one: Condition, other: Condition, role: str | None = None) -> bool:
        """Is there no ratio of ``other`` to ``one``, because too many blocks were disturbed? These are more than half
        (``MOST``) of its rounds, with either's block disturbed in every take. "control": of the baseline to itself.
        """
        flags = [flag for pair in self.pairs(one, other, role) for flag in disturbed_rounds(*pair)]
        return sum(flags) > MOST * len(flags)

    def ratios(self) -> pd.DataFrame:
        """A row per condition but the baseline, and the control's. It has the ratio to the baseline, low, high,
        processes, :meth:`verdict` and ``why`` the models are not shown to be the same.
        """
        rows = []
        for condition, role in self._ratios():
            ratio, verdict = self.verdict(self.baseline, condition, role)
            ends = {"ratio": ratio.estimate, "low": ratio.low, "high": ratio.high, "processes": ratio.processes}
            proofs = [self.certificates.get(one.key) for one in dict.fromkeys((self.baseline, condition))]
            why = "; ".join(str(one) for one in proofs if one and not one.same)
            said = {"verdict": verdict, "why": why, "measurements": " ".join(self.files(condition))}
            rows.append({**identity(condition), "role": role, **ends, **said})
        return Frame(rows)

    def slows_down(self, condition: Condition) -> bool:
        """Do the condition's processes get slower while they are measured: see ``validity.slow_down``?"""
        return slow_down(condition, [[m for m in together if m.ok] for together in self._repetitions()])

    def throughput(self) -> pd.DataFrame:
        """A row per condition: samples and steps per second and step time with intervals over processes, CPU, memory
        (MiB, see ``recording.memory``), first step, warm-up. Speeds are nan for one that keeps slowing down, or more
        than half of whose blocks were disturbed in every take.

        ``cpu_percent`` is the worker's share of the machine, ``cores_used`` its CPU seconds per second. Columns that
        begin with ``accelerator`` are from the driver (``_throttled``: the share of the time). ``joules_per_sample``
        follows from its power; ``device_peak_mib`` is of the framework's allocator. ``idle_cores`` are those that other
        workers, who should sleep, used meanwhile, at worst; ``parent_cores`` those of the process that asks.
        """
        rows = []
        for condition in self.conditions:
            every = self._history(condition, self._role(condition))
            good = [m for m in every if m.ok]
            slow, files = self.slows_down(condition), self.files(condition)
            rows.append(throughput.row(condition, good, slow, len(every) - len(good), files))
        return Frame(rows)

    def _ratios(self) -> list[tuple[Condition, str]]:
        """The conditions compared with the baseline, and their roles: the baseline again (A/A), the others."""
        return [(self.baseline, "control"), *((condition, "condition") for condition in self.conditions[1:])]

    def pairs(self, one: Condition, other: Condition, role: str | None = None) -> list[tuple[Measurement, Measurement]]:
        """The pairs of processes of both conditions that were measured together."""
        ones = {m.file: m for m in self._history(one, self._role(one)) if m.ok}
        others = self._history(other, role or self._role(other))
        return [(ones[m.file], m) for m in others if m.ok and m.file in ones]

    def _role(self, condition: Condition) -> str:
        return "baseline" if condition == self.baseline else "condition"

    def _ratio_conditions(self) -> list[tuple[Condition, str]]:
        """The conditions whose ratio to the baseline is given once it is known, and in which role."""
        return [
            (one, role) for one, role in self._ratios() if role == "control" or not self._no_proof(self.baseline, one)
        ]

    def _hopeful_conditions(self) -> list[tuple[Condition, str]]:
        """Those for which another repetition would do something: the control's not by itself, beside others' lost."""
        hoped = [pair for pair in self._ratio_conditions() if self._has_hope(*pair)]
        return hoped if len(self._ratio_conditions()) == 1 or any(role == "condition" for _, role in hoped) else []

    def _wanted_pairs(self) -> list[Paired]:
        return self._planner_pairs(self._hopeful_conditions())

    @property
    def _is_lost(self) -> bool:
        """Is the control all that is left, because each other condition fails by itself?"""
        return len(self._ratio_conditions()) > 1 and all(self._fails(*pair) for pair in self._ratio_conditions()[1:])

    def _fails(self, condition: Condition, role: str) -> bool:
        """Has it failed by itself in both of the last repetitions?"""
        last = sorted({m.repetition for m in self.measurements})[-2:]
        return len(last) > 1 and not any(m.ok for m in self._history(condition, role) if m.repetition in last)

    def _has_hope(self, condition: Condition, role: str) -> bool:
        """Neither fails it, nor does it slow down, nor is it still unclear after so many (``PATIENCE``)."""
        many = len(self._repetitions()) >= PATIENCE * self.pilot
        given_up = many and self.disturbed(self.baseline, condition, role)
        slow = self.slows_down(self.baseline) or self.slows_down(condition)
        return not (self._fails(condition, role) or given_up or slow)

    def _history(self, condition: Condition, role: str) -> list[Measurement]:
        return [m for m in self.measurements if m.role == role and m.condition == condition]

    def _repetitions(self) -> list[list[Measurement]]:
        """The processes that were measured together."""
        repetitions: dict[int, list[Measurement]] = {}
        for m in self.measurements:
            repetitions.setdefault(m.repetition, []).append(m)
        return list(repetitions.values())

    def _planner_pairs(self, ratios: list[tuple[Condition, str]]) -> list[Paired]:
        """The planner's input of each repetition, for these ratios."""
        names, paired = {_name(role, condition) for condition, role in ratios}, []
        for together in self._repetitions():
            good = [m for m in together if m.ok]
            logs = {
                _name(m.role, m.condition): log_ratios(seconds_by_round(baseline), seconds_by_round(m))
                for baseline in good
                if baseline.role == "baseline"
                for m in good
                if m.role != "baseline"
            }
            round_s = together[0].rounds_s / max((len(final_takes(m.blocks)) for m in good), default=1)
            useful = max(map(len, logs.values()), default=0)  # the disturbed rounds are a cost like the start
            wanted = {name: values for name, values in logs.items() if name in names}
            paired.append(Paired(wanted, together[0].repetition_s - useful * round_s, round_s))
        return paired

    def _no_proof(self, one: Condition, other: Condition) -> str | None:
        """Why there is no ratio of two conditions: both must have been certified. None: they have."""
        proofs = [self.certificates.get(condition.key) for condition in (one, other)]
        verdicts = {proof.verdict if proof else NOT_CHECKED for proof in proofs}
        if DIFFERENT in verdicts:
            return MODELS_DIFFER
        return MODELS_NOT_CHECKED if NOT_CHECKED in verdicts else None


def most_urgent(comparisons: Sequence[Comparison], left_s: float) -> int | None:
    """The place of the comparison that narrows most by the second, if its next repetition fits into the time left."""
    gains = {
        place: one.gain / one.cost_s
        for place, one in enumerate(comparisons)
        if one.measurements and not one.settled and one.cost_s <= left_s
    }
    return max(gains, key=gains.__getitem__, default=None)


def describe_widest(comparisons: Sequence[Comparison], left_s: float) -> str:
    """A sentence on the widest interval, and which ratio has it."""
    known = [one.widest for one in comparisons if one.widest[0] > 0]
    if not known:
        return "no ratio has an interval yet"
    width, whose = max(known)
    return f"widest half-width {100 * width:.2g} % ({whose}); {duration(left_s)} left"


def is_within(low: Any, high: Any, margin: Any) -> Any:
    """Does an interval lie within ``margin`` of 1, or do columns of intervals? One that has no ends does not."""
    return (low >= 1 - margin) & (high <= 1 + margin)


def same_within(margin: float) -> str:
    """The verdict on an interval that lies within ``margin`` of 1."""
    return f"the same within {100 * margin:g} %"


def verdict_on(interval: Interval, margin: float) -> str:
    """The verdict on a ratio's interval; one that excludes 1 and lies within ``margin`` of it is of no importance."""
    if is_within(interval.low, interval.high, margin):
        return same_within(margin)
    if interval.excludes(1):
        return FASTER if interval.estimate > 1 else SLOWER
    return NO_DIFFERENCE


def _name(role: str, condition: Condition) -> str:
    """The name of a ratio, for the planner and for people."""
    return f"A/A of {condition}" if role == "control" else str(condition)
