"""After how many steps graph mode has paid for its compilation, of measurements that are made up."""

import math

import numpy as np
import pytest
from synthetic_lab import SyntheticLab

from benchlib.condition import Condition
from benchlib.runner.interference import NO_CPU
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_SHOWN, PAYS, amortisation
from benchlib.stats.comparison import DISTURBED
from benchlib.stats.intervals import ratio_of_means

EAGER, GRAPH = Condition(workload="cnn"), Condition(workload="cnn", mode="graph")


def compared(folder, eager_ms=10, graph_ms=6, compile_s=4.1):
    lab = SyntheticLab(
        folder,
        step=lambda condition: (graph_ms if condition.mode == "graph" else eager_ms) / 1000,
        first=lambda condition: compile_s if condition.mode == "graph" else 0.1,
    )
    return lab.compare([EAGER, GRAPH], precision=0.03, budget_s=60, block_s=0.1)


@pytest.mark.parametrize(("disturbed", "verdict"), [(0, PAYS), (2, PAYS), (3, DISTURBED)])
def test_steps_until_compilation_is_paid_for_without_first_steps_that_were_disturbed(tmp_path, disturbed, verdict):
    comparison = compared(tmp_path)
    for m in [m for m in comparison.measurements if m.condition.mode == "graph"][:disturbed]:
        m.first_step_s, m.first_step_disturbed_by = 60.0, NO_CPU
    said, found = amortisation(comparison, EAGER, GRAPH)
    steps = found["pays_after_steps"]
    assert said == verdict
    assert [round(found[name].estimate) for name in ("step_eager_ms", "step_graph_ms")] == [10, 6]
    if verdict == DISTURBED:
        names = ("pays_after_steps", "pays_after_s", "first_eager_s", "first_graph_s")
        assert all(math.isnan(found[name].estimate) for name in names)
        return
    assert steps.processes == 5 - disturbed
    assert steps.estimate == pytest.approx(1 + 4.0 / 0.004, rel=0.05)
    assert steps.low < 1001 < steps.high
    assert found["pays_after_s"].estimate == pytest.approx(4.1 + 1000 * 0.006, rel=0.05)
    assert [found[name].estimate for name in ("first_eager_s", "first_graph_s")] == pytest.approx([0.1, 4.1])


@pytest.mark.parametrize(("made", "verdict"), [((10, 12), NEVER), ((10, 10), NOT_SHOWN), ((10, 6, 0.05), AT_ONCE)])
def test_a_compilation_that_does_not_pay_has_no_number_of_steps(tmp_path, made, verdict):
    said, found = amortisation(compared(tmp_path, *made), EAGER, GRAPH)
    assert said == verdict
    assert math.isnan(found["pays_after_steps"].estimate)


def test_fieller_s_interval_covers_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        shared = random.normal(0, 0.3, 6)
        found = ratio_of_means(6 + shared + random.normal(0, 0.5, 6), 2 + 0.3 * shared + random.normal(0, 0.2, 6))
        covered += found.low <= 3 <= found.high
    assert 0.935 < covered / 2000 < 0.965


def test_a_ratio_to_what_may_be_nothing_has_no_interval():
    found = ratio_of_means([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5])
    assert [math.isfinite(one) for one in (found.estimate, found.low, found.high)] == [True, False, False]
    assert math.isnan(ratio_of_means([], []).estimate)
    exact = ratio_of_means([4.0, 4.0], [2.0, 2.0])
    assert (exact.estimate, exact.low, exact.high) == (2.0, 2.0, 2.0)
