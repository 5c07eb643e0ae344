"""Results show themselves: their HTML and their text have the numbers, their figure draws them."""

import html
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from synthetic_lab import SyntheticLab

from benchlib import reprs, tables
from benchlib.cache import Measurement, Sample
from benchlib.condition import Condition
from benchlib.equivalence.certificate import TRUST, Certificate
from benchlib.errors import BenchlibError
from benchlib.plotting import figures
from benchlib.provenance.knobs import Ledger
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns

TORCH = Condition(workload="cnn", lane="tuned", hyperparameters={"image_size": 8})
MINDSPORE = TORCH.but(framework="mindspore", mode="graph")


@pytest.fixture
def lab(tmp_path: Path) -> SyntheticLab:
    return SyntheticLab(tmp_path)


def compared(lab: SyntheticLab, *conditions: Condition) -> Comparison:
    return lab.compare([TORCH, *conditions], precision=0.03, budget_s=60, block_s=0.1)


def trained(lab: SyntheticLab, threshold: float | None = 0.7) -> TrainingRuns:
    return lab.train([TORCH, MINDSPORE], seeds=[0, 1], epochs=5, threshold=threshold, most_epochs=6)


def cells(table: str) -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", table)


def drawn(figure: Figure, panel: int = 0) -> list[tuple[float, float]]:
    """The points of a panel's lines."""
    return [tuple(map(float, point)) for line in figure.axes[panel].lines for point in line.get_xydata()]


def shows_itself(figure: Figure) -> bool:
    """In a notebook, with its caption."""
    shown = figure._repr_html_()
    return "data:image/svg+xml;base64," in shown and bool(re.search("<figcaption>.+</figcaption>", shown, re.DOTALL))


def test_a_comparison_shows_ratios_intervals_verdicts_and_throughput(lab: SyntheticLab) -> None:
    comparison = compared(lab, MINDSPORE)
    control, ratio = (row for _, row in comparison.ratios().iterrows())
    first = comparison.throughput().iloc[0]
    for said in (
        str(MINDSPORE),
        "slower",
        tables.ratio(ratio["ratio"], ratio["low"], ratio["high"]),
        tables.ratio(control["ratio"], control["low"], control["high"]),
        tables.interval(first["samples_per_second"], first["low"], first["high"]),
    ):
        assert said in cells(reprs.html(comparison))
        assert said in str(comparison)
    assert len(str(comparison)) < 3000
    assert f"{ratio['ratio']:.5g}" in str(comparison.ratios())
    figure = comparison.plot()
    assert {(1.0, 0.0), (ratio["ratio"], 1.0)} <= set(drawn(figure))
    assert {(rate, float(place)) for place, rate in enumerate(comparison.throughput()["samples_per_second"])} <= set(
        drawn(figure, 1)
    )
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["PyTorch, eager", "MindSpore, graph"]
    assert shows_itself(figure)
    assert figures.svg(comparison.plot()) == figures.svg(comparison.plot())


@pytest.mark.parametrize("how", ["differs", "cannot", "fails"])
def test_a_comparison_without_a_ratio_shows_why(tmp_path: Path, how: str) -> None:
    comparison = compared(SyntheticLab(tmp_path, **{how: lambda condition: condition == MINDSPORE}), MINDSPORE)
    verdict, why = {
        "differs": ("models differ", "outputs differs by 1.0e-01, 1e-05 allowed"),
        "cannot": ("models not checked", "worker failed in"),
        "fails": ("not measured", "failed: 1, see failures()"),
    }[how]
    for text in (reprs.html(comparison), str(comparison)):
        assert verdict in text
        assert why in text
    assert verdict in [text.get_text() for text in comparison.plot().axes[0].texts]


@pytest.fixture
def measurement(lab: SyntheticLab) -> Measurement:
    measured = compared(lab, MINDSPORE).measurements[0].model_copy(deep=True)
    for number, block in enumerate(measured.blocks):
        block.started_s, block.wall_s, block.steps, block.samples = 100.0 + number, 0.5, 5, 5 * TORCH.batch_size
    measured.blocks[2].disturbed = True
    measured.trace = [
        Sample(at_s=100.5 + i, machine_cpu_percent=90.0, worker_cores=1.0 + i, rss_mib=500.0 + i) for i in range(4)
    ]
    return measured


def test_a_process_shows_its_blocks_and_its_trace(measurement: Measurement) -> None:
    assert f"{TORCH}: baseline, repetition 0, seed 0" in reprs.html(measurement)
    assert cells(reprs.html(measurement))[:3] == ["5", "0.200", "100"], "blocks, share disturbed, ms a step"
    figure = measurement.plot()
    assert {(number, 100.0) for number in range(5)} <= set(drawn(figure))
    assert [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "x"] == [2.25]
    assert [axes.get_ylabel() for axes in figure.axes] == ["ms per step", "cores used", "resident (MiB)"]
    assert drawn(figure, 1) == [(0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (3.5, 4.0)]
    assert shows_itself(figure)


def test_a_process_that_failed_shows_why(measurement: Measurement) -> None:
    measurement.failure, measurement.blocks = "died in <block>", []
    assert "died in &lt;block&gt;" in reprs.html(measurement)
    assert "died in <block>" in str(measurement)
    assert "died in <block>" in measurement.plot().axes[0].texts[0].get_text()


def test_training_runs_show_metrics_times_and_curves(lab: SyntheticLab) -> None:
    runs = trained(lab)
    mine = runs.runs().query("framework == 'pytorch'")["metric"]
    assert cells(reprs.html(runs))[0] == str(TORCH)
    for said in (100 * mine.min(), 100 * mine.max()):
        assert tables.number(said) in cells(reprs.html(runs))
        assert tables.number(said) in str(runs)
    assert "threshold" not in reprs.html(trained(lab, threshold=None))
    figure = runs.plot()
    for panel, name in enumerate(["metric", "loss"]):
        means = runs.curves().query("framework == 'pytorch'").groupby("epoch")[name].mean()
        points = list((means * (100 if name == "metric" else 1)).items())  # in per cent
        assert np.allclose(drawn(figure, panel)[: len(means)], points)
    assert 70 in [y for _, y in drawn(figure)], "the threshold"
    run = runs.measurements[0]
    assert tables.number(run.epochs[-1].metric) in cells(reprs.html(run))
    assert shows_itself(figure)


def test_training_runs_of_another_model_say_so(tmp_path: Path) -> None:
    runs = trained(SyntheticLab(tmp_path, differs=lambda condition: condition == MINDSPORE))
    for text in (reprs.html(runs), str(runs)):
        assert f"{MINDSPORE}: different: outputs: outputs differs by 1.0e-01, 1e-05 allowed" in text
        assert f"{TORCH}: " not in text
    assert "different" in str(runs.runs())


def test_what_all_failed_shows_itself_too(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path, fails=lambda condition: True)
    for result in (compared(lab, MINDSPORE), trained(lab), compared(lab)):
        assert str(TORCH) in reprs.html(result)
        assert shows_itself(result.plot())


def test_a_certificate_shows_differences_tolerances_and_the_evidence(lab: SyntheticLab) -> None:
    certificate = lab.certify([TORCH, MINDSPORE])[MINDSPORE.key]
    checks = [certificate.checks[0].model_copy(update={"own": 1.5e-4}), *certificate.checks[1:]]
    seen = {"exercised": {"label 3": True, "padding": False}, "training": 50, "checks": checks, "batch_size": 512}
    assert cells(reprs.html(certificate))[:4] == ["outputs", "1.0e-07", "1.0e-05", "same"]
    shown = reprs.html(certificate.model_copy(update=seen))
    for said in ("label 3", "padding", "50 steps", "1.5e-04", "512", "mindspore 1.0"):
        assert said in shown
    assert TRUST in shown
    figure = certificate.plot()
    assert (pytest.approx(0.01), 0) in drawn(figure), "1e-7 of the 1e-5 that outputs may differ"
    assert (figure.axes[0].get_xlim()[0], 1) in drawn(figure), "predictions that are equal, at the left edge"
    assert shows_itself(figure)


def test_a_certificate_without_checks_shows_why(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path, cannot=lambda condition: True)
    certificate: Certificate = lab.certify([MINDSPORE])[MINDSPORE.key]
    for text in (reprs.html(certificate), str(certificate)):
        assert "not checked" in text
        assert "no bf16" in text
    assert "not checked" in certificate.plot().axes[0].texts[0].get_text()


def test_a_ledger_shows_what_was_set_with_its_reason(lab: SyntheticLab) -> None:
    for measured in (compared(lab, MINDSPORE), trained(lab)):
        for m in measured.measurements:
            m.knobs, m.left_out = {"PYTHONUNBUFFERED": "an older value"}, ["NPROC"]
        ledger = measured.ledger()
        shown = ledger.frame.drop(columns="environment")  # all are of the default
        shown["framework"] = shown["framework"].map(tables.spelled)
        found = cells(reprs.html(ledger))
        assert found == [html.escape(str(value)) for row in shown.itertuples(index=False) for value in row]
        assert "an older value" in found
        assert "OMP_WAIT_POLICY" in found, "of the gate"
        assert "NPROC" in reprs.html(ledger)
    assert tables.NOTHING in reprs.html(Ledger([]))
    with pytest.raises(BenchlibError, match="a Ledger has no figure"):
        Ledger([]).plot()


LEDGER = """
import sys
from benchlib import lab
from benchlib.provenance import knobs
from benchlib import Certificate, Condition

tuned = Condition(workload="cnn", lane="tuned")
ledger = knobs.Ledger([Certificate(condition=tuned, reference=tuned, knobs=knobs.find(tuned))])
"""
"""A result that shows itself, as one may type it."""


def printed(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_no_drawing_library_is_imported_before_a_figure_is_asked_for() -> None:
    script = f"{LEDGER}\nledger._repr_html_()\nprint(*(set(sys.modules) & {{'matplotlib', 'benchlib.suite'}}))"
    assert printed(script) == "\n"


def test_in_ipython_a_result_at_the_end_of_a_cell_is_shown_with_nothing_done_for_it() -> None:
    script = f"""
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in ({LEDGER!r}, "from benchlib.shown import Shown"):
    shell.run_cell(cell).raise_error()
for result in (shell.user_ns["ledger"], type("Other", (shell.user_ns["Shown"],), {{}})()):
    formats, _ = shell.display_formatter.format(result)
    print(formats.get("text/html", "only text"))
"""
    table, other = printed(script).splitlines()
    assert "MALLOC_MMAP_THRESHOLD_" in cells(table)
    assert other == "only text", "what nothing is said of"


def test_without_what_draws_a_figure_is_an_error_that_says_what_to_install() -> None:
    script = f"""{LEDGER}
from benchlib.errors import BenchlibError

sys.modules["matplotlib"] = None
try:
    ledger.plot()
except BenchlibError as error:
    print(error)
"""
    assert re.search(r"needs matplotlib, .*: pip install 'benchlib\[suite\]'", printed(script))
