"""The report: what all notebooks of a profile gave, gathered from their summaries and measurements."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import scrapbook
from papermill.exceptions import PapermillException

from benchlib import frameworks, knobs, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import is_within, same_within
from benchlib.analysis.equivalence import DIFFERENT, DROPOUT_TOLERANCES, NOT_CHECKED, Certificate
from benchlib.condition import Condition, implementation
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.measure import gate
from benchlib.store import Measurement
from benchlib.store import frame as frame_of
from benchlib.suite import experiments, records, showing, tables
from benchlib.suite.experiments import parameters as p

if TYPE_CHECKING:
    from IPython.display import HTML


class Parameters(p.Parameters):
    """What the notebooks of a profile have together."""

    minutes: p.Minutes | None  # of measuring; None: each comparison has its own budget


def conditions(parameters: Parameters) -> list[Condition]:
    """The report measures nothing."""
    return []


class Report:
    """The summaries of the notebooks of one profile, and what is missing of them, or stale."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.summaries: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}
        self.stale: dict[str, str] = {}
        for notebook in experiments.NOTEBOOKS[:-1]:
            reason = _why_missing(lab.folder, notebook)
            if reason:
                self.missing[notebook] = reason
                continue
            try:
                self.summaries[notebook] = _summary(lab.folder, notebook)
            except BenchlibError as error:
                self.missing[notebook] = f"{error}."
                continue
            if stale := records.read(lab.folder, notebook).get("stale"):
                self.stale[notebook] = stale
                self.summaries[notebook]["title"] += " (stale)"

    def show_glance(self) -> HTML:
        """For a reader who reads one page: what was compared, on what, what came out, how sure it is."""
        return tables.html(
            pd.DataFrame(
                [
                    ("What was compared", self._compared_text()),
                    ("On what", self._machine_text()),
                    ("What came out", "\n".join(self._headlines())),
                    ("How sure it is", self._sure_text()),
                ],
                columns=["", " "],
            ),
            "This report on one page; every sentence is taken up below.",
        )

    def show_missing(self) -> HTML:
        """Notebooks that failed, have not run or are stale, files that are damaged or gone, and how many measurements
        failed.
        """
        told = [f"{name}: {reason}" for name, reason in self.missing.items()]
        told += [
            f"{name}: a result of before, which is stale ({reason}): nothing was measured for another; run again with "
            "time to measure."
            for name, reason in self.stale.items()
        ]
        told += self._wrong
        told += [
            f"{path.relative_to(self.lab.folder)}: could not be used, and was measured again; delete it when it has "
            "told you what you want to know."
            for path in sorted(self.lab.store.damaged.glob("*.parquet"))
        ]
        told += [
            f"{path} {self._why_not(path)}; run again." for path in self._results if self._why_not(path) is not None
        ]
        places = _distinct(
            {name: m.machine.get(name) for name in ("cpu", "cores", "gpus", "npus")} for m in self._measured
        )
        if len(places) > 1:
            named = "; ".join(map(_place, places))
            told.append(
                f"Measurements of {len(places)} machines are gathered here ({named}); "
                "each comparison is of one, but do not compare across them."
            )
        told += [
            f"{name}: {summary['failures']} measurements failed (see what failed)."
            for name, summary in self.summaries.items()
            if summary["failures"]
        ]
        return tables.bullets(told or ["Nothing is missing: every notebook has run, and no measurement failed."])

    def show_verdicts(self) -> HTML:
        """The verdicts on the published claims."""
        path = "tables/claims_verdicts.csv"
        if "claims" not in self.summaries or self._why_not(path) is not None:
            return tables.bullets(["The claims have not been judged: run again."])
        judged = pd.read_csv(self.lab.folder / path)
        doubts = judged[judged["doubt"] != tables.MISSING]
        frame = judged.drop(columns="doubt")
        told = tables.html(frame, "Each claim, what it was published of, and the verdict on this machine.")
        return _html(
            [told.data, tables.bullets(f"{row.claim}, in doubt: {row.doubt}" for row in doubts.itertuples()).data]
        )

    def show_findings(self) -> HTML:
        """The findings of each notebook."""
        return _html(
            f"<h3>{html.escape(summary['title'])}</h3>{tables.bullets([*summary['findings'], *summary['notes']]).data}"
            for summary in self.summaries.values()
        )

    def show_compared(self) -> HTML:
        """A row for each notebook, workload, subject and device: at which batch sizes."""
        rows = [
            {**condition, "notebook": notebook, "subject": Condition(**condition).subject}
            for notebook, summary in self.summaries.items()
            for condition in summary["conditions"]
        ]
        names = ["notebook", "workload", "data", "image size", "subject", "precision", "device"]
        for row in rows:
            row["image size"] = row["hyperparameters"].get("image_size", "")
        groups = pd.DataFrame(rows, columns=[*names, "batch_size"]).groupby(names, sort=False)["batch_size"]
        frame = pd.DataFrame({"batch sizes": groups.agg(_list), "conditions": groups.size()}).reset_index()
        used = [workloads.load(name) for name in dict.fromkeys(frame["workload"])]
        sources = tables.bullets(f"{workload.name}: {workload.source}." for workload in used)
        return _html([tables.html(frame, "What was compared.").data, sources.data])

    def show_machine(self) -> HTML:
        """The machines that the measurements were made on, the versions in use, and the code."""
        measured = self._measured
        rows = [row for one in _distinct(m.machine for m in measured) for row in _machine_rows(one)]
        for name in dict.fromkeys(m.condition.implementation for m in measured):
            for versions in _distinct(
                m.versions for m in measured if m.condition.implementation == name and m.versions
            ):
                rows.append((name, " ".join(f"{package} {version}" for package, version in versions.items())))
        rows.append(("code", ", ".join(sorted({m.commit for m in measured}))))
        frame = pd.DataFrame(rows, columns=["what", "it is"])
        return tables.html(frame, "The machine, and the versions of what was measured.")

    def show_settings(self) -> HTML:
        """What was in force in the workers, read back from the frameworks after the first step."""
        rows = [
            {
                "subject": m.condition.subject,
                "device": m.condition.device,
                "threads asked for": m.condition.threads,
                **m.settings,
            }
            for m in self._measured
            if m.settings
        ]
        if not rows:
            return tables.bullets(["There are no measurements."])
        frame = pd.DataFrame(rows)
        names = ["subject", "device", "threads asked for"]
        settings = [name for name in frame if name not in names]
        groups = frame.fillna({"threads asked for": 0}).groupby(names, sort=False)
        told = (
            groups[settings]
            .agg(lambda values: ", ".join(dict.fromkeys(_text(v) for v in values.dropna())))
            .reset_index()
        )
        text = told[settings].apply(
            lambda row: "; ".join(f"{name} {row[name]}" for name in settings if row[name]), axis=1
        )
        asked = [str(int(threads)) if threads else "all" for threads in told["threads asked for"]]
        shown = told[names].assign(**{"threads asked for": asked}, settings=text)
        return tables.html(shown, "Settings in force, read back from the frameworks after the first step.")

    def show_results(self) -> HTML:
        """By notebook, all figures and the tables that carry the findings."""
        parts = []
        for summary in self.summaries.values():
            parts.append(f"<h3>{html.escape(summary['title'])}</h3>")
            images = [path for path in summary["figures"] if path.endswith(".svg")]
            for path in [*images, *summary["in_report"]]:
                file, caption, why_not = self.lab.folder / path, summary["captions"][path], self._why_not(path)
                if why_not is not None:
                    shown = tables.bullets([f"{path} {why_not}: run again."])
                elif path.endswith(".svg"):
                    shown = showing.image(file.read_bytes(), caption)
                else:
                    shown = tables.html(pd.read_csv(file), caption)
                parts.append(shown.data)
        return _html(parts)

    def show_resolution(self) -> HTML:
        """What the A/A controls of each notebook show: how often their interval includes 1, how often it lies within
        the margin of 1, and how wide it is.
        """
        rows = [{"notebook": notebook, **_resolution(frame)} for notebook, frame in self._controls().items()]
        if not rows:
            return tables.bullets(["No A/A was measured: nothing is known of the resolution."])
        caption = (
            "The baseline against itself (A/A). About 19 of 20 intervals should include 1; a difference smaller than "
            "the half width cannot be seen. Within the margin (what its notebook calls the same) an interval shows "
            "that the two differ by no more."
        )
        return tables.html(pd.DataFrame(rows), caption)

    def show_certificates(self) -> HTML:
        """Is each condition's model the reference's, and how far apart are they? Those that are not, one by one."""
        told = dict.fromkeys(one for summary in self.summaries.values() for one in summary["certificates"])
        certificates = [Certificate.model_validate_json(one) for one in told]
        if not certificates:
            return tables.bullets(["No model was checked."])
        rows = [_certified(certificate) for certificate in certificates]
        names = ["workload", "subject", "device", "verdict"]
        checks = list(dict.fromkeys(name for row in rows for name in row if name not in names))
        groups = pd.DataFrame(rows, columns=[*names, *checks]).groupby(names, sort=False)
        frame = groups[checks].max().map("{:.1e}".format).replace("nan", tables.MISSING).reset_index()
        frame.insert(3, "conditions", groups.size().to_numpy())
        caption = (
            f"Equivalence: largest relative difference from the reference, {showing.references(certificates)}, in the "
            "same state on the same batches, over the conditions that were checked and all trials; less what rounding "
            "explains, which the certificates have, with what dropout was seen to do."
        )
        told = [*_neutralised(certificates), *_unexercised(certificates)]
        return _html([tables.html(frame, caption).data, tables.bullets(told).data])

    def show_knobs(self) -> HTML:
        """The ledger of knobs: every setting outside the code that was set, for what, why, and what it does here."""
        rows = [knob for summary in self.summaries.values() for knob in summary["knobs"]]
        names = ["name", "value", "reason", "source"]
        rows = [{"environment": DEFAULT, **row} for row in rows]  # an older benchlib knew no other
        frame = pd.DataFrame(rows, columns=[*names, "framework", "environment", "device", "lane"]).drop_duplicates()
        frame["knob"] = frame["name"] + "\n" + frame["value"]
        frame["why"] = frame["reason"] + " (" + frame["source"] + ")"
        effects = [effect for summary in self.summaries.values() for effect in summary.get("effects", [])]
        told = [_effect(row, effects) for row in frame.to_dict("records")]
        where = showing.implementations(frame) + " " + frame["lane"] + " " + frame["device"]
        groups = frame.assign(where=where, effect=told).groupby(["knob", "why"], sort=False)
        ledger = groups.agg(**{"set for": ("where", _distinct_lines), "measured effect": ("effect", _distinct_lines)})
        ledger = ledger.reset_index()[["knob", "set for", "measured effect", "why"]]
        caption = (
            "Knobs set for the workers. Measured effect: throughput with the knob over throughput without it, from the "
            "notebook instrument, whose workload and batch size it is true of."
        )
        left_out = sorted({name for summary in self.summaries.values() for name in summary.get("left_out", [])})
        note = f"Set in the shell, and left out of the workers' environments: {', '.join(left_out)}."
        return _html([tables.html(ledger, caption).data, *([tables.bullets([note]).data] if left_out else [])])

    def show_failures(self) -> HTML:
        """Every measurement that failed."""
        failed = [row for summary in self.summaries.values() for row in summary["failed"]]
        return showing.failed(pd.DataFrame(failed))

    def show_again(self) -> HTML:
        """A row for each comparison and training run: its key, under which its measurements lie on disk."""
        measured = frame_of(self._measured)
        if not len(measured):
            return tables.bullets(["There are no measurements."])
        groups = measured.groupby(["kind", "group"], sort=False)
        frame = pd.DataFrame(
            {
                "conditions": groups["label"].agg(lambda labels: " | ".join(dict.fromkeys(labels))),
                "processes": groups.size(),
                "seeds": groups["seed"].agg(_list),
            }
        ).reset_index()
        path = Path("tables", "measurements.csv")
        measured.to_csv(self.lab.folder / path, index=False)
        caption = (
            f"All measurements of this report; {path} has a row for each process, with versions, knobs and code. "
            "Seeds are those of dropout; a comparison's weights and batches have seed 0, a training run's have its own."
        )
        return tables.html(frame, caption)

    def _controls(self) -> dict[str, pd.DataFrame]:
        """By notebook, the rows of its frame that are an A/A with an interval."""
        found = {}
        for notebook, summary in self.summaries.items():
            path = f"tables/{notebook}_frame.parquet"
            if path in summary["tables"] and self._why_not(path) is None:
                frame = tidy.load(self.lab.folder / path)
                controls = frame[frame["quantity"] == "control_ratio"].dropna(subset=["estimate", "low", "high"])
                if len(controls):
                    found[notebook] = controls[["estimate", "low", "high", "margin"]]
        return found

    @property
    def _results(self) -> list[str]:
        """The figures and tables of the summaries."""
        return [path for summary in self.summaries.values() for path in (*summary["figures"], *summary["tables"])]

    def _why_not(self, path: str) -> str | None:
        """Why a figure or a table is not to be shown, in words; None: it is there as its notebook made it."""
        return self._wrong_files.get(path, None if (self.lab.folder / path).is_file() else "is gone")

    @cached_property
    def _wrong_files(self) -> dict[str, str]:
        """Files that are not there as a notebook made them, with what is wrong."""
        return records.all_wrong(self.lab.folder, experiments.NOTEBOOKS)

    def _compared_text(self) -> str:
        made = [Condition(**one) for summary in self.summaries.values() for one in summary["conditions"]]
        if not made:
            return "nothing yet"
        subjects = dict.fromkeys(f"{one.implementation} {one.mode}" for one in made)
        names = dict.fromkeys(one.workload for one in made)
        read = dict.fromkeys(one.data for one in made)
        data = ", ".join(name for name in read if name != "random")
        random = "random numbers" if "random" in read else ""
        return (
            f"{', '.join(subjects)}\n{len(names)} workload{'s' * (len(names) > 1)}: {', '.join(names)}\n"
            f"data: {', and '.join(filter(None, [data, random]))}"
        )

    def _machine_text(self) -> str:
        told = []
        for one in _distinct(m.machine for m in self._measured):
            accelerators = [*one.get("gpus", []), *one.get("npus", [])]
            virtual = " (virtual)" if one.get("virtual") else ""
            told.append(
                f"{one['cores']} cores of {one['cpu']}{virtual}, {one['memory_gib']:g} GiB; "
                f"{', '.join(accelerators) or 'no accelerator'}"
            )
        versions = _distinct(
            {name: m.versions[name] for name in m.versions if name not in {"python", "numpy", "glibc", "c++"}}
            for m in self._measured
        )
        told.append("; ".join(map(_versions_text, versions)))
        days = sorted(m.started_utc[:10] for m in self._measured)
        if days:
            told.append(f"measured {days[0]}" + (f" to {days[-1]}" if days[-1] != days[0] else ""))
        return "\n".join(filter(None, told))

    def _headlines(self) -> list[str]:
        """The claims' count of verdicts, and the first finding of each notebook."""
        order = ["claims", *(name for name in self.summaries if name != "claims")]
        return [
            f"{summary['title']}{_of_what(summary['conditions'])}: {_without_controls(finding)}"
            for summary in map(self.summaries.get, order)
            if summary is not None
            for finding in summary["findings"][:1]
        ]

    def _sure_text(self) -> str:
        controls, told = list(self._controls().values()), []
        if controls:
            every = pd.concat(controls).drop_duplicates()
            found, margins = _resolution(every), set(every["margin"])
            same = same_within(*margins) if len(margins) == 1 else "the same within their notebooks' margins"
            told.append(
                f"Identical processes against each other (A/A): {found['A/A interval includes 1']} intervals include "
                f"1, {found['within the margin of 1']} are {same}, with half-widths of "
                f"{found['half_width_median']:.0f} % in the median and "
                f"{found['half_width_largest']:.0f} % at most; a comparison cannot show less than its own."
            )
        told_of = dict.fromkeys(one for summary in self.summaries.values() for one in summary["certificates"])
        certificates = [Certificate.model_validate_json(one) for one in told_of]
        same = sum(certificate.same for certificate in certificates)
        if certificates:
            told.append(
                f"{same} of {len(certificates)} models agree with the reference's on the same weights and batches, "
                f"within the tolerance of each quantity, in every trial.{_without_proof(certificates)}"
            )
        failed = sum(summary["failures"] for summary in self.summaries.values())
        told.append(
            f"{len(self._measured):,} processes were measured, {failed} failed; every interval is a 95 % interval over "
            "processes, of training runs over their seeds."
        )
        damaged = self._wrong or any(self._why_not(path) is not None for path in self._results)
        if self.missing or damaged:
            told.append(f"Missing: {', '.join([*self.missing, *(['damaged files'] if damaged else [])])} (see below).")
        if self.stale:
            told.append(f"Stale, of before: {', '.join(self.stale)} (see below).")
        return "\n".join(told)

    @property
    def _measured(self) -> list[Measurement]:
        return self._read[0]

    @property
    def _wrong(self) -> list[str]:
        """What of the measurements is damaged or gone, by name."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[Measurement], list[str]]:
        """Those that the summaries are made of (the folder may hold others, of older code or parameters), and what is
        wrong with the files of the others.
        """
        found: dict[str, list[Measurement]] = {}
        wrong = {}
        for key in dict.fromkeys(key for summary in self.summaries.values() for key in summary["measurements"]):
            said = self._wrong_files.get(f"measurements/{key}.parquet")
            try:
                if said is None:
                    found[key] = self.lab.store.outline(key)
            except (OSError, ValueError, KeyError):
                said = "cannot be read"
            if said is not None:
                wrong[key] = self._why_wrong(key, said)
        every = [m for measured in found.values() for m in measured]
        return sorted(every, key=lambda m: (m.started_utc, m.file, m.repetition)), list(wrong.values())

    def _why_wrong(self, key: str, said: str) -> str:
        """What is wrong with a file that is not what the notebook's numbers were made from."""
        path = self.lab.store.path(key)
        try:
            measured = self.lab.store.load(key)
        except BenchlibError as error:
            return str(error)
        return f"{path} {said}" + ("" if measured is None else ": it was put there from elsewhere") + "; run again."


def _why_missing(folder: Path, notebook: str) -> str:
    """In words; empty if the notebook succeeded."""
    record = records.read(folder, notebook)
    if record is None:
        return "has not run."
    if record["status"] == "failed":
        return f"failed in {record['error']['cell']}: {record['error']['text']}"
    return "" if record["status"] == "succeeded" else "did not come to its end."


def _summary(folder: Path, notebook: str) -> dict[str, Any]:
    path = folder / "notebooks" / f"{notebook}.ipynb"
    try:
        scraps = scrapbook.read_notebook(str(path)).scraps
    except (OSError, ValueError, PapermillException) as error:
        raise BenchlibError(f"{path} is gone or was cut ({type(error).__name__}); run again") from None
    if "summary" not in scraps:
        raise BenchlibError(f"{path}: it glued no summary; delete it and run again")
    return scraps["summary"].data


def _certified(certificate: Certificate) -> dict[str, Any]:
    condition, verdict = certificate.condition, certificate.verdict
    if not certificate.same:
        verdict = f"{verdict}: {condition} {certificate.reason}".strip()
    checks = {one.name: one.difference for one in certificate.checks if one.name not in DROPOUT_TOLERANCES}
    named = {"workload": condition.workload, "subject": condition.subject, "device": condition.device}
    return {**named, "verdict": verdict, **checks}


def _neutralised(certificates: list[Certificate]) -> list[str]:
    """For each workload what was switched off or set for the gate only, and why."""
    told = {}
    for certificate in certificates:
        workload = workloads.load(certificate.condition.workload)
        for name, value in certificate.neutralised.items():
            reason = gate.reason(certificate.condition, name)
            told[f"{workload.name}, for the gate only: {name} {value} ({reason})."] = None
    return list(told)


def _unexercised(certificates: list[Certificate]) -> list[str]:
    """For each workload what its data can contain, and no sample did that was compared."""
    unmet = {one.condition.workload: one.unexercised for one in certificates if one.unexercised}
    return [
        f"{name}, not exercised by any sample that was compared: {', '.join(some)}." for name, some in unmet.items()
    ]


def _place(machine: dict[str, Any]) -> str:
    return ", ".join(
        [f"{machine['cores']} cores of {machine['cpu']}", *(machine["gpus"] or []), *(machine["npus"] or [])]
    )


def _machine_rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    names = {"memory_gib": "memory (GiB)", "huge_pages": "huge pages"}
    return [(names.get(name, name), _text(value)) for name, value in told.items() if value not in (None, "")]


def _effect(knob: dict[str, Any], effects: list[dict[str, Any]]) -> str:
    """What a knob of the ledger was measured to do: alone, or at least together with the rest of its lane."""
    when = {one.name: one.when for one in knobs.declared(knob["framework"])}.get(knob["name"])
    if when == knobs.GATE:
        return "none: nothing is timed in the gate"
    if when != knobs.TUNED:
        return "not measured: lanes do not differ in it"
    mine = [one for one in effects if _where(one) == _where(knob)]
    for name, words in ((knob["name"], ""), (None, ", with the rest of the lane")):
        found = [f"{_where(one)[0]} {one['mode']} {one['effect']}{words}" for one in mine if one["knob"] == name]
        if found:
            return "; ".join(found)
    return f"{_where(knob)[0]}: not measured in this profile"


def _where(row: dict[str, Any]) -> tuple[str, str]:
    """Of a knob or its effect."""
    return implementation(row["framework"], row.get("environment", DEFAULT)), row["device"]


def _without_proof(certificates: list[Certificate]) -> str:
    different = sum(certificate.verdict == DIFFERENT for certificate in certificates)
    unchecked = sum(certificate.verdict == NOT_CHECKED for certificate in certificates)
    told = [f"{different} differed"] * bool(different) + [f"{unchecked} could not be run or checked"] * bool(unchecked)
    return f" {' and '.join(told)}: there is no ratio of them." if told else ""


def _versions_text(versions: dict[str, str]) -> str:
    """A framework's version, and in brackets those of the libraries that it brings."""
    of_frameworks = {one for name in frameworks.names() for one in frameworks.distributions(name)}
    own = [f"{name} {version}" for name, version in versions.items() if name in of_frameworks]
    brought = [f"{name} {version}" for name, version in versions.items() if name not in of_frameworks]
    return ", ".join(own) + (f" ({', '.join(brought)})" if brought else "")


def _of_what(conditions: list[dict[str, Any]]) -> str:
    """In brackets what all of a notebook's conditions share of workload, image size and batch size, if it is one
    workload: two notebooks may have it in different sizes.
    """
    if len({one["workload"] for one in conditions}) != 1:
        return ""
    sizes = {one["hyperparameters"].get("image_size") for one in conditions}
    batches = {one["batch_size"] for one in conditions}
    told = [conditions[0]["workload"]]
    told += [f"images of {size} x {size}" for size in sizes if size and len(sizes) == 1]
    told += [f"batch {batch}" for batch in batches if len(batches) == 1]
    return f" ({', '.join(told)})"


def _distinct_lines(values: pd.Series) -> str:
    return "\n".join(dict.fromkeys(values))


def _distinct(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _without_controls(finding: str) -> str:
    """A finding without the intervals of A/A, as long as they include 1; that one does not is said in short."""

    def told(control: re.Match[str]) -> str:
        interval, excludes, _ = control[1].partition(", which excludes 1")
        return f" (A/A {interval} excludes 1: a difference of its size shows nothing)" if excludes else ""

    return re.sub(r" [(]A/A ((?:[^()]|[(][^()]*[)])*)[)]", told, finding)


def _resolution(controls: pd.DataFrame) -> dict[str, Any]:
    low, high = controls["low"], controls["high"]
    half = 50 * (high - low) / controls["estimate"]
    including, within = ((low <= 1) & (high >= 1)).sum(), is_within(low, high, controls["margin"]).sum()
    return {
        "comparisons": len(controls),
        "A/A interval includes 1": f"{including} of {len(controls)}",
        "within the margin of 1": f"{within} of {len(controls)}",
        "half_width_median": half.median(),
        "half_width_largest": half.max(),
    }


def _html(parts: Any) -> HTML:
    from IPython.display import HTML

    return HTML("".join(parts))


def _list(values: pd.Series) -> str:
    return ", ".join(str(value) for value in sorted(set(values)))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
