"""What an experiment gives: tables, figures and findings, shown in its notebook and saved for the report."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchlib import data, knobs, progress, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import (
    DISTURBED,
    MARGIN,
    MODELS_DIFFER,
    MODELS_NOT_CHECKED,
    MOST,
    NOT_MEASURED,
    SLOWS_DOWN,
    Comparison,
    verdict_on,
)
from benchlib.analysis.comparison import failures as failures_of
from benchlib.analysis.equivalence import DIFFERENT, NOT_CHECKED, SAME
from benchlib.analysis.planner import PRECISION
from benchlib.analysis.statistics import Interval
from benchlib.analysis.training import TrainingRuns, undisturbed
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.measure.ceiling import Ceiling
from benchlib.measure.contract import SyncCheck
from benchlib.store import ATTEMPTS
from benchlib.suite import figures, latex, showing, tables
from benchlib.worker import files as data_files

if TYPE_CHECKING:
    from IPython.display import HTML

NO_RATIO = {
    MODELS_DIFFER: "no ratio: the models differ (see the certificates)",
    MODELS_NOT_CHECKED: "no ratio: the models could not be checked",
    NOT_MEASURED: "no ratio: not measured (see what failed)",
    SLOWS_DOWN: "no ratio: one of the two keeps getting slower, so there is no throughput to compare",
    DISTURBED: "no ratio: more than half of its rounds were disturbed in every take (see that the machine is quiet, "
    "delete the measurements and run again)",
}
"""What a sentence says instead of a ratio, by verdict."""


class Result(ABC):
    """The results of one experiment; a notebook shows its parts by name and glues its summary."""

    notebook: str
    title: str
    in_report: tuple[str, ...]  # the tables that the report shows
    ceiling: Ceiling | None = None  # the machine's limits, where the experiment shows the share of them

    def __init__(
        self,
        folder: Path,
        measured: Sequence[Comparison | TrainingRuns],
        notes: Iterable[str] = (),
        failed_beside: Iterable[dict[str, Any]] = (),
    ) -> None:
        self.folder = folder  # of all results of the profile
        self.measured = measured
        self.notes = list(notes)  # what a reader has to know about the machine and the data
        self.failed_beside = list(failed_beside)  # see :func:`failures_beside`

    @abstractmethod
    def findings(self) -> list[str]:
        """Sentences computed from the results."""

    @abstractmethod
    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """By name: what the table shows, and the table, unrounded."""

    @abstractmethod
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """By name: what the figure shows, and the figure."""

    @property
    def margin(self) -> float:
        """Of the notebook's ratios: one whose interval lies within so much of 1 is "the same within" it."""
        return next((one.margin for one in self.comparisons), MARGIN)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All that was measured, tidy: see ``benchlib.analysis.frame``."""
        common = {"notebook": self.notebook, "margin": self.margin}
        frames = [
            make(measured, **common, **self.frame_arguments(measured))
            for kind, make in ((Comparison, tidy.of_comparison), (TrainingRuns, tidy.of_training))
            for measured in self.measured
            if isinstance(measured, kind)
        ]
        return tidy.together([*frames, tidy.of_rows(self.own_rows(), **common)])

    def frame_arguments(self, measured: Comparison | TrainingRuns) -> dict[str, Any]:
        """What the frame of a comparison or of training runs is told of it: the ``task`` is its workload and data,
        where an experiment has no name of its own for it; and what a step could take, where that is asked for.
        """
        named = {"task": f"{measured.conditions[0].workload} on {measured.conditions[0].data}"}
        asked = self.ceiling is not None and isinstance(measured, Comparison)
        return {**named, "roof_s": self.ceiling.roof_s} if asked else named

    def own_rows(self) -> list[dict[str, Any]]:
        """Rows of the frame (``tidy.row``) that no other experiment has."""
        return []

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of what was measured."""
        return [measured for measured in self.measured if isinstance(measured, Comparison)]

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """Those of all comparisons (:func:`ratios`)."""
        return ratios(self.comparisons)

    @cached_property
    def throughputs(self) -> pd.DataFrame:
        """The indicators of all conditions that were compared (:func:`throughputs`)."""
        return throughputs(self.comparisons, self.ceiling)

    @cached_property
    def figures(self) -> dict[str, tuple[str, Figure]]:
        """What :meth:`draw` gives, drawn once."""
        return self.draw()

    def warnings(self) -> list[str]:
        """What makes some of the numbers less sure than they look: processes that were not steady, or not alone."""
        compared = self.comparisons
        of_comparisons = [*unfinished(compared), *disturbances(throughputs(compared))] if compared else []
        runs = [measured for measured in self.measured if isinstance(measured, TrainingRuns)]
        return [*of_comparisons, *disturbed_controls(compared), *disturbed_runs(runs)]

    def failures(self) -> pd.DataFrame:
        """What failed, a row a process."""
        none = failures_of([], [])
        beside = pd.DataFrame(self.failed_beside, columns=none.columns)
        failed = [*(measured.failures() for measured in self.measured), beside]
        return pd.concat([frame for frame in failed if len(frame)] or [none], ignore_index=True)

    def show_findings(self) -> HTML:
        """The findings, and what a reader has to know besides, as a list."""
        return tables.bullets([*self.findings(), *self.warnings(), *self.notes])

    def show_figure(self, name: str) -> HTML:
        """A figure with its caption."""
        if name not in self.figures:
            return tables.bullets([f"No figure of {name}: everything failed, or there is nothing to compare."])
        caption, figure = self.figures[name]
        return showing.image(figures.svg(figure), caption)

    def show_table(self, name: str) -> HTML:
        """A table with its caption, rounded to what is known."""
        made = self.tables()
        if name not in made:
            return tables.bullets([f"No table of {name}: there is nothing to show."])
        caption, frame = made[name]
        return tables.html(frame, caption)

    def show_failures(self) -> HTML:
        """What failed, or that nothing did."""
        return showing.failed(self.failures())

    def summary(self) -> dict[str, Any]:
        """Save all figures and tables; what the report needs, in plain types. Paths are relative to the folder."""
        captions, paths = {}, {"figures": [], "tables": []}
        files = sorted({file for measured in self.measured for file in measured.files()})
        for name, (caption, figure) in self.figures.items():
            for path in figures.save(figure, self.folder / "figures", f"{self.notebook}_{name}", files):
                paths["figures"].append(path.relative_to(self.folder).as_posix())
                captions[paths["figures"][-1]] = caption
        made = self.tables()
        for name, (caption, frame) in made.items():
            for path in tables.save(frame, self.folder / "tables", f"{self.notebook}_{name}", caption):
                paths["tables"].append(path.relative_to(self.folder).as_posix())
                captions[paths["tables"][-1]] = caption
        for path in latex.save(made, self.folder / "tables", self.notebook):
            paths["tables"].append(path.relative_to(self.folder).as_posix())
        if len(self.frame):
            path = self.folder / "tables" / f"{self.notebook}_frame.parquet"
            tidy.save(self.frame, path)
            paths["tables"].append(path.relative_to(self.folder).as_posix())
            captions[paths["tables"][-1]] = "All that was measured, tidy: a row for one quantity of one condition."
        conditions = [condition for measured in self.measured for condition in measured.conditions]
        processes = [one for measured in self.measured for one in measured.ledger().processes]
        certificates = [each for measured in self.measured for each in measured.certificates.values()]
        failed = self.failures()
        in_report = [f"{self.notebook}_{name}" for name in self.in_report]
        return {
            "title": self.title,
            "findings": [*self.findings(), *self.warnings()],
            "notes": self.notes,
            **paths,
            "captions": captions,
            "in_report": [f"tables/{name}.csv" for name in in_report if f"tables/{name}.csv" in paths["tables"]],
            "failures": len(failed),
            "again": int(failed["again"].sum()),
            "failed": failed.astype(str).to_dict("records"),
            "certificates": [one.model_dump_json() for one in {one.condition: one for one in certificates}.values()],
            "certified": sorted({one.file for one in certificates if one.file}),
            "measurements": files,
            "conditions": [condition.model_dump(mode="json") for condition in dict.fromkeys(conditions)],
            "knobs": knobs.ledger(processes).to_dict("records"),
            "left_out": knobs.left_out(processes),
        }


def ratios(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """A row for each condition but the baselines: ``ratio``, ``ratio_low``, ``ratio_high``; ``student_ratio`` and ends,
    the same with Student's interval, for which nothing is ``borrowed`` of other comparisons; and of its comparison the
    ``baseline`` and the A/A control: ``control``, ``control_low``, ``control_high``, and where it has none because it
    was disturbed, ``control_why``.
    """
    frames = []
    for comparison in comparisons:
        control = comparison.control
        extra = {"control": control.estimate, "control_low": control.low, "control_high": control.high}
        extra["control_why"] = why_no_control(comparison)
        extra |= {"half_width_percent": 100 * comparison.plan.half_width, "ended": comparison.ended}
        frame = comparison.ratios()
        frames.append(frame[frame["role"] == "condition"].assign(baseline=comparison.baseline.subject, **extra))
    frame = pd.concat(frames, ignore_index=True).drop(columns="role")
    ends = {"low": "ratio_low", "high": "ratio_high"}
    student = {f"student_{end}": f"student_ratio_{end}" for end in ends}
    return showing.with_subject(frame.assign(student_ratio=frame["ratio"]).rename(columns={**ends, **student}))


def columns(name: str, interval: Interval) -> dict[str, float]:
    """An interval as the columns of a table."""
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def why_no_control(comparison: Comparison) -> str | None:
    """``DISTURBED`` where a comparison's A/A control has no ratio for that; else None."""
    return DISTURBED if comparison.disturbed(comparison.baseline, comparison.baseline, "control") else None


def between(comparison: Comparison, one: Condition, other: Condition) -> tuple[Interval, str]:
    """Throughput of ``other`` over that of ``one``, any two of a comparison, and the verdict, by the rules by which
    ``Comparison.ratios`` gives both relative to the baseline: nan where the verdict is one of :data:`NO_RATIO`.
    """
    found = comparison.between(one, other)
    certificates = [comparison.certificates.get(condition.key) for condition in (one, other)]
    proofs = {certificate.verdict if certificate else NOT_CHECKED for certificate in certificates}
    if found.processes == 0:
        verdict = NOT_MEASURED
    elif proofs != {SAME}:
        verdict = MODELS_DIFFER if DIFFERENT in proofs else MODELS_NOT_CHECKED
    elif comparison.disturbed(one, other):
        verdict = DISTURBED
    elif comparison.slows_down(one) or comparison.slows_down(other):
        verdict = SLOWS_DOWN
    else:
        verdict = verdict_on(found, comparison.margin)
    if verdict in NO_RATIO:
        found = Interval(math.nan, math.nan, math.nan, found.processes)
    return found, verdict


def throughputs(comparisons: Iterable[Comparison], ceiling: Ceiling | None = None) -> pd.DataFrame:
    """The indicators of all conditions of all comparisons; and, given the machine's ceiling, ``peak_share_percent``:
    the least time that the step could take there, of the time that it took.
    """
    comparisons = list(comparisons)
    frame = pd.concat([comparison.throughput() for comparison in comparisons], ignore_index=True)
    frame = frame.rename(columns={"low": "samples_per_second_low", "high": "samples_per_second_high"})
    if ceiling is not None:
        roofs = [ceiling.roof_s(condition) for comparison in comparisons for condition in comparison.conditions]
        frame["peak_share_percent"] = 100 * 1000 * np.array(roofs) / frame["step_ms"]
    return showing.with_subject(frame)


def without_hyperparameters(frame: pd.DataFrame) -> pd.DataFrame:
    """Of several workloads: those of one mean nothing to another."""
    every = {name for workload in set(frame["workload"]) for name in workloads.load(workload).hyperparameters}
    return frame.drop(columns=[name for name in every if name in frame])


def ceiling_text(ceiling: Ceiling) -> str:
    """The machine's limits, in words, and what failed while they were measured."""
    failed = "".join(f" A worker failed: {failure}" for failure in ceiling.failures)
    if not (ceiling.multiply_adds_per_s and ceiling.bytes_per_s):
        return f"The machine's limits on {ceiling.device} could not be measured.{failed}"
    return (
        f"The machine's limits on {ceiling.device} in {ceiling.precision}: "
        f"{tables.number(ceiling.multiply_adds_per_s / 1e9)} thousand million multiply-adds a second (the fastest "
        f"product or convolution: {ceiling.best['multiply_adds']}), {tables.number(ceiling.bytes_per_s / 2**30)} GiB/s "
        f"(the fastest copy: {ceiling.best['least_bytes']}).{failed}"
    )


def failures_beside(ceiling: Ceiling, timers: Iterable[SyncCheck] = ()) -> list[dict[str, Any]]:
    """What failed of what is measured beside comparisons and runs: rows as of ``comparison.failures``; ``file`` is the
    folder of what failed.
    """
    limits = {"label": f"the machine's limits on {ceiling.device}", "role": "ceiling", "file": "ceilings/"}
    rows = [{**limits, "failure": failure, "again": ceiling.attempts < ATTEMPTS} for failure in ceiling.failures]
    for check in timers:
        if check.failure:
            timer = {"label": str(check.condition), "role": "timer", "file": "timers/"}
            rows.append({**timer, "failure": check.failure, "again": check.attempts < ATTEMPTS})
    return [{"repetition": 0, "seed": 0, **row} for row in rows]


def indicators(frame: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`throughputs`, what the experiment asks for; and of how many processes peak memory is."""
    return frame.drop(columns=[name for name in OF_PROCESSES if name != "first_in_process"])


def processes(frame: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`throughputs`, how it went in the processes."""
    measured = [
        name for name in tables.MEASURED if name in frame and name not in {*OF_PROCESSES, "processes", "failed"}
    ]
    ends = [f"{name}_{end}" for name in measured for end in ("low", "high") if f"{name}_{end}" in frame]
    return frame.drop(columns=[*measured, *ends])


OF_PROCESSES = (
    "first_in_process",
    "cores_used",
    "memory_import_mib",
    "memory_steady_mib",
    "memory_private_mib",
    "memory_children_mib",
    "device_peak_mib",
    "accelerator_temperature_c",
    "accelerator_clock_mhz",
    "accelerator_throttled",
    "first_step_s",
    "warm_up_s",
    "steady",
    "slows_down",
    "disturbed",
    "idle_cores",
    "parent_cores",
)
PROCESSES = (
    "How it went in the processes: means over them. First step (with compilation) and memory: of those in which the "
    "condition was the first that they measured. Steady: the share that was by the "
    "warm-up's rule when its blocks began. Cores of others: what the other workers of the comparison, who should "
    "sleep, used meanwhile, beside the process where it was worst. Cores of the parent: what the notebook's own "
    "process used, which asks, waits and samples. Disturbed: the share of blocks that count although in every take of "
    "them something else used the machine, or they were far from the process's others."
)
"""The caption of :func:`processes`."""


def unfinished(comparisons: list[Comparison]) -> list[str]:
    """A sentence on the comparisons that ended before their precision was reached: what more it would have taken."""
    ended = [one for one in comparisons if one.plan.ended != PRECISION and math.isfinite(one.plan.half_width)]
    ended = [one for one in ended if DISTURBED not in set(one.ratios()["verdict"])]  # whose width shows nothing
    if not ended:
        return []
    plans = [one.plan for one in ended]
    over = sum(plan.spent_s > one.budget_s for plan, one in zip(plans, ended, strict=True))
    shared = math.isinf(ended[0].budget_s)
    within = "the time that they share" if shared else f"their budget of {progress.duration(ended[0].budget_s)}"
    return [
        f"{len(ended)} of {len(comparisons)} comparisons did not reach the {100 * ended[0].precision:g} % that was "
        f"asked for in {within}: half-widths of "
        f"{span([100 * plan.half_width for plan in plans], 2)} %; it would have taken about "
        f"{_ends([f'{more:,}' for more in sorted(plan.more_processes for plan in plans)])} more processes of each "
        "condition, "
        f"{_ends([progress.duration(plan.more_s) for plan in sorted(plans, key=lambda plan: plan.more_s)])}."
        + (f" The pilot alone, which is always finished, took longer than that in {over} of them." if over else "")
    ]


def span(values: list[float], digits: int) -> str:
    """The least and the most of some values, in words."""
    return _ends([tables.number(value, digits) for value in sorted(values)])


def _ends(ordered: list[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


SHARE_DISTURBED = 0.2
"""Of the blocks that count: more is told."""

RESTLESS = 0.1
"""Cores that the other workers use meanwhile: more is told. CPU time is counted in hundredths of a second, so that some
0.04 are seen of workers that sleep."""


def disturbances(frame: pd.DataFrame) -> list[str]:
    """A sentence for each row of :func:`throughputs` whose processes were not steady or not alone, and one on the rows
    whose others did not sleep.
    """
    told = []
    for _, row in frame.iterrows():
        if row["steady"] < 1:
            told.append(
                f"{row['label']}: {row['steady']:.0%} of its processes were steady when their blocks began; of the "
                "others it could not be shown in the time for warm-up, so its throughput may be too low."
            )
        if row["disturbed"] > SHARE_DISTURBED:
            lost = "; it has no throughput" if row["disturbed"] > MOST else ""
            told.append(
                f"{row['label']}: {row['disturbed']:.0%} of its blocks were disturbed in every take{lost}: see that "
                "the machine is quiet, delete the measurement and run again."
            )
        if row["accelerator_throttled"] > 0:
            told.append(
                f"{row['label']}: the driver held the accelerator's clocks down for {row['accelerator_throttled']:.0%} "
                "of the time, because of heat or power."
            )
        if row["slows_down"]:
            told.append(f"{row['label']}: it keeps getting slower: its throughput is no constant.")
    restless = frame[frame["idle_cores"] > RESTLESS]
    if len(restless):
        worst = restless.loc[restless["idle_cores"].idxmax()]
        told.append(
            f"Beside {len(restless)} of {len(frame)} conditions the other workers of the comparison, who should sleep, "
            f"used more than {RESTLESS:g} cores in a process; most, {tables.number(worst['idle_cores'], 2)}, beside "
            f"{worst['label']}."
        )
    return told


def disturbed_controls(comparisons: Iterable[Comparison]) -> list[str]:
    """A sentence for each comparison whose A/A control is disturbed."""
    return [
        f"{one.baseline}, A/A: {NO_RATIO[DISTURBED]}; what its comparison can resolve is not known."
        for one in comparisons
        if why_no_control(one)
    ]


def disturbed_runs(trained: Iterable[TrainingRuns]) -> list[str]:
    """A sentence for each condition with runs whose times do not count."""
    return [
        f"{label}: {len(rows) - len(undisturbed(rows))} of {len(rows)} training runs were disturbed for more than half "
        "of their time, so their times count nowhere: see that the machine is quiet, delete the measurements and run "
        "again."
        for runs in trained
        for label, rows in runs.runs().groupby("label", sort=False)
        if len(undisturbed(rows)) < len(rows)
    ]


def ratio_text(row: pd.Series) -> str:
    """A row of :func:`ratios` in words: the ratio, its verdict, and the A/A control that says what can be resolved."""
    if row["verdict"] in NO_RATIO:
        return NO_RATIO[row["verdict"]]
    ratio = tables.ratio(row["ratio"], row["ratio_low"], row["ratio_high"])
    if row.get("control_why") == DISTURBED:
        return (
            f"{ratio}, {row['verdict']} (no A/A: more than half of its rounds were disturbed, so what can be resolved "
            "is not known)"
        )
    control = tables.ratio(row["control"], row["control_low"], row["control_high"])
    warning = ""
    if math.isfinite(row["control_low"]) and not row["control_low"] <= 1 <= row["control_high"]:
        warning = ", which excludes 1: the baseline differs from itself, so a difference of that size shows nothing"
    return f"{ratio}, {row['verdict']} (A/A {control}{warning})"


def counts_text(rows: pd.DataFrame) -> str:
    """How often rows of :func:`ratios` have which verdict: faster, slower, the same, undecided, or none."""
    return ", ".join(f"{verdict} at {count}" for verdict, count in rows["verdict"].value_counts().items())


def different_models(runs: TrainingRuns) -> list[str]:
    """A warning for each subject whose model is not certified to be the reference's."""
    frame = showing.with_subject(runs.runs())
    others = frame.loc[frame["models"] != SAME, "subject"]
    return [
        f"{who}: its model is not the reference's, or was not checked (see the certificates): do not compare its runs."
        for who in dict.fromkeys(others)
    ]


def data_note(condition: Condition, inputs: Path) -> str:
    """What a reader has to know about the data that was really read for a condition."""
    special = data_files.about(prepare(condition, 0, inputs))["note"]  # such as files that are not the original's
    subset = ""
    if condition.train_samples is not None:
        workload = workloads.load(condition.workload)
        subset = f"Trained on {condition.train_samples:,} of the training {workload.unit} only, so the metric is lower."
    return " ".join(text for text in (subset, data.note(condition.data), special) if text)
