"""Studies: a notebook's question, comparisons, training runs, figures and tables.

The suite executes the cells tagged ``parameters`` and ``design`` in its own process (``benchlib.notebooks``): the
second makes a :class:`Study`. ``study.measure()`` measures; figures and tables are made of ``study.frame``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import benchlib.reprs  # noqa: F401  (results show themselves)
from benchlib import caveats, data, latex, manifest, metrics, tables, tensorboard, workloads
from benchlib.cluster.lab import Lab, why_absent
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError, quote
from benchlib.parameter_types import Settings
from benchlib.runner import preflight
from benchlib.runner.interrupt import one_interrupt
from benchlib.runner.roofline import Ceiling
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.measured import failures as failures_of
from benchlib.stats.training_runs import TrainingRuns
from benchlib.tables import Listed, Table, wide
from benchlib.worker import files as data_files

if TYPE_CHECKING:
    from IPython.display import HTML

    from benchlib.plotting import Picture

Sentences = Callable[["Study"], Iterable[str]]
More = Callable[[Any], Iterable[Mapping[str, Any]]]  # rows of the frame, from the measurements


class WrongChoice(BenchlibError):
    """A value of a parameter fits no condition."""

    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"{name}: {quote(value)}: {why}")
        self.name, self.value, self.why = name, value, why


@dataclass
class Part:
    """A group measured together: a comparison, or training runs within their ``limits``."""

    conditions: list[Condition]
    task: str  # if not given, the workload and its data
    beside: More | None
    limits: dict[str, Any] | None = None
    measured: Comparison | TrainingRuns | None = None  # None, too, where there was nothing to measure
    refused: dict[Condition, Certificate] = field(default_factory=dict)  # by their frameworks, in the gate

    def __post_init__(self) -> None:
        if self.conditions and not self.task:
            self.task = f"{self.conditions[0].workload} on {self.conditions[0].data}"

    @property
    def possible_conditions(self) -> list[Condition]:  # to measure, as far as the gate has seen
        return [one for one in self.conditions if one not in self.refused]


class Study:
    """A question, the measurements that answer it, and their display; its ``name`` is that of its notebook's file."""

    def __init__(
        self,
        name: str,
        *,
        title: str,
        question: str,
        settings: Mapping[str, Any] | None = None,  # of comparisons; None: nothing is compared
        outputs: Path | str | None = None,
        peak: bool = False,  # measure the machine's limits, for the share of its peak
    ) -> None:
        self.name, self.title, self.question, self.outputs, self.peak = name, title, question, outputs, peak
        self.settings = None if settings is None else Settings(**settings).model_dump()
        self.parameters: dict[str, Any] = {}  # as the suite checked them
        self.parts: list[Part] = []
        self.certificates: dict[str, Certificate] = {}  # by condition key, of those that were to be certified
        self.timers: list[SyncCheck] = []
        self.ceiling: Ceiling | None = None
        self.awaited: list[str] = []  # keys of the measurements that would come next
        self.notes: list[str] = []  # facts of machine and data that a reader has to know
        self._absent: dict[str, None] = {}  # sentences on the subjects left out
        self._certified: list[Condition] = []
        self._training_steps = 0  # that certificates are about, too
        self._timed: list[Condition] = []
        self._figures: dict[str, tuple[str, list[Path]]] = {}  # by name: captions and files
        self._tables: dict[str, tuple[str, pd.DataFrame]] = {}
        self._in_report: list[str] = []
        self._findings: list[str] = []

    # The design: the measurements to make.

    def conditions(self, subjects: Sequence[Mapping[str, Any]], **choices: Any) -> list[Condition]:
        """A condition of each subject with these choices. A note says which of those marked ``if_there`` are not there,
        cannot use the device or have no file of the workload.
        """
        made, workload = [], choices["workload"]
        for subject in subjects:
            framework, optional = subject["framework"], subject.get("if_there", False)
            own = {name: value for name, value in subject.items() if name in Condition.model_fields}
            condition, why = None, f"{workload}, of which it has no file"
            if not optional or framework in workloads.load(workload).frameworks():
                condition = _condition({"workload": workload, **own, **choices})
                why = optional and why_absent(framework, condition.device, condition.environment)
            if why:
                self._absent[f"Not measured in {tables.spelled(framework)}: {why}."] = None
            elif condition is not None:
                made.append(condition)
        return made

    def compare(self, conditions: list[Condition], task: str = "", beside: More | None = None) -> None:
        """Have conditions compared, the first being the baseline. Of none, the frame has the rows ``beside`` only."""
        if conditions:
            preflight.require_distinct(conditions)
        if self.settings is None:
            raise BenchlibError("settings: a study that compares needs them: Study(..., settings=settings)")
        self.parts.append(Part(conditions, task, beside))

    def train(
        self,
        conditions: list[Condition],
        seeds: list[int],
        epochs: int,
        task: str = "",
        beside: More | None = None,
        threshold: float | None = None,
        most_epochs: int | None = None,
    ) -> None:
        """Have conditions trained from each seed, as ``Lab.train``."""
        preflight.require_trainable(conditions, seeds, epochs, threshold, most_epochs)
        if most_epochs is not None and most_epochs < epochs:
            raise WrongChoice("most_epochs", most_epochs, f"is less than epochs ({epochs}); give at least that")
        limits = {"seeds": seeds, "epochs": epochs, "threshold": threshold, "most_epochs": most_epochs}
        self.parts.append(Part(conditions, task, beside, limits))

    def certify(self, conditions: list[Condition], training_steps: int = 0) -> None:
        """Have models certified that are not measured here; and, of all of these, so many steps of training, too."""
        self._certified += conditions
        self._training_steps = training_steps

    def check_timers(self, conditions: list[Condition]) -> None:
        self._timed += conditions

    @property
    def groups(self) -> list[list[Condition]]:
        return [part.conditions for part in self.parts if part.conditions and not part.limits]

    @property
    def every(self) -> list[Condition]:
        """All conditions that will be measured or certified."""
        return list(dict.fromkeys([*(one for part in self.parts for one in part.conditions), *self._certified]))

    @property
    def least_runs(self) -> int:
        """Training runs, at the very least: those of conditions that are not compared."""
        compared = {one for group in self.groups for one in group}
        trained = [(part.limits["seeds"], set(part.conditions) - compared) for part in self.parts if part.limits]
        return sum(len(seeds) * len(conditions) for seeds, conditions in trained)

    # Measuring.

    @one_interrupt()
    def measure(self, lab: Lab | None = None) -> None:
        """Measure the conditions of the design, or take earlier measurements from disk."""
        if lab is None:
            lab = Lab(outputs=self.outputs)
            lab.ended = self._ended_keys(lab.folder)
        self.folder, self.inputs = lab.folder, lab.inputs
        certificates = lab.certify(self.every)  # all at once: they share the gate's workers
        for part in self.parts:  # without the first there is nothing to compare with, and all say so
            part.refused = {one: its for one in part.conditions[1:] if (its := certificates[one.key]).refused}
        if self._certified:
            self.certificates = lab.certify(self._certified, training_steps=self._training_steps)
        compared = [part for part in self.parts if part.conditions and not part.limits]
        groups = lab.compare_each([part.possible_conditions for part in compared], **(self.settings or {}))
        for part, comparison in zip(compared, groups, strict=True):
            part.measured = comparison
        for part in self.parts:
            if part.limits:
                part.measured = tensorboard.train(lab, part.possible_conditions, **part.limits)
        self.timers = lab.check_timers(self._timed)
        every = [*self.every, *self._timed]
        if self.peak and every:
            self.ceiling = lab.ceiling(every[0].device, within=list(dict.fromkeys(one.environment for one in every)))
        self.awaited = [one.file for one in lab.comparisons.values()]
        firsts = [*(part.conditions[0] for part in self.parts if part.conditions), *self._certified]
        said = [text for one in firsts for text in (data.get(one.data).note, data_warning(one, self.inputs))]
        said += [ceiling_text(self.ceiling)] if self.ceiling else []
        self.notes = list(dict.fromkeys(filter(None, [*said, *self._absent])))
        for computed in ("frame", "runs", "curves"):
            vars(self).pop(computed, None)

    def _ended_keys(self, folder: Path) -> set[str]:
        """Keys of the measurements whose comparisons the last run's clock ended, if the settings are the same."""
        record = manifest.read(folder, self.name) or {}
        before, now = record.get("parameters", {}).get("settings") or {}, self.settings or {}
        same = now and all(before.get(one) == now[one] for one in ("precision", "budget_s", "pilot"))
        return {Path(file).stem for file in record.get("files", ())} if same else set()

    # The measurements.

    @property
    def measured(self) -> list[Comparison | TrainingRuns]:
        return [part.measured for part in self.parts if part.measured is not None]

    @property
    def comparisons(self) -> list[Comparison]:
        return [one for one in self.measured if isinstance(one, Comparison)]

    @property
    def margin(self) -> float:
        """A ratio whose interval lies within so much of 1 is "the same within" it."""
        return self.settings["margin"] if self.settings else MARGIN

    @property
    def _first_trained(self) -> Condition:
        return next(part.conditions[0] for part in self.parts if part.limits)

    @property
    def metric(self) -> str:
        """The metric of the training runs, with its unit, for an axis."""
        first = self._first_trained
        return f"{data.title(first.data)} {metrics.label(workloads.load(first.workload))}"

    @property
    def caveat(self) -> str:
        """The reason why the metric is not that of the whole original data; it stands beside every one."""
        return data_warning(self._first_trained, self.inputs)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All that was measured, tidy: see ``benchlib.stats.frame``; subjects as :mod:`naming` calls them."""
        from benchlib.plotting import naming  # matplotlib takes long to import: not for checking parameters

        named = naming.name_subjects(tidy.concat(self._frame(number, part) for number, part in enumerate(self.parts)))
        at = " on " + named["host"].fillna("a host") if named["host"].nunique() > 1 else ""  # nothing leads across
        return named.assign(subject=named["subject"] + at)  # a baseline is on the same host

    def _frame(self, number: int, part: Part) -> pd.DataFrame:
        common = {"notebook": self.name, "task": part.task, "part": number, "margin": self.margin}
        beside = list(part.beside(part.measured)) if part.beside else []
        if isinstance(part.measured, TrainingRuns):
            return tidy.of_training(part.measured, beside, **common)
        if part.measured is None:
            return tidy.of_rows(beside, kind=tidy.COMPARISON, **common)
        why = {"why": tidy.IMPOSSIBLE, "baseline": part.conditions[0]}
        for one, certificate in part.refused.items():
            beside.append(tidy.gap_row("throughput_ratio", one, reason=_reason(certificate), **why))
        roof_s = self.ceiling.roof_s if self.ceiling else None
        every = [*beside, *derived_ratios.pair_rows(part.measured)]
        return tidy.of_comparison(part.measured, every, roof_s=roof_s, **common)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All training runs, a row each (see ``TrainingRuns.runs``), with subject, task, part and threshold."""
        return self._training_frame(TrainingRuns.runs)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """All epochs of all training runs, a row each (see ``TrainingRuns.curves``), as :attr:`runs`."""
        return self._training_frame(TrainingRuns.curves)

    def _training_frame(self, rows: Callable[[TrainingRuns], pd.DataFrame]) -> pd.DataFrame:
        from benchlib.plotting import naming

        frames = [
            rows(part.measured).assign(task=part.task, part=number, threshold=part.measured.threshold)
            for number, part in enumerate(self.parts)
            if isinstance(part.measured, TrainingRuns)
        ]
        every = pd.concat([one for one in frames if len(one)] or [pd.DataFrame({"label": []})], ignore_index=True)
        named = naming.subjects(one for measured in self.measured for one in measured.conditions)
        every.insert(0, "subject", every["label"].map({str(one): name for one, name in named.items()}))
        return every

    def rows(self, quantity: str) -> pd.DataFrame:
        """The rows of a quantity in the frame, with the other values of their conditions (see ``tables.wide``)."""
        return wide(self.frame, quantity)

    def warnings(self) -> list[str]:
        """The faults that make some numbers less sure than they look, beside the width of intervals."""
        return [*caveats.of_rows(self.frame), *caveats.throttled_blocks(self.measured)]

    def failures(self) -> pd.DataFrame:
        """The failures, a row a process."""
        others = failures_of([], self.certificates.values()), failures_beside(self.ceiling, self.timers)
        every = [*(one.failures() for one in self.measured), *others]
        return pd.concat([one for one in every if len(one)] or every[-1:], ignore_index=True)

    # Figures and tables; each is saved, too.

    def figure(self, name: str, picture: Picture) -> HTML:
        """A figure with its caption, as SVG and PDF, and its rows as CSV in ``outputs/figures``."""
        from benchlib.plotting import figures

        drawn = picture.draw(self)
        if drawn is None:
            return tables.bullets([f"No figure of {name}: everything failed, or there is nothing to compare."])
        caption, figure = drawn
        paths = figures.save(figure, self.folder / "figures", f"{self.name}_{name}")
        rows = self.folder / "figures" / f"{self.name}_{name}.csv"
        picture.shown_rows(self).rename(columns={"files": tables.FILES}).to_csv(rows, index=False)
        self._figures[name] = (caption, [*paths, rows])
        return tables.image(next(one for one in paths if one.suffix == ".svg").read_bytes(), caption)

    def table(self, name: str, table: Table | Listed, report: bool = False) -> HTML:
        """A table with its caption, rounded; as CSV in ``outputs/tables`` it is not. The ``report`` shows it, too."""
        frame = table.of(self)
        if not len(frame):
            return tables.bullets([f"No table of {name}: there is nothing to show."])
        self._tables[name] = (table.caption, frame)
        self._in_report += [name] * (report and name not in self._in_report)
        return tables.html(frame, table.caption)

    def findings(self, *sentences: Sentences) -> HTML:
        """Sentences computed from the results, the first of which answer the question, warnings and notes."""
        nothing = " ".join(["Nothing that was measured answers this.", *self._absent])
        self._findings = [one for each in sentences for one in each(self)] or [nothing]
        return tables.bullets([*self._findings, *caveats.early_ends(self.comparisons), *self.warnings(), *self.notes])

    def show_failures(self) -> HTML:
        return tables.failed(self.failures())

    def finish(self, **more: Any) -> None:
        """Glue the summary, which the report reads."""
        import scrapbook

        scrapbook.glue("summary", {**self.summary(), **more})

    def summary(self) -> dict[str, Any]:
        """The report's input, in plain types. Paths are relative to the folder of results."""
        folder = self.folder / "tables"
        drawn = {file: caption for caption, files in self._figures.values() for file in files[:-1]}
        saved = {files[-1]: f"The rows of the figure. {caption}" for caption, files in self._figures.values()}
        for name, (caption, frame) in self._tables.items():
            saved |= dict.fromkeys(tables.save(frame, folder, f"{self.name}_{name}", caption), caption)
        saved |= dict.fromkeys(latex.save(self._tables, folder, self.name), self.title)
        if len(self.frame):
            tidy.save(self.frame, file := folder / f"{self.name}_frame.parquet")
            saved[file] = "All that was measured, tidy: a row for one quantity of one condition."
        captions = {file.relative_to(self.folder).as_posix(): caption for file, caption in (drawn | saved).items()}
        certificates = [one for measured in self.measured for one in measured.certificates.values()]
        certificates += self.certificates.values()
        failed = self.failures()
        return {
            "title": self.title,
            "question": self.question,
            "answers": self._findings[:3],
            "findings": self._findings,
            "warnings": self.warnings(),
            "notes": self.notes,
            "figures": list(captions)[: len(drawn)],
            "tables": list(captions)[len(drawn) :],
            "captions": captions,
            "in_report": [  # as it is shown: the report reads no table back
                [f"tables/{self.name}_{name}.csv", tables.html(frame, caption).data]
                for name, (caption, frame) in self._tables.items()
                if name in self._in_report
            ],
            "failures": len(failed),
            "crashed": int(failed["crashed"].sum()),
            "failed": failed.astype(str).to_dict("records"),
            "certificates": [  # of thousands of arrays each has a digest, which the certificate's file keeps
                one.model_dump_json(exclude={"digests", "reference_digests"})
                for one in {one.condition: one for one in certificates}.values()
            ],
            "certified": sorted({one.file for one in certificates if one.file}),
            "measurements": sorted({file for measured in self.measured for file in measured.files()}),
            "awaited": self.awaited,
            "conditions": [one.model_dump(mode="json") for one in self.every],
        }


def _reason(certificate: Certificate) -> str:
    """Why a framework refused, in a line without rules and empty lines."""
    lines = (line.strip(" -") for line in certificate.failure.sentence.splitlines())
    return textwrap.shorten(" ".join(filter(None, lines)), 240, placeholder=" ...")


def _condition(choices: Mapping[str, Any]) -> Condition:
    """The condition of these choices; a WrongChoice names the first that does not fit those before it."""
    try:
        whole = Condition(**choices)
    except BenchlibError:
        names = list(choices)
        for end in range(2, len(names) + 1):  # workload and framework come first
            try:
                Condition(**{name: choices[name] for name in names[:end]})
            except BenchlibError as error:
                name = names[end - 1]
                raise WrongChoice(name, choices[name], str(error).removeprefix("Condition: ")) from None
        raise
    if name := preflight.too_large(whole):
        raise WrongChoice(name, choices.get(name), preflight.TOO_LARGE)
    return whole


def named_tasks(tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each task's name, the common part of its conditions, and the limits of its training. Where several have one
    workload and data, their names give the differences, too.
    """
    choices = [{**task["hyperparameters"], **task, "hyperparameters": None} for task in tasks]
    for task, own in zip(tasks, choices, strict=True):
        alike = [one for one in choices if (one["workload"], one["data"]) == (own["workload"], own["data"])]
        apart = [key for key in own if any(other.get(key) != own[key] for other in alike)]
        name = [f"{own['workload']} on {own['data']}", *(f"{key.replace('_', ' ')} {own[key]}" for key in apart)]
        limits = {key: task.get(key) for key in ("epochs", "most_epochs", "threshold")}
        yield ", ".join(name), {key: task[key] for key in task if key not in limits}, limits


def metric_name(workload: str, of: str) -> str:
    """A workload's metric on a data set, as people call it."""
    return f"{data.title(of)} {metrics.name(workloads.load(workload))}"


def data_warning(condition: Condition, inputs: Path) -> str:
    """The reason why the metric is not that of the whole original data; it stands beside every one."""
    special = data_files.describe(prepare(condition, 0, inputs))["note"]  # such as files that are not the original's
    if condition.train_samples is None:
        return special
    unit = workloads.load(condition.workload).unit
    subset = f"Trained on {condition.train_samples:,} of the training {unit} only, so the metric is lower."
    return " ".join(filter(None, [subset, special]))


def ceiling_text(ceiling: Ceiling) -> str:
    """The machine's limits, in words."""
    limits = f"The machine's limits on {ceiling.device} in {ceiling.precision}"
    if not (ceiling.multiply_adds_per_s and ceiling.bytes_per_s):
        return f"{limits} could not be measured."
    rate, bandwidth = tables.number(ceiling.multiply_adds_per_s / 1e9), tables.number(ceiling.bytes_per_s / 2**30)
    most = f"{rate} thousand million multiply-adds a second ({ceiling.best['multiply_adds']})"
    return f"{limits}: {most} and {bandwidth} GiB/s ({ceiling.best['least_bytes']})."


def failures_beside(ceiling: Ceiling | None, timers: Iterable[SyncCheck] = ()) -> pd.DataFrame:
    """The failures beside comparisons and runs, as ``comparison.failures()``; ``file`` is the folder."""
    rows = [(str(one.condition), "timer", 0, 0, one.failure, "timers/", one.crashed) for one in timers if one.failure]
    if ceiling:
        limits = f"the machine's limits on {ceiling.device}"
        rows += [(limits, "ceiling", 0, 0, failure, "ceilings/", ceiling.crashed) for failure in ceiling.failures]
    return pd.DataFrame(rows, columns=failures_of([], []).columns)
