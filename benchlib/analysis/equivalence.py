"""Are two frameworks running the same model? The gate that stands before every ratio, and the certificate that it
gives.

From the same initial weights and batches, each condition's outputs, gradients, first losses, state after some steps
(running statistics included) and evaluation outputs are compared with those of the reference, PyTorch eager on the
CPU. What cannot agree, such as dropout's masks, is switched off for this (``Workload.gate``), and the certificate
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from benchlib import workloads
from benchlib.analysis.failure import Failure
from benchlib.condition import Condition
from benchlib.shown import Shown

SAME, DIFFERENT, NOT_CHECKED = "same", "different", "not checked"

TOLERANCES = {
    "outputs": 1e-5,
    "gradients": 1e-4,
    "losses": 1e-5,
    "state": 1e-4,
    "evaluation outputs": 1e-4,
    "predictions": 0.0,
}
"""Largest relative difference allowed on the CPU, in fp32. Between frameworks with equal models it is about 1e-6."""

CUDA_TOLERANCES = {name: 10 * allowed for name, allowed in TOLERANCES.items()}
"""The same on an NVIDIA GPU, whose libraries sum in other orders and may use Winograd's convolution. TF32 is off in the
gate (``benchlib.knobs.GATE``). Not set from a run on a GPU: none has been at hand.
"""

HALF_TOLERANCES = {
    "outputs": 1e-2,
    "gradients": 3e-2,
    "losses": 1e-2,
    "state": 3e-2,
    "evaluation outputs": 3e-2,
    "predictions": 0.0,
}
"""The same on an NPU, which may round fp32 products to 10 bits after the point (HF32), and where nothing switches that
off in the gate yet. Never run on Ascend.
"""

MIXED_TOLERANCES = {
    "bf16": {
        "outputs": 0.06,
        "gradient size": 0.5,
        "update size": 0.25,
        "losses": 0.06,
        "state": 0.5,
        "evaluation outputs": 0.25,
    },
    "fp16": {"outputs": 0.008, "gradient size": 0.5, "update size": 0.25, "losses": 0.06},
}
"""The largest relative differences that mixed precision may have from fp32: of outputs about 16 roundings. Of gradients
each array's Euclidean norm is compared, and of the steps the length of the way that all trained weights together go:
rounding as coarse as that meets kinks (see :class:`Check`) in every batch and turns single gradients another way, those
of ``cnn`` by 0.1 of the largest, those of ``googlenet`` altogether. This is there to find a wrong cast, a loss that is
scaled twice, gradients that nobody has unscaled or a step that is left out. That the model is the same is shown in
fp32: mixed precision is certified only where the same framework, mode, device and lane are in fp32, too. Which words
are decoded is not asked, where rounding decides near ties.
"""

NEGLIGIBLE = 1e-3
"""Arrays are compared relative to their own largest value, or to this share of the largest in their group if that is
more: the gradient of a bias that the next layer cancels is rounding noise, and has no relative precision.
"""


class Check(BaseModel):
    """One quantity compared over the trials: its largest relative difference, and whether it is within the tolerance.

    ``difference`` (``at`` is where) is that of the trial which agrees best, ``worst`` that of the one which agrees
    least.
    Outputs must agree in every trial. The others need one: networks have kinks (the two largest values of a pooling
    window, or a ReLU's input and 0, may lie within rounding of each other), where rounding decides which way a gradient
    goes: PyTorch's gradients of ``cnn`` on CIFAR-10 part from themselves there by 0.1 to 1 % when oneDNN is switched
    off or the mode is graph. Such kinks are met in some trials; another model differs in all of them.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    difference: float  # inf: missing, misshapen, or not finite
    worst: float
    at: str
    tolerance: float
    ok: bool


class Certificate(Shown, BaseModel):
    """What the gate found for one condition; ``verdict`` is "same", "different" or "not checked" (with ``reason``)."""

    model_config = ConfigDict(frozen=True)

    condition: Condition  # as it was gated
    reference: Condition
    checks: list[Check] = []
    reason: str = ""
    failure: Failure | None = None  # of the condition's worker, or of the reference's
    failed: Literal["condition", "reference"] | None = None  # whose it is
    attempts: int = 1  # to make it
    run: str = ""  # in which the last of them was
    trials: int = 0  # that the condition made
    inputs: dict[str, str] = {}  # hashes of what both were given: data, the order of the first epoch, initial weights
    knobs: dict[str, str] = {}  # set in the condition's worker: as of a measurement, and those of the gate
    inherited: dict[str, str] = {}  # libraries and devices, see ``benchlib.variables``
    left_out: list[str] = []  # names of variables that the worker did not get and that could have mattered
    neutralised: dict[str, Any] = {}  # hyperparameters and environment variables that were set for the gate only

    @property
    def verdict(self) -> str:
        if not self.checks:
            return NOT_CHECKED
        return SAME if all(check.ok for check in self.checks) else DIFFERENT

    @property
    def same(self) -> bool:
        return self.verdict == SAME

    @property
    def refused(self) -> bool:
        """Did the condition's framework refuse it (see :attr:`Failure.is_refusal`)?"""
        return self.failed == "condition" and self.failure is not None and self.failure.is_refusal

    @property
    def unrounded(self) -> bool:
        """Was mixed precision asked for, and nothing rounded: are its outputs the reference's to what fp32 keeps?"""
        outputs = [check.worst for check in self.checks if check.name == "outputs"]
        return self.condition.precision != "fp32" and bool(outputs) and max(outputs) <= TOLERANCES["outputs"]

    def table(self) -> pd.DataFrame:
        """A row per check."""
        return pd.DataFrame([check.model_dump() for check in self.checks], columns=list(Check.model_fields))


def certify(
    condition: Condition,
    reference: Condition,
    found: Mapping[str, np.ndarray] | Failure,
    expected: Mapping[str, np.ndarray] | Failure,
    gate_environment: Mapping[str, str],
    inputs: Mapping[str, str],
) -> Certificate:
    """Compare what a gated condition computed with what the reference did, or say which of the two failed.
    ``gate_environment`` is what was set for the gate only, ``inputs`` the hashes of what both were given.
    """
    neutralised = {**workloads.load(condition.workload).gate.hyperparameters, **gate_environment}
    told = {"condition": condition, "reference": reference, "neutralised": neutralised, "inputs": dict(inputs)}
    for who, result in (("condition", found), ("reference", expected)):
        if isinstance(result, Failure):
            return Certificate(**told, reason=f"the {who} failed: {result}", failure=result, failed=who)
    trials = len({name.partition("/")[0] for name in found})
    return Certificate(**told, trials=trials, checks=compare(found, expected, tolerances(condition)))


def tolerances(condition: Condition) -> Mapping[str, float]:
    """The largest relative differences allowed from the reference in fp32 on the CPU, by kind of quantity; one that is
    not named is not compared.
    """
    if condition.precision != "fp32":
        return MIXED_TOLERANCES[condition.precision.partition("-")[0]]
    return {"cpu": TOLERANCES, "cuda": CUDA_TOLERANCES}.get(condition.device, HALF_TOLERANCES)


def compare(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> list[Check]:
    """The checks of two sets of arrays by name (``0/gradient:conv1.weight``, ``1/losses`` ...), one per quantity, over
    the trials that were ``found``: more may be expected.
    """
    trials: dict[str, dict[str, list[str]]] = {}
    made = {name.partition("/")[0] for name in found}
    for name in sorted(found.keys() | expected.keys()):
        trial, _, quantity = name.partition("/")
        if trial not in made:
            continue
        quantity = {"gradient": "gradients"}.get(quantity.split(":")[0], quantity.split(":")[0])
        trials.setdefault(quantity, {}).setdefault(trial, []).append(name)
    return [_check(name, trials[name].values(), found, expected, allowed[name]) for name in allowed if name in trials]


def _check(
    quantity: str,
    trials: Iterable[list[str]],
    found: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    tolerance: float,
) -> Check:
    by_trial = sorted(_of_trial(names, found, expected) for names in trials)
    (best, at), (worst, at_worst) = by_trial[0], by_trial[-1]
    if quantity == "outputs" or not np.isfinite(worst):
        best, at = worst, at_worst
    return Check(name=quantity, difference=best, worst=worst, at=at, tolerance=tolerance, ok=bool(best <= tolerance))


def _of_trial(
    names: list[str], found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> tuple[float, str]:
    """The largest relative difference of some arrays, and the array's name."""
    floor = NEGLIGIBLE * max((float(np.abs(expected[name]).max()) for name in names if name in expected), default=0.0)
    return max((_difference(found.get(name), expected.get(name), floor), name) for name in names)


def _difference(found: np.ndarray | None, expected: np.ndarray | None, floor: float) -> float:
    """Largest difference relative to the largest expected value; infinite where an array is missing, misshapen or not
    finite.
    """
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    scale = max(float(np.abs(expected).max()), floor, np.finfo(np.float32).tiny)
    difference = float(np.abs(np.asarray(found, float) - np.asarray(expected, float)).max()) / scale
    return difference if np.isfinite(difference) else np.inf
