"""The notebook ``claims``: what the works claim, what was measured of it here, and a verdict by a rule.

It measures nothing: it reads the tidy frames of the profile's other notebooks.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from benchlib.analysis.comparison import failures
from benchlib.analysis.equivalence import Certificate
from benchlib.analysis.statistics import Interval
from benchlib.condition import Condition
from benchlib.knobs import Ledger
from benchlib.lab import Lab
from benchlib.suite import claims, published, tables
from benchlib.suite.claims import figure
from benchlib.suite.claims.results import Results
from benchlib.suite.claims.verdicts import (
    NO_DIFFERENCE,
    NOT_MEASURED,
    OPEN,
    VERDICTS,
    Case,
    Judged,
    in_words,
    measured_text,
    undecided,
)
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Result, columns
from benchlib.suite.published.figures import published_tables

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


@dataclass(frozen=True)
class _Gathered:
    """The files behind the verdicts, as a :class:`Result` takes what was measured."""

    keys: list[str]
    conditions: tuple[Condition, ...] = ()

    @property
    def certificates(self) -> dict[str, Certificate]:
        return {}

    def failures(self) -> pd.DataFrame:
        return failures([], [])

    def files(self) -> list[str]:
        return self.keys

    def ledger(self) -> Ledger:
        return Ledger([])


class Claims(Result):
    """The verdicts, the cases behind them, the rules, and the ratios beside the published ones."""

    notebook = "claims"
    in_report = ("cases",)
    title = "Claims"

    def __init__(self, lab: Lab) -> None:
        self.results = Results(lab.folder)
        self.judged = claims.judged(self.results)
        super().__init__(lab.folder, [_Gathered(sorted({key for one in self.judged for key in _files(one).split()}))])

    def findings(self) -> list[str]:
        """How many claims got which verdict, which results of before they rest on, and a sentence for each that was
        measured.
        """
        count = Counter(one.verdict for one in self.judged)
        counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
        sentences = [f"Of {len(self.judged)} published claims: {counted}."]
        if open_ones := [one.claim.id for one in self.judged if undecided(one)]:
            neither = "not decided, as neither a difference nor sameness is in all cases."
            sentences[0] += f" Of {', '.join(open_ones)} '{NO_DIFFERENCE}' says too much: {neither}"
        sentences.extend(filter(None, [self._stale_text]))
        return sentences + [self._sentence(one) for one in self.judged if one.outcome.cases]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``verdicts``, ``cases``, ``rules``, and the works' ``sources`` and figures."""
        return self._tables

    @cached_property
    def _tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        return {
            "verdicts": (
                f"Each claim, what it was published of, and the verdict on this machine. {self._stale_text}".strip(),
                pd.DataFrame([self._verdict_row(one) for one in self.judged]),
            ),
            "cases": (
                "The numbers behind the verdicts, with 95 % intervals: ratios are in the direction of the claim, so "
                "that above 1 is on its side, and below 1 or the same within the margin is against it. A ratio whose "
                "A/A excludes 1 is not believed.",
                pd.DataFrame([_case_row(one, case) for one in self.judged for case in one.outcome.cases]),
            ),
            "rules": (
                "The rule of each verdict, with what it is asked of. The margin of 1 is the parameter of the notebook "
                "that has the ratio, as in the verdicts of its own tables.",
                pd.DataFrame([{"claim": one.claim.id, "rule": one.rule} for one in self.judged]),
            ),
            **published_tables(),
        }

    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``: ours beside the published, for the claims about a ratio, on as many pages as it takes."""
        return figure.draw(self.judged)

    def show_figures(self) -> HTML:
        """All figures, each with its caption."""
        from IPython.display import HTML

        return HTML("".join(self.show_figure(name).data for name in self.figures or ["ratios"]))

    @property
    def _stale_text(self) -> str:
        """Which notebooks' results are not those of what is here now; empty: of none."""
        stale = [f"{name} ({why})" for name, why in self.results.stale.items()]
        return f"Results of before, which are stale, were judged of: {'; '.join(stale)}." if stale else ""

    def _sentence(self, one: Judged) -> str:
        missing = f" Not measured: {'; '.join(one.outcome.missing)}." if one.outcome.missing else ""
        untested = f" Not tested: {one.claim.untested}." if one.claim.untested else ""
        doubt = f" In doubt: {one.claim.doubt}" if one.claim.doubt else ""
        says = f"{one.claim.id}, published on {one.claim.device}: {one.claim.says}"
        return f"{says} {self._verdict(one)}: {measured_text(one.outcome.cases)}.{missing}{untested}{doubt}"

    def _verdict(self, one: Judged) -> str:
        """The verdict with the data and the hardware that it is about."""
        verdict, places = in_words(one), self.results.places(_files(one))
        if one.verdict == NOT_MEASURED:
            return verdict
        if not places:
            return f"{verdict}, on a machine that is no longer known: the files of its measurements are gone"
        return f"{verdict}, on {' and on '.join(places)}"

    def _verdict_row(self, one: Judged) -> dict[str, object]:
        claim = one.claim
        takes = [*one.outcome.missing, *([f"no rule tests {claim.untested}"] if claim.untested else [])]
        return {
            "claim": claim.id,
            "says": claim.says,
            "published_on": f"{claim.device} ({published.sources()[claim.source].short})",
            "published": ", ".join(f"{name} {value:g}" for name, value in claim.published.items()) or tables.MISSING,
            "measured_here": measured_text(one.outcome.cases) or tables.MISSING,
            "verdict_here": self._verdict(one),
            "takes": "; ".join(takes) or tables.MISSING,
            "doubt": claim.doubt or tables.MISSING,
            tables.FILES: _files(one),
        }


def _files(one: Judged) -> str:
    return tables.together(case.files for case in one.outcome.cases)


def _case_row(one: Judged, case: Case) -> dict[str, object]:
    unknown = Interval(math.nan, math.nan, math.nan, 0)
    bears = case.bears if case.bears == OPEN else f"{case.bears} the claim"
    return {
        "claim": one.claim.id,
        "case": case.of,
        "setting": case.setting or tables.MISSING,
        **columns("claimed_ratio", case.ratio or unknown),
        **columns("control", case.control or unknown),
        "otherwise": tables.MISSING if case.ratio else case.measured,
        "bears": f"{bears}: {case.why}" if case.why else bears,
        "published_ratio": math.nan if case.published is None else case.published,
        tables.FILES: case.files,
    }
