"""Objects show themselves in a notebook: their HTML has the numbers, their figure draws them."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from synthetic_lab import SyntheticLab

from benchlib import reprs, tables
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Forgiven
from benchlib.plotting import figures
from benchlib.provenance.knobs import Ledger
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns
from benchlib.store import Measurement, Sample

TORCH = Condition(workload="cnn", lane="tuned", hyperparameters={"image_size": 8})
MINDSPORE = TORCH.but(framework="mindspore", mode="graph")


@pytest.fixture
def lab(tmp_path: Path) -> SyntheticLab:
    return SyntheticLab(tmp_path)


def compared(lab: SyntheticLab, *conditions: Condition) -> Comparison:
    return lab.compare([TORCH, *conditions], precision=0.03, budget_s=60, block_s=0.1)


def trained(lab: SyntheticLab, threshold: float | None = 0.7) -> TrainingRuns:
    return lab.train([TORCH, MINDSPORE], seeds=[0, 1], epochs=5, threshold=threshold, most_epochs=6)


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", html)


def drawn(figure: Figure, panel: int = 0) -> list[tuple[float, float]]:
    """The points of a panel's lines."""
    return [
        (float(x), float(y))
        for line in figure.axes[panel].lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def shows_itself(figure: Figure) -> bool:
    """In a notebook, with its caption."""
    html = figure._repr_html_()
    return "data:image/svg+xml;base64," in html and bool(re.search("<figcaption>.+</figcaption>", html, re.DOTALL))


class TestComparison:
    def test_its_html_has_ratios_intervals_verdicts_and_throughput(self, lab: SyntheticLab) -> None:
        comparison = compared(lab, MINDSPORE)
        found = cells(reprs.html(comparison))
        control, row = (row for _, row in comparison.ratios().iterrows())
        assert str(MINDSPORE) in found
        assert tables.ratio(row["ratio"], row["low"], row["high"]) in found
        assert tables.ratio(control["ratio"], control["low"], control["high"]) in found
        assert "slower" in found
        first = comparison.throughput().iloc[0]
        assert tables.interval(first["samples_per_second"], first["low"], first["high"]) in found

    def test_its_figure_has_ratios_with_intervals_the_control_and_throughput(self, lab: SyntheticLab) -> None:
        comparison = compared(lab, MINDSPORE)
        figure = comparison.plot()
        control, row = (row for _, row in comparison.ratios().iterrows())
        points = drawn(figure)
        for value in (row["ratio"], row["low"], row["high"]):
            assert (value, 1.0) in points
        _, band = figure.axes[0].patches  # the margin's, and the control's
        assert [band.get_x(), band.get_x() + band.get_width()] == pytest.approx([control["low"], control["high"]])
        rates = [(rate, place) for place, rate in enumerate(comparison.throughput()["samples_per_second"])]
        assert set(rates) <= set(drawn(figure, 1))
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["pytorch, eager", "mindspore, graph"]
        assert shows_itself(figure)

    def test_a_condition_without_a_ratio_is_a_cross_and_a_word(self, tmp_path: Path) -> None:
        lab = SyntheticLab(tmp_path, differs=lambda condition: condition == MINDSPORE)
        comparison = compared(lab, MINDSPORE)
        assert "models differ" in cells(reprs.html(comparison))
        crosses = [line for line in comparison.plot().axes[0].lines if line.get_marker() == "x"]
        assert [line.get_ydata()[0] for line in crosses] == [1]

    def test_one_that_failed_or_is_alone_shows_itself_too(self, tmp_path: Path, lab: SyntheticLab) -> None:
        failing = SyntheticLab(tmp_path, fails=lambda condition: True)
        for comparison in (compared(failing, MINDSPORE), compared(lab)):
            assert shows_itself(comparison.plot())
            assert str(TORCH) in reprs.html(comparison)


class TestMeasurement:
    @pytest.fixture
    def measurement(self, lab: SyntheticLab) -> Measurement:
        measured = compared(lab, MINDSPORE).measurements[0].model_copy(deep=True)
        for number, block in enumerate(measured.blocks):
            block.started_s, block.wall_s, block.steps = 100.0 + number, 0.5, 5
        measured.blocks[2].disturbed = True
        measured.trace = [
            Sample(at_s=100.5 + i, machine_cpu_percent=90.0, worker_cores=1.0 + i, rss_mib=500.0 + i) for i in range(4)
        ]
        return measured

    def test_its_html_says_what_it_is_and_what_it_gave(self, measurement: Measurement) -> None:
        html = reprs.html(measurement)
        assert f"{TORCH}: baseline, repetition 0, seed 0" in html
        found = cells(html)
        assert found[:3] == ["5", "1", "100"], "blocks, of them disturbed, ms a step"

    def test_its_figure_has_the_blocks_over_time_and_the_trace(self, measurement: Measurement) -> None:
        figure = measurement.plot()
        blocks = [point for number in range(5) for point in [(number, 100.0), (number + 0.5, 100.0)]]
        assert set(blocks) <= set(drawn(figure))
        crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
        assert [line.get_xdata()[0] for line in crosses] == [2.25], "the disturbed one"
        assert [axes.get_ylabel() for axes in figure.axes] == ["ms per step", "cores used", "resident (MiB)"]
        assert drawn(figure, 1) == [(0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (3.5, 4.0)]
        assert drawn(figure, 2) == [(0.5, 500.0), (1.5, 501.0), (2.5, 502.0), (3.5, 503.0)]
        assert shows_itself(figure)

    def test_an_accelerator_has_panels_of_its_own(self, lab: SyntheticLab) -> None:
        measured = lab._process(TORCH.model_copy(update={"device": "cuda"}), "baseline", 0, 3, "file")
        assert [axes.get_ylabel() for axes in measured.plot().axes][3:] == ["accelerator (%)", "its memory (MiB)"]

    def test_a_failure_is_shown_with_its_text(self, measurement: Measurement) -> None:
        measurement.failure, measurement.blocks = "died in <block>", []
        assert "<pre>died in &lt;block&gt;</pre>" in reprs.html(measurement)
        assert "died in <block>" in measurement.plot().axes[0].texts[0].get_text()

    def test_a_training_run_has_its_epochs(self, lab: SyntheticLab) -> None:
        run = trained(lab).measurements[0]
        assert tables.number(run.epochs[-1].metric) in cells(reprs.html(run))
        assert shows_itself(run.plot())


class TestTrainingRuns:
    def test_their_html_has_a_row_a_condition(self, lab: SyntheticLab) -> None:
        runs = trained(lab)
        found = cells(reprs.html(runs))
        assert [found[0], found[len(found) // 2]] == [str(TORCH), str(MINDSPORE)]
        mine = runs.runs().query("framework == 'pytorch'")["metric"]
        assert found[1:5] == ["2", *(tables.number(value) for value in (mine.mean(), mine.min(), mine.max()))]

    def test_without_a_threshold_nothing_is_said_of_one(self, lab: SyntheticLab) -> None:
        assert "threshold" not in reprs.html(trained(lab, threshold=None))

    def test_their_figure_has_metric_and_loss_by_epoch(self, lab: SyntheticLab) -> None:
        runs = trained(lab)
        figure = runs.plot()
        mine = runs.curves().query("framework == 'pytorch'").groupby("epoch")
        for panel, name in enumerate(["metric", "loss"]):
            means = list(mine[name].mean().items())
            assert np.allclose(drawn(figure, panel)[: len(means)], means)
        assert 0.7 in [y for _, y in drawn(figure)], "the threshold"
        assert shows_itself(figure)

    def test_runs_that_all_failed_show_themselves_too(self, tmp_path: Path) -> None:
        runs = trained(SyntheticLab(tmp_path, fails=lambda condition: True))
        assert str(TORCH) in reprs.html(runs)
        assert shows_itself(runs.plot())


class TestCertificate:
    @pytest.fixture
    def certificate(self, lab: SyntheticLab) -> Certificate:
        return lab.certify([TORCH, MINDSPORE])[MINDSPORE.key]

    def test_its_html_has_differences_and_tolerances(self, certificate: Certificate) -> None:
        assert "<b>same</b>" in reprs.html(certificate)
        assert cells(reprs.html(certificate))[:4] == ["outputs", "1.0e-07", "1.0e-05", "same"]

    def test_its_html_has_the_evidence(self, certificate: Certificate) -> None:
        own = Forgiven(at="1/updates:a", difference=2e-4, own=1.5e-4, by="moved by 8")
        checks = [certificate.checks[0].model_copy(update={"forgiven": (own,)}), *certificate.checks[1:]]
        seen = {"exercised": {"label 3": True, "padding": False}, "training": 50, "checks": checks}
        shown = reprs.html(certificate.model_copy(update=seen))
        for said in (
            "Exercised: label 3.",
            "Not exercised, or not in full: padding.",
            "A longer training: 50 steps.",
            "1/updates:a differs by 2.0e-04, the reference from itself by 1.5e-04 (moved by 8).",
            "With mindspore 1.0; the reference with pytorch 1.0; benchlib 1.0 synthetic",
        ):
            assert said in shown
        assert "Explained by rounding: nothing had to be." in reprs.html(certificate)

    def test_its_figure_has_each_difference_over_its_tolerance(self, certificate: Certificate) -> None:
        figure = certificate.plot()
        (axes,) = figure.axes
        assert axes.get_xscale() == "log"
        assert (pytest.approx(0.01), 0) in drawn(figure), "1e-7 of the 1e-5 that outputs may differ"
        assert (axes.get_xlim()[0], 1) in drawn(figure), "predictions that are equal, at the left edge"
        assert shows_itself(figure)

    def test_one_without_checks_says_why(self, tmp_path: Path) -> None:
        lab = SyntheticLab(tmp_path, cannot=lambda condition: True)
        certificate = lab.certify([MINDSPORE])[MINDSPORE.key]
        assert "<b>not checked</b>" in reprs.html(certificate)
        assert "no bf16" in reprs.html(certificate)
        assert "not checked: the condition failed" in certificate.plot().axes[0].texts[0].get_text()


class TestLedger:
    def test_its_html_has_every_knob_with_its_reason(self, lab: SyntheticLab) -> None:
        ledger = compared(lab, MINDSPORE).ledger()
        found, shown = cells(reprs.html(ledger)), ledger.frame.drop(columns="environment")  # all are of the default
        assert found == [str(value).replace("'", "&#x27;") for row in shown.itertuples(index=False) for value in row]

    def test_its_figure_has_a_mark_for_each_knob_that_is_set(self, lab: SyntheticLab) -> None:
        ledger = compared(lab, MINDSPORE).ledger()
        figure = ledger.plot()
        (axes,) = figure.axes
        rows = [tick.get_text() for tick in axes.get_yticklabels()]
        columns = [tick.get_text() for tick in axes.get_xticklabels()]
        assert columns == ["pytorch\ncpu tuned", "mindspore\ncpu tuned"]
        marked = {(rows[int(y)], columns[int(x)].partition("\n")[0]) for x, y in drawn(figure)}
        assert marked == set(zip(ledger.frame["name"], ledger.frame["framework"], strict=True))
        assert ("ONEDNN_MAX_CPU_ISA", "mindspore") in marked
        assert ("ONEDNN_MAX_CPU_ISA", "pytorch") not in marked
        assert shows_itself(figure)

    def test_it_is_of_what_was_set_and_not_of_what_would_be(self, lab: SyntheticLab) -> None:
        for measured in (compared(lab, MINDSPORE), trained(lab)):
            for m in measured.measurements:
                m.knobs, m.left_out = {"PYTHONUNBUFFERED": "an older value"}, ["NPROC"]
            frame = measured.ledger().frame
            assert "an older value" in set(frame["value"])
            assert {"OMP_WAIT_POLICY"} <= set(frame["name"]), "of the gate"
            assert "NPROC" in reprs.html(measured.ledger())

    def test_without_a_knob_it_says_so(self) -> None:
        ledger = Ledger([SimpleNamespace(condition=MINDSPORE, knobs={}, left_out=[])])
        assert "no knob is set" in ledger.plot().axes[0].texts[0].get_text()
        assert tables.NOTHING in reprs.html(ledger)


class TestInAScript:
    """What ``print`` gives: a few lines, with what came out in them."""

    def test_a_comparison_prints_its_ratios_the_control_and_verdicts(self, lab: SyntheticLab) -> None:
        comparison = compared(lab, MINDSPORE)
        head, control, row = str(comparison).splitlines()
        assert str(TORCH) in head
        for line, (_, shown) in zip((control, row), comparison.ratios().iterrows(), strict=True):
            assert tables.ratio(shown["ratio"], shown["low"], shown["high"]) in line
            assert line.endswith(shown["verdict"])
        assert "A/A" in control
        assert str(MINDSPORE) in row
        assert repr(comparison) == str(comparison), "in a list, and at Python's prompt"

    def test_its_frames_print_what_came_out(self, lab: SyntheticLab) -> None:
        head, *rows, _ = str(compared(lab, MINDSPORE).ratios()).splitlines()
        assert head.split()[:5] == ["label", "ratio", "low", "high", "verdict"]
        assert rows[1].split()[-3] == "slower"
        assert "samples_per_second" in str(compared(lab, MINDSPORE).throughput())
        assert head.split()[0] == str(trained(lab).runs()).split()[0]
        assert len(str(trained(lab).curves()).splitlines()) == 1 + 4 * 5 + 1

    def test_one_without_a_ratio_prints_why(self, tmp_path: Path) -> None:
        different = compared(SyntheticLab(tmp_path / "a", differs=lambda condition: condition == MINDSPORE), MINDSPORE)
        assert "outputs differs by 1.0e-01, 1e-05 allowed" in str(different)
        assert "allowed" in str(different.certificates[MINDSPORE.key])
        unchecked = compared(SyntheticLab(tmp_path / "b", cannot=lambda condition: condition == MINDSPORE), MINDSPORE)
        assert "worker failed in 'check'" in str(unchecked)
        assert "no bf16" in str(unchecked.certificates[MINDSPORE.key])
        failed = compared(SyntheticLab(tmp_path / "c", fails=lambda condition: condition == MINDSPORE), MINDSPORE)
        assert "failed: the worker died" in str(failed.measurements[-1])
        assert "the worker died" in str(failed.failures())
        assert "failed: 1" in str(failed)

    def test_all_others_print_a_few_lines(self, lab: SyntheticLab) -> None:
        comparison, runs = compared(lab, MINDSPORE), trained(lab)
        told = {
            "slower": comparison,
            "0.783 (0.780 to 0.785)": runs,
            "0.7 reached by 2": runs,
            f"{TORCH}: baseline, repetition 0": comparison.measurements[0],
            "epoch 5: metric 0.7": runs.measurements[0],
            "ONEDNN_MAX_CPU_ISA=AVX2": comparison.ledger(),
            ": same": comparison.certificates[MINDSPORE.key],
            "100 billion multiply-adds/s by a product": lab.ceiling("cpu", ["default"]),
            "does not see all of its work (50%": lab.check_timers([MINDSPORE])[0],
        }
        for words, result in told.items():
            assert words in str(result)
            assert len(str(result).splitlines()) <= 4
            assert len(str(result)) < 900


def test_the_same_figure_gives_the_same_bytes(lab: SyntheticLab) -> None:
    comparison = compared(lab, MINDSPORE)
    assert figures.svg(comparison.plot()) == figures.svg(comparison.plot())


LEDGER = """
import sys
from benchlib import lab
from benchlib.provenance import knobs
from benchlib.equivalence.certificate import Certificate
from benchlib.condition import Condition

tuned = Condition(workload="cnn", lane="tuned")
ledger = knobs.Ledger([Certificate(condition=tuned, reference=tuned, knobs=knobs.of(tuned))])
"""
"""A result that shows itself, as one may type it."""


def printed(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_no_drawing_library_is_imported_before_a_figure_is_asked_for() -> None:
    script = LEDGER + (
        "print(*(one for one in sys.modules if one.startswith('benchlib.suite')))\n"
        "from benchlib import reprs\n"
        "from benchlib.suite.experiments import report\n"  # it shows what is drawn already
        "reprs.html(ledger)\n"
        "slow = {'matplotlib', 'seaborn', 'benchlib.plotting.plots', 'lark'}\n"  # lark: jsonschema 4.25's grammars
        "print(*(slow & set(sys.modules)))"
    )
    assert printed(script) == "\n\n", "of the suite's floor nothing, and then nothing that draws"


def test_in_ipython_a_result_at_the_end_of_a_cell_is_shown_with_nothing_done_for_it() -> None:
    script = f"""
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in ({LEDGER!r}, "from benchlib.shown import Shown"):
    shell.run_cell(cell).raise_error()
formats, _ = shell.display_formatter.format(shell.user_ns["ledger"])
print(formats["text/html"])
formats, _ = shell.display_formatter.format(shell.user_ns["ledger"].plot())
print(formats["text/html"])
shell.user_ns["Other"] = type("Other", (shell.user_ns["Shown"],), {{}})
formats, _ = shell.display_formatter.format(shell.user_ns["Other"]())
print(*formats)
"""
    table, figure, other = printed(script).splitlines()
    assert "ONEDNN_MAX_CPU_ISA" not in cells(table), "of MindSpore"
    assert "MALLOC_MMAP_THRESHOLD_" in cells(table)
    assert "data:image/svg+xml;base64," in figure
    assert other == "text/plain", "what the suite says nothing of"


def test_without_what_draws_a_figure_is_an_error_that_says_what_to_install() -> None:
    script = f"""{LEDGER}
from benchlib.errors import BenchlibError

sys.modules["matplotlib"] = None
try:
    ledger.plot()
except BenchlibError as error:
    print(error)
"""
    assert re.search(r"has no matplotlib.* -m pip install 'benchlib\[suite\]'", printed(script))


def test_what_is_not_finite_is_drawn_at_the_edge(lab: SyntheticLab) -> None:
    certificate = lab.certify([TORCH])[TORCH.key]
    checks = [check.model_copy(update={"difference": math.inf, "worst": math.inf}) for check in certificate.checks]
    figure = certificate.model_copy(update={"checks": checks}).plot()
    edge = figure.axes[0].get_xlim()[1]
    assert [x for x, _ in drawn(figure)[:4]] == [edge] * 4, "two checks in two trials"
