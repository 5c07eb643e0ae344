"""The base of comparisons and training runs: measurements of conditions, certificates, failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from benchlib.cache import Measurement
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.provenance.knobs import Ledger
from benchlib.shown import Shown


class Proof(Protocol):
    """A certificate, as far as statistics ask one: see ``equivalence.certificate``."""

    condition: Condition
    verdict: str
    file: str | None
    same: bool
    unrounded: bool
    reason: str | None
    crashed: bool
    less_work: str

    def model_dump_json(self, *, exclude: set[str]) -> str: ...


class Frame(pd.DataFrame):
    """A table that prints the columns with results, and the number of its other columns."""

    def __repr__(self) -> str:
        first = [name for name in _FIRST if name in self and self[name].notna().any()]
        cut = {"failure": lambda text: str(text).partition("\n")[0]}
        text = self[first].to_string(index=False, float_format="{:.5g}".format, formatters=cut, max_rows=60)
        return f"{text}\n{len(self.columns) - len(first)} other columns: see .columns"


_FIRST = (
    *("label", "seed", "epoch", "ratio", "samples_per_second", "low", "high", "verdict", "role", "processes"),
    *("step_ms", "reached", "metric", "loss", "epoch_s", "seconds", "seconds_to_threshold", "models", "failure"),
)


@dataclass(frozen=True, repr=False)
class Measured(Shown):
    """Measurements of ``conditions``, and the certificates that their models are the same."""

    conditions: list[Condition]
    measurements: list[Measurement]
    certificates: dict[str, Proof]  # by condition key

    @property
    def host(self) -> str | None:
        """The one host that all of it was measured on; None: nothing is there, or from before hosts were recorded."""
        hosts = dict.fromkeys(m.machine.get("host") for m in self.measurements)
        if len(hosts) > 1:
            raise BenchlibError(f"{self.conditions[0]}: measured on {' and '.join(map(str, hosts))}: a host at a time")
        return next(iter(hosts), None)

    def failures(self) -> pd.DataFrame:
        """A row per condition whose last process failed: label, repetition, failure; workers of the gate included."""
        return failures(self.measurements, self.certificates.values())

    def files(self, *conditions: Condition) -> list[str]:
        """Keys of the files that the measurements lie in; of some conditions, those that hold one of them."""
        return sorted({m.file for m in self.measurements if not conditions or m.condition in conditions})

    def ledger(self) -> Ledger:
        """The knobs that were set, in the workers of the gate, too."""
        return Ledger([*self.measurements, *self.certificates.values()])


def failures(measurements: Iterable[Measurement], certificates: Iterable[Proof]) -> pd.DataFrame:
    """A row per condition of a comparison, and per training run, whose last process failed."""
    last = {(m.group, m.role, m.condition.key): m for m in sorted(measurements, key=lambda m: m.repetition)}
    rows = [
        (m.condition, m.role, m.repetition, m.seed, m.failure, f"measurements/{m.file}.parquet", m.crashed)
        for m in last.values()
        if not m.ok
    ]
    rows += [
        (c.condition, "gate", 0, 0, c.reason, "", c.crashed)
        for c in {c.condition: c for c in certificates if c.reason}.values()
    ]
    rows = [(str(condition), *of_it) for condition, *of_it in rows]
    return Frame(rows, columns=["label", "role", "repetition", "seed", "failure", "file", "crashed"])
