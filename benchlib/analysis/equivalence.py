"""Are two frameworks running the same model? The gate that stands before every ratio, and the certificate that it
gives.

From the same weights and batches, each condition's outputs, gradients, losses, changes of the weights, state that is
not trained and evaluation outputs are compared with those of the reference, PyTorch eager on the CPU; then what its
optimizer does to given weights with given gradients, and what dropout does, by itself. What cannot agree, such as
dropout's masks, is switched off for the first part (``Workload.gate``), and the certificate says so.

Every trial counts. Networks have kinks (the two largest values of a pooling window, or a ReLU's input and 0, may lie
within rounding of each other), where rounding decides which way a gradient goes: PyTorch's gradients of ``cnn`` on
CIFAR-10 part from themselves there by 0.1 to 1 % when oneDNN is switched off or the mode is graph. So a difference
that is larger than the tolerance is forgiven where, in the same trial, the same array of the reference differs from
itself by as much once its weights were moved in the last digit and the batch turned round, or in its other lane, whose
convolutions sum in another order (:class:`Forgiven`), by so little that its outputs stay within what is allowed, unless
it is so in every trial: then nobody has seen the two agree. Outputs are never forgiven.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from benchlib import workloads
from benchlib.analysis.failure import Failure
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.shown import Shown

SAME, DIFFERENT, NOT_CHECKED = "same", "different", "not checked"

AGAIN, PROBE, DROPOUT = "again", "probe", "dropout"
"""What stands for the number of a trial in the names of arrays: the first trial made again, after all others; what is
asked of the optimizer and of dropout by themselves.
"""

TOLERANCES = {
    "outputs": 1e-5,
    "gradients": 1e-4,
    "losses": 1e-5,
    "updates": 1e-4,
    "state": 1e-4,
    "evaluation outputs": 1e-4,
    "predictions": 0.0,
    "repetition": 1e-5,
    "optimizer": 1e-3,
}
"""Largest relative difference allowed on the CPU, in fp32. Between frameworks with equal models it is about 1e-6.
``updates`` are what steps add to the trained weights, ``state`` what they add to the rest, such as running statistics;
``optimizer`` is the first of these of given gradients (see :func:`_of_probe`), ``repetition`` the first trial against
itself.
"""

CUDA_TOLERANCES = {name: 10 * allowed for name, allowed in TOLERANCES.items()}
"""The same on an NVIDIA GPU, whose libraries sum in other orders and may use Winograd's convolution. TF32 is off in the
gate (``benchlib.knobs.GATE``). Not set from a run on a GPU: none has been at hand.
"""

HALF_TOLERANCES = {
    "outputs": 1e-2,
    "gradients": 3e-2,
    "losses": 1e-2,
    "updates": 3e-2,
    "state": 3e-2,
    "evaluation outputs": 3e-2,
    "predictions": 0.0,
    "repetition": 1e-2,
    "optimizer": 1e-3,
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
rounding as coarse as that meets kinks in every batch and turns single gradients another way, those
of ``cnn`` by 0.1 of the largest, those of ``googlenet`` altogether. This is there to find a wrong cast, a loss that is
scaled twice, gradients that nobody has unscaled or a step that is left out. That the model is the same is shown in
fp32: mixed precision is certified only where the same framework, mode, device and lane are in fp32, too. Which words
are decoded is not asked, where rounding decides near ties.
"""

DROPOUT_TOLERANCES = {
    "dropout places": 0.0,
    "dropout sizes": 0.0,
    "dropout share": 5.0,
    "dropout scale": 1e-4,
    "dropout masks": 6.0,
    "dropout repeats": 0.0,
    "evaluation repeats": 0.0,
}
"""Of dropout at work: how many places are more or fewer than the workload declares; how many numbers more or fewer they
are given than the reference's; by how many standard deviations the share of zeros is off; by how much, relatively, what
is left is not 1 / (1 - p) of what it was; by how many standard deviations numbers beside each other are dropped
together more or less often than by chance; how often the same are dropped in two passes, or in two places; by how much
two evaluations of the same batch differ.
"""

TRAINING = {"cpu": 1e-4, "cuda": 1e-3}
"""By how much, relatively, a loss may differ in a longer training, where rounding adds up over its steps: 50 steps of
``cnn`` and ``lstm`` in MindSpore stay within 6e-7 of PyTorch's. On other devices 3e-2.
"""

NEGLIGIBLE = 1e-3
"""Arrays are compared relative to their own largest value, or to this share of the largest in their group if that is
more: the gradient of a bias that the next layer cancels is rounding noise, and has no relative precision.
"""

ROUNDING = 2.0**-22
"""Of a weight, by so much of its size two frameworks may part in each step: each rounds twice, its decay and its
update, by half a unit in the last of 24 digits. What a step adds cannot be known better.
"""

OWN = 2.0
"""A difference is forgiven that is at most so many times that of the reference from itself: both are the outcome of
chance, which way a few numbers were rounded.
"""

FORGIVABLE = frozenset(TOLERANCES) - {"outputs", "optimizer", "repetition"}


class Own(NamedTuple):
    """By how much an array of the reference differs from itself, and what was done for that: weights moved by so many
    units in the last digit, or another lane.
    """

    difference: float
    by: str


NONE = Own(0.0, "")

Whose = Literal["condition", "reference"]

Differences = dict[str, dict[str, float]]
"""By quantity and array."""


class Forgiven(BaseModel):
    """A difference beyond the tolerance that rounding explains: the array, and by how much the reference's differs from
    itself there, in the same trial, and by what.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    at: str
    difference: float
    own: float
    by: str = ""

    @property
    def explained(self) -> bool:
        return self.difference <= OWN * self.own


class Check(BaseModel):
    """One quantity compared over all trials: ``difference`` is the largest that was not forgiven (``at`` is where),
    ``worst`` the largest of all.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    difference: float  # inf: missing, misshapen, or not finite
    worst: float
    at: str
    tolerance: float
    trials: int = 1  # in which it was compared
    forgiven: tuple[Forgiven, ...] = ()

    @property
    def ok(self) -> bool:
        """Recomputed whenever it is asked for: nothing that was stored says it."""
        return self.difference <= self.tolerance and all(one.explained for one in self.forgiven) and not self.unseen

    @property
    def unseen(self) -> list[str]:
        """The arrays that were forgiven in every trial: nobody has seen them agree."""
        times = Counter(one.at.partition("/")[2] for one in self.forgiven)
        return [name for name, count in times.items() if count >= self.trials]


class Certificate(Shown, BaseModel):
    """What the gate found for one condition; ``verdict`` is "same", "different" or "not checked" (with ``reason``)."""

    model_config = ConfigDict(frozen=True)

    condition: Condition  # as it was gated
    reference: Condition
    checks: list[Check] = []
    reason: str = ""
    failure: Failure | None = None  # of the condition's worker, or of the reference's
    failed: Whose | None = None  # whose it is
    file: str = ""  # in which it is kept, without folder and ending
    attempts: int = 1  # to make it
    run: str = ""  # in which the last of them was
    trials: int = 0  # that the condition made
    inputs: dict[str, str] = {}  # hashes of what both were given: data, order of the samples, initial weights
    training: int = 0  # steps of the longer comparison of training; 0: it was not made
    exercised: dict[str, bool] = {}  # what the data can contain, and whether it was among what was compared
    digests: dict[str, str] = {}  # of what the condition computed, by trial and quantity
    reference_digests: dict[str, str] = {}  # of what it was compared with
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

    @property
    def unexercised(self) -> list[str]:
        """What the data can contain, and was in none of the samples that were compared."""
        return [name for name, met in self.exercised.items() if not met]

    def table(self) -> pd.DataFrame:
        """A row per check."""
        columns = ["name", "difference", "worst", "at", "tolerance", "ok", "trials", "forgiven"]
        rows = [{**check.model_dump(), "ok": check.ok, "forgiven": len(check.forgiven)} for check in self.checks]
        return pd.DataFrame(rows, columns=columns)

    def sealed(self) -> str:
        """As JSON, with a hash of all the rest: see :func:`unsealed`."""
        document = json.loads(self.model_dump_json())
        return json.dumps({**document, "sha256": _seal(document)}, indent=2)


def unsealed(text: str, where: Path, condition: Condition | None = None) -> Certificate:
    """The certificate that was :meth:`Certificate.sealed`; one that was cut or changed since, or is another's than that
    of ``condition``, is a BenchlibError that names the file ``where`` it is.
    """
    try:
        document = json.loads(text)
        seal = document.pop("sha256")
        certificate = Certificate.model_validate(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BenchlibError(
            f"{where}: no whole certificate: it was cut, or made by an older benchlib; {_REMEDY}"
        ) from None
    if seal != _seal(document):
        raise BenchlibError(
            f"{where}: its content does not match its hash, it was changed after it was made; {_REMEDY}"
        )
    if condition is not None and (certificate.condition, certificate.file) != (condition, where.stem):
        raise BenchlibError(f"{where}: it is the certificate of {certificate.condition}, copied here; {_REMEDY}")
    return certificate


_REMEDY = "delete it and run again: it is made anew"


def _seal(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def certify(
    condition: Condition,
    reference: Condition,
    found: Mapping[str, np.ndarray] | Failure,
    expected: Mapping[str, np.ndarray] | Failure,
    gate_environment: Mapping[str, str],
    inputs: Mapping[str, str],
    own: Mapping[str, Own] | None = None,
    exercised: Mapping[str, bool] | None = None,
) -> Certificate:
    """Compare what a gated condition computed with what the reference did, or say which of the two failed.
    ``gate_environment`` is what was set for the gate only, ``inputs`` the hashes of what both were given, ``own`` by
    how much arrays of the reference differ from themselves (see :func:`own_differences`).
    """
    neutralised = {**workloads.load(condition.workload).gate.hyperparameters, **gate_environment}
    told = {"condition": condition, "reference": reference, "neutralised": neutralised, "inputs": dict(inputs)}
    for who, result in (("condition", found), ("reference", expected)):
        if isinstance(result, Failure):
            return Certificate(**told, reason=f"the {who} failed: {result}", failure=result, failed=who)
    allowed = tolerances(condition)
    checks = compare(differences(found, expected, allowed), allowed, own or {})
    return Certificate(
        **told,
        trials=len(_trials(found)),
        checks=[*checks, *_of_dropout(condition, found, expected)],
        exercised=dict(exercised or {}),
        digests=digests(found),
        reference_digests=digests(expected),
    )


def without_training(certificate: Certificate, failure: Failure, failed: Whose) -> Certificate:
    """What the certificate comes to where a longer training was asked for and ``failed`` could not be trained."""
    reason = f"the longer training of the {failed} failed: {failure}"
    return certificate.model_copy(update={"reason": reason, "failure": failure, "failed": failed, "checks": []})


def with_training(certificate: Certificate, losses: np.ndarray) -> Certificate:
    """The certificate with what a longer training showed: ``losses`` (2, steps) of the condition and its reference."""
    apart = np.abs(losses[0] - losses[1]) / np.maximum(np.abs(losses[1]), np.finfo(np.float32).tiny)
    differences = {f"step {step}": float(one) if np.isfinite(one) else np.inf for step, one in enumerate(apart, 1)}
    tolerance = TRAINING.get(certificate.condition.device, 3e-2)
    shorter = [check for check in certificate.checks if check.name != "training"]
    checks = [*shorter, _check("training", differences, tolerance, {})]
    return certificate.model_copy(update={"checks": checks, "training": losses.shape[1]})


def tolerances(condition: Condition) -> Mapping[str, float]:
    """The largest relative differences allowed from the reference in fp32 on the CPU, by kind of quantity; one that is
    not named is not compared.
    """
    if condition.precision != "fp32":
        return MIXED_TOLERANCES[condition.precision.partition("-")[0]]
    return {"cpu": TOLERANCES, "cuda": CUDA_TOLERANCES}.get(condition.device, HALF_TOLERANCES)


def digests(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """A hash for each trial and quantity of arrays by name, of names, shapes and bytes."""
    wholes: dict[str, Any] = {}
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        whole = wholes.setdefault(name.partition(":")[0], hashlib.sha256())
        whole.update(f"{name}{array.dtype}{array.shape}".encode())
        whole.update(array.data if array.ndim else array.tobytes())
    return {name: whole.hexdigest()[:16] for name, whole in wholes.items()}


def differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> Differences:
    """By quantity, the largest relative difference of each of two sets of arrays by name (``0/gradient:conv1.weight``,
    ``1/losses`` ...), over the trials that were ``found``: more may be expected.
    """
    made = {_trial(name) for name in found}
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(found.keys() | expected.keys()):
        if _trial(name) in made and _trial(name) != AGAIN and _quantity(name) in allowed:
            groups.setdefault((_quantity(name), _trial(name)), []).append(name)
    by_quantity: dict[str, dict[str, float]] = {quantity: {} for quantity in allowed}
    for (quantity, trial), names in groups.items():
        floors = _floors(quantity, trial, names, expected, allowed[quantity])
        for name in names:
            by_quantity[quantity][name] = _difference(found.get(name), expected.get(name), floors[name])
    if AGAIN in made and "repetition" in allowed:
        by_quantity["repetition"] = _of_repetition(found, allowed)
    if PROBE in made and "optimizer" in allowed:
        by_quantity["optimizer"] = _of_probe(found, expected, allowed["optimizer"])
    return by_quantity


def compare(differences: Differences, allowed: Mapping[str, float], own: Mapping[str, Own]) -> list[Check]:
    """The checks of what :func:`differences` gives, one per quantity."""
    return [_check(name, differences[name], allowed[name], own) for name in allowed if differences.get(name)]


def beyond(differences: Differences, allowed: Mapping[str, float], own: Mapping[str, Own]) -> set[int]:
    """The trials in which something differs by more than is allowed, and that the reference has to make again, from
    weights that are rounded the other way, to know whether rounding explains it.
    """
    return {
        int(_trial(name))
        for quantity, by_array in differences.items()
        if quantity in FORGIVABLE
        for name, difference in by_array.items()
        if _trial(name) != PROBE
        and allowed[quantity] < difference < np.inf
        and difference > OWN * own.get(name, NONE).difference
    }


def own_differences(
    moved: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float], by: str
) -> dict[str, Own]:
    """By how much each array of the reference's trials differs from what it is once ``moved``, and ``by`` what."""
    trials = {_trial(name) for name in moved}
    of_trials = {name: array for name, array in expected.items() if _trial(name) in trials}
    of_quantities = differences(moved, of_trials, allowed).values()
    return {name: Own(one, by) for group in of_quantities for name, one in group.items()}


def _trial(name: str) -> str:
    return name.partition("/")[0]


def _trials(arrays: Iterable[str]) -> set[str]:
    return {_trial(name) for name in arrays} - {AGAIN, PROBE, DROPOUT}


def _quantity(name: str) -> str:
    plain = name.partition("/")[2].partition(":")[0]
    return {"gradient": "gradients", "update": "updates"}.get(plain, plain)


def _of_repetition(found: Mapping[str, np.ndarray], allowed: Mapping[str, float]) -> dict[str, float]:
    """By how much the first trial, made again, differs from itself."""
    again = {name.replace(f"{AGAIN}/", "0/", 1): one for name, one in found.items() if _trial(name) == AGAIN}
    first = {name: found[name] for name in again if name in found}
    quantities = {name: allowed["repetition"] for name in allowed if name != "repetition"}
    groups = differences(again, first, quantities).values()
    return {name.replace("0/", f"{AGAIN}/", 1): one for group in groups for name, one in group.items()}


def _floors(
    quantity: str, trial: str, names: Collection[str], expected: Mapping[str, np.ndarray], tolerance: float
) -> dict[str, float]:
    """What the differences of some arrays are relative to, at least."""
    most = max((float(np.abs(expected[name]).max()) for name in names if name in expected), default=0.0)
    floors = dict.fromkeys(names, NEGLIGIBLE * most)
    if quantity not in {"updates", "state"}:
        return floors
    steps = expected[f"{trial}/losses"].size if f"{trial}/losses" in expected else 1
    sizes = {name: expected.get(f"{trial}/weight size:{name.partition(':')[2]}") for name in names}
    return {
        name: max(floors[name], 0.0 if size is None else ROUNDING * steps * float(size.flat[0]) / tolerance)
        for name, size in sizes.items()
    }


def _difference(found: np.ndarray | None, expected: np.ndarray | None, floor: float) -> float:
    """Largest difference relative to the largest expected value; infinite where an array is missing, misshapen or not
    finite.
    """
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    scale = max(float(np.abs(expected).max()), floor, np.finfo(np.float32).tiny)
    difference = float(np.abs(np.asarray(found, float) - np.asarray(expected, float)).max()) / scale
    return difference if np.isfinite(difference) else np.inf


def _of_probe(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> dict[str, float]:
    """By how much what the optimizer does differs, number by number, over each stretch of steps: relative to what the
    reference's does to the same number, or to what rounding leaves of it.

    So a number that has no gradient shows its decay, and one whose gradient is small shows epsilon, each at full size.
    """
    prefix = f"{PROBE}/weights "
    steps: dict[str, list[int]] = {}
    for name in found.keys() | expected.keys():
        if name.startswith(prefix):
            step, _, weight = name[len(prefix) :].partition(":")
            steps.setdefault(weight, []).append(int(step))
    differences = {}
    for weight, some in steps.items():
        for start, end in itertools.pairwise(sorted(some)):
            places = [f"{prefix}{step}:{weight}" for step in (start, end)]
            at = f"{PROBE}/steps {start + 1} to {end}:{weight}"
            differences[at] = _of_stretch(
                [found.get(one) for one in places], [expected.get(one) for one in places], end - start, tolerance
            )
    return differences


def _of_stretch(
    found: list[np.ndarray | None], expected: list[np.ndarray | None], steps: int, tolerance: float
) -> float:
    if any(one is None for one in (*found, *expected)) or len({one.shape for one in (*found, *expected)}) > 1:
        return np.inf
    before, after = (np.asarray(one, float) for one in expected)
    change, other = after - before, np.asarray(found[1], float) - np.asarray(found[0], float)
    rounding = ROUNDING * steps * np.maximum(np.abs(before), np.abs(after)) / tolerance
    scale = np.maximum(np.maximum(np.abs(change), rounding), np.finfo(np.float32).tiny)
    difference = float((np.abs(other - change) / scale).max())
    return difference if np.isfinite(difference) else np.inf


def _check(quantity: str, differences: Mapping[str, float], tolerance: float, own: Mapping[str, Own]) -> Check:
    forgiven = [
        Forgiven(at=name, difference=difference, own=own[name].difference, by=own[name].by)
        for name, difference in differences.items()
        if quantity in FORGIVABLE and tolerance < difference <= OWN * own.get(name, NONE).difference
    ]
    left = {name: one for name, one in differences.items() if name not in {each.at for each in forgiven}}
    at = max(left, key=left.__getitem__) if left else ""
    return Check(
        name=quantity,
        difference=left[at] if left else 0.0,
        worst=max(differences.values()),
        at=at,
        tolerance=tolerance,
        trials=len(_trials(differences)) or 1,
        forgiven=tuple(forgiven),
    )


def _of_dropout(
    condition: Condition, found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> list[Check]:
    """What dropout did in the places where the workload declares one, see ``benchlib.worker.check.dropped``."""
    seen = {name.partition("/")[2]: array for name, array in found.items() if _trial(name) == DROPOUT}
    if not seen:
        return []
    workload = workloads.load(condition.workload)
    declared = [(name, p) for name, p in workload.dropouts(condition.hyperparameters) if p > 0]
    least, most = (int(count) for count in seen["places"])
    off = max(abs(least - len(declared)), abs(most - len(declared)))
    at = f"{least if least == most else f'{least} to {most}'} of {len(declared)}"
    in_evaluation = int(seen["evaluation places"][0])
    differences = {
        "dropout places": {
            f"in training, {at}": float(off),
            f"in evaluation, {in_evaluation} of 0": float(in_evaluation),
        },
        "evaluation repeats": {
            name: _difference(seen.get(name.replace("evaluation", "evaluation again")), array, 0.0)
            for name, array in seen.items()
            if name.startswith("evaluation:")
        },
    }
    if declared and not off:
        sizes = expected.get(f"{DROPOUT}/given", np.array([]))
        apart = np.abs(seen["given"] - sizes) if len(sizes) == len(declared) else [np.inf] * len(declared)
        differences["dropout sizes"] = {name: float(one) for (name, _), one in zip(declared, apart, strict=True)}
        rows = [(name, p, *(float(seen[one][place]) for one in _OF_PLACE)) for place, (name, p) in enumerate(declared)]
        for name, p, numbers, zeros, smallest, greatest, neighbours, repeats, twins in rows:
            deviation = np.sqrt(p * (1 - p) / max(numbers, 1.0))
            of_place = {
                "dropout share": abs(zeros / max(numbers, 1.0) - p) / deviation,
                "dropout scale": max(abs(smallest * (1 - p) - 1), abs(greatest * (1 - p) - 1)),
                "dropout masks": neighbours,
                "dropout repeats": repeats + twins,
            }
            for quantity, difference in of_place.items():
                differences.setdefault(quantity, {})[name] = difference if np.isfinite(difference) else np.inf
    return [
        _check(name, differences[name], tolerance, {})
        for name, tolerance in DROPOUT_TOLERANCES.items()
        if name in differences
    ]


_OF_PLACE = ("numbers", "zeros", "least scale", "greatest scale", "neighbours", "repeats", "twins")


def neutral(condition: Condition) -> Condition:
    """A gated condition as trials are made of it: with what its workload has to neutralise neutralised."""
    gate = workloads.load(condition.workload).gate
    return condition.but(hyperparameters={**condition.hyperparameters, **gate.hyperparameters})


def undropped(condition: Condition) -> Condition:
    """As :func:`usual`, but without dropout, whose masks never agree."""
    workload, values = workloads.load(condition.workload), condition.hyperparameters
    places = list(workload.dropouts(values))
    off = {
        name: value
        for name, value in workload.gate.hyperparameters.items()
        if list(workload.dropouts({**values, name: value})) != places
    }
    return usual(condition).but(hyperparameters={**values, **off})


def usual(condition: Condition) -> Condition:
    """A gated condition with the learning rate that its workload usually has."""
    return condition.but(learning_rate=workloads.load(condition.workload).learning_rate)
