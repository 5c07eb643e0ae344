"""Figures: what a notebook names, draws and saves."""

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
    relative_to,
)

__all__ = [
    "Bars",
    "Costs",
    "Curves",
    "Differences",
    "Intervals",
    "Lines",
    "Panel",
    "Picture",
    "Points",
    "Ratios",
    "Survival",
    "Value",
    "relative_to",
]
