"""Are two frameworks running the same model? The gate that stands before every ratio, and the certificate that it
gives.

From the same initial weights and batches, each condition's outputs, gradients, first losses, state after some steps
(running statistics included) and evaluation outputs are compared with those of the reference, PyTorch eager on the
CPU. What cannot agree, such as dropout's masks, is switched off for this (``Workload.gate``), and the certificate
says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from benchlib import workloads
from benchlib.condition import Condition

SAME, DIFFERENT, NOT_CHECKED = "same", "different", "not checked"

TOLERANCES = {"outputs": 1e-5, "gradients": 1e-4, "losses": 1e-5, "state": 1e-4, "evaluation outputs": 1e-4}
"""Largest relative difference allowed on the CPU, in fp32. Between frameworks with equal models it is about 1e-6."""

ACCELERATOR_TOLERANCES = {
    "outputs": 1e-2,
    "gradients": 3e-2,
    "losses": 1e-2,
    "state": 3e-2,
    "evaluation outputs": 3e-2,
}
"""The same on an accelerator, where fp32 convolutions as installed may use TF32, with 10 bits after the point (NVIDIA's
Ampere and later). Set from that precision, not from a run on a GPU: none has been at hand.
"""

NEGLIGIBLE = 1e-3
"""Arrays are compared relative to their own largest value, or to this share of the largest in their group if that is
more: the gradient of a bias that the next layer cancels is rounding noise, and has no relative precision.
"""


class Check(BaseModel):
    """One quantity compared: its largest relative difference, where that is, and whether it is within the tolerance."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    difference: float  # inf: missing, misshapen, or not finite
    at: str
    tolerance: float
    ok: bool


class Certificate(BaseModel):
    """What the gate found for one condition; ``verdict`` is "same", "different" or "not checked" (with ``reason``)."""

    model_config = ConfigDict(frozen=True)

    condition: Condition  # as it was gated
    reference: Condition
    checks: list[Check] = []
    reason: str = ""
    neutralised: dict[str, Any] = {}

    @property
    def verdict(self) -> str:
        if not self.checks:
            return NOT_CHECKED
        return SAME if all(check.ok for check in self.checks) else DIFFERENT

    @property
    def same(self) -> bool:
        return self.verdict == SAME

    def table(self) -> pd.DataFrame:
        """A row per check."""
        return pd.DataFrame([check.model_dump() for check in self.checks], columns=list(Check.model_fields))

    def _repr_html_(self) -> str:
        head = f"<p>{self.condition} against {self.reference}: <b>{self.verdict}</b> {self.reason}</p>"
        return head + self.table().to_html(index=False, float_format="{:.1e}".format)


def certify(
    condition: Condition,
    reference: Condition,
    found: Mapping[str, np.ndarray] | str,
    expected: Mapping[str, np.ndarray] | str,
) -> Certificate:
    """Compare what a gated condition computed with what the reference did; a text in place of the arrays is a
    worker's failure.
    """
    neutralised = dict(workloads.load(condition.workload).gate)
    told = {"condition": condition, "reference": reference, "neutralised": neutralised}
    for who, result in (("the condition", found), ("the reference", expected)):
        if isinstance(result, str):
            return Certificate(**told, reason=f"{who} failed: {result}")
    return Certificate(**told, checks=compare(found, expected, tolerances(condition.device)))


def tolerances(device: str) -> Mapping[str, float]:
    """The largest relative differences allowed on a device from the reference on the CPU, by kind of quantity."""
    return TOLERANCES if device == "cpu" else ACCELERATOR_TOLERANCES


def compare(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> list[Check]:
    """The checks of two sets of arrays by name (``gradient:conv1.weight``, ``losses`` ...), one per kind."""
    groups: dict[str, list[str]] = {}
    for name in sorted(found.keys() | expected.keys()):
        groups.setdefault(_group(name), []).append(name)
    return [_check(group, groups[group], found, expected, allowed[group]) for group in allowed if group in groups]


def _group(name: str) -> str:
    return {"gradient": "gradients"}.get(name.split(":")[0], name.split(":")[0])


def _check(
    group: str,
    names: list[str],
    found: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    tolerance: float,
) -> Check:
    floor = NEGLIGIBLE * max((float(np.abs(expected[name]).max()) for name in names if name in expected), default=0.0)
    differences = {name: _difference(found.get(name), expected.get(name), floor) for name in names}
    at = max(differences, key=differences.get)
    return Check(
        name=group,
        difference=differences[at],
        at=at,
        tolerance=tolerance,
        ok=differences[at] <= tolerance,
    )


def _difference(found: np.ndarray | None, expected: np.ndarray | None, floor: float) -> float:
    """Largest difference relative to the largest expected value; infinite where an array is missing, misshapen or not
    finite.
    """
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    scale = max(float(np.abs(expected).max()), floor, np.finfo(np.float32).tiny)
    difference = float(np.abs(np.asarray(found, float) - np.asarray(expected, float)).max()) / scale
    return difference if np.isfinite(difference) else np.inf
