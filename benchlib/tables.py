"""From numbers to tables for readers: rounded to the known digits, with units; as CSV with every digit, and Markdown.

A frame's column ``measurements`` has the keys of the files that a row was made from. It is in the CSV only, for trace.
"""

from __future__ import annotations

import base64
import html as html_text
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from benchlib import frameworks
from benchlib.environments import DEFAULT
from benchlib.equivalence.certificate import Certificate
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED

if TYPE_CHECKING:
    from IPython.display import HTML

HEADINGS = {
    "subject": "framework, mode, lane",
    "baseline": "relative to",
    "takes": "missing for the rest",
    "control_why": "why no A/A",
    "ratio": "throughput ratio",
    "control": "A/A",
    "samples_per_second": "throughput (samples/s)",
    "steps_per_second": "steps/s",
    "cpu_percent": "CPU (% of machine)",
    "memory_mib": "peak memory (MiB)",
    "accelerator_throttled": "throttled (share of the time)",
    "joules_per_sample": "energy (J/sample)",
    "steady": "steady (share of processes)",
    "disturbed": "disturbed (share of blocks)",
    "half_width_percent": "widest half-width (%)",
    "peak_share_percent": "share of the machine's peak (%)",
    "timed_s": "seen by the timer (s)",
    "seconds_to_threshold": "time to threshold (s)",
    "threshold_ratio": "times as soon at the threshold",
    "within_ratio": "throughput ratio",
    "claimed_ratio": "ratio in the direction of the claim",
    "first_epoch": "first epoch, compilation included (of the others' mean)",
    "first_epoch_alone": "without (of the others' mean)",
    "same_threads_ratio": "relative to one process with as many threads",
    "loss_ratio": "relative to fp32",
}
"""Headings of columns whose names, with a unit at the end, do not say it."""

UNITS = {"percent": "%", "mib": "MiB", "ms": "ms", "s": "s", "w": "W", "c": "°C", "mhz": "MHz"}
"""Units by their names at the end of the name of a column, behind a _."""

MEASURED = (
    *("ratio", "control", "verdict", "processes", "failed", *tidy.QUANTITIES, "peak_memory_mib", "disturbed_time"),
    *("times_count", "half_width_percent", "ended", "million_multiply_adds", "accuracy_percent", "lowest", "highest"),
    *("known_s", "timed_s", "timed_share", "share_of_few", "metric", "difference", "runs", "epochs", "reached"),
    *("seconds", "claimed_ratio", "published_ratio", "first_epoch", "first_epoch_alone", "loss"),
    *("half_width_median", "half_width_largest"),
)
"""Columns that hold results: these are rounded, and shown even where they are all the same."""

MISSING = "–"
NOTHING = "There is nothing to show: the table has no rows."
WHY = "why"  # the column that says of a row without a number why it has none; empty in the others
FILES = "measurements"  # the column of keys, a space between them
PAGE = 7.2  # inches across a page's two columns


def number(value: float, digits: int = 3) -> str:
    """Plain, to ``digits`` significant digits or to the unit: no exponent unless it is tiny.

    >>> number(0.012345), number(12345.6), number(float("nan"))
    ('0.0123', '12,346', '–')
    """
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -4:
        return f"{value:.{digits - 1}g}"
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def interval(estimate: float, low: float, high: float) -> str:
    """An estimate and its interval, rounded to the first digit of its half width, or the second where the first is 1.
    Where the ends are far apart, two digits of the lower are left.

    >>> interval(0.3123, 0.2911, 0.3342), interval(2.25, 0.541, 9.38)
    ('0.31 [0.29, 0.33]', '2.25 [0.54, 9.38]')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{number(estimate)} (no interval)" if math.isfinite(estimate) else MISSING
    return _interval(estimate, low, high, _decimals(estimate, low, high))


def ratio(estimate: float, low: float, high: float) -> str:
    """A ratio and its interval, to two decimals at least, and to so many that no end reads as 1 unless it is 1.

    >>> ratio(1.04, 1.003, 1.078)
    '1.040 [1.003, 1.078]'
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return interval(estimate, low, high)
    decimals = max(2, _decimals(estimate, low, high))
    while decimals < 6 and any(end != 1 and round(end, decimals) == 1 for end in (low, high)):
        decimals += 1
    return _interval(estimate, low, high, decimals)


def spelled(text: str) -> str:
    """A text with frameworks' names as their makers write them; not that of an environment behind them: ``JAX jax``."""
    names = rf"\b({'|'.join(frameworks.names())})((?: \1)?)(?![\w./-])"
    return re.sub(names, lambda found: frameworks.title(found[1]) + found[2], text)


def display(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The frame as text, and a sentence on the values that all its rows share, and on why some have no number. The text
    then leaves these out.

    Columns ``x``, ``x_low`` and ``x_high`` become one. Columns without a value go, and so does a sole default
    environment. ``subject`` replaces framework, environment, mode and lane, ``where`` device and threads.
    """
    said = {FILES, *(("framework", "environment", "mode", "lane", "label") if "subject" in frame else ())}
    if "environment" in frame and set(frame["environment"]) <= {DEFAULT}:
        said.add("environment")
    said |= {"device", "threads"} if "where" in frame else set()
    said |= {WHY} if {"subject", WHY} <= set(frame) else set()
    said |= {f"{name}{end}" for name in frame for end in ("_low", "_high")}
    said |= {name for name in frame if name != "threads" and frame[name].isna().all()}
    shown = [name for name in frame if name not in said]
    same = []
    if "subject" in frame:
        kept = {*MEASURED, *(("subject", "where", "change") if len(frame) == 1 else ())}
        kept -= {"control"} if len(frame) > 1 else set()  # of one comparison all rows have the same
        same = [name for name in shown if name not in kept and len(set(_column(frame, name))) == 1]
    text = pd.DataFrame({heading(name): _column(frame, name) for name in shown if name not in same})
    common = "; ".join(f"{heading(name)} {_column(frame, name)[0]}" for name in same)
    sentences = [f"{'In all rows' if len(frame) > 1 else 'Here'}: {common}."] if common else []
    return text, " ".join([*sentences, *(_reasons(frame) if WHY in said else [])])


def _reasons(frame: pd.DataFrame) -> Iterator[str]:
    """A sentence for each reason, of a column that is empty in most rows."""
    names = frame["subject"].map(lambda one: _cell("subject", one))
    if "task" in frame and frame["task"].nunique() > 1:
        names = names + " on " + frame["task"]
    for why, rows in frame.dropna(subset=[WHY]).groupby(WHY, sort=False):
        who = ", ".join(dict.fromkeys(names[rows.index]))
        yield f"{who}: {_cell(WHY, why)}{'' if str(why).endswith(('.', '…')) else '.'}"


def heading(name: str) -> str:
    """The heading of a column, as people read it."""
    words, _, last = name.rpartition("_")
    plain = f"{words} ({UNITS[last]})" if words and last in UNITS else name
    return HEADINGS.get(name, plain.replace("_", " "))


def html(frame: pd.DataFrame, caption: str) -> HTML:
    """The frame as it is shown in a notebook and in the report: with its caption, numbers to the right."""
    from IPython.display import HTML

    if not len(frame):
        return bullets([f"{caption} {NOTHING}"])
    text, above, right = _as_text(frame, caption)

    def row(cells: Iterable[str], tag: str) -> str:
        styles = (("right; white-space: nowrap" if tag == "td" else "right") if one else "left" for one in right)
        made = (html_text.escape(cell).replace("\n", "<br>") for cell in cells)
        each = (f'<{tag} style="text-align: {style}">{cell}</{tag}>' for style, cell in zip(styles, made, strict=True))
        return f"<tr>{''.join(each)}</tr>"

    body = "".join(row(cells, "td") for cells in text.itertuples(index=False))
    head = f"<caption>{html_text.escape(above)}</caption><thead>{row(text.columns, 'th')}</thead>"
    return HTML(f"<table>{head}<tbody>{body}</tbody></table>")


def markdown(frame: pd.DataFrame, caption: str) -> str:
    """The frame as it is shown, as a table of GitHub's Markdown under its caption."""
    if not len(frame):
        return f"{caption} {NOTHING}\n"
    text, above, right = _as_text(frame, caption)
    rows = [text.columns, ["---:" if number else "---" for number in right], *text.itertuples(index=False)]
    cells = ([cell.replace("|", "&#124;").replace("\n", "<br>") for cell in row] for row in rows)
    return "\n".join([above, "", *(f"| {' | '.join(row)} |" for row in cells)]) + "\n"


def plain(frame: pd.DataFrame) -> str:
    """The frame as it is shown, as text for a terminal: of each cell the first line."""
    return display(frame)[0].map(lambda cell: cell.partition("\n")[0]).to_string(index=False) if len(frame) else NOTHING


def _as_text(frame: pd.DataFrame, caption: str) -> tuple[pd.DataFrame, str, list[bool]]:
    """The frame as text, the caption above it, and which of its columns are numbers."""
    text, same = display(frame)
    right = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame if heading(name) in text]
    return text, f"{caption} {same}".strip(), right


def bullets(sentences: Iterable[str]) -> HTML:
    """Sentences as a list."""
    from IPython.display import HTML

    return HTML("<ul>" + "".join(f"<li>{html_text.escape(sentence)}</li>" for sentence in sentences) + "</ul>")


def save(frame: pd.DataFrame, folder: Path, name: str, caption: str) -> list[Path]:
    """Write ``folder/name.csv``, unrounded, and ``folder/name.md``, as it is shown."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv", folder / f"{name}.md"]
    if not len(frame.columns):
        frame = pd.DataFrame(columns=[FILES])  # a CSV file without a head cannot be read
    frame.to_csv(paths[0], index=False)
    paths[1].write_text(markdown(frame, caption), encoding="utf-8")
    return paths


def join_files(files: Iterable[str]) -> str:
    """One value of ``measurements`` for rows that are made into one: their files, each once."""
    return " ".join(dict.fromkeys(key for keys in files for key in keys.split()))


def _decimals(estimate: float, low: float, high: float) -> int:
    half = (high - low) / 2
    if half <= 0:
        return 3
    exponent = math.floor(math.log10(half))
    decimals = -exponent + (half / 10**exponent < 2)
    most = 5 - math.floor(math.log10(abs(estimate))) if estimate else 6
    if 0 < low < high / 3:
        decimals = max(decimals, 1 - math.floor(math.log10(low)))
    return max(0, min(decimals, most))


def _interval(estimate: float, low: float, high: float, decimals: int) -> str:
    if 0 < low < high / 20:  # over orders of magnitude no number of decimals fits both ends
        return f"{number(estimate, 2)} [{number(low, 2)}, {number(high, 3 if 0.95 <= high < 1.05 else 2)}]"
    shown = (f"{round(value, decimals) + 0.0:,.{decimals}f}" for value in (estimate, low, high))  # + 0.0: no -0
    return "{} [{}, {}]".format(*shown)


def _column(frame: pd.DataFrame, name: str) -> list[str]:
    if f"{name}_low" not in frame:
        return [_cell(name, value) for value in frame[name]]
    text = ratio if name == "control" or name.endswith("ratio") else interval
    ends = zip(frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True)
    return [text(*row) for row in ends]


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if pd.isna(value):
        return "all" if name == "threads" else MISSING
    if isinstance(value, float):
        return number(value) if name in MEASURED and not name.startswith("epochs") else f"{value:g}"
    return spelled(str(value)) if name in ("subject", "baseline", "framework") else str(value)


Result = Any  # the source of tables and figures: a study, by its frame, runs, curves and margin

WITH_INTERVAL = {
    *(*tidy.RATIOS, *tidy.OF_GROUPS, *tidy.OF_GRAPHS),
    *("samples_per_second", "steps_per_second", "step_ms", "cpu_percent", "memory_mib"),
    *("accelerator_percent", "accelerator_memory_mib", "final_metric", "metric_difference", "final_loss"),
}
"""The quantities that tables show with their intervals."""

PLACE = ["part", "label"]  # shared by a condition's quantities: the place of its measurement, and its label
BESIDE = (
    *("estimate", "low", "high", "lowest", "highest", "processes", "verdict", "why", "files"),
    *("baseline_subject", "baseline_batch_size", "baseline_threads"),
)


def wide(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """The rows of a quantity; and beside each, in columns of their names, the other quantities of the same condition
    in the same part. The estimate is ``NAME``, the others of :data:`BESIDE` are ``NAME_low`` and so on. A quantity that
    a condition has several times, relative to several baselines, stands beside none.
    """
    rows = frame[frame["quantity"] == quantity]
    if not len(rows):
        return rows
    once = frame.drop_duplicates([*PLACE, "quantity"], keep=False)
    others = once.set_index([*PLACE, "quantity"])[[*BESIDE]].unstack("quantity")
    others.columns = [name if field == "estimate" else f"{name}_{field}" for field, name in others.columns]
    return rows.join(others, on=PLACE)


Value = Callable[[pd.Series], Any]  # of a cell, from a row of :func:`wide`


@dataclass(frozen=True)
class Column:
    """A column of a table, where the name of a quantity or of a column of the frame does not say it all."""

    name: str
    of: str | tuple[str, str, str] | Value  # a quantity or a column; an estimate and the ends of its interval
    ends: bool | None = None  # of a quantity: with its interval; None: if it is one of WITH_INTERVAL

    def values(self, rows: pd.DataFrame) -> dict[str, list[Any] | pd.Series]:
        """The columns of a table of these rows of :func:`wide`, by name."""
        if isinstance(self.of, tuple):
            return {f"{self.name}{end}": rows[of] for end, of in zip(("", "_low", "_high"), self.of, strict=True)}
        if callable(self.of):
            return {self.name: [self.of(row) for _, row in rows.iterrows()]}
        if self.of not in tidy.QUANTITIES:
            return {self.name: rows[self.of]}
        if self.of not in rows:  # it was not measured
            return {}
        if tidy.QUANTITIES[self.of] == tidy.FLAG:
            return {self.name: rows[self.of] == 1}
        with_ends = self.of in WITH_INTERVAL if self.ends is None else self.ends
        return {f"{self.name}{end}": rows[f"{self.of}{end}"] for end in (("", "_low", "_high") if with_ends else ("",))}


HYPERPARAMETERS = "hyperparameters"
"""Stands for a column for each hyperparameter, of the one workload that a table then is of."""


@dataclass(frozen=True)
class Table:
    """A table of an experiment: a row for each row of a quantity in its frame, or for those ``where`` it is wanted.

    A name among the columns is that of a quantity of the same condition, or of a column of the frame. The keys of the
    measurements that a row is made from come last.
    """

    caption: str
    quantity: str
    columns: Sequence[str | Column]
    where: Callable[[pd.DataFrame], pd.Series] | None = None

    def of(self, result: Result) -> pd.DataFrame:
        """The table of a result, unrounded."""
        rows = wide(result.frame, self.quantity)
        if self.where is not None and len(rows):
            rows = rows[self.where(rows).astype(bool)]
        rows = rows.reset_index(drop=True)
        if not len(rows):
            return pd.DataFrame()
        values: dict[str, Any] = {}
        for one in self.columns:
            if one == HYPERPARAMETERS:
                each = [json.loads(text) for text in rows["hyperparameters"]]
                values |= {name: [one.get(name) for one in each] for name in dict.fromkeys(itertools.chain(*each))}
            else:
                values |= (one if isinstance(one, Column) else Column(one, one)).values(rows)
        return pd.DataFrame({**values, FILES: self._files(rows)}, index=rows.index)

    def but(self, **changes: Any) -> Self:
        """This table with some of it changed."""
        return replace(self, **changes)

    def _files(self, rows: pd.DataFrame) -> list[str]:
        """The files of each row's own quantity, and of those that stand beside it."""
        used = [one.of if isinstance(one, Column) else one for one in self.columns]
        names = ["files", *(f"{name}_files" for name in used if isinstance(name, str) and f"{name}_files" in rows)]
        every = rows[names].apply(lambda row: join_files(row.dropna()), axis=1)
        return [" ".join(sorted(files.split())) for files in every]


@dataclass(frozen=True)
class Listed:
    """A table of results that are not in the frame, such as certificates and timers."""

    caption: str
    of: Callable[[Any], pd.DataFrame]  # a result


RUNS = Listed("The training runs.", lambda of: of.runs.drop(columns=["task", "part", "threshold"], errors="ignore"))


def verdict(row: pd.Series) -> str | None:
    """The verdict on a row's ratio with its caveat, or why there is none."""
    said = row["why"] if pd.isna(row["verdict"]) else row["verdict"]
    return said if pd.isna(row.get("caveat")) else f"{said} ({row['caveat']})"


def disturbed_note(name: str = "why") -> Value:
    """``DISTURBED`` where that is why there is no number: by the column ``why`` of a row, or of one beside it."""
    return lambda row: DISTURBED if row.get(name) == DISTURBED else None


def left_out(row: pd.Series) -> str | None:
    """The number of training runs of a row whose times do not count, in words."""
    return f"{row['left_out']} of {row['runs']} (disturbed)" if row["left_out"] else None


def reached(row: pd.Series) -> str | None:
    """The number of training runs of a row that reached the threshold, in words; None: there is no threshold."""
    if pd.isna(row["threshold"]):
        return None
    return f"{row['epochs_to_threshold_processes']} of {row['runs']}"


CONDITION = (  # of a row, in full
    *("subject", "label", "workload", "framework", "environment", "mode", "precision", "device", "lane"),
    *("batch_size", "learning_rate", "data", "train_samples", "threads"),
)

OF_TASK = tuple(name for name in CONDITION if name not in {"workload", "data"})  # beside its task

RATIO = (
    Column("ratio", "throughput_ratio"),
    *("processes", Column("verdict", verdict), Column("baseline", "baseline_subject")),
    Column("control", ("control", "control_low", "control_high")),
    Column("control_why", disturbed_note("control_why")),
)
"""Columns of ``throughput_ratio``: the ratio, its verdict, and the A/A control of its comparison."""

ENDED = ("half_width_percent", "ended")  # of ``throughput_ratio``: the widest interval, and why no more was measured

INDICATORS = (  # of rows of ``samples_per_second``: the columns that experiments ask for
    *("samples_per_second", "step_ms", "cpu_percent", "memory_mib", "accelerator_percent", "accelerator_memory_mib"),
    *("accelerator_power_w", "joules_per_sample", "processes", "failed", "steps_per_second", "peak_share_percent"),
)

OF_PROCESSES = (  # of rows of ``samples_per_second``: how it went
    *("cores_used", "memory_steady_mib", "memory_private_mib", "memory_import_mib", "memory_children_mib"),
    *("accelerator_temperature_c", "accelerator_clock_mhz", "accelerator_throttled", "device_peak_mib", "first_step_s"),
    *("warm_up_s", "steady", "slows_down", "disturbed", "idle_cores", "parent_cores", "processes", "failed"),
)

PROCESSES = Table(
    "How the processes went: means over them. First step: with compilation. Steady: the share that was so, by the rule "
    "of the warm-up, when blocks began. Idle cores: cores that waiting workers of the comparison used, in the worst "
    "process. Parent cores: cores that the notebook's own process used. Disturbed: the share of blocks that count "
    "although something else used the machine in every take, or they were far from the process's others.",
    "samples_per_second",
    (*CONDITION, HYPERPARAMETERS, *OF_PROCESSES),
)


def interval_text(row: pd.Series, quantity: str = "") -> str:
    """The estimate of a row, or of a quantity beside it, with its interval."""
    ends = (quantity, f"{quantity}_low", f"{quantity}_high") if quantity else ("estimate", "low", "high")
    return interval(*(row[name] for name in ends))


def span_text(values: list[float], digits: int) -> str:
    """The least and the most of some values."""
    return ends_text([number(value, digits) for value in sorted(values)])


def ends_text(ordered: list[str]) -> str:
    """The first and the last of some texts, or the one that they all are."""
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def failed(frame: pd.DataFrame) -> HTML:
    """The failures (a row each, with its ``label`` and ``failure``), equal ones of a condition together."""
    if not len(frame):
        return bullets(["Nothing failed."])
    by_failure = frame.assign(label=frame["label"].map(spelled)).groupby(["label", "failure"], sort=False)
    files = by_failure["file"].agg(lambda names: " ".join(dict.fromkeys(filter(None, names))))
    groups = pd.DataFrame({"processes": by_failure.size(), "files": files}).reset_index()
    caption = "Failures. The next run tries them again, unless the framework refused the condition."
    return html(groups.rename(columns={"label": "condition"}), caption)


def references(certificates: Iterable[Certificate]) -> str:
    """The models that others were compared with, in words."""
    others = dict.fromkeys(found for one in certificates if (found := one.reference.implementation) != "pytorch")
    usual = "PyTorch eager on the CPU"
    return f"{usual} (where that is not there: {', '.join(others)})" if others else usual


def image(svg: bytes, caption: str) -> HTML:
    """An SVG figure as notebooks and the report show it: embedded, in proportion to the page, with its caption."""
    from IPython.display import HTML

    inches = float(re.search(rb'width="([\d.]+)pt"', svg)[1]) / 72
    percent = math.floor(100 * inches / PAGE)
    style = "display: inline-block; vertical-align: top; margin: 1em 0; padding-right: 1em; box-sizing: border-box"
    style += f"; width: {percent}%; max-width: {1.4 * inches:.1f}in"
    source = base64.b64encode(svg).decode()
    text, kind = html_text.escape(caption), "benchlib-figure half" if percent <= 50 else "benchlib-figure"
    return HTML(
        f'<figure class="{kind}" style="{style}"><img alt="{text}" style="width: 100%; background: white" '
        f'src="data:image/svg+xml;base64,{source}"><figcaption>{text}</figcaption></figure>'
    )
