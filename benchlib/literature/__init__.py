"""Verdicts on what the works published, from the tidy frames of this profile's notebooks.

Each claim (``published/works.yaml``) declares its rule: which rows of the frames it is about, or a function of
:data:`FUNCTIONS` with its arguments; the notebook ``claims`` shows it in words. These rows are its cases:
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

from collections.abc import Callable

from benchlib.literature import works
from benchlib.literature.maxima import inner_maximum
from benchlib.literature.ratios import cases_of_rows
from benchlib.literature.results import Results
from benchlib.literature.sizes import crosses_with_size, fastest_by_batch, grows_with_batch, scales_better
from benchlib.literature.verdicts import Judged, Outcome, judge, rule_text

FUNCTIONS: dict[str, Callable[..., Outcome]] = {
    rule.__name__: rule
    for rule in (cases_of_rows, scales_better, crosses_with_size, grows_with_batch, fastest_by_batch, inner_maximum)
}
"""By name, what finds the cases of a claim: as its rule declares rows, or what no selection of rows says."""


def judged(results: Results) -> list[Judged]:
    """All claims with their verdicts."""
    return [_judged(claim, results) for claim in works.claims()]


def _judged(claim: works.Claim, results: Results) -> Judged:
    outcome = FUNCTIONS[claim.rule.function](results, claim, **claim.rule.arguments)
    return Judged(claim, outcome, judge(outcome), rule_text(claim.rule))
