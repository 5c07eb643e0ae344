"""The notebook ``claims``: what the works claim, what was measured of it here, and a verdict by a rule.

It measures nothing: it reads the tables of the profile's other notebooks.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from benchlib import claims, figures, published, tables
from benchlib.claims import NOT_MEASURED, REPRODUCED, VERDICTS, Case, Judged
from benchlib.condition import Condition
from benchlib.equivalence import Certificate
from benchlib.experiments import parameters as p
from benchlib.experiments.result import Result
from benchlib.lab import Lab
from benchlib.measure.comparison import failures
from benchlib.measure.statistics import Interval


class Parameters(p.Parameters):
    """There are none: it is about whatever the other notebooks of the profile measured."""


def conditions(parameters: Parameters) -> list[Condition]:
    """Nothing is measured."""
    return []


def measure(parameters: Parameters, lab: Lab) -> Claims:
    """Judge all claims by the tables that are there."""
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


class Claims(Result):
    """The verdicts, the cases behind them, the rules, and the ratios beside the published ones."""

    notebook = "claims"
    in_report = ("cases",)
    title = "Claims"

    def __init__(self, lab: Lab) -> None:
        self.judged = claims.judged(lab.folder)
        self.results = claims.Results(lab.folder)
        keys = tables.together(case.files for one in self.judged for case in one.outcome.cases).split()
        super().__init__(lab.folder, [_Gathered(sorted(keys))])

    def findings(self) -> list[str]:
        """How many claims got which verdict, and a sentence for each that was measured."""
        count = Counter(one.verdict for one in self.judged)
        counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
        found = [f"Of {len(self.judged)} published claims: {counted}."]
        return found + [self._sentence(one) for one in self.judged if one.outcome.cases]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``verdicts``, ``cases``, ``rules``, and the works' ``sources`` and figures."""
        return {
            "verdicts": (
                "Each claim, what it was published of, and the verdict on this machine.",
                pd.DataFrame([self._verdict_row(one) for one in self.judged]),
            ),
            "cases": (
                "The numbers behind the verdicts, with 95 % intervals: ratios are in the direction of the claim, so "
                "that above 1 is on its side.",
                pd.DataFrame([row for one in self.judged for row in _case_rows(one)], columns=_CASE_COLUMNS),
            ),
            "rules": (
                "The rule of each verdict.",
                pd.DataFrame([{"claim": one.claim.id, "rule": one.rule} for one in self.judged]),
            ),
            "inference": (
                "Published: images per second with ResNet-50 (Xia and Zhou 2022, table 4).",
                _of_works("inference").rename(columns={"images_per_second": "images per second, published"}),
            ),
            "cpu_gpu": (
                "Published: a GPU against a CPU, batch 128 (Yin 2020, table 5).",
                _of_works("cpu_gpu").rename(columns=lambda name: name.replace("_", " ")),
            ),
            "accuracy": (
                "Published: accuracy after 10 epochs in TensorFlow (Yin 2020, tables 9 and 10; the first batch size of "
                "table 10 is not printed, and 64 is missing).",
                pd.DataFrame(
                    [
                        {"hyperparameter": name, "value": value, "published accuracy": accuracy}
                        for name, told in published.works()["accuracy"].items()
                        for value, accuracy in zip(told["at"], told["accuracy"], strict=True)
                    ]
                ),
            ),
            "rosetta": (
                "Published: seconds on half a K80 and on a P100 (Karmanov 2017).",
                pd.DataFrame(
                    [
                        {"task": task, "framework": name, "K80 (s)": k80, "P100 (s)": p100}
                        for task, times in published.works()["rosetta"].items()
                        for name, (k80, p100) in times.items()
                    ]
                ),
            ),
            "training": (
                "Published: training until the works' authors stopped it (Xia and Zhou 2022, tables 2 and 3).",
                _of_works("training").rename(columns={"takes": "time"}),
            ),
            "sources": (
                "The works.",
                pd.DataFrame([one.model_dump() for one in published.sources().values()]).rename(
                    columns={"short": "source"}
                ),
            ),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``: ours beside the published, for the claims that are about a ratio."""
        shown = [
            (one, case)
            for one in self.judged
            for case in one.outcome.cases
            if case.ratio is not None and math.isfinite(case.ratio.estimate)
        ]
        if not shown:
            return {}
        looks = figures.looks([claims.SUPPORTS, claims.CONTRADICTS, claims.OPEN])
        figure, (axes,) = figures.panels(1, 1, height=0.6 + 0.19 * len(shown))
        rows = [
            {"label": f"{one.claim.id}  {case.of}", "bears": case.bears, "published": case.published, **_ends(case)}
            for one, case in shown
        ]
        figures.forest_panel(axes, pd.DataFrame(rows), looks, "ratio in the direction of the claim", "label", "bears")
        known = any(case.published for _, case in shown)
        caption = (
            "What was measured here for each claim about a ratio, with 95 % intervals: right of the line is on the "
            "claim's side." + (" Open diamonds: the published ratio, of other hardware and versions." if known else "")
        )
        return {"ratios": (caption, figures.finish(figure, looks, [figures.PUBLISHED] if known else []))}

    def _sentence(self, one: Judged) -> str:
        cases = one.outcome.cases
        told = f"{cases[0].of}: {cases[0].measured}" if len(cases) == 1 else f"{len(cases)} cases ({_counted(cases)})"
        missing = f" Not measured: {'; '.join(one.outcome.missing)}." if one.outcome.missing else ""
        doubt = f" In doubt: {one.claim.doubt}" if one.claim.doubt else ""
        says = f"{one.claim.id}, published on {one.claim.device}: {one.claim.says}"
        return f"{says} {self._verdict(one)}: {told}.{missing}{doubt}"

    def _verdict(self, one: Judged) -> str:
        """The verdict with the hardware that it is about."""
        verdict = one.verdict[0].upper() + one.verdict[1:]
        places = " and on ".join(self.results.places(tables.together(case.files for case in one.outcome.cases)))
        if one.verdict == NOT_MEASURED:
            return f"{verdict} in full" if one.outcome.cases else verdict
        sized = ", in direction" if one.verdict == REPRODUCED and one.claim.published else ""
        return f"{verdict}{sized}, on {places}"

    def _verdict_row(self, one: Judged) -> dict[str, object]:
        claim, cases = one.claim, one.outcome.cases
        figures_of = ", ".join(f"{name} {value:g}" for name, value in claim.published.items())
        ours = cases[0].measured if len(cases) == 1 else f"{len(cases)} cases: {_counted(cases)}"
        return {
            "claim": claim.id,
            "says": claim.says,
            "published_on": f"{claim.device} ({published.sources()[claim.source].short})",
            "published": figures_of or tables.MISSING,
            "measured_here": ours if cases else tables.MISSING,
            "verdict_here": self._verdict(one),
            "takes": "; ".join(one.outcome.missing) or tables.MISSING,
            "doubt": claim.doubt or tables.MISSING,
            tables.FILES: tables.together(case.files for case in cases),
        }


def _of_works(name: str) -> pd.DataFrame:
    return pd.DataFrame(published.works()[name]).drop(columns="source")


def _counted(cases: list[Case]) -> str:
    """How many cases bear how."""
    counted = Counter(case.bears for case in cases)
    return ", ".join(
        f"{counted[bears]} {bears}" for bears in (claims.SUPPORTS, claims.CONTRADICTS, claims.OPEN) if counted[bears]
    )


_CASE_COLUMNS = [
    "claim",
    "case",
    "claimed_ratio",
    "claimed_ratio_low",
    "claimed_ratio_high",
    "otherwise",
    "bears",
    "published_ratio",
    tables.FILES,
]


def _case_rows(one: Judged) -> list[dict[str, object]]:
    rows = []
    for case in one.outcome.cases:
        ratio = case.ratio or Interval(math.nan, math.nan, math.nan, 0)
        rows.append(
            {
                "claim": one.claim.id,
                "case": case.of,
                "claimed_ratio": ratio.estimate,
                "claimed_ratio_low": ratio.low,
                "claimed_ratio_high": ratio.high,
                "otherwise": tables.MISSING if case.ratio else case.measured,
                "bears": f"{case.bears}" + (" the claim" if case.bears != claims.OPEN else ""),
                "published_ratio": math.nan if case.published is None else case.published,
                tables.FILES: case.files,
            }
        )
    return rows


def _ends(case: claims.Case) -> dict[str, float]:
    return {"ratio": case.ratio.estimate, "ratio_low": case.ratio.low, "ratio_high": case.ratio.high}
