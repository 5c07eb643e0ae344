"""What JAX's session leaves at work in eager mode, and what it says of a model, as JSON: with the interpreter of an
environment that has JAX.
"""

from __future__ import annotations

import importlib
import json

import jax
import numpy as np

from benchlib import workloads
from benchlib.frameworks import NoMasks
from benchlib.frameworks.jax import Session, _dropping

GIVEN = {"words": 9, "length": 6, "embedding": 5, "hidden": 4}  # of the workload lstm


def left_at_work() -> dict[str, list[int]]:
    """Of the arrays that a step of an operator returns, by what was asked of the session: how many there were, and how
    many were still computed after the answer.
    """
    session, workload = Session("cpu", "eager", "fp32", 0), workloads.load("linear")
    values = workload.values({"in_features": 1024, "out_features": 1024})
    session.build(workload, importlib.import_module("benchlib.workloads.linear.jax"), values, None)
    random = np.random.default_rng(0)
    shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
    session.load({name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()})
    batch = session.put(workload.inputs(values, 1024, random))
    arrays = []

    def watched(function):
        def inner(*arguments):
            results = function(*arguments)
            arrays.extend(jax.tree.leaves(results))
            return results

        return inner

    session._step, session._gradients = watched(session._step), watched(session._gradients)
    counts = {}
    for name, ask in {
        "outputs": lambda: session.outputs(batch, True),
        "gradients": lambda: session.gradients(batch),
    }.items():
        arrays.clear()
        ask()
        counts[name] = [len(arrays), sum(not array.is_ready() for array in arrays)]
    return counts


def small(mode: str, precision: str) -> tuple:
    """A session of a small lstm, its initial weights, and a batch."""
    session, workload = Session("cpu", mode, precision, 0), workloads.load("lstm")
    values, random = workload.values(GIVEN), np.random.default_rng(0)
    session.build(workload, importlib.import_module("benchlib.workloads.lstm.jax"), values, 0.1)
    initial = {name: random.uniform(-1, 1, weight.shape) for name, weight in workload.weights(values).items()}
    session.load(initial)
    fields = random.integers(1, 9, (3, 6)), random.integers(2, 7, 3), random.integers(0, 10, 3)
    return session, initial, session.put(tuple(map(np.int32, fields)))


def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
    """Masks that are the same each time."""
    return np.random.default_rng(place).random(shape) >= p


def of_model() -> dict:
    """What sessions say of the model: see ``test_jax.py``."""
    found: dict = {"losses": {}, "places": {}}
    for mode in ("eager", "graph"):
        session, initial, batch = small(mode, "fp32")
        drawn: list[tuple] = []
        with session.given_masks(lambda *place, drawn=drawn: drawn.append(place) or draw(*place)):
            losses = [float(session.step(batch))]
        for _ in range(2):
            session.load(initial)
            losses.append(float(session.step(batch)))
        found["places"][mode], found["losses"][mode] = drawn, losses
        found |= {"work": session.multiply_adds(batch), "layers": [one for one, _ in session.layers(batch)]}
    found["settings"], found["operations"] = session.settings(), session.operations
    try:
        with _dropping(draw):
            jax.jit(lambda: jax.random.bernoulli(jax.random.key(0), 0.5, (2,)))()
    except NoMasks as error:
        found["refusal"] = str(error)
    session, initial, batch = small("graph", "fp64")
    ways, losses = {name: draw(len(name), array.shape, 0.5) for name, array in initial.items()}, []
    for sign in (1, -1):
        session.load({name: array + sign * 1e-6 * ways[name] for name, array in initial.items()})
        with session.given_masks(draw):
            losses.append(float(session.step(batch)))
    session.load(initial)
    with session.given_masks(draw):
        gradients = session.gradients(batch)
    found["slopes"] = [
        sum(float((array * ways[name]).sum()) for name, array in gradients.items()),
        (losses[0] - losses[1]) / 2e-6,
    ]
    return found


if __name__ == "__main__":
    print(json.dumps({"left": left_at_work(), "model": of_model()}))
