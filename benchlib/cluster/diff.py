"""What has changed between two sides: each ratio is of one host, and of all changes few are false alarms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchlib.cache import Measurement, Store, load, seconds_by_round
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.stats.comparison import Comparison
from benchlib.stats.intervals import CONFIDENCE, Interval, geometric_interval, log_ratios

DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
RATE = 0.05  # of false alarms among the alarms
MARGIN = 0.03  # a ratio that changes by less is the same
TOGETHER = 0.15  # all speeds of a host together: they drift with the machine, so less is said and is no alarm
SLOWER, FASTER, UNKNOWN = "slower", "faster", "which of the two cannot be told"


@dataclass(frozen=True)
class Ratio:
    """A condition's throughput over its baseline's, on one host, in one occasion."""

    condition: Condition
    baseline: Condition
    host: str
    beside: tuple[Condition, ...]  # all that were compared with the baseline
    logs: tuple[float, ...]  # one for each pair of processes
    seconds: tuple[tuple[float, ...], ...]  # log seconds of a sample by process, of the condition and the baseline
    about: tuple[dict[tuple[str, str], str], ...]  # of both: what could have changed them

    @property
    def interval(self) -> Interval:
        return geometric_interval(self.logs)

    def __str__(self) -> str:
        return f"{self.condition} / {self.baseline}"


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
    def differences(self) -> list[dict[tuple[str, str], tuple[Any, Any]]]:
        """What differs between the sides, by kind and name, of the condition and of its baseline."""
        both = zip(self.before.about, self.after.about, strict=True)
        return [{it: (a.get(it), b.get(it)) for it in a | b if a.get(it) != b.get(it)} for a, b in both]

    @property
    def moves(self) -> dict[str, float]:
        """How much longer the condition and its baseline take (logarithms)."""
        pairs = zip((self.after.condition, self.after.baseline), self.before.seconds, self.after.seconds, strict=True)
        return {str(condition): float(np.mean(after) - np.mean(before)) for condition, before, after in pairs}

    @property
    def who(self) -> tuple[str, str]:
        """Of a changed ratio: who got slower or faster, the condition or the baseline; and which of these words."""
        fell, size, sign = (move := math.log(self.interval.estimate)) < 0, abs(move), -math.copysign(1, move)
        of_own, of_base = ({kind for kind, _ in one} & {"environment", "knobs"} for one in self.differences)
        blame = None  # is it the condition?
        if bool(of_own) != bool(of_base):
            blame = bool(of_own)
        elif self.before.host == self.after.host != "":  # seconds of one host can be compared, but for its drift
            both = [[sign * (move - drift) for move in self.moves.values()] for drift in (self.drift, 0.0)]
            blames = {own > -base for own, base in both if max(own, -base) > 3 / 4 * size}  # of what is seen
            blame = blames.pop() if len(blames) == 1 else None  # if not, most conditions moved: no drift, perhaps
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
        drifts = [one.drift for one in self.changes if one.before.host == one.after.host != ""]
        return math.exp(float(np.median(drifts))) if drifts else None

    def fails(self, on: str | None) -> bool:
        """Is the exit code 1: for any change, or for what got slower, or may have; or for what is not there to tell?"""
        lost = self.alone[0] or self.unclear or not all(math.isfinite(one.p) for one in self.changes)
        every = self.together is not None and self.together > 1 + TOGETHER
        slower = every or any(one.who[1] in (SLOWER, UNKNOWN) for one in self.changed)
        return bool(on) and bool(lost or (slower if on == "slower" else self.changed))


def compare(one: str, other: str) -> Diff:
    """Compare two sides: a folder, or FOLDER@host=NAME, @date=FROM..TO, @environment=NAME or @PACKAGE=VERSION."""
    return of_ratios(read_side(one), read_side(other), (one, other))


def of_ratios(one: Sequence[Ratio], other: Sequence[Ratio], names: tuple[str, str] = ("before", "after")) -> Diff:
    """Compare the ratios of two sides, each host with itself, or the only host of one with the only of the other."""
    without = {"environment"} if all("@environment=" in name for name in names) else set[str]()
    sides = [_by_task(ratios, without) for ratios in (one, other)]
    changes, unclear = [], []
    for task in sides[0].keys() & sides[1].keys():
        before, after = (side[task] for side in sides)
        only = [*zip(before, after, strict=True)] if len(before) == len(after) == 1 else []
        hosts = [(host, host) for host in before if host in after] or only
        if not hosts:
            unclear.append(f"{next(iter(after.values()))}: of {', '.join(before)}; and of {', '.join(after)}")
        changes += [_change(before[mine], after[its]) for mine, its in hosts]
    lone = [[str(one) for task in a.keys() - b.keys() for one in a[task].values()] for a, b in (sides, sides[::-1])]
    return Diff(names, _benjamini_hochberg(changes), [sorted(one) for one in lone], sorted(unclear))


def read_side(side: str) -> list[Ratio]:
    """The ratios of a side; a BenchlibError where there are none."""
    name, *clauses = side.split("@")
    if not Path(name, "measurements").is_dir():
        raise BenchlibError(f"{side}: there is no {name}/measurements: give FOLDER or FOLDER@host=NAME")
    rows = every = [m for m in Store(Path(name, "measurements")).all() if m.kind == "comparison"]
    for clause in clauses:
        if not re.fullmatch(r"[^=]+=.+", clause) or not re.fullmatch(rf"(?!date=).*|date={DAY}(\.\.{DAY})?", clause):
            raise BenchlibError(f"{side}: {clause!r}: give host=NAME, date=2026-11-01..2026-11-28, or PACKAGE=VERSION")
        rows = _select(rows, *clause.split("=", 1))
    if not (found := ratios(rows, Path(name))):
        there = {f"{m.machine.get('host')} {m.started_utc[:10]} {m.condition.environment}" for m in every}
        raise BenchlibError(f"{side}: no ratio; {name} has comparisons of {', '.join(sorted(there)[:20]) or 'nothing'}")
    return found


def _select(rows: list[Measurement], what: str, value: str) -> list[Measurement]:
    if what == "host":
        return [m for m in rows if m.machine.get("host") == value]
    if what == "date":
        return [m for m in rows if value[:10] <= m.started_utc[:10] <= value[-10:]]
    has = {m.group for m in rows if value in (m.versions.get(what), what == "environment" and m.condition.environment)}
    return [m for m in rows if m.group in has and m.versions.get(what, value) == value]


def ratios(rows: Iterable[Measurement], folder: Path) -> list[Ratio]:
    """The undisturbed ratios of each comparison and host, but of models that the ``folder`` has not as the same."""
    paths = sorted(folder.glob("certificates/[!.]*.json"), key=lambda path: path.stat().st_mtime)
    proofs = {one.condition: one for path in paths if (one := load(Certificate, path))}  # the last of each
    first = {one: [proofs[it] for it in gate.prerequisites(one) if it in proofs] for one in proofs}
    wrong = {one for one, proof in proofs.items() if not gate.judge(first[one], proof).same}
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for m in rows:
        groups.setdefault((m.group, m.machine.get("host", "")), []).append(m)
    found = []
    for (_, host), own in groups.items():
        baseline, *others = dict.fromkeys(m.condition for m in sorted(own, key=lambda m: m.role != "baseline"))
        comparison = Comparison([baseline, *others], own, {}, 0.0, 0.0, 0, 0.0)
        for condition in others:
            measured = comparison.pairs(baseline, condition)
            timed = [(seconds_by_round(base), seconds_by_round(m)) for base, m in measured]
            logs = [log_ratios(*pair) for pair in timed]
            apart = comparison.disturbed(baseline, condition) or {*map(gate.adapt, (baseline, condition))} & wrong
            if any(logs) and not apart:
                means = [[float(np.mean(np.log([*one.values()]))) for one in pair] for pair in timed if all(pair)]
                of_pairs, seconds = tuple(float(np.mean(one)) for one in logs if one), tuple(zip(*means, strict=True))
                about = tuple(_about(m) for m in reversed(measured[-1]))
                found.append(Ratio(condition, baseline, host, tuple(others), of_pairs, seconds[::-1], about))
    return found


def _about(m: Measurement) -> dict[tuple[str, str], str]:
    """What a process was made of, by kind and name: all that a change can come from."""
    kinds = {
        "environment": {"environment": m.condition.environment, **m.packages, **m.versions},
        "knobs": {**m.knobs, **m.inherited, **m.settings},
        "machine": {name: value for name, value in m.machine.items() if name != "host"},
        "code": {"commit": m.commit, "code that measures": m.code},
    }
    return {(kind, name): str(value) for kind, of in kinds.items() for name, value in of.items()}


def _by_task(ratios: Sequence[Ratio], without: set[str]) -> dict[tuple, dict[str, Ratio]]:
    """The ratios by what is compared and by host; of several that a host has the last, which nothing is pooled with."""
    found: dict[tuple, dict[str, Ratio]] = {}
    for one in ratios:
        every = (one.condition, one.baseline, *one.beside)
        of, base, *beside = (each.model_dump_json(exclude=without) for each in every)
        found.setdefault((of, base, *sorted({*beside})), {})[one.host] = one
    return found


def _change(before: Ratio, after: Ratio) -> Change:
    """The ratio of two ratios of independent processes, by Welch."""
    sides = [np.array(one.logs) for one in (after, before)]
    move, few = float(sides[0].mean() - sides[1].mean()), min(map(len, sides))
    if few < 2:
        return Change(before, after, Interval(math.exp(move), processes=few), math.nan)
    low, high = stats.ttest_ind(*sides, equal_var=False).confidence_interval(CONFIDENCE)
    sides[0] -= math.log1p(MARGIN) * (1 if move >= 0 else -1)
    p = stats.ttest_ind(*sides, equal_var=False, alternative="greater" if move >= 0 else "less").pvalue
    return Change(before, after, Interval(math.exp(move), math.exp(low), math.exp(high), few), float(p))


def _benjamini_hochberg(changes: Sequence[Change]) -> list[Change]:
    """Say which have changed, so that of these about ``RATE`` at most have not."""
    known = [one for one in changes if math.isfinite(one.p)]
    adjusted = stats.false_discovery_control([one.p for one in known]) if known else []
    alarms = {id(one) for one, p in zip(known, adjusted, strict=True) if p <= RATE}
    moves = dict[str, dict[str, float]]()
    for one in changes:
        moves.setdefault(one.after.host, {}).update(one.moves)
    drifts = {host: float(np.median([*of.values()])) for host, of in moves.items()}
    return [replace(one, changed=id(one) in alarms, drift=drifts[one.after.host]) for one in changes]
