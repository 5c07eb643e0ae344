"""Where two models part: the layer, or what agrees before the check that fails; and a guess, where one is plain."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import numpy as np
from scipy.special import erf

from benchlib import frameworks, workloads
from benchlib.equivalence.certificate import Certificate
from benchlib.equivalence.compare import BATCH, FAR
from benchlib.equivalence.gate import Gated, reference
from benchlib.equivalence.tolerances import NEGLIGIBLE, tolerances
from benchlib.provenance import knobs
from benchlib.runner.jobs import INITIAL_SEED
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.stats.validity import DIFFERENT
from benchlib.worker import files

APART = 2e-5  # relative distance of a layer's numbers; equal models of all workloads lie within 5.2e-6
COARSE = 3e-2  # as coarse as half precision; also the share of a difference that its cause may leave, for rounding
BEHIND = {
    "updates": ("gradients agree, so the optimizer differs", "update"),
    "update size": ("outputs and gradients agree, so the optimizer or the scale of the loss differs", ""),
    "optimizer": ("a trial's steps agree, so the optimizer differs at other gradients or in later steps", ""),
    "state": ("outputs, gradients and updates agree, so running statistics differ", "state"),
    "evaluation outputs": ("training agrees, so evaluation differs: perhaps its dropout or running statistics", ""),
    "predictions": ("outputs agree, so predictions are made of them in another way", ""),
}  # by check, in the order of a step: what it says as the first that fails, and the arrays to guess by
SCALED = {"gradient": "a sum for a mean", "update": "the rate or how momentum begins", "state": "their momentum"}
ACTIVATIONS = {
    "no activation": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
    "GELU": lambda x: x * (1 + erf(x / 2**0.5)) / 2,
    "GELU by tanh": lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}
ALONE = {
    FAR: "small trials agree, so saturated values differ: perhaps a cut, or a small number within a logarithm",
    BATCH: "small trials agree, so a part of the batch is left out, or dropout differs at work",
}  # by trial
THROUGH = "through "  # a module without weights, which only the reference's session may name
Arrays = dict[str, np.ndarray]
Pairs = dict[str, tuple[np.ndarray, np.ndarray]]  # by name, of the condition and of the reference, in one shape


def with_parting(certificate: Certificate, gated: Gated, patience_s: float) -> Certificate:
    """The certificate, with ``parts`` if it says "different". A worker that fails for that adds nothing."""
    wrong = {check.name: check.at.partition("/")[0] for check in certificate.checks if not check.ok}
    if certificate.verdict != DIFFERENT:
        return certificate
    asked = [name for name in ("outputs", "first loss", "gradients", "gradient size") if name in wrong]
    trial = min((wrong[name] for name in asked if wrong[name]), key=ALONE.__contains__, default="0")  # a small one
    if not asked:
        said, kind = next((BEHIND[name] for name in BEHIND if name in wrong), ("", ""))
        parts = [said, _guess_change(gated, "0", kind)]
    elif trial in ALONE:
        parts = [ALONE[trial]]
    elif gated.condition.world_size > 1 or (layers := _layers(gated, int(trial), patience_s)) is None:
        return certificate
    else:
        parts = _compare_layers(gated, layers[0], layers[1], trial, forward="gradient" not in asked[0])
    return certificate.model_copy(update={"parts": "; ".join(filter(None, parts))})


def _layers(gated: Gated, trial: int, patience_s: float) -> tuple[Arrays, ...] | None:
    """``Session.layers`` of the condition and of its reference; None: a worker failed."""
    with suppress(WorkerFailed), ExitStack() as stack:
        workers = []
        for one in (gated.condition, reference(gated.condition)):
            eager = one.but(mode="eager") if "eager" in frameworks.modes(one.framework) else one
            workers.append(WorkerProcess(eager, INITIAL_SEED, patience_s, knobs.of_gate(eager)))
            stack.callback(workers[-1].end)
        for worker in workers:
            worker.finish_open()
            worker.ask("build", **gated.job.document())
            worker.ask("layers", trial=trial, file=str(worker.scratch / "layers.npz"))
        return tuple(_by_call(worker.arrays(worker.scratch / "layers.npz")) for worker in workers)
    return None


def _by_call(arrays: Arrays) -> Arrays:
    names = [name.rpartition("/")[0] for name in arrays]
    return {f"{name}/{names[:i].count(name) + 1}": arrays[f"{name}/{i}"] for i, name in enumerate(names)}


def _compare_layers(gated: Gated, found: Arrays, expected: Arrays, trial: str, forward: bool) -> list[str]:
    """The first place where layers part, or the gradient nearest to the loss; a guess; layers that only one calls."""
    eagerly, before = "" if gated.condition.mode == "eager" else "in eager mode ", ""
    ours, its = ({_layer(name) for name in one if not name.startswith(THROUGH)} for one in (found, expected))
    sides = {"the condition": sorted(ours - its), "the reference": sorted(its - ours)}
    alone = "; ".join(f"only {who} calls {', '.join(some[:3])}" for who, some in sides.items() if some)
    scaled, order = _guess_change(gated, trial, "gradient"), list(expected)
    pairs = {name: pair for name, pair in _pairs(found, expected).items() if not name.startswith(THROUGH)}
    allowed, names = max(APART, tolerances(gated.condition)["outputs"]), list(pairs)
    for place, (name, pair) in enumerate(pairs.items(), 1):
        later = (names[place:] or [name])[0]  # its activation may be within, its input in another order
        alike, same = pairs[later][0].size == pair[0].size, _layer(later) == _layer(name)
        within = (alike if name.startswith("output") else same) and _distance(*pairs[later]) <= allowed
        if not within and not (apart := _distance(*pair)) <= allowed:
            where = f"at the {name.partition('/')[0]}"
            if before and not name.startswith("output"):
                some = order[order.index(names[place - 2]) : order.index(name)]
                some = [_layer(one).removeprefix(THROUGH) for one in some if one.startswith(THROUGH)]
                where = f"between {before} and {_layer(name)}" + f", through {', '.join(some)}" * bool(some)
            guess = _guess_layer(gated, pairs, name, before) or scaled
            return [f"{eagerly}first apart {where} ({apart:.1e})", guess, alone]
        before = _layer(name)
    if not pairs:  # an operator is no layer of its own
        return [scaled, alone]
    if forward:
        other = "what graph mode compiles" if eagerly else "a step's loss or the outputs"
        return [f"{eagerly}all layers and the loss agree, so {other} differs", alone]
    weights = _changes(gated, trial, "gradient")[1]
    where = f", nearest to the loss at {weights[-1]}" if weights else ""
    return [f"{eagerly}the forward pass agrees layer by layer, so the way back differs{where}", scaled, alone]


def _layer(name: str) -> str:
    layer = name.partition("/")[0].rpartition("put of ")[2]
    return "the loss" if layer == "loss" else layer


def _pairs(found: Arrays, expected: Arrays, prefix: str = "") -> Pairs:
    names = (name for name in expected if name.startswith(prefix) and name in found)
    pairs = {name: (found[name].astype(float), expected[name].astype(float)) for name in names}
    return {name.removeprefix(prefix): pair for name, pair in pairs.items() if pair[0].shape == pair[1].shape}


def _changes(gated: Gated, trial: str, kind: str) -> tuple[Pairs, list[str]]:
    """The arrays of a kind in a trial by weight, and the names of those that are apart."""
    pairs = _pairs(gated.results.found, gated.results.truth, f"{trial}/{kind}:")
    floor = NEGLIGIBLE * max((np.linalg.norm(its) for _, its in pairs.values()), default=0.0)
    return pairs, [name for name, pair in pairs.items() if not _distance(*pair, floor) <= 10 * APART]


def _distance(ours: np.ndarray, its: np.ndarray, floor: float = 0.0) -> float:
    return float(np.linalg.norm(ours - its) / max(np.linalg.norm(its), floor, 1e-30))


def _fit(ours: np.ndarray, *its: np.ndarray) -> list[float]:
    """The factors with which the sum of ``its`` is ``ours``, and not only nearly; empty: there are none."""
    every = np.stack(its, 1)
    if not (np.isfinite(every).all() and np.isfinite(ours).all()):
        return []
    factors = np.linalg.lstsq(every.T @ every, every.T @ ours, rcond=None)[0]
    least = COARSE * min(np.linalg.norm(ours), np.linalg.norm(ours - its[0]))
    return factors.tolist() if np.linalg.norm(ours - every @ factors) < least else []


def _guess_layer(gated: Gated, pairs: Pairs, name: str, before: str) -> str:
    """A guess at what is other at a layer, or between two."""
    given, (ours, its) = f"output of {before}/{name.partition('/')[2]}", map(np.ravel, pairs[name])
    weights = workloads.load(gated.condition.workload).weights(gated.job.condition.hyperparameters)
    own = {one: len(weight.shape) for one, weight in weights.items() if one.rpartition(".")[0] == _layer(name)}
    if name.startswith("output") and any("weight_hh" in one for one in own):
        return "perhaps the order of its gates, or where a bias is added"
    if name.startswith("output") and set(own.values()) == {1}:
        return "perhaps the epsilon or the statistics of a normalisation"
    if name.startswith("input") and given in pairs and pairs[given][0].size == ours.size:
        both = zip(map(np.ravel, pairs[given]), (ours, its), strict=True)
        best = [min((_distance(f(x), y), what) for what, f in ACTIVATIONS.items()) for x, y in both]
        if max(best)[0] < APART:
            return f"perhaps {best[0][1]} in place of {best[1][1]}"
    later = [_distance(*pairs[one]) for one in list(pairs)[list(pairs).index(name) :] if "output" in one]
    is_noise = abs((ours - its) @ its) < 0.1 * np.linalg.norm(ours - its) * np.linalg.norm(its)
    coarse = later and is_noise and min(later) > APART and max(later) < COARSE
    return "perhaps half precision or TF32" if coarse else ""


def _guess_change(gated: Gated, trial: str, kind: str) -> str:
    """A guess at the cause of other gradients, updates or running statistics (state) in a trial."""
    pairs, apart = _changes(gated, trial, kind)
    if not apart:
        return "the first step agrees: perhaps momentum, or a schedule" if kind == "update" else ""
    if times := _fit(*(np.concatenate([one.ravel() for one in some]) for some in zip(*pairs.values(), strict=True))):
        return f"every {kind} is {times[0]:.4g} times the reference's: perhaps {SCALED[kind]}"
    which, (ours, its) = f"{apart[0]}{' and others' if apart[1:] else ''}", map(np.ravel, pairs[apart[0]])
    weight = files.arrays(gated.job.weights).get(apart[0], its).ravel()
    if kind == "update" and _fit(ours - its, weight):
        return f"that of {which} differs by a share of the weight: perhaps weight decay"
    if kind == "state" and (times := _fit(ours, its, weight)) and APART < abs(times[0] - 1) <= 1 / 2:
        n, how = 1 / abs(1 - min(times[0], 1 / times[0])), "unbiased" if times[0] > 1 else "biased"
        return f"that of {which} is as if its variance were {times[0]:.4f} times as large: perhaps {how}, n = {n:.0f}"
    return ""
