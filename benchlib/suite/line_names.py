"""The names of lines beside their ends, which a legend would say less well.

A name covers nothing, is inside its panel and near its line; where that cannot be had, nothing is written.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.cbook import pts_to_poststep
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator

from benchlib.suite.looks import Look

LABEL_GAP = 5  # points between the end of a line and its name
NAME_WIDTHS = (60, 14)  # characters of a line of a name: in one line, or if that does not fit in two
LEAST_PLOT = 0.6  # of a panel's width that is left for the lines beside their names


def write(figure: Figure, series: Mapping[str, Look]) -> bool:
    """Write the name of each series beside the end of its line, in every panel: in one line, or broken. False, and
    nothing is changed, if a series is drawn without a line, or its name would cover something.
    """
    return any(_write(figure, series, width) for width in NAME_WIDTHS)


def _write(figure: Figure, series: Mapping[str, Look], width: int) -> bool:
    """As :func:`write`, with names broken after ``width`` characters."""
    figure.draw_without_rendering()
    panels = [(axes, _named_lines(axes, series)) for axes in figure.axes if axes.lines or axes.patches]
    if not all(lines for _, lines in panels) or {*series} != {name for _, lines in panels for name in lines}:
        return False
    before = [(axes, axes.get_xlim(), axes.xaxis.get_major_locator()) for axes, _ in panels]
    written = [_write_names(axes, lines, width) for axes, lines in panels]
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    for (axes, limits, _), names in zip(before, written, strict=True):
        _end_across(axes, limits[1], names, renderer)
    if all(
        names and _spread_out(names, renderer) and _covers_nothing(axes, lines, names, renderer)
        for (axes, lines), names in zip(panels, written, strict=True)
    ):
        for axes, limits, _ in before:
            axes.spines.bottom.set_bounds(limits)  # the axis ends where it did: there is nothing below the names
        return True
    for (axes, limits, locator), names in zip(before, written, strict=True):
        for name in names:
            name.remove()
        for line in _across(axes):
            line.set_xdata([0, 1])
        axes.set_xlim(limits)
        axes.xaxis.set_major_locator(locator)
    return False


def _across(axes: Axes) -> list[Line2D]:
    """The lines right across a panel, as that at 1."""
    return [line for line in axes.lines if line.get_transform() == axes.get_yaxis_transform(which="grid")]


def _end_across(axes: Axes, last: float, names: Sequence[Annotation], renderer: RendererBase) -> None:
    """End the lines right across a panel where its axis ends, at ``last``, or before names that begin just there."""
    box, gap = axes.get_window_extent(), renderer.points_to_pixels(LABEL_GAP)
    at = axes.transData.transform((last, axes.get_ylim()[0]))[0]
    first = min([at, *(name.get_window_extent(renderer).x0 - 1 for name in names)])
    for line in _across(axes) if at - first < 2 * gap else ():
        line.set_xdata([0, (first - box.x0) / box.width])


def _named_lines(axes: Axes, series: Mapping[str, Look]) -> dict[str, Line2D]:
    """The line of each series that is drawn in a panel; empty if one is drawn otherwise."""
    lines = {line.get_label(): line for line in axes.lines if line.get_label() in series and len(line.get_xdata())}
    colors = [line.get_color() for line in axes.lines] + [patch.get_facecolor() for patch in axes.patches]
    others = {to_rgb(look.color) for name, look in series.items() if name not in lines}
    return {} if any(to_rgb(color) in others for color in colors) else lines


def _write_names(axes: Axes, lines: Mapping[str, Line2D], width: int) -> list[Annotation]:
    """Names beside the ends of lines, with the room for them at the right of the axis; none if that takes too much."""
    ends = {name: np.array(line.get_xydata())[-1] for name, line in lines.items()}
    names = [
        axes.annotate(
            textwrap.fill(name, width),
            end,
            xytext=(LABEL_GAP, 0),
            textcoords="offset points",
            va="center",
            linespacing=1.0,
            annotation_clip=False,
        )
        for name, end in ends.items()
    ]
    renderer, box = axes.figure.canvas.get_renderer(), axes.get_window_extent()
    reached = [axes.transData.transform(end)[0] - box.x0 for end in ends.values()]
    taken = [name.get_window_extent(renderer).x1 - box.x0 - at for name, at in zip(names, reached, strict=True)]
    share = min((box.width - room) / at for at, room in zip(reached, taken, strict=True))
    if share < LEAST_PLOT:
        for name in names:
            name.remove()
        return []
    if share < 1:
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(FixedLocator([tick for tick in axes.get_xticks() if low <= tick <= high]))
        scale = axes.xaxis.get_transform()
        first, last = scale.transform([low, high])
        axes.set_xlim(low, scale.inverted().transform([first + (last - first) / share])[0])
    return names


def _spread_out(names: Sequence[Annotation], renderer: RendererBase) -> bool:
    """Move names that overlap apart, up and down; False if one would have to go far from its line."""
    ordered = sorted(names, key=lambda name: name.get_window_extent(renderer).y0)
    boxes = [name.get_window_extent(renderer) for name in ordered]
    places = [box.y0 for box in boxes]
    for _ in range(20):
        for i, (below, above) in enumerate(itertools.pairwise(boxes)):
            excess = places[i] + below.height + 1 - places[i + 1]
            if excess > 0 and below.x0 < above.x1 and above.x0 < below.x1:
                places[i], places[i + 1] = places[i] - excess / 2, places[i + 1] + excess / 2
    points = renderer.points_to_pixels(1)
    for name, box, place in zip(ordered, boxes, places, strict=True):
        if abs(place - box.y0) > 0.6 * box.height:
            return False
        name.xyann = (LABEL_GAP, (place - box.y0) / points)
    return True


def _covers_nothing(
    axes: Axes, lines: Mapping[str, Line2D], names: Sequence[Annotation], renderer: RendererBase
) -> bool:
    """Is each name inside the panel, beside all other names, and beside all lines?"""
    frame, boxes = axes.get_window_extent(), [name.get_window_extent(renderer) for name in names]
    if any(one.overlaps(other) for one, other in itertools.combinations([box.padded(-0.5) for box in boxes], 2)):
        return False
    paths = [line.get_transform().transform_path(_stepped(line)) for line in axes.lines if len(line.get_xdata())]
    return all(
        frame.y0 - 2 <= box.y0 and box.y1 <= frame.y1 + 2 and box.x1 <= frame.x1 + 2 for box in boxes
    ) and not any(path.intersects_bbox(box, filled=False) for path in paths for box in boxes)


def _stepped(line: Line2D) -> Path:
    """The path of a line as it is drawn."""
    if line.get_drawstyle() != "steps-post":
        return line.get_path()
    return Path(pts_to_poststep(*line.get_path().vertices.T).T)
