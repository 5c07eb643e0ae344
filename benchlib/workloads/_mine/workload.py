"""The workload of a user's own models, from its document: see ``benchlib.matching.own``."""

from __future__ import annotations

import functools
import operator
from typing import Any, Iterable, Mapping

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Workload
from benchlib.workloads.neutral import CAREFUL_RATE, DROPOUT_OFF

ROUNDS = 1e-6
"""Outputs that are so near in double precision are rounded. flax's attention, whose softmax is fp32, a bilinear resize
in TensorFlow, and the slope of MXNet's LeakyReLU made 1.1e-8 to 9.8e-8.
"""

DEEP = 8
"""Convolutions from which a model counts as deep where it has batch normalisation, twice as many where it has none."""


def described(document: Mapping[str, Any]) -> Workload:
    """The workload of a document."""
    weights = {name: _weight(name, tuple(shape), trained) for name, shape, trained in document["weights"]}
    convolutions = sum(len(one.shape) == 4 for one in weights.values())
    is_deep = convolutions >= (DEEP if any("running_mean" in name for name in weights) else 2 * DEEP)
    classified = "classes" in document

    def dropouts(values: Values) -> list[tuple[str, float]]:
        return [(f"dropout {place + 1}", p * values["dropout"]) for place, p in enumerate(document["dropouts"])]

    return Workload(
        name=document["name"],
        title=document["title"],
        kind="training",
        source=f"the user's own files: {', '.join(document['files'].values())}",
        data=(document["data"],),
        weights=lambda values: weights,
        hyperparameters={
            "dropout": Hyperparameter(1.0, "factor of each probability of dropout", minimum=0.0, below=1.0001),
            "momentum": Hyperparameter(document["momentum"], "momentum of gradient descent", minimum=0.0, below=1.0),
        },
        batch_size=document["batch_size"],
        learning_rate=document["learning_rate"],
        metric="accuracy" if classified and not document["labels"] else None,
        gate=Gate(
            {"dropout": DROPOUT_OFF},
            batch_size=16 if is_deep else None,
            learning_rate=CAREFUL_RATE if is_deep else None,
            fed=is_deep,
            rounds=ROUNDS,
        ),
        dropouts=dropouts,
        settled=document["settled"],
        fields=(*document["inputs"], "labels"),
        optimizer_state=1,
        holds=lambda values: float(sum(_product(shape) for shape in document["inputs"].values())),
    )


def _weight(name: str, shape: tuple[int, ...], trained: bool) -> Weight:
    """How a weight of this name and shape begins, whatever the framework."""
    last = name.rpartition(".")[2]
    if len(shape) > 1:
        fan = (_product(shape[1:]), shape[0] * _product(shape[2:]))
        return Weight(shape, "glorot_uniform", fan, trained=trained)
    ones = ("weight", "scale", "gamma", "running_var", "var", "moving_variance", "moving_var")
    return Weight(shape, "ones" if last in ones else "zeros", trained=trained)


def _product(numbers: Iterable[int]) -> int:
    return functools.reduce(operator.mul, numbers, 1)
