"""The experiment ``instrument``: how far the measurements can be believed, asked before anybody else does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from benchlib import knobs
from benchlib.analysis.comparison import Comparison, is_within, same_within
from benchlib.analysis.simulation import ASKED, TOGETHER, coverages
from benchlib.condition import Condition, DeviceName, WorkloadName, implementation
from benchlib.lab import Lab
from benchlib.measure.contract import LEAST_SHARE, LEAST_SHARE_FEW, SyncCheck
from benchlib.suite import tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Declaration, Result, ceiling_text, failures_beside
from benchlib.suite.panels import Bars, Intervals, Picture
from benchlib.suite.selections import ENDED, PROCESSES, STUDENT, Column, Listed, Table, disturbed, verdict
from benchlib.suite.sentences import ratio_text, span_text


class Alone(p.Subject):
    """A subject that is compared with itself only, at a batch size."""

    batch_size: p.BatchSize


class Parameters(p.Compared):
    """For each subject in the tuned lane, a comparison with its default lane and without single knobs; and of both
    lanes with themselves, at more batch sizes.
    """

    workload: WorkloadName
    data: str
    device: DeviceName
    batch_size: p.BatchSize  # of the knobs' comparisons
    hyperparameters: dict[str, Any]
    subjects: p.Grid[p.Subject]  # each in the lane tuned
    default_lane: bool  # compare each with its lane default
    single_knobs: bool  # compare each with itself without one knob, for all its knobs
    timers: p.Grid[p.Subject]  # whose timers are tested
    alone: list[Alone]  # compared with nothing but themselves (A/A), beside the controls of the other comparisons
    simulated: p.Simulated  # comparisons, for the coverage

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, timers, alone", len(self.subjects) + len(self.timers) + len(self.alone))
        for number, subject in enumerate(self.subjects):
            if subject.lane != "tuned":
                raise ValueError(
                    f"subjects.{number}.lane: {subject.lane!r}: it is the tuned lane whose knobs are asked for"
                )
        conditions(self)
        for number, subject in enumerate(self.timers):
            p.of_subject(self, f"timers.{number}", subject)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """For each subject: itself, its default lane, and itself without each of its knobs; then those alone."""
    groups = []
    for number, subject in enumerate(parameters.subjects):
        tuned = p.of_subject(parameters, f"subjects.{number}", subject)
        group = [tuned]
        if parameters.default_lane:
            group.append(tuned.but(lane="default"))
        if parameters.single_knobs:
            of_lane = [name for name in knobs.of(tuned) if name not in knobs.of(tuned.but(lane="default"))]
            group += [tuned.but(without=[name]) for name in of_lane]
        groups.append(group)
    for number, subject in enumerate(parameters.alone):
        key = f"alone.{number}"
        groups.append([p.of_subject(parameters, key, subject, batch_size=(key, subject.batch_size))])
    return groups


def measure(parameters: Parameters, lab: Lab) -> Instrument:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    timers = lab.check_timers(
        p.of_subject(parameters, f"timers.{number}", subject) for number, subject in enumerate(parameters.timers)
    )
    return Instrument(parameters, lab, compared, timers)


class Instrument(Result):
    """The A/A controls and the effects of the knobs; and beside the frame, the timers' tests and the coverage."""

    def __init__(
        self, parameters: Parameters, lab: Lab, compared: Sequence[Comparison], timers: Sequence[SyncCheck]
    ) -> None:
        subjects = [*parameters.subjects, *parameters.timers, *parameters.alone]
        ceiling = lab.ceiling(parameters.device, within=p.environments_of(subjects))
        failed = failures_beside(ceiling, timers)
        super().__init__(DECLARATION, lab.folder, compared, [ceiling_text(ceiling)], failed)
        self.timers, self.count = timers, parameters.simulated
        self._planned = (parameters.simulated, parameters.budget_s, parameters.pilot)

    @cached_property
    def simulated(self) -> pd.DataFrame:
        """How often intervals hold the truth, where it is known; it takes seconds, and nobody may ask."""
        return coverages(*self._planned)

    def summary(self) -> dict[str, Any]:
        """As of every result; and ``effects``, for the ledger of knobs: a row for each that was measured."""
        ratios = self.rows("throughput_ratio")
        effects = [
            {
                **{name: row[name] for name in ("framework", "environment", "mode", "device")},
                "knob": row["without"] or None,  # None: the whole lane
                "effect": tables.ratio(1 / row["estimate"], 1 / row["high"], 1 / row["low"]),
            }
            for _, row in ratios[ratios["verdict"].notna()].iterrows()
        ]
        return {**super().summary(), "effects": effects}


def _resolution(result: Instrument) -> Iterator[str]:
    """What can be resolved."""
    known = result.rows("control_ratio").dropna(subset="low")
    if not len(known):
        yield "No A/A could be measured: nothing is known of the resolution."
        return
    low, high = known["low"], known["high"]
    including, within = ((low <= 1) & (high >= 1)).sum(), is_within(low, high, result.margin).sum()
    halves = span_text([_half_width(row) for _, row in known.iterrows()], 2)
    yield (
        f"Identical processes against each other (A/A): {including} of {len(known)} intervals include 1, {within} are "
        f"{same_within(result.margin)}, with a half-width of {halves} %. In the time that was allowed, smaller "
        "differences could not be shown in this notebook."
    )


def _knobs(result: Instrument) -> Iterator[str]:
    """What each knob does."""
    for _, row in result.rows("throughput_ratio").iterrows():
        yield f"{_subject(row)}, {_change(row)}: throughput ratio {ratio_text(row)}."


def _overhead(result: Instrument) -> Iterator[str]:
    """What measuring costs."""
    yield (
        "While blocks ran, the process that asks for them and samples beside them used "
        f"{tables.number(100 * result.rows('parent_cores')['estimate'].max(), 2)} % of one core at most (a mean over a "
        "condition's processes)."
    )


def _timers(result: Instrument) -> Iterator[str]:
    """Whether the timers see all the work."""
    blind = "THE TIMER DOES NOT SEE ALL THE WORK: believe none of its times"
    for check in result.timers:
        who = f"{check.condition.subject} on {check.condition.device}"
        if check.failure:
            yield f"{who}: the timer could not be tested: {check.failure}"
            continue
        few = f"{check.share_of_few:.0%} of a few steps"
        sees = "the timer sees the work" if check.ok else blind
        yield f"{who}: {sees}, {check.share:.0%} of planted {check.known_s:.2f} s and {few}."


def _coverage(result: Instrument) -> Iterator[str]:
    """How often intervals hold the truth."""
    columns = ("holds %", "pooled rounds hold %", "moderated hold %", "their half-widths over Student's")
    held, pooled, moderated, narrower = (result.simulated[name] for name in columns)
    yield (
        f"Of {result.count} simulated comparisons of each of {held.count()} kinds of noise, planned by themselves to "
        f"{100 * ASKED:g} % with the budget and the pilot of this notebook, Student's 95 % intervals hold the "
        f"truth in {held.min():.1f} to {held.max():.1f} %; those of rounds pooled over the processes would have "
        f"held it in {pooled.min():.1f} to {pooled.max():.1f} %. Of comparisons of which {TOGETHER} lie in a "
        f"folder and lend each other their variances, the moderated intervals over the pilot's processes hold it "
        f"in {moderated.min():.1f} to {moderated.max():.1f} %, by kind of noise; they are {narrower.min():.2f} to "
        f"{narrower.max():.2f} times as wide as Student's."
    )


def _half_width(row: pd.Series) -> float:
    return 100 * (row["high"] - row["low"]) / 2 / row["estimate"]


def _subject(row: pd.Series) -> str:
    return f"{implementation(row['framework'], row['environment'])} {row['mode']}"


def _change(row: pd.Series) -> str:
    return f"without {row['without']}" if row["without"] else f"lane {row['lane']}"


def _sizes(row: pd.Series) -> str:
    return f"{row['workload']}, batch {row['batch_size']}"


def _checks(result: Instrument) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject": one.condition.subject,
            "device": one.condition.device,
            "known_s": one.known_s,
            "timed_s": one.timed_s,
            "share_of_few": one.share_of_few,
            "timed_share": one.share,
            "passes": one.ok,
        }
        for one in result.timers
    )


DECLARATION = Declaration(
    notebook="instrument",
    title="Instrument",
    in_report=("resolution", "knobs", "processes", "timers", "coverage"),
    tables={
        "resolution": Table(
            "A/A: each condition against itself, in fresh processes.",
            "control_ratio",
            (
                *("subject", "workload", "batch_size", Column("ratio", ("estimate", "low", "high")), "processes"),
                *(Column("half_width_percent", _half_width), "ended", Column("why", disturbed())),
            ),
        ),
        "knobs": Table(
            "What the knobs do here: throughput relative to the tuned lane.",
            "throughput_ratio",
            (
                *(Column("subject", _subject), Column("change", _change), "workload", "batch_size"),
                *(Column("ratio", "throughput_ratio"), Column("control", ("control", "control_low", "control_high"))),
                *(STUDENT, Column("control_why", disturbed("control_why")), "borrowed", "processes"),
                *(Column("verdict", verdict), *ENDED),
            ),
        ),
        "timers": Listed(
            f"Planted work: the timer has to see {LEAST_SHARE:.0%} of the known duration of many steps, and "
            f"{LEAST_SHARE_FEW:.0%} of that of a few. Each duration is the shortest of a few takes; where steps vary "
            "much, so does the share, up as well as down.",
            _checks,
        ),
        "coverage": Listed(
            "How often 95 % intervals hold the truth, by kind of noise (simulated): Student's, of comparisons by "
            f"themselves that the planner ends; moderated ones, of comparisons of which {TOGETHER} lie in a folder, "
            "over the pilot's processes.",
            lambda result: result.simulated,
        ),
        "processes": PROCESSES,
    },
    figures={
        "resolution": Picture(
            caption="What cannot be told apart: identical processes against each other, with 95 % intervals.",
            panels=[
                Intervals(
                    quantity="control_ratio",
                    xlabel="throughput of a process over that of another (A/A)",
                    labels=_sizes,
                )
            ],
        ),
        "knobs": Picture(
            caption="What the knobs do: throughput relative to the tuned lane with all its knobs, with 95 % intervals.",
            panels=[
                Bars(
                    quantity="throughput_ratio",
                    hue=_subject,
                    xlabel="throughput relative to the tuned lane",
                    labels=_change,
                )
            ],
        ),
    },
    findings=[_resolution, _knobs, _overhead, _timers, _coverage],
)
