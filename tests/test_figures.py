"""The figures: readable at their printed size, complete, and the same every time."""

import itertools
import math
import re
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from synthetic_lab import SyntheticLab

from benchlib import tables
from benchlib.condition import Condition
from benchlib.plotting import Bars, Curves, Differences, Intervals, Lines, Picture, Points, Ratios, Survival, figures
from benchlib.plotting.style import assign_looks, condition_looks, hue_looks, name_once, subject_look, subject_looks
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import NO_DIFFERENCE, SLOWER

TORCH = Condition(workload="cnn", data="digits", hyperparameters={"image_size": 8}, lane="tuned", learning_rate=0.01)
GRAPH, MINDSPORE = TORCH.but(mode="graph"), TORCH.but(framework="mindspore", mode="graph")
FIVE = [TORCH, MINDSPORE, *(GRAPH.but(framework=name, environment=name) for name in ("jax", "tensorflow", "mxnet"))]
SIZES = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
RATES = [0.001, 0.005, 0.01, 0.03, 0.05]


def compared(conditions: list[Condition], sizes: list[int], **made_up: Any) -> SimpleNamespace:
    """What a study has of a comparison for each batch size."""
    lab, every = SyntheticLab(Path(mkdtemp()), **made_up), []
    for part, size in enumerate(sizes):
        made = lab.compare([one.but(batch_size=size) for one in conditions], precision=0.03, budget_s=60, block_s=0.1)
        every.append(tidy.of_comparison(made, notebook="x", task=f"batch {size}", part=part, margin=0.05))
    return SimpleNamespace(frame=tidy.concat(every), margin=0.05)


def trained(rates: list[float], threshold: float = 0.7, **made_up: Any) -> SimpleNamespace:
    """What a study has of training runs at learning rates."""
    conditions = [one.but(learning_rate=rate) for one in (TORCH, MINDSPORE) for rate in rates]
    lab, limits = SyntheticLab(Path(mkdtemp()), **made_up), {"threshold": threshold, "most_epochs": 20}
    runs = lab.train(conditions, seeds=[0, 1, 2], epochs=5, **limits)
    subjects = {str(one): one.subject for one in conditions}
    rows = [one.assign(subject=one["label"].map(subjects), threshold=threshold) for one in (runs.runs(), runs.curves())]
    return SimpleNamespace(runs=rows[0], curves=rows[1], margin=0.05)


def line(quantity: str, ylabel: str, log_y: bool = False) -> Lines:
    return Lines(quantity=quantity, x="batch_size", xlabel="batch size", ylabel=ylabel, log_y=log_y)


def bars(quantity: str, xlabel: str) -> Bars:
    return Bars(quantity=quantity, xlabel=xlabel, labels="subject")


def curves(y: str, ylabel: str, **more: Any) -> Curves:
    return Curves(y=y, ylabel=ylabel, hue=lambda run: f"learning rate {run['learning_rate']:g}", **more)


def points(y: str, ylabel: str, **more: Any) -> Points:
    return Points(y=y, x="learning_rate", ylabel=ylabel, **more)


ITSELF = Intervals(quantity="control_ratio", xlabel="throughput relative to itself", labels="task")
IN_COLUMN = {"caption": "One.", "width": figures.COLUMN}
RATIOS = Picture(panels=[Ratios(x="batch_size", xlabel="batch size")], height=2.6, **IN_COLUMN)
SPEED, MEMORY = line("samples_per_second", "throughput (images/s)", True), line("memory_mib", "peak memory (MiB)")
INDICATORS = Picture(caption="Indicators.", panels=[SPEED, MEMORY])
ROWS = Picture(caption="", panels=[bars("throughput_ratio", "relative to the first")], each="task", columns=2)
BARS = Picture(caption="", panels=[bars("samples_per_second", "images/s"), bars("memory_mib", "peak memory (MiB)")])
CONTROLS = Picture(caption="A/A.", panels=[ITSELF])
METRIC = points("metric", "accuracy (%)", from_zero=False)
EPOCHS = points("epochs_watched", "epochs to 70 %", censored="censored")
POINTS = Picture(caption="Points.", panels=[METRIC, EPOCHS])
CURVES = Picture(
    caption="Curves.",
    panels=[curves("loss", "training loss"), curves("metric", "accuracy (%)", threshold=lambda rows: 70.0)],
    each="subject",
    looks=lambda rows: figures.ordered_looks(rows["hue"]),
)
MODELS = Picture(caption="Models.", panels=[Differences()])
SURVIVAL = Picture(panels=[Survival()], **IN_COLUMN)


def diverging(condition: Condition, seed: int, epoch: int) -> float:
    far = condition.learning_rate > 0.04 and epoch > 2
    return math.nan if far else 2.3 / epoch * 10 ** (condition.learning_rate * 30)


def of_five(condition: Condition) -> float:
    of = {"pytorch": 1.5, "mindspore": 3, "jax": 1.1, "tensorflow": 0.9, "mxnet": 1.7}[condition.framework]
    return (0.01 + 0.001 * condition.batch_size) * of


def no_mindspore(condition: Condition) -> bool:
    return condition.framework == "mindspore"


def forest(**made_up: Any) -> tuple[str, Figure]:
    rows = name_once(compared(FIVE, [16, 128], **made_up).frame.query("quantity == 'throughput_ratio'"))
    rows = rows.assign(hue=rows["subject"], label=rows["subject"] + ", batch " + rows["batch_size"].astype(str))
    rows.loc[-1, "label"] = "cnn on digits: a convolutional network of three layers on images of 8x8 pixels"
    rows = rows.sort_index()
    return "Forest.", figures.forest(rows, subject_looks(rows.dropna(subset="hue")), "relative to pytorch", 0.05)


CASES: dict[str, Callable[[], list[tuple[str, Figure] | None]]] = {
    "few": lambda: [one.draw(compared([TORCH, MINDSPORE], [4, 32, 256])) for one in (RATIOS, INDICATORS, ROWS)],
    "many": lambda: [one.draw(compared(FIVE, SIZES, spread=0.1)) for one in (RATIOS, INDICATORS, CONTROLS)],
    "five": lambda: [one.draw(compared(FIVE, [16, 128], step=of_five)) for one in (RATIOS, INDICATORS, ROWS)],
    "one": lambda: [one.draw(compared([TORCH, MINDSPORE], [64])) for one in (RATIOS, INDICATORS, BARS, CONTROLS)],
    "failed": lambda: [one.draw(compared(FIVE, [4, 32], fails=no_mindspore)) for one in (RATIOS, INDICATORS, ROWS)],
    "differ": lambda: [one.draw(compared(FIVE, [4], differs=no_mindspore)) for one in (RATIOS, ROWS)],
    "all failed": lambda: [INDICATORS.draw(compared([TORCH, MINDSPORE], [4, 32], fails=lambda one: True))],
    "forest": lambda: [forest(step=of_five), forest(differs=no_mindspore)],
    "models": lambda: [MODELS.draw(SimpleNamespace(certificates=SyntheticLab(Path(mkdtemp())).certify(FIVE)))],
    "rates": lambda: [one.draw(trained(RATES, loss=diverging)) for one in (POINTS, CURVES, SURVIVAL)],
    "rate": lambda: [one.draw(trained([0.01], 0.99)) for one in (POINTS, CURVES, SURVIVAL)],
}


@cache
def captioned(case: str) -> list[tuple[str, Figure]]:
    return CASES[case]()


def drawn(case: str) -> list[Figure]:
    return [figure for _, figure in captioned(case)]


@pytest.fixture(params=CASES)
def made(request: pytest.FixtureRequest) -> list[Figure]:
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


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_no_texts_overlap_none_is_cut_off_and_all_are_large_enough(made: list[Figure]) -> None:
    for figure in made:
        assert figure.get_figwidth() in (figures.COLUMN, figures.PAGE)
        assert all(text.get_fontsize() >= 8 for text in figure.findobj(Text) if text.get_text())
        width, height = figure.canvas.get_width_height()
        texts = shown_texts(figure)
        assert texts
        for text, box in texts:
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
            assert inside, f"{text!r} is cut off"
        for (one, box), (other, second) in itertools.combinations(texts, 2):
            overlap = min(box.x1, second.x1) - max(box.x0, second.x0), min(box.y1, second.y1) - max(box.y0, second.y0)
            assert min(overlap) <= 1, f"{one!r} and {other!r} overlap"


def has_data(axes: Axes) -> bool:
    points = [np.isfinite(np.asarray(line.get_ydata(), float)).any() for line in axes.lines if len(line.get_ydata())]
    return any(points) or "no result" in {text.get_text() for text in axes.texts}


def test_no_panel_is_empty_and_log_axes_have_plain_numbers(made: list[Figure]) -> None:
    for axes in (axes for figure in made for axes in figure.axes):
        assert has_data(axes)
        for axis in (axes.xaxis, axes.yaxis):
            labels = [text.get_text() for text in axis.get_ticklabels()]
            if axis.get_scale() == "log":
                assert labels
                assert all(re.fullmatch(r"[\d,]*\.?\d+", label) for label in labels), labels


def undecided_and_restless() -> pd.DataFrame:
    ends = {"estimate": [0.5, 1.02, 0.6], "low": [0.45, 0.9, 0.5], "high": [0.55, 1.15, 0.7]}
    controls = {"control_low": [0.95, 0.95, 1.02], "control_high": [1.05, 1.05, 1.08]}
    told = {"verdict": [SLOWER, NO_DIFFERENCE, SLOWER]}
    return pd.DataFrame({"hue": "a", "batch": [1, 2, 4], **ends, **controls, **told})


@pytest.mark.parametrize("upright", [True, False])
def test_a_ratio_has_its_interval_its_control_the_margin_and_whether_it_was_decided(upright: bool) -> None:
    rows, series = undecided_and_restless(), assign_looks(["a"])
    _, (axes,) = figures.panels(1, 1, height=1.5)
    figures.intervals(axes, rows, series, [1, 2, 4], margin=0.05, upright=upright)
    value = 1 if upright else 0
    controls, striped, *bars = axes.collections
    assert [len(one.get_segments()) for one in (controls, striped)] == [2, 1]
    assert controls.get_linestyle() != striped.get_linestyle()
    ends = [sorted(segment[:, value]) for segment in bars[0].get_segments()]
    assert ends == [pytest.approx(list(pair)) for pair in zip(rows["low"], rows["high"], strict=True)]
    (band,) = axes.patches
    box = band.get_bbox()
    assert (box.intervaly if upright else box.intervalx) == pytest.approx([0.95, 1.05])
    (open_one,) = (line for line in axes.lines if line.get_markerfacecolor() == "white")
    assert open_one.get_xydata()[:, value].tolist() == [1.02]
    names = [name for name, _ in figures.ratio_legend(rows, 0.05)]
    assert names[1:] == ["the same within 5 %", figures.RESTLESS[0], figures.UNDECIDED[0]]


@pytest.mark.parametrize("ratio", [0.02, 1.001, 4.0])
def test_1_and_the_margin_are_in_sight_of_every_ratio(ratio: float) -> None:
    ends = {"estimate": ratio, "low": 0.999 * ratio, "high": 1.001 * ratio}
    frame = pd.DataFrame([{"hue": "a", "batch": 1, **ends, "control_low": 0.99, "control_high": 1.01}])
    _, (left, right) = figures.panels(1, 2, height=1.5)
    lines = Lines(quantity="throughput_ratio", x="batch", xlabel="batch", ylabel="ratio")
    lines.draw(left, frame, assign_looks(["a"]), SimpleNamespace(margin=0.1))
    figures.row_panel(right, frame, assign_looks(["a"]), ["a"], "ratio", 0.1)
    for low, high in (left.get_ylim(), right.get_xlim()):
        assert low < 0.9 < 1.1 < high


def test_a_ratio_that_is_missing_is_a_cross_or_says_why() -> None:
    upright, in_rows = drawn("differ")
    assert "x" in [line.get_marker() for axes in upright.axes for line in axes.lines]
    assert figures.NO_RATIO[0] in legend_of(upright)
    assert "models differ" in [text for text, _ in shown_texts(in_rows)]


def test_the_plot_of_the_forest_has_two_fifths_of_its_width() -> None:
    for figure in drawn("forest"):
        (axes,) = figure.axes
        assert axes.get_position().width >= 0.4
        labels = [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]
        assert labels[0].startswith("cnn on digits: ")
        assert "MindSpore graph tuned, batch 128" in labels


def test_a_run_that_diverges_is_a_cross_and_one_that_did_not_get_there_a_triangle() -> None:
    points, curves, _ = drawn("rates")
    crosses = [line for axes in curves.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == 2
    assert figures.DIVERGED[0] in legend_of(curves)
    assert figures.CENSORED[0] in legend_of(points)


def test_a_mean_over_seeds_ends_with_the_first_of_them() -> None:
    rows = [{"hue": "a", "epoch": at, "loss": 1.0 + seed} for seed, last in ((0, 3), (1, 5)) for at in range(last)]
    _, (axes,) = figures.panels(1, 1, height=1.5)
    Curves(y="loss", ylabel="loss").draw(axes, pd.DataFrame(rows), assign_looks(["a"]), None)
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.5, 1.5, 1.5]]


def test_of_many_points_the_farthest_is_named_and_what_is_not_finite_is_at_the_edge() -> None:
    shares = {"a": [0.0, 1e-9, 0.02, 0.3], "b": [0.5, 2.5, 0.1, math.inf], "c": [0.0, math.nan, 0.1, 0.1]}
    points = [(model, f"q{number}", share) for model, own in shares.items() for number, share in enumerate(own)]
    frame = pd.DataFrame(points, columns=["model", "quantity", "share"]).assign(hue="one")
    _, (axes,) = figures.panels(1, 1, height=1.5)
    figures.dot_panel(axes, frame, assign_looks(["one"]), "share", "share", "model", "quantity")
    assert [text.get_text() for text in axes.texts] == ["0.30 q3", "inf q3", "inf q1"]
    least, most = axes.get_xlim()
    assert least == figures.NEAREST
    (strokes,) = (line for line in axes.lines if line.get_marker() == "|")
    assert list(strokes.get_xdata()) == [least, least, 0.02, 0.3, 0.5, 2.5, 0.1, most, least, most, 0.1, 0.1]


def test_rows_whose_names_say_how_they_look_have_no_legend() -> None:
    (_, figure), (_, other) = captioned("one")[2], captioned("five")[0]
    assert not figure.legends
    assert {"MindSpore", "JAX", "TensorFlow", "MXNet"} <= {text.split()[0] for text in legend_of(other)}


def test_what_nobody_measured_is_no_figure() -> None:
    assert Picture(caption="", panels=[bars("within_ratio", "")]).draw(compared([TORCH, MINDSPORE], [4])) is None


def test_saved_files_are_sized_for_print_and_always_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "KINDS", ("png", "svg", "pdf"))
    for folder in ("one", "two"):
        _, figure = RATIOS.draw(compared([TORCH, MINDSPORE], [4, 32]))
        paths = figures.save(figure, tmp_path / folder, "ratios")
    for path in paths:
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()
    assert struct.unpack(">II", paths[0].read_bytes()[16:24])[0] == round(figures.COLUMN * 300)
    assert b'width="252pt"' in paths[1].read_bytes()
    assert b"/FontFile2" in paths[2].read_bytes(), "text stays text"
    shown = tables.image(paths[1].read_bytes(), 'Ratios <"1">').data
    assert "<figcaption>Ratios &lt;&quot;1&quot;&gt;</figcaption>" in shown
    assert "http" not in shown
    assert "width: 48%" in shown, "one column is less than half of the page: two are side by side"


def test_a_users_matplotlibrc_changes_no_figure() -> None:
    def made() -> bytes:
        figure, (axes,) = figures.panels(1, 1, 1.0)
        figures.styled(lambda: axes.set(title="a_b", xlabel="steps"))()
        return figures.svg(figure)

    usual = made()
    with mpl.rc_context({"text.usetex": True, "figure.facecolor": "black", "axes.titlepad": 20}):
        assert made() == usual


# How colours look without the cones for red or for green: Machado, Oliveira and Fernandes 2009, severity 1, linear RGB.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
GREY = [[0.2126, 0.7152, 0.0722]] * 3


def seen(color: Any, matrix: list[list[float]]) -> np.ndarray:
    """A colour (sRGB) as somebody sees whose eyes, or whose printer, make ``matrix`` of linear ones: CIE L*a*b*, in
    which distances of about 2 are just noticeable.
    """
    c = np.array(to_rgb(color))
    linear = np.clip(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ np.transpose(matrix), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def of_subjects(conditions: list[Condition]) -> dict[str, figures.Look]:
    """As figures draw them."""
    rows = name_once(tidy.of_rows(tidy.row("step_ms", one, tidy.Interval(1.0, 1.0, 1.0, 1)) for one in conditions))
    return subject_looks(rows.assign(hue=rows["subject"]))


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("made", [assign_looks(map(str, range(7))), of_subjects(FIVE)], ids=["names", "frameworks"])
def test_all_colours_differ_for_colour_blind_readers(kind: str, made: dict[str, figures.Look]) -> None:
    for one, other in itertools.combinations(made.values(), 2):
        assert np.linalg.norm(seen(one.color, BLINDNESS[kind]) - seen(other.color, BLINDNESS[kind])) > 12


def test_subjects_look_the_same_everywhere_and_differ_not_by_colour_alone() -> None:
    every = [*FIVE, GRAPH, TORCH.but(lane="default"), TORCH.but(precision="bf16"), MINDSPORE.but(mode="eager")]
    made = of_subjects(every)
    for one in every:
        ((name, look),) = of_subjects([one]).items()
        assert made[name] == look
    for one, other in itertools.combinations(made.values(), 2):
        assert one.color != other.color
        assert (one.marker, one.line) != (other.marker, other.line)
    both = of_subjects([one.but(mode=mode) for one in FIVE for mode in ("eager", "graph")])
    third = of_subjects([FIVE[3].but(mode="graph-xla")])
    assert len({look.marker for look in (both | third).values()}) == 11


def test_what_has_one_grey_differs_in_marker_and_line() -> None:
    for ordered in (assign_looks, figures.ordered_looks):
        for one, other in itertools.combinations(ordered(f"subject {i}" for i in range(7)).values(), 2):
            apart = abs(seen(one.color[:3], GREY)[0] - seen(other.color[:3], GREY)[0])
            assert apart > 20 or (one.marker != other.marker and one.line != other.line)


def test_a_framework_has_its_colour_whatever_tells_its_series_apart() -> None:
    rows = pd.DataFrame({"hue": ["fp32", "bf16", "both", "both"], "framework": ["pytorch"] * 3 + ["mindspore"]})
    made = hue_looks(rows)
    own = rgb_to_hsv(to_rgb(subject_look("pytorch", "default", "eager", "fp32", "tuned").color))
    for hue in ("fp32", "bf16"):
        assert rgb_to_hsv(to_rgb(made[hue].color))[0] == pytest.approx(own[0], abs=0.02)
    assert rgb_to_hsv(to_rgb(made["both"].color))[1] == 0, "grey: it is no framework's"
    several = {f"batch {size}": TORCH.but(batch_size=size) for size in range(1, 21)}
    assert len({*condition_looks({**several, "other": MINDSPORE}).values()}) == 21, "all are told apart"
