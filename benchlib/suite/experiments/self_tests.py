"""What the instrument shows beside its frame: tests of timers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pandas as pd

from benchlib.plotting import naming
from benchlib.runner.timer_check import LEAST_SHARE, LEAST_SHARE_FEW, SyncCheck
from benchlib.tables import Listed


class Tested(Protocol):
    """What is asked of the instrument."""

    timers: Sequence[SyncCheck]


def timers(result: Tested) -> Iterator[str]:
    """Whether the timers see all the work."""
    for _, sentence in _of_each(result):
        yield sentence


def timers_in_short(result: Tested) -> Iterator[str]:
    """How many timers see all the work, and which do not."""
    if not result.timers:
        return
    seeing = [check for check in result.timers if check.ok]
    least = min((min(check.share, check.share_of_few) for check in seeing), default=0)
    shares = f" ({least:.0%} of it, or more)" if seeing else ""
    others = [sentence for check, sentence in _of_each(result) if not check.ok]
    yield " ".join(
        [f"{len(seeing)} of {len(result.timers)} timers see the work that was planted to test them{shares}.", *others]
    )


def _of_each(result: Tested) -> Iterator[tuple[SyncCheck, str]]:
    blind = "THE TIMER DOES NOT SEE ALL THE WORK: believe none of its times"
    named = naming.subjects(check.condition for check in result.timers)
    for check in result.timers:
        who = f"{named[check.condition]} on {check.condition.device}"
        if check.failure:
            yield check, f"{who}: the timer could not be tested: {check.failure}"
            continue
        few = f"{check.share_of_few:.0%} of a few steps"
        sees = "the timer sees the work" if check.ok else blind
        yield check, f"{who}: {sees}, {check.share:.0%} of planted {check.known_s:.2f} s and {few}."


def _checks(result: Tested) -> pd.DataFrame:
    named = naming.subjects(one.condition for one in result.timers)
    return pd.DataFrame(
        {
            "subject": named[one.condition],
            "device": one.condition.device,
            "known_s": one.known_s,
            "timed_s": one.timed_s,
            "share_of_few": one.share_of_few,
            "timed_share": one.share,
            "passes": one.ok,
        }
        for one in result.timers
    )


TIMERS = Listed(
    f"Planted work: the timer has to see {LEAST_SHARE:.0%} of the known duration of many steps, and "
    f"{LEAST_SHARE_FEW:.0%} of that of a few. Each duration is the shortest of a few takes; where steps vary "
    "much, so does the share, up as well as down.",
    _checks,
)
