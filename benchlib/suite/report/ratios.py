"""All ratios of throughput of a report, by comparison, relative to every choice of baseline: what its first picture and
its explorer show.

Nothing is computed here: the ratios are rows of the notebooks' tidy frames (``throughput_ratio``, ``pair_ratio``), each
made from the paired processes of its two conditions.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from benchlib import frameworks, tables
from benchlib.plotting.style import Look, named_once, subject_look
from benchlib.provenance.knobs import SCRATCH
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SAME_WITHIN, SLOWER
from benchlib.stats.intervals import Interval
from benchlib.store import Measurement
from benchlib.suite.report.gathered import Gathered
from benchlib.suite.report.setting import place

NONE, SAME = "none", "same"
KINDS = {FASTER: "faster", SLOWER: "slower", NO_DIFFERENCE: "open"}
"""What a ratio shows, in a word for programs; ``SAME`` within the margin, ``NONE`` where there is no ratio."""

FILTERS = ("framework", "environment", "workload", "mode", "device", "batch_size", "lane", "precision")
"""The choices of a condition by which a reader can ask for some of the ratios."""


@dataclass(frozen=True)
class Member:
    """A condition of a comparison."""

    label: str  # all of it, in words
    subject: str
    details: tuple[
        tuple[str, bool], ...
    ]  # what tells conditions of its workload apart, beside the subject; is it usual?
    choices: Mapping[str, str]  # by the names of FILTERS
    look: Look
    versions: str = ""
    knobs: str = ""


@dataclass(frozen=True)
class Ratio:
    """Throughput of member ``of`` over that of member ``to`` (their places), with its 95 % interval over processes; nan
    where there is none, with the reason as its ``verdict``.
    """

    of: int
    to: int
    interval: Interval
    verdict: str
    reason: str  # it could not be measured here, in words
    files: tuple[str, ...]  # keys of its measurements
    key: str  # names it, here and in the table that ``benchlib trace`` reads

    @property
    def kind(self) -> str:
        """What it shows, in a word: one of KINDS' values, SAME or NONE."""
        if not math.isfinite(self.interval.estimate):
            return NONE
        return SAME if self.verdict.startswith(SAME_WITHIN) else KINDS[self.verdict]

    @property
    def text(self) -> str:
        """The ratio with its interval as tables show it, or why there is none."""
        if self.kind == NONE:
            return self.verdict
        return tables.ratio(self.interval.estimate, self.interval.low, self.interval.high)


@dataclass(frozen=True)
class Group:
    """Conditions that were compared together, the first of which was the baseline."""

    notebook: str
    title: str  # of the notebook
    task: str
    workload: str
    margin: float
    control: Interval  # the A/A of the first; nan where there is none, then ``control_why`` says why
    control_why: str
    ended: str  # why no more of it was measured
    members: list[Member]
    ratios: list[Ratio]
    machine: str = ""

    @property
    def setting(self) -> str:
        """What all members share of their details, but for what goes without saying."""
        return ", ".join(text for text, usual in self._shared if not usual)

    def apart(self, place: int) -> str:
        """What tells a member from the others beside its subject, but for what goes without saying."""
        shared = self._shared
        own = (detail for detail in self.members[place].details if detail not in shared)
        return ", ".join(text for text, usual in own if not usual)

    @property
    def _shared(self) -> list[tuple[str, bool]]:
        first, *others = self.members
        return [detail for detail in first.details if all(detail in other.details for other in others)]

    def relative_to(self, baseline: int) -> dict[int, Ratio]:
        """By its place, the ratio of every member but the baseline."""
        return {one.of: one for one in self.ratios if one.to == baseline}

    @property
    def restless(self) -> bool:
        """Does the A/A exclude 1? Then the baseline differs from itself."""
        return self.control.excludes(1)


def groups(report: Gathered) -> list[Group]:
    """The comparisons of all notebooks, in the order of the workloads' first appearance."""
    measured = _by_file(report.measured)
    titles = {name: summary.get("title", name) for name, summary in report.summaries.items()}
    frames = {
        name: _shown(frame[frame["quantity"].isin(["throughput_ratio", "pair_ratio"])])
        for name, frame in _frames(report)
    }
    telling = _telling(pd.concat(frames.values())) if frames else {}
    every = [
        _group(rows, titles[name], telling, measured)
        for name, frame in frames.items()
        for _, rows in frame[frame["baseline_label"].notna()].groupby("part", sort=False)
    ]
    order = list(dict.fromkeys(one.workload for one in every))
    return sorted(every, key=lambda one: order.index(one.workload))


def once(every: Iterable[Group]) -> list[Group]:
    """Without those that another notebook has, too: of the same members, by the same measurements. The one that stays
    has the titles of all.
    """
    same: dict[tuple[Any, ...], list[Group]] = {}
    for group in every:
        members = tuple(one.label for one in group.members)
        shown = tuple((one.of, one.to, one.text, one.verdict, one.files) for one in group.ratios)
        same.setdefault((group.task, group.margin, members, shown), []).append(group)
    return [
        replace(first, title="; ".join(dict.fromkeys(one.title for one in (first, *others))))
        for first, *others in same.values()
    ]


def table(every: Iterable[Group]) -> pd.DataFrame:
    """A row for each ratio of each notebook, relative to each choice of baseline, with the keys of its measurements."""
    rows = [
        {
            "key": ratio.key,
            "notebook": group.notebook,
            "task": group.task,
            "condition": group.members[ratio.of].label,
            "relative to": group.members[ratio.to].label,
            "ratio": ratio.interval.estimate,
            "ratio_low": ratio.interval.low,
            "ratio_high": ratio.interval.high,
            "processes": ratio.interval.processes,
            "verdict": ratio.verdict,
            "control": group.control.estimate,
            "control_low": group.control.low,
            "control_high": group.control.high,
            tables.FILES: " ".join(ratio.files),
        }
        for group in every
        for ratio in group.ratios
    ]
    return pd.DataFrame(rows)


def as_json(every: Iterable[Group]) -> str:
    """All of it for the page's script, compact: texts that repeat stand once, in ``texts``, and elsewhere their places.

    ``groups`` are ``{title, task, margin, control, why, ended, machine, members, ratios}``: a member is ``[label,
    subject, versions, knobs, choices, details]``, where a detail is its text and 1 if it is usual, and a ratio ``[of,
    to, estimate, low, high, processes, kind, verdict, text, key, measurements, reason]``; ``control`` is ``[estimate,
    low, high, text]`` or null.
    """
    texts: dict[str, int] = {}

    def at(text: str) -> int:
        return texts.setdefault(text, len(texts))

    compact = [
        {
            "title": at(group.title),
            "task": at(group.task),
            "margin": group.margin,
            "control": _control(group.control),
            "why": at(group.control_why),
            "ended": at(group.ended),
            "machine": at(group.machine),
            "members": [
                [
                    *(at(text) for text in (one.label, one.subject, one.versions, one.knobs)),
                    [at(one.choices[name]) for name in FILTERS],
                    [[at(text), int(usual)] for text, usual in one.details],
                ]
                for one in group.members
            ],
            "ratios": [
                [
                    *(ratio.of, ratio.to, *_ends(ratio.interval), ratio.interval.processes, at(ratio.kind)),
                    *(at(ratio.verdict), ratio.text, ratio.key, " ".join(ratio.files), at(ratio.reason)),
                ]
                for ratio in group.ratios
            ],
        }
        for group in every
    ]
    return json.dumps({"filters": FILTERS, "groups": compact, "texts": list(texts)}, separators=(",", ":"))


def _frames(report: Gathered) -> Iterator[tuple[str, pd.DataFrame]]:
    return ((name, frame) for name, frame in report.frames.items() if len(frame))


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """With the subject and the environment of both sides as figures name them, too."""
    named = named_once(frame)
    return frame.assign(
        shown_subject=named["subject"],
        shown_environment=named["environment"],
        baseline_shown_subject=named["baseline_subject"],
        baseline_shown_environment=named["baseline_environment"],
    )


def _by_file(measured: Iterable[Measurement]) -> dict[tuple[str, str], Measurement]:
    """By file and label, a process that went well where there is one."""
    every = sorted(measured, key=lambda m: m.ok)
    return {(m.file, str(m.condition)): m for m in every}


def _group(
    rows: pd.DataFrame, title: str, telling: Mapping[str, list[str]], measured: Mapping[tuple[str, str], Measurement]
) -> Group:
    first = rows[rows["quantity"] == "throughput_ratio"].iloc[0]
    labels = dict.fromkeys([first["baseline_label"], *rows.loc[rows["quantity"] == "throughput_ratio", "label"]])
    places = {label: place for place, label in enumerate(labels)}
    ratios = [_ratio(row, places) for row in rows.to_dict("records") if row["label"] in places]
    files = dict.fromkeys(key for ratio in ratios for key in ratio.files)
    processes = {
        label: next((measured[key, label] for key in files if (key, label) in measured), None) for label in labels
    }
    own = {row["label"]: _plain(row) for row in rows.to_dict("records")}
    own.setdefault(first["baseline_label"], _plain(first, "baseline_"))
    machine = next((m.machine for m in processes.values() if m is not None), {})
    missing = {"control": math.nan, "control_low": math.nan, "control_high": math.nan}
    control = {name: first[name] if pd.notna(first[name]) else value for name, value in missing.items()}
    return Group(
        notebook=first["notebook"],
        title=title,
        task=first["task"],
        workload=first["workload"],
        margin=first["margin"],
        control=Interval(*control.values(), 0),
        control_why=_text(first["control_why"]),
        ended=_text(first["ended"]),
        members=[_member(own[label], telling, processes[label]) for label in labels],
        ratios=ratios,
        machine=place(machine) if machine else "",
    )


def _ratio(row: Mapping[str, Any], places: Mapping[str, int]) -> Ratio:
    ends = (row[name] if pd.notna(row[name]) else math.nan for name in ("estimate", "low", "high"))
    named = "|".join(str(row[name]) for name in ("notebook", "part", "baseline_label", "label"))
    return Ratio(
        of=places[row["label"]],
        to=places[row["baseline_label"]],
        interval=Interval(*ends, int(row["processes"]) if pd.notna(row["processes"]) else 0),
        verdict=_text(row["why"]) or _text(row["verdict"]),
        reason=_text(row["reason"]),
        files=tuple(_text(row["files"]).split()),
        key=hashlib.sha256(named.encode()).hexdigest()[:10],
    )


def _plain(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """What a condition was chosen to be, of the columns of a row."""
    return {name: row[f"{prefix}{name}"] for name in _CHOSEN}


_CHOSEN = [
    *(
        "label",
        "shown_subject",
        "shown_environment",
        *dict.fromkeys((*FILTERS, *tidy.SUBJECT)),
        "data",
        "learning_rate",
        "threads",
    ),
    *("world_size", "communication", "without", "hyperparameters", "train_samples"),
]


def _member(chosen: Mapping[str, Any], telling: Mapping[str, list[str]], process: Measurement | None) -> Member:
    known = {name: (text, usual) for name, text, usual in _details(chosen)}
    versions, knobs = "", ""
    if process is not None:
        names = {"python", chosen["framework"], *frameworks.distributions(chosen["framework"])}
        versions = ", ".join(f"{name} {value}" for name, value in process.versions.items() if name in names)
        kept = {name: value for name, value in sorted(process.knobs.items()) if SCRATCH not in value}
        knobs = ", ".join(f"{name}={value}" for name, value in kept.items()) or "none"
    return Member(
        label=chosen["label"],
        subject=chosen["shown_subject"],
        details=tuple(known[name] for name in telling[chosen["workload"]] if name in known),
        choices={name: str(chosen[name]) for name in FILTERS},
        look=subject_look(*({**chosen, "environment": chosen["shown_environment"]}[name] for name in tidy.SUBJECT)),
        versions=versions,
        knobs=knobs,
    )


def _details(chosen: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """What a condition is beside its subject and its workload: a name, a word or two, and whether these go without
    saying.
    """
    yield "batch_size", f"batch {chosen['batch_size']}", False
    yield "data", chosen["data"], False
    yield "device", chosen["device"], False
    threads, processes, samples = (chosen[name] for name in ("threads", "world_size", "train_samples"))
    yield "threads", "all threads" if pd.isna(threads) else _count(threads, "thread"), pd.isna(threads)
    yield "world_size", _count(1 if pd.isna(processes) else processes, "process"), pd.isna(processes) or processes == 1
    if pd.notna(processes) and processes > 1:  # one has nobody to exchange gradients with
        exchanges = pd.isna(chosen["communication"]) or bool(chosen["communication"])
        yield "communication", "with exchange" if exchanges else "without exchange", exchanges
    without = _text(chosen["without"])
    yield "without", f"without {without}" if without else "all knobs", not without
    yield "train_samples", "all samples" if pd.isna(samples) else _count(samples, "sample"), pd.isna(samples)
    if pd.notna(chosen["learning_rate"]):
        yield "learning_rate", f"learning rate {chosen['learning_rate']:g}", False
    for name, value in json.loads(chosen["hyperparameters"]).items():
        yield name, f"{name.replace('_', ' ')} {value}", False


def _telling(rows: pd.DataFrame) -> dict[str, list[str]]:
    """By workload, the names of the details that are not the same in all of its conditions; the batch size always."""
    telling: dict[str, list[str]] = {}
    for workload, own in rows.groupby("workload", sort=False):
        values: dict[str, set[str]] = {}
        for prefix in ("", "baseline_"):
            sides = own[[f"{prefix}{name}" for name in _CHOSEN]].set_axis(_CHOSEN, axis=1)
            for side in sides[sides["label"].notna()].drop_duplicates("label").to_dict("records"):
                for name, text, _ in _details(side):
                    values.setdefault(name, set()).add(text)
        telling[workload] = [name for name, texts in values.items() if name == "batch_size" or len(texts) > 1]
    return telling


def _count(number: Any, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"


def _control(control: Interval) -> list[Any] | None:
    if not math.isfinite(control.estimate):
        return None
    return [*_ends(control), tables.ratio(control.estimate, control.low, control.high)]


def _ends(interval: Interval) -> list[float | None]:
    """To seven digits, which are more than a picture shows."""
    ends = (interval.estimate, interval.low, interval.high)
    return [float(f"{end:.7g}") if math.isfinite(end) else None for end in ends]


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
