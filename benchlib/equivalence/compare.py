"""Are two frameworks running the same model? The gate that stands before every ratio, and its certificate.

The gate compares each condition with the reference, PyTorch eager on the CPU, from the same weights and batches. It
compares outputs, gradients, losses, changes of the weights, untrained state and evaluation outputs. It then compares
the optimizer alone, on given weights and gradients, and dropout alone. Parts that cannot agree, such as dropout's
masks, are off for the first comparison (``Workload.gate``).

Networks have kinks, such as a ReLU's input within rounding of 0, where rounding decides which way a gradient goes. So a
larger difference is forgiven where the reference's array, in the same trial, differs from itself by as much, to a
factor of ``OWN``. For that it runs from weights moved in the last digit, or in its other lane. An array forgiven in
every trial, or in all but the first, which takes fewer steps, fails: it was never seen to agree. Outputs and the
first loss are never forgiven. Gradients that are 0 in both but for rounding (:func:`zeros`) agree.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check, Forgiven, Whose
from benchlib.equivalence.tolerances import (
    DROPOUT_TOLERANCES,
    DROPS,
    FORGIVABLE,
    LEFT,
    NEGLIGIBLE,
    ROUNDING,
    TRAINING,
    dropout_tolerances,
    explains,
    tolerances,
)
from benchlib.errors import Failure

AGAIN, PROBE, DROPOUT = "again", "probe", "dropout"
"""In the names of arrays, for the number of a trial: the first made again; the optimizer and dropout by themselves."""

TRAINED, FED, FED_STEPS = "training", "training from given weights", "steps from given weights"
"""The checks of a longer training, see :func:`with_training`."""


class Own(NamedTuple):
    """The difference of an array of the reference from itself, and the change that caused it."""

    difference: float
    by: str  # weights moved by so many units in the last digit, or another lane
    left: float = np.inf  # of an array that counts as 0, see :func:`zeros`: times that it is larger than rounding


NONE = Own(0.0, "")
Differences = dict[str, dict[str, float]]  # by quantity and array


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
    """Compare a gated condition's results with the reference's, or say which of the two failed. ``gate_environment``
    are the variables that were set for the gate only, ``inputs`` the hashes of the inputs of both.
    """
    neutralised = {**workloads.load(condition.workload).gate.hyperparameters, **gate_environment}
    common = {"condition": condition, "reference": reference, "neutralised": neutralised, "inputs": dict(inputs)}
    for who, result in (("condition", found), ("reference", expected)):
        if isinstance(result, Failure):
            return Certificate(**common, reason=f"the {who} failed: {result}", failure=result, failed=who)
    allowed = tolerances(condition)
    checks = compare(differences(found, expected, allowed), allowed, own or {})
    return Certificate(
        **common,
        trials=len(_trials(found)),
        checks=[*checks, *_dropout_checks(condition, found, expected)],
        exercised=dict(exercised or {}),
        digests={name: _digest(array) for name, array in sorted(found.items())},
        reference_digests={name: _digest(array) for name, array in sorted(expected.items())},
    )


def without_training(certificate: Certificate, failure: Failure, failed: Whose) -> Certificate:
    """The certificate where a longer training was required and ``failed`` could not be trained."""
    reason = f"the longer training of the {failed} failed: {failure}"
    return certificate.model_copy(update={"reason": reason, "failure": failure, "failed": failed, "checks": []})


def with_training(
    certificate: Certificate, own: np.ndarray | None, fed: np.ndarray | None, moved: Mapping[str, np.ndarray]
) -> Certificate:
    """The certificate with at least one result of a longer training. ``own`` are the losses (2, steps) of its condition
    and the reference, each on its own way (see :func:`training_check`). ``fed`` (2, steps, 2) are losses and lengths of
    steps where both got the reference's weights again and again: rounding never explains their differences.
    """
    condition, every = certificate.condition, {TRAINED: own, FED: fed}
    seen = {name: one for name, one in every.items() if one is not None}
    checks = [training_check(condition, own, moved)] if own is not None else []
    if fed is not None:
        allowed = {FED: _training_tolerance(condition), FED_STEPS: DROPOUT_TOLERANCES["8 steps in a row"]}
        for (name, tolerance), parts in zip(allowed.items(), np.moveaxis(fed, -1, 0), strict=True):
            differences = {f"step {step}": float(one) for step, one in enumerate(_relative_distances(*parts), 1)}
            checks.append(_check(name, differences, tolerance, {}))
    ours, its = ({f"{name}/losses": _digest(one[row]) for name, one in seen.items()} for row in (0, 1))
    return certificate.model_copy(
        update={
            "checks": [*certificate.checks, *checks],
            "training": max(one.shape[1] for one in seen.values()),
            "digests": {**certificate.digests, **ours},
            "reference_digests": {**certificate.reference_digests, **its},
        }
    )


def training_check(condition: Condition, losses: np.ndarray, moved: Mapping[str, np.ndarray]) -> Check:
    """The check of ``losses`` (2, steps) of a condition and of its reference in a longer training. From where they part
    on they are one difference. Rounding explains it where the reference from ``moved`` weights (losses by move) parts
    from itself as soon and as far, to a factor of ``OWN``. It never explains a parting at the first step.
    """
    tolerance = _training_tolerance(condition)
    apart, steps = _relative_distances(*losses), losses.shape[1]
    before, largest = steps_until_parting(*losses, tolerance=tolerance)
    differences = {f"step {step}": float(one) for step, one in enumerate(apart[:before], 1)}
    own = {}
    if before < steps:
        at = f"steps {before + 1} to {steps}"
        differences[at] = largest
        partings = {by: steps_until_parting(one, losses[1], tolerance) for by, one in moved.items()}
        alike = [
            Own(farthest, f"{by}, from step {sooner + 1} on")
            for by, (sooner, farthest) in partings.items()
            if before and explains(sooner + 1, before + 1)
        ]
        own[at] = next((one for one in alike if explains(one.difference, largest)), NONE)
    return _check(TRAINED, differences, tolerance, own)


def _training_tolerance(condition: Condition) -> float:
    return TRAINING.get(condition.device, 3e-2)


def steps_until_parting(losses: np.ndarray, expected: np.ndarray, tolerance: float) -> tuple[int, float]:
    """The steps before two trainings part by more than the tolerance, all if they do not, and how far they ever are."""
    apart = _relative_distances(losses, expected)
    beyond = np.flatnonzero(apart > tolerance)
    return int(beyond[0]) if len(beyond) else len(apart), float(apart.max())


def _relative_distances(losses: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The relative differences of losses, step by step; infinite where one is not a number."""
    apart = np.abs(losses - expected) / np.maximum(np.abs(expected), np.finfo(np.float32).tiny)
    return np.where(np.isfinite(apart), apart, np.inf)


def _digest(array: np.ndarray) -> str:
    """A hash of its type, shape and bytes."""
    whole = f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(whole).hexdigest()[:16]


def differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> Differences:
    """The largest relative difference of each array in two sets by name (``0/gradient:conv1.weight``, ``1/losses``
    ...), for the trials that were ``found``. For predictions it is the share that is not the same.
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
            ours, its = found.get(name), expected.get(name)
            by_quantity[quantity][name] = (
                _share_of_others(ours, its) if quantity == "predictions" else _difference(ours, its, floors[name])
            )
    if AGAIN in made and "repetition" in allowed:
        by_quantity["repetition"] = _repetition_differences(found, allowed)
    if PROBE in made and "optimizer" in allowed:
        by_quantity["optimizer"] = _probe_differences(found, expected, allowed["optimizer"])
    return by_quantity


def compare(differences: Differences, allowed: Mapping[str, float], own: Mapping[str, Own]) -> list[Check]:
    """The checks of the results of :func:`differences`, one per quantity."""
    return [_check(name, differences[name], allowed[name], own) for name in allowed if differences.get(name)]


def to_explain(differences: Differences, allowed: Mapping[str, float], own: Mapping[str, Own]) -> set[int]:
    """The trials that the reference has to make again, to know whether rounding explains their differences beyond the
    tolerance. None where a quantity differs that is never forgiven.
    """
    if any(
        difference > allowed[quantity]
        for quantity, by_array in differences.items()
        if quantity not in FORGIVABLE
        for difference in by_array.values()
    ):
        return set()
    return {
        int(_trial(name))
        for quantity, by_array in differences.items()
        if quantity in FORGIVABLE
        for name, difference in by_array.items()
        if _trial(name) != PROBE
        and allowed[quantity] < difference < np.inf
        and not _is_explained(difference, own.get(name, NONE))
    }


def _is_explained(difference: float, own: Own) -> bool:
    return explains(own.difference, difference, own.left)


def small_gradients(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> list[str]:
    """The gradients of a trial that are small beside the largest of it, in the condition and in the reference."""
    names = [name for name in found.keys() & expected.keys() if _quantity(name) == "gradients"]
    most = max((_size(expected[name]) for name in names), default=0.0)
    return sorted(name for name in names if max(_size(found[name]), _size(expected[name])) <= NEGLIGIBLE * most)


def rounding(arrays: Mapping[str, np.ndarray], moved: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
    """The median difference of gradients and updates from those of ``moved`` weights: some may meet a kink."""
    names = [name for name in moved[0].keys() & arrays.keys() if _quantity(name) in {"gradients", "updates"}]
    return {name: float(np.median([_size(one[name] - arrays[name]) for one in moved])) for name in names}


def zeros(
    found: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    roundings: tuple[Mapping[str, float], Mapping[str, float]],
    differences: Differences,
) -> dict[str, Own]:
    """The difference that rounding makes in gradients that count as 0, and in their updates. Such a gradient, as of a
    bias that the next layer cancels, is small beside the largest. In both the condition and the reference it is at most
    ``LEFT`` times the effect of rounding on it (``roundings``, in this order).
    """
    counted = {}
    for gradient in small_gradients(found, expected):
        sizes = [_size(arrays[gradient]) for arrays in (found, expected)]
        tiny = float(np.finfo(np.float32).tiny)
        left = max(size / max(one[gradient], tiny) for size, one in zip(sizes, roundings, strict=True))
        for quantity, name in (("gradients", gradient), ("updates", gradient.replace("gradient:", "update:"))):
            difference = differences.get(quantity, {}).get(name, 0.0)
            if left <= LEFT and 0 < difference < np.inf:
                scale = _size(found[name] - expected[name]) / difference  # the size it is relative to
                counted[name] = Own(sum(one[name] for one in roundings) / scale, "both are 0 but for rounding", left)
    return counted


def _size(array: np.ndarray) -> float:
    return float(np.abs(array).max(initial=0.0))


def nearest_differences(differences: Differences, own: Mapping[str, Own], found: Mapping[str, Own]) -> dict[str, Own]:
    """``own`` and ``found``: for each array the one nearest to its difference from the reference, as a factor. An
    array that counts as 0 keeps ``own``.
    """
    every = {name: one for by_array in differences.values() for name, one in by_array.items() if 0 < one < np.inf}

    def apart(name: str, one: Own) -> float:
        return abs(np.log(max(one.difference, np.finfo(float).tiny) / every[name]))

    chosen = dict(own)
    for name in [name for name in every.keys() & found.keys() if own.get(name, NONE).left > LEFT]:
        chosen[name] = min(chosen.get(name, NONE), found[name], key=functools.partial(apart, name))
    return chosen


def own_differences(
    moved: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float], by: str
) -> dict[str, Own]:
    """The difference of each array of the reference's trials from its ``moved`` one, and the cause (``by``)."""
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


def _repetition_differences(found: Mapping[str, np.ndarray], allowed: Mapping[str, float]) -> dict[str, float]:
    """The differences of the first trial from its repetition."""
    again = {name.replace(f"{AGAIN}/", "0/", 1): one for name, one in found.items() if _trial(name) == AGAIN}
    first = {name: found[name] for name in again if name in found}
    quantities = {name: allowed["repetition"] for name in allowed if name != "repetition"}
    groups = differences(again, first, quantities).values()
    return {name.replace("0/", f"{AGAIN}/", 1): one for group in groups for name, one in group.items()}


def _floors(
    quantity: str, trial: str, names: Collection[str], expected: Mapping[str, np.ndarray], tolerance: float
) -> dict[str, float]:
    """The least sizes that the differences of some arrays are relative to."""
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


def _share_of_others(found: np.ndarray | None, expected: np.ndarray | None) -> float:
    """The share of whole numbers that are not the expected: a distance between the numbers of words means nothing."""
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    return float(np.mean(found != expected))


def _difference(found: np.ndarray | None, expected: np.ndarray | None, floor: float) -> float:
    """Relative to the largest expected value; infinite where an array is missing, misshapen or not finite."""
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    scale = max(float(np.abs(expected).max()), floor, np.finfo(np.float32).tiny)
    difference = float(np.abs(np.asarray(found, float) - np.asarray(expected, float)).max()) / scale
    return difference if np.isfinite(difference) else np.inf


def _probe_differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> dict[str, float]:
    """The relative difference of the optimizer's changes, number by number, over each stretch of steps. It is relative
    to the reference's change of the same number, or to a floor for rounding. So decay and epsilon show at full size.
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
            differences[at] = _stretch_difference(
                [found.get(one) for one in places], [expected.get(one) for one in places], end - start, tolerance
            )
    return differences


def _stretch_difference(
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
        Forgiven(at=name, difference=difference, own=own[name].difference, by=own[name].by, left=own[name].left)
        for name, difference in differences.items()
        if quantity in FORGIVABLE and tolerance < difference and _is_explained(difference, own.get(name, NONE))
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


def _dropout_checks(
    condition: Condition, found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> list[Check]:
    """The checks of dropout, where the workload declares it, and of the steps' lengths: see ``worker.check``."""
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
    if declared:
        losses = seen["step losses"]
        apart = np.ptp(losses) / np.abs(losses).max()
        at = f"losses of {len(losses)} steps, {apart:.1e} apart"
        differences["dropout in steps"] = {at: float(DROPS / apart) if apart > 0 else np.inf}
    trained = [name for name, weight in workload.weights(condition.hyperparameters).items() if weight.trained]
    for quantity in [name for name in seen if name.startswith("moved ")]:
        names, moved = trained, (seen[quantity], expected.get(f"{DROPOUT}/{quantity}", np.full(len(trained), np.nan)))
        if declared and quantity == "moved 3":  # of a bias alone, other masks make half as much again
            names, moved = ["all weights"], tuple(np.array([np.linalg.norm(sizes)]) for sizes in moved)
        of_steps = f"{quantity.removeprefix('moved ')} steps {'with dropout' if declared else 'in a row'}"
        differences[of_steps] = dict(zip(names, _factors(*moved), strict=True))
    if declared and not off:
        sizes = expected.get(f"{DROPOUT}/given", np.array([]))
        apart = np.abs(seen["given"] - sizes) if len(sizes) == len(declared) else [np.inf] * len(declared)
        differences["dropout sizes"] = {name: float(one) for (name, _), one in zip(declared, apart, strict=True)}
        means = expected.get(f"{DROPOUT}/root mean square", np.array([]))
        larger = np.abs(seen["root mean square"] / means - 1) if len(means) == len(declared) else apart
        differences["dropout inputs"] = dict(zip((name for name, _ in declared), _finite(larger), strict=True))
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
        for name, tolerance in dropout_tolerances(condition).items()
        if name in differences
    ]


def _factors(found: np.ndarray, expected: np.ndarray) -> list[float]:
    """The relative difference of each size from the expected one."""
    floor = NEGLIGIBLE * expected.max() + np.finfo(np.float32).tiny
    ratios = (found + floor) / (expected + floor)
    return _finite(np.maximum(ratios, 1 / ratios) - 1)


def _finite(differences: Iterable[float]) -> list[float]:
    """Make every difference that is not finite infinite: the largest of several would pass nan over."""
    return [float(one) if np.isfinite(one) else np.inf for one in differences]


_OF_PLACE = ("numbers", "zeros", "least scale", "greatest scale", "neighbours", "repeats", "twins")


def neutralise(condition: Condition) -> Condition:
    """A gated condition for trials, with the hyperparameters that its workload sets to neutralise differences."""
    gate = workloads.load(condition.workload).gate
    return condition.but(hyperparameters={**condition.hyperparameters, **gate.hyperparameters})


def without_dropout(condition: Condition) -> Condition:
    """A gated condition with its workload's usual learning rate, but without dropout, whose masks never agree."""
    workload, values = workloads.load(condition.workload), condition.hyperparameters
    places = list(workload.dropouts(values))
    off = {
        name: value
        for name, value in workload.gate.hyperparameters.items()
        if list(workload.dropouts({**values, name: value})) != places
    }
    return with_usual_rate(condition).but(hyperparameters={**values, **off})


def with_usual_rate(condition: Condition) -> Condition:
    """A gated condition with the learning rate that its workload usually has."""
    return condition.but(learning_rate=workloads.load(condition.workload).learning_rate)
