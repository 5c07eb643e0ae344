"""The notebook ``claims``: what the works claim, what was measured of it here, and a verdict by a rule.

It measures nothing: it reads the tidy frames of the profile's other notebooks.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

from benchlib.analysis.comparison import failures
from benchlib.analysis.equivalence import Certificate
from benchlib.analysis.statistics import Interval
from benchlib.condition import Condition
from benchlib.knobs import Ledger
from benchlib.lab import Lab
from benchlib.suite import claims, figures, published, tables
from benchlib.suite.claims.rows import Results
from benchlib.suite.claims.verdicts import (
    CONTRADICTS,
    NO_DIFFERENCE,
    NOT_MEASURED,
    OPEN,
    SUPPORTS,
    VERDICTS,
    Case,
    Judged,
    in_words,
    undecided,
)
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Result

if TYPE_CHECKING:
    from IPython.display import HTML


class Parameters(p.Parameters):
    """There are none: it is about whatever the other notebooks of the profile measured."""


def conditions(parameters: Parameters) -> list[Condition]:
    """Nothing is measured."""
    return []


def measure(parameters: Parameters, lab: Lab) -> Claims:
    """Judge all claims by the frames that are there."""
    return Claims(lab)


@dataclass(frozen=True)
class _Gathered:
    """The files behind the verdicts, as a :class:`Result` takes what was measured."""

    keys: list[str]
    conditions: tuple[Condition, ...] = ()

    @property
    def certificates(self) -> dict[str, Certificate]:
        return {}

    def failures(self) -> pd.DataFrame:
        return failures([], [])

    def files(self) -> list[str]:
        return self.keys

    def ledger(self) -> Ledger:
        return Ledger([])


class Claims(Result):
    """The verdicts, the cases behind them, the rules, and the ratios beside the published ones."""

    notebook = "claims"
    in_report = ("cases",)
    title = "Claims"

    def __init__(self, lab: Lab) -> None:
        self.results = Results(lab.folder)
        self.judged = claims.judged(self.results)
        keys = tables.together(case.files for one in self.judged for case in one.outcome.cases).split()
        super().__init__(lab.folder, [_Gathered(sorted(keys))])

    def findings(self) -> list[str]:
        """How many claims got which verdict, which results of before they rest on, and a sentence for each that was
        measured.
        """
        count = Counter(one.verdict for one in self.judged)
        counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
        open_ones = [one.claim.id for one in self.judged if undecided(one)]
        neither = f"'{NO_DIFFERENCE}' says too much: not decided, as neither a difference nor sameness is in all cases."
        besides = f" Of {', '.join(open_ones)} {neither}" if open_ones else ""
        found = [f"Of {len(self.judged)} published claims: {counted}.{besides}"]
        found += [self._stale_text] * bool(self._stale_text)
        return found + [self._sentence(one) for one in self.judged if one.outcome.cases]

    def summary(self) -> dict[str, Any]:
        """As of every result; and ``verdicts``, their table as pandas splits it, with each claim's bare ``verdict`` and
        whether it is ``undecided``.
        """
        bare = [{"verdict": one.verdict, "undecided": undecided(one)} for one in self.judged]
        rows = [self._verdict_row(one) | columns for one, columns in zip(self.judged, bare, strict=True)]
        return {**super().summary(), "verdicts": pd.DataFrame(rows).to_dict("split")}

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``verdicts``, ``cases``, ``rules``, and the works' ``sources`` and figures."""
        return self._tables

    @cached_property
    def _tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        return {
            "verdicts": (
                f"Each claim, what it was published of, and the verdict on this machine. {self._stale_text}".strip(),
                pd.DataFrame([self._verdict_row(one) for one in self.judged]),
            ),
            "cases": (
                "The numbers behind the verdicts, with 95 % intervals: ratios are in the direction of the claim, so "
                "that above 1 is on its side, and below 1 or the same within the margin is against it. A ratio whose "
                "A/A excludes 1 is not believed.",
                pd.DataFrame([row for one in self.judged for row in _case_rows(one)], columns=_CASE_COLUMNS),
            ),
            "rules": (
                "The rule of each verdict, with what it is asked of. The margin of 1 is the parameter of the notebook "
                "that has the ratio, as in the verdicts of its own tables.",
                pd.DataFrame([{"claim": one.claim.id, "rule": one.rule} for one in self.judged]),
            ),
            **_published_tables(),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``: ours beside the published, for the claims that are about a ratio; where they are more than fit on
        a page, ``ratios_2`` and so on.
        """
        pages, drawn = _pages([_rows(one) for one in self.judged]), {}
        for number, page in enumerate(pages, 1):
            part = f" Part {number} of {len(pages)}." if len(pages) > 1 else ""
            drawn["ratios" if number == 1 else f"ratios_{number}"] = _draw_page(page, part)
        return drawn

    def show_figures(self) -> HTML:
        """All figures, each with its caption."""
        from IPython.display import HTML

        return HTML("".join(self.show_figure(name).data for name in self.figures or ["ratios"]))

    @property
    def _stale_text(self) -> str:
        """Which notebooks' results are not those of what is here now; empty: of none."""
        stale = [f"{name} ({why})" for name, why in self.results.stale.items()]
        return f"Results of before, which are stale, were judged of: {'; '.join(stale)}." if stale else ""

    def _sentence(self, one: Judged) -> str:
        missing = f" Not measured: {'; '.join(one.outcome.missing)}." if one.outcome.missing else ""
        untested = f" Not tested: {one.claim.untested}." if one.claim.untested else ""
        doubt = f" In doubt: {one.claim.doubt}" if one.claim.doubt else ""
        says = f"{one.claim.id}, published on {one.claim.device}: {one.claim.says}"
        return f"{says} {self._verdict(one)}: {_measured(one.outcome.cases)}.{missing}{untested}{doubt}"

    def _verdict(self, one: Judged) -> str:
        """The verdict with the data and the hardware that it is about."""
        verdict = in_words(one)
        if one.verdict == NOT_MEASURED:
            return verdict
        places = self.results.places(tables.together(case.files for case in one.outcome.cases))
        if not places:
            return f"{verdict}, on a machine that is no longer known: the files of its measurements are gone"
        return f"{verdict}, on {' and on '.join(places)}"

    def _verdict_row(self, one: Judged) -> dict[str, object]:
        claim, cases = one.claim, one.outcome.cases
        figures_of = ", ".join(f"{name} {value:g}" for name, value in claim.published.items())
        takes = [*one.outcome.missing, *([f"no rule tests {claim.untested}"] if claim.untested else [])]
        return {
            "claim": claim.id,
            "says": claim.says,
            "published_on": f"{claim.device} ({published.sources()[claim.source].short})",
            "published": figures_of or tables.MISSING,
            "measured_here": _measured(cases),
            "verdict_here": self._verdict(one),
            "takes": "; ".join(takes) or tables.MISSING,
            "doubt": claim.doubt or tables.MISSING,
            tables.FILES: tables.together(case.files for case in cases),
        }


SLOT, LINE, GAP = 0.045, 0.11, 0.07
"""Inches of the figure: for a case among others in its row, for a line of a row's label, and between rows."""

LABEL = 62  # characters of a line of a label
LABEL_SIZE = 6.5  # points
HIGHEST = 8.0  # inches of a figure's rows: with axis and legend it then fits a page


@dataclass(frozen=True)
class _Row:
    """Cases of a claim that stand together: all of one group."""

    claim: str
    cases: list[Case]

    @property
    def label(self) -> str:
        first = self.cases[0]
        told = first.of if len(self.cases) == 1 else f"{first.group} ({len(self.cases)})"
        return "\n".join(textwrap.wrap(f"{self.claim}  {told}", LABEL))

    @property
    def height(self) -> float:
        return max(SLOT * len(self.cases), LINE * (1 + self.label.count("\n"))) + GAP


def _rows(one: Judged) -> list[_Row]:
    groups: dict[str, list[Case]] = {}
    for case in one.outcome.cases:
        if case.ratio is not None and math.isfinite(case.ratio.estimate):
            groups.setdefault(case.group, []).append(case)
    return [_Row(one.claim.id, cases) for cases in groups.values()]


def _pages(claimed: list[list[_Row]]) -> list[list[_Row]]:
    """The rows of each figure, from those of each claim: a claim that does not fit begins the next."""
    pages: list[list[_Row]] = [[]]
    for rows in claimed:
        if sum(row.height for row in [*pages[-1], *rows]) > HIGHEST:
            pages.append([])
        for row in rows:
            if sum(one.height for one in [*pages[-1], row]) > HIGHEST:
                pages.append([])
            pages[-1].append(row)
    return [page for page in pages if page]


def _draw_page(rows: list[_Row], part: str) -> tuple[str, Figure]:
    looks = figures.looks([SUPPORTS, CONTRADICTS, OPEN])
    total = sum(row.height for row in rows)
    figure, (axes,) = figures.panels(1, 1, height=0.5 + total)
    shown = [case for row in rows for case in row.cases]
    axes.set(xscale="log", xlabel="ratio in the direction of the claim", xlim=_limits(shown), ylim=(total, 0))
    axes.axvline(1, color="0.2", linewidth=0.8)
    margins = {row.cases[0].margin for row in rows}
    ticks, top = [], 0.0
    for before, row in zip([None, *rows], rows, strict=False):
        middle = top + row.height / 2
        ticks.append(middle)
        within = (1 - row.cases[0].margin, 1 + row.cases[0].margin)
        axes.fill_betweenx([top, top + row.height], *within, color=figures.PALE, linewidth=0, zorder=-1)
        if before and before.claim != row.claim:
            axes.axhline(top, color="0.8", linewidth=0.6, zorder=0)
        for number, case in enumerate(row.cases):
            place = middle + SLOT * (number - (len(row.cases) - 1) / 2)
            _draw_case(axes, case, place, looks[case.bears], small=len(row.cases) > 1)
        for value in {case.published for case in row.cases if case.published}:
            axes.plot(value, middle, "D", color="0.2", markerfacecolor="none", markersize=6, zorder=2)
        top += row.height
    axes.set_yticks(ticks, [row.label for row in rows])
    axes.tick_params(axis="y", length=0, labelsize=LABEL_SIZE)
    axes.grid(axis="y", visible=False)
    figures.plain_log_axis(axes.xaxis)
    extra, told = [], ""
    if any(case.published for case in shown):
        extra.append(figures.PUBLISHED)
        told += " Open diamonds: the published ratio, of other hardware and versions."
    if any(_cut(case, *axes.get_xlim()) for case in shown):
        told += " An arrow: the interval goes on."
    if any(case.control is not None for case in shown):
        extra.append(figures.CONTROL)
        told += " Where the A/A control excludes 1, the ratio is not believed and leaves its claim open."
    extra += [figures.margin_legend(margin) for margin in sorted(margins)]
    told += " An interval that lies within the pale band shows no difference to speak of, which contradicts the claim."
    caption = (
        "What was measured here for each claim about a ratio, with 95 % intervals: right of the line is on the claim's "
        f"side. Cases that differ in one thing share a row, with their number, in the order of their table.{told}{part}"
    )
    return caption, figures.finish(figure, looks, extra)


def _draw_case(axes: figures.Axes, case: Case, place: float, look: figures.Look, small: bool) -> None:
    """A point with its interval, and the A/A of its comparison behind it."""
    if case.control is not None:
        ends, half = (case.control.low, case.control.high), SLOT / 2 if small else LINE / 2
        band = {"color": figures.GREY, "alpha": 0.35, "linewidth": 0, "zorder": 0}
        axes.fill_betweenx([place - half, place + half], *ends, **band)
    width, size = (0.8, 2.4) if small else (1.1, 4.5)
    axes.plot([case.ratio.low, case.ratio.high], [place, place], color=look.color, linestyle="-", linewidth=width)
    axes.plot(case.ratio.estimate, place, look.marker, color=look.color, markersize=size, markeredgewidth=0)
    for edge, arrow in _cut(case, *axes.get_xlim()):
        axes.plot(edge, place, arrow, color=look.color, markersize=size, markeredgewidth=0, clip_on=False)


def _cut(case: Case, low: float, high: float) -> list[tuple[float, str]]:
    """Where the interval runs out of an axis with these ends, and the arrow that says so."""
    beyond = ((low, "<", case.ratio.low < low), (high, ">", case.ratio.high > high))
    return [(edge, arrow) for edge, arrow, out in beyond if out]


def _limits(shown: list[Case]) -> tuple[float, float]:
    """Of the axis: all points are on it; an interval that ends far from them runs out."""
    points = [1.0, *(case.ratio.estimate for case in shown), *(case.published for case in shown if case.published)]
    ends = [end for case in shown for end in (case.ratio.low, case.ratio.high) if math.isfinite(end)]
    low = max(min([*points, *ends]), min(points) / figures.REACH)
    high = min(max([*points, *ends]), max(points) * figures.REACH)
    return low / 1.15, high * 1.15


def _published_tables() -> dict[str, tuple[str, pd.DataFrame]]:
    """What the works published, by name: a caption and the table."""
    works = published.works()
    training = [
        {
            **{name: row[name] for name in ("workload", "data", "batch", "framework", "device")},
            "time": next(f"{row[unit]:g} {unit}" for unit in ("seconds", "minutes", "hours") if unit in row),
            "published loss": row["loss"],
            "accuracy": row["accuracy"],
        }
        for row in works["training"]
    ]
    rates = works["learning_rate"]
    accuracies = [
        {
            "hyperparameter": "learning rate",
            "value": rate,
            "published accuracy": accuracy,
            "published seconds to 60 %": seconds,
            "published epochs to 60 %": epochs,
        }
        for rate, accuracy, seconds, epochs in zip(
            rates["rates"],
            rates["accuracy_after_10_epochs"],
            rates["seconds_to_60_percent"],
            rates["epochs_to_60_percent"],
            strict=True,
        )
    ]
    by_batch = works["batch_accuracy"]
    accuracies += [
        {"hyperparameter": "batch size", "value": size, "published accuracy": accuracy, "doubt": by_batch["doubt"]}
        for size, accuracy in zip(by_batch["batches"], by_batch["accuracy"], strict=True)
    ]
    sources = [
        {**one.model_dump(), "versions": _pairs(one.versions), "used": _pairs(one.used)}
        for one in published.sources().values()
    ]
    return {
        "thresholds": (
            "Published: what a run had to reach, on the validation set.",
            pd.DataFrame(works["thresholds"])
            .replace({"source": {name: one.short for name, one in published.sources().items()}})
            .rename(columns={"metric": "published metric"}),
        ),
        "training": (
            "Published: training, its time and what came out (Xia and Zhou 2022, tables 2 and 3; batch sizes of table "
            "1).",
            pd.DataFrame(training),
        ),
        "inference": (
            "Published: images per second with ResNet-50 (Xia and Zhou 2022, table 4).",
            _of_works("inference").rename(columns={"images_per_second": "images per second, published"}),
        ),
        "cpu_gpu": (
            "Published: a GPU against a CPU, batch 128 (Yin 2020, table 5).",
            _of_works("cpu_gpu").rename(columns=_spaced),
        ),
        "by_batch": (
            "Published: indicators by batch size, on the GPU (Yin 2020, tables 6 to 8). The thesis's steps per second "
            "grow with the batch for all but PyTorch, as samples per second would.",
            pd.DataFrame(_by_batch()).rename(columns=_spaced),
        ),
        "accuracy": (
            "Published: accuracy after 10 epochs, and what 60 % took, in TensorFlow (Yin 2020, tables 9 and 10).",
            pd.DataFrame(accuracies),
        ),
        "rosetta": (
            "Published: seconds on half a K80 and on a P100 (Karmanov 2017).",
            pd.DataFrame(
                [
                    {"task": task.replace("_", " "), "framework": name, "K80 (s)": k80, "P100 (s)": p100}
                    for task, times in works["rosetta"].items()
                    for name, (k80, p100) in times.items()
                ]
            ),
        ),
        "sources": (
            "The works, and the data of the workloads that they trained.",
            pd.DataFrame(sources).rename(columns={"short": "source"}),
        ),
    }


def _by_batch() -> list[dict[str, object]]:
    """A row for each framework and batch size."""
    told = published.works()["batch_size"]
    frameworks = {name: figures_of for name, figures_of in told.items() if name != "batches"}
    return [
        {
            "framework": name,
            "value": batch,
            **{column: values[at] for column, values in figures_of.items() if column != "doubt"},
            "doubt": figures_of.get("doubt"),
        }
        for name, figures_of in frameworks.items()
        for at, batch in enumerate(told["batches"])
    ]


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or tables.MISSING


def _spaced(name: str) -> str:
    """A heading that is not one of this suite's own columns, whose numbers have macros."""
    return {"value": "batch size"}.get(name, name.replace("_", " "))


def _of_works(name: str) -> pd.DataFrame:
    return pd.DataFrame(published.works()[name]).drop(columns="source")


def _measured(cases: list[Case]) -> str:
    """What was measured: a case in full; of several with which data, and how they bear."""
    if not cases:
        return tables.MISSING
    if len(cases) == 1:
        (case,) = cases
        return f"{case.of}{f' ({case.setting})' if case.setting else ''}: {case.measured}"
    settings = list(dict.fromkeys(case.setting for case in cases if case.setting))
    told = f" ({' / '.join(settings)})" if settings else ""
    return f"{len(cases)} cases{told}: {_counted(cases)}"


def _counted(cases: list[Case]) -> str:
    """How many cases bear how."""
    counted = Counter(case.bears for case in cases)
    many = {SUPPORTS: "support it", CONTRADICTS: "contradict it", OPEN: "leave it open"}
    one = {SUPPORTS: "supports it", CONTRADICTS: "contradicts it", OPEN: "leaves it open"}
    same = Counter(case.why for case in cases if case.bears == CONTRADICTS and case.why)
    beside = {CONTRADICTS: f" ({', '.join(f'{count} {why}' for why, count in same.items())})" if same else ""}
    return ", ".join(
        f"{counted[how]} {(one if counted[how] == 1 else many)[how]}{beside.get(how, '')}"
        for how in many
        if counted[how]
    )


_CASE_COLUMNS = [
    "claim",
    "case",
    "setting",
    "claimed_ratio",
    "claimed_ratio_low",
    "claimed_ratio_high",
    "control",
    "control_low",
    "control_high",
    "otherwise",
    "bears",
    "published_ratio",
    tables.FILES,
]


def _case_rows(one: Judged) -> list[dict[str, object]]:
    rows = []
    for case in one.outcome.cases:
        unknown = Interval(math.nan, math.nan, math.nan, 0)
        ratio, control = case.ratio or unknown, case.control or unknown
        bears = case.bears if case.bears == OPEN else f"{case.bears} the claim"
        rows.append(
            {
                "claim": one.claim.id,
                "case": case.of,
                "setting": case.setting or tables.MISSING,
                "claimed_ratio": ratio.estimate,
                "claimed_ratio_low": ratio.low,
                "claimed_ratio_high": ratio.high,
                "control": control.estimate,
                "control_low": control.low,
                "control_high": control.high,
                "otherwise": tables.MISSING if case.ratio else case.measured,
                "bears": f"{bears}: {case.why}" if case.why else bears,
                "published_ratio": math.nan if case.published is None else case.published,
                tables.FILES: case.files,
            }
        )
    return rows
