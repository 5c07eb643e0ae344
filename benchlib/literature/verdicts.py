"""What a verdict is made of, and how it is reached and worded: cases that bear on a claim, the same for every rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from benchlib.literature.works import Claim, Rule
from benchlib.stats.intervals import Interval

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
NO_DIFFERENCE, NOT_MEASURED = "no difference shown", "not measured here"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, NO_DIFFERENCE, NOT_MEASURED)

SUPPORTS, CONTRADICTS, OPEN = "supports", "contradicts", "leaves open"

NO_INTERVAL = "too few processes or seeds for an interval"
ONE_SEED = "one seed says nothing of the others"
RESTLESS = "A/A excludes 1: the baseline differs from itself"
TOO_WIDE = "an interval is wider than the margin"
WITHIN_OR_BEYOND = "a difference is shown, but not whether it is beyond the margin"
"""Why a case leaves its claim open, where that is not simply that its interval includes 1."""

NOISY = "disturbed: to be measured again, on a quiet machine"
"""Why there is no case, though it was measured; or, of an A/A control, why a case leaves its claim open."""


@dataclass(frozen=True)
class Case:
    """One number that a claim is about: what it is of, how it bears on the claim, the files that it was made from."""

    of: str
    bears: str
    measured: str  # in words, with its interval
    files: str
    ratio: Interval | None = None  # where the claim is about a ratio: in the claimed direction, above 1 supports it
    published: float | None = None  # what was published for it
    control: Interval | None = None  # the A/A of its comparison, where it has one
    why: str = ""  # it leaves the claim open; or contradicts it, where it is not on the other side of 1
    margin: float | None = None  # where the claim has a direction: within so much of 1 there is no difference
    setting: str = ""  # what it was measured with, and what the work used where that differs
    stands_in: tuple[str, ...] = ()  # how it differs from the work's
    group: str = ""  # what it is of, but for what tells it from others of its row in the figure


@dataclass(frozen=True)
class Outcome:
    """What a rule found: the cases, and what the claim names that was not measured, with what it would take."""

    cases: list[Case]
    missing: list[str] = field(default_factory=list)
    margin: float | None = None  # of a claim that things are alike: within this factor


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    outcome: Outcome
    verdict: str
    rule: str  # in words


def rule_text(rule: Rule) -> str:
    """A rule in words, with what it is asked of."""
    direction = ["Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."] if rule.rows else []
    if rule.alike:
        within = f"An interval within a factor of {rule.alike:g} of 1 supports the claim"
        direction = [f"{within}, one wholly outside contradicts it."]
    asked = {"faster": rule.faster, "names": ", ".join(rule.names), **rule.arguments}
    here = "; ".join(f"{name}: {value}" for name, value in asked.items() if value)
    return " ".join([rule.says, *direction, *([f"Here {here}."] if here else [])])


def judge(outcome: Outcome) -> str:
    """The verdict on what a rule found, by the order of the docstring of ``benchlib.literature``."""
    bears = {case.bears for case in outcome.cases}
    if CONTRADICTS in bears:
        return NOT_REPRODUCED
    if OPEN in bears:
        return NO_DIFFERENCE
    return NOT_MEASURED if outcome.missing or not outcome.cases else REPRODUCED


def in_words(one: Judged) -> str:
    """A verdict with what it is short of: the published size, what no rule tests, a decision, the work's own data."""
    cases, verdict = one.outcome.cases, one.verdict
    said = [verdict[0].upper() + verdict[1:]]
    if verdict == NOT_MEASURED:
        return f"{said[0]} in full" if cases else said[0]
    if verdict == REPRODUCED and one.claim.published:
        said.append("in direction")
    if verdict == REPRODUCED and one.claim.untested:
        said.append(f"but not tested: {one.claim.untested}")
    if verdict == NOT_REPRODUCED:
        why = [case.why for case in cases if case.bears == CONTRADICTS]
        said[0] += f" ({'; '.join(dict.fromkeys(why))})" if all(why) else ""
    if verdict == NO_DIFFERENCE:
        if one.outcome.margin is not None:
            said = [f"No difference beyond a factor of {one.outcome.margin:g} shown, nor excluded"]
        why = dict.fromkeys(case.why for case in cases if case.bears == OPEN and case.why)
        said[0] += f" ({'; '.join(why)})" if why else ""
    for how in dict.fromkeys(how for case in cases for how in case.stands_in):
        said.append(how if all(how in case.stands_in for case in cases) else f"in part {how}")
    return ", ".join(said)


def in_short(one: Judged) -> str:
    """What a verdict rests on: the cases, and what they are short of, without the verdict itself."""
    short = in_words(one).removeprefix(one.verdict[0].upper() + one.verdict[1:]).strip(", ")
    return ": ".join(filter(None, [short, measured_text(one.outcome.cases)]))


def undecided(one: Judged) -> bool:
    """Does *no difference shown* say too much? Neither a difference nor that there is none is shown in all cases: some
    show one, or nothing was shown, or the claim is that there is none.
    """
    cases = one.outcome.cases
    return one.verdict == NO_DIFFERENCE and (
        one.outcome.margin is not None
        or any(case.bears == SUPPORTS for case in cases)
        or all(case.why for case in cases if case.bears == OPEN)
    )


def measured_text(cases: list[Case]) -> str:
    """What was measured: a case in full; of several with which data, and how many bear how."""
    if len(cases) < 2:
        return "".join(f"{case.of}{f' ({case.setting})' if case.setting else ''}: {case.measured}" for case in cases)
    settings = " / ".join(dict.fromkeys(case.setting for case in cases if case.setting))
    counts = []
    for bears, words in {SUPPORTS: "support{} it", CONTRADICTS: "contradict{} it", OPEN: "leave{} it open"}.items():
        these = [case for case in cases if case.bears == bears]
        same = Counter(case.why for case in these if case.why and bears == CONTRADICTS)
        beside = f" ({', '.join(f'{count} {why}' for why, count in same.items())})" if same else ""
        counts += [f"{len(these)} {words.format('s' * (len(these) == 1))}{beside}"] if these else []
    return f"{len(cases)} cases{f' ({settings})' if settings else ''}: {', '.join(counts)}"
