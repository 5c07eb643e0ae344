"""The certificate: the gate's result for one condition, which can be compared with another."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict

from benchlib.condition import Condition
from benchlib.equivalence.tolerances import TOLERANCES
from benchlib.errors import Failure
from benchlib.shown import Shown
from benchlib.stats.validity import DIFFERENT, NOT_CHECKED, SAME

APART = 0.1  # counted work may differ by so much: a gradient that one framework leaves out, a sum done otherwise
WHY_CHARACTERS = 300  # in a line; all stands in the certificate's file
TRUST = (
    "The gate catches accidents and wishful thinking, shows cheating to a reader of the files, "
    "and cannot hold against somebody who means to deceive."
)

Whose = Literal["condition", "reference"]


class Check(BaseModel):
    """One quantity compared over all trials."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    difference: float  # the largest beside what is allowed, ``at``; inf: missing, misshapen, or not finite
    worst: float  # of all
    at: str
    tolerance: float
    own: float = 0.0  # the reference's own difference from the truth there, in fp32
    trials: int = 1  # in which it was compared
    says: str = ""  # why it fails, where no number does

    @property
    def ok(self) -> bool:
        """Recomputed whenever it is asked for: nothing that was stored says it."""
        return self.difference <= self.tolerance

    @property
    def why(self) -> str:
        """The reason of a failure, in words; empty if there is none."""
        if self.ok:
            return ""
        own = f", the reference itself by {self.own:.1e}" if self.own > TOLERANCES.get(self.name, 0.0) else ""
        return self.says or f"{self.at} differs by {self.difference:.1e}, {self.tolerance:.0e} allowed{own}"


class Certificate(Shown, BaseModel):
    """The gate's result for one condition; ``verdict`` is "same", "different" or "not checked" (with ``reason``)."""

    model_config = ConfigDict(frozen=True)

    condition: Condition  # as it was gated
    reference: Condition
    checks: list[Check] = []
    reason: str = ""
    failure: Failure | None = None  # of the condition's worker, or of the reference's
    failed: Whose | None = None  # whose it is
    file: str = ""  # in which it is kept, without folder and ending
    trials: int = 0  # that the condition made
    batch_size: int = 0  # the largest that was compared
    without_masks: str = ""  # why dropout at work was not compared number by number
    inputs: dict[str, str] = {}  # hashes of the inputs of both: data, order of the samples, initial weights
    training: int = 0  # steps of the longer comparison of training; 0: it was not made
    exercised: dict[str, bool] = {}  # cases that the data can contain, and whether they were compared
    digests: dict[str, str] = {}  # of each array that the condition computed, as ``0/gradient:conv1.weight``
    reference_digests: dict[str, str] = {}  # of the reference's arrays
    code: str = ""  # a hash of the code that computed and compared it
    commit: str = ""  # of benchlib
    versions: dict[str, str] = {}  # of the condition's framework, and of its parts
    reference_versions: dict[str, str] = {}
    machine: dict[str, Any] = {}  # its properties that the numbers depend on
    knobs: dict[str, str] = {}  # set in the condition's worker: as of a measurement, and those of the gate
    reference_knobs: dict[str, str] = {}
    # of a step, for a sample: as its framework counts them, as the reference's does, the least and the most declared
    multiply_adds: float | None = None
    reference_multiply_adds: float | None = None
    declared_multiply_adds: tuple[float, float] | None = None
    inherited: dict[str, str] = {}  # libraries and devices, see ``benchlib.env_vars``
    left_out: list[str] = []  # names of variables that the worker did not get and that could have mattered
    neutralised: dict[str, Any] = {}  # hyperparameters and environment variables that were set for the gate only
    parts: str = ""  # where the two part, and perhaps why: see ``benchlib.equivalence.parting``

    @property
    def verdict(self) -> str:
        if not self.checks:
            return NOT_CHECKED
        return SAME if all(check.ok for check in self.checks) else DIFFERENT

    def __str__(self) -> str:
        return ": ".join(filter(None, (str(self.condition), self.verdict, self.why)))

    @property
    def why(self) -> str:
        """Why the model is not shown to be the reference's, in a line; empty where it is."""
        reason = self.reason.replace(str(self.failure), self.failure.sentence) if self.failure else self.reason
        wrong = next((f"{one.name}: {one.why}" for one in self.checks if one.why), "")
        said = reason or "; ".join(filter(None, (wrong, wrong and self.parts)))
        return textwrap.shorten(said, WHY_CHARACTERS, placeholder=" ...")

    @property
    def same(self) -> bool:
        return self.verdict == SAME

    @property
    def remarks(self) -> list[str]:
        """Its counted work beside the reference's and the declared one, a sentence for each that is far from it."""
        if self.multiply_adds is None:
            return []
        its = self.reference_multiply_adds
        bounds = {"the reference's": its and (its, its), "the workload declares": its and self.declared_multiply_adds}
        return [
            f"A step takes {self.multiply_adds:.4g} multiply-adds for a sample, {who} {_span(least, most)}."
            for who, (least, most) in ((who, one) for who, one in bounds.items() if one)
            if not (1 - APART) * least <= self.multiply_adds <= (1 + APART) * most
        ]

    @property
    def less_work(self) -> str:
        """How much less than the reference's its counted work is; empty where it is not."""
        if not self.reference_multiply_adds or self.multiply_adds is None:
            return ""
        share = self.multiply_adds / self.reference_multiply_adds
        return f"{100 * share:.0f} % of the reference's multiply-adds" if share < 1 - APART else ""

    @property
    def refused(self) -> bool:
        """Did the condition's framework refuse it (see :attr:`Failure.is_refusal`)?"""
        return self.failed == "condition" and self.failure is not None and self.failure.is_refusal

    @property
    def crashed(self) -> bool:
        """Could it not be checked, though nothing was refused? The next run tries again."""
        return not self.checks and not self.refused

    @property
    def unrounded(self) -> bool:
        """Was mixed precision asked for, and nothing rounded: are its outputs the reference's to fp32's tolerance?"""
        outputs = max((check.worst for check in self.checks if check.name == "outputs"), default=math.inf)
        return self.condition.precision not in ("fp32", "fp64") and outputs <= TOLERANCES["outputs"]

    @property
    def unexercised(self) -> list[str]:
        """The cases that the data can contain and that were compared nowhere, or not completely."""
        return [name for name, met in self.exercised.items() if not met]

    def table(self) -> pd.DataFrame:
        """A row per check."""
        columns = ["name", "difference", "worst", "at", "tolerance", "own", "ok", "trials"]
        rows = [{**check.model_dump(), "ok": check.ok} for check in self.checks]
        return pd.DataFrame(rows, columns=columns)

    def unlike(self, other: Certificate) -> list[str]:
        """The arrays that another certificate of the same condition does not have alike to the last bit, as
        ``0/outputs:0`` and ``reference 0/outputs:0``.
        """
        pairs = ((one.digests, one.reference_digests) for one in (self, other))
        ours, its = ({**own, **{f"reference {name}": one for name, one in theirs.items()}} for own, theirs in pairs)
        return sorted(name for name in ours.keys() | its.keys() if ours.get(name) != its.get(name))


def _span(*ends: float) -> str:
    return " to ".join(dict.fromkeys(f"{one:.4g}" for one in ends))


def coverage_gaps(certificates: Iterable[Certificate]) -> dict[str, list[str]]:
    """The cases that at least one certificate of a workload has no sample of."""
    unmet: dict[str, dict[str, None]] = {}
    for one in certificates:
        for case in one.unexercised:
            unmet.setdefault(one.condition.workload, {})[case] = None
    return {workload: list(some) for workload, some in unmet.items()}
