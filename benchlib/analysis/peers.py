"""The variances that the comparisons of one outputs folder have shown, so that each may borrow those of its kind.

Of one kind are ratios of the same frameworks in the same environments and lanes, on the same device of the same host;
A/A controls are a kind of their own. Lenders are independent: a comparison gives one of its ratios to a kind, for its
ratios share a baseline; and of comparisons that were hosted by the same processes, and may all be fast or slow with
these, one lends, and to none of the others. Of several it is the first by its key, which says nothing of its variance.
A ratio that is mostly disturbed or slows down lends nothing, as it is none. One of models that differ, or that nobody
has checked, does: what it lends is how far processes lie from each other. Whatever lies in the folder counts, in
whichever order it was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib.analysis.moderation import Spread
from benchlib.analysis.soundness import Growth, disturbed_rounds, growths, mostly, slow_down
from benchlib.analysis.statistics import rounds_of
from benchlib.condition import Condition
from benchlib.store import Measurement, Store, seconds_by_round

Lent = Callable[[Condition, Condition, bool], Sequence[Spread]]
"""The variances that others have shown of a ratio of two conditions (the lower first), or of a control."""


def kind(baseline: Condition, condition: Condition, control: bool, host: str) -> Hashable:
    """What ratios must have in common for one to borrow the variance of the others."""
    return (
        host,
        control,
        *((one.implementation, one.lane, one.device) for one in (baseline, condition)),
    )


@dataclass(frozen=True)
class _Ratio:
    """Of one process: the logarithms of its ratio to the baseline, by round."""

    kind: Hashable
    group: str
    condition: str
    repetition: int
    logs: list[float]
    disturbed: list[bool]  # of each round, those included that have no logarithm for it
    growths: tuple[list[Growth], list[Growth]]  # of the baseline's processes, and of the condition's
    hosts: Hashable  # the processes of the repetition


class Peers:
    """The variances in a store of measurements; :meth:`refresh` reads what has come since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[str, int] = {}
        self._files: dict[str, list[_Ratio]] = {}
        self._spreads: dict[Hashable, dict[str, Spread]] = {}
        self._hosts: dict[str, set[Hashable]] = {}

    def refresh(self) -> None:
        """Read the files that are new, or were written again because they were damaged; forget those that are gone."""
        written = _written(self._store.folder)
        if written == self._written:
            return
        self._files = {
            file: self._files[file] if self._written.get(file) == at else _ratios(self._store.rounds(file))
            for file, at in written.items()
        }
        self._written = written
        self._spreads = _spreads(self._files)
        self._hosts = defaultdict(set)
        for ratios in self._files.values():
            for one in ratios:
                self._hosts[one.group].add(one.hosts)

    def lent_to(self, group: str, machine: Mapping[str, Any]) -> Lent:
        """What :meth:`of` gives comparison ``group`` on a machine, as it describes itself."""
        host = host_of(machine)
        return lambda one, other, control: self.of(group, kind(one, other, control, host))

    def of(self, group: str, wanted: Hashable) -> tuple[Spread, ...]:
        """The variances of one kind that comparisons have shown of which none has a process in common with ``group``,
        nor with another of them.
        """
        lenders, taken = [], set(self._hosts.get(group, ()))
        for other, spread in sorted(self._spreads.get(wanted, {}).items()):
            if other != group and taken.isdisjoint(self._hosts[other]):
                lenders.append(spread)
                taken |= self._hosts[other]
        return tuple(lenders)


def _written(folder: Path) -> dict[str, int]:
    """When each file was written."""
    written = {}
    for path in folder.glob("[!.]*.parquet"):
        with suppress(FileNotFoundError):  # another process has put it aside
            written[path.stem] = path.stat().st_mtime_ns
    return written


def _ratios(together: list[Measurement]) -> list[_Ratio]:
    baseline = next((m for m in together if m.role == "baseline" and m.ok), None)
    if baseline is None:
        return []
    of_baseline = seconds_by_round(baseline)
    good = [m for m in together if m.ok]
    grown = {condition: growths(condition, good) for condition in {m.condition for m in good}}
    # Parts of one repetition have one opening, whose seconds no other has to the last digit.
    hosts = baseline.opening_s if baseline.shared_by > 1 else baseline.file
    return [
        _Ratio(
            kind(baseline.condition, m.condition, m.role == "control", host_of(m.machine)),
            m.group,
            m.condition.key,
            m.repetition,
            rounds_of(of_baseline, seconds_by_round(m)),
            disturbed_rounds(baseline, m),
            (grown[baseline.condition], grown[m.condition]),
            hosts,
        )
        for m in together
        if m is not baseline and m.ok and m.blocks
    ]


def host_of(machine: Mapping[str, Any]) -> str:
    """What tells a machine, as it describes itself, from others."""
    return " ".join(
        str(machine.get(name) or "") for name in ("cpu", "cores", "cpu_quota", "memory_gib", "gpus", "npus")
    )


def _spreads(files: dict[str, list[_Ratio]]) -> dict[Hashable, dict[str, Spread]]:
    """By kind and comparison: of several ratios that have one the one whose condition comes first."""
    every: dict[tuple[Hashable, str, str], list[_Ratio]] = defaultdict(list)
    for ratios in files.values():
        for one in ratios:
            every[one.kind, one.group, one.condition].append(one)
    spreads: dict[Hashable, dict[str, Spread]] = defaultdict(dict)
    for (of_kind, group, _), ratios in sorted(every.items(), key=lambda item: item[0][1:]):
        if group not in spreads[of_kind] and (spread := _spread(ratios)):
            spreads[of_kind][group] = spread
    return spreads


def _spread(ratios: Sequence[_Ratio]) -> Spread | None:
    """Of the processes of one ratio; None where they are too few, or it is none."""
    by_repetition = {one.repetition: one.logs for one in ratios if one.logs}
    if len(by_repetition) < 2 or mostly(flag for one in ratios for flag in one.disturbed):
        return None
    baselines, others = ([growth for one in ratios for growth in one.growths[place]] for place in (0, 1))
    if slow_down(baselines) or slow_down(others):
        return None
    return Spread.of([rounds for _, rounds in sorted(by_repetition.items())])
