"""Studies: what a notebook asks, compares, trains and shows.

A notebook's cell tagged ``parameters`` is the schema of its parameter files (``benchlib.parameter_types``). Its cell
tagged ``design`` makes a :class:`Study` and says what is compared and trained. ``benchlib.notebooks`` executes both in
the suite's process. ``study.measure()`` measures; then figures and tables are made of ``study.frame``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from benchlib import data, latex, manifest, metrics, tables, tensorboard, workloads
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.doubts import disturbances, disturbed_controls, disturbed_runs, throttled, unfinished
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError, shown
from benchlib.lab import Lab
from benchlib.parameter_types import MOST_CONDITIONS, Settings
from benchlib.provenance import knobs
from benchlib.runner import availability, preflight
from benchlib.runner.interrupt import one_interrupt
from benchlib.runner.roofline import Ceiling
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.measured import failures as failures_of
from benchlib.stats.training_runs import TrainingRuns
from benchlib.tables import Listed, Runs, Table, wide
from benchlib.validation import explain
from benchlib.worker import files as data_files

if TYPE_CHECKING:
    from IPython.display import HTML

    from benchlib.plotting import Picture

ANSWERS = 3  # so many of the findings answer the question

Sentences = Callable[["Study"], Iterable[str]]
Measured = Comparison | TrainingRuns
More = Callable[[Any], Iterable[Mapping[str, Any]]]
"""More rows of the frame, of what was measured."""


class WrongChoice(BenchlibError):
    """A value of a parameter fits no condition."""

    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"{name}: {shown(value)}: {why}")
        self.name, self.value, self.why = name, value, why


@dataclass
class Part:
    """What is measured together: a comparison, or training runs within their ``limits``."""

    conditions: list[Condition]
    task: str  # empty: the workload and its data
    beside: More | None
    limits: dict[str, Any] | None = None
    measured: Measured | None = None  # None, too, where there was nothing to measure
    refused: dict[Condition, Certificate] = field(default_factory=dict)  # by their frameworks, in the gate

    @property
    def possible(self) -> list[Condition]:
        """What can be measured, as far as the gate has seen."""
        return [one for one in self.conditions if one not in self.refused]


class Study:
    """A question, what is measured to answer it, and what is shown; its ``name`` is that of its notebook's file."""

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
        self.settings = None if settings is None else _settings(settings)
        self.parameters: dict[str, Any] = {}  # as the suite checked them
        self.parts: list[Part] = []
        self.certificates: dict[str, Certificate] = {}  # by condition key, of those that were to be certified
        self.timers: list[SyncCheck] = []
        self.ceiling: Ceiling | None = None
        self.awaited: list[str] = []  # keys of the measurements that would come next
        self.notes: list[str] = []  # what a reader has to know of machine and data
        self._absent: dict[str, None] = {}
        self._certified: dict[int, list[Condition]] = {}  # by steps of training
        self._timed: list[Condition] = []
        self._made = 0
        self._figures: dict[str, tuple[str, list[Path]]] = {}  # by name: captions and files
        self._tables: dict[str, tuple[str, pd.DataFrame]] = {}
        self._in_report: list[str] = []
        self._findings: list[str] = []

    # The design: what will be measured.

    def conditions(self, subjects: Sequence[Mapping[str, Any]], **choices: Any) -> list[Condition]:
        """A condition of each subject with these choices. One that says ``if_there`` is left out, and noted, where its
        framework is not there, cannot use the device or has no file of the workload.
        """
        made = []
        for subject in subjects:
            framework, workload = subject["framework"], choices["workload"]
            optional = subject.get("if_there", False)
            own = {name: value for name, value in subject.items() if name in Condition.model_fields}
            if optional and framework not in workloads.load(workload).frameworks():
                self._absent[f"Not measured in {framework}: {workload}, of which it has no file."] = None
                continue
            condition = _condition({"workload": workload, **own, **choices})
            why = availability.available(framework, condition.device, condition.environment) if optional else None
            if why:
                self._absent[f"Not measured in {framework}: {why}; run again after that."] = None
            else:
                made.append(condition)
        self._made += len(subjects)
        if self._made > MOST_CONDITIONS:
            raise BenchlibError(
                f"more than {MOST_CONDITIONS:,} conditions: give shorter lists, or divide them among several profiles"
            )
        return made

    def compare(
        self,
        conditions: list[Condition],
        task: str = "",
        beside: More | None = None,
    ) -> None:
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
        """Have models certified that are not measured here, and over so many steps of training, too."""
        self._certified.setdefault(training_steps, []).extend(conditions)

    def check_timers(self, conditions: list[Condition]) -> None:
        """Have the timers of conditions tested."""
        self._timed += conditions

    @property
    def groups(self) -> list[list[Condition]]:
        """The conditions of each comparison."""
        return [part.conditions for part in self.parts if part.limits is None and part.conditions]

    @property
    def every(self) -> list[Condition]:
        """All conditions that will be measured or certified."""
        measured = [condition for part in self.parts for condition in part.conditions]
        return list(dict.fromkeys([*measured, *(one for some in self._certified.values() for one in some)]))

    @property
    def least_runs(self) -> int:
        """Training runs, at the very least: those of conditions that are not compared."""
        compared = {condition for group in self.groups for condition in group}
        trained = [part for part in self.parts if part.limits]
        return sum(len(part.limits["seeds"]) * sum(one not in compared for one in part.conditions) for part in trained)

    # Measuring.

    @one_interrupt()
    def measure(self, lab: Lab | None = None) -> None:
        """Measure what the design says, or take from disk what was measured before."""
        if lab is None:
            lab = Lab(outputs=self.outputs)
            lab.ended = self._ended(lab.folder)
        self.folder, self.inputs = lab.folder, lab.inputs
        certificates = lab.certify(self.every)  # all at once: they share the gate's workers
        for part in self.parts:  # without the first there is nothing to compare with, and all say so
            gated = {one: certificates[one.key] for one in part.conditions[1:]}
            part.refused = {one: certificate for one, certificate in gated.items() if certificate.refused}
        for steps, conditions in self._certified.items():
            self.certificates |= lab.certify(conditions, training_steps=steps)
        groups = [part.possible for part in self.parts if part.limits is None and part.conditions]
        compared = iter(lab.compare_each(groups, **(self.settings or {})))
        for part in self.parts:
            if part.limits:
                part.measured = tensorboard.train(lab, part.possible, **part.limits)
            elif part.conditions:
                part.measured = next(compared)
        self.timers = lab.check_timers(self._timed)
        every = [*self.every, *self._timed]
        if self.peak and every:
            self.ceiling = lab.ceiling(every[0].device, within=list(dict.fromkeys(one.environment for one in every)))
        self.awaited = [one.file for one in lab.comparisons.values()]
        firsts = [part.conditions[0] for part in self.parts if part.conditions]
        firsts += [condition for some in self._certified.values() for condition in some]
        said = [*(data_note(one, self.inputs) for one in firsts), self.ceiling and ceiling_text(self.ceiling)]
        self.notes = list(dict.fromkeys(filter(None, [*said, *self._absent])))
        for name in ("frame", "runs", "curves"):
            self.__dict__.pop(name, None)

    def _ended(self, folder: Path) -> set[str]:
        """Keys of the measurements that the last run showed: its clock ended their comparisons. None, where it was
        asked for another precision, budget or pilot.
        """
        record = manifest.read(folder, self.name) or {}
        before = record.get("parameters", {}).get("settings") or {}
        same = self.settings and all(
            before.get(one) == self.settings[one] for one in ("precision", "budget_s", "pilot")
        )
        return {Path(file).stem for file in record.get("files", ())} if same else set()

    # What was measured.

    @property
    def measured(self) -> list[Measured]:
        """Comparisons and training runs, in order."""
        return [part.measured for part in self.parts if part.measured is not None]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of what was measured."""
        return [one for one in self.measured if isinstance(one, Comparison)]

    @property
    def margin(self) -> float:
        """A ratio whose interval lies within so much of 1 is "the same within" it."""
        return self.settings["margin"] if self.settings else MARGIN

    @property
    def trained(self) -> list[Condition]:
        """The conditions that are trained."""
        return [condition for part in self.parts if part.limits for condition in part.conditions]

    @property
    def metric(self) -> str:
        """What the training runs are evaluated by, with its unit, for an axis."""
        first = self.trained[0]
        return f"{data.title(first.data)} {metrics.label(workloads.load(first.workload))}"

    @property
    def caveat(self) -> str:
        """What makes the metric another than that of the whole original data; it stands beside every one."""
        return data_warning(self.trained[0], self.inputs)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All that was measured, tidy: see ``benchlib.stats.frame``; subjects as :mod:`naming` calls them."""
        from benchlib.plotting import naming  # matplotlib takes long to import: not for checking parameters

        return naming.in_rows(tidy.together(self._in_order(number, part) for number, part in enumerate(self.parts)))

    def _in_order(self, number: int, part: Part) -> pd.DataFrame:
        frame = self._frame(number, part)
        places = {str(one): place for place, one in enumerate(part.conditions)}
        lost = frame["quantity"].isin(frame.loc[frame["reason"].notna(), "quantity"])
        in_place = frame[lost].sort_values("label", key=lambda labels: labels.map(places), kind="stable")
        return pd.concat([frame[~lost], in_place]) if places else frame

    def _frame(self, number: int, part: Part) -> pd.DataFrame:
        common = {"notebook": self.name, "task": _task(part), "part": number, "margin": self.margin}
        beside = list(part.beside(part.measured)) if part.beside else []
        if isinstance(part.measured, TrainingRuns):
            return tidy.of_training(part.measured, beside, **common)
        if isinstance(part.measured, Comparison):
            roof_s = self.ceiling.roof_s if self.ceiling else None
            first = part.conditions[0]
            impossible = [
                tidy.absent("throughput_ratio", one, first, why=tidy.IMPOSSIBLE, reason=_reason(certificate))
                for one, certificate in part.refused.items()
            ]
            every = [*beside, *impossible, *derived_ratios.pairs(part.measured)]
            return tidy.of_comparison(part.measured, every, roof_s=roof_s, **common)
        return tidy.of_rows(beside, kind=tidy.COMPARISON, **common)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All training runs, a row each (see ``TrainingRuns.runs``), with subject, task, part and threshold."""
        return self._trained(TrainingRuns.runs)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """All epochs of all training runs, a row each (see ``TrainingRuns.curves``), as :attr:`runs`."""
        return self._trained(TrainingRuns.curves)

    def _trained(self, rows: Callable[[TrainingRuns], pd.DataFrame]) -> pd.DataFrame:
        from benchlib.plotting import naming

        frames = []
        named = naming.subjects(one for measured in self.measured for one in measured.conditions)
        subjects = {str(one): name for one, name in named.items()}
        for number, part in enumerate(self.parts):
            if isinstance(part.measured, TrainingRuns) and len(of_part := rows(part.measured)):
                of_part.insert(0, "subject", of_part["label"].map(subjects))
                common = {"task": _task(part), "part": number, "threshold": part.measured.threshold}
                frames.append(of_part.assign(**common))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def rows(self, quantity: str) -> pd.DataFrame:
        """Of a quantity in the frame, with what else is known of their conditions (see ``tables.wide``)."""
        return wide(self.frame, quantity)

    def warnings(self) -> list[str]:
        """What makes some numbers less sure than they look: wide intervals, and :meth:`doubts`."""
        return [*unfinished(self.comparisons), *self.doubts()]

    def doubts(self) -> list[str]:
        """Processes that were not steady, or not alone, in words."""
        runs = [measured for measured in self.measured if isinstance(measured, TrainingRuns)]
        of_comparisons = [*disturbances(wide(self.frame, "steady")), *disturbed_controls(self.comparisons)]
        return [*of_comparisons, *disturbed_runs(runs), *throttled([*self.comparisons, *runs])]

    def failures(self) -> pd.DataFrame:
        """What failed, a row a process."""
        none = failures_of([], [])
        beside = failures_beside(self.ceiling, self.timers)
        every = [*(one.failures() for one in self.measured), failures_of([], self.certificates.values())]
        every.append(pd.DataFrame(beside, columns=none.columns))
        return pd.concat([one for one in every if len(one)] or [none], ignore_index=True)

    # What is shown; each is saved, too.

    def figure(self, name: str, picture: Picture) -> HTML:
        """A figure with its caption, as SVG and PDF, and its rows as CSV in ``outputs/figures``."""
        from benchlib.plotting import figures

        drawn = picture.draw(self)
        if drawn is None:
            return tables.bullets([f"No figure of {name}: everything failed, or there is nothing to compare."])
        caption, figure = drawn
        paths = figures.save(figure, self.folder / "figures", f"{self.name}_{name}")
        rows = self.folder / "figures" / f"{self.name}_{name}.csv"
        picture.shown(self).rename(columns={"files": tables.FILES}).to_csv(rows, index=False)
        self._figures[name] = (caption, [*paths, rows])
        return tables.image(figures.svg(figure), caption)

    def table(self, name: str, table: Table | Runs | Listed, report: bool = False) -> HTML:
        """A table with its caption, rounded to what is known; unrounded as CSV in ``outputs/tables``. The ``report``
        shows it, too.
        """
        frame = table.of(self)
        if not len(frame):
            return tables.bullets([f"No table of {name}: there is nothing to show."])
        self._tables[name] = (table.caption, frame)
        self._in_report += [name] * (report and name not in self._in_report)
        return tables.html(frame, table.caption)

    def findings(self, *sentences: Sentences) -> HTML:
        """Sentences computed from the results, the first of which answer the question, and what a reader has to know
        besides, as a list.
        """
        self._findings = [one for each in sentences for one in each(self)]
        return tables.bullets([*self._findings, *self.warnings(), *self.notes])

    def show_failures(self) -> HTML:
        """What failed, or that nothing did."""
        return tables.failed(self.failures())

    def finish(self, **more: Any) -> None:
        """Glue the summary, which the report reads."""
        import scrapbook

        scrapbook.glue("summary", {**self.summary(), **more})

    def summary(self) -> dict[str, Any]:
        """What the report needs, in plain types. Paths are relative to the folder of results."""
        folder, captions = self.folder, {}
        paths: dict[str, list[str]] = {"figures": [], "tables": []}

        def keep(kind: str, caption: str, *files: Path) -> None:
            for file in files:
                paths[kind].append(file.relative_to(folder).as_posix())
                captions[paths[kind][-1]] = caption

        for caption, files in self._figures.values():
            keep("figures", caption, *files[:-1])
            keep("tables", f"What the figure shows. {caption}", files[-1])
        for name, (caption, frame) in self._tables.items():
            keep("tables", caption, *tables.save(frame, folder / "tables", f"{self.name}_{name}", caption))
        keep("tables", self.title, *latex.save(self._tables, folder / "tables", self.name))
        if len(self.frame):
            path = folder / "tables" / f"{self.name}_frame.parquet"
            tidy.save(self.frame, path)
            keep("tables", "All that was measured, tidy: a row for one quantity of one condition.", path)
        certificates = [one for measured in self.measured for one in measured.certificates.values()]
        certificates += self.certificates.values()
        ledger = knobs.Ledger([*(one for each in self.measured for one in each.ledger().processes), *certificates])
        failed = self.failures()
        return {
            "title": self.title,
            "question": self.question,
            "answers": self._findings[:ANSWERS],
            "findings": self._findings,
            "warnings": self.doubts(),  # how narrow the intervals are, the report says once for all
            "notes": self.notes,
            **paths,
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
            "knobs": ledger.frame.to_dict("records"),
            "left_out": ledger.left_out,
        }


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return Settings(**given).model_dump()
    except ValidationError as error:
        raise BenchlibError(explain(error, "settings", Settings.model_fields)) from None


def _reason(certificate: Certificate) -> str:
    """Why a framework refused, in a line without rules and empty lines."""
    lines = (line.strip(" -") for line in certificate.failure.sentence.splitlines())
    return textwrap.shorten(" ".join(filter(None, lines)), 240, placeholder=" ...")


def _task(part: Part) -> str:
    if part.task or not part.conditions:
        return part.task
    return f"{part.conditions[0].workload} on {part.conditions[0].data}"


def _condition(choices: Mapping[str, Any]) -> Condition:
    """The condition of these choices; a WrongChoice names the first that does not fit those before it."""
    try:
        whole = Condition(**choices)
    except BenchlibError:
        given: dict[str, Any] = {}
        for name, value in choices.items():
            given[name] = value
            if "framework" not in given:
                continue  # the default's need not have a file of the workload
            try:
                Condition(**given)
            except BenchlibError as error:
                raise WrongChoice(name, value, str(error).removeprefix("Condition: ")) from None
        raise
    if name := preflight.too_large(whole):
        raise WrongChoice(name, choices.get(name), preflight.TOO_LARGE)
    return whole


def task_names(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tasks are called: by workload and data, and of several called so by what they differ in, too."""
    plain = [f"{task['workload']} on {task['data']}" for task in tasks]
    choices = [{**task["hyperparameters"], **task, "hyperparameters": None} for task in tasks]
    names = []
    for name, own in zip(plain, choices, strict=True):
        alike = [other for called, other in zip(plain, choices, strict=True) if called == name]
        apart = [key for key in own if any(other.get(key) != own[key] for other in alike)]
        names.append(", ".join([name, *(f"{key.replace('_', ' ')} {own[key]}" for key in apart)]))
    return names


def metric_name(workload: str, of: str) -> str:
    """A workload's metric on a data set, as people call it."""
    return f"{data.title(of)} {metrics.name(workloads.load(workload))}"


def data_note(condition: Condition, inputs: Path) -> str:
    """What a reader has to know about the data that was really read for a condition."""
    return " ".join(text for text in (data.get(condition.data).note, data_warning(condition, inputs)) if text)


def data_warning(condition: Condition, inputs: Path) -> str:
    """What of the data makes a metric another than the whole original's would be; it stands beside every one."""
    special = data_files.about(prepare(condition, 0, inputs))["note"]  # such as files that are not the original's
    subset = ""
    if condition.train_samples is not None:
        workload = workloads.load(condition.workload)
        subset = f"Trained on {condition.train_samples:,} of the training {workload.unit} only, so the metric is lower."
    return " ".join(text for text in (subset, special) if text)


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


def failures_beside(ceiling: Ceiling | None, timers: Iterable[SyncCheck] = ()) -> list[dict[str, Any]]:
    """What failed beside comparisons and runs: rows as of ``comparison.failures``; ``file`` is the folder."""
    rows = []
    if ceiling:
        limits = {"label": f"the machine's limits on {ceiling.device}", "role": "ceiling", "file": "ceilings/"}
        rows += [{**limits, "failure": failure, "crashed": ceiling.crashed} for failure in ceiling.failures]
    for check in timers:
        if check.failure:
            timer = {"label": str(check.condition), "role": "timer", "file": "timers/"}
            rows.append({**timer, "failure": check.failure, "crashed": check.crashed})
    return [{"repetition": 0, "seed": 0, **row} for row in rows]
