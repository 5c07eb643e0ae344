"""What of some conditions can be run here, asked of the machine and of the gate; and the rows of what cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from benchlib.condition import Condition
from benchlib.equivalence.certificate import NOT_CHECKED, Certificate
from benchlib.lab import Lab
from benchlib.runner import availability
from benchlib.stats import frame as tidy
from benchlib.stats.frame import FAILED, IMPOSSIBLE, NOT_COMPARED
from benchlib.stats.measured import failures

LONGEST_REASON = 240  # characters


def missing(condition: Condition) -> str | None:
    """Why the machine cannot run a condition; None: it can."""
    return availability.available(condition.framework, condition.device, condition.environment)


@dataclass(frozen=True)
class Tried:
    """Of conditions, those that cannot be run here, and those that failed when they were tried, which says nothing of
    what is possible.
    """

    first: Condition  # of them
    whys: dict[str, tuple[str, str]]  # by condition key: IMPOSSIBLE or FAILED, and the reason
    failed: list[Certificate]

    @classmethod
    def of(cls, group: list[Condition], lab: Lab) -> Self:
        """Try them in the gate."""
        whys = {one.key: (IMPOSSIBLE, reason) for one in group if (reason := missing(one))}
        certificates = lab.certify([one for one in group if one.key not in whys])
        # What all others are checked against must run there: that it does not is no answer.
        sure = group[0].device == "cpu" and group[0].key in certificates
        certain = certificates[group[0].key].condition if sure else None
        failed = []
        for key, certificate in certificates.items():
            if certificate.verdict != NOT_CHECKED:
                continue
            refused = certificate.refused and certificate.condition != certain
            whys[key] = (IMPOSSIBLE if refused else FAILED, _reason(certificate))
            failed += [] if refused else [certificate]
        return cls(group[0], whys, failed)

    def absent(self, condition: Condition, baseline: Condition) -> dict[str, Any]:
        """The row of a ratio that was not measured: it cannot be, it failed, or there is no baseline."""
        if condition.key in self.whys:
            why, reason = self.whys[condition.key]
        else:
            _, of_first = self.whys[self.first.key]
            why, reason = NOT_COMPARED, f"no baseline can be run here: {self.first.subject}: {of_first}"
        return tidy.absent("throughput_ratio", condition, baseline, why=why, reason=reason)


def failures_of(certificates: Iterable[Certificate], lab: Lab) -> list[dict[str, Any]]:
    """What failed in the gate, rows as of ``comparison.failures``, with the files of the certificates."""
    rows = []
    for one in {one.condition: one for one in certificates}.values():
        path = lab.certificate_path(one.condition).relative_to(lab.folder).as_posix()
        rows += failures([], [one]).assign(file=path).to_dict("records")
    return rows


def _reason(certificate: Certificate) -> str:
    """Why a model could not be checked, in a line without rules and empty lines."""
    whose = "" if certificate.failed == "condition" else f"the {certificate.failed} failed: "
    lines = [line.strip(" -") for line in f"{whose}{certificate.failure.sentence}".splitlines()]
    line = " ".join(line for line in lines if line)
    return line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON] + " ..."
