"""The certificate: the gate's result for one condition, which can be compared with another."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict

from benchlib.condition import Condition
from benchlib.equivalence.tolerances import LEFT, TOLERANCES, explains
from benchlib.errors import Failure
from benchlib.shown import Shown
from benchlib.stats.validity import DIFFERENT, NOT_CHECKED, SAME

WHY_CHARACTERS = 300  # in a line; all stands in the certificate's file
TRUST = (
    "The gate catches accidents and wishful thinking, shows cheating to a reader of the files, "
    "and cannot hold against somebody who means to deceive."
)

Whose = Literal["condition", "reference"]


class Forgiven(BaseModel):
    """A difference beyond the tolerance that rounding explains. ``at`` is the array, ``own`` the reference's difference
    from itself there in the same trial, and ``by`` the cause of that.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    at: str
    difference: float
    own: float
    by: str = ""
    left: float = math.inf  # times that its gradient is larger than rounding's effect on it, see ``zeros``

    @property
    def is_explained(self) -> bool:
        return explains(self.own, self.difference, self.left)


class Check(BaseModel):
    """One quantity compared over all trials."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    difference: float  # the largest that was not forgiven, ``at``; inf: missing, misshapen, or not finite
    worst: float  # of all
    at: str
    tolerance: float
    trials: int = 1  # in which it was compared
    forgiven: tuple[Forgiven, ...] = ()

    @property
    def ok(self) -> bool:
        """Recomputed whenever it is asked for: nothing that was stored says it."""
        return self.difference <= self.tolerance and all(one.is_explained for one in self.forgiven) and not self.unseen

    @property
    def unseen(self) -> list[str]:
        """The arrays never seen to agree: forgiven in all trials, or in all but the first, which has fewer steps."""
        # An array that counts as 0 in both is seen to agree; a name without "/" is of no trial.
        places = [one.at.partition("/") for one in self.forgiven if "/" in one.at and one.left > LEFT]
        times = Counter(name for _, _, name in places)
        later = Counter(name for trial, _, name in places if trial != "0")
        return [name for name, count in times.items() if self.trials in (count, later[name] + 1)]

    @property
    def why(self) -> str:
        """The reason of a failure, in words; empty if there is none."""
        if self.difference > self.tolerance:
            return f"{self.at} differs by {self.difference:.1e}, {self.tolerance:.0e} allowed"
        if self.unseen:
            return f"{self.unseen[0]} was only explained by rounding, and never seen to agree"
        return "" if self.ok else f"{self.forgiven[0].at} is not explained by rounding"


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
    inherited: dict[str, str] = {}  # libraries and devices, see ``benchlib.env_vars``
    left_out: list[str] = []  # names of variables that the worker did not get and that could have mattered
    neutralised: dict[str, Any] = {}  # hyperparameters and environment variables that were set for the gate only

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
        wrong = (f"{one.name}: {one.why}" for one in self.checks if one.why)
        return textwrap.shorten(reason or next(wrong, ""), WHY_CHARACTERS, placeholder=" ...")

    @property
    def same(self) -> bool:
        return self.verdict == SAME

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
        return self.condition.precision != "fp32" and outputs <= TOLERANCES["outputs"]

    @property
    def unexercised(self) -> list[str]:
        """The cases that the data can contain and that were compared nowhere, or not completely."""
        return [name for name, met in self.exercised.items() if not met]

    def table(self) -> pd.DataFrame:
        """A row per check."""
        columns = ["name", "difference", "worst", "at", "tolerance", "ok", "trials", "forgiven"]
        rows = [{**check.model_dump(), "ok": check.ok, "forgiven": len(check.forgiven)} for check in self.checks]
        return pd.DataFrame(rows, columns=columns)

    def unlike(self, other: Certificate) -> list[str]:
        """The arrays that another certificate of the same condition does not have alike to the last bit, as
        ``0/outputs:0`` and ``reference 0/outputs:0``.
        """
        pairs = ((one.digests, one.reference_digests) for one in (self, other))
        ours, its = ({**own, **{f"reference {name}": one for name, one in theirs.items()}} for own, theirs in pairs)
        return sorted(name for name in ours.keys() | its.keys() if ours.get(name) != its.get(name))


def coverage_gaps(certificates: Iterable[Certificate]) -> dict[str, list[str]]:
    """The cases that at least one certificate of a workload has no sample of."""
    unmet: dict[str, dict[str, None]] = {}
    for one in certificates:
        for case in one.unexercised:
            unmet.setdefault(one.condition.workload, {})[case] = None
    return {workload: list(some) for workload, some in unmet.items()}
