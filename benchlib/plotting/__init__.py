"""Figures: a notebook's pictures, drawn and saved."""

from benchlib.plotting.pictures import (
    Bars,
    Costs,
    Curves,
    Differences,
    Intervals,
    Lines,
    Panel,
    Picture,
    Points,
    Ratios,
    Survival,
    Value,
    metric_of,
    relative_to,
    threshold_of,
)
