"""Where the time that comparisons share goes next."""

import math
from types import SimpleNamespace

from benchlib.stats.comparison import describe_widest, most_urgent


def comparison(width=0.2, cost_s=10.0, processes=4, **more):
    """What is asked of a comparison here; ``gain`` is what one more process should bring."""
    given = {
        "measurements": [SimpleNamespace(repetition=number) for number in range(processes)],
        "widest": (width, "a ratio"),
        "cost_s": cost_s,
        "gain": width * (1 - math.sqrt(processes / (processes + 1))) if processes else math.nan,
        "precision": 0.01,
        "settled": False,
    }
    return SimpleNamespace(**{**given, **more})


def test_what_has_its_precision_or_nothing_to_plan_with_gets_no_time():
    asked = [comparison(settled=True), comparison(processes=0), comparison(), comparison(width=0.19)]
    assert most_urgent(asked, math.inf) == 2, "it narrows most by the second"
    assert most_urgent([*asked, comparison(cost_s=5.0)], math.inf) == 4
    assert most_urgent(asked[:2], math.inf) is None
    assert most_urgent(asked, 9.0) is None, "there is no time for one"


def test_the_widest_interval_is_said():
    unknown = comparison(widest=(math.nan, "nobody"))
    assert describe_widest([unknown], 60.0) == "no ratio has an interval yet"
    sentence = describe_widest([unknown, comparison(), comparison(width=0.1, widest=(0.1, "a narrow one"))], 10.0)
    assert sentence == "widest half-width 20 % (a ratio); 10 s left"
