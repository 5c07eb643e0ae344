"""The experiment ``instrument``: how far the measurements can be believed, asked before anybody else does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from benchlib import findings, tables
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.plotting import Bars, Intervals, Picture, naming
from benchlib.provenance import knobs
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats.comparison import Comparison, is_within, same_within
from benchlib.study import ceiling_text, failures_beside
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import self_tests, subjects
from benchlib.suite.experiments.result import Declaration, Result
from benchlib.tables import ENDED, PROCESSES, Column, Table, disturbed, ratio_text, span_text, verdict


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
    subjects: p.Subjects[p.Subject]  # each in the lane tuned
    default_lane: bool  # compare each with its lane default
    single_knobs: bool  # compare each with itself without one knob, for all its knobs
    timers: p.Subjects[p.Subject]  # whose timers are tested
    alone: list[Alone]  # compared with nothing but themselves (A/A), beside the controls of the other comparisons

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, timers, alone", len(self.subjects) + len(self.timers) + len(self.alone))
        for number, subject in enumerate(self.subjects):
            if subject.lane != "tuned":
                raise ValueError(
                    f"subjects.{number}.lane: {subject.lane!r}: it is the tuned lane whose knobs are asked for"
                )
        conditions(self)
        subjects.conditions(self, "timers")
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """For each subject: itself, its default lane, and itself without each of its knobs; then those alone."""
    groups = []
    for tuned in subjects.conditions(parameters, "subjects"):
        group = [tuned]
        if parameters.default_lane:
            group.append(tuned.but(lane="default"))
        if parameters.single_knobs:
            of_lane = [name for name in knobs.of(tuned) if name not in knobs.of(tuned.but(lane="default"))]
            group += [tuned.but(without=[name]) for name in of_lane]
        groups.append(group)
    for number, subject in enumerate(parameters.alone):
        key = f"alone.{number}"
        groups.append(subjects.of_one(parameters, key, subject, batch_size=(key, subject.batch_size)))
    return [group for group in groups if group]


def measure(parameters: Parameters, lab: Lab) -> Instrument:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    timers = lab.check_timers(subjects.conditions(parameters, "timers"))
    return Instrument(parameters, lab, compared, timers)


class Instrument(Result):
    """The A/A controls and the effects of the knobs; and beside the frame, the timers' tests."""

    def __init__(
        self, parameters: Parameters, lab: Lab, compared: Sequence[Comparison], timers: Sequence[SyncCheck]
    ) -> None:
        measured = [*conditions(parameters), *(check.condition for check in timers)]
        ceiling = lab.ceiling(parameters.device, within=p.environments_of(measured))
        every = [*parameters.subjects, *parameters.timers, *parameters.alone]
        absent = subjects.left_out(every, [parameters.workload], [parameters.device])
        failed = failures_beside(ceiling, timers)
        super().__init__(DECLARATION, lab.folder, compared, [ceiling_text(ceiling), *absent], failed)
        self.timers = timers

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


def _half_width(row: pd.Series) -> float:
    return 100 * (row["high"] - row["low"]) / 2 / row["estimate"]


def _subject(row: pd.Series) -> str:
    return f"{naming.implementation_of(row)} {row['mode']}"


def _change(row: pd.Series) -> str:
    return f"without {row['without']}" if row["without"] else f"lane {row['lane']}"


def _sizes(row: pd.Series) -> str:
    return f"{row['workload']}, batch {row['batch_size']}"


DECLARATION = Declaration(
    notebook="instrument",
    title="Instrument",
    question="How far can all this be believed: what do the knobs do, do the timers see all the work?",
    answers=[
        _resolution,
        self_tests.timers_in_short,
        findings.effects(lambda row: f"batch {row['batch_size']}", who=lambda row: f"{_subject(row)}, {_change(row)},"),
    ],
    in_report=("resolution", "knobs", "processes", "timers"),
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
                *(Column("control_why", disturbed("control_why")), "processes"),
                *(Column("verdict", verdict), *ENDED),
            ),
        ),
        "timers": self_tests.TIMERS,
        "processes": PROCESSES,
    },
    figures={
        "resolution": Picture(
            caption="What cannot be told apart: identical processes against each other, with 95 % intervals. "
            "One that excludes 1 is hatched: believe nothing of that size.",
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
    findings=[_resolution, _knobs, _overhead, self_tests.timers],
)
