"""Where the time that comparisons share goes next, and what it should bring."""

import math
from types import SimpleNamespace

import pytest

from benchlib.analysis.sharing import NOTHING, Worth, best, best_together, projected, standing


def comparison(width=0.2, cost_s=10.0, processes=4, **more):
    """What is asked of a comparison here; ``gain`` is what one more process should bring."""
    given = {
        "measurements": [SimpleNamespace(repetition=number) for number in range(processes)],
        "widest": (width, "a ratio"),
        "costs": (cost_s / 2, cost_s / 2),
        "gain": width * (1 - math.sqrt(processes / (processes + 1))) if processes else math.nan,
        "precision": 0.01,
        "settled": False,
    }
    return SimpleNamespace(**{**given, **more})


def test_what_is_repeated_together_is_what_narrows_most_by_the_second():
    alone = best_together([Worth(0.1, 5.0, 5.0)])
    assert (alone.members, alone.cost_s, alone.gain_per_s) == ([0], 10.0, pytest.approx(0.01))
    alike = best_together([Worth(0.1, 5.0, 5.0), Worth(0.08, 4.0, 5.0)])
    assert alike.members == [0, 1], "they share the opening"
    assert (alike.gain, alike.cost_s) == (pytest.approx(0.18), 15.0)
    poor = best_together([Worth(0.001, 5.0, 5.0), Worth(0.1, 5.0, 5.0)])
    assert poor.members == [1], "it would cost more than it brings"
    assert best_together([Worth(0.1, 5.0, 5.0), Worth(0.08, 4.0, 5.0)], left_s=12).members == [0], "both take 15"
    assert best_together([Worth(0.1, 5.0, 5.0)], left_s=9).members == []
    nobody = best_together([])
    assert (nobody.members, nobody.gain_per_s) == ([], -math.inf)


def test_what_has_its_precision_or_nothing_to_plan_with_gets_no_time():
    asked = [comparison(settled=True), comparison(processes=0), comparison(), comparison(width=0.19)]
    assert best(asked, math.inf).members == [2, 3], "by their places in what was asked for"
    assert best(asked[:2], math.inf) == NOTHING
    assert best(asked, 9.0) == NOTHING, "there is no time for one"


def test_intervals_are_expected_to_narrow_with_the_root_of_the_processes():
    one = comparison()
    assert projected([one], 9.9) == 0.2
    assert projected([one], 10.0) == pytest.approx(0.2 * math.sqrt(4 / 5))
    assert projected([one], 25.0) == pytest.approx(0.2 * math.sqrt(4 / 6)), "two of them"
    assert projected([one, comparison(width=0.3, precision=0.4)], 100.0) == 0.3, "one that has its precision stays"


def test_the_widest_interval_is_told_with_what_the_time_left_should_make_of_it():
    unknown = comparison(widest=(math.nan, "nobody"))
    assert standing([unknown], 60.0) == "no ratio has an interval yet"
    sentence = standing([unknown, comparison(), comparison(width=0.1, widest=(0.1, "a narrow one"))], 10.0)
    assert sentence == "widest half-width 20 % (a ratio); the 10 s left should make that 18 %"
