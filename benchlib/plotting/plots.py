"""A figure for each result that shows itself in a notebook: what its ``plot()`` gives."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchlib import tables
from benchlib.condition import Condition, implementation
from benchlib.equivalence.certificate import Certificate
from benchlib.plotting import figures
from benchlib.plotting.style import condition_looks
from benchlib.provenance.knobs import Ledger
from benchlib.shown import Shown
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns
from benchlib.store import Measurement, identity
from benchlib.workloads import load

TRACE = {
    "worker_cores": "cores used",
    "rss_mib": "resident (MiB)",
    "accelerator_percent": "accelerator (%)",
    "accelerator_memory_mib": "its memory (MiB)",
}
"""What of the sampler's readings is drawn beside the blocks, where it was read."""

_DISTURBED = ("disturbed", Line2D([], [], color="0.2", marker="x", linestyle=""))


@functools.singledispatch
def draw(result: Shown) -> Figure:
    """``result`` as a figure, which shows itself in a notebook with its caption."""
    raise NotImplementedError(f"nothing is said of how a {type(result).__name__} is drawn")


@draw.register
@figures.styled
def _(compared: Comparison) -> Figure:
    """Ratios to the baseline with their intervals and the A/A control's, beside each condition's throughput."""
    frame, names = tidy.of_comparison(compared), _short(compared.conditions)
    ratios, speeds = (frame[frame["quantity"] == name] for name in ("throughput_ratio", "samples_per_second"))
    looks, labels = condition_looks(dict(zip(names, compared.conditions, strict=True))), [""] * len(names)
    figure, (left, right) = figures.panels(1, 2, height=0.5 + 0.24 * len(names))
    _ratio_rows(left, looks, ratios, compared.margin)
    control = compared.control
    if math.isfinite(control.low):
        left.axvspan(control.low, control.high, color=figures.GREY, alpha=0.35, linewidth=0, zorder=1)
    unit = load(compared.baseline.workload).unit
    figures.bar_panel(right, speeds.assign(hue=names), looks, f"{unit} per second", labels)
    extra = figures.ratio_legend(ratios, compared.margin)
    caption = (
        f"Throughput relative to {names[0]}, the first row, and throughput, with 95 % intervals over processes. Right "
        "of the line is faster. Differences within the grey band cannot be told from noise. "
        f"{figures.margin_text(compared.margin)}"
    )
    return _shown(figures.finish(figure, {}, extra), caption)


@draw.register
@figures.styled
def _(measured: Measurement) -> Figure:
    """The blocks of a process over time, and beside them what the sampler read."""
    blocks = measured.blocks
    if not blocks:
        return _nothing(f"no block: {measured.failure or 'nothing was timed'}")
    traced = {name: label for name, label in TRACE.items() if any(getattr(s, name) is not None for s in measured.trace)}
    began = min([block.started_s for block in blocks] + [sample.at_s for sample in measured.trace])
    look, *_ = figures.looks(["step"]).values()
    figure, (top, *others) = figures.panels(1 + len(traced), 1, height=1.0)
    for block in blocks:
        ms = 1000 * block.wall_s / block.steps
        at = [block.started_s - began, block.started_s - began + block.wall_s]
        top.plot(at, [ms, ms], color=look.color, linewidth=2, alpha=0.5)
        marker, color = ("x", "0.2") if block.disturbed else (look.marker, look.color)
        top.plot(sum(at) / 2, ms, marker, color=color)
    top.set_ylabel("ms per step")  # not from 0: a drift of a few percent is what one looks for
    top.margins(y=0.2)
    for axes, (name, label) in zip(others, traced.items(), strict=True):
        at, read = zip(*((s.at_s - began, getattr(s, name)) for s in measured.trace), strict=True)
        axes.plot(at, [math.nan if value is None else value for value in read], color=look.color, marker=".")
        _from_zero(axes, label)
        axes.sharex(top)
    figure.axes[-1].set_xlabel("seconds")
    caption = f"{measured.condition}: the time of a step in each block, and what the sampler read beside it."
    extra = [_DISTURBED] if any(block.disturbed for block in blocks) else []
    return _shown(figures.finish(figure, {"a block": look}, extra), caption)


@draw.register
@figures.styled
def _(trained: TrainingRuns) -> Figure:
    """Metric and loss by epoch: means over seeds, and bands from the lowest seed to the highest."""
    frame = trained.curves()
    if not len(frame):
        return _nothing("no run has come to the end of an epoch")
    names = dict(zip([str(one) for one in trained.conditions], _short(trained.conditions), strict=True))
    frame = frame.assign(hue=frame["label"].map(names))
    looks = condition_looks(dict(zip(names.values(), trained.conditions, strict=True)))
    drawn = {name: look for name, look in looks.items() if (frame["hue"] == name).any()}
    metric = load(trained.conditions[0].workload).metric
    figure, (left, right) = figures.panels(1, 2, height=2.0)
    figures.curve_panel(left, frame, drawn, "metric", f"test {metric}")
    figures.curve_panel(right, frame, drawn, "loss", "training loss", log_y=True)
    extra = []
    if trained.threshold is not None:
        left.axhline(trained.threshold, color="0.2", linewidth=0.8, linestyle=":")
        extra = [(f"threshold {trained.threshold:g}", figures.THRESHOLD)]
    caption = "Metric on the test data, and loss, by epoch: the mean over seeds, and from the lowest to the highest."
    return _shown(figures.finish(figure, looks, extra), caption)


@draw.register
@figures.styled
def _(given: Certificate) -> Figure:
    """The largest relative differences from the reference, over what is allowed."""
    if not given.checks:
        return _nothing(f"{given.verdict}: {given.reason}")
    checks, drawn = given.table(), {"the trial that agrees least": "worst", "the one that counts": "difference"}
    shares = {
        trial: [_share(*pair) for pair in zip(checks[name], checks["tolerance"], strict=True)]
        for trial, name in drawn.items()
    }
    frame = pd.concat([checks.assign(trial=trial, share=share) for trial, share in shares.items()])
    looks = figures.looks(drawn)
    figure, (axes,) = figures.panels(1, 1, height=0.5 + 0.2 * len(given.checks))
    figures.dot_panel(axes, frame, looks, "share", "largest relative difference / tolerance", "name", "trial")
    axes.axvline(1, color="0.2", linewidth=0.8)
    caption = (
        f"{given.condition} against {given.reference}: {given.verdict}. Left of the line is within the tolerance; a "
        "difference of 0 is drawn at the left edge."
    )
    return _shown(figures.finish(figure, looks), caption)


@draw.register
@figures.styled
def _(kept: Ledger) -> Figure:
    """Which knob is set where: a row for each, a column for each framework, environment, device and lane."""
    frame = kept.frame
    conditions = [process.condition for process in kept.processes]
    columns = list(dict.fromkeys(f"{one.implementation}\n{one.device} {one.lane}" for one in conditions))
    names = list(dict.fromkeys(frame["name"]))
    if not names:
        return _nothing("no knob is set")
    figure, (axes,) = figures.panels(1, 1, height=0.5 + 0.2 * len(names))
    axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(-0.5, len(columns) - 0.5))
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(columns)), columns)
    axes.tick_params(length=0)
    look, *_ = figures.looks(["set"]).values()
    for row in frame.itertuples():
        place = columns.index(f"{implementation(row.framework, row.environment)}\n{row.device} {row.lane}")
        axes.plot(place, names.index(row.name), "s", color=look.color, markersize=7)
    return _shown(figure, "The knobs that were set, by framework, device and lane; all others are as installed.")


def _short(conditions: Sequence[Condition]) -> list[str]:
    """What tells the conditions apart, in few words; all of a condition that is alone."""
    if len(conditions) == 1:
        return [str(conditions[0])]
    chosen = [{name: value for name, value in identity(one).items() if name != "label"} for one in conditions]
    names = dict.fromkeys(itertools.chain.from_iterable(chosen))
    apart = [name for name in names if len({str(one.get(name)) for one in chosen}) > 1]
    return [", ".join(_told(name, one.get(name)) for name in apart) for one in chosen]


def _told(name: str, value: object) -> str:
    plain = name in {"workload", "framework", "environment", "mode", "precision", "device", "lane", "data"}
    if plain:
        return str(value)
    return f"{name.replace('_', ' ')} {'–' if value is None else value}"


def _ratio_rows(axes: Axes, series: Mapping[str, figures.Look], ratios: pd.DataFrame, margin: float) -> None:
    """The baseline at 1, and under it a ratio with its interval for each row of a frame, on a logarithmic axis, with a
    band within the ``margin`` of 1; a row without a ratio is a cross there, and says why.
    """
    axes.set(xscale="log", xlabel="throughput ratio", ylim=(len(series) - 0.4, -0.6))
    axes.set_yticks(range(len(series)), series)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.axvline(1, color="0.2", linewidth=0.8, zorder=1.5)
    axes.axvspan(1 - margin, 1 + margin, color=figures.PALE, linewidth=0, zorder=0)
    baseline, *looks = series.values()
    axes.plot(1, 0, baseline.marker, color=baseline.color, zorder=4)
    for place, (look, (_, row)) in enumerate(zip(looks, ratios.iterrows(), strict=True), 1):
        if pd.isna(row["estimate"]):
            axes.plot(1, place, "x", color=look.color, zorder=4)
            axes.annotate(row["why"], (1, place), xytext=(6, 0), textcoords="offset points", va="center")
            continue
        axes.plot([row["low"], row["high"]], [place, place], color=look.color, linestyle=look.line, zorder=3)
        axes.plot(row["estimate"], place, look.marker, color=look.color, zorder=4)
    figures.ratio_axis(axes.xaxis, ratios["estimate"], [*ratios["low"], *ratios["high"], 1 - margin, 1 + margin])


def _from_zero(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.set_ylim(0, 1.1 * axes.dataLim.y1 or 1)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _share(difference: float, tolerance: float) -> float:
    """Of what is allowed; where nothing is, any difference is too much."""
    if difference == 0:
        return 0.0
    return difference / tolerance if tolerance else np.inf


def _nothing(why: str) -> Figure:
    """In place of a figure, where there is nothing to draw."""
    figure, (axes,) = figures.panels(1, 1, height=0.5)
    axes.set_axis_off()
    axes.text(0.5, 0.5, " ".join(why.split())[:120], transform=axes.transAxes, ha="center", va="center")
    return _shown(figure, " ".join(why.split()))


def _shown(figure: Figure, caption: str) -> Figure:
    """The figure, which then shows itself in a notebook with its caption: of a figure that pyplot has not made, IPython
    shows but a line of text.
    """
    figure._repr_html_ = functools.partial(_html, figure, caption)
    return figure


def _html(figure: Figure, caption: str) -> str:
    return tables.image(figures.svg(figure), caption).data
