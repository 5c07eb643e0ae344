"""After how many steps graph mode has paid for its compilation, of measurements that are made up."""

from __future__ import annotations

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


def in_graph(eager_ms, graph_ms):
    return lambda condition: (graph_ms if condition.mode == "graph" else eager_ms) / 1000


def compiling(seconds):
    return lambda condition: seconds if condition.mode == "graph" else 0.1


def compared(folder, **made_up):
    lab = SyntheticLab(folder, **made_up)
    return lab.compare([EAGER, GRAPH], precision=0.03, budget_s=60, block_s=0.1)


def test_steps_until_compilation_is_paid_for(tmp_path):
    found = amortisation(compared(tmp_path, step=in_graph(10, 6), first=compiling(4.1)), EAGER, GRAPH)
    assert found.verdict == PAYS
    assert found.steps.estimate == pytest.approx(1 + 4.0 / 0.004, rel=0.05)
    assert found.steps.low < 1001 < found.steps.high
    assert found.seconds.estimate == pytest.approx(4.1 + 1000 * 0.006, rel=0.05)
    assert [one.estimate for one in found.first] == [0.1, 4.1]
    assert [round(1000 * one.estimate) for one in found.step] == [10, 6]


def disturb_first_steps(measurements, number):
    """Those of so many processes in graph mode, which were stopped for a minute."""
    for m in [m for m in measurements if m.condition.mode == "graph"][:number]:
        m.first_step_s, m.first_step_disturbed_by = 60.0, NO_CPU


def test_first_steps_that_were_disturbed_are_not_what_compilation_costs(tmp_path):
    comparison = compared(tmp_path, step=in_graph(10, 6), first=compiling(4.1))
    disturb_first_steps(comparison.measurements, 2)
    found = amortisation(comparison, EAGER, GRAPH)
    assert (found.verdict, found.steps.processes) == (PAYS, 3)
    assert found.steps.estimate == pytest.approx(1 + 4.0 / 0.004, rel=0.05)
    disturb_first_steps(comparison.measurements, 3)
    found = amortisation(comparison, EAGER, GRAPH)
    assert found.verdict == DISTURBED
    assert [math.isnan(one.estimate) for one in (found.steps, found.seconds, *found.first)] == [True] * 4
    assert [round(1000 * one.estimate) for one in found.step] == [10, 6]


@pytest.mark.parametrize(
    ("eager_ms", "graph_ms", "compile_s", "verdict"),
    [(10, 12, 4.1, NEVER), (10, 10, 4.1, NOT_SHOWN), (10, 6, 0.05, AT_ONCE)],
)
def test_a_compilation_that_does_not_pay_has_no_number_of_steps(tmp_path, eager_ms, graph_ms, compile_s, verdict):
    made = compared(tmp_path, step=in_graph(eager_ms, graph_ms), first=compiling(compile_s))
    found = amortisation(made, EAGER, GRAPH)
    assert found.verdict == verdict
    assert math.isnan(found.steps.estimate)


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
    assert math.isfinite(found.estimate)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(ratio_of_means([], []).estimate)
    exact = ratio_of_means([4.0, 4.0], [2.0, 2.0])
    assert (exact.estimate, exact.low, exact.high) == (2.0, 2.0, 2.0)
