"""From numbers to what people read: rounded to what is known, with units; as CSV with every digit, and as Markdown.

A frame's column ``measurements`` names the files that a row's numbers were made from, by key. Nobody wants to read it,
so it is not shown; it is in the CSV, and ``benchlib.paper.trace`` reads it there.
"""

from __future__ import annotations

import html as html_text
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchlib.environments import DEFAULT

if TYPE_CHECKING:
    from IPython.display import HTML

CHOSEN = {
    "subject": "framework, mode, lane",
    "baseline": "relative to",
    "train_samples": "training samples",
    "epochs_trained": "after epochs",
    "metric_of": "metric",
    "world_size": "world size",
    "published_on": "published on",
    "verdict_here": "verdict",
    "takes": "what the rest would take",
    "first_why": "why",
    "control_why": "why no A/A",
    "times_left_out": "times left out",
}
"""Headings of columns that say what a row is about, where their names do not do; words with _ between them do."""

MEASURED = {
    "ratio": "throughput ratio",
    "control": "A/A",
    "verdict": "verdict",
    "processes": "processes",
    "failed": "failed",
    "samples_per_second": "throughput (samples/s)",
    "steps_per_second": "steps/s",
    "step_ms": "step (ms)",
    "cores_used": "cores used",
    "cpu_percent": "CPU (% of machine)",
    "memory_mib": "peak memory (MiB)",
    "peak_memory_mib": "peak memory (MiB)",
    "memory_import_mib": "memory after import (MiB)",
    "memory_steady_mib": "after the last step (MiB)",
    "memory_private_mib": "of it private (MiB)",
    "memory_children_mib": "its children (MiB)",
    "accelerator_percent": "accelerator (%)",
    "accelerator_memory_mib": "its memory, driver (MiB)",
    "accelerator_power_w": "its power (W)",
    "accelerator_temperature_c": "its temperature (°C)",
    "accelerator_clock_mhz": "its clock (MHz)",
    "accelerator_throttled": "throttled (share of the time)",
    "joules_per_sample": "energy (J/sample)",
    "device_peak_mib": "its memory, framework's peak (MiB)",
    "first_step_s": "first step (s)",
    "warm_up_s": "warm-up (s)",
    "steady": "steady (share of processes)",
    "idle_cores": "cores of others",
    "parent_cores": "cores of the parent",
    "slows_down": "slows down",
    "disturbed": "disturbed (share of blocks)",
    "disturbed_time": "disturbed (share of the time)",
    "times_count": "its times count",
    "half_width_percent": "widest half-width (%)",
    "ended": "why it ended",
    "peak_share_percent": "share of the machine's peak (%)",
    "million_multiply_adds": "million multiply-adds",
    "accuracy_percent": "test accuracy (%)",
    "lowest": "lowest seed",
    "highest": "highest seed",
    "known_s": "known (s)",
    "timed_s": "seen by the timer (s)",
    "timed_share": "share",
    "share_of_few": "share of a few steps",
    "metric": "metric",
    "final_metric": "mean",
    "difference": "difference from the first",
    "runs": "runs",
    "best_metric": "best metric",
    "epochs": "epochs",
    "reached": "reached",
    "epochs_to_threshold": "epochs to threshold",
    "epochs_longest": "epochs of the longest run",
    "seconds_to_threshold": "time to threshold (s)",
    "seconds": "training time (s)",
    "epoch_s": "epoch (s)",
    "epoch_ratio": "throughput ratio, whole epochs",
    "threshold_ratio": "times as soon at the threshold",
    "within_ratio": "throughput ratio",
    "claimed_ratio": "ratio in the direction of the claim",
    "published_ratio": "published",
    "final_loss": "training loss",
    "first_epoch": "first epoch, compilation included (of the others' mean)",
    "first_epoch_alone": "without (of the others' mean)",
    "first_eager_s": "first step, eager (s)",
    "first_graph_s": "first step, graph (s)",
    "step_eager_ms": "step, eager (ms)",
    "step_graph_ms": "step, graph (ms)",
    "pays_after_steps": "pays after steps",
    "pays_after_epochs": "epochs",
    "pays_after_s": "time (s)",
    "efficiency_percent": "efficiency (%)",
    "same_threads_ratio": "relative to one process with as many threads",
    "communication_percent": "communication (% of a step)",
    "loss": "loss",
    "loss_ratio": "relative to fp32",
    "diverged": "diverged",
    "half_width_median": "half width, median (%)",
    "half_width_largest": "half width, largest (%)",
}
"""Headings, with units, of columns that hold results: these are rounded, and shown even where they are all the same."""

MISSING = "–"

NOTHING = "There is nothing to show: the table has no rows."

WHY = "why"
"""The column that says of a row without a number why it has none; empty in the others."""

FILES = "measurements"
"""The column with the keys of the files that a row was made from, a space between them."""


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
    """An estimate and its interval, rounded to the first digit of its half width, or the second where the first is 1;
    and where the ends are far apart, so that two digits of the lower are left.

    >>> interval(0.3123, 0.2911, 0.3342), interval(2.25, 0.541, 9.38)
    ('0.31 [0.29, 0.33]', '2.25 [0.54, 9.38]')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{number(estimate)} (no interval)" if math.isfinite(estimate) else MISSING
    return _interval(estimate, low, high, _decimals(estimate, low, high))


def ratio(estimate: float, low: float, high: float) -> str:
    """As :func:`interval`, to two decimals at least, and to so many that an end that is not 1 does not read as 1.

    >>> ratio(1.04, 1.003, 1.078)
    '1.040 [1.003, 1.078]'
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return interval(estimate, low, high)
    decimals = max(2, _decimals(estimate, low, high))
    while decimals < 6 and any(end != 1 and round(end, decimals) == 1 for end in (low, high)):
        decimals += 1
    return _interval(estimate, low, high, decimals)


def display(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The frame as text, and a sentence on what is the same in all its rows, and on why some have no number, which the
    text then leaves out.

    Columns ``x``, ``x_low`` and ``x_high`` become one. Columns without any value go, and so do those that another one
    says: framework, environment, mode and lane by ``subject``, device and threads by ``where``. Nor does anybody want
    to read that all is of the default environment.
    """
    said = {FILES, *(("framework", "environment", "mode", "lane", "label") if "subject" in frame else ())}
    if "environment" in frame and set(frame["environment"]) <= {DEFAULT}:
        said.add("environment")
    said |= {"device", "threads"} if "where" in frame else set()
    said |= {WHY} if {"subject", WHY} <= set(frame) else set()
    shown = [name for name in frame if name not in said and not _is_end(name, frame) and _has_values(name, frame)]
    same = []
    if "subject" in frame:
        kept = {*MEASURED, *(("subject", "where", "change") if len(frame) == 1 else ())}
        kept -= {"control"} if len(frame) > 1 else set()  # of one comparison all rows have the same
        same = [name for name in shown if name not in kept and len(set(_column(frame, name))) == 1]
    text = pd.DataFrame({heading(name): _column(frame, name) for name in shown if name not in same})
    common = "; ".join(f"{heading(name)} {_column(frame, name)[0]}" for name in same)
    told = [f"{'In all rows' if len(frame) > 1 else 'Here'}: {common}."] if common else []
    return text, " ".join([*told, *(_reasons(frame) if WHY in said else [])])


def _reasons(frame: pd.DataFrame) -> Iterator[str]:
    """Of a column in which most rows have nothing and some much, a sentence for each reason."""
    names = frame["subject"].map(lambda one: _cell("subject", one))
    if "task" in frame and frame["task"].nunique() > 1:
        names = names + " on " + frame["task"]
    for why, rows in frame.dropna(subset=[WHY]).groupby(WHY, sort=False):
        who = ", ".join(dict.fromkeys(names[rows.index]))
        yield f"{who}: {_cell(WHY, why)}{'' if str(why).endswith(('.', '…')) else '.'}"


def heading(name: str) -> str:
    """Of a column, as people read it."""
    return CHOSEN.get(name) or MEASURED.get(name) or name.replace("_", " ")


def html(frame: pd.DataFrame, caption: str) -> HTML:
    """The frame as it is shown in a notebook and in the report: with its caption, numbers to the right."""
    from IPython.display import HTML

    if not len(frame):
        return bullets([f"{caption} {NOTHING}"])
    text, same = display(frame)
    numbers = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame if heading(name) in text]
    styles = {"th": ["text-align: right" if number else "text-align: left" for number in numbers]}
    styles["td"] = ["text-align: right; white-space: nowrap" if number else "text-align: left" for number in numbers]

    def row(cells: Iterable[str], tag: str) -> str:
        each = zip(cells, styles[tag], strict=True)
        cells = (f'<{tag} style="{style}">{_lines(cell)}</{tag}>' for cell, style in each)
        return f"<tr>{''.join(cells)}</tr>"

    head = row(text.columns, "th")
    body = "".join(row(cells, "td") for cells in text.itertuples(index=False))
    above = html_text.escape(f"{caption} {same}".strip())
    return HTML(f"<table><caption>{above}</caption><thead>{head}</thead><tbody>{body}</tbody></table>")


def _lines(text: str) -> str:
    return html_text.escape(text).replace("\n", "<br>")


def bullets(sentences: Iterable[str]) -> HTML:
    """Sentences as a list."""
    from IPython.display import HTML

    return HTML("<ul>" + "".join(f"<li>{html_text.escape(sentence)}</li>" for sentence in sentences) + "</ul>")


def markdown(frame: pd.DataFrame, caption: str) -> str:
    """The frame as it is shown, as a table of GitHub's Markdown under its caption."""
    if not len(frame):
        return f"{caption} {NOTHING}\n"
    text, same = display(frame)
    right = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame if heading(name) in text]

    def row(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), '<br>') for cell in cells)} |"

    rules = ["---:" if number else "---" for number in right]
    body = [row(cells) for cells in text.itertuples(index=False)]
    return "\n".join([f"{caption} {same}".strip(), "", row(text.columns), row(rules), *body]) + "\n"


def save(frame: pd.DataFrame, folder: Path, name: str, caption: str) -> list[Path]:
    """Write ``folder/name.csv``, unrounded, and ``folder/name.md``, as it is shown."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv", folder / f"{name}.md"]
    if not len(frame.columns):
        frame = pd.DataFrame(columns=[FILES])  # a CSV file without a head cannot be read
    frame.to_csv(paths[0], index=False)
    paths[1].write_text(markdown(frame, caption), encoding="utf-8")
    return paths


def together(files: Iterable[str]) -> str:
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


def _is_end(name: str, frame: pd.DataFrame) -> bool:
    return any(name.endswith(end) and name.removesuffix(end) in frame for end in ("_low", "_high"))


def _has_values(name: str, frame: pd.DataFrame) -> bool:
    return name == "threads" or not frame[name].isna().all()


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
    return str(value)
