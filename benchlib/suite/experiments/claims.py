"""The notebook ``claims``: what the works claim, what was measured of it here, and a verdict by a rule.

It measures nothing: it reads the tidy frames of the profile's other notebooks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

from benchlib import literature, tables
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.literature import figure, works
from benchlib.literature.published import TABLES
from benchlib.literature.results import Results
from benchlib.literature.verdicts import (
    NO_DIFFERENCE,
    NOT_MEASURED,
    OPEN,
    VERDICTS,
    Case,
    Judged,
    in_short,
    in_words,
    measured_text,
    undecided,
)
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Declaration, Gathered, Result
from benchlib.tables import Listed

if TYPE_CHECKING:
    from IPython.display import HTML


class Parameters(p.Parameters):
    """There are none: it is about whatever the other notebooks of the profile measured."""


def conditions(parameters: Parameters) -> list[Condition]:
    """Nothing is measured."""
    return []


def measure(parameters: Parameters, lab: Lab) -> Claims:
    """Judge all claims by the frames that are there."""
    return Claims(lab)


class Claims(Result):
    """The verdicts, the cases behind them, the rules, and the ratios beside the published ones."""

    def __init__(self, lab: Lab) -> None:
        self.results = Results(lab.folder)
        self.judged = literature.judged(self.results)
        keys = {key for one in self.judged for key in _files(one).split()}
        super().__init__(_declaration(_stale(self)), lab.folder, [Gathered(keys=sorted(keys))])

    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``: ours beside the published, for the claims about a ratio, on as many pages as it takes."""
        return figure.draw(self.judged)

    def drawn_from(self) -> dict[str, pd.DataFrame]:
        """The cases that each figure shows."""
        every = figure.rows(self.judged).items()
        return {
            name: pd.DataFrame(_case_row(row.claim, case) for row in rows for case in row.cases) for name, rows in every
        }

    def summary(self) -> dict[str, Any]:
        """As of every result; and ``verdicts``, their table as pandas splits it, with each claim's bare ``verdict``,
        whether it is ``undecided``, and what it rests on ``here``, in short.
        """
        bare = {
            "verdict": [one.verdict for one in self.judged],
            "undecided": [undecided(one) for one in self.judged],
            "here": [in_short(one) for one in self.judged],
        }
        return {**super().summary(), "verdicts": _verdicts(self).assign(**bare).to_dict("split")}

    def show_figures(self) -> HTML:
        """All figures, each with its caption."""
        from IPython.display import HTML

        return HTML("".join(self.show_figure(name).data for name in self.figures or ["ratios"]))

    def verdict(self, one: Judged) -> str:
        """A verdict with the data and the hardware that it is about."""
        verdict, places = in_words(one), self.results.places(_files(one))
        if one.verdict == NOT_MEASURED:
            return verdict
        if not places:
            return f"{verdict}, on a machine that is no longer known: the files of its measurements are gone"
        return f"{verdict}, on {' and on '.join(places)}"


def _files(one: Judged) -> str:
    return tables.together(case.files for case in one.outcome.cases)


def _stale(result: Claims) -> str:
    """Which notebooks' results are not those of what is here now; empty: of none."""
    stale = [f"{name} ({why})" for name, why in result.results.stale.items()]
    return f"Results of before, which are stale, were judged of: {'; '.join(stale)}." if stale else ""


def _findings(result: Claims) -> Iterator[str]:
    """How many claims got which verdict, which results of before they rest on, and a sentence for each that was
    measured.
    """
    count = Counter(one.verdict for one in result.judged)
    counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    neither = ""
    if open_ones := [one.claim.id for one in result.judged if undecided(one)]:
        neither = f" Of {', '.join(open_ones)} '{NO_DIFFERENCE}' says too much: not decided, as neither a difference "
        neither += "nor sameness is in all cases."
    yield f"Of {len(result.judged)} published claims: {counted}.{neither}"
    if stale := _stale(result):
        yield stale
    for one in result.judged:
        claim, cases = one.claim, one.outcome.cases
        if cases:
            missing = f" Not measured: {'; '.join(one.outcome.missing)}." if one.outcome.missing else ""
            untested = f" Not tested: {claim.untested}." if claim.untested else ""
            doubt = f" In doubt: {claim.doubt}" if claim.doubt else ""
            says = f"{claim.id}, published on {claim.device}: {claim.says} {result.verdict(one)}"
            yield f"{says}: {measured_text(cases)}.{missing}{untested}{doubt}"


def _verdicts(result: Claims) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "claim": one.claim.id,
            "says": one.claim.says,
            "published_on": f"{one.claim.device} ({works.sources()[one.claim.source].short})",
            "published": ", ".join(f"{of} {value:g}" for of, value in one.claim.published.items()) or tables.MISSING,
            "measured_here": measured_text(one.outcome.cases) or tables.MISSING,
            "verdict_here": result.verdict(one),
            "takes": "; ".join(_takes(one)) or tables.MISSING,
            "doubt": one.claim.doubt or tables.MISSING,
            tables.FILES: _files(one),
        }
        for one in result.judged
    )


def _takes(one: Judged) -> list[str]:
    untested = one.claim.untested
    return [*one.outcome.missing, *([f"no rule tests {untested}"] if untested else [])]


def _cases(result: Claims) -> pd.DataFrame:
    return pd.DataFrame(_case_row(one.claim.id, case) for one in result.judged for case in one.outcome.cases)


def _case_row(claim: str, case: Case) -> dict[str, object]:
    intervals = {"claimed_ratio": case.ratio, "control": case.control}
    ends = {"": "estimate", "_low": "low", "_high": "high"}
    numbers = {
        f"{name}{end}": getattr(interval, of) if interval else math.nan
        for name, interval in intervals.items()
        for end, of in ends.items()
    }
    bears = case.bears if case.bears == OPEN else f"{case.bears} the claim"
    return {
        "claim": claim,
        "case": case.of,
        "setting": case.setting or tables.MISSING,
        **numbers,
        "otherwise": tables.MISSING if case.ratio else case.measured,
        "bears": f"{bears}: {case.why}" if case.why else bears,
        "published_ratio": math.nan if case.published is None else case.published,
        tables.FILES: case.files,
    }


def _rules(result: Claims) -> pd.DataFrame:
    return pd.DataFrame({"claim": one.claim.id, "rule": one.rule} for one in result.judged)


def _declaration(stale: str) -> Declaration:
    return Declaration(
        notebook="claims",
        title="Claims",
        question="Which of the works' sentences hold here?",
        in_report=("cases",),
        tables={
            "verdicts": Listed(
                f"Each claim, what it was published of, and the verdict on this machine. {stale}".strip(), _verdicts
            ),
            "cases": Listed(
                "The numbers behind the verdicts, with 95 % intervals: ratios are in the direction of the claim, so "
                "that above 1 is on its side, and below 1 or the same within the margin is against it. A ratio whose "
                "A/A excludes 1 is not believed.",
                _cases,
            ),
            "rules": Listed(
                "The rule of each verdict, with what it is asked of. The margin of 1 is the parameter of the notebook "
                "that has the ratio, as in the verdicts of its own tables.",
                _rules,
            ),
            **TABLES,
        },
        findings=[_findings],
    )
