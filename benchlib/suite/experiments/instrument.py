"""The experiment ``instrument``: how far the measurements can be believed, asked before anybody else does."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import knobs
from benchlib.analysis.comparison import DISTURBED, Comparison, is_within, same_within
from benchlib.analysis.simulation import ASKED, TOGETHER, coverages
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.measure.ceiling import Ceiling
from benchlib.measure.contract import LEAST_SHARE, LEAST_SHARE_FEW, SyncCheck
from benchlib.suite import figures, showing, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import (
    PROCESSES,
    Result,
    ceiling_text,
    failures_beside,
    processes,
    ratio_text,
    span,
)


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
            _condition(self, f"timers.{number}", subject, self.batch_size)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """For each subject: itself, its default lane, and itself without each of its knobs; then those alone."""
    groups = []
    for number, subject in enumerate(parameters.subjects):
        tuned = _condition(parameters, f"subjects.{number}", subject, parameters.batch_size)
        group = [tuned]
        if parameters.default_lane:
            group.append(tuned.but(lane="default"))
        if parameters.single_knobs:
            of_lane = [name for name in knobs.of(tuned) if name not in knobs.of(tuned.but(lane="default"))]
            group += [tuned.but(without=[name]) for name in of_lane]
        groups.append(group)
    for number, subject in enumerate(parameters.alone):
        groups.append([_condition(parameters, f"alone.{number}", subject, subject.batch_size)])
    return groups


def measure(parameters: Parameters, lab: Lab) -> Instrument:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    timers = lab.check_timers(
        _condition(parameters, f"timers.{number}", subject, parameters.batch_size)
        for number, subject in enumerate(parameters.timers)
    )
    subjects = [*parameters.subjects, *parameters.timers, *parameters.alone]
    ceiling = lab.ceiling(parameters.device, within=p.environments_of(subjects))
    return Instrument(parameters, lab, compared, timers, ceiling)


class Instrument(Result):
    """The A/A controls, the effects of the knobs, the timers' self-tests, the machine's limits and the coverage."""

    notebook = "instrument"
    in_report = ("resolution", "knobs", "processes", "timers", "coverage")
    title = "Instrument"

    def __init__(
        self,
        parameters: Parameters,
        lab: Lab,
        comparisons: list[Comparison],
        timers: list[SyncCheck],
        ceiling: Ceiling,
    ) -> None:
        super().__init__(lab.folder, comparisons, [ceiling_text(ceiling)], failures_beside(ceiling, timers))
        self.parameters, self.timers, self.count = parameters, timers, parameters.simulated

    @cached_property
    def simulated(self) -> pd.DataFrame:
        """How often intervals hold the truth, where it is known; it takes seconds, and nobody may ask."""
        return coverages(self.count, self.parameters.budget_s, self.parameters.pilot)

    def findings(self) -> list[str]:
        """What can be resolved, what each knob does, what measuring costs, whether the timers see all the work, and how
        often intervals hold the truth.
        """
        found = [_resolution_sentence(self._resolution(), self.margin)]
        found += [
            f"{row['subject']}, {row['change']}: throughput ratio {ratio_text(row)}."
            for _, row in self._knobs().iterrows()
        ]
        found.append(_overhead_sentence(self.throughputs))
        found += [_timer_sentence(check) for check in self.timers]
        held, pooled = self.simulated["holds %"], self.simulated["pooled rounds hold %"]
        moderated, narrower = self.simulated["moderated hold %"], self.simulated["their half-widths over Student's"]
        found.append(
            f"Of {self.count} simulated comparisons of each of {held.count()} kinds of noise, planned by themselves to "
            f"{100 * ASKED:g} % with the budget and the pilot of this notebook, Student's 95 % intervals hold the "
            f"truth in {held.min():.1f} to {held.max():.1f} %; those of rounds pooled over the processes would have "
            f"held it in {pooled.min():.1f} to {pooled.max():.1f} %. Of comparisons of which {TOGETHER} lie in a "
            f"folder and lend each other their variances, the moderated intervals over the pilot's processes hold it "
            f"in {moderated.min():.1f} to {moderated.max():.1f} %, by kind of noise; they are {narrower.min():.2f} to "
            f"{narrower.max():.2f} times as wide as Student's."
        )
        return found

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``resolution``, ``knobs``, ``timers``, ``coverage`` and ``processes``."""
        timers = pd.DataFrame(
            {
                "subject": [one.condition.subject for one in self.timers],
                "device": [one.condition.device for one in self.timers],
                "known_s": [one.known_s for one in self.timers],
                "timed_s": [one.timed_s for one in self.timers],
                "share_of_few": [one.share_of_few for one in self.timers],
                "timed_share": [one.share for one in self.timers],
                "passes": [one.ok for one in self.timers],
            }
        )
        planted = (
            f"Planted work: the timer has to see {LEAST_SHARE:.0%} of the known duration of many steps, and "
            f"{LEAST_SHARE_FEW:.0%} of that of a few. Each duration is the shortest of a few takes; where "
            "steps vary much, so does the share, up as well as down."
        )
        simulated = (
            "How often 95 % intervals hold the truth, by kind of noise (simulated): Student's, of comparisons by "
            f"themselves that the planner ends; moderated ones, of comparisons of which {TOGETHER} lie in a folder, "
            "over the pilot's processes."
        )
        names = ("ratio", "control", "student_ratio")
        ends = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
        shown = [
            "subject",
            "change",
            "workload",
            "batch_size",
            *ends,
            "control_why",
            "borrowed",
            "processes",
            "verdict",
            "half_width_percent",
            "ended",
            "measurements",
        ]
        return {
            "resolution": ("A/A: each condition against itself, in fresh processes.", self._resolution()),
            "knobs": ("What the knobs do here: throughput relative to the tuned lane.", self._knobs()[shown]),
            "timers": (planted, timers),
            "coverage": (simulated, self.simulated),
            "processes": (PROCESSES, processes(self.throughputs)),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``resolution``: each A/A; ``knobs``: a bar for each change."""
        return {"resolution": self._draw_resolution(), **({"knobs": self._draw_knobs()} if len(self._knobs()) else {})}

    def summary(self) -> dict[str, Any]:
        """As of every result; and ``effects``, for the ledger of knobs: a row for each that was measured."""
        ratios = self.frame[self.frame["quantity"] == "throughput_ratio"]
        effects = [
            {
                **{name: row[name] for name in ("framework", "environment", "mode", "device")},
                "knob": row["without"] or None,  # None: the whole lane
                "effect": tables.ratio(1 / row["estimate"], 1 / row["high"], 1 / row["low"]),
            }
            for _, row in ratios[ratios["verdict"].notna()].iterrows()
        ]
        return {**super().summary(), "effects": effects}

    def _draw_resolution(self) -> tuple[str, Figure]:
        frame = self._resolution()
        looks = figures.looks(frame["subject"])
        figure, (axes,) = figures.panels(1, 1, height=0.45 + 0.24 * len(frame))
        labels = [f"{row['workload']}, batch {row['batch_size']}" for _, row in frame.iterrows()]
        figures.interval_panel(
            axes,
            frame.assign(note=frame["why"]),
            looks,
            "ratio",
            "throughput of a process over that of another (A/A)",
            labels,
        )
        caption = "What cannot be told apart: identical processes against each other, with 95 % intervals."
        return caption, figures.finish(figure, looks)

    def _draw_knobs(self) -> tuple[str, Figure]:
        frame = self._knobs()
        looks = figures.looks(frame["subject"])
        figure, (axes,) = figures.panels(1, 1, height=0.45 + 0.24 * len(frame))
        noted = frame.assign(note=frame["verdict"])
        xlabel = "throughput relative to the tuned lane"
        figures.bar_panel(axes, noted, looks, "ratio", xlabel, list(frame["change"]), self.margin)
        caption = (
            "What the knobs do: throughput relative to the tuned lane with all its knobs, with 95 % intervals. "
            f"{figures.margin_text(self.margin)}"
        )
        return caption, figures.finish(figure, looks, [figures.CONTROL, figures.margin_legend(self.margin)])

    def _resolution(self) -> pd.DataFrame:
        """A row for each comparison's A/A."""
        rows = self.frame[self.frame["quantity"] == "control_ratio"]
        numbers = {"ratio": "estimate", "ratio_low": "low", "ratio_high": "high", "processes": "processes"}
        return pd.DataFrame(
            {
                **{name: rows[name] for name in ("subject", "workload", "batch_size")},
                **{name: rows[column] for name, column in numbers.items()},
                "half_width_percent": 100 * ((rows["high"] - rows["low"]) / 2 / rows["estimate"]),
                "ended": [comparison.ended for comparison in self.measured],
                "why": rows["why"].where(rows["why"] == DISTURBED),
                "measurements": rows["files"],
            }
        ).reset_index(drop=True)

    def _knobs(self) -> pd.DataFrame:
        frame = self.ratios
        left_out = frame["without"].fillna("") if "without" in frame else pd.Series("", index=frame.index)
        change = [
            f"without {name}" if name else f"lane {lane}" for name, lane in zip(left_out, frame["lane"], strict=True)
        ]
        frame = frame.assign(subject=showing.implementations(frame) + " " + frame["mode"], change=change)
        first = ["subject", "change"]
        return frame[[*first, *(name for name in frame if name not in {*first, "without", "baseline", "lane"})]]


def _condition(parameters: Parameters, key: str, subject: p.Subject, batch_size: int) -> Condition:
    return p.condition(
        {**dict.fromkeys(subject.choices, key), "batch_size": key if isinstance(subject, Alone) else "batch_size"},
        workload=parameters.workload,
        **subject.choices,
        data=parameters.data,
        device=parameters.device,
        hyperparameters=parameters.hyperparameters,
        batch_size=batch_size,
    )


def _resolution_sentence(frame: pd.DataFrame, margin: float) -> str:
    known = frame.dropna(subset="ratio_low")
    if not len(known):
        return "No A/A could be measured: nothing is known of the resolution."
    low, high = known["ratio_low"], known["ratio_high"]
    including, within = ((low <= 1) & (high >= 1)).sum(), is_within(low, high, margin).sum()
    return (
        f"Identical processes against each other (A/A): {including} of {len(known)} intervals include 1, {within} are "
        f"{same_within(margin)}, with a half-width of {span(list(known['half_width_percent']), 2)} %. In the time that "
        "was allowed, smaller differences could not be shown in this notebook."
    )


def _overhead_sentence(frame: pd.DataFrame) -> str:
    return (
        f"While blocks ran, the process that asks for them and samples beside them used "
        f"{tables.number(100 * frame['parent_cores'].max(), 2)} % of one core at most (a mean over a condition's "
        "processes)."
    )


def _timer_sentence(check: SyncCheck) -> str:
    who = f"{check.condition.subject} on {check.condition.device}"
    if check.failure:
        return f"{who}: the timer could not be tested: {check.failure}"
    verdict = (
        "the timer sees the work" if check.ok else "THE TIMER DOES NOT SEE ALL THE WORK: believe none of its times"
    )
    few = f"{check.share_of_few:.0%} of a few steps"
    return f"{who}: {verdict}, {check.share:.0%} of planted {check.known_s:.2f} s and {few}."
