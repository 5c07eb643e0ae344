"""What a comparison says of its conditions, from measurements that are made up."""

import math
from dataclasses import replace

import pytest
from synthetic_lab import SyntheticLab

from benchlib import reprs
from benchlib.condition import Condition
from benchlib.stats.comparison import DISTURBED, SHARED, Comparison
from benchlib.stats.planner import FAILED
from benchlib.worker import warmup

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
        times = [0.1] * 8 + [0.1 * slower] * 4
        m.blocks = [m.blocks[0].model_copy(update={"round": n, "wall_s": wall_s}) for n, wall_s in enumerate(times)]
    return replace(comparison, measurements=kept)


def test_what_grows_in_every_process_slows_down(comparison):
    assert grown(comparison, [1.20, 1.22, 1.21]).slows_down(OTHER)
    assert not grown(comparison, [1.04, 1.03, 1.04]).slows_down(OTHER), f"less than {warmup.GROWTH}"
    assert not grown(comparison, [1.13, 1.21, 1.15]).slows_down(OTHER), "as was seen; at 95 % it would be"


def test_a_comparison_without_a_budget_ended_with_the_time_that_all_share(comparison):
    shared = replace(comparison, budget_s=float("inf"), precision=0.001)
    assert shared.plan.ended is None
    assert shared.ended == SHARED
    assert SHARED in reprs.html(shared)


def failing(comparison: Comparison, *repetitions: int, refused: bool = False) -> Comparison:
    """With processes of OTHER that failed."""
    lost, every = {"failure": "died", "refused": refused}, comparison.measurements
    made = [m.model_copy(update=lost if m.condition == OTHER and m.repetition in repetitions else {}) for m in every]
    return replace(comparison, measurements=made)


def test_a_condition_has_failed_where_its_last_process_did(comparison):
    assert failing(comparison, 0, 3).failures().empty
    assert failing(comparison, 0, 3).throughput()["failed"].tolist() == [0, 2]
    (row,) = failing(comparison, 0, 4).failures().to_dict("records")
    assert (row["label"], row["repetition"], row["crashed"]) == (str(OTHER), 4, True)
    assert failing(comparison, 4, refused=True).failures()["crashed"].tolist() == [False]


def test_a_pilot_is_of_processes_that_went_well(comparison):
    every = [m.file for m in comparison.measurements]
    assert not comparison.lacks_pilot(every)
    assert failing(comparison, 1).lacks_pilot(every)
    assert not replace(failing(comparison, 1), pilot=4).lacks_pilot(every)
    assert not failing(comparison, 3, 4).lacks_pilot(every), "it failed in the last two: there is no hope"
    assert failing(comparison, 3, 4).lacks_pilot([]), "another lab tries again"
    assert failing(comparison, 3, 4).lacks_pilot(every[-1:])
    assert not failing(comparison, 1, refused=True).lacks_pilot([]), "a refusal is a result"


def test_time_is_not_spent_on_ratios_that_will_not_be_given(comparison):
    alone = replace(comparison, conditions=[ONE])
    assert comparison.gain > 0
    assert comparison.widest[0] == pytest.approx(comparison.plan.half_width)
    other = replace(comparison, certificates={ONE.key: comparison.certificates[ONE.key]})
    wide(other, OTHER)
    assert other.gain == pytest.approx(alone.gain)
    assert other.widest[1] == f"A/A of {ONE}"
    assert other.plan.half_width == pytest.approx(alone.plan.half_width)
    slowing = grown(comparison, [1.20, 1.22, 1.21])
    assert math.isnan(slowing.widest[0]), "nor on the control alone"
    assert math.isnan(float(slowing.ratios().set_index("role").loc["condition", "ratio"]))


def test_time_is_not_spent_on_what_keeps_failing_by_itself(comparison, tmp_path):
    wide(comparison, OTHER)
    assert comparison.widest[1] == str(OTHER)
    assert failing(comparison, 4).widest[1] == str(OTHER), "once is not always"
    lost = failing(replace(comparison, precision=0.001, budget_s=math.inf, pilot=9), 3, 4)
    assert lost.settled, "nor on the control alone"
    assert lost.ended == FAILED
    third = ONE.but(batch_size=70)
    beside = SyntheticLab(tmp_path).compare([ONE, OTHER, third], precision=0.001, budget_s=math.inf, block_s=0.1)
    wide(beside, OTHER)
    assert beside.widest[1] == str(OTHER)
    assert failing(beside, 3, 4).widest[1] != str(OTHER)
    assert failing(beside, 3, 4).plan.ended is None, "another is there"


def test_a_ratio_that_stays_disturbed_is_given_up(comparison):
    """Else all the time that comparisons share goes to it, once the others are settled."""
    coarse = replace(comparison, precision=0.9, pilot=2, budget_s=math.inf)
    for m in coarse.measurements:
        if m.condition == OTHER:
            m.blocks = [block.model_copy(update={"disturbed": True}) for block in m.blocks]
    assert coarse.disturbed(ONE, OTHER)
    assert not coarse.settled, "5 repetitions of a pilot of 2: it may become quieter"
    assert replace(coarse, pilot=1).settled
    assert replace(coarse, pilot=1).plan.ended is None, "it has not got what was asked for"
    assert replace(coarse, pilot=1).ratios().set_index("role").loc["condition", "verdict"] == DISTURBED


def test_what_another_repetition_costs_follows_from_the_rounds_that_it_would_have(comparison):
    for m in comparison.measurements:
        m.repetition_s, m.rounds_s = 10.0, 4.0
    blocks = max(len({block.round for block in m.blocks}) for m in comparison.measurements)
    assert comparison.cost_s == pytest.approx(10 - 4 + comparison.plan.rounds * 4.0 / blocks)


def wide(comparison: Comparison, condition: Condition) -> None:
    """Make its processes differ."""
    for m in comparison.measurements:
        if m.condition == condition and m.repetition % 2:
            m.blocks = [block.model_copy(update={"wall_s": 2 * block.wall_s}) for block in m.blocks]
