"""What Chainer's session says of a small model, as JSON: with the interpreter of an environment that has Chainer."""

from __future__ import annotations

import importlib
import json

import numpy as np
from chainer.optimizer_hooks import WeightDecay

from benchlib import workloads
from benchlib.frameworks.chainer import Session

RNG = np.random.RandomState(0)


def built(name: str, **given: int) -> tuple:
    """A session of a small workload in double precision, and its initial weights."""
    session, workload = Session("cpu", "eager", "fp64", 1), workloads.load(name)
    values = workload.values(given)
    session.build(workload, importlib.import_module(f"benchlib.workloads.{name}.chainer"), values, 0.1)
    weights = {one: RNG.uniform(-0.1, 0.1, weight.shape) for one, weight in workload.weights(values).items()}
    session.load(weights)
    return session, weights


def given_masks() -> dict:
    """Masks taken by two steps; a gradient, and the same from two losses beside it; losses without."""
    session, weights = built("cnn", image_size=8)
    batch = session.put((RNG.standard_normal((16, 3, 8, 8)), RNG.randint(0, 10, 16).astype(np.int32)))
    taken: list = []

    def draw(place: int, shape: tuple, p: float) -> np.ndarray:
        taken.append([place, *shape, p])
        return np.random.RandomState(place).random_sample(shape) >= p

    def loss(change: float = 0.0) -> float:
        session.load({**weights, "dense1.bias": weights["dense1.bias"] + change})
        return float(session.step(batch))

    with session.given_masks(draw):
        gradient = session.gradients(batch)["dense1.bias"].sum()
        losses = [loss(1e-8), loss(-1e-8)]
    without = [loss(), loss()]
    return {"taken": taken, "slopes": [gradient, (losses[0] - losses[1]) / 2e-8], "without": without}


def looked_into() -> dict:
    """Layers of ``gru`` with the shapes of their inputs and outputs, and the multiply-adds of a step."""
    session, _ = built("gru", length=8, embedding=5, hidden=6)
    batch = session.put((RNG.randint(1, 20, (4, 8)).astype(np.int32), RNG.randint(0, 10, 4).astype(np.int32)))
    layers = [f"{name} {array.shape}" for name, array in session.layers(batch)]
    return {"layers": layers, "multiply_adds": session.multiply_adds(batch)}


def moved() -> list:
    """The weights that move where gradients of one are given, and there is weight decay."""
    session, weights = built("cnn", image_size=8)
    session._optimizer.add_hook(WeightDecay(0.1))
    session.update([{"dense2.bias": np.ones(10)}], 2)
    return [name for name, array in session.weights().items() if not np.array_equal(array, weights[name])]


if __name__ == "__main__":
    print(json.dumps({"masks": given_masks(), "model": looked_into(), "moved": moved()}))
