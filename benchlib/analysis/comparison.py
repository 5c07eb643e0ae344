"""A comparison: conditions measured together against a baseline, with the baseline against itself as a control (A/A).

Everything here is derived from measurements on disk; nothing is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from benchlib.analysis.equivalence import DIFFERENT, NOT_CHECKED, Certificate
from benchlib.analysis.moderation import Spread, moderated_interval, usable
from benchlib.analysis.planner import Paired, Plan, best_rounds, gain, half_width, plan, settled, spreads
from benchlib.analysis.statistics import Interval, geometric_interval, mean_interval, rounds_of
from benchlib.condition import Condition
from benchlib.knobs import Ledger
from benchlib.shown import Shown
from benchlib.store import ATTEMPTS, Measurement, Sample, counted, identity, seconds_by_round
from benchlib.worker import steady
from benchlib.worker.steady import SLOWING, STEADY

FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no difference shown"
SAME_WITHIN = "the same within"
"""How the verdict on an interval begins that lies within the margin of 1; how much that is follows."""
SLOWS_DOWN, DISTURBED = "slows down", "disturbed"
MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED = "models differ", "models not checked", "not measured"

SHARED = "shared time spent"
"""Why a comparison ended that has no budget of its own: the clock of the whole report went on with others."""

MARGIN = 0.05

MOST = 0.5
"""Of the rounds that a ratio is made of: if more are disturbed, there is no ratio."""

PATIENCE = 4
"""Times the repetitions of its pilot: where a ratio is still disturbed after so many, the time that comparisons share
is not spent on it any more.
"""


@dataclass(frozen=True)
class Comparison(Shown):
    """Measurements of ``conditions``, the first of which is the baseline, and the certificates that their models are
    the same.
    """

    conditions: list[Condition]
    measurements: list[Measurement]
    certificates: dict[str, Certificate]  # by condition key
    precision: float  # relative half-width of the ratios' intervals that was asked for
    budget_s: float  # that was allowed for it; infinite, where a clock for several comparisons says when to end
    pilot: int  # processes of each condition at least
    margin: float  # a ratio whose interval lies within so much of 1 is "the same within" it
    peers: Callable[[Condition, Condition, bool], Sequence[Spread]] = lambda *_: ()
    """The variances that others have shown of a ratio of these two (the lower first), or of a control: see
    ``benchlib.analysis.peers``.
    """

    @property
    def plan(self) -> Plan:
        """Where the comparison stands: what is next, or why it ended and what more the precision would have taken."""
        return plan(self._done(), self.precision, self.budget_s, self.pilot, self._peers(), self._unclear)

    @property
    def ended(self) -> str | None:
        """Why no more of it was measured; None: it is to go on."""
        return self.plan.ended or (SHARED if math.isinf(self.budget_s) else None)

    @property
    def settled(self) -> bool:
        """Has every ratio the precision asked for, or is there none to be had?"""
        unclear = any(self._is_unclear(*pair) and self._has_hope(*pair) for pair in self._given())
        return not unclear and settled(self._wanted(), self.precision, self._peers())

    @property
    def gain(self) -> float:
        """By how much another repetition should narrow the widest interval (relative half-widths)."""
        return gain(self._wanted(), self._peers())

    @property
    def widest(self) -> tuple[float, str]:
        """The relative half-width of the widest interval, and whose it is; nan while there is none."""
        peers = self._peers()
        widths = {name: half_width(own, peers[name]) for name, own in spreads(self._wanted()).items()}
        name = max(widths, key=lambda one: widths[one], default=None)
        of = {_name(role, one): f"A/A of {one}" if role == "control" else str(one) for _, one, role in self._ratios()}
        return (widths[name], of[name]) if name else (math.nan, self.title)

    @property
    def costs(self) -> tuple[float, float]:
        """Of a repetition, in seconds: until its processes have opened, which several comparisons can share; and all
        that comes after.
        """
        firsts = list({m.file: m for m in self.measurements if m.opening_s is not None}.values())
        opening_s = float(np.median([m.opening_s for m in firsts]))
        before_s = float(np.median([m.repetition_s - m.rounds_s - m.opening_s / m.shared_by for m in firsts]))
        done = self._done()
        return opening_s, before_s + best_rounds(done) * float(np.median([paired.round_s for paired in done]))

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        return f"{len(self.conditions)} at {self.baseline.workload} batch {self.baseline.batch_size}"

    @property
    def baseline(self) -> Condition:
        return self.conditions[0]

    @property
    def control(self) -> Interval:
        """The baseline's second process against its first (A/A): 1 but for noise. Its interval is the resolution of
        this comparison; nan where it is disturbed.
        """
        return self.ratio(self.baseline, "control")

    def ratio(self, condition: Condition, role: str = "condition") -> Interval:
        """Throughput of ``condition`` over that of the baseline, with its 95 % interval over processes, whose variance
        is moderated by the peers'; nan where it is :meth:`disturbed`. Says nothing of equivalence.
        """
        peers = self.peers(self.baseline, condition, role == "control")
        return _ratio(self._pairs(self.baseline, condition, role), peers)

    def between(self, one: Condition, other: Condition) -> Interval:
        """Throughput of ``other`` over that of ``one``, with its 95 % interval over processes; nan where it is
        :meth:`disturbed`. Says nothing of equivalence.
        """
        return _ratio(self._pairs(one, other), self.peers(one, other, False))

    def disturbed(self, one: Condition, other: Condition, role: str | None = None) -> bool:
        """Is there no ratio of ``other`` to ``one``, because in more than half (``MOST``) of the rounds that it would
        be made of the block of either was disturbed in every take? ``role`` "control": of the baseline to itself.
        """
        return _mostly_disturbed(self._pairs(one, other, role))

    def ratios(self) -> pd.DataFrame:
        """A row per condition but the baseline, and the control's: ratio to the baseline, low, high, processes,
        verdict (see :func:`verdict_on`); the ends of Student's interval, for which nothing is borrowed; and from how
        many other comparisons the variance is ``borrowed`` (0: it is Student's).

        A condition whose model is not the baseline's gets no ratio, nor does one that keeps slowing down (or whose
        baseline does), or is :meth:`disturbed`.
        """
        return pd.DataFrame([self._ratio_row(condition, role) for _, condition, role in self._ratios()])

    def slows_down(self, condition: Condition) -> bool:
        """Do the condition's processes get slower: were most of them slowing down when their warm-up ended, or do their
        blocks grow (``steady.GROWTH``), both as they are and, so that a drift of the machine does not count,
        relative to the other conditions in the same rounds?
        """
        files: dict[str, list[Measurement]] = {}
        for m in self.measurements:
            if m.ok:
                files.setdefault(m.file, []).append(m)
        return slow_down([growth for together in files.values() for growth in growths(condition, together)])

    def throughput(self) -> pd.DataFrame:
        """A row per condition: samples and steps per second and step time with intervals over processes (nan for one
        that keeps slowing down, or more than half of whose blocks were disturbed in every take), CPU, memory, first
        step, warm-up.

        ``cpu_percent`` is the worker's share of the machine, ``cores_used`` its CPU seconds per second. Memory in MiB
        (2**20 bytes): ``memory_mib`` the process's peak resident set, ``memory_steady_mib`` that after the last step,
        ``memory_private_mib`` what of it is no mapped file, ``memory_import_mib`` that after importing the framework,
        ``memory_children_mib`` that of the processes that it started (compilers), after the last step.
        What begins with ``accelerator`` is from the driver (see ``accelerators.Reading``; ``_throttled`` the share of
        the time), ``joules_per_sample`` follows from its power; ``device_peak_mib`` is the most that the framework's
        allocator gave out; nan where nobody tells.
        ``idle_cores`` are the cores that the other workers, who should sleep, used meanwhile, beside the process where
        it was worst; ``parent_cores`` those that this process used, which asks, waits and samples.
        """
        return pd.DataFrame([self._throughput_row(condition) for condition in self.conditions])

    def failures(self) -> pd.DataFrame:
        """A row per process that failed: label, repetition, failure; workers of the gate included."""
        return failures(self.measurements, self.certificates.values())

    def files(self, *conditions: Condition) -> list[str]:
        """Keys of the files that the measurements lie in; of some conditions, those that hold one of them."""
        return sorted({m.file for m in self.measurements if not conditions or m.condition in conditions})

    def ledger(self) -> Ledger:
        """The knobs that were set, in the workers of the gate, too."""
        return Ledger([*self.measurements, *self.certificates.values()])

    def _ratios(self) -> list[tuple[Condition, Condition, str]]:
        """What is compared with the baseline: the baseline, the other, and in which role."""
        others = [(self.baseline, "control"), *((condition, "condition") for condition in self.conditions[1:])]
        return [(self.baseline, condition, role) for condition, role in others]

    def _pairs(self, one: Condition, other: Condition, role: str | None = None) -> list[_Pair]:
        """Of each that were measured together, the processes of both."""
        ones = {m.file: m for m in self._of(one, self._role(one))}
        return [(ones[m.file], m) for m in self._of(other, role or self._role(other)) if m.file in ones]

    def _role(self, condition: Condition) -> str:
        return "baseline" if condition == self.baseline else "condition"

    def _of(self, condition: Condition, role: str) -> list[Measurement]:
        return [m for m in self.measurements if m.ok and m.role == role and m.condition == condition]

    @property
    def _unclear(self) -> bool:
        return any(self._is_unclear(*pair) for pair in self._given())

    def _is_unclear(self, condition: Condition, role: str) -> bool:
        """Has a ratio no interval that says something, and may get one: is it disturbed, or were its processes lost
        with other conditions that failed in them?
        """
        return self.disturbed(self.baseline, condition, role) or (
            len(self._pairs(self.baseline, condition, role)) < 2 and any(m.lost for m in self._every(condition, role))
        )

    def _given(self) -> list[tuple[Condition, str]]:
        """The conditions whose ratio to the baseline is given once it is known, and in which role."""
        return [(one, role) for _, one, role in self._ratios() if role == "control" or not self._unproved(one)]

    def _done(self) -> list[Paired]:
        return self._paired(self._given())

    def _wanted(self) -> list[Paired]:
        """As :meth:`_done`, of the ratios for which another repetition would do something."""
        return self._paired([pair for pair in self._given() if self._has_hope(*pair)])

    def _has_hope(self, condition: Condition, role: str) -> bool:
        """Neither does it slow down, nor has it failed by itself in both of the last repetitions, nor is it still
        unclear after so many (``PATIENCE``).
        """
        tried, repetitions = self._every(condition, role), sorted({m.repetition for m in self.measurements})
        last = repetitions[-2:]
        failing = len(last) > 1 and not any(m.ok or m.lost for m in tried if m.repetition in last)
        given_up = len(repetitions) >= PATIENCE * self.pilot and self._is_unclear(condition, role)
        return not (failing or given_up or self.slows_down(self.baseline) or self.slows_down(condition))

    def _every(self, condition: Condition, role: str) -> list[Measurement]:
        """As :meth:`_of`, with those that failed."""
        return [m for m in self.measurements if m.role == role and m.condition == condition]

    def _paired(self, ratios: list[tuple[Condition, str]]) -> list[Paired]:
        """What the planner has to know of each repetition, for these ratios."""
        names = {_name(role, condition) for condition, role in ratios}
        repetitions: dict[int, list[Measurement]] = {}
        for m in self.measurements:
            repetitions.setdefault(m.repetition, []).append(m)
        return [self._planned(together, names) for together in repetitions.values()]

    def _peers(self) -> dict[str, Sequence[Spread]]:
        """By the names of the planner's ratios."""
        others = [(one, "condition") for one in self.conditions[1:]]
        return {
            _name(role, one): self.peers(self.baseline, one, role == "control")
            for one, role in [(self.baseline, "control"), *others]
        }

    def _planned(self, together: list[Measurement], names: Collection[str]) -> Paired:
        """What the planner has to know of a repetition, all its attempts together, for the ratios of these names."""
        files = {m.file: m for m in together}.values()
        rounds_s, total_s = sum(m.rounds_s for m in files), sum(m.repetition_s for m in files)
        baselines = {m.file: seconds_by_round(m) for m in together if m.ok and m.role == "baseline"}
        logs = {
            _name(m.role, m.condition): rounds_of(baselines[m.file], seconds_by_round(m))
            for m in together
            if m.ok and m.role != "baseline" and m.file in baselines
        }
        round_s = rounds_s / max((len(counted(m.blocks)) for m in together if m.ok), default=1)
        useful = max(map(len, logs.values()), default=0)  # the disturbed rounds are a cost like the start
        wanted = {name: values for name, values in logs.items() if name in names}
        return Paired(wanted, total_s - useful * round_s, round_s)

    def _one_a_repetition(self, condition: Condition, role: str) -> list[Measurement]:
        """The processes that went well, one of each repetition: rather one whose baseline did, too."""
        baselines = {m.file: m for m in self.measurements if m.role == "baseline"}
        good = sorted(self._of(condition, role), key=lambda m: (not _paired(m, baselines), m.attempt), reverse=True)
        return sorted({m.repetition: m for m in good}.values(), key=lambda m: m.repetition)

    def _ratio_row(self, condition: Condition, role: str) -> dict[str, Any]:
        interval = self.ratio(condition, role)
        unproved = None if role == "control" else self._unproved(condition)
        if interval.processes == 0:
            verdict = NOT_MEASURED
        elif unproved:
            interval, verdict = Interval(math.nan, math.nan, math.nan, interval.processes), unproved
        elif self.disturbed(self.baseline, condition, role):
            verdict = DISTURBED
        elif self.slows_down(condition) or self.slows_down(self.baseline):
            interval, verdict = Interval(math.nan, math.nan, math.nan, interval.processes), SLOWS_DOWN
        else:
            verdict = verdict_on(interval, self.margin)
        peers = self.peers(self.baseline, condition, role == "control")
        student = _ratio(self._pairs(self.baseline, condition, role), ()) if interval.estimate > 0 else interval
        numbers = {
            "ratio": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "student_low": student.low,
            "student_high": student.high,
            "processes": interval.processes,
            "borrowed": len(usable(peers)),
        }
        made = {"verdict": verdict, "measurements": " ".join(self.files(condition))}
        return {**identity(condition), "role": role, **numbers, **made}

    def _unproved(self, condition: Condition) -> str | None:
        """Why there is no ratio of a condition to the baseline: both must have been certified. None: they have."""
        verdicts = {
            certificate.verdict if certificate else NOT_CHECKED
            for certificate in (self.certificates.get(one.key) for one in (self.baseline, condition))
        }
        if DIFFERENT in verdicts:
            return MODELS_DIFFER
        return MODELS_NOT_CHECKED if NOT_CHECKED in verdicts else None

    def _throughput_row(self, condition: Condition) -> dict[str, Any]:
        role = self._role(condition)
        good = self._one_a_repetition(condition, role)
        first = [m for m in good if m.hosted_after == 0]
        slows_down = self.slows_down(condition)
        disturbed = _disturbed(good)
        timed = [] if slows_down or disturbed > MOST else good  # what has no throughput is not averaged
        by_round = [list(seconds_by_round(m).values()) for m in timed]
        seconds = geometric_interval([float(np.mean(np.log(values))) for values in by_round if values])
        every = [m for m in self.measurements if m.role == role and m.condition == condition]
        step_ms = 1000 * condition.batch_size
        return {
            **identity(condition),
            "samples_per_second": 1 / seconds.estimate,
            "low": 1 / seconds.high,
            "high": 1 / seconds.low,
            "step_ms": step_ms * seconds.estimate,
            "step_ms_low": step_ms * seconds.low,
            "step_ms_high": step_ms * seconds.high,
            "cores_used": _mean(good, lambda m: _cores(m, "cpu_s")),
            **_with_ends("cpu_percent", [100 * _cores(m, "cpu_s") / m.machine["cores"] for m in good]),
            **_with_ends("memory_mib", [m.memory["peak"] for m in first]),
            "memory_steady_mib": _mean(first, lambda m: m.memory["steady"]),
            "memory_private_mib": _mean(first, lambda m: m.memory["private"]),
            "memory_import_mib": _mean(good, lambda m: m.memory["after_import"]),
            "memory_children_mib": _mean(first, lambda m: m.memory["children"]),
            **{name: _mean_traced(good, name) for name in Sample.model_fields if name.startswith("accelerator")},
            **_with_ends("accelerator_percent", _traced(good, "accelerator_percent"), greatest=100),
            **_with_ends("accelerator_memory_mib", _traced(good, "accelerator_memory_mib")),
            "joules_per_sample": _mean_traced(good, "accelerator_power_w") * seconds.estimate,
            "device_peak_mib": _mean(first, lambda m: m.memory.get("device_peak", math.nan)),
            "first_step_s": _mean([m for m in first if not m.first_step_disturbed_by], lambda m: m.first_step_s),
            "warm_up_s": _mean(good, lambda m: m.warm_up_s),
            "steady": _mean(good, lambda m: float(m.steady == STEADY)),
            "slows_down": slows_down,
            "disturbed": disturbed,
            "idle_cores": max((_cores(m, "idle_cpu_s") for m in good), default=math.nan),
            "parent_cores": _mean(good, lambda m: _cores(m, "parent_cpu_s")),
            "processes": len(good),
            "first_in_process": len(first),
            "failed": len(_failed(every)),
            "measurements": " ".join(self.files(condition)),
            "steps_per_second": 1000 / (step_ms * seconds.estimate),
            "steps_per_second_low": 1000 / (step_ms * seconds.high),
            "steps_per_second_high": 1000 / (step_ms * seconds.low),
        }


Ends = TypeVar("Ends", float, pd.Series)
"""Of intervals: a number, or a column of them."""


def is_within(low: Ends, high: Ends, margin: float | Ends) -> bool | pd.Series:
    """Does an interval lie within ``margin`` of 1? One that has no ends does not."""
    return (low >= 1 - margin) & (high <= 1 + margin)


def same_within(margin: float) -> str:
    """The verdict on an interval that lies within ``margin`` of 1."""
    return f"{SAME_WITHIN} {100 * margin:g} %"


def verdict_on(interval: Interval, margin: float) -> str:
    """What an interval of a ratio shows. An interval may exclude 1 and lie within ``margin`` of it: the difference is
    then shown to be of no importance to whoever has chosen the margin, which is what is said.
    """
    if is_within(interval.low, interval.high, margin):
        return same_within(margin)
    if interval.excludes(1):
        return FASTER if interval.estimate > 1 else SLOWER
    return NO_DIFFERENCE


class Growth(NamedTuple):
    """Of a process that may get slower: was it slowing down when its warm-up ended; and by how much its blocks grow
    (see ``steady.growth``), as they are and relative to the other conditions in the same rounds.
    """

    slowing: bool
    alone: float | None
    beside: float | None


def growths(condition: Condition, together: Sequence[Measurement]) -> list[Growth]:
    """Of the processes of a condition, among those that were measured ``together`` and went well."""
    others = [m for m in together if m.condition != condition]
    return [
        Growth(m.steady == SLOWING, steady.growth(_relative(m, [])), steady.growth(_relative(m, others)))
        for m in together
        if m.condition == condition
    ]


def slow_down(processes: Sequence[Growth]) -> bool:
    """Does a condition with these processes get slower: see :meth:`Comparison.slows_down`."""
    if sum(one.slowing for one in processes) > len(processes) / 2:
        return True
    return all(
        geometric_interval([value for value in values if value is not None], steady.SURELY).low > steady.GROWTH
        for values in ([one.alone for one in processes], [one.beside for one in processes])
    )


def _name(role: str, condition: Condition) -> str:
    """Of a ratio, for the planner."""
    return f"{role} {condition.key}"


def failures(measurements: Iterable[Measurement], certificates: Iterable[Certificate]) -> pd.DataFrame:
    """A row per process that failed in its last attempt: label, role, repetition, seed, failure (what it was, and the
    end of what the worker said), the file that has its row, and whether it will be tried ``again``.
    """
    rows = [
        {
            "label": str(m.condition),
            "role": m.role,
            "repetition": m.repetition,
            "seed": m.seed,
            "failure": failure,
            "file": f"measurements/{m.file}.parquet",
            "again": m.attempt + 1 < ATTEMPTS,
        }
        for m, failure in _failed(measurements)
    ]
    rows += [
        {
            "label": str(c.condition),
            "role": "gate",
            "repetition": 0,
            "seed": 0,
            "failure": c.reason,
            "file": "",
            "again": c.attempts < ATTEMPTS,
        }
        for c in {c.condition: c for c in certificates if c.reason}.values()
    ]
    return pd.DataFrame(rows, columns=["label", "role", "repetition", "seed", "failure", "file", "again"])


def _failed(measurements: Iterable[Measurement]) -> list[tuple[Measurement, str]]:
    """The last attempts of what has failed in all of them, and why. A process whose baseline failed beside it cannot be
    compared: that is a failure, too.
    """
    measurements = list(measurements)
    baselines = {m.file: m for m in measurements if m.role == "baseline"}
    attempts: dict[tuple, list[Measurement]] = {}
    for m in measurements:
        # Not by seed: a training run's is in its group, and a host's is that of whatever came first in it.
        attempts.setdefault((m.group, m.role, m.condition.key, m.repetition), []).append(m)
    failed = []
    for tried in attempts.values():
        if not any(_paired(m, baselines) for m in tried):
            last = tried[-1]
            beside = baselines.get(last.file)
            failed.append((last, last.failure or f"its baseline failed beside it: {beside.failure}"))
    return failed


def _paired(m: Measurement, baselines: dict[str, Measurement]) -> bool:
    """Did it go well, and its baseline too, if it has one?"""
    return m.ok and (m.file not in baselines or baselines[m.file].ok)


_Pair = tuple[Measurement, Measurement]
"""Two processes that were measured together; the throughput of the second is relative to that of the first."""


def _ratio(pairs: list[_Pair], peers: Sequence[Spread]) -> Interval:
    if _mostly_disturbed(pairs):
        return Interval(math.nan, math.nan, math.nan, sum(bool(disturbed_rounds(*pair)) for pair in pairs))
    logs = [rounds_of(seconds_by_round(one), seconds_by_round(other)) for one, other in pairs]
    return moderated_interval([rounds for rounds in logs if rounds], peers)


def _mostly_disturbed(pairs: list[_Pair]) -> bool:
    """Is more than half of the rounds that both have disturbed, for the one or for the other?"""
    return mostly(flag for pair in pairs for flag in disturbed_rounds(*pair))


def mostly(disturbed: Iterable[bool]) -> bool:
    """Are so many of the rounds ``disturbed`` (``MOST``) that they make no ratio?"""
    flags = list(disturbed)
    return sum(flags) > MOST * len(flags)


def disturbed_rounds(one: Measurement, other: Measurement) -> list[bool]:
    """Of each round that both have: was it disturbed, for the one or for the other?"""
    ones, others = ({block.round: block.disturbed for block in counted(m.blocks)} for m in (one, other))
    return [ones[number] or others[number] for number in ones.keys() & others.keys()]


def _relative(m: Measurement, others: list[Measurement]) -> list[float]:
    """The logarithms of a process's seconds per sample by round, less the mean of those of ``others``, each around its
    own mean, so that a round which one of them lacks is no step.
    """
    mine, theirs = _logs_by_round(m), [_logs_by_round(one) for one in others]
    middles = [sum(logs.values()) / len(logs) if logs else 0.0 for logs in theirs]
    relative = []
    for number in sorted(mine):
        there = [logs[number] - middle for logs, middle in zip(theirs, middles, strict=True) if number in logs]
        relative.append(mine[number] - (sum(there) / len(there) if there else 0.0))
    return relative


def _logs_by_round(m: Measurement) -> dict[int, float]:
    return {number: math.log(seconds) for number, seconds in seconds_by_round(m).items()}


def _cores(m: Measurement, name: str) -> float:
    """CPU seconds (a field of a block) per second."""
    blocks = counted(m.blocks)
    return sum(getattr(block, name) for block in blocks) / sum(block.wall_s for block in blocks)


def _disturbed(measurements: list[Measurement]) -> float:
    """The share of rounds whose block counts although it was disturbed: every take of it was."""
    flags = [block.disturbed for m in measurements for block in counted(m.blocks)]
    return sum(flags) / len(flags) if flags else math.nan


def _mean(measurements: list[Measurement], of: Callable[[Measurement], float]) -> float:
    return float(np.mean([of(m) for m in measurements])) if measurements else math.nan


def _with_ends(name: str, values: list[float], greatest: float = math.inf) -> dict[str, float]:
    """The mean of a value a process, none of them negative, and the ends of its interval."""
    found = mean_interval(values, 0, greatest)
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


def _traced(measurements: list[Measurement], name: str) -> list[float]:
    """The mean of what the sampler read, of each process of which it could."""
    values = [[getattr(one, name) for one in m.trace if getattr(one, name) is not None] for m in measurements]
    return [float(np.mean(of_process)) for of_process in values if of_process]


def _mean_traced(measurements: list[Measurement], name: str) -> float:
    values = [getattr(sample, name) for m in measurements for sample in m.trace if getattr(sample, name) is not None]
    return float(np.mean(values)) if values else math.nan
