"""Answers for people: what a result shows in two or three sentences, the largest effects and where they are. Every
number is in the tables; here are those that one would tell somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd

from benchlib.analysis.comparison import FASTER, NO_DIFFERENCE, SLOWER
from benchlib.suite import tables
from benchlib.suite.experiments.result import Findings, Result
from benchlib.suite.selections import verdict

Name = Callable[[pd.Series], str]
"""What a row is called."""


def effects(
    where: Name,
    quantity: str = "throughput_ratio",
    who: Name = lambda row: row["subject"],
    to: Name = lambda row: row["baseline_subject"],
    done: str = "as fast as",
) -> Findings:
    """A sentence for each two that were compared: how often which is shown, and ``where`` the effects are largest."""

    def answer(result: Result) -> Iterator[str]:
        rows = result.rows(quantity)
        rows = rows[rows["reason"].isna()] if len(rows) else rows
        pairs = [(who(row), to(row)) for _, row in rows.iterrows()]
        for one, other in dict.fromkeys(pairs):
            of_both = rows[[pair == (one, other) for pair in pairs]]
            yield f"{one} {_compared(of_both, other, where, done)}."

    return answer


def _compared(rows: pd.DataFrame, other: str, where: Name, done: str) -> str:
    verdicts = [verdict(row) for _, row in rows.iterrows()]
    if len(rows) == 1:
        return _of_one(rows.iloc[0], other, where, done)
    parts = []
    for shown, pick in ((FASTER, "idxmax"), (SLOWER, "idxmin")):
        of_verdict = rows[[one == shown for one in verdicts]]
        if len(of_verdict):
            most = of_verdict.loc[getattr(of_verdict["estimate"], pick)()]
            parts.append(
                f"{shown} in {len(of_verdict)} of {len(rows)}, most {_times(most)} {done} it {_at(where(most))}"
            )
    others = pd.Series([one for one in verdicts if one not in (FASTER, SLOWER)], dtype=object).value_counts()
    parts += [f"{name} in {count}" for name, count in others.items()]
    return f"compared with {other}: {'; '.join(parts)}"


def _of_one(row: pd.Series, other: str, where: Name, done: str) -> str:
    shown, place = verdict(row), _at(where(row))
    if pd.isna(row["estimate"]):
        return f"has no ratio to {other} {place}: {shown}"
    ends = f" ({tables.number(row['low'], 2)} to {tables.number(row['high'], 2)})" if pd.notna(row["low"]) else ""
    if shown == NO_DIFFERENCE:
        return f"is not shown to differ from {other} {place}{ends}"
    return f"is {_times(row)} {done} {other} {place}{ends}"


def _at(place: str) -> str:
    return f"at {place}" if place else ""


def _times(row: pd.Series) -> str:
    return f"{tables.number(row['estimate'], 2 if not 0.95 <= row['estimate'] < 1.095 else 3)} times"
