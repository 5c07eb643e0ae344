"""Are two frameworks running the same model? The gate that stands before every ratio, and its certificate.

The gate compares each condition with the truth: the reference, PyTorch eager on the CPU, in double precision, from the
same weights and batches. It compares outputs, gradients, losses, changes of the weights, untrained state and evaluation
outputs; then the optimizer alone, on given weights and gradients; then dropout alone, and with given masks at the
largest batch. In small trials dropout is off (``Workload.gate``).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from benchlib import frameworks, workloads
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check, Whose
from benchlib.equivalence.tolerances import (
    DROPOUT_TOLERANCES,
    DROPS,
    EXACT,
    FACTOR,
    KINKED,
    MANY,
    NEGLIGIBLE,
    ROUNDING,
    ROUNDING_EXACT,
    SATURATED,
    SINGLE,
    TIE,
    TRAINING,
    ZERO,
    dropout_tolerances,
    single_tolerance,
    tolerances,
)
from benchlib.errors import Failure

AGAIN, PROBE, DROPOUT, WORK, WITHOUT, FAR, BATCH = "again", "probe", "dropout", "work", "without masks", "far", "batch"
"""In the names of arrays, for the number of a trial: the first made again; the optimizer and dropout by themselves; the
work of a step; why dropout could not be given masks; the trial with a large last layer, and that of the largest batch.
"""

MORE_CALLS = 1.5, 2.0
"""Times as many in a step with the larger batch; with dropout, which is on there alone (``lstm``: 319 for 198)."""

TRAINED, FED, FED_STEPS = "training", "training from given weights", "steps from given weights"
"""The checks of a longer training, see :func:`with_training`."""

Differences = dict[str, dict[str, float]]  # by quantity and array


class Results(NamedTuple):
    """The arrays of a condition, of its reference in fp32, and of the truth; or a failure in place of one."""

    found: Mapping[str, np.ndarray] | Failure
    expected: Mapping[str, np.ndarray] | Failure
    truth: Mapping[str, np.ndarray] | Failure


def certify(
    condition: Condition,
    reference: Condition,
    results: Results,
    gate_environment: Mapping[str, str],
    inputs: Mapping[str, str],
) -> Certificate:
    """Compare a gated condition's results with the truth, or say which of the two failed. ``gate_environment`` are the
    variables that were set for the gate only, ``inputs`` the hashes of the inputs of both.
    """
    workload = workloads.load(condition.workload)
    neutralised = {**workload.gate.hyperparameters, **gate_environment}
    common = {"condition": condition, "reference": reference, "neutralised": neutralised, "inputs": dict(inputs)}
    for who, result in zip(("condition", "reference", "reference"), results, strict=True):
        if isinstance(result, Failure):
            return Certificate(**common, reason=f"the {who} failed: {result}", failure=result, failed=who)
    found, expected, truth = (dict(result) for result in results if not isinstance(result, Failure))
    for arrays, name in itertools.product((found, expected, truth), frameworks.cuts(condition.framework)):
        arrays.pop(name, None)
    without = [name.partition("/")[2] for name in (*found, *expected, *truth) if _trial(name) == WITHOUT]
    if without:
        found = {name: array for name, array in found.items() if _trial(name) != BATCH}
    truth = truth if condition.precision in ("fp32", "fp64") else expected
    allowed = tolerances(condition)
    probed = {name: array for name, array in expected.items() if _trial(name) == PROBE}  # in fp32 only
    ours = differences(found, {**truth, **probed}, allowed)
    its = {} if condition.precision != "fp32" else differences(expected, {**truth, **probed}, allowed)
    own_count, its_count = (one.get(f"{WORK}/multiply_adds", np.array(None)).item() for one in (found, expected))
    zeros = _zeros(truth)
    checks = compare(ours, allowed, its, single_tolerance(condition), zeros, workload)
    checks += _dropout_checks(condition, found, expected, zeros)
    return Certificate(
        **common,
        trials=len(_trials(found)),
        checks=[*checks, *_work_check(found)],
        without_masks="; ".join(dict.fromkeys(without)),
        multiply_adds=own_count,
        reference_multiply_adds=its_count,
        declared_multiply_adds=workload.declared_multiply_adds(condition.hyperparameters),
        digests={name: digest(array) for name, array in sorted(found.items()) if _trial(name) != WORK},
        reference_digests={name: digest(one) for name, one in sorted(expected.items()) if _trial(name) != WORK},
    )


def without_training(certificate: Certificate, failure: Failure, failed: Whose) -> Certificate:
    """The certificate where a longer training was required and ``failed`` could not be trained."""
    reason = f"the longer training of the {failed} failed: {failure}"
    return certificate.model_copy(update={"reason": reason, "failure": failure, "failed": failed, "checks": []})


def with_training(certificate: Certificate, own: np.ndarray | None, fed: np.ndarray | None) -> Certificate:
    """The certificate with at least one result of a longer training. ``own`` are the losses (3, steps) of its
    condition, of the reference and of the truth, each on its own way (see :func:`training_check`). ``fed`` (2, steps,
    2) are losses and lengths of steps where condition and reference got the reference's weights again and again.
    """
    condition, every = certificate.condition, {TRAINED: own, FED: fed}
    seen = {name: one for name, one in every.items() if one is not None}
    checks = [training_check(condition, own)] if own is not None else []
    if fed is not None:
        allowed = {FED: _training_tolerance(condition), FED_STEPS: DROPOUT_TOLERANCES["8 steps in a row"]}
        for (name, tolerance), parts in zip(allowed.items(), np.moveaxis(fed, -1, 0), strict=True):
            apart = {f"step {step}": float(one) for step, one in enumerate(_relative_distances(*parts), 1)}
            checks.append(_check(name, apart, tolerance))
    ours, its = ({f"{name}/losses": digest(one[row]) for name, one in seen.items()} for row in (0, 1))
    return certificate.model_copy(
        update={
            "checks": [*certificate.checks, *checks],
            "training": max(one.shape[1] for one in seen.values()),
            "digests": {**certificate.digests, **ours},
            "reference_digests": {**certificate.reference_digests, **its},
        }
    )


def training_check(condition: Condition, losses: np.ndarray) -> Check:
    """The check of ``losses`` (3, steps) of a condition, its reference and the truth in a longer training, over the
    :func:`steps_compared`.
    """
    apart = _relative_distances(losses[0], losses[2])[: steps_compared(condition, losses)]
    differences = {f"step {step}": float(one) for step, one in enumerate(apart, 1)}
    return _check(TRAINED, differences, _training_tolerance(condition))


def steps_compared(condition: Condition, losses: np.ndarray) -> int:
    """All steps, unless rounding parts the reference from the truth: then half as many as before that, one at least."""
    _, its, truth = losses
    parting = steps_until_parting(its, truth, _training_tolerance(condition))
    return parting if parting == len(truth) else max(1, parting // 2)


def _training_tolerance(condition: Condition) -> float:
    return TRAINING.get(condition.device, 3e-2)


def steps_until_parting(losses: np.ndarray, expected: np.ndarray, tolerance: float) -> int:
    """The steps before two trainings part by more than the tolerance; all if they do not."""
    beyond = np.flatnonzero(_relative_distances(losses, expected) > tolerance)
    return int(beyond[0]) if len(beyond) else len(losses)


def _relative_distances(losses: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The relative differences of losses, step by step; infinite where one is not a number."""
    apart = np.abs(losses - expected) / np.maximum(np.abs(expected), np.finfo(np.float32).tiny)
    return np.where(np.isfinite(apart), apart, np.inf)


def digest(array: np.ndarray) -> str:
    """A hash of its type, shape and bytes."""
    whole = f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(whole).hexdigest()[:16]


def differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> Differences:
    """The largest relative difference of each array in two sets by name (``0/gradient:conv1.weight``, ``1/losses``
    ...), for the trials that were ``found``. For predictions it is the share that is not the same.
    """
    made, exact = {_trial(name) for name in found}, allowed.get("outputs") == EXACT
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(found.keys() | expected.keys()):
        if _trial(name) in made and _trial(name) != AGAIN and _quantity(name) in allowed:
            groups.setdefault((_quantity(name), _trial(name)), []).append(name)
    by_quantity: dict[str, dict[str, float]] = {quantity: {} for quantity in allowed}
    groups.pop(("updates", FAR), None)  # Adam makes whole steps of what saturation leaves
    for (quantity, trial), names in groups.items():
        floors = _floors(quantity, trial, names, expected, allowed[quantity], exact)
        for name in names:
            ours, its = found.get(name), expected.get(name)
            by_quantity[quantity][name] = (
                _share_of_others(ours, its, expected.get(name.replace("/predictions", "/evaluation outputs:0")))
                if quantity == "predictions"
                else _difference(ours, its, floors[name], by_norm=trial in (FAR, BATCH) and quantity in KINKED)
            )
    if AGAIN in made and "repetition" in allowed:
        by_quantity["repetition"] = _repetition_differences(found, allowed)
    if PROBE in made and "optimizer" in allowed:
        by_quantity["optimizer"] = _probe_differences(found, expected, allowed["optimizer"])
    return by_quantity


def compare(
    ours: Differences,
    allowed: Mapping[str, float],
    its: Differences,
    single: float,
    zeros: Collection[str],
    workload: workloads.Workload,
) -> list[Check]:
    """The checks of a condition's differences from the truth, one per quantity, beside those of the reference. For
    ``single`` see :func:`single_tolerance`; ``zeros`` are arrays that are 0 in truth.
    """
    return [
        _judge(name, ours[name], allowed[name], its.get(name, {}), single, zeros, workload)
        for name in allowed
        if ours[name]
    ]


def _zeros(truth: Mapping[str, np.ndarray]) -> set[str]:
    """The gradients that are 0 in truth but for its own rounding, and their updates."""
    sizes = {name: _size(array) for name, array in truth.items() if _quantity(name) == "gradients"}
    most = {trial: max(size for name, size in sizes.items() if _trial(name) == trial) for trial in map(_trial, sizes)}
    zero = [name for name, size in sizes.items() if size <= EXACT * most[_trial(name)]]
    return {*zero, *(name.replace("/gradient:", "/update:") for name in zero)}


def _judge(
    quantity: str,
    ours: Mapping[str, float],
    tolerance: float,
    its: Mapping[str, float],
    single: float,
    zeros: Collection[str],
    workload: workloads.Workload,
) -> Check:
    """The check of a quantity. Of what a kink changes, the middle trial counts by array; in a deep model the least."""
    groups: dict[str, list[str]] = {}
    kinked, trains, deep = single > 0 and quantity in KINKED, workload.kind == "training", workload.gate.fed
    moved = kinked or (single > 0 and deep and quantity == "evaluation outputs")  # which are behind a step
    for name in ours:
        together = moved and _trial(name).isdigit() and (trains or workload.evaluates)  # an operator may keep its last
        groups.setdefault(name.partition("/")[2] if together else name, []).append(name)
    differences, tolerances, own = {}, {}, {}
    for names in groups.values():
        in_order = sorted(names, key=ours.__getitem__)
        name = in_order[-1 if np.isinf(ours[in_order[-1]]) else 0 if kinked and deep else (len(names) - 1) // 2]
        same = [one for one in its if _trial(one) == _trial(name) and one not in zeros]
        # Where nothing is trained, chance decides which array meets a kink.
        theirs = max((its.get(one, 0.0) for one in (same if kinked and not trains else names)), default=0.0)
        if np.isinf(theirs) and _trial(name) == FAR:
            continue  # large weights leave the reference in fp32 without a number
        zero = ZERO if kinked else 1e-5 if quantity == "updates" else 0.0  # in fp64 Adam makes 4e-9 of rounding
        differences[name], own[name] = ours[name], theirs if np.isfinite(theirs) else 0.0
        rounded = FACTOR * own[name] if quantity != "predictions" else own[name]
        tolerances[name] = max(tolerance, rounded, zero if name in zeros else 0.0)
        untimed = kinked and workload.evaluates and not trains  # gradients that no step computes
        if single and quantity != "predictions" and (untimed or _trial(name) in (FAR, BATCH)):
            far = _trial(name) == FAR
            others = (single / SINGLE if moved or far else 1) * (SATURATED if far else MANY * tolerance)
            tolerances[name] = max(tolerances[name], single if kinked else others)
    check = _check(quantity, differences, tolerances, own)
    return check.model_copy(update={"worst": max(ours.values()), "trials": len(_trials(ours)) or 1})


def _size(array: np.ndarray) -> float:
    return float(np.abs(array).max(initial=0.0))


def _trial(name: str) -> str:
    return name.partition("/")[0]


def _trials(arrays: Iterable[str]) -> set[str]:
    return {trial for trial in map(_trial, arrays) if trial.isdigit()}


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
    quantity: str, trial: str, names: Collection[str], expected: Mapping[str, np.ndarray], tolerance: float, exact: bool
) -> dict[str, float]:
    """The least sizes that the differences of some arrays are relative to."""
    most = max((_size(expected[name]) for name in names if name in expected), default=0.0)
    floors = dict.fromkeys(names, NEGLIGIBLE * most)
    if quantity not in {"updates", "state"}:
        return floors
    steps = expected[f"{trial}/losses"].size if f"{trial}/losses" in expected else 1
    rounding = (ROUNDING_EXACT if exact else ROUNDING) * steps / tolerance
    gradients = {name: _size(array) for name, array in expected.items() if name.startswith(f"{trial}/gradient:")}
    least = EXACT * max(gradients.values(), default=0.0)
    for name in names:
        weight = name.partition(":")[2]
        if f"{trial}/weight size:{weight}" in expected:
            floors[name] = max(floors[name], rounding * _size(expected[f"{trial}/weight size:{weight}"]))
        if exact and gradients.get(f"{trial}/gradient:{weight}", np.inf) <= least:  # its update is rounding, too
            floors[name] = most
    return floors


def _share_of_others(found: np.ndarray | None, expected: np.ndarray | None, outputs: np.ndarray | None) -> float:
    """The share of whole numbers that are not the expected: a distance between the numbers of words means nothing.
    Classes of ``outputs`` are left out where the second largest is as good: there rounding decides.
    """
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    clear = np.ones(found.shape, bool)
    if outputs is not None and np.array_equal(outputs.argmax(axis=-1), expected):
        second, first = np.moveaxis(np.sort(outputs, axis=-1)[..., -2:], -1, 0)
        clear = first - second > TIE * _size(outputs)
    return float(np.mean((found != expected) & clear))


def _difference(found: np.ndarray | None, expected: np.ndarray | None, floor: float, by_norm: bool = False) -> float:
    """Relative to the largest expected value, or of norms; infinite if one is missing, misshapen or not finite."""
    if found is None or expected is None or found.shape != expected.shape:
        return np.inf
    size = np.linalg.norm if by_norm else _size
    scale = max(float(size(expected)), floor, np.finfo(np.float32).tiny)
    with np.errstate(invalid="ignore"):  # of two that are infinite
        difference = float(size(np.asarray(found, float) - np.asarray(expected, float))) / scale
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


def _check(
    quantity: str,
    differences: Mapping[str, float],
    tolerance: float | Mapping[str, float],
    own: Mapping[str, float] | None = None,
) -> Check:
    """The check of a quantity: of the difference that is the most times as large as allowed, in a small trial if one
    of these is too large: there the reason is nearer.
    """
    allowed = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(differences, tolerance)

    def excess(name: str) -> tuple[bool, float, float]:
        times = differences[name] / allowed[name] if allowed[name] else differences[name] and np.inf
        return times > 1 and _trial(name) not in (FAR, BATCH), times, differences[name]

    at = max(differences, key=excess, default="")
    return Check(
        name=quantity,
        difference=differences.get(at, 0.0),
        worst=max(differences.values(), default=0.0),
        at=at,
        tolerance=allowed.get(at, 0.0),
        own=(own or {}).get(at, 0.0),
        trials=len(_trials(differences)) or 1,
    )


def _work_check(found: Mapping[str, np.ndarray]) -> list[Check]:
    """The check of what a model's file does beside its model, as a worker saw it: see ``frameworks._work.observe``. The
    calls of a step, ``work/calls BATCH_SIZE``, must not become more with the batch.
    """
    if f"{WORK}/beside" not in found:
        return []
    wrong = found[f"{WORK}/beside"].tolist()
    calls = {int(name.rpartition(" ")[2]): int(one) for name, one in found.items() if name.startswith(f"{WORK}/calls ")}
    few, many = (calls[size] for size in (min(calls), max(calls)))
    if many > MORE_CALLS[bool(np.any(found.get(f"{DROPOUT}/places", 0)))] * few + 8:
        grown = f"{few:,} with a batch of {min(calls)}, {many:,} with one of {max(calls)}"
        wrong.append(f"the calls in a step become more with the batch ({grown}), as if samples were taken one by one")
    return [Check(name=WORK, difference=len(wrong), worst=len(wrong), at="", tolerance=0, says="; ".join(wrong))]


def _dropout_checks(
    condition: Condition, found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], zeros: Collection[str]
) -> list[Check]:
    """The checks of dropout, where it is declared, and of how far steps go, but for ``zeros``: see ``worker.check``."""
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
    moving = np.array([f"0/gradient:{name}" not in zeros for name in trained], dtype=bool)
    for quantity in [name for name in seen if name.startswith("moved ")]:
        its = expected.get(f"{DROPOUT}/{quantity}", np.full(len(trained), np.nan))
        names, moved = list(itertools.compress(trained, moving)), (seen[quantity][moving], its[moving])
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
        if condition.precision == "fp32" and any(_trial(name) == BATCH for name in found):  # masks were given
            larger = np.where(seen["root mean square"] == 1, 0, larger)  # of ones, which make a mask
        differences["dropout inputs"] = dict(zip((name for name, _ in declared), _finite(larger), strict=True))
        rows = [(name, p, *(float(seen[one][place]) for one in _OF_PLACE)) for place, (name, p) in enumerate(declared)]
        its = np.resize(expected.get(f"{DROPOUT}/neighbours", np.zeros(1)), len(declared))
        for place, (name, p, numbers, dropped, smallest, greatest, neighbours, repeats, twins) in enumerate(rows):
            whole = its[place] > DROPOUT_TOLERANCES["dropout masks"]  # the reference drops channels, not numbers
            deviation = np.sqrt(p * (1 - p) / (625.0 if whole else max(numbers, 1.0)))
            of_place = {
                "dropout share": abs(dropped / max(numbers, 1.0) - p) / deviation,
                "dropout scale": max(abs(smallest * (1 - p) - 1), abs(greatest * (1 - p) - 1)),
                "dropout masks": 12 * abs(neighbours / its[place] - 1) if whole else neighbours,
                "dropout repeats": repeats + twins,
            }
            for quantity, difference in of_place.items():
                differences.setdefault(quantity, {})[name] = difference if np.isfinite(difference) else np.inf
    return [
        _check(name, differences[name], tolerance)
        for name, tolerance in dropout_tolerances(condition).items()
        if name in differences
    ]


def _factors(found: np.ndarray, expected: np.ndarray) -> list[float]:
    """The relative difference of each size from the expected one."""
    floor = NEGLIGIBLE * expected.max(initial=0.0) + np.finfo(np.float32).tiny
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


def with_dropout(condition: Condition) -> Condition:
    """A gated condition for the largest batch: as for trials, but with dropout at its own rate."""
    off, neutral = _dropout_off(condition), workloads.load(condition.workload).gate.hyperparameters
    others = {name: value for name, value in neutral.items() if name not in off}
    return condition.but(hyperparameters={**condition.hyperparameters, **others})


def without_dropout(condition: Condition) -> Condition:
    """A gated condition with its workload's usual learning rate, but without dropout, whose masks never agree."""
    return with_usual_rate(condition).but(hyperparameters={**condition.hyperparameters, **_dropout_off(condition)})


def _dropout_off(condition: Condition) -> dict[str, object]:
    """The hyperparameters with which the gate switches dropout off."""
    workload, values = workloads.load(condition.workload), condition.hyperparameters
    places = list(workload.dropouts(values))
    return {
        name: value
        for name, value in workload.gate.hyperparameters.items()
        if list(workload.dropouts({**values, name: value})) != places
    }


def with_usual_rate(condition: Condition) -> Condition:
    """A gated condition with the learning rate that its workload usually has."""
    return condition.but(learning_rate=workloads.load(condition.workload).learning_rate)
