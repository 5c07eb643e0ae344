"""What has changed between two sides: folders of results, or parts of them by host, date, version or environment.

A ratio is of two conditions of one comparison, on one host. Its change is the ratio of the two sides' ratios, with
Welch's interval over processes. It has changed if the hypothesis that it is within ``margin`` of 1 is rejected; of
all ratios together by Benjamini and Hochberg's rule, at a false discovery rate of 5 %.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from benchlib.cache import Measurement, Store, seconds_by_round
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.stats.intervals import CONFIDENCE, Interval, geometric_interval, log_ratios

RATE = 0.05  # of false alarms among the alarms
MARGIN = 0.03  # a ratio that changes by less is the same
TOGETHER = 0.15  # all speeds of a host together: they drift with the machine, so less is said and is no alarm
FEW = 2  # processes of each side at least

ALIKE, CHANGED, TOO_FEW = "not shown to change", "changed", "too few processes"
SAME_THING, SLOWER, FASTER, UNKNOWN = "", "slower", "faster", "which of the two cannot be told"


@dataclass(frozen=True)
class Ratio:
    """A condition's throughput over its baseline's, on one host, in one occasion."""

    condition: Condition
    baseline: Condition
    host: str
    group: str
    logs: tuple[float, ...]  # one for each pair of processes
    seconds: tuple[tuple[float, ...], ...]  # log seconds of a sample by process, of the condition and the baseline
    about: tuple[dict[str, Any], ...]  # of both: what could have changed them

    @property
    def interval(self) -> Interval:
        return geometric_interval(self.logs)


@dataclass(frozen=True)
class Change:
    """A ratio on two sides, and whether it has changed."""

    before: Ratio
    after: Ratio
    interval: Interval  # of the ratio of the ratios
    p: float  # of the hypothesis that it is within the margin of 1
    changed: bool = False
    drift: float = 0.0  # of the host's speed: how much longer all takes, in the middle (logarithm)

    @property
    def verdict(self) -> str:
        return CHANGED if self.changed else ALIKE if math.isfinite(self.p) else TOO_FEW

    @property
    def differences(self) -> list[dict[str, dict[str, tuple[Any, Any]]]]:
        """What differs between the sides, of the condition and of its baseline."""
        return [_differing(*pair) for pair in zip(self.before.about, self.after.about, strict=True)]

    @property
    def moves(self) -> dict[str, float]:
        """How much longer the condition and its baseline take (logarithms)."""
        pairs = zip((self.after.condition, self.after.baseline), self.before.seconds, self.after.seconds, strict=True)
        return {str(condition): float(np.mean(after) - np.mean(before)) for condition, before, after in pairs}

    @property
    def who(self) -> tuple[str, str]:
        """Who got slower or faster, the condition or the baseline, and which of these words."""
        if not self.changed:
            return "", SAME_THING
        fell, size = self.interval.estimate < 1, abs(math.log(self.interval.estimate))
        of_own, of_base = ({*one} & {"environment", "knobs"} for one in self.differences)
        blame = None  # is it the condition?
        if bool(of_own) != bool(of_base):
            blame = bool(of_own)
        elif self.before.host == self.after.host:  # seconds of one host can be compared, but for its drift
            for drift in (self.drift, 0.0):
                own, base = ((move - drift) * (1 if fell else -1) for move in self.moves.values())
                if blame is None and max(own, -base) > 3 / 4 * size:  # of what is seen
                    blame = own > -base
        if blame is None:
            return f"{self.after.condition} or {self.after.baseline}", UNKNOWN
        named = str(self.after.condition if blame else self.after.baseline)
        return named, SLOWER if fell == blame else FASTER


@dataclass(frozen=True)
class Diff:
    """All ratios that both sides have."""

    names: tuple[str, str]
    changes: list[Change]
    alone: list[list[str]]  # of both: ratios that one side only has
    unclear: list[str]  # ratios of several hosts that do not match

    @property
    def changed(self) -> list[Change]:
        return sorted((one for one in self.changes if one.changed), key=lambda one: one.p)

    @property
    def together(self) -> float | None:
        """How many times as long all conditions take now, in the middle, on the hosts that both sides have."""
        drifts = [one.drift for one in self.changes if one.before.host == one.after.host]
        return math.exp(float(np.median(drifts))) if drifts else None

    def fails(self, on: str | None) -> bool:
        """Is the exit code 1: for any change, or for what got slower, or may have?"""
        if on == "slower":
            every = self.together is not None and self.together > 1 + TOGETHER
            return every or any(one.who[1] in (SLOWER, UNKNOWN) for one in self.changed)
        return on == "changed" and bool(self.changed)


def compare(one: str, other: str, margin: float = MARGIN) -> Diff:
    """Compare two sides: a folder, or FOLDER@host=NAME, @date=FROM..TO, @environment=NAME or @PACKAGE=VERSION."""
    return of_ratios(read_side(one), read_side(other), (one, other), margin)


def of_ratios(
    one: Iterable[Ratio], other: Iterable[Ratio], names: tuple[str, str] = ("before", "after"), margin: float = MARGIN
) -> Diff:
    """Compare the ratios of two sides, each host with itself, or the only host of one with the only of the other."""
    environments = "@environment=" in names[0] and "@environment=" in names[1]
    sides = [_by_task(ratios, environments) for ratios in (one, other)]
    changes, unclear = [], []
    for task in sides[0].keys() & sides[1].keys():
        before, after = (side[task] for side in sides)
        hosts = [(host, host) for host in before if host in after]
        if not hosts and len(before) == len(after) == 1:
            hosts = [(next(iter(before)), next(iter(after)))]
        if not hosts:
            unclear.append(f"{_title(next(iter(after.values())))}: of {', '.join(before)}; and of {', '.join(after)}")
        changes += [_change(before[mine], after[its], margin) for mine, its in hosts]
    lone = [[_title(one) for task in a.keys() - b.keys() for one in a[task].values()] for a, b in (sides, sides[::-1])]
    return Diff(names, _benjamini_hochberg(changes), [sorted(one) for one in lone], sorted(unclear))


def read_side(side: str) -> list[Ratio]:
    """The ratios of a side; a BenchlibError where there are none."""
    name, *clauses = side.split("@")
    folder = Path(name)
    if not (folder / "measurements").is_dir():
        raise BenchlibError(f"{side}: {folder} is no folder of results: give FOLDER or FOLDER@host=NAME")
    rows = [m for m in Store(folder / "measurements").all() if m.kind == "comparison"]
    for clause in clauses:
        what, equals, value = clause.partition("=")
        if not equals or not value:
            raise BenchlibError(
                f"{side}: {clause!r}: give host=NAME, date=FROM..TO, environment=NAME or PACKAGE=VERSION"
            )
        rows = _select(rows, what, value)
        if not rows:
            raise BenchlibError(f"{side}: no row of a comparison has {clause}")
    found = ratios(rows)
    if not found:
        raise BenchlibError(f"{side}: no comparison with a ratio is there")
    return found


def _select(rows: list[Measurement], what: str, value: str) -> list[Measurement]:
    if what == "host":
        return [m for m in rows if m.machine.get("host") == value]
    if what == "date":
        first, _, last = value.partition("..")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", first) or (last and not re.fullmatch(r"\d{4}-\d\d-\d\d", last)):
            raise BenchlibError(f"date={value}: give 2026-11-28, or 2026-11-01..2026-11-28")
        return [m for m in rows if first <= m.started_utc[:10] <= (last or first)]
    if what == "environment":
        has = {m.group for m in rows if m.condition.environment == value}
    else:
        has = {m.group for m in rows if m.versions.get(what) == value}
        has -= {m.group for m in rows if m.versions.get(what, value) != value}
    return [m for m in rows if m.group in has]


def ratios(rows: Iterable[Measurement]) -> list[Ratio]:
    """The ratios to the baseline in rows of comparisons, for each comparison and host."""
    groups: dict[tuple[str, str], dict[int, list[Measurement]]] = {}
    for m in rows:
        groups.setdefault((m.group, m.machine.get("host", "")), {}).setdefault(m.repetition, []).append(m)
    found = []
    for (group, host), repetitions in groups.items():
        pairs: dict[Condition, list[tuple[Measurement, Measurement]]] = {}
        for together in repetitions.values():
            bases = [m for m in together if m.role == "baseline" and m.ok]
            for base, m in ((base, m) for base in bases for m in together if m.role == "condition" and m.ok):
                pairs.setdefault(m.condition, []).append((base, m))
        for condition, measured in pairs.items():
            timed = [(seconds_by_round(base), seconds_by_round(m)) for base, m in measured]
            logs = [log_ratios(*pair) for pair in timed]
            if any(logs):
                base, last = measured[-1]
                means = [[float(np.mean(np.log([*one.values()]))) for one in pair] for pair in timed if all(pair)]
                of_pairs, seconds = tuple(float(np.mean(one)) for one in logs if one), tuple(zip(*means, strict=True))
                about = (_about(last), _about(base))
                found.append(Ratio(condition, base.condition, host, group, of_pairs, seconds[::-1], about))
    return found


def _about(m: Measurement) -> dict[str, Any]:
    """What a process was made of: all that a change can come from."""
    return {
        "environment": {"environment": m.condition.environment, **m.packages, **m.versions},
        "knobs": {**m.knobs, **m.inherited, **{name: str(value) for name, value in m.settings.items()}},
        "machine": {name: str(value) for name, value in m.machine.items() if name != "host"},
        "code": {"commit": m.commit, "code of the measuring": m.code},
    }


def _differing(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, tuple[Any, Any]]]:
    """By kind, the names whose values differ, with both values."""
    found = {}
    for kind in before:
        one, other = before[kind], after[kind]
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        if names:
            found[kind] = {name: (one.get(name, "none"), other.get(name, "none")) for name in names}
    return found


def _by_task(ratios: Iterable[Ratio], without_environment: bool) -> dict[tuple, dict[str, Ratio]]:
    """The ratios by what is compared and by host; of several that a host has the last, which nothing is pooled with."""
    every = list(ratios)
    companions: dict[tuple[str, str], set[str]] = {}
    for one in every:
        companions.setdefault((one.group, one.host), set()).add(_identity(one.condition, without_environment))
    found: dict[tuple, dict[str, Ratio]] = {}
    for one in every:
        both = [_identity(condition, without_environment) for condition in (one.condition, one.baseline)]
        task = (*both, *sorted(companions[one.group, one.host]))
        found.setdefault(task, {})[one.host] = one
    return found


def _identity(condition: Condition, without_environment: bool) -> str:
    return condition.model_dump_json(exclude={"environment"} if without_environment else None)


def _title(one: Ratio) -> str:
    return f"{one.condition} / {one.baseline}"


def _change(before: Ratio, after: Ratio, margin: float) -> Change:
    """The ratio of two ratios of independent processes, by Welch."""
    sides = [np.array(one.logs) for one in (before, after)]
    move, few = float(sides[1].mean() - sides[0].mean()), min(map(len, sides))
    if few < FEW:
        return Change(before, after, Interval(math.exp(move), processes=few), math.nan)
    parts = [float(side.var(ddof=1)) / len(side) for side in sides]
    error = math.sqrt(sum(parts))
    by_side = sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    free = max(1.0, sum(parts) ** 2 / max(by_side, 1e-300))
    half = float(special.stdtrit(free, (1 + CONFIDENCE) / 2)) * error
    beyond = abs(move) - math.log1p(margin)
    p = float(special.stdtr(free, -beyond / error)) if error else float(beyond <= 0)
    interval = Interval(math.exp(move), math.exp(move - half), math.exp(move + half), few)
    return Change(before, after, interval, p)


def _benjamini_hochberg(changes: Sequence[Change]) -> list[Change]:
    """Say which have changed, so that of these about ``RATE`` at most have not."""
    known = sorted((one for one in changes if math.isfinite(one.p)), key=lambda one: one.p)
    most = max((place for place, one in enumerate(known, 1) if one.p <= RATE * place / len(known)), default=0)
    alarms, moves = {id(one) for one in known[:most]}, dict[str, dict[str, float]]()
    for one in changes:
        moves.setdefault(one.after.host, {}).update(one.moves)
    drifts = {host: float(np.median([*of.values()])) for host, of in moves.items()}
    return [replace(one, changed=id(one) in alarms, drift=drifts[one.after.host]) for one in changes]
