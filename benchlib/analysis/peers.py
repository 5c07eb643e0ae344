"""The variances that the comparisons of one outputs folder have shown, so that each may borrow those of its kind.

Of one kind are ratios of the same frameworks in the same environments and lanes, on the same device of the same host;
A/A controls are a kind of their own. A comparison gives one of its ratios to a kind: its ratios share a baseline, and
are not independent. Whatever lies in the folder counts, in whichever order it was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib.analysis.moderation import Spread
from benchlib.analysis.statistics import rounds_of
from benchlib.condition import Condition
from benchlib.store import Measurement, Store, seconds_by_round


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


class Peers:
    """The variances in a store of measurements; :meth:`refresh` reads what has come since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[str, int] = {}
        self._files: dict[str, list[_Ratio]] = {}
        self._spreads: dict[Hashable, dict[str, Spread]] = {}

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

    def of(self, group: str, wanted: Hashable) -> tuple[Spread, ...]:
        """The variances of one kind that other comparisons than ``group`` have shown."""
        return tuple(spread for other, spread in sorted(self._spreads.get(wanted, {}).items()) if other != group)


def _written(folder: Path) -> dict[str, int]:
    """When each file was written."""
    written = {}
    for path in folder.glob("*.parquet"):
        with suppress(FileNotFoundError):  # another process has put it aside
            written[path.stem] = path.stat().st_mtime_ns
    return written


def _ratios(together: list[Measurement]) -> list[_Ratio]:
    baseline = next((m for m in together if m.role == "baseline" and m.ok), None)
    if baseline is None:
        return []
    of_baseline = seconds_by_round(baseline)
    return [
        _Ratio(
            kind(baseline.condition, m.condition, m.role == "control", host_of(m.machine)),
            m.group,
            m.condition.key,
            m.repetition,
            rounds_of(of_baseline, seconds_by_round(m)),
        )
        for m in together
        if m is not baseline and m.ok and m.blocks
    ]


def host_of(machine: Mapping[str, Any]) -> str:
    """What tells a machine, as it describes itself, from others."""
    return " ".join(str(machine.get(name, "")) for name in ("cpu", "cores", "memory_gib", "gpus", "npus"))


def _spreads(files: dict[str, list[_Ratio]]) -> dict[Hashable, dict[str, Spread]]:
    """By kind and comparison: of several ratios the one whose condition comes first."""
    logs: dict[Hashable, dict[str, dict[str, dict[int, list[float]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for ratios in files.values():
        for one in ratios:
            if one.logs:
                logs[one.kind][one.group][one.condition][one.repetition] = one.logs
    spreads: dict[Hashable, dict[str, Spread]] = {}
    for of_kind, groups in logs.items():
        for group, conditions in groups.items():
            _, by_repetition = min(conditions.items())
            if len(by_repetition) > 1:
                in_order = [rounds for _, rounds in sorted(by_repetition.items())]
                spreads.setdefault(of_kind, {})[group] = Spread.of(in_order)
    return spreads
