"""What a comparison says of its conditions, from measurements that are made up."""

from dataclasses import replace

import pytest
from synthetic_lab import SyntheticLab

from benchlib.condition import Condition
from benchlib.measure import steady
from benchlib.measure.comparison import SHARED, Comparison

ONE, OTHER = Condition(workload="cnn"), Condition(workload="cnn", batch_size=50)


@pytest.fixture
def comparison(tmp_path):
    return SyntheticLab(tmp_path).compare([ONE, OTHER], precision=0.03, budget_s=60, block_s=0.1)


def grown(comparison: Comparison, growths: list[float]) -> Comparison:
    """As many repetitions, with the blocks of OTHER's processes growing by such factors from the first third of 12 to
    the last.
    """
    kept = [m for m in comparison.measurements if m.repetition < len(growths)]
    for m in kept:
        slower = growths[m.repetition] if m.condition == OTHER else 1.0
        m.blocks = [
            m.blocks[0].model_copy(update={"round": number, "wall_s": 0.1 * (slower if number >= 8 else 1.0)})
            for number in range(12)
        ]
    return replace(comparison, measurements=kept)


def test_what_grows_in_every_process_slows_down(comparison):
    assert grown(comparison, [1.20, 1.22, 1.21]).slows_down(OTHER)
    assert not grown(comparison, [1.04, 1.03, 1.04]).slows_down(OTHER), f"less than {steady.GROWTH}"


def test_three_processes_that_are_now_slow_now_fast_are_not_taken_for_slowing_down(comparison):
    restless = grown(comparison, [1.13, 1.21, 1.15])  # as was seen; at 95 % it would be
    assert not restless.slows_down(OTHER)
    assert restless.ratio(OTHER).estimate > 0


def test_a_comparison_without_a_budget_ended_with_the_time_that_all_share(comparison):
    shared = replace(comparison, budget_s=float("inf"), precision=0.001)
    assert shared.plan.ended is None
    assert shared.ended == SHARED
    assert SHARED in shared._repr_html_()


def test_only_processes_in_which_a_condition_came_first_tell_of_first_steps_and_memory(comparison):
    for m in comparison.measurements:
        if m.repetition > 1:
            m.hosted_after, m.first_step_s, m.memory["peak"] = 1, 99.0, 9999.0
    row = comparison.throughput().set_index("label").loc[str(OTHER)]
    assert (row["first_in_process"], row["processes"]) == (2, 5)
    assert row["first_step_s"] == pytest.approx(1.0)
    assert row["memory_mib"] == pytest.approx(500.0)


def test_the_widest_interval_is_named(comparison):
    width, whose = comparison.widest
    assert width > 0
    assert width == pytest.approx(comparison.plan.half_width)
    assert "cnn batch 64" in whose
