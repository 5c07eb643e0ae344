"""What an experiment gives: tables, figures and findings of its frame, for its notebook and for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

from benchlib import latex, tables
from benchlib.condition import Condition
from benchlib.doubts import disturbances, disturbed_controls, disturbed_runs, throttled, unfinished
from benchlib.equivalence.certificate import SAME, Certificate
from benchlib.plotting import Picture, figures, naming
from benchlib.provenance import knobs
from benchlib.runner.roofline import Ceiling
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.measured import failures as failures_of
from benchlib.stats.training_runs import TrainingRuns
from benchlib.tables import Listed, Runs, Table, wide

if TYPE_CHECKING:
    from IPython.display import HTML


@dataclass(frozen=True)
class Gathered:
    """What a result is of that neither compares nor trains: certificates, or the files of others' measurements."""

    conditions: Sequence[Condition] = ()
    certificates: Mapping[str, Certificate] = field(default_factory=dict)  # by condition key
    keys: Sequence[str] = ()

    def files(self) -> Sequence[str]:
        """The keys of the measurements."""
        return self.keys

    def failures(self) -> pd.DataFrame:
        """The certificates that could not be made."""
        return failures_of([], self.certificates.values())

    def ledger(self) -> knobs.Ledger:
        """The knobs of the certificates' processes."""
        return knobs.Ledger(list(self.certificates.values()))


@dataclass(frozen=True)
class Part:
    """What was measured together, with the name of its task, and the rows of the frame ``beside`` those that every
    comparison and all training runs have (see ``stats.derived_ratios``). None: nothing of the task could be measured.
    """

    measured: Comparison | TrainingRuns | Gathered | None
    task: str = ""  # empty: the workload and its data
    beside: Sequence[Mapping[str, Any]] = ()
    order: Sequence[Condition] = ()  # in which those stand of which some could not be measured


Findings = Callable[["Result"], Iterable[str]]
"""Sentences on a result."""

ANSWERS = 3
"""Sentences that answer a question, for people: all others are in the findings."""


@dataclass(frozen=True)
class Declaration:
    """What an experiment shows of its frame, by name, in the order in which it is saved; what has nothing to show is
    left out.
    """

    notebook: str
    title: str
    question: str = ""  # which the report puts above the first of the figures
    answers: Sequence[Findings] = ()  # to that, the ANSWERS first sentences; without, those of the findings
    in_report: Sequence[str] = ()  # the tables that the report shows
    tables: Mapping[str, Table | Runs | Listed] = field(default_factory=dict)
    figures: Mapping[str, Picture] = field(default_factory=dict)
    findings: Sequence[Findings] = ()


class Result:
    """The results of one experiment; a notebook shows its parts by name and glues its summary."""

    def __init__(
        self,
        declared: Declaration,
        folder: Path,
        parts: Iterable[Part | Comparison | TrainingRuns | Gathered],
        notes: Iterable[str] = (),
        failed_beside: Iterable[dict[str, Any]] = (),
        ceiling: Ceiling | None = None,
    ) -> None:
        self.declared, self.notebook = declared, declared.notebook
        self.folder = folder  # of all results of the profile
        self.parts = [one if isinstance(one, Part) else Part(one) for one in parts]
        self.measured = [part.measured for part in self.parts if part.measured is not None]
        self.notes = [note for note in dict.fromkeys(notes) if note]  # what a reader has to know of machine and data
        self.failed_beside = list(failed_beside)  # see :func:`failures_beside`
        self.awaited: list[str] = []  # keys of the measurements that would come next
        self.ceiling = ceiling  # the machine's limits, where the experiment shows the share of them

    def findings(self) -> list[str]:
        """Sentences computed from the results."""
        return [sentence for one in self.declared.findings for sentence in one(self)]

    def answers(self) -> list[str]:
        """The question's answer in a few sentences; where there is nothing to answer from, what is said of that."""
        sentences = (sentence for one in self.declared.answers for sentence in one(self))
        return list(islice(sentences, ANSWERS)) or self.findings()[:ANSWERS]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """By name: what the table shows, and the table, unrounded."""
        return self._tables

    @cached_property
    def _tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        every = {name: (table.caption, table.of(self)) for name, table in self.declared.tables.items()}
        return {name: (caption, frame) for name, (caption, frame) in every.items() if len(frame)}

    def draw(self) -> dict[str, tuple[str, Figure]]:
        """By name: what the figure shows, and the figure."""
        drawn = {name: picture.draw(self) for name, picture in self.declared.figures.items()}
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def drawn_from(self) -> dict[str, pd.DataFrame]:
        """By name of a figure, the rows that it shows."""
        every = {
            name: self.declared.figures[name].shown(self) for name in self.figures if name in self.declared.figures
        }
        return {name: rows.rename(columns={"files": tables.FILES}) for name, rows in every.items()}

    @property
    def margin(self) -> float:
        """Of the notebook's ratios: one whose interval lies within so much of 1 is "the same within" it."""
        return next((one.margin for one in self.comparisons), MARGIN)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All that was measured, tidy: see ``benchlib.stats.frame``; subjects as :mod:`naming` calls them."""
        return naming.in_rows(tidy.together(self._in_order(number, part) for number, part in enumerate(self.parts)))

    def _in_order(self, number: int, part: Part) -> pd.DataFrame:
        frame, places = self._frame(number, part), {str(one): place for place, one in enumerate(part.order)}
        lost = frame["quantity"].isin(frame.loc[frame["reason"].notna(), "quantity"])
        in_place = frame[lost].sort_values("label", key=lambda labels: labels.map(places), kind="stable")
        return pd.concat([frame[~lost], in_place]) if places else frame

    def _frame(self, number: int, part: Part) -> pd.DataFrame:
        common = {"notebook": self.notebook, "task": self._task(part), "part": number, "margin": self.margin}
        if isinstance(part.measured, TrainingRuns):
            return tidy.of_training(part.measured, part.beside, **common)
        if isinstance(part.measured, Comparison):
            roof_s = self.ceiling.roof_s if self.ceiling else None
            beside = [*part.beside, *derived_ratios.pairs(part.measured)]
            return tidy.of_comparison(part.measured, beside, roof_s=roof_s, **common)
        return tidy.of_rows(part.beside, kind=tidy.COMPARISON, **common)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All training runs, a row each (see ``TrainingRuns.runs``), with the names of subject, task and part,
        and the threshold.
        """
        return self._trained(TrainingRuns.runs)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """All epochs of all training runs, a row each (see ``TrainingRuns.curves``), as :attr:`runs`."""
        return self._trained(TrainingRuns.curves)

    def _trained(self, rows: Callable[[TrainingRuns], pd.DataFrame]) -> pd.DataFrame:
        frames = []
        named = naming.subjects(one for measured in self.measured for one in measured.conditions)
        subjects = {str(one): name for one, name in named.items()}
        for number, part in enumerate(self.parts):
            if isinstance(part.measured, TrainingRuns) and len(of_part := rows(part.measured)):
                of_part.insert(0, "subject", of_part["label"].map(subjects))
                common = {"task": self._task(part), "part": number, "threshold": part.measured.threshold}
                frames.append(of_part.assign(**common))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def _task(self, part: Part) -> str:
        if part.task or not isinstance(part.measured, Comparison | TrainingRuns):
            return part.task
        first = part.measured.conditions[0]
        return f"{first.workload} on {first.data}"

    def rows(self, quantity: str) -> pd.DataFrame:
        """Of a quantity in the frame, with what else is known of their conditions (see ``selections.wide``)."""
        return wide(self.frame, quantity)

    @property
    def every(self) -> list[Condition]:
        """All conditions."""
        return [condition for measured in self.measured for condition in measured.conditions]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of what was measured."""
        return [measured for measured in self.measured if isinstance(measured, Comparison)]

    @cached_property
    def figures(self) -> dict[str, tuple[str, Figure]]:
        """What :meth:`draw` gives, drawn once."""
        return self.draw()

    def warnings(self) -> list[str]:
        """What makes some of the numbers less sure than they look: intervals that are wider than was asked for, and
        :meth:`doubts`.
        """
        return [*unfinished(self.comparisons), *self.doubts()]

    def doubts(self) -> list[str]:
        """Processes that were not steady, or not alone, in words."""
        runs = [measured for measured in self.measured if isinstance(measured, TrainingRuns)]
        of_comparisons = [*disturbances(wide(self.frame, "steady")), *disturbed_controls(self.comparisons)]
        return [*of_comparisons, *disturbed_runs(runs), *throttled([*self.comparisons, *runs])]

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
        return tables.image(figures.svg(figure), caption)

    def show_table(self, name: str) -> HTML:
        """A table with its caption, rounded to what is known."""
        every = self.tables()
        if name not in every:
            return tables.bullets([f"No table of {name}: there is nothing to show."])
        caption, frame = every[name]
        return tables.html(frame, caption)

    def show_failures(self) -> HTML:
        """What failed, or that nothing did."""
        return tables.failed(self.failures())

    def summary(self) -> dict[str, Any]:
        """Save all figures and tables; what the report needs, in plain types. Paths are relative to the folder."""
        captions, paths = {}, {"figures": [], "tables": []}
        files = sorted({file for measured in self.measured for file in measured.files()})
        for name, (caption, figure) in self.figures.items():
            for path in figures.save(figure, self.folder / "figures", f"{self.notebook}_{name}"):
                paths["figures"].append(path.relative_to(self.folder).as_posix())
                captions[paths["figures"][-1]] = caption
        for name, rows in self.drawn_from().items():
            path = self.folder / "figures" / f"{self.notebook}_{name}.csv"
            rows.to_csv(path, index=False)
            paths["tables"].append(path.relative_to(self.folder).as_posix())
            captions[paths["tables"][-1]] = f"What the figure shows. {self.figures[name][0]}"
        every = self.tables()
        for name, (caption, frame) in every.items():
            for path in tables.save(frame, self.folder / "tables", f"{self.notebook}_{name}", caption):
                paths["tables"].append(path.relative_to(self.folder).as_posix())
                captions[paths["tables"][-1]] = caption
        for path in latex.save(every, self.folder / "tables", self.notebook):
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
        in_report = [  # as it is shown: the report reads no table back
            [f"tables/{self.notebook}_{name}.csv", self.show_table(name).data]
            for name in self.declared.in_report
            if name in every
        ]
        return {
            "title": self.declared.title,
            "question": self.declared.question,
            "answers": self.answers(),
            "findings": self.findings(),
            "warnings": self.doubts(),  # how narrow the intervals are, the report says once for all
            "notes": self.notes,
            **paths,
            "captions": captions,
            "in_report": in_report,
            "failures": len(failed),
            "crashed": int(failed["crashed"].sum()),
            "failed": failed.astype(str).to_dict("records"),
            "certificates": [  # of thousands of arrays each has a digest, which the certificate's file keeps
                one.model_dump_json(exclude={"digests", "reference_digests"})
                for one in {one.condition: one for one in certificates}.values()
            ],
            "certified": sorted({one.file for one in certificates if one.file}),
            "measurements": files,
            "awaited": self.awaited,
            "conditions": [condition.model_dump(mode="json") for condition in dict.fromkeys(conditions)],
            "knobs": knobs.Ledger(processes).frame.to_dict("records"),
            "left_out": knobs.Ledger(processes).left_out,
        }


def different_models(runs: pd.DataFrame) -> list[str]:
    """A warning for each subject whose model is not certified to be the reference's."""
    others = runs.loc[runs["models"] != SAME, "subject"] if len(runs) else []
    return [
        f"{who}: its model is not the reference's, or was not checked (see the certificates): do not compare its runs."
        for who in dict.fromkeys(others)
    ]
