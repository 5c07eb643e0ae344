"""The verdicts on the works' claims, by one order for all of them, with the cases that they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchlib import tables
from benchlib.literature import works
from benchlib.literature.evidence import CONTRADICTS, OPEN, RATIO, SHOWN, SUPPORTS, Case, find
from benchlib.plotting import Bars, Picture
from benchlib.tables import MISSING

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
NO_DIFFERENCE, UNDECIDED, NOT_MEASURED = "no difference shown", "undecided", "not measured here"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, NO_DIFFERENCE, NOT_MEASURED)

BARS = {"quantity": "claimed_ratio", "hue": "bears", "labels": "case", "xlabel": "ratio in the direction of the claim"}
HELP = "Above 1 is on the claim's side. A stroke: the published ratio, of other hardware."
MOST = 24  # rows of a figure, so that it fits a page


@dataclass(frozen=True)
class Judged:
    """``claims``, a row a claim, and ``cases``, a row for each number that a verdict rests on."""

    claims: pd.DataFrame
    cases: pd.DataFrame

    def findings(self) -> list[str]:
        """The number of claims by verdict."""
        count = Counter(self.claims["verdict"].mask(self.claims["undecided"], UNDECIDED))
        counted = ", ".join(f"{count[one]} {one}" for one in (*VERDICTS, UNDECIDED) if count[one])
        return [f"Of {len(self.claims)} published claims: {counted}."]

    def pictures(self) -> dict[str, OfCases]:
        """The pictures of each claim about ratios, on as many pages as it takes."""
        every, bars = {}, Bars(**BARS, target=lambda row: row["published_ratio"])
        says = self.claims.set_index("claim")["says"]
        for claim, own in self.cases.dropna(subset="claimed_ratio").groupby("claim", sort=False):
            for page, start in enumerate(range(0, len(own), MOST), start=1):
                name, caption = f"ratios_{claim}" + f"_{page}" * (page > 1), f"{claim}: {says[claim]} {HELP}"
                every[name] = OfCases(caption=caption, panels=[bars], cases=own[start : start + MOST])
        return every


@dataclass(frozen=True, kw_only=True)
class OfCases(Picture):
    """A picture of cases, whatever study shows it."""

    cases: pd.DataFrame

    def draw(self, result: Any) -> tuple[str, Figure] | None:
        new = dict(zip((*RATIO, tables.FILES), ("estimate", "low", "high", "files"), strict=True))
        rows = self.cases.rename(columns=new)
        beside = {name: None for name in tables.BESIDE if name not in rows}
        rows = rows.assign(**beside, quantity="claimed_ratio", part=0, label=rows["case"], framework="")
        return super().draw(SimpleNamespace(frame=rows, margin=rows["margin"].max()))

    def shown_rows(self, result: Any) -> pd.DataFrame:
        return self.cases[[*SHOWN]]


def judge(frames: Mapping[str, pd.DataFrame], places: Mapping[str, str] | None = None) -> Judged:
    """The verdicts on all claims by notebooks' tidy frames; ``places`` says where files of measurements are from."""
    claims, cases = [], []
    for claim in works.claims():
        found, before = find(claim, frames), find(claim, frames, then=True)
        then = _row(claim, *before, places or {})["verdict_here"]
        then += f" (in {', '.join(works.sources()[claim.source].then.values())})"
        claims.append(_row(claim, *found, places or {}) | {"verdict_then": then if before[0] else MISSING})
        cases += [*found[0], *before[0]]
    return Judged(pd.DataFrame(claims), pd.DataFrame(cases, columns=None if cases else SHOWN))


def verdict_of(cases: list[Case], missing: list[str]) -> str:
    """The verdict that follows from cases, and from ``missing`` conditions."""
    bears = {case["bears"] for case in cases}
    if CONTRADICTS in bears:
        return NOT_REPRODUCED
    return NO_DIFFERENCE if OPEN in bears else NOT_MEASURED if missing or not cases else REPRODUCED


def _row(claim: works.Claim, cases: list[Case], missing: list[str], places: Mapping[str, str]) -> dict[str, Any]:
    verdict, files = verdict_of(cases, missing), tables.join_files(case[tables.FILES] for case in cases)
    short, measured = _short(claim, verdict, cases), _measured(cases)
    here = dict.fromkeys(places.get(file, "a machine that is not known") for file in files.split())
    machines = f", on {' and on '.join(here)}" if here and verdict != NOT_MEASURED else ""
    takes = [*missing, *([f"no rule tests {claim.untested}"] if claim.untested else [])]
    some = claim.rule.alike is not None or SUPPORTS in {case["bears"] for case in cases}
    undecided = verdict == NO_DIFFERENCE and (some or all(case["why"] for case in cases if case["bears"] == OPEN))
    return {
        "claim": claim.id,
        "says": claim.says,
        "published_on": f"{claim.device} ({works.sources()[claim.source].short})",
        "published": ", ".join(f"{of} {value:g}" for of, value in claim.published.items()) or MISSING,
        "measured_here": measured or MISSING,
        "verdict_here": f"{(UNDECIDED if undecided else verdict).capitalize()}{short}{machines}",
        "takes": "; ".join(takes) or MISSING,
        "doubt": claim.doubt or MISSING,
        tables.FILES: files,
        "verdict": verdict,
        "undecided": undecided,
        "here": ": ".join(filter(None, [short.strip(",: "), measured])),
    }


def _short(claim: works.Claim, verdict: str, cases: list[Case]) -> str:
    """The limits of a verdict: the published size, parts that no rule tests, a decision, the work's own data."""
    if verdict == NOT_MEASURED:
        return " in full" if cases else ""
    why = [
        one["why"] for one in cases if one["bears"] == {NOT_REPRODUCED: CONTRADICTS, NO_DIFFERENCE: OPEN}.get(verdict)
    ]
    why = dict.fromkeys(filter(None, why if verdict == NO_DIFFERENCE or all(why) else []))
    alike = f": not shown to be within a factor of {claim.rule.alike:g} of 1, nor beyond it" if claim.rule.alike else ""
    first = (alike if verdict == NO_DIFFERENCE else "") + (f" ({'; '.join(why)})" if why else "")
    done = {"in direction": claim.published, f"but not tested: {claim.untested}": claim.untested}
    reasons = [how for how, so in done.items() if so and verdict == REPRODUCED]
    return ", ".join([first, *reasons, *dict.fromkeys(how for case in cases for how in case["differs"])])


def _measured(cases: list[Case]) -> str:
    """The measured cases: one in full; of several the data, and how many bear how."""
    settings = " / ".join(dict.fromkeys(case["setting"] for case in cases if case["setting"]))
    beside = f" ({settings})" if settings else ""
    same = Counter(case["why"] for case in cases if case["bears"] == CONTRADICTS and case["why"])
    if len(cases) < 2:
        shown = [case["otherwise"] or tables.ratio(*(case[end] for end in RATIO)) for case in cases]
        return "".join(f"{case['case']}{beside}: {', '.join([*shown, *same])}" for case in cases)
    words = {SUPPORTS: "in support", CONTRADICTS: "against it", OPEN: "open"}
    counts = [f"{count} {words[bears]}" for bears, count in Counter(case["bears"] for case in cases).items()]
    return f"{len(cases)} cases{beside}: {', '.join([*counts, *(f'{count} {why}' for why, count in same.items())])}"
