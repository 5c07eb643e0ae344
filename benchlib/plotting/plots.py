"""A figure for each result that shows itself in a notebook: the result of its ``plot()``."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchlib import metrics, tables
from benchlib.cache import Measurement, identity
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.plotting import Curves, Picture, figures
from benchlib.plotting.style import assign_looks, condition_looks
from benchlib.shown import Shown
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns
from benchlib.workloads import load

TRACE = {
    "worker_cores": "cores used",
    "rss_mib": "resident (MiB)",
    "accelerator_percent": "accelerator (%)",
    "accelerator_memory_mib": "its memory (MiB)",
}
"""The sampler's readings that are drawn beside the blocks, where there are any."""


@figures.styled
def draw(result: Shown) -> Figure:
    """``result`` as a figure. It shows itself in a notebook with its caption: of a figure that pyplot has not made,
    IPython shows but a line of text.
    """
    figure, caption = _draw(result)
    figure._repr_html_ = lambda: tables.image(figures.svg(figure), caption).data
    return figure


Drawn = tuple[Figure, str]  # with its caption
PLAIN = {"workload", "framework", "environment", "mode", "precision", "device", "lane", "data"}  # without their names


@functools.singledispatch
def _draw(result: Shown) -> Drawn:
    raise BenchlibError(f"a {type(result).__name__} has no figure: show its table")


@_draw.register
def _(compared: Comparison) -> Drawn:
    """Ratios to the baseline with their intervals and the A/A control's, beside each condition's throughput."""
    frame, names = tidy.of_comparison(compared), _short_labels(compared.conditions)
    ratios, speeds = (frame[frame["quantity"] == name] for name in ("throughput_ratio", "samples_per_second"))
    series = condition_looks(dict(zip(names, compared.conditions, strict=True)))
    itself = pd.DataFrame(
        [{"estimate": 1.0, "control_low": compared.control.low, "control_high": compared.control.high}]
    )
    ratios = pd.concat([itself, ratios], ignore_index=True).assign(hue=names)
    figure, (left, right) = figures.panels(1, 2, height=0.5 + 0.24 * len(names))
    figures.row_panel(left, ratios, series, names, "throughput ratio", compared.margin)
    unit = load(compared.baseline.workload).unit
    figures.row_panel(right, speeds.assign(hue=names), series, [""] * len(names), f"{unit} per second")
    caption = (
        f"Throughput relative to {tables.spelled(names[0])}, the first row, and throughput, with 95 % intervals over "
        f"processes. Right of the line is faster. {figures.margin_text(compared.margin)}"
    )
    return figures.finish(figure, {}, figures.ratio_legend(ratios, compared.margin, crosses=False)), caption


@_draw.register
def _(measured: Measurement) -> Drawn:
    """The blocks of a process over time, and beside them the sampler's readings."""
    blocks = measured.blocks
    if not blocks:
        return _draw_nothing(f"no block: {measured.failure or 'nothing was timed'}")
    traced = {name: label for name, label in TRACE.items() if any(getattr(s, name) is not None for s in measured.trace)}
    began = min([block.started_s for block in blocks] + [sample.at_s for sample in measured.trace])
    look, *_ = assign_looks(["step"]).values()
    figure, (top, *others) = figures.panels(1 + len(traced), 1, height=1.0)
    for block in blocks:
        ms, at = 1000 * block.wall_s / block.steps, block.started_s - began
        top.plot([at, at + block.wall_s], [ms, ms], color=look.color, linewidth=2, alpha=0.5)
        marker, color = ("x", "0.2") if block.disturbed else (look.marker, look.color)
        top.plot(at + block.wall_s / 2, ms, marker, color=color)
    top.set_ylabel("ms per step")  # not from 0: readers look for a drift of a few percent
    top.margins(y=0.2)
    for axes, (name, label) in zip(others, traced.items(), strict=True):
        at, read = zip(*((s.at_s - began, getattr(s, name)) for s in measured.trace), strict=True)
        axes.plot(at, [math.nan if value is None else value for value in read], color=look.color, marker=".")
        axes.set(ylabel=label, ylim=(0, 1.1 * axes.dataLim.y1 or 1))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.sharex(top)
    figure.axes[-1].set_xlabel("seconds")
    caption = f"{measured.condition}: the time of a step in each block, and the sampler's readings beside it."
    extra = [figures.DISTURBED] if any(block.disturbed for block in blocks) else []
    return figures.finish(figure, {"a block": look}, extra), caption


@_draw.register
def _(trained: TrainingRuns) -> Drawn:
    """Metric and loss by epoch."""
    names = dict(zip(map(str, trained.conditions), _short_labels(trained.conditions), strict=True))
    curves = trained.curves()
    if not len(curves):
        return _draw_nothing("no run has come to the end of an epoch")
    metric = load(trained.conditions[0].workload).metric
    factor, unit = metrics.readable_unit(metric)
    threshold = None if trained.threshold is None else factor * trained.threshold
    picture = Picture(
        caption="Metric on the test data, and loss, by epoch: the mean over seeds, and from the lowest to the highest.",
        panels=[
            Curves(y="metric", ylabel=f"test {metric} ({unit})", threshold=lambda rows: threshold),
            Curves(y="loss", ylabel="training loss"),
        ],
        looks=lambda rows: condition_looks(dict(zip(names.values(), trained.conditions, strict=True))),
    )
    named = curves.assign(subject=curves["label"].map(names))
    caption, figure = picture.draw(SimpleNamespace(curves=named, margin=math.nan))
    return figure, caption


@_draw.register
def _(given: Certificate) -> Drawn:
    """The largest relative differences from the reference, over their tolerances."""
    if not given.checks:
        return _draw_nothing(f"{given.verdict}: {given.reason}")
    checks = given.table()
    drawn = {"the trial that agrees least": "worst", "the one that counts": "difference"}
    frame = pd.concat(checks.assign(hue=trial, share=figures.shares(checks, name)) for trial, name in drawn.items())
    figure, (axes,) = figures.panels(1, 1, height=0.5 + 0.2 * len(given.checks))
    figures.dot_panel(axes, frame, assign_looks(drawn), "share", "largest relative difference / tolerance", "name")
    caption = (
        f"{given.condition} against {given.reference}: {given.verdict}. Left of the line is within the tolerance; a "
        "difference of 0 is drawn at the left edge."
    )
    return figures.finish(figure, assign_looks(drawn)), caption


def _short_labels(conditions: Sequence[Condition]) -> list[str]:
    """Labels that distinguish the conditions, in few words; all of a condition that is alone."""
    if len(conditions) == 1:
        return [str(conditions[0])]
    chosen = [{name: value for name, value in identity(one).items() if value is not None} for one in conditions]
    names = [name for name in dict.fromkeys(itertools.chain.from_iterable(chosen)) if name != "label"]
    apart = [name for name in names if len({str(one.get(name)) for one in chosen}) > 1]
    words = {name: "" if name in PLAIN else f"{name.replace('_', ' ')} " for name in apart}
    return [", ".join(f"{words[name]}{one.get(name, tables.MISSING)}" for name in apart) for one in chosen]


def _draw_nothing(why: str) -> Drawn:
    """Draw ``why`` in place of a figure, where there is nothing to draw."""
    why = " ".join(why.split())
    figure, (axes,) = figures.panels(1, 1, height=0.5)
    axes.set_axis_off()
    axes.text(0.5, 0.5, why[:120], transform=axes.transAxes, ha="center", va="center")
    return figure, why
