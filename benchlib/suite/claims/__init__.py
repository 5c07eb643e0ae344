"""Verdicts on what the works published, from the tidy frames of this profile's notebooks.

Each claim (``published/works.yaml``) names its rule, a function of ``claims.rules``; the docstring of the rule, with
the rule's arguments, is what the notebook ``claims`` shows as the rule. A rule finds the cases that the claim is about:
numbers of this machine that, by their 95 % intervals, support the claim, contradict it, or leave it open. Then, for
every claim alike (``verdicts.judge``):

- *not reproduced* if a case contradicts it: by a ratio on the other side of 1, or one that is the same within the
  margin of the notebook that it is from (``verdict_on``);
- *no difference shown* if none does, and a case leaves it open: it shows neither a difference nor that there is none;
- *reproduced* if every case that the claim names was measured, and all support it;
- *not measured here* otherwise, with what was measured of it, and what the rest would take.

A ratio whose comparison has an A/A control that excludes 1 is not believed: it leaves its claim open. One that was
disturbed is none: it was not measured, and what is missing says why. Of a claim that things are alike, *no difference
shown* would read as its confirmation: ``verdicts.in_words`` says instead that no difference beyond the margin is shown,
nor excluded.

A verdict is about this machine, these data, and the direction of a claim: a ratio of 1.1 reproduces "5.03 times as
long", with the published figure beside it. Other hardware than the published is no reason for or against a verdict, nor
are other data or another threshold than the work's; but both are a part of its sentence.
"""

from __future__ import annotations

from benchlib.suite import published
from benchlib.suite.claims.rows import Results
from benchlib.suite.claims.rules import RULES
from benchlib.suite.claims.verdicts import Judged, judge


def judged(results: Results) -> list[Judged]:
    """All claims with their verdicts."""
    found = []
    for claim in published.claims():
        arguments = dict(claim.rule)
        rule = RULES[arguments.pop("name")]
        outcome = rule(results, claim, **arguments)
        told = " ".join((rule.__doc__ or "").split())
        values = "; ".join(f"{name}: {_listed(value)}" for name, value in arguments.items())
        found.append(Judged(claim, outcome, judge(outcome), f"{told} Here {values}." if values else told))
    return found


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
