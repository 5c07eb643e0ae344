"""What comparisons and training runs have in common: measurements of conditions, their certificates, what failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from benchlib.analysis.certificates import Certificate
from benchlib.condition import Condition
from benchlib.knobs import Ledger
from benchlib.shown import Shown
from benchlib.store import ATTEMPTS, Measurement


class Frame(pd.DataFrame):
    """A table that prints the columns that say what came out, and how many others it has."""

    def __repr__(self) -> str:
        first = [name for name in _FIRST if name in self and self[name].notna().any()]
        cut = {"failure": lambda text: str(text).partition("\n")[0]}
        text = self[first].to_string(index=False, float_format="{:.5g}".format, formatters=cut, max_rows=60)
        return f"{text}\n{len(self.columns) - len(first)} other columns: see .columns"


_FIRST = (
    *("label", "seed", "epoch", "ratio", "samples_per_second", "low", "high", "verdict", "role", "processes"),
    *("step_ms", "reached", "metric", "loss", "epoch_s", "seconds", "seconds_to_threshold", "failure"),
)


@dataclass(frozen=True, repr=False)
class Measured(Shown):
    """Measurements of ``conditions``, and the certificates that their models are the same."""

    conditions: list[Condition]
    measurements: list[Measurement]
    certificates: dict[str, Certificate]  # by condition key

    def failures(self) -> pd.DataFrame:
        """A row per process that failed: label, repetition, failure; workers of the gate included."""
        return failures(self.measurements, self.certificates.values())

    def files(self, *conditions: Condition) -> list[str]:
        """Keys of the files that the measurements lie in; of some conditions, those that hold one of them."""
        return sorted({m.file for m in self.measurements if not conditions or m.condition in conditions})

    def ledger(self) -> Ledger:
        """The knobs that were set, in the workers of the gate, too."""
        return Ledger([*self.measurements, *self.certificates.values()])


def failures(measurements: Iterable[Measurement], certificates: Iterable[Certificate]) -> pd.DataFrame:
    """A row per process that failed in its last attempt: label, role, repetition, seed, failure (what it was, and the
    end of what the worker said), the file that has its row, and whether it will be tried ``again``.
    """
    rows = [
        (m.condition, m.role, m.repetition, m.seed, why, f"measurements/{m.file}.parquet", m.attempt + 1 < ATTEMPTS)
        for m, why in failed(measurements)
    ]
    rows += [
        (c.condition, "gate", 0, 0, c.reason, "", c.attempts < ATTEMPTS)
        for c in {c.condition: c for c in certificates if c.reason}.values()
    ]
    rows = [(str(condition), *of_it) for condition, *of_it in rows]
    return Frame(rows, columns=["label", "role", "repetition", "seed", "failure", "file", "again"])


def failed(measurements: Iterable[Measurement]) -> list[tuple[Measurement, str]]:
    """The last attempts of what has failed in all of them, and why. A process whose baseline failed beside it cannot be
    compared: that is a failure, too.
    """
    measurements = list(measurements)
    baselines = baselines_of(measurements)
    attempts: dict[tuple, list[Measurement]] = {}
    for m in measurements:
        # Not by seed: a training run's is in its group, and a host's is that of whatever came first in it.
        attempts.setdefault((m.group, m.role, m.condition.key, m.repetition), []).append(m)
    last = [tried[-1] for tried in attempts.values() if not any(is_usable(m, baselines) for m in tried)]
    return [(m, m.failure or f"its baseline failed beside it: {baselines[m.file].failure}") for m in last]


def baselines_of(measurements: Iterable[Measurement]) -> dict[str, Measurement]:
    """The baselines' processes, by the file that they share with those measured beside them."""
    return {m.file: m for m in measurements if m.role == "baseline"}


def is_usable(m: Measurement, baselines: dict[str, Measurement]) -> bool:
    """Did it go well, and its baseline too, if it has one?"""
    return m.ok and (m.file not in baselines or baselines[m.file].ok)
