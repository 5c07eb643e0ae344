"""The figures: readable at their printed size, complete, and the same every time."""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from synthetic_lab import SyntheticLab

from benchlib import tables
from benchlib.condition import Condition, implementation
from benchlib.plotting import figures
from benchlib.plotting import pictures as panels
from benchlib.plotting.style import condition_looks, hue_looks, named_once, subject_look, subject_looks
from benchlib.runner import availability
from benchlib.stats.comparison import NO_DIFFERENCE, SLOWER
from benchlib.suite.experiments import batch_size, devices, learning_rate, operators

PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
FOUR = [PYTORCH, MINDSPORE, {**PYTORCH, "mode": "graph"}, {**MINDSPORE, "mode": "eager", "lane": "default"}]
FIVE = [
    PYTORCH,
    MINDSPORE,
    *(
        {"framework": name, "environment": name, "mode": "graph", "lane": "tuned", "if_there": True}
        for name in ("jax", "tensorflow", "mxnet")
    ),
]
COMMON = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}}
BLOCKS = {"precision": 0.03, "budget_s": 60, "block_s": 0.1, "pilot": 5, "margin": 0.05}
RATES = [0.001, 0.005, 0.01, 0.03, 0.05, 0.07]
SIZES = [4, 8, 16, 32, 64, 128, 256, 512, 1024]


def test_a_users_matplotlibrc_changes_no_figure() -> None:
    def drawn() -> bytes:
        figure, (axes,) = figures.panels(1, 1, 1.0)
        figures.styled(lambda: axes.set(title="a_b", xlabel="steps"))()
        return figures.svg(figure)

    usual = drawn()
    with mpl.rc_context(
        {"text.usetex": True, "figure.facecolor": "black", "axes.titlepad": 20, "path.sketch": (1, 9, 2)}
    ):
        assert drawn() == usual


def lab(**made_up: Any) -> SyntheticLab:
    return SyntheticLab(Path(mkdtemp()), **made_up)


def of_devices(subjects: list[dict], names: list[str]) -> dict[str, Any]:
    parameters = devices.Parameters(**COMMON, **BLOCKS, batch_size=128, subjects=subjects, devices=names, threads=[1])
    return devices.measure(parameters, lab()).figures


def of_batch_sizes(subjects: list[dict], sizes: list[int], seeds: list[int], **made_up: Any) -> dict[str, Any]:
    accuracy = {"accuracy_subjects": subjects[:2], "accuracy_batch_sizes": sizes, "learning_rate": 0.01, "epochs": 3}
    parameters = batch_size.Parameters(
        **COMMON,
        **BLOCKS,
        **accuracy,
        device="cpu",
        subjects=subjects,
        batch_sizes=sizes,
        train_samples=None,
        seeds=seeds,
    )
    return batch_size.measure(parameters, lab(**made_up)).figures


def of_rates(subjects: list[dict], seeds: list[int], threshold: float = 0.7, **made_up: Any) -> dict[str, Any]:
    epochs = {"epochs": 5, "most_epochs": 20, "threshold": threshold}
    parameters = learning_rate.Parameters(
        **COMMON, **epochs, device="cpu", batch_size=64, train_samples=None, subjects=subjects, seeds=seeds
    )
    return learning_rate.measure(parameters, lab(**made_up)).figures


def of_operators(subjects: list[dict], passes: list[str], wide: bool, **made_up: Any) -> dict[str, Any]:
    few, many = [64], [1, 64, 512]
    vary = many if wide else few
    made = [
        (
            "conv2d",
            {"in_channels": 16, "out_channels": 16, "image_size": 8},
            ["batch_size", "in_channels", "out_channels"],
        ),
        ("linear", {"in_features": 32, "out_features": 32}, ["batch_size", "in_features", "out_features"]),
        ("batchnorm2d", {"channels": 16, "image_size": 8}, ["batch_size", "channels"]),
    ]
    parameters = operators.Parameters(
        device="cpu",
        operators=[
            {
                "workload": name,
                "batch_size": 8,
                "hyperparameters": values,
                "vary": dict.fromkeys(names if wide else names[:1], vary),
            }
            for name, values, names in made
        ],
        passes=passes,
        subjects=subjects,
        **BLOCKS,
    )
    return operators.measure(parameters, lab(**made_up)).figures


def rated(subjects: list[dict], rates: list[float]) -> list[dict]:
    return [{**subject, "learning_rates": rates} for subject in subjects]


def no_mindspore(condition: Condition) -> bool:
    return condition.framework == "mindspore"


def diverging(condition: Condition, seed: int, epoch: int) -> float:
    return (
        math.nan if condition.learning_rate > 0.04 and epoch > 2 else 2.3 / epoch * 10 ** (condition.learning_rate * 30)
    )


def of_five(condition: Condition) -> float:
    """All faster in graph mode; MindSpore the slowest."""
    of = {"pytorch": 1.5, "mindspore": 3, "jax": 1.1, "tensorflow": 0.9, "mxnet": 1.7}[condition.framework]
    return (0.01 + 0.001 * condition.batch_size) * of


@pytest.fixture(autouse=True, scope="module")
def all_frameworks() -> Iterator[None]:
    """Are in their environments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(availability, "available", lambda framework, device, environment: None)
        yield


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "devices, cpu": lambda: of_devices([PYTORCH, MINDSPORE], ["cpu"]),
    "devices, gpu": lambda: of_devices(FOUR, ["cpu", "cuda"]),
    "batch sizes, few": lambda: of_batch_sizes([PYTORCH, MINDSPORE], [4, 32, 256], [0, 1]),
    "batch sizes, all": lambda: of_batch_sizes(FOUR, SIZES, [0, 1, 2], spread=0.1),
    "batch sizes, one": lambda: of_batch_sizes([PYTORCH, MINDSPORE], [64], [0], step=lambda condition: 0.01),
    "batch sizes, failed": lambda: of_batch_sizes([PYTORCH, MINDSPORE], [4, 32, 256], [0], fails=no_mindspore),
    "batch sizes, all failed": lambda: of_batch_sizes([PYTORCH, MINDSPORE], [4, 32], [0], fails=lambda condition: True),
    "batch sizes, five": lambda: of_batch_sizes(FIVE, [16, 128], [0], step=of_five),
    "rates, quick": lambda: of_rates([*rated([PYTORCH], [0.001, 0.01]), *rated([MINDSPORE], [0.01])], [0, 1], 0.5),
    "rates, all": lambda: of_rates(rated(FOUR, RATES), [0, 1, 2], loss=diverging),
    "rates, one": lambda: of_rates(rated([PYTORCH], [0.01]), [0], 0.99),
    "rates, failed": lambda: of_rates(rated([PYTORCH, MINDSPORE], RATES), [0], fails=no_mindspore),
    "operators, few": lambda: of_operators([PYTORCH, MINDSPORE], ["forward+backward"], wide=False),
    "operators, five": lambda: of_operators(FIVE, ["forward+backward"], wide=False, step=of_five),
    "operators, all": lambda: of_operators(FOUR, ["forward", "forward+backward"], wide=True, spread=0.2),
    "operators, differ": lambda: of_operators([PYTORCH, MINDSPORE], ["forward"], wide=True, differs=no_mindspore),
}


@cache
def captioned(case: str) -> dict[str, tuple[str, Figure]]:
    """The figures of a case with their captions, drawn once."""
    return CASES[case]()


def drawn(case: str) -> dict[str, Figure]:
    """The figures of a case."""
    return {name: figure for name, (_, figure) in captioned(case).items()}


@pytest.fixture(params=CASES)
def made(request: pytest.FixtureRequest) -> dict[str, Figure]:
    """The figures of each case in turn."""
    return drawn(request.param)


def shown_texts(figure: Figure) -> list[tuple[str, Any]]:
    """All texts that a reader sees, with their boxes in pixels."""
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        texts += [axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            first, last = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if first <= tick.get_loc() <= last]
    renderer = figure.canvas.get_renderer()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text().strip()]


def test_a_mean_over_seeds_ends_with_the_first_of_them() -> None:
    rows = [
        {"hue": "a", "epoch": epoch, "loss": 1.0 + seed} for seed, last in ((0, 3), (1, 5)) for epoch in range(last)
    ]
    _, (axes, _) = figures.panels(1, 2, height=1.5)
    figures.curve_panel(axes, pd.DataFrame(rows), figures.looks(["a"]), "loss", "loss")
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.5, 1.5, 1.5]]


def test_the_line_at_1_is_in_sight_however_small_the_ratios() -> None:
    row = {"hue": "slow", "estimate": 0.1, "low": 0.05, "high": 0.2, "control_low": 0.9, "control_high": 1.1}
    _, (axes, _) = figures.panels(1, 2, height=1.5)
    figures.bar_panel(axes, pd.DataFrame([row]), figures.looks(["slow"]), "ratio", ["a"], 0.05)
    assert axes.get_xlim()[1] > 1.1
    assert 1 in axes.get_xticks()


def bands(axes: Axes, across: str) -> list[tuple[float, float]]:
    """The ends of the bands of what is the same, on this axis ("x" or "y")."""
    pale = [patch.get_bbox() for patch in axes.patches if to_rgb(patch.get_facecolor()) == to_rgb(figures.PALE)]
    return [tuple(getattr(box, f"interval{across}").round(6)) for box in pale]


@pytest.mark.parametrize("ratio", [0.02, 1.001, 4.0])
def test_the_band_of_what_is_the_same_is_in_sight_of_every_ratio(ratio: float) -> None:
    ends = {"estimate": ratio, "low": 0.999 * ratio, "high": 1.001 * ratio}
    frame = pd.DataFrame([{"hue": "a", "batch": 1, **ends, "control_low": 0.99, "control_high": 1.01}])
    _, (left, right) = figures.panels(1, 2, height=1.5)
    figures.ratio_panel(left, frame, figures.looks(["a"]), "batch", "batch", "ratio", margin=0.1)
    figures.bar_panel(right, frame, figures.looks(["a"]), "ratio", ["a"], 0.1)
    assert (bands(left, "y"), bands(right, "x")) == ([(0.9, 1.1)], [(0.9, 1.1)])
    for low, high in (left.get_ylim(), right.get_xlim()):
        assert low < 0.9 < 1.1 < high


@pytest.mark.parametrize("case", ["batch sizes, few", "operators, few", "operators, all"])
def test_figures_of_ratios_name_the_band_of_what_is_the_same(case: str) -> None:
    caption, figure = captioned(case)["ratios"]
    assert "within the pale band is the same within 5 %" in caption
    assert "the same within 5 %" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_a_bars_number_stands_clear_of_its_target() -> None:
    ends = {"hue": "strong", "estimate": [1.1, 1.5, 2.5], "low": [1.0, 1.4, 2.4], "high": [1.4, 1.8, 2.6]}
    frame = pd.DataFrame({**ends, "control_low": 0.9, "control_high": 1.1, "target": 2.0})
    figure, (axes, _) = figures.panels(1, 2, height=1.5)
    figures.bar_panel(axes, frame, figures.looks(["strong"]), "ratio", ["a", "b", "c"], 0.05)
    figures.finish(figure, {}, [])
    stroke = axes.transData.transform((2.0, 0))[0]
    for text, box in shown_texts(figure):
        if text in {"1.10", "1.50", "2.50"}:
            assert not box.x0 <= stroke <= box.x1, text


@pytest.mark.parametrize("control_high", [1.08, 1.6])
def test_numbers_of_ratios_stand_clear_of_bars_and_of_what_lies_behind_them(control_high: float) -> None:
    ends = {"hue": "a", "estimate": [0.1, 0.93, 1.0], "low": [0.09, 0.9, 0.95], "high": [0.11, 0.96, 1.05]}
    frame = pd.DataFrame({**ends, "control_low": 0.9, "control_high": control_high})
    figure, (axes, _) = figures.panels(1, 2, height=1.5)
    figures.bar_panel(axes, frame, figures.looks(["a"]), "ratio", ["a", "b", "c"], 0.05)
    figures.finish(figure, {}, [])
    end = axes.transData.transform((control_high, 0))[0]
    numbers = {text: box for text, box in shown_texts(figure) if text in {"0.100", "0.93", "1.00"}}
    assert len(numbers) == 3
    assert min(box.x0 for box in numbers.values()) > end
    assert max(box.x1 for box in numbers.values()) <= axes.get_window_extent().x1


@pytest.mark.parametrize(("hues", "said"), [(["one", "two"], []), (["one", "other"], ["one", "other"])])
def test_rows_whose_names_say_how_they_look_have_no_legend(
    monkeypatch: pytest.MonkeyPatch, hues: list[str], said: list[str]
) -> None:
    ends = {"estimate": [1.1, 1.5], "low": [1.0, 1.4], "high": [1.4, 1.8]}
    rows = pd.DataFrame({"hue": hues, "label": ["one process", "two processes"], **ends})
    monkeypatch.setattr(panels.Bars, "rows", lambda panel, result: rows)
    drawn = panels.Bars(quantity="samples_per_second", xlabel="per second", labels="label")
    _, figure = panels.Picture(caption="", panels=[drawn], looks=lambda rows: figures.looks(rows["hue"])).draw(None)
    assert [text.get_text() for legend in figure.legends for text in legend.get_texts()] == said


def undecided_and_restless() -> pd.DataFrame:
    ends = {"estimate": [0.5, 1.02, 0.6], "low": [0.45, 0.9, 0.5], "high": [0.55, 1.15, 0.7]}
    controls = {"control_low": [0.95, 0.95, 1.02], "control_high": [1.05, 1.05, 1.08]}
    return pd.DataFrame(
        {"hue": "a", "batch": [1, 2, 4], **ends, **controls, "verdict": [SLOWER, NO_DIFFERENCE, SLOWER]}
    )


def test_what_was_not_shown_is_open_and_grey_and_a_control_that_excludes_1_hatched() -> None:
    rows, series = undecided_and_restless(), figures.looks(["a"])
    _, (left, right) = figures.panels(1, 2, height=1.5)
    figures.ratio_panel(left, rows, series, "batch", "batch", "ratio", margin=0.05)
    figures.bar_panel(right, rows, series, "ratio", ["a", "b", "c"], 0.05)
    (open_one,) = (line for line in left.lines if line.get_markerfacecolor() == "white")
    assert (list(open_one.get_xdata()), list(open_one.get_ydata()), open_one.get_color()) == ([2], [1.02], figures.GREY)
    marks = [line for line in right.lines if line.get_marker() == series["a"].marker]
    assert [line.get_markerfacecolor() == "white" for line in marks] == [False, True, False]
    assert [line.get_color() == figures.GREY for line in marks] == [False, True, False]
    bands = [band for band in right.collections if isinstance(band, PolyCollection)]
    assert [bool(band.get_hatch()) for band in bands] == [False, False, True]
    plain, striped = (band for band in left.collections if band.get_linewidth() == 7)
    assert [len(band.get_segments()) for band in (plain, striped)] == [2, 1]
    assert plain.get_linestyle() != striped.get_linestyle()
    names = [name for name, _ in figures.ratio_legend(rows, 0.05)]
    assert names[2:] == [figures.RESTLESS[0], figures.UNDECIDED[0]]


def test_an_aa_interval_that_excludes_1_is_hatched() -> None:
    rows = pd.DataFrame({"hue": "a", "estimate": [1.0, 1.05], "low": [0.98, 1.02], "high": [1.02, 1.08]})
    _, (axes,) = figures.panels(1, 1, height=1.5)
    figures.interval_panel(axes, rows, figures.looks(["a"]), "A/A", ["a", "b"])
    (hatched,) = (patch for patch in axes.patches if patch.get_hatch())
    assert hatched.get_bbox().y0 < 1 < hatched.get_bbox().y1


def test_a_framework_has_its_colour_whatever_tells_its_series_apart() -> None:
    rows = pd.DataFrame({"hue": ["fp32", "bf16", "both", "both"], "framework": ["pytorch"] * 3 + ["mindspore"]})
    made = hue_looks(rows)
    hues = [rgb_to_hsv(to_rgb(made[hue].color)) for hue in ("fp32", "bf16")]
    own = rgb_to_hsv(to_rgb(subject_look("pytorch", "default", "eager", "fp32", "tuned").color))
    assert [one[0] for one in hues] == pytest.approx([own[0]] * 2, abs=0.02)
    assert rgb_to_hsv(to_rgb(made["both"].color))[1] == 0, "grey: it is no framework's"
    several = {f"batch {size}": Condition(workload="cnn", batch_size=size) for size in range(1, 21)}
    looks = condition_looks({**several, "other": Condition(workload="cnn", framework="mindspore", mode="graph")})
    assert len({*looks.values()}) == 21, "all are told apart"
    assert looks["batch 1"] == subject_look("pytorch", "default", "eager", "fp32", several["batch 1"].lane)
    assert looks["other"] == subject_look("mindspore", "default", "graph", "fp32", several["batch 1"].lane)
    other = rgb_to_hsv(to_rgb(looks["other"].color))[0]
    assert all(abs(rgb_to_hsv(to_rgb(looks[name].color))[0] - other) > 0.05 for name in several)


def test_of_many_points_the_farthest_is_named() -> None:
    shares = {"a": [0.0, 1e-9, 0.02, 0.3], "b": [0.5, 2.5, 0.1, math.inf], "c": [0.0, math.nan, 0.1, 0.1]}
    frame = pd.DataFrame(
        [
            {"model": model, "hue": "one", "quantity": f"q{number}", "share": share}
            for model, own in shares.items()
            for number, share in enumerate(own)
        ]
    )
    figure, (axes,) = figures.panels(1, 1, height=1.5)
    figures.farthest_panel(axes, frame, figures.looks(["one"]), "share", "share", "model", "quantity")
    figures.finish(figure, {}, [])
    assert [text.get_text() for text in axes.texts] == ["0.30 q3", "inf q3", "inf q1"]
    every, marked = ([line for line in axes.lines if (line.get_marker() == "|") is stroke] for stroke in (True, False))
    least, most = axes.get_xlim()
    assert least == figures.NEAREST
    assert most > 2.5
    assert [list(line.get_xdata()) for line in every] == [
        [least, least, 0.02, 0.3],
        [0.5, 2.5, 0.1, most],
        [least, most, 0.1, 0.1],
    ]
    assert [line.get_xdata()[0] for line in marked] == [0.3, most, most]


def test_no_texts_overlap_and_none_is_cut_off(made: dict[str, Figure]) -> None:
    for name, figure in made.items():
        width, height = figure.canvas.get_width_height()
        texts = shown_texts(figure)
        assert texts
        for text, box in texts:
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
            assert inside, f"{name}: {text!r} is cut off"
        for (one, box), (other, other_box) in itertools.combinations(texts, 2):
            overlap = (
                min(box.x1, other_box.x1) - max(box.x0, other_box.x0),
                min(box.y1, other_box.y1) - max(box.y0, other_box.y0),
            )
            assert min(overlap) <= 1, f"{name}: {one!r} and {other!r} overlap"


def test_text_is_large_enough_at_printed_size(made: dict[str, Figure]) -> None:
    for figure in made.values():
        assert figure.get_figwidth() in (figures.COLUMN, figures.PAGE)
        assert all(text.get_fontsize() >= 8 for text in figure.findobj(Text) if text.get_text())


WITHOUT_UNIT = {
    "batch size",
    "learning rate",
    "epoch",
    "training loss",
    "million multiply-adds",
    "training steps per second",
}


def test_axes_have_labels_with_units(made: dict[str, Figure]) -> None:
    for name, figure in made.items():
        labels = {axes.get_xlabel() for axes in figure.axes} | {axes.get_ylabel() for axes in figure.axes}
        for label in labels - {""}:
            ratio = label.startswith("throughput relative to")
            counted = label.startswith("epochs to")
            assert ratio or counted or label in WITHOUT_UNIT or re.search(r"\(.+\)", label), (
                f"{name}: {label!r} has no unit"
            )
        bars = name == "indicators" and not any(axes.get_ylabel() for axes in figure.axes)
        for axes in figure.axes:
            below = [
                other for other in figure.axes if round(other.get_position().x0, 2) == round(axes.get_position().x0, 2)
            ]
            assert any(other.get_xlabel() for other in below), f"{name}: no label below a panel"
            left = [
                other for other in figure.axes if round(other.get_position().y0, 2) == round(axes.get_position().y0, 2)
            ]
            assert bars or any(other.get_ylabel() for other in left), f"{name}: no label beside a panel"


def has_data(axes: Axes) -> bool:
    points = [np.isfinite(np.asarray(line.get_ydata(), float)).any() for line in axes.lines if len(line.get_ydata())]
    return any(points) or len(axes.patches) > 0


def test_no_panel_is_empty(made: dict[str, Figure]) -> None:
    for name, figure in made.items():
        assert figure.axes
        for axes in figure.axes:
            texts = {text.get_text() for text in axes.texts}
            assert has_data(axes) or "no result" in texts, f"{name}: an empty panel"


def test_log_axes_have_plain_numbers(made: dict[str, Figure]) -> None:
    for name, figure in made.items():
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                labels = [text.get_text() for text in axis.get_ticklabels()]
                if axis.get_scale() == "log":
                    assert labels
                    assert all(re.fullmatch(r"[\d,]*\.?\d+", label) for label in labels), f"{name}: {labels}"


@pytest.mark.parametrize("case", ["devices, gpu", "batch sizes, all", "operators, all"])
def test_every_subject_is_named_and_has_a_look_of_its_own(case: str) -> None:
    subjects = [f"{subject['framework']} {subject['mode']} {subject['lane']}" for subject in FOUR]
    for name, figure in drawn(case).items():
        (legend,) = figure.legends
        entries = [text.get_text() for text in legend.get_texts()]
        expected = subjects[1:] if name == "ratios" else subjects[:2] if name == "metric" else subjects
        for subject in expected:
            assert any(entry.startswith(subject) for entry in entries), f"{name}: {subject} is not named"
        handles = [handle for handle in legend.legend_handles if hasattr(handle, "get_marker")]
        seen = [(str(handle.get_color()), handle.get_marker(), str(handle.get_linestyle())) for handle in handles]
        assert len(set(seen)) == len(seen)


def test_subjects_of_learning_rates_title_their_panels() -> None:
    titles = [axes.get_title(loc="left") for axes in drawn("rates, all")["curves"].axes]
    assert [title for title in titles if title] == [f"{s['framework']} {s['mode']} {s['lane']}" for s in FOUR]


def test_every_bar_has_its_label() -> None:
    axes = drawn("devices, gpu")["indicators"].axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["cpu, all threads", "cuda", "cpu, 1 thread"] * len(FOUR)


def test_intervals_and_the_line_at_1_are_drawn() -> None:
    (axes,) = drawn("batch sizes, few")["ratios"].axes
    assert any(list(line.get_ydata()) == [1, 1] for line in axes.lines)
    bars, controls = axes.collections[-1], axes.collections[0]
    assert len(bars.get_segments()) == 3, "an interval for each batch size"
    assert len(controls.get_segments()) == 3, "the A/A control of each batch size"
    for segment in controls.get_segments():
        low, high = segment[:, 1]
        assert low < high


def test_ratio_that_is_missing_is_a_cross() -> None:
    figure = drawn("operators, differ")["ratios"]
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == 4 * (3 + 3 + 2), "four sizes of each thing varied"
    assert figures.NO_RATIO[0] in [text.get_text() for text in figure.legends[0].get_texts()]


def test_run_that_diverges_is_a_cross() -> None:
    figure = drawn("rates, all")["curves"]
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == 2 * len(FOUR)
    assert figures.DIVERGED[0] in [text.get_text() for text in figure.legends[0].get_texts()]


def test_saved_files_are_there_sized_for_print_and_the_same_every_time(tmp_path: Path) -> None:
    make = CASES["batch sizes, few"]
    for folder in ("one", "two"):
        for name, (_, figure) in make().items():
            figures.save(figure, tmp_path / folder, name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(
        f"{name}.{kind}" for name in ("indicators", "ratios", "metric") for kind in ("png", "svg", "pdf")
    )
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), f"{name} differs"
    width, _ = struct.unpack(">II", (tmp_path / "one" / "indicators.png").read_bytes()[16:24])
    assert width == round(figures.PAGE * 300)
    assert b'width="252pt"' in (tmp_path / "one" / "ratios.svg").read_bytes()
    assert b"/FontFile2" in (tmp_path / "one" / "ratios.pdf").read_bytes(), "text stays text"


def test_figure_is_embedded_with_its_caption() -> None:
    shown = tables.image(figures.svg(drawn("batch sizes, few")["ratios"]), 'Ratios <"1">').data
    assert re.search(r'src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"', shown)
    assert "<figcaption>Ratios &lt;&quot;1&quot;&gt;</figcaption>" in shown
    assert "http" not in shown
    assert "width: 48%" in shown, "one column is less than half of the page: two are side by side"


# How colours look without the cones for red or for green: Machado, Oliveira and Fernandes 2009, severity 1, linear RGB.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def seen(colors: np.ndarray, matrix: np.ndarray) -> list[np.ndarray]:
    """Colours (sRGB) as somebody sees whose eyes, or whose printer, make ``matrix`` of linear ones: CIE L*a*b*."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return [_lab(color) for color in np.clip(linear @ np.array(matrix).T, 0, 1)]


@pytest.mark.parametrize("kind", BLINDNESS)
def test_all_colours_differ_for_colour_blind_readers(kind: str) -> None:
    names = [f"subject {i}" for i in range(7)]
    colors = np.array([sns.color_palette([look.color])[0] for look in figures.looks(names).values()])
    pairs = itertools.combinations(zip(names, seen(colors, BLINDNESS[kind]), strict=True), 2)
    for (one, a), (other, b) in pairs:
        least = 20 if {one, other} <= set(names[:4]) else 12
        assert np.linalg.norm(a - b) > least, f"{one} and {other} look alike with {kind}"


def subjects_looks(subjects: list[tuple[str, str, str]]) -> dict[str, figures.Look]:
    """Of a framework, its environment and a mode each, as figures draw them."""
    rows = pd.DataFrame(subjects, columns=["framework", "environment", "mode"]).assign(precision="fp32", lane="tuned")
    named = (implementation(one.framework, one.environment) for one in rows.itertuples())
    rows = rows.assign(subject=[f"{who} {mode} tuned" for who, mode in zip(named, rows["mode"], strict=True)])
    rows = named_once(rows)
    return subject_looks(rows.assign(hue=rows["subject"]))


def test_five_frameworks_have_each_a_colour_a_marker_and_a_line() -> None:
    subjects = [(one["framework"], one.get("environment", "default"), one["mode"]) for one in FIVE]
    looks = subjects_looks(subjects)
    assert len({look.marker for look in looks.values()}) == len({look.line for look in looks.values()}) == 5
    colors = np.array([to_rgb(look.color) for look in looks.values()])
    for kind, matrix in BLINDNESS.items():
        for (one, a), (other, b) in itertools.combinations(zip(looks, seen(colors, matrix), strict=True), 2):
            assert np.linalg.norm(a - b) > 12, f"{one} and {other} look alike with {kind}"
    both = subjects_looks([(who, where, mode) for who, where, _ in subjects for mode in ("eager", "graph")])
    assert len({look.marker for look in both.values()}) == 10
    third = subjects_looks([("tensorflow", "tensorflow", "graph-xla")])
    assert len({look.marker for look in (both | third).values()}) == 11


def test_an_environment_that_is_called_like_its_framework_goes_without_saying_in_figures() -> None:
    alone = [("pytorch", "default", "eager"), ("jax", "jax", "graph"), ("pytorch", "torch-2.9", "eager")]
    assert list(subjects_looks(alone)) == ["pytorch eager tuned", "jax graph tuned", "pytorch torch-2.9 eager tuned"]
    beside = [("jax", "default", "graph"), ("jax", "jax", "graph")]
    looks = subjects_looks(beside)
    assert list(looks) == ["jax graph tuned", "jax jax graph tuned"]
    assert len(set(looks.values())) == 2
    ratio = pd.DataFrame(
        {
            **{"framework": ["jax"], "environment": ["jax"], "subject": ["jax jax graph tuned"]},
            **{"baseline_framework": ["jax"], "baseline_environment": ["default"]},
            "baseline_subject": ["jax graph tuned"],
        }
    )
    assert named_once(ratio)["subject"].tolist() == ["jax jax graph tuned"]
    other = ratio.assign(baseline_environment="jax", baseline_subject="jax jax eager tuned")
    named = named_once(other)
    assert (*named["subject"], *named["baseline_subject"]) == ("jax graph tuned", "jax eager tuned")


def test_figures_of_five_frameworks_name_each_once() -> None:
    for case in ("batch sizes, five", "operators, five"):
        for name, figure in drawn(case).items():
            texts = " ".join(" ".join(text.split()) for text, _ in shown_texts(figure))
            if name != "metric":  # of two of them
                for one in FIVE[1:]:
                    assert texts.count(f"{one['framework']} graph tuned") == 1, f"{name}: {texts}"


GREY = [[0.2126, 0.7152, 0.0722]] * 3


def test_what_has_one_grey_differs_in_marker_and_line() -> None:
    for made in (figures.looks, figures.ordered_looks):
        looks = made(f"subject {i}" for i in range(7))
        colors = np.array([sns.color_palette([look.color[:3]])[0] for look in looks.values()])
        lightness = [color[0] for color in seen(colors, GREY)]
        pairs = itertools.combinations(zip(looks.values(), lightness, strict=True), 2)
        for (one, a), (other, b) in pairs:
            assert abs(a - b) > 20 or (one.marker != other.marker and one.line != other.line)


def test_lines_of_one_panel_differ_in_grey(made: dict[str, Figure]) -> None:
    """Crosses and open triangles, which are marks at a line, aside."""
    for name, figure in made.items():
        for axes in figure.axes:
            lines = [line for line in axes.lines if len(line.get_xdata()) and line.get_marker() not in ("x", "^")]
            colored = {str(line.get_color()): (np.array(to_rgb(line.get_color())), set()) for line in lines}
            for line in lines:
                dashes = line._unscaled_dash_pattern  # of all dashes that have no name the style is "--"
                colored[str(line.get_color())][1].add((line.get_marker(), str((line.get_linestyle(), dashes))))
            for (a, how), (b, how_other) in itertools.combinations(colored.values(), 2):
                (light, *_), (dark, *_) = seen(np.array([a, b]), GREY)
                assert abs(light - dark) > 20 or how != how_other, f"{name}: two lines look alike in grey"


def _lab(linear: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB: distances of about 2 are just noticeable."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
